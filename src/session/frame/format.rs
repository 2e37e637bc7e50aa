//! What a format's planes hold, and which byte of them a component is.

use std::fmt;

/// The most planes that a format has.
pub(super) const MAX_PLANES: usize = 3;

/// How the bytes of a frame encode its pixels. All components have 8 bits.
///
/// | format | planes | in memory | V4L2 | DRM |
/// |---|---|---|---|---|
/// | `Nv12` | 2 | `Y`; `Cb Cr` for 2 x 2 pixels | `NV12`, `NM12` | `NV12` |
/// | `Nv21` | 2 | `Y`; `Cr Cb` for 2 x 2 pixels | `NV21`, `NM21` | `NV21` |
/// | `I420` | 3 | `Y`; `Cb`; `Cr`, each for 2 x 2 pixels | `YU12`, `YM12` | `YU12` |
/// | `Yuyv` | 1 | `Y0 Cb Y1 Cr` for 2 x 1 pixels | `YUYV` | `YUYV` |
/// | `Uyvy` | 1 | `Cb Y0 Cr Y1` for 2 x 1 pixels | `UYVY` | `UYVY` |
/// | `Gray8` | 1 | `Y` | `GREY` | `R8` |
/// | `Rgb8`, `Bgr8` | 1 | 3 bytes | `RGB3`, `BGR3` | `BG24`, `RG24` |
/// | `Rgba8`, `Bgra8` | 1 | 4 bytes | `AB24`, `AR24` | `AB24`, `AR24` |
///
/// A frame whose width or height is odd has a chroma sample for the last column or row, too.
///
/// ```
/// use diptych::PixelFormat;
///
/// assert_eq!(PixelFormat::Nv12.planes(), 2);
/// assert_eq!(PixelFormat::from_fourcc(*b"YUYV"), Some(PixelFormat::Yuyv));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PixelFormat {
    /// Luma, and a plane of Cb and Cr for each 2 x 2 pixels.
    Nv12,
    /// Luma, and a plane of Cr and Cb for each 2 x 2 pixels.
    Nv21,
    /// Luma, a plane of Cb and one of Cr, each for 2 x 2 pixels.
    I420,
    /// Two pixels in four bytes: luma, Cb, luma, Cr.
    Yuyv,
    /// Two pixels in four bytes: Cb, luma, Cr, luma.
    Uyvy,
    /// Luma alone. Its range is that of the layout; red, green and blue are what it is.
    Gray8,
    /// Red, green, blue.
    Rgb8,
    /// Blue, green, red.
    Bgr8,
    /// Red, green, blue, alpha.
    Rgba8,
    /// Blue, green, red, alpha.
    Bgra8,
}

/// Where a component lies: in which plane, at which byte of a sample, and how many bytes a sample has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::session) struct Tap {
    pub(in crate::session) plane: usize,
    pub(in crate::session) lane: u32,
    pub(in crate::session) step: u32,
}

impl Tap {
    const fn new(plane: usize, lane: u32, step: u32) -> Self {
        Tap { plane, lane, step }
    }
}

/// The components of a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::session) enum Components {
    /// Luma for each pixel; Cb and Cr for `2 x rows` pixels.
    Chroma { luma: Tap, cb: Tap, cr: Tap, rows: u32 },
    /// Luma alone.
    Luma(Tap),
    /// Red, green, blue and, if there is one, alpha.
    Colours([Tap; 3], Option<Tap>),
}

impl PixelFormat {
    /// All of them.
    const ALL: [PixelFormat; 10] = [
        PixelFormat::Nv12,
        PixelFormat::Nv21,
        PixelFormat::I420,
        PixelFormat::Yuyv,
        PixelFormat::Uyvy,
        PixelFormat::Gray8,
        PixelFormat::Rgb8,
        PixelFormat::Bgr8,
        PixelFormat::Rgba8,
        PixelFormat::Bgra8,
    ];

