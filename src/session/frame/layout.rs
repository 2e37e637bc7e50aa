//! Size, offsets and strides of a frame's planes, checked.

use super::colour::{ChromaSiting, ColourMatrix, ColourRange};
use super::format::{MAX_PLANES, PixelFormat};
use crate::error::{Error, Result};
use crate::session::framing::Framing;

/// Where a plane begins in its memory, and how many bytes lie between the beginnings of two of its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FramePlane {
    /// Bytes before its first row.
    pub offset: u64,
    /// Bytes from one row to the next, padding included.
    pub stride: u32,
}

impl FramePlane {
    /// A plane from byte `offset` on, with rows every `stride` bytes.
    pub const fn new(offset: u64, stride: u32) -> Self {
        FramePlane { offset, stride }
    }
}

/// How a frame lies in memory, and what its bytes mean: the same for bytes, buffers and textures.
///
/// ```
/// use diptych::{ColourMatrix, ColourRange, FrameLayout, FramePlane, PixelFormat};
///
/// // A decoder's NV12: rows of 1920 bytes every 2048, and 1088 of them before the chroma.
/// let layout = FrameLayout::new(PixelFormat::Nv12, [1920, 1080])?
///     .planes(&[FramePlane::new(0, 2048), FramePlane::new(2048 * 1088, 2048)])?
///     .matrix(ColourMatrix::Bt709)
///     .range(ColourRange::Video);
/// assert_eq!(layout.bytes(), 2048 * 1088 + 2048 * 539 + 1920);
/// # Ok::<(), diptych::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FrameLayout {
    format: PixelFormat,
    size: [u32; 2],
    planes: [FramePlane; MAX_PLANES],
    /// Whether [`FrameLayout::planes`] said where they begin.
    placed: bool,
    matrix: ColourMatrix,
    range: ColourRange,
    siting: ChromaSiting,
}

impl FrameLayout {
    /// A frame of `size` pixels (width, height) without padding: rows and planes follow each other. Luma and chroma are those
    /// of BT.601 in video range, and chroma is sited in the centre, unless [`FrameLayout::matrix`],
    /// [`FrameLayout::range`] and [`FrameLayout::siting`] say otherwise.
    ///
    /// ```
    /// use diptych::{FrameLayout, PixelFormat};
    ///
    /// let layout = FrameLayout::new(PixelFormat::I420, [5, 3])?;
    /// assert_eq!(layout.bytes(), 5 * 3 + 2 * (3 * 2)); // odd extents: 3 x 2 samples of chroma
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an extent is 0 or above 2^24, or a plane takes 4 GiB or more.
    pub fn new(format: PixelFormat, size: [u32; 2]) -> Result<Self> {
        for extent in size {
            if !(1..=1 << 24).contains(&extent) {
                let found = format!("{} x {} pixels", size[0], size[1]);
                return Err(Error::input(format!("{format} frame"), found, "1 to 16777216 each way"));
            }
        }
        let strides = std::array::from_fn(|plane| row_bytes(format, plane, size));
        FrameLayout {
            format,
            size,
            planes: [FramePlane::default(); MAX_PLANES],
            placed: false,
            matrix: ColourMatrix::default(),
            range: ColourRange::default(),
            siting: ChromaSiting::default(),
        }
        .following(strides)
    }

    /// Rows of the first plane begin every `stride` bytes, and planes follow each other: those of Cb and Cr together have the
    /// same stride, and each of I420's half of it, as in Video4Linux's `bytesperline`.
    ///
    /// ```
    /// use diptych::{FrameLayout, PixelFormat};
    ///
    /// let layout = FrameLayout::new(PixelFormat::Yuyv, [640, 480])?.stride(1344)?;
    /// assert_eq!(layout.bytes(), 479 * 1344 + 1280);
    /// assert!(layout.stride(1279).is_err()); // a row has 1280 bytes
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a row has more bytes, or a plane takes 4 GiB or more.
    pub fn stride(self, stride: u32) -> Result<Self> {
        let half = self.format == PixelFormat::I420;
        self.following(std::array::from_fn(
            |plane| if half && plane > 0 { stride.div_ceil(2) } else { stride },
        ))
    }

