//! PoseNet's outputs: which output is which, and the geometry they share.
//!
//! | head | shape | holds |
//! |---|---|---|
//! | heatmap | 1 h w 17 | logit that the part lies near the cell |
//! | offset | 1 h w 34 | from the cell to the part, in input pixels: 17 y, then 17 x |
//! | displacement_fwd, displacement_bwd | 1 h w 32 | from a part to its child (parent), in input pixels: 16 y, then 16 x |

use crate::error::{Error, Result};
use crate::output::{FeatureMap, Port, list, nhwc, product};
use crate::sigmoid;
use crate::skeleton::{PARTS, TREE};

/// The strides a PoseNet is published with, and two more that the arithmetic allows.
const STRIDES: [usize; 4] = [4, 8, 16, 32];

/// Channels of a map of vectors of one kind: of displacements one for each edge of the tree.
const DISPLACEMENTS: usize = 2 * TREE.len();

/// Which of a model's outputs is which head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Roles {
    /// The index of the heatmap.
    pub heatmap: usize,
    /// The index of the offsets.
    pub offset: usize,
    /// The indices of forward and backward displacements, where the model has both.
    pub displacements: Option<[usize; 2]>,
}

impl Roles {
    /// Distinguishes the heads by their names, or, where the names say nothing, by their channels (and forward before backward,
    /// the order of the published exports). Outputs that are `planar` have their channels before height and width.
    ///
    /// # Errors
    /// If these are no PoseNet's outputs; with what they are.
    pub fn find(outputs: &[Port], planar: bool) -> Result<Self> {
        let shapes: Vec<_> = outputs.iter().map(|output| nhwc(&output.extents, planar)).collect();
        let named = |part: &str| {
            outputs
                .iter()
                .position(|output| output.name.to_ascii_lowercase().replace('-', "_").contains(part))
        };
        let of_channels = |channels: usize| {
            let has = |shape: &Option<[usize; 4]>| shape.is_some_and(|[.., c]| c == channels);
            let mut found = shapes.iter().enumerate().filter(|(_, shape)| has(shape)).map(|(index, _)| index);
            (found.next(), found.next(), found.next())
        };
        let single = |channels: usize| match of_channels(channels) {
            (Some(index), None, _) => Some(index),
            _ => None,
        };
        let pair = |channels: usize| match of_channels(channels) {
            (Some(first), Some(second), None) => Some([first, second]),
            _ => None,
        };
        let heatmap = named("heatmap").or_else(|| single(PARTS));
        let offset = named("offset").or_else(|| single(2 * PARTS));
        let displacements = match (named("displacement_fwd"), named("displacement_bwd")) {
            (Some(forward), Some(backward)) => Some([forward, backward]),
            _ => pair(DISPLACEMENTS),
        };
        let grid = heatmap.and_then(|index| shapes[index]).map(|[_, h, w, _]| [h, w]);
        let (Some(heatmap), Some(offset), Some([h, w])) = (heatmap, offset, grid) else {
            let found = list(outputs.iter().map(|output| (output.name.as_str(), output.extents.as_slice())));
            let wanted = "outputs heatmap 1xHxWx17 and offset 1xHxWx34";
            return Err(Error::new(format!("not a PoseNet: wanted {wanted}, found {found}")));
        };
        let heads = [(heatmap, "heatmap", PARTS), (offset, "offset", 2 * PARTS)];
        let pair = displacements.into_iter().flatten().map(|index| (index, "displacement", DISPLACEMENTS));
        for (index, head, channels) in heads.into_iter().chain(pair) {
            let Port { name, extents } = &outputs[index];
            if shapes[index] != Some([1, h, w, channels]) {
                let wanted = if planar { [1, channels, h, w] } else { [1, h, w, channels] };
                let (found, wanted) = (product(extents), product(&wanted));
                let text =
                    format!("not a PoseNet: output {name:?} is {found}, wanted {wanted} for the {head}");
                return Err(Error::new(text));
            }
        }
        Ok(Roles { heatmap, offset, displacements })
    }
}

/// The heads of one run.
#[derive(Debug, Clone)]
pub struct Heads<'a> {
    heatmap: FeatureMap<'a>,
    offset: FeatureMap<'a>,
    /// Forward and backward.
    displacements: Option<[FeatureMap<'a>; 2]>,
    /// Input pixels between neighbouring cells.
    stride: f32,
}