    /// How many planes it has.
    pub const fn planes(self) -> usize {
        match self {
            PixelFormat::Nv12 | PixelFormat::Nv21 => 2,
            PixelFormat::I420 => 3,
            _ => 1,
        }
    }

    /// Whether it has luma and chroma, so that a matrix, a range and a siting matter.
    ///
    /// ```
    /// use diptych::PixelFormat;
    ///
    /// assert!(PixelFormat::Yuyv.has_chroma() && !PixelFormat::Rgba8.has_chroma());
    /// ```
    pub const fn has_chroma(self) -> bool {
        matches!(self.components(), Components::Chroma { .. })
    }

    /// The format that Video4Linux calls so. Its formats whose planes have buffers of their own (`NM12`, `NM21`, `YM12`) are
    /// the same format, in [`Frame::of_planes`](crate::Frame::of_planes).
    ///
    /// ```
    /// use diptych::PixelFormat;
    ///
    /// assert_eq!(PixelFormat::from_fourcc(*b"NV12"), Some(PixelFormat::Nv12));
    /// assert_eq!(PixelFormat::from_fourcc(*b"MJPG"), None);
    /// ```
    pub fn from_fourcc(code: [u8; 4]) -> Option<Self> {
        let code = match &code {
            b"NM12" => *b"NV12",
            b"NM21" => *b"NV21",
            b"YM12" => *b"YU12",
            _ => code,
        };
        PixelFormat::ALL.into_iter().find(|format| format.fourcc() == code)
    }

    /// What Video4Linux calls it.
    ///
    /// ```
    /// use diptych::PixelFormat;
    ///
    /// assert_eq!(&PixelFormat::I420.fourcc(), b"YU12");
    /// ```
    pub const fn fourcc(self) -> [u8; 4] {
        match self {
            PixelFormat::Nv12 => *b"NV12",
            PixelFormat::Nv21 => *b"NV21",
            PixelFormat::I420 => *b"YU12",
            PixelFormat::Yuyv => *b"YUYV",
            PixelFormat::Uyvy => *b"UYVY",
            PixelFormat::Gray8 => *b"GREY",
            PixelFormat::Rgb8 => *b"RGB3",
            PixelFormat::Bgr8 => *b"BGR3",
            PixelFormat::Rgba8 => *b"AB24",
            PixelFormat::Bgra8 => *b"AR24",
        }
    }

    pub(in crate::session) const fn components(self) -> Components {
        let luma = Tap::new(0, 0, 1);
        match self {
            PixelFormat::Nv12 => {
                Components::Chroma { luma, cb: Tap::new(1, 0, 2), cr: Tap::new(1, 1, 2), rows: 2 }
            }
            PixelFormat::Nv21 => {
                Components::Chroma { luma, cb: Tap::new(1, 1, 2), cr: Tap::new(1, 0, 2), rows: 2 }
            }
            PixelFormat::I420 => {
                Components::Chroma { luma, cb: Tap::new(1, 0, 1), cr: Tap::new(2, 0, 1), rows: 2 }
            }
            PixelFormat::Yuyv => {
                let luma = Tap::new(0, 0, 2);
                Components::Chroma { luma, cb: Tap::new(0, 1, 4), cr: Tap::new(0, 3, 4), rows: 1 }
            }
            PixelFormat::Uyvy => {
                let luma = Tap::new(0, 1, 2);
                Components::Chroma { luma, cb: Tap::new(0, 0, 4), cr: Tap::new(0, 2, 4), rows: 1 }
            }
            PixelFormat::Gray8 => Components::Luma(luma),
            PixelFormat::Rgb8 => Components::Colours(interleaved([0, 1, 2], 3), None),
            PixelFormat::Bgr8 => Components::Colours(interleaved([2, 1, 0], 3), None),
            PixelFormat::Rgba8 => Components::Colours(interleaved([0, 1, 2], 4), Some(Tap::new(0, 3, 4))),
            PixelFormat::Bgra8 => Components::Colours(interleaved([2, 1, 0], 4), Some(Tap::new(0, 3, 4))),
        }
    }

