//! A picture from a file, turned upright.

use anyhow::{Context as _, Result, bail, ensure};
use image::{DynamicImage, ImageDecoder, ImageReader, RgbImage};
use std::io::{BufRead, BufReader, Seek};
use std::path::Path;

/// The largest picture that is unpacked, in bytes: a small file may claim any size.
pub const LARGEST: u64 = 1 << 30;

/// A picture, upright.
#[derive(Debug, Clone)]
pub struct Picture {
    pub pixels: RgbImage,
}

impl Picture {
    /// Reads a picture; the format is recognised by the content, not from the name.
    pub fn open(path: &Path) -> Result<Self> {
        let name = path.display();
        let file = std::fs::File::open(path).with_context(|| format!("cannot read the picture {name}"))?;
        Picture::read(&name.to_string(), BufReader::new(file))
    }

    /// Reads a picture that is called `name` in errors.
    pub fn read(name: &str, source: impl BufRead + Seek) -> Result<Self> {
        let reader = ImageReader::new(source)
            .with_guessed_format()
            .with_context(|| format!("cannot read the picture {name}"))?;
        if reader.format().is_none() {
            bail!("{name} is not a picture of a format known here (jpg, png, bmp, gif)");
        }
        let mut decoder =
            reader.into_decoder().with_context(|| format!("{name} is not a readable picture"))?;
        let orientation = decoder.orientation().with_context(|| format!("the orientation of {name}"))?;
        let bytes = decoder.total_bytes();
        ensure!(bytes <= LARGEST, "{name} is {bytes} bytes when unpacked, wanted at most {LARGEST}");
        let mut picture = DynamicImage::from_decoder(decoder)
            .with_context(|| format!("{name} is not a readable picture"))?;
        picture.apply_orientation(orientation);
        Ok(Picture { pixels: picture.into_rgb8() })
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
        assert!(format!("{error:#}").contains("no/such/picture.jpg"), "{error:#}");
    }

    #[test]
    fn what_is_not_a_picture_is_refused() {
        let text = Scratch::new("text.jpg", b"not a picture at all, whatever its name says");
        let error = Picture::open(&text.0).expect_err("text");
        let error = format!("{error:#}");
        assert!(error.contains("text.jpg") && error.contains("picture"), "{error}");
        let cut = Scratch::new("cut.png", b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR");
        assert!(format!("{:#}", Picture::open(&cut.0).expect_err("cut off")).contains("cut.png"));
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
}
