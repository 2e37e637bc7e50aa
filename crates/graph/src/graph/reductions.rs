//! The methods that add nodes which reduce, normalise and resize.

use super::{Graph, Value};
use crate::dtype::DType;
use crate::emit::Operand;
use crate::error::Result;
use crate::graph::Extras;
use crate::host::HostTensor;
use crate::ops::arg::ArgReduce;
use crate::ops::normalize::Normalize;
use crate::ops::reduce::{Reduce, Reduction};
use crate::ops::resize::Resize;
use crate::ops::softmax::Softmax;
use crate::ops::transposed_conv2d::TransposedConv2d;
use std::sync::Arc;

/// Pixels of a feature map of integers from which on it is reduced in two steps.
const MANY_PIXELS: usize = 1 << 14;

/// Whether `axes` are the height and width of a feature map.
fn is_over_pixels(axes: &[isize]) -> bool {
    let named = |axis: isize| axes.iter().any(|&other| other.rem_euclid(4) == axis);
    let within = axes.iter().all(|axis| matches!(axis, -3 | -2 | 1 | 2));
    within && named(1) && named(2)
}

impl Graph {
    /// Adds a sum, mean, maximum, ... over `axes`, of which negative ones are counted from the end. With
    /// `keep_dims` they stay, with one element each. Large feature maps of integers are reduced over width and
    /// then over height, by two nodes.
    ///
    /// ```
    /// use diptych::{Dims, Graph, Reduction, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 7, 7, 1024))?;
    /// let y = graph.reduce("pooled", x, Reduction::Mean, &[1, 2], false)?;
    /// assert_eq!(graph.dims(y)?, Dims::new(&[1, 1024])?);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an axis is beyond the rank of `x`.
    pub fn reduce(
        &mut self,
        name: &str,
        x: Value,
        reduction: Reduction,
        axes: &[isize],
        keep_dims: bool,
    ) -> Result<Value> {
        let dims = self.dims(x)?;
        let in_two_steps = match *dims.extents() {
            [_, h, w, _] => {
                let large = h > 1 && w > 1 && h * w >= MANY_PIXELS && is_over_pixels(axes);
                large && self.tensor_type(x)?.dtype.word() != DType::F32
            }
            _ => false,
        };
        let mut add = |name: &str, x: Value, axes: &[isize], keep_dims: bool| {
            let operator = Arc::new(Reduce { reduction, axes: axes.to_vec(), keep_dims });
            self.with_extras(name, operator, vec![(Operand::Src, x)], Extras::default())
        };
        if !in_two_steps {
            return add(name, x, axes, keep_dims);
        }
        let lines = add(&format!("{name}.lines"), x, &[2], true)?;
        add(name, lines, &[1, 2], keep_dims)
    }

    /// Adds a change of a feature map's height and width.
    ///
    /// ```
    /// use diptych::{Graph, Resize, ResizeMode, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 33, 33, 21))?;
    /// let y = graph.resize("y", x, Resize::new(ResizeMode::Bilinear, [257, 257]))?;
    /// assert_eq!(graph.shape(y)?, Shape::nhwc(1, 257, 257, 21));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `x` is not of rank 4, or the options contradict each other.
    pub fn resize(&mut self, name: &str, x: Value, options: Resize) -> Result<Value> {
        self.with_extras(name, Arc::new(options), vec![(Operand::Src, x)], Extras::default())
    }

    /// Adds a softmax along one axis, or its logarithm.
    ///
    /// ```
    /// use diptych::{Bits, Dims, Graph, Softmax};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("scores", Dims::new(&[1, 1000])?)?;
    /// let y = graph.softmax("shares", x, Softmax { axis: -1, beta: Bits(1.0), log: false })?;
    /// assert_eq!(graph.dims(y)?.extents(), [1, 1000]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the axis is beyond the rank of `x`, or the factor negative or not finite.
    pub fn softmax(&mut self, name: &str, x: Value, options: Softmax) -> Result<Value> {
        self.with_extras(name, Arc::new(options), vec![(Operand::Src, x)], Extras::default())
    }

    /// Adds the index of the first largest element along `axis`, as f32, or of the first NaN where there is one; with
    /// `keep_dims` the axis stays, with one element.
    ///
    /// ```
    /// use diptych::{Dims, Graph};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("scores", Dims::new(&[1, 1000])?)?;
    /// let y = graph.arg_max("class", x, -1, false)?;
    /// assert_eq!(graph.dims(y)?.extents(), [1]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the axis is beyond the rank of `x`, or longer than f32 counts.
    pub fn arg_max(&mut self, name: &str, x: Value, axis: isize, keep_dims: bool) -> Result<Value> {
        let operator = Arc::new(ArgReduce { largest: true, axis, keep_dims });
        self.with_extras(name, operator, vec![(Operand::Src, x)], Extras::default())
    }

