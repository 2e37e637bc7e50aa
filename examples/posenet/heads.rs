//! What PoseNet returns: which output is which, and the geometry they share.
//!
//! | head | shape | holds |
//! |---|---|---|
//! | heatmap | 1 h w 17 | logit that the part lies near the cell |
//! | offset | 1 h w 34 | from the cell to the part, in input pixels: 17 y, then 17 x |
//! | displacement_fwd, displacement_bwd | 1 h w 32 | from a part to its child (parent), in input pixels: 16 y, then 16 x |

use crate::skeleton::{PARTS, TREE};
use anyhow::{Result, bail, ensure};

/// The strides a PoseNet is published with, and two more that the arithmetic allows.
const STRIDES: [usize; 4] = [4, 8, 16, 32];

/// One feature map of shape `1 h w c`, NHWC.
#[derive(Debug, Clone, PartialEq)]
pub struct Map {
    pub h: usize,
    pub w: usize,
    pub c: usize,
    data: Vec<f32>,
}

impl Map {
    /// A map of finite values; `what` names it in errors.
    pub fn new(what: &str, [n, h, w, c]: [usize; 4], data: Vec<f32>) -> Result<Self> {
        ensure!(n == 1, "{what}: found a batch of {n}, wanted 1");
        ensure!(
            h * w * c > 0 && data.len() == h * w * c,
            "{what}: found {} values for {h}x{w}x{c}",
            data.len()
        );
        if let Some(index) = data.iter().position(|value| !value.is_finite()) {
            bail!("{what}: value {index} is {}, wanted finite numbers", data[index]);
        }
        Ok(Map { h, w, c, data })
    }

    /// The value of channel `k` in row `y` and column `x`.
    pub fn at(&self, y: usize, x: usize, k: usize) -> f32 {
        self.data[(y * self.w + x) * self.c + k]
    }

    /// The vector (x, y) whose y lies in channel `k` and whose x lies in the second half.
    pub fn vector(&self, y: usize, x: usize, k: usize) -> (f32, f32) {
        (self.at(y, x, self.c / 2 + k), self.at(y, x, k))
    }
}

/// Which of a model's outputs is which head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Roles {
    pub heatmap: usize,
    pub offset: usize,
    /// Forward and backward, where the model has both.
    pub displacements: Option<[usize; 2]>,
}

impl Roles {
    /// Tells the heads apart by their names, or, where the names say nothing, by their channels
    /// (and forward before backward, the order of the published exports).
    pub fn find(outputs: &[(String, [usize; 4])]) -> Result<Self> {
        let named = |part: &str| {
            outputs.iter().position(|(name, _)| name.to_ascii_lowercase().replace('-', "_").contains(part))
        };
        let of_channels = |channels: usize| {
            let mut found =
                outputs.iter().enumerate().filter(|(_, (_, shape))| shape[3] == channels).map(|(i, _)| i);
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
            _ => pair(2 * TREE.len()),
        };
        let (Some(heatmap), Some(offset)) = (heatmap, offset) else {
            bail!(
                "not a PoseNet: wanted outputs heatmap 1xHxWx17 and offset 1xHxWx34, found {}",
                list(outputs)
            )
        };
        let mut grid = outputs[heatmap].1;
        let heads = [(heatmap, "heatmap", PARTS), (offset, "offset", 2 * PARTS)];
        let pair = displacements.unwrap_or_default();
        let pair = pair.map(|index| (index, "displacement", 2 * TREE.len()));
        let pair = if displacements.is_some() { &pair[..] } else { &[] };
        for &(index, head, channels) in heads.iter().chain(pair) {
            let (name, shape) = &outputs[index];
            grid[3] = channels;
            ensure!(
                *shape == grid && shape[0] == 1,
                "not a PoseNet: output {name:?} is {}, wanted {} for the {head}",
                dims(shape),
                dims(&[1, grid[1], grid[2], channels])
            );
        }
        Ok(Roles { heatmap, offset, displacements })
    }
}

/// The heads of one run.
#[derive(Debug, Clone)]
pub struct Heads {
    pub heatmap: Map,
    pub offset: Map,
    /// Forward and backward.
    pub displacements: Option<[Map; 2]>,
    /// Input pixels between neighbouring cells.
    pub stride: f32,
}

impl Heads {
    /// The heads of a network that took `input` (height, width).
    pub fn new(
        input: [usize; 2],
        heatmap: Map,
        offset: Map,
        displacements: Option<[Map; 2]>,
    ) -> Result<Self> {
        let stride = output_stride(input, [heatmap.h, heatmap.w])? as f32;
        Ok(Heads { heatmap, offset, displacements, stride })
    }

