//! Methods that add ops of bytes whose ranges are found at each run.

use super::{Extras, Graph, Value};
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::dynamic_conv2d::DynamicConv2d;
use crate::ops::dynamic_quantize::DynamicQuantize;
use crate::ops::dynamic_range::{DynamicRange, RangeRule};
use std::sync::Arc;

/// The constants of a convolution of bytes whose ranges are found at each run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DynamicWeights {
    /// Words (u32) of four signed bytes each, zeros beyond the channels.
    pub weights: Value,
    /// What a step of the weights stands for, one number (f32) for each output channel; none for sums of integers.
    pub scale: Option<Value>,
}

impl Graph {
    /// Adds `[scale, zero, 1 / scale]` of each row of `x`, a value of extents `.. c`: how its numbers are rounded to bytes. The range
    /// is that of the numbers and 0, in 255 steps. The result has extents `.. 3`.
    ///
    /// ```
    /// use diptych::nn::RangeRule;
    /// use diptych::{Backend, Context, Dims, Graph, HostTensor, Session, SessionOptions};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[1, 3])?)?;
    /// let ranges = graph.dynamic_range("ranges", x, RangeRule::Nearer)?;
    /// graph.output(ranges)?;
    /// let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::default())?;
    /// let y = session.run(&[("x", &HostTensor::new(Dims::new(&[1, 3])?, vec![-32.0, 95.5, 7.0])?)])?;
    /// assert_eq!(*y[0].to_f32(), [0.5, 64.0, 2.0]); // byte 64 is 0
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `x` has no axis.
    pub fn dynamic_range(&mut self, name: &str, x: Value, rule: RangeRule) -> Result<Value> {
        let inputs = vec![(Operand::Src, x)];
        self.with_extras(name, Arc::new(DynamicRange { rule }), inputs, Extras::default())
    }

    /// Adds `clamp(round(x / scale) + zero, 0, 255)`: numbers as bytes in words as [`Graph::quantize`] has them, each with the scale
    /// and the zero point of its range. The ranges are rows of three numbers ([`Graph::dynamic_range`]), each for as many
    /// neighbouring rows of `x`. A number is divided by the scale if `divides`, or else multiplied by its reciprocal: these may
    /// differ by a rounding.
    ///
    /// ```
    /// use diptych::nn::RangeRule;
    /// use diptych::{Dims, Graph};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[7, 10])?)?;
    /// let ranges = graph.dynamic_range("ranges", x, RangeRule::Nearer)?;
    /// let bytes = graph.dynamic_quantize("bytes", x, ranges, false)?;
    /// assert_eq!(graph.dims(bytes)?.extents(), [7, 3]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `x` has no axis, or its rows are not as many for each range.
    pub fn dynamic_quantize(&mut self, name: &str, x: Value, ranges: Value, divides: bool) -> Result<Value> {
        let inputs = vec![(Operand::Src, x), (Operand::Arg(0), ranges)];
        self.with_extras(name, Arc::new(DynamicQuantize { divides }), inputs, Extras::default())
    }

    /// Adds a convolution of bytes `x`, `n h w ceil(c / 4)` words ([`Graph::dynamic_quantize`]), with weights of `o kh kw ceil(c / 4)`
    /// words: `y = f(scale m[o] t + bias[o]) + residual` with the integers `t = sum (x - zero) w`, or these
    /// ([`DynamicConv2d::sums`]). The scale and the zero point are those of the pixel's range: there is one for as many
    /// neighbouring pixels of the result. With windows of one pixel this is the product of a matrix, `1 1 rows` pixels, with another
    /// one.
    ///
    /// ```
    /// use diptych::nn::{DynamicConv2d, RangeRule};
    /// use diptych::{Dims, DynamicWeights, Extras, Graph, HostTensor};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[1, 1, 6, 4])?)?;
    /// let ranges = graph.dynamic_range("ranges", x, RangeRule::Nearer)?; // one for each of six rows
    /// let bytes = graph.dynamic_quantize("bytes", x, ranges, false)?;
    /// let mean = HostTensor::of::<u32>(Dims::new(&[5, 1, 1, 1])?, vec![0x0101_0101; 5])?;
    /// let scale = HostTensor::vector(vec![0.25; 5])?;
    /// let weights = DynamicWeights {
    ///     weights: graph.constant("weights", mean),
    ///     scale: Some(graph.constant("scale", scale)),
    /// };
    /// let y = graph.dynamic_conv2d("y", bytes, ranges, weights, Extras::default(), DynamicConv2d::new())?;
    /// assert_eq!(graph.dims(y)?.extents(), [1, 1, 6, 5]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If extents or types do not fit each other or the options, or pixels of one window have several ranges.
    pub fn dynamic_conv2d(
        &mut self,
        name: &str,
        x: Value,
        ranges: Value,
        weights: DynamicWeights,
        extras: Extras,
        options: DynamicConv2d,
    ) -> Result<Value> {
        let mut inputs =
            vec![(Operand::Src, x), (Operand::Weights, weights.weights), (Operand::Arg(0), ranges)];
        inputs.extend(weights.scale.map(|scale| (Operand::Scale, scale)));
        self.with_extras(name, Arc::new(options), inputs, extras)
    }
}