    /// Where each plane begins, and its stride.
    ///
    /// ```
    /// use diptych::{FrameLayout, FramePlane, PixelFormat};
    ///
    /// let layout = FrameLayout::new(PixelFormat::Nv12, [640, 480])?;
    /// let layout = layout.planes(&[FramePlane::new(64, 768), FramePlane::new(1 << 20, 640)])?;
    /// assert_eq!(layout.plane(1), Some(FramePlane::new(1 << 20, 640)));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are more or fewer than the format has, a row has more bytes than its stride, or a plane takes 4 GiB or more.
    pub fn planes(self, planes: &[FramePlane]) -> Result<Self> {
        let wanted = self.format.planes();
        if planes.len() != wanted {
            let found = format!("{} planes", planes.len());
            return Err(Error::input(format!("{} frame", self.format), found, wanted.to_string()));
        }
        let planes = std::array::from_fn(|plane| planes.get(plane).copied().unwrap_or_default());
        FrameLayout { planes, placed: true, ..self }.checked()
    }

    /// Which red, green and blue luma and chroma were made of.
    #[must_use]
    pub fn matrix(self, matrix: ColourMatrix) -> Self {
        FrameLayout { matrix, ..self }
    }

    /// Which bytes are black and white.
    #[must_use]
    pub fn range(self, range: ColourRange) -> Self {
        FrameLayout { range, ..self }
    }

    /// Where the chroma samples lie.
    #[must_use]
    pub fn siting(self, siting: ChromaSiting) -> Self {
        FrameLayout { siting, ..self }
    }

    /// The format.
    pub fn format(&self) -> PixelFormat {
        self.format
    }

    /// Width and height in pixels.
    pub fn size(&self) -> [u32; 2] {
        self.size
    }

    /// The matrix, the range and the siting.
    pub fn colour(&self) -> (ColourMatrix, ColourRange, ChromaSiting) {
        (self.matrix, self.range, self.siting)
    }

    /// A plane, if there is one.
    pub fn plane(&self, plane: usize) -> Option<FramePlane> {
        (plane < self.format.planes()).then(|| self.planes.get(plane).copied()).flatten()
    }

    /// Bytes of a memory that holds all planes: to the end of the last row of the one that ends last. What pads that row is
    /// not needed.
    ///
    /// ```
    /// use diptych::{FrameLayout, PixelFormat};
    ///
    /// assert_eq!(FrameLayout::new(PixelFormat::Nv12, [640, 480])?.bytes(), 460_800);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn bytes(&self) -> u64 {
        (0..self.format.planes()).map(|plane| self.end(plane)).max().unwrap_or(0)
    }

    /// Bytes of a memory that holds a plane: to the end of its last row.
    pub(in crate::session) fn end(&self, plane: usize) -> u64 {
        let own = self.planes.get(plane).copied().unwrap_or_default();
        own.offset.saturating_add(self.extent(plane))
    }

    /// Bytes from the beginning of a plane to the end of its last row.
    fn extent(&self, plane: usize) -> u64 {
        let ([samples, rows], sample) = self.format.extent(plane, self.size);
        let stride = self.planes.get(plane).map_or(0, |plane| plane.stride);
        u64::from(rows - 1) * u64::from(stride) + u64::from(samples) * u64::from(sample)
    }

    /// The layout for planes that each have memory of their own: each begins at 0 unless the caller placed it.
    pub(super) fn apart(self) -> Self {
        let first = |plane: FramePlane| FramePlane { offset: 0, ..plane };
        if self.placed { self } else { FrameLayout { planes: self.planes.map(first), ..self } }
    }

    /// With planes of these strides, one behind the other.
    fn following(mut self, strides: [u32; MAX_PLANES]) -> Result<Self> {
        let mut offset = 0;
        for (plane, (own, stride)) in self.planes.iter_mut().zip(strides).enumerate() {
            *own = FramePlane { offset, stride };
            let ([_, rows], _) = self.format.extent(plane, self.size);
            offset += u64::from(rows) * u64::from(stride);
        }
        FrameLayout { placed: false, ..self }.checked()
    }

    fn checked(self) -> Result<Self> {
        let what = || format!("{} frame of {} x {} pixels", self.format, self.size[0], self.size[1]);
        for (plane, own) in self.planes.iter().enumerate().take(self.format.planes()) {
            let row = row_bytes(self.format, plane, self.size);
            if own.stride < row {
                let found = format!("a stride of {} bytes in plane {plane}", own.stride);
                return Err(Error::input(what(), found, format!("at least the {row} of a row")));
            }
            // Kernels count bytes of a plane in 32 bits.
            if self.extent(plane) > u64::from(u32::MAX - 1024) || own.offset.checked_add(1 << 32).is_none() {
                let found = format!("{} bytes from byte {} in plane {plane}", self.extent(plane), own.offset);
                return Err(Error::input(what(), found, "less than 4 GiB"));
            }
        }
        Ok(self)
    }

    /// Checks that it has the framing's extents.
    pub(in crate::session) fn check_size(&self, name: &str, framing: &Framing) -> Result<()> {
        let ([width, height], [own_width, own_height]) = (framing.source(), self.size);
        if [width, height] != self.size {
            let found = format!("a frame of {own_width} x {own_height} pixels");
            let wanted = format!("the framing's {width} x {height}");
            return Err(Error::input(format!("frames of {name:?}"), found, wanted));
        }
        Ok(())
    }

    /// Checks that the memory of a plane holds it.
    pub(in crate::session) fn check_memory(&self, plane: usize, bytes: u64) -> Result<()> {
        let wanted = self.end(plane);
        if bytes < wanted {
            let [width, height] = self.size;
            let FramePlane { offset, stride } = self.plane(plane).unwrap_or_default();
            let wanted = format!(
                "at least {wanted}: plane {plane} begins at byte {offset} and has a row every {stride}"
            );
            let what = format!("{} frame of {width} x {height} pixels", self.format);
            return Err(Error::input(what, format!("{bytes} bytes"), wanted));
        }
        Ok(())
    }
}

