//! A picture of a file, turned upright, as a network's input.

use crate::error::{Error, Result};
use fast_image_resize::{FilterType, ResizeAlg, ResizeOptions, Resizer};
use image::{DynamicImage, ImageDecoder, ImageReader, RgbImage};
use std::io::{BufRead, BufReader, Seek};
use std::path::Path;

/// The largest picture that is unpacked, in bytes: a small file may claim any size.
pub const LARGEST: u64 = 1 << 30;

/// A picture, upright.
#[derive(Debug, Clone)]
pub struct Picture {
    /// Rows of red, green and blue.
    pub pixels: RgbImage,
}

impl Picture {
    /// Reads a picture; the format is recognised by the content, not from the name.
    ///
    /// # Errors
    /// If the file cannot be read, or is no picture; with its name.
    pub fn open(path: &Path) -> Result<Self> {
        let name = path.display();
        let file = std::fs::File::open(path)
            .map_err(|error| Error::caused(format!("cannot read the picture {name}"), error))?;
        Picture::read(&name.to_string(), BufReader::new(file))
    }

    /// Reads a picture that is called `name` in errors.
    ///
    /// # Errors
    /// If it is no picture of a known format, or larger than [`LARGEST`].
    pub fn read(name: &str, source: impl BufRead + Seek) -> Result<Self> {
        let unreadable = |error| Error::caused(format!("{name} is not a readable picture"), error);
        let reader = ImageReader::new(source)
            .with_guessed_format()
            .map_err(|error| Error::caused(format!("cannot read the picture {name}"), error))?;
        if reader.format().is_none() {
            let known = "jpg, png, bmp, gif";
            return Err(Error::new(format!("{name} is not a picture of a format known here ({known})")));
        }
        let mut decoder = reader.into_decoder().map_err(unreadable)?;
        let orientation = decoder
            .orientation()
            .map_err(|error| Error::caused(format!("the orientation of {name}"), error))?;
        let bytes = decoder.total_bytes();
        if bytes > LARGEST {
            let text = format!("{name} is {bytes} bytes when unpacked, wanted at most {LARGEST}");
            return Err(Error::new(text));
        }
        let mut picture = DynamicImage::from_decoder(decoder).map_err(unreadable)?;
        picture.apply_orientation(orientation);
        Ok(Picture { pixels: picture.into_rgb8() })
    }

    /// The network's input of `height` x `width`, NHWC: the whole picture stretched to the size, values
    /// `(v - 127.5) / 127.5`.
    ///
    /// The resize is bilinear with the triangle widened to the scale when shrinking (antialiased), on half-pixel centres, rounded
    /// to bytes. A bilinear resize without the widening skips most pixels of a large photograph.
    ///
    /// # Errors
    /// If an extent is too large or zero.
    pub fn input(&self, [height, width]: [usize; 2]) -> Result<Vec<f32>> {
        let extent = |extent: usize| {
            u32::try_from(extent)
                .map_err(|error| Error::caused(format!("an input of {extent} pixels"), error))
        };
        let mut resized = RgbImage::new(extent(width)?, extent(height)?);
        let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(FilterType::Bilinear));
        Resizer::new()
            .resize(&self.pixels, &mut resized, &options)
            .map_err(|error| Error::caused("resizing the picture", error))?;
        Ok(resized.as_raw().iter().map(|&value| (f32::from(value) - 127.5) / 127.5).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::ImageEncoder;
    use image::codecs::jpeg::JpegEncoder;
    use image::{ExtendedColorType, Rgb};

    /// A file that is gone when the test ends.
    struct Scratch(std::path::PathBuf);

    impl Scratch {
        fn new(name: &str, bytes: &[u8]) -> Self {
            let path = std::env::temp_dir().join(format!("picture-{}-{name}", std::process::id()));
            std::fs::write(&path, bytes).expect("a file in the temporary directory");
            Scratch(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = Picture::open(Path::new("no/such/picture.jpg")).expect_err("no file");
        assert!(error.to_string().contains("no/such/picture.jpg"), "{error}");
        assert!(std::error::Error::source(&error).is_some());
    }

    #[test]
    fn what_is_not_a_picture_is_refused() {
        let text = Scratch::new("text.jpg", b"not a picture at all, whatever its name says");
        let error = Picture::open(&text.0).expect_err("text");
        let error = error.to_string();
        assert!(error.contains("text.jpg") && error.contains("picture"), "{error}");
        let cut = Scratch::new("cut.png", b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR");
        assert!(Picture::open(&cut.0).expect_err("cut off").to_string().contains("cut.png"));
    }

    #[test]
    fn exif_orientation_turns_the_picture() {
        // Red on the left, blue on the right; orientation 6 says: turn clockwise to see it upright.
        let stored =
            RgbImage::from_fn(32, 16, |x, _| if x < 16 { Rgb([255, 0, 0]) } else { Rgb([0, 0, 255]) });
        let exif = [
            b"II*\0\x08\0\0\0".as_slice(),         // little-endian, first directory at 8
            b"\x01\0",                             // one entry
            b"\x12\x01\x03\0\x01\0\0\0\x06\0\0\0", // tag 0x112, one short: 6
            b"\0\0\0\0",                           // no further directory
        ];
        let mut bytes = Vec::new();
        let mut encoder = JpegEncoder::new_with_quality(&mut bytes, 95);
        encoder.set_exif_metadata(exif.concat()).expect("a JPEG holds EXIF");
        encoder.write_image(stored.as_raw(), 32, 16, ExtendedColorType::Rgb8).expect("a JPEG");
        let file = Scratch::new("turned.jpg", &bytes);
        let upright = Picture::open(&file.0).expect("a picture").pixels;
        assert_eq!(upright.dimensions(), (16, 32));
        let (top, bottom) = (upright.get_pixel(8, 4), upright.get_pixel(8, 28));
        assert!(top[0] > 200 && top[2] < 60, "red above: {top:?}");
        assert!(bottom[2] > 200 && bottom[0] < 60, "blue below: {bottom:?}");
    }

    #[test]
    fn values_and_order_of_the_input() {
        let pixels = RgbImage::from_fn(4, 2, |x, y| Rgb([(10 * x) as u8, (10 * y) as u8, 255]));
        let input = Picture { pixels }.input([2, 4]).expect("same size");
        assert_eq!(input.len(), 2 * 4 * 3);
        let at = |y: usize, x: usize| &input[(y * 4 + x) * 3..][..3];
        assert_eq!(at(0, 0), &[-1.0, -1.0, 1.0]);
        assert_eq!(at(1, 3), &[(30.0 - 127.5) / 127.5, (10.0 - 127.5) / 127.5, 1.0]);
    }
}
