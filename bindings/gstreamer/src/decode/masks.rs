//! A class for each pixel of a map.

use super::found::Mask;
use super::outputs::Map;
use crate::failure::Failure;
use crate::tensors::Tensor;

/// The largest of several channels, the channel being the class; of one channel, whether it is above the threshold: class 1. Where
/// one channel has numbers below 0 or above 1 they are taken for logits. A map of integers has the classes themselves.
pub(super) fn mask(tensor: &Tensor, is_planar: bool, threshold: f32) -> Result<Mask, Failure> {
    let map = Map::of(tensor);
    if let Some(classes) = tensor.data.to_i64() {
        let (height, width) = match *map.extents.as_slice() {
            [h, w] | [1, h, w] | [h, w, 1] => (h, w),
            _ => return Err(map.refused("a map of classes, 1xHxW")),
        };
        let classes = classes.iter().map(|&class| u8::try_from(class));
        let classes = classes.collect::<Result<Vec<u8>, _>>();
        let classes = classes.map_err(|_| map.refused("classes from 0 to 255"))?;
        return Ok(Mask { width, height, classes });
    }
    if let [_, _] = *map.extents.as_slice() {
        let mut map = map;
        map.extents.push(1);
        return one_channel(map, false, threshold);
    }
    let channels = if is_planar { map.extents.first() } else { map.extents.last() };
    match channels.copied() {
        Some(1) => one_channel(map, is_planar, threshold),
        Some(2..=256) => {
            let map = map.feature_map(is_planar)?;
            let largest =
                |scores: &[f32]| {
                    let scores = scores.iter().enumerate();
                    let best = scores.fold((0, f32::NEG_INFINITY), |best, (class, &score)| {
                        if score > best.1 { (class, score) } else { best }
                    });
                    best.0 as u8
                };
            let classes = map.values.chunks_exact(map.c).map(largest).collect();
            Ok(Mask { width: map.w, height: map.h, classes })
        }
        _ => Err(map.refused("1xHxW, or 1xHxWxC (1xCxHxW) with at most 256 classes C")),
    }
}

fn one_channel(map: Map<'_>, is_planar: bool, threshold: f32) -> Result<Mask, Failure> {
    let map = map.feature_map(is_planar)?;
    let are_logits = map.values.iter().any(|&value| !(0.0..=1.0).contains(&value));
    let least = if are_logits { (threshold / (1.0 - threshold)).ln() } else { threshold };
    let classes = map.values.iter().map(|&value| u8::from(value > least)).collect();
    Ok(Mask { width: map.w, height: map.h, classes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use diptych::{Dims, HostTensor, TensorElement};

    fn tensor<T: TensorElement>(shape: &[usize], data: Vec<T>) -> Tensor {
        let dims = Dims::new(shape).expect("dimensions");
        let data = HostTensor::of(dims, data).expect("a tensor");
        Tensor { name: "map".to_owned(), data, labels: Default::default() }
    }

    #[test]
    fn the_largest_channel_is_the_class() {
        let values = vec![0.0, 2.0, 1.0, 5.0, -1.0, 4.0, 0.0, 0.0, 0.5, 1.0, 1.0, 0.0];
        let found = mask(&tensor(&[1, 2, 2, 3], values), false, 0.5).expect("a mask");
        assert_eq!(found, Mask { width: 2, height: 2, classes: vec![1, 0, 2, 0] });
        let planes = vec![0.0, 3.0, 1.0, 2.0];
        assert_eq!(mask(&tensor(&[1, 2, 1, 2], planes), true, 0.5).expect("a mask").classes, [1, 0]);
    }

    #[test]
    fn one_channel_is_held_against_the_threshold() {
        let of = |values: Vec<f32>, threshold| {
            mask(&tensor(&[1, 1, 3, 1], values), false, threshold).expect("a mask").classes
        };
        assert_eq!(of(vec![0.2, 0.5, 0.9], 0.5), [0, 0, 1]);
        // Logits: a probability of 0.73 is one of 1.
        assert_eq!(of(vec![-3.0, 0.9, 1.1], 0.731), [0, 0, 1]);
    }

    #[test]
    fn integers_are_classes() {
        let found = mask(&tensor(&[1, 2, 1], vec![7i64, 0]), false, 0.5).expect("a mask");
        assert_eq!(found, Mask { width: 1, height: 2, classes: vec![7, 0] });
        let refused = mask(&tensor(&[1, 2, 1], vec![7i64, 256]), false, 0.5).expect_err("too many").text;
        assert_eq!(refused, "output \"map\": found 2x1, wanted classes from 0 to 255");
        assert!(mask(&tensor(&[1, 1001], vec![0.0f32; 1001]), false, 0.5).is_err());
    }
}