    /// The position, in input pixels, that a cell's offset gives for a part.
    pub fn position(&self, y: usize, x: usize, part: usize) -> (f32, f32) {
        let (dx, dy) = self.offset.vector(y, x, part);
        (x as f32 * self.stride + dx, y as f32 * self.stride + dy)
    }

    /// The cell (row, column) nearest to a position in input pixels.
    pub fn cell(&self, (x, y): (f32, f32)) -> (usize, usize) {
        // A float cast saturates, so positions left of or above the picture give 0.
        let nearest = |v: f32, count: usize| ((v / self.stride).round() as usize).min(count - 1);
        (nearest(y, self.heatmap.h), nearest(x, self.heatmap.w))
    }

    /// How sure the network is, in 0..1, that the part lies near the cell.
    pub fn score(&self, y: usize, x: usize, part: usize) -> f32 {
        sigmoid(self.heatmap.at(y, x, part))
    }
}

/// `1 / (1 + exp(-x))`
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// The stride by which SAME convolutions turn `input` into `grid`: `grid = ceil(input / stride)`.
/// For the published sizes (a multiple of the stride, plus 1) it is `(input - 1) / (grid - 1)`.
pub fn output_stride(input: [usize; 2], grid: [usize; 2]) -> Result<usize> {
    let gives = |stride: usize| input.map(|extent| extent.div_ceil(stride)) == grid;
    match STRIDES.into_iter().find(|&stride| gives(stride)) {
        Some(stride) => Ok(stride),
        None => bail!(
            "not a PoseNet: an input of {}x{} gives heatmaps of {}x{}, which is no stride of {STRIDES:?}",
            input[0],
            input[1],
            grid[0],
            grid[1]
        ),
    }
}

fn dims(shape: &[usize; 4]) -> String {
    shape.map(|extent| extent.to_string()).join("x")
}

fn list(outputs: &[(String, [usize; 4])]) -> String {
    let rows = outputs.iter().map(|(name, shape)| format!("{name:?} {}", dims(shape)));
    rows.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outputs(rows: &[(&str, usize)]) -> Vec<(String, [usize; 4])> {
        rows.iter().map(|&(name, channels)| (name.to_owned(), [1, 9, 9, channels])).collect()
    }

    #[test]
    fn heads_are_found_by_name_in_any_order() {
        let found = Roles::find(&outputs(&[
            ("MobilenetV1/displacement_bwd_2/BiasAdd", 32),
            ("MobilenetV1/displacement_fwd_2/BiasAdd", 32),
            ("MobilenetV1/heatmap_2/BiasAdd", 17),
            ("MobilenetV1/offset_2/BiasAdd", 34),
        ]));
        let wanted = Roles { heatmap: 2, offset: 3, displacements: Some([1, 0]) };
        assert_eq!(found.expect("four heads"), wanted);
    }

    #[test]
    fn heads_without_names_are_found_by_shape() {
        let found = Roles::find(&outputs(&[("a", 34), ("b", 17), ("c", 32), ("d", 32)]));
        let wanted = Roles { heatmap: 1, offset: 0, displacements: Some([2, 3]) };
        assert_eq!(found.expect("four heads"), wanted);
        let found =
            Roles::find(&outputs(&[("a", 34), ("b", 17)])).expect("two heads are enough for one pose");
        assert_eq!(found.displacements, None);
    }

    #[test]
    fn another_network_is_refused_with_its_outputs() {
        let error = Roles::find(&outputs(&[("softmax", 1001)])).expect_err("a classifier").to_string();
        assert!(error.contains("not a PoseNet") && error.contains("\"softmax\" 1x9x9x1001"), "{error}");
        let error =
            Roles::find(&outputs(&[("heatmap", 19), ("offset", 34)])).expect_err("19 parts").to_string();
        assert!(error.contains("1x9x9x19") && error.contains("1x9x9x17"), "{error}");
        let mut mixed = outputs(&[("heatmap", 17), ("offset", 34)]);
        mixed[1].1 = [1, 9, 10, 34];
        assert!(Roles::find(&mixed).is_err(), "two grids");
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
    fn a_map_with_nan_is_refused() {
        let error = Map::new("heatmap", [1, 1, 2, 1], vec![0.0, f32::NAN]).expect_err("NaN").to_string();
        assert!(error.contains("value 1 is NaN"), "{error}");
    }
}