    /// Adds the index of the first smallest element along `axis`: see [`Graph::arg_max`].
    ///
    /// ```
    /// use diptych::{Dims, Graph};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("scores", Dims::new(&[1, 1000])?)?;
    /// let y = graph.arg_min("class", x, -1, false)?;
    /// assert_eq!(graph.dims(y)?.extents(), [1]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Graph::arg_max`].
    pub fn arg_min(&mut self, name: &str, x: Value, axis: isize, keep_dims: bool) -> Result<Value> {
        let operator = Arc::new(ArgReduce { largest: false, axis, keep_dims });
        self.with_extras(name, operator, vec![(Operand::Src, x)], Extras::default())
    }

    /// Adds a transposed 2D convolution; `weights` is `oc kh kw c`.
    ///
    /// ```
    /// use diptych::nn::TransposedConv2d;
    /// use diptych::{Extras, Graph, HostTensor, Padding, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 16, 16, 8))?;
    /// let weights = HostTensor::new(Shape::nhwc(4, 2, 2, 8), vec![0.1; 128])?;
    /// let options = TransposedConv2d { stride: [2, 2], padding: Padding::Same, ..Default::default() };
    /// let y = graph.transposed_conv2d("up", x, weights, Extras::default(), options)?;
    /// assert_eq!(graph.shape(y)?, Shape::nhwc(1, 32, 32, 4));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the shapes do not fit each other; the error names the node.
    pub fn transposed_conv2d(
        &mut self,
        name: &str,
        x: Value,
        weights: HostTensor,
        extras: Extras,
        options: TransposedConv2d,
    ) -> Result<Value> {
        self.with_constants(name, Arc::new(options), (Operand::Src, x), (Operand::Weights, weights), extras)
    }

    /// Adds a normalisation: mean and variance over the axes of `options` become 0 and 1, or the mean square becomes 1,
    /// then each channel is multiplied by its `scale` and moved by its `bias`, where these are given.
    ///
    /// ```
    /// use diptych::nn::Normalize;
    /// use diptych::{Bits, Dims, Graph, HostTensor};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[7, 4])?)?;
    /// let options = Normalize { axes: vec![-1], epsilon: Bits(1e-5), ..Normalize::default() };
    /// let scale = Some(HostTensor::vector(vec![1.0; 4])?);
    /// let y = graph.normalize("norm", x, options, scale, None)?;
    /// assert_eq!(graph.dims(y)?.extents(), [7, 4]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an axis is beyond the rank of `x`, or there is not one value for each channel.
    pub fn normalize(
        &mut self,
        name: &str,
        x: Value,
        options: Normalize,
        scale: Option<HostTensor>,
        bias: Option<HostTensor>,
    ) -> Result<Value> {
        let (operator, extras) = (Arc::new(options), Extras { bias, ..Extras::default() });
        match scale {
            Some(scale) => {
                self.with_constants(name, operator, (Operand::Src, x), (Operand::Weights, scale), extras)
            }
            None => self.with_extras(name, operator, vec![(Operand::Src, x)], extras),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims::Dims;
    use crate::graph::Dim;

    #[test]
    fn large_maps_of_integers_are_reduced_line_by_line() {
        assert!(is_over_pixels(&[1, 2]) && is_over_pixels(&[-2, 1]) && is_over_pixels(&[2, -3, 2]));
        assert!(!is_over_pixels(&[1]) && !is_over_pixels(&[1, 2, 3]) && !is_over_pixels(&[0, 2, 1]));
        assert!(!is_over_pixels(&[1, 6]) && !is_over_pixels(&[]));
        for (side, dtype, nodes) in [(127, DType::I32, 1), (128, DType::I32, 2), (128, DType::F32, 1)] {
            let mut graph = Graph::new();
            let extents = [2, side, side, 3].map(Dim::Fixed);
            let x = graph.typed_input("x", dtype, &extents).expect("an input");
            let y = graph.reduce("sum", x, Reduction::Sum, &[1, 2], false).expect("a sum");
            assert_eq!(graph.dims(y).expect("a value"), Dims::new(&[2, 3]).expect("small"));
            assert_eq!(graph.nodes().len(), nodes, "{side}");
        }
    }
}