impl<'a> Heads<'a> {
    /// The heads of a network that took `input` (height, width). Displacements are forward and backward.
    ///
    /// # Errors
    /// If the maps have other channels or different extents, or the input's size fits none of PoseNet's strides.
    pub fn new(
        input: [usize; 2],
        heatmap: FeatureMap<'a>,
        offset: FeatureMap<'a>,
        displacements: Option<[FeatureMap<'a>; 2]>,
    ) -> Result<Self> {
        let [h, w] = [heatmap.height(), heatmap.width()];
        let stride = output_stride(input, [h, w])? as f32;
        let heads = [(&heatmap, "heatmap", PARTS), (&offset, "offset", 2 * PARTS)];
        let pair = displacements.iter().flatten().map(|map| (map, "displacement", DISPLACEMENTS));
        for (map, head, channels) in heads.into_iter().chain(pair) {
            let found = [map.height(), map.width(), map.channels()];
            if found != [h, w, channels] {
                let (found, wanted) = (product(&found), product(&[h, w, channels]));
                return Err(Error::new(format!("not a PoseNet: the {head} is {found}, wanted {wanted}")));
            }
        }
        Ok(Heads { heatmap, offset, displacements, stride })
    }

    /// The heads, if all their values are finite.
    ///
    /// # Errors
    /// If a value is infinite or not a number; with the head and the value.
    pub fn finite(self) -> Result<Self> {
        let displacements = match self.displacements {
            Some([forward, backward]) => {
                Some([forward.finite("displacement_fwd")?, backward.finite("displacement_bwd")?])
            }
            None => None,
        };
        let (heatmap, offset) = (self.heatmap.finite("heatmap")?, self.offset.finite("offset")?);
        Ok(Heads { heatmap, offset, displacements, ..self })
    }

    /// The heads with values of their own.
    pub fn into_owned(self) -> Heads<'static> {
        Heads {
            heatmap: self.heatmap.into_owned(),
            offset: self.offset.into_owned(),
            displacements: self.displacements.map(|pair| pair.map(FeatureMap::into_owned)),
            stride: self.stride,
        }
    }

    /// The logits of the parts.
    pub fn heatmap(&self) -> &FeatureMap<'a> {
        &self.heatmap
    }

    /// Whether several people can be decoded.
    pub fn has_displacements(&self) -> bool {
        self.displacements.is_some()
    }

    /// Forward and backward displacements.
    pub(super) fn displacements(&self) -> Option<&[FeatureMap<'a>; 2]> {
        self.displacements.as_ref()
    }

    /// The position, in input pixels, that a cell's offset gives for a part.
    pub fn position(&self, y: usize, x: usize, part: usize) -> (f32, f32) {
        let (dx, dy) = self.offset.vector(y, x, part);
        (x as f32 * self.stride + dx, y as f32 * self.stride + dy)
    }

    /// The cell (row, column) nearest to a position in input pixels.
    pub fn cell(&self, (x, y): (f32, f32)) -> (usize, usize) {
        // A float cast saturates, so positions left of or above the picture, and NaN, give 0.
        let nearest = |v: f32, count: usize| ((v / self.stride).round() as usize).min(count - 1);
        (nearest(y, self.heatmap.height()), nearest(x, self.heatmap.width()))
    }

    /// How sure the network is, in 0..1, that the part lies near the cell.
    pub fn score(&self, y: usize, x: usize, part: usize) -> f32 {
        sigmoid(self.heatmap.at(y, x, part))
    }
}

