//! Pictures of the crate `image` as tensors, and tensors as pictures.

use crate::alloc;
use crate::dims::Dims;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::host::HostTensor;
use image::RgbImage;

/// Copies a picture: a tensor of bytes with the extents `1 h w 3`. An input of floats takes it as numbers from 0 to 255.
///
/// ```
/// use diptych::{DType, HostTensor};
/// use image::{Rgb, RgbImage};
///
/// let picture = RgbImage::from_pixel(4, 2, Rgb([255, 128, 0]));
/// let tensor = HostTensor::try_from(&picture)?;
/// assert_eq!((tensor.dims().extents(), tensor.dtype()), (&[1, 2, 4, 3][..], DType::U8));
/// # Ok::<(), diptych::Error>(())
/// ```
///
/// # Errors
/// If the picture has no pixels or more than a tensor can have, or there is no memory for a copy.
impl TryFrom<&RgbImage> for HostTensor {
    type Error = Error;

    fn try_from(picture: &RgbImage) -> Result<Self> {
        let dims = Dims::new(&[1, picture.height() as usize, picture.width() as usize, 3])?;
        if dims.elements() == 0 {
            return Err(Error::shape("picture", dims.to_string(), "at least one pixel"));
        }
        alloc::expect::<u8>(dims.elements(), "a picture")?;
        // What lies behind the last pixel is no part of the picture.
        let bytes = picture.as_raw().get(..dims.elements());
        let bytes = bytes.ok_or_else(|| Error::Internal("a picture lacks pixels".to_owned()))?;
        HostTensor::of(dims, bytes)
    }
}

/// Copies a tensor of bytes with the extents `1 h w 3`. Floats have no range that is known here: a program rounds them to bytes
/// itself.
///
/// ```
/// use diptych::{Dims, HostTensor};
/// use image::{Rgb, RgbImage};
///
/// let tensor = HostTensor::of(Dims::new(&[1, 1, 2, 3])?, vec![255_u8, 128, 0, 1, 2, 3])?;
/// let picture = RgbImage::try_from(&tensor)?;
/// assert_eq!((picture.dimensions(), picture.get_pixel(1, 0)), ((2, 1), &Rgb([1, 2, 3])));
/// # Ok::<(), diptych::Error>(())
/// ```
///
/// # Errors
/// If the tensor has other extents or no elements, its elements are not of [`DType::U8`], or there is no memory for a copy.
impl TryFrom<&HostTensor> for RgbImage {
    type Error = Error;

    fn try_from(tensor: &HostTensor) -> Result<Self> {
        let dims = tensor.dims();
        let refused = || {
            let found = format!("{} of shape {dims}", tensor.dtype());
            Error::shape("picture", found, format!("{} of shape 1 h w 3 with at least one pixel", DType::U8))
        };
        let &[1, h, w, 3] = dims.extents() else { return Err(refused()) };
        if h == 0 || w == 0 {
            return Err(refused());
        }
        let bytes = tensor.elements_in_nhwc::<u8>().map_err(|_| refused())?;
        let (Ok(width), Ok(height)) = (u32::try_from(w), u32::try_from(h)) else { return Err(refused()) };
        RgbImage::from_raw(width, height, bytes).ok_or_else(refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::Rgb;

    #[test]
    fn a_picture_comes_back() {
        let of = |x: u32, y: u32| Rgb([x as u8, 10 * y as u8, 255 - x as u8]);
        let picture = RgbImage::from_fn(5, 3, of);
        let tensor = HostTensor::try_from(&picture).expect("a tensor");
        assert_eq!(tensor.dims().extents(), [1, 3, 5, 3]);
        // Row 2, column 4.
        assert_eq!(tensor.elements::<u8>().expect("bytes")[3 * 14..], [4, 20, 251]);
        assert_eq!(RgbImage::try_from(&tensor).expect("a picture"), picture);
    }

    #[test]
    fn bytes_behind_a_picture_are_left_out() {
        let picture = RgbImage::from_raw(1, 1, vec![1, 2, 3, 4, 5]).expect("more than enough");
        let tensor = HostTensor::try_from(&picture).expect("a tensor");
        assert_eq!(tensor.elements::<u8>(), Some(&[1, 2, 3][..]));
    }

    #[test]
    fn other_extents_and_types_are_refused() {
        for extents in [&[2, 2, 3][..], &[1, 2, 2, 4], &[2, 2, 2, 3], &[3]] {
            let dims = Dims::new(extents).expect("small");
            let tensor = HostTensor::of(dims, vec![0_u8; dims.elements()]).expect("zeros");
            let error = RgbImage::try_from(&tensor).expect_err("no picture").to_string();
            assert_eq!(
                error,
                format!(
                    "picture: found u8 of shape {dims}, wanted u8 of shape 1 h w 3 with at least one pixel"
                )
            );
        }
        let floats = HostTensor::new(Dims::new(&[1, 1, 1, 3]).expect("small"), vec![0.5; 3]).expect("three");
        let error = RgbImage::try_from(&floats).expect_err("floats").to_string();
        assert!(error.contains("f32 of shape 1x1x1x3"), "{error}");
        let error = HostTensor::try_from(&RgbImage::new(0, 4)).expect_err("no pixels").to_string();
        assert_eq!(error, "picture: found 1x4x0x3, wanted at least one pixel");
        let empty =
            HostTensor::of(Dims::new(&[1, 4, 0, 3]).expect("small"), Vec::<u8>::new()).expect("no elements");
        let error = RgbImage::try_from(&empty).expect_err("no pixels").to_string();
        assert_eq!(
            error,
            "picture: found u8 of shape 1x4x0x3, wanted u8 of shape 1 h w 3 with at least one pixel"
        );
    }
}