    /// Samples in a row and rows of each plane, of a frame of `size` pixels, and bytes of a sample.
    pub(in crate::session) const fn extent(self, plane: usize, [width, height]: [u32; 2]) -> ([u32; 2], u32) {
        match (self, plane) {
            (PixelFormat::Yuyv | PixelFormat::Uyvy, _) => ([width.div_ceil(2), height], 4),
            (PixelFormat::Nv12 | PixelFormat::Nv21, 1) => ([width.div_ceil(2), height.div_ceil(2)], 2),
            (PixelFormat::I420, 1 | 2) => ([width.div_ceil(2), height.div_ceil(2)], 1),
            (PixelFormat::Rgb8 | PixelFormat::Bgr8, _) => ([width, height], 3),
            (PixelFormat::Rgba8 | PixelFormat::Bgra8, _) => ([width, height], 4),
            _ => ([width, height], 1),
        }
    }
}

const fn interleaved([r, g, b]: [u32; 3], step: u32) -> [Tap; 3] {
    [Tap::new(0, r, step), Tap::new(0, g, step), Tap::new(0, b, step)]
}

impl fmt::Display for PixelFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PixelFormat::Nv12 => "NV12",
            PixelFormat::Nv21 => "NV21",
            PixelFormat::I420 => "I420",
            PixelFormat::Yuyv => "YUYV",
            PixelFormat::Uyvy => "UYVY",
            PixelFormat::Gray8 => "Gray8",
            PixelFormat::Rgb8 => "RGB8",
            PixelFormat::Bgr8 => "BGR8",
            PixelFormat::Rgba8 => "RGBA8",
            PixelFormat::Bgra8 => "BGRA8",
        })
    }
}

impl std::str::FromStr for PixelFormat {
    type Err = crate::error::Error;

    /// By its name, in any case.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = PixelFormat::ALL.into_iter().find(|format| format.to_string().eq_ignore_ascii_case(text));
        found.ok_or_else(|| {
            let names: Vec<String> = PixelFormat::ALL.iter().map(ToString::to_string).collect();
            crate::error::Error::input(
                "pixel format",
                format!("{text:?}"),
                format!("one of {}", names.join(", ")),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_codes_are_those_of_one_format_each() {
        for format in PixelFormat::ALL {
            assert_eq!(format.to_string().parse::<PixelFormat>().expect("a format"), format);
            assert_eq!(PixelFormat::from_fourcc(format.fourcc()), Some(format));
        }
        assert_eq!(PixelFormat::from_fourcc(*b"NM12"), Some(PixelFormat::Nv12));
        let error = "P010".parse::<PixelFormat>().expect_err("ten bits").to_string();
        assert!(error.contains("P010") && error.contains("NV12"), "{error}");
    }

    /// Every component lies in a plane that there is, and within a sample of it; the bytes of a sample are all used.
    #[test]
    fn components_lie_in_their_planes() {
        for format in PixelFormat::ALL {
            let taps = match format.components() {
                Components::Chroma { luma, cb, cr, .. } => vec![luma, cb, cr],
                Components::Luma(luma) => vec![luma],
                Components::Colours(colours, alpha) => colours.into_iter().chain(alpha).collect(),
            };
            let mut places: Vec<(usize, u32)> = taps.iter().map(|tap| (tap.plane, tap.lane)).collect();
            places.sort_unstable();
            places.dedup();
            assert_eq!(places.len(), taps.len(), "{format}: two components in one place");
            for tap in taps {
                assert!(tap.plane < format.planes() && tap.lane < tap.step, "{format}: {tap:?}");
                let (_, sample) = format.extent(tap.plane, [8, 8]);
                assert!(sample.is_multiple_of(tap.step), "{format}: {tap:?}");
            }
        }
    }
}
