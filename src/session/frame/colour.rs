//! `r = y + 2 (1 - kr) cr`, `b = y + 2 (1 - kb) cb`, `g = (y - kr r - kb b) / (1 - kr - kb)`: luma and chroma to red,
//! green and blue (ITU-R BT.601-7, BT.709-6 and BT.2020-2).

/// How luma and chroma were made of red, green and blue: `y = kr r + (1 - kr - kb) g + kb b`.
///
/// Cameras and files of standard definition use BT.601, those of high definition BT.709. Video4Linux says which
/// (`ycbcr_enc`); webcams that say nothing use BT.601, whatever their size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ColourMatrix {
    /// ITU-R BT.601: `kr = 0.299`, `kb = 0.114`. JPEG has it, too.
    #[default]
    Bt601,
    /// ITU-R BT.709: `kr = 0.2126`, `kb = 0.0722`.
    Bt709,
    /// ITU-R BT.2020, not of constant luminance: `kr = 0.2627`, `kb = 0.0593`.
    Bt2020,
}

impl ColourMatrix {
    /// The parts of red and of blue in luma.
    ///
    /// ```
    /// use diptych::ColourMatrix;
    ///
    /// assert_eq!(ColourMatrix::Bt709.weights(), [0.2126, 0.0722]);
    /// ```
    pub const fn weights(self) -> [f64; 2] {
        match self {
            ColourMatrix::Bt601 => [0.299, 0.114],
            ColourMatrix::Bt709 => [0.2126, 0.0722],
            ColourMatrix::Bt2020 => [0.2627, 0.0593],
        }
    }
}

/// Which bytes are black, white and the strongest colours.
///
/// | range | luma | chroma |
/// |---|---|---|
/// | `Video` | 16 is black and 235 is white | 16 to 240, and 128 is none |
/// | `Full` | 0 is black and 255 is white | 0 to 255, and 128 is none |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ColourRange {
    /// Video levels, of most cameras too: luma from 16 to 235. It is also called limited or studio range.
    #[default]
    Video,
    /// All levels, 0 to 255, of JPEG and of what is decoded from it.
    Full,
}

/// Where a chroma sample lies relative to the pixels that share it.
///
/// | siting | 2 x 2 pixels (NV12, NV21, I420) | 2 x 1 pixels (YUYV, UYVY) |
/// |---|---|---|
/// | `Centre` | in the middle of the four | between the two |
/// | `Left` | between the two pixels of the left column | at the left pixel |
/// | `TopLeft` | at the upper left pixel | at the left pixel |
///
/// `Centre` is the default, because Video4Linux documents its formats so, JPEG and MPEG-1 have it, and a GPU's sampler that reads
/// both planes at the same normalised place assumes it. MPEG-2, H.264 and HEVC have `Left` unless the stream says otherwise. The
/// difference is half a pixel of colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ChromaSiting {
    /// In the middle of the pixels: JPEG, MPEG-1, cameras.
    #[default]
    Centre,
    /// In the left column, and in the middle of two rows: MPEG-2, H.264, HEVC.
    Left,
    /// At the upper left pixel: HEVC of BT.2020.
    TopLeft,
}

impl ChromaSiting {
    /// What is subtracted from half of a continuous coordinate, along x and along y, to give the place among the centres of
    /// the chroma samples: sample `j` lies at the continuous coordinate `2 j + 2 x` of the frame.
    pub(in crate::session) const fn shift(self) -> [f32; 2] {
        match self {
            ChromaSiting::Centre => [0.5, 0.5],
            ChromaSiting::Left => [0.25, 0.5],
            ChromaSiting::TopLeft => [0.25, 0.25],
        }
    }
}

/// Chroma that is none.
pub(in crate::session) const MIDDLE: f32 = 128.0 / 255.0;

/// Luma, Cb and Cr, each of them a byte divided by 255, to red, green and blue: for each of them the factors of the three,
/// and what is added.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::session) struct Conversion(pub(in crate::session) [[f32; 4]; 3]);

impl Conversion {
    pub(in crate::session) fn new(matrix: ColourMatrix, range: ColourRange) -> Self {
        let [kr, kb] = matrix.weights();
        // `y' = scale y - black`, and chroma from -1/2 to 1/2.
        let (scale, black, chroma) = match range {
            ColourRange::Video => (255.0 / 219.0, 16.0 / 219.0, 255.0 / 224.0),
            ColourRange::Full => (1.0, 0.0, 1.0),
        };
        let middle = f64::from(MIDDLE);
        let kg = 1.0 - kr - kb;
        let (r, b) = (2.0 * (1.0 - kr), 2.0 * (1.0 - kb));
        let row = |cb: f64, cr: f64| {
            [scale, cb * chroma, cr * chroma, -black - (cb + cr) * chroma * middle]
                .map(|number| number as f32)
        };
        Conversion([row(0.0, r), row(-kb * b / kg, -kr * r / kg), row(b, 0.0)])
    }

    /// Red, green and blue, in `0..=1`.
    #[cfg(feature = "cpu")]
    pub(super) fn colours(&self, y: f32, cb: f32, cr: f32) -> [f32; 3] {
        self.0.map(|[of_y, of_cb, of_cr, one]| (of_y * y + of_cb * cb + of_cr * cr + one).clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The colours of bytes, worked out by hand from the standards' tables of colour bars.
    #[test]
    fn bars_have_the_colours_of_the_standards() {
        let near = |matrix, range, [y, cb, cr]: [u8; 3], wanted: [f32; 3]| {
            let [y, cb, cr] = [y, cb, cr].map(|byte| f32::from(byte) / 255.0);
            let rows = Conversion::new(matrix, range).0;
            let found = rows.map(|[a, b, c, one]| a * y + b * cb + c * cr + one);
            let off = found.iter().zip(wanted).map(|(found, wanted)| (found - wanted).abs());
            // Bytes are rounded: a half of 219 and of 224, times factors of at most 1.9.
            assert!(off.fold(0.0, f32::max) < 0.008, "{matrix:?} {range:?}: {found:?}, wanted {wanted:?}");
        };
        use ColourMatrix::{Bt601, Bt709, Bt2020};
        use ColourRange::{Full, Video};
        for matrix in [Bt601, Bt709, Bt2020] {
            near(matrix, Video, [235, 128, 128], [1.0; 3]);
            near(matrix, Video, [16, 128, 128], [0.0; 3]);
            near(matrix, Full, [255, 128, 128], [1.0; 3]);
            near(matrix, Full, [0, 128, 128], [0.0; 3]);
        }
        near(Bt601, Video, [81, 90, 240], [1.0, 0.0, 0.0]);
        near(Bt601, Video, [145, 54, 34], [0.0, 1.0, 0.0]);
        near(Bt601, Video, [41, 240, 110], [0.0, 0.0, 1.0]);
        near(Bt709, Video, [63, 102, 240], [1.0, 0.0, 0.0]);
        near(Bt709, Video, [173, 42, 26], [0.0, 1.0, 0.0]);
        near(Bt709, Video, [32, 240, 118], [0.0, 0.0, 1.0]);
        near(Bt601, Full, [76, 85, 255], [1.0, 0.0, 0.0]);
        near(Bt601, Full, [150, 44, 21], [0.0, 1.0, 0.0]);
    }
}
