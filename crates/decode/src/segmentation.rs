//! Segmentation: a class for each pixel of a map.

use crate::error::Result;
use crate::output::{FeatureMap, Output};

/// A class for each pixel of the network's map, row by row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mask {
    /// Pixels of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// The class of each pixel.
    pub classes: Vec<u8>,
}

/// The class of each pixel.
///
/// | output | the class of a pixel is |
/// |---|---|
/// | integers 1xHxW | its number |
/// | 1xHxWxC | the channel with the highest score |
/// | 1xHxWx1, 1xHxW | 1 if its probability is above the threshold, else 0 |
///
/// An output that is `planar` has its channels before height and width. Where a single channel has numbers below 0 or above 1 they
/// are logits.
///
/// # Errors
/// If the output has other extents, or classes beyond 255; with what was found.
pub fn decode(output: &Output<'_>, planar: bool, threshold: f32) -> Result<Mask> {
    let extents = output.of_one();
    if let Some(integers) = &output.integers {
        let (height, width) = match *extents {
            [h, w] | [1, h, w] | [h, w, 1] => (h, w),
            _ => return Err(output.refused("a map of classes, 1xHxW")),
        };
        if height.checked_mul(width) != Some(integers.len()) {
            return Err(output.refused(&format!("extents of its {} classes", integers.len())));
        }
        let classes: Result<Vec<u8>, _> = integers.iter().map(|&class| u8::try_from(class)).collect();
        let classes = classes.map_err(|_| output.refused("classes from 0 to 255"))?;
        return Ok(Mask { width, height, classes });
    }
    if let [h, w] = *extents {
        let map = FeatureMap::new(output.name, [1, h, w, 1], output.values.as_ref())?;
        return Ok(above(&map, threshold));
    }
    let map = || output.clone().feature_map(planar);
    let channels = if planar { extents.first() } else { extents.last() };
    match channels {
        Some(1) => Ok(above(&map()?, threshold)),
        Some(2..=256) => {
            let map = map()?;
            let largest =
                |scores: &[f32]| {
                    let scores = scores.iter().enumerate();
                    let best = scores.fold((0, f32::NEG_INFINITY), |best, (class, &score)| {
                        if score > best.1 { (class, score) } else { best }
                    });
                    best.0 as u8
                };
            let classes = map.values().chunks_exact(map.channels()).map(largest).collect();
            Ok(Mask { width: map.width(), height: map.height(), classes })
        }
        _ => Err(output.refused("1xHxW, or 1xHxWxC (1xCxHxW) with at most 256 classes C")),
    }
}

/// Class 1 where a map of one channel is above the threshold.
fn above(map: &FeatureMap<'_>, threshold: f32) -> Mask {
    let are_logits = map.values().iter().any(|&value| !(0.0..=1.0).contains(&value));
    let least = if are_logits { (threshold / (1.0 - threshold)).ln() } else { threshold };
    let classes = map.values().iter().map(|&value| u8::from(value > least)).collect();
    Mask { width: map.width(), height: map.height(), classes }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(extents: &[usize], values: Vec<f32>) -> Output<'static> {
        Output::new("map", extents, values)
    }

    fn integers(extents: &[usize], values: Vec<i64>) -> Output<'static> {
        Output { integers: Some(values.into()), ..floats(extents, Vec::new()) }
    }

    #[test]
    fn the_largest_channel_is_the_class() {
        let values = vec![0.0, 2.0, 1.0, 5.0, -1.0, 4.0, 0.0, 0.0, 0.5, 1.0, 1.0, 0.0];
        let found = decode(&floats(&[1, 2, 2, 3], values), false, 0.5).expect("a mask");
        assert_eq!(found, Mask { width: 2, height: 2, classes: vec![1, 0, 2, 0] });
        let planes = vec![0.0, 3.0, 1.0, 2.0];
        assert_eq!(decode(&floats(&[1, 2, 1, 2], planes), true, 0.5).expect("a mask").classes, [1, 0]);
    }

    #[test]
    fn one_channel_is_compared_with_the_threshold() {
        let of = |values: Vec<f32>, threshold| {
            decode(&floats(&[1, 1, 3, 1], values), false, threshold).expect("a mask").classes
        };
        assert_eq!(of(vec![0.2, 0.5, 0.9], 0.5), [0, 0, 1]);
        // Logits: a probability of 0.73 is one of 1.
        assert_eq!(of(vec![-3.0, 0.9, 1.1], 0.731), [0, 0, 1]);
        let found = decode(&floats(&[1, 2, 3], vec![0.0, 0.0, 1.0, 1.0, 0.0, 0.0]), false, 0.5);
        assert_eq!(found.expect("a mask"), Mask { width: 3, height: 2, classes: vec![0, 0, 1, 1, 0, 0] });
    }

    #[test]
    fn integers_are_classes() {
        let found = decode(&integers(&[1, 2, 1], vec![7, 0]), false, 0.5).expect("a mask");
        assert_eq!(found, Mask { width: 1, height: 2, classes: vec![7, 0] });
        let refused = decode(&integers(&[1, 2, 1], vec![7, 256]), false, 0.5).expect_err("too many");
        assert_eq!(refused.to_string(), "output \"map\": found 1x2x1, wanted classes from 0 to 255");
        assert!(decode(&floats(&[1, 1001], vec![0.0; 1001]), false, 0.5).is_err());
    }
}
