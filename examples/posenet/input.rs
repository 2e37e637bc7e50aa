//! A picture as the network's input, and positions of the input in the picture.

use crate::picture::Picture;
use anyhow::{Context as _, Result};
use fast_image_resize::{FilterType, ResizeAlg, ResizeOptions, Resizer};
use image::RgbImage;

impl Picture {
    /// The network's input of `height` x `width`, NHWC: the whole picture stretched to the size,
    /// values `(v - 127.5) / 127.5`.
    ///
    /// The resize is bilinear with the triangle widened to the scale when shrinking (antialiased),
    /// on half-pixel centres, rounded to bytes. A bilinear resize without the widening skips
    /// most pixels of a large photograph.
    pub fn input(&self, [height, width]: [usize; 2]) -> Result<Vec<f32>> {
        let mut resized = RgbImage::new(u32::try_from(width)?, u32::try_from(height)?);
        let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(FilterType::Bilinear));
        Resizer::new().resize(&self.pixels, &mut resized, &options).context("resizing the picture")?;
        Ok(resized.as_raw().iter().map(|&value| (f32::from(value) - 127.5) / 127.5).collect())
    }
}

/// Where a position of the network's input (height, width) lies in a picture of `size` (width, height).
/// Positions count from pixel centres, so the edges of both pictures meet at -0.5.
pub fn position(size: (u32, u32), [height, width]: [usize; 2], (x, y): (f32, f32)) -> (f32, f32) {
    let scale = |v: f32, from: usize, to: u32| (v + 0.5) * to as f32 / from as f32 - 0.5;
    (scale(x, width, size.0), scale(y, height, size.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::Rgb;

    #[test]
    fn values_and_order_of_the_input() {
        let pixels = RgbImage::from_fn(4, 2, |x, y| Rgb([(10 * x) as u8, (10 * y) as u8, 255]));
        let input = Picture { pixels }.input([2, 4]).expect("same size");
        assert_eq!(input.len(), 2 * 4 * 3);
        let at = |y: usize, x: usize| &input[(y * 4 + x) * 3..][..3];
        assert_eq!(at(0, 0), &[-1.0, -1.0, 1.0]);
        assert_eq!(at(1, 3), &[(30.0 - 127.5) / 127.5, (10.0 - 127.5) / 127.5, 1.0]);
    }

    #[test]
    fn positions_scale_about_the_edges() {
        assert_eq!(position((514, 1028), [257, 257], (-0.5, -0.5)), (-0.5, -0.5));
        assert_eq!(position((514, 1028), [257, 257], (256.5, 256.5)), (513.5, 1027.5));
        assert_eq!(position((514, 1028), [257, 257], (0.0, 0.0)), (0.5, 1.5));
    }
}