/// The stride by which SAME convolutions make `grid` of `input`: `grid = ceil(input / stride)`.
/// For the published sizes (a multiple of the stride, plus 1) it is `(input - 1) / (grid - 1)`.
///
/// # Errors
/// If it is none that PoseNets have; with both sizes.
pub fn output_stride(input: [usize; 2], grid: [usize; 2]) -> Result<usize> {
    let gives = |stride: usize| input.map(|extent| extent.div_ceil(stride)) == grid;
    STRIDES.into_iter().find(|&stride| gives(stride)).ok_or_else(|| {
        let [input, grid] = [input, grid].map(|size| product(&size));
        let text = format!("an input of {input} gives heatmaps of {grid}, which is no stride of {STRIDES:?}");
        Error::new(format!("not a PoseNet: {text}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outputs(rows: &[(&str, usize)]) -> Vec<Port> {
        let port = |&(name, channels): &(&str, usize)| Port {
            name: name.to_owned(),
            extents: vec![1, 9, 9, channels],
        };
        rows.iter().map(port).collect()
    }

    #[test]
    fn heads_are_found_by_name_in_any_order() {
        let found = Roles::find(
            &outputs(&[
                ("MobilenetV1/displacement_bwd_2/BiasAdd", 32),
                ("MobilenetV1/displacement_fwd_2/BiasAdd", 32),
                ("MobilenetV1/heatmap_2/BiasAdd", 17),
                ("MobilenetV1/offset_2/BiasAdd", 34),
            ]),
            false,
        );
        let wanted = Roles { heatmap: 2, offset: 3, displacements: Some([1, 0]) };
        assert_eq!(found.expect("four heads"), wanted);
    }

    #[test]
    fn heads_without_names_are_found_by_shape() {
        let found = Roles::find(&outputs(&[("a", 34), ("b", 17), ("c", 32), ("d", 32)]), false);
        let wanted = Roles { heatmap: 1, offset: 0, displacements: Some([2, 3]) };
        assert_eq!(found.expect("four heads"), wanted);
        let found =
            Roles::find(&outputs(&[("a", 34), ("b", 17)]), false).expect("two heads are enough for one pose");
        assert_eq!(found.displacements, None);
    }

    #[test]
    fn another_network_is_refused_with_its_outputs() {
        let error = Roles::find(&outputs(&[("softmax", 1001)]), false).expect_err("a classifier").to_string();
        assert!(error.contains("not a PoseNet") && error.contains("\"softmax\" 1x9x9x1001"), "{error}");
        let error = Roles::find(&outputs(&[("heatmap", 19), ("offset", 34)]), false)
            .expect_err("19 parts")
            .to_string();
        assert!(error.contains("1x9x9x19") && error.contains("1x9x9x17"), "{error}");
        let mut mixed = outputs(&[("heatmap", 17), ("offset", 34)]);
        mixed[1].extents = vec![1, 9, 10, 34];
        assert!(Roles::find(&mixed, false).is_err(), "two grids");
        mixed[0].extents = vec![17];
        assert!(Roles::find(&mixed, false).is_err(), "no map");
    }

    #[test]
    fn strides_follow_from_the_sizes() {
        let cases = [(257, 9, 32), (257, 17, 16), (513, 33, 16), (225, 8, 32), (353, 23, 16), (224, 14, 16)];
        for (input, grid, stride) in cases {
            assert_eq!(output_stride([input; 2], [grid; 2]).ok(), Some(stride), "{input} to {grid}");
        }
        assert_eq!(output_stride([353, 257], [23, 17]).ok(), Some(16));
        let error = output_stride([257, 257], [10, 10]).expect_err("no stride").to_string();
        assert!(error.contains("257x257") && error.contains("10x10"), "{error}");
    }

    #[test]
    fn channels_in_planes_come_first() {
        let port = |channels: usize| Port { name: String::new(), extents: vec![1, channels, 9, 10] };
        let found = Roles::find(&[port(34), port(17)], true).expect("two heads");
        assert_eq!(found, Roles { heatmap: 1, offset: 0, displacements: None });
        let mut ports = [port(34), port(17)];
        ports[0].name = "offset".to_owned();
        ports[0].extents[3] = 9;
        let error = Roles::find(&ports, true).expect_err("two grids").to_string();
        assert!(error.contains("is 1x34x9x9, wanted 1x34x9x10"), "{error}");
    }

    #[test]
    fn maps_that_do_not_fit_are_refused() {
        let map =
            |h: usize, c: usize| FeatureMap::new("map", [1, h, 9, c], vec![0.0; h * 9 * c]).expect("a map");
        let error = Heads::new([257; 2], map(9, 17), map(8, 34), None).expect_err("two grids").to_string();
        assert!(error.contains("the offset is 8x9x34, wanted 9x9x34"), "{error}");
        assert!(Heads::new([257; 2], map(9, 18), map(9, 34), None).is_err());
        assert!(Heads::new([257; 2], map(9, 17), map(9, 34), Some([map(9, 32), map(9, 31)])).is_err());
    }

    #[test]
    fn heads_with_nan_are_refused_where_that_is_asked() {
        let map =
            |c: usize, value: f32| FeatureMap::new("map", [1, 9, 9, c], vec![value; 81 * c]).expect("a map");
        let heads = Heads::new([257; 2], map(17, 0.0), map(34, f32::NAN), None).expect("a PoseNet");
        let error = heads.finite().expect_err("NaN").to_string();
        assert!(error.contains("offset: value 0 is NaN"), "{error}");
    }
}