/// Bytes of a row of a plane, of a frame whose extents were checked: at most 4 times 2^24.
fn row_bytes(format: PixelFormat, plane: usize, size: [u32; 2]) -> u32 {
    let ([samples, _], sample) = format.extent(plane, size);
    samples * sample
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_follow_each_other() {
        let nv12 = FrameLayout::new(PixelFormat::Nv12, [5, 3]).expect("a layout");
        assert_eq!(nv12.plane(0), Some(FramePlane::new(0, 5)));
        assert_eq!(nv12.plane(1), Some(FramePlane::new(15, 6)));
        assert_eq!((nv12.plane(2), nv12.bytes()), (None, 27));
        // The chroma's rows have a byte more than the luma's of an odd width.
        assert!(nv12.stride(5).is_err());
        let wide = nv12.stride(8).expect("a layout");
        assert_eq!((wide.plane(1), wide.bytes()), (Some(FramePlane::new(24, 8)), 24 + 8 + 6));
        let i420 = FrameLayout::new(PixelFormat::I420, [5, 3]).and_then(|layout| layout.stride(8));
        let i420 = i420.expect("a layout");
        assert_eq!(i420.plane(1), Some(FramePlane::new(24, 4)));
        assert_eq!(i420.plane(2), Some(FramePlane::new(32, 4)));
        assert_eq!(i420.apart().plane(2), Some(FramePlane::new(0, 4)));
        let yuyv = FrameLayout::new(PixelFormat::Yuyv, [5, 3]).expect("a layout");
        assert_eq!((yuyv.plane(0), yuyv.bytes()), (Some(FramePlane::new(0, 12)), 36));
    }

    #[test]
    fn what_does_not_fit_is_refused_with_its_numbers() {
        let told = |layout: Result<FrameLayout>| layout.expect_err("refused").to_string();
        let new = |format, size| FrameLayout::new(format, size);
        assert!(told(new(PixelFormat::Nv12, [0, 4])).contains("0 x 4"));
        assert!(told(new(PixelFormat::Rgba8, [1 << 24, 1 << 24])).contains("4 GiB"));
        let nv12 = new(PixelFormat::Nv12, [6, 4]).expect("a layout");
        let error = told(nv12.planes(&[FramePlane::new(0, 6)]));
        assert!(error.contains("1 planes") && error.contains('2'), "{error}");
        let error = told(nv12.planes(&[FramePlane::new(0, 6), FramePlane::new(24, 5)]));
        assert!(error.contains("stride of 5") && error.contains("plane 1"), "{error}");
        assert!(told(nv12.planes(&[FramePlane::new(u64::MAX, 6); 2])).contains("4 GiB"));
        let error = nv12.check_memory(1, 35).expect_err("refused").to_string();
        assert!(error.contains("35 bytes") && error.contains("36") && error.contains("6 x 4"), "{error}");
        assert!(nv12.check_memory(1, 36).is_ok());
    }
}
