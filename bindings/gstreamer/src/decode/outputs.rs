//! The outputs of a network by what they are.

use super::OutputFormat;
use crate::failure::Failure;
use crate::tensors::{Tensor, Tensors};
use std::borrow::Cow;

/// An output without its leading axis of 1, in floats.
#[derive(Debug, Clone)]
pub(super) struct Map<'t> {
    pub(super) name: &'t str,
    pub(super) extents: Vec<usize>,
    pub(super) values: Cow<'t, [f32]>,
}

impl<'t> Map<'t> {
    pub(super) fn of(tensor: &'t Tensor) -> Self {
        Map { name: &tensor.name, extents: extents(tensor), values: tensor.data.to_f32() }
    }

    /// An error that says what was wanted.
    pub(super) fn refused(&self, wanted: &str) -> Failure {
        Failure::model(format!("output {:?}: found {}, wanted {wanted}", self.name, text(&self.extents)))
    }

    /// A map of rows, columns and channels; of one whose channels lie in planes they are put last.
    pub(super) fn feature_map(mut self, is_planar: bool) -> Result<Feature<'t>, Failure> {
        let &[a, b, c] = self.extents.as_slice() else { return Err(self.refused("a map of three axes")) };
        let [h, w, c] = if is_planar { [b, c, a] } else { [a, b, c] };
        if self.values.len() != h * w * c || self.values.is_empty() {
            return Err(self.refused("a map that is not empty"));
        }
        if is_planar {
            let turned = (0..h * w).flat_map(|pixel| (0..c).map(move |channel| channel * h * w + pixel));
            self.values = turned.map(|place| self.values[place]).collect::<Vec<_>>().into();
        }
        Ok(Feature { h, w, c, values: self.values })
    }
}

/// A map of `h` rows of `w` places with `c` numbers.
#[derive(Debug, Clone)]
pub(super) struct Feature<'t> {
    pub(super) h: usize,
    pub(super) w: usize,
    pub(super) c: usize,
    pub(super) values: Cow<'t, [f32]>,
}

impl Feature<'_> {
    /// Channel `k` in row `y` and column `x`, which are within the map.
    pub(super) fn at(&self, y: usize, x: usize, k: usize) -> f32 {
        self.values[(y * self.w + x) * self.c + k]
    }
}

/// The extents without a leading 1.
pub(super) fn extents(tensor: &Tensor) -> Vec<usize> {
    let dims = tensor.data.dims();
    match dims.extents() {
        [1, rest @ ..] if !rest.is_empty() => rest.to_vec(),
        all => all.to_vec(),
    }
}

fn text(extents: &[usize]) -> String {
    let extents: Vec<_> = extents.iter().map(ToString::to_string).collect();
    extents.join("x")
}

/// The names and dimensions of a network's outputs.
pub(super) fn list(tensors: &[Tensor]) -> String {
    let rows = tensors.iter().map(|tensor| format!("{:?} {}", tensor.name, tensor.data.dims()));
    rows.collect::<Vec<_>>().join(", ")
}

/// What a network's outputs look like.
pub(super) fn recognise(tensors: &Tensors) -> Result<OutputFormat, Failure> {
    let all = tensors.all();
    let shapes: Vec<Vec<usize>> = all.iter().map(extents).collect();
    let shapes: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
    let channels = |shape: &[usize]| match *shape {
        [c, _, _] if tensors.is_planar() => c,
        [_, _, c] => c,
        _ => 0,
    };
    Ok(match *shapes.as_slice() {
        [[_, 4], [_], [_], [_]] => OutputFormat::Ssd,
        [[1, 17, 3] | [6, 56]] => OutputFormat::Movenet,
        [[56, boxes]] if *boxes > 56 => OutputFormat::YoloPose,
        [[rows, columns]] if *rows.max(columns) > 4 && *rows.min(columns) > 4 => OutputFormat::Yolo,
        [[_, _, _]] => OutputFormat::Segmentation,
        ref shapes if shapes.iter().filter(|shape| channels(shape) == 17).count() == 1 => {
            OutputFormat::Posenet
        }
        _ => {
            return Err(Failure::model(format!(
                "{}: found outputs {}, wanted those of a detector, a pose or a segmentation; format says which if they are",
                tensors.network(),
                list(all)
            )));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use diptych::{Dims, HostTensor};

    fn tensors(shapes: &[&[usize]], is_planar: bool) -> Tensors {
        let tensor = |shape: &&[usize]| {
            let dims = Dims::new(shape).expect("dimensions");
            let data = HostTensor::new(dims, vec![0.0; dims.elements()]).expect("a tensor");
            Tensor { name: "out".to_owned(), data, labels: Default::default() }
        };
        Tensors::new("infer", is_planar, shapes.iter().map(tensor).collect())
    }

    #[test]
    fn networks_are_recognised_by_their_outputs() {
        let cases: [(&[&[usize]], bool, OutputFormat); 9] = [
            (&[&[1, 10, 4], &[1, 10], &[1, 10], &[1]], false, OutputFormat::Ssd),
            (&[&[1, 84, 8400]], true, OutputFormat::Yolo),
            (&[&[1, 25200, 85]], true, OutputFormat::Yolo),
            (&[&[1, 56, 8400]], true, OutputFormat::YoloPose),
            (&[&[1, 1, 17, 3]], false, OutputFormat::Movenet),
            (&[&[1, 6, 56]], false, OutputFormat::Movenet),
            (&[&[1, 257, 257, 21]], false, OutputFormat::Segmentation),
            (&[&[1, 9, 9, 17], &[1, 9, 9, 34], &[1, 9, 9, 32], &[1, 9, 9, 32]], false, OutputFormat::Posenet),
            (&[&[1, 17, 9, 9], &[1, 34, 9, 9]], true, OutputFormat::Posenet),
        ];
        for (shapes, is_planar, wanted) in cases {
            assert_eq!(recognise(&tensors(shapes, is_planar)), Ok(wanted), "{shapes:?}");
        }
        let refused = recognise(&tensors(&[&[1, 1001]], false)).expect_err("a classifier").text;
        assert!(refused.starts_with("infer: found outputs \"out\" 1x1001, wanted "), "{refused}");
    }

    #[test]
    fn channels_in_planes_are_put_last() {
        let dims = Dims::new(&[1, 2, 1, 3]).expect("dimensions");
        let data = HostTensor::new(dims, vec![0.0, 1.0, 2.0, 10.0, 11.0, 12.0]).expect("a tensor");
        let tensor = Tensor { name: "map".to_owned(), data, labels: Default::default() };
        let map = Map::of(&tensor).feature_map(true).expect("three axes");
        assert_eq!((map.h, map.w, map.c), (1, 3, 2));
        assert_eq!(*map.values, [0.0, 10.0, 1.0, 11.0, 2.0, 12.0]);
        assert_eq!(map.at(0, 2, 1), 12.0);
    }
}
