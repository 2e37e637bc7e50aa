//! Methods that add ops of bytes.

use super::value::Origin;
use super::{Extras, Graph, Value};
use crate::emit::{Bits, Operand};
use crate::error::Result;
use crate::ops::bytes::ByteRange;
use crate::ops::dequantize::Dequantize;
use crate::ops::elementwise::Elementwise;
use crate::ops::quantization::{Linear, Quantization, Rounding};
use crate::ops::quantize::Quantize;
use crate::ops::quantized_binary::QuantizedBinary;
use crate::ops::quantized_conv2d::QuantizedConv2d;
use crate::ops::quantized_depthwise::QuantizedDepthwise;
use crate::ops::quantized_lookup::QuantizedLookup;
use crate::ops::quantized_pool::QuantizedPool;
use std::sync::Arc;

/// The constants of a convolution of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuantizedWeights {
    /// Words (u32) of four signed bytes each, zeros beyond the channels.
    pub weights: Value,
    /// Integers (i32), one for each output channel.
    pub bias: Value,
    /// Numbers (f32) that sums are multiplied by, one for each output channel.
    pub scale: Value,
}

impl QuantizedWeights {
    fn inputs(self, x: Value) -> Vec<(Operand, Value)> {
        let QuantizedWeights { weights, bias, scale } = self;
        vec![(Operand::Src, x), (Operand::Weights, weights), (Operand::Bias, bias), (Operand::Scale, scale)]
    }
}

impl Graph {
    /// Adds `q = clamp(round(x / scale) + zero, low, high)`: the integers that numbers are rounded to, halves to even ones. They
    /// are kept in f32.
    ///
    /// A session computes operators between [`Graph::dequantize_linear`] and this one on bytes, where the integers are of 8 bits
    /// and the operators have kernels of bytes ([`SessionOptions::dequantize`](struct.SessionOptions.html#structfield.dequantize)
    /// keeps them in floats). Source: ONNX, QuantizeLinear.
    ///
    /// ```
    /// use diptych::nn::Quantization;
    /// use diptych::{Backend, Context, Dims, Graph, HostTensor, Session, SessionOptions};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[1, 3])?)?;
    /// let steps = Quantization::signed(0.5, 0);
    /// let q = graph.quantize_linear("q", x, steps)?;
    /// let y = graph.dequantize_linear("y", q, steps)?;
    /// graph.output(y)?;
    /// let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::default())?;
    /// let y = session.run(&[("x", &HostTensor::new(Dims::new(&[1, 3])?, vec![0.6, -3.0, 100.0])?)])?;
    /// assert_eq!(*y[0].to_f32(), [0.5, -3.0, 63.5]); // the largest integer is 127
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the scale is not positive, or the range of integers is empty or beyond `2^24`.
    pub fn quantize_linear(&mut self, name: &str, x: Value, quantization: Quantization) -> Result<Value> {
        self.quantize_rounded(name, x, quantization, Rounding::Even)
    }

    /// [`Graph::quantize_linear`] by another rule of rounding.
    #[doc(hidden)]
    pub fn quantize_rounded(
        &mut self,
        name: &str,
        x: Value,
        quantization: Quantization,
        rounding: Rounding,
    ) -> Result<Value> {
        self.add_linear(name, x, Linear::Quantize(quantization, rounding))
    }

    /// Adds `scale (q - zero)`: the numbers that integers in f32 stand for. See [`Graph::quantize_linear`]. Source: ONNX,
    /// DequantizeLinear.
    ///
    /// ```
    /// use diptych::nn::Quantization;
    /// use diptych::{Backend, Context, Dims, Graph, HostTensor, Session, SessionOptions};
    ///
    /// let mut graph = Graph::new();
    /// let q = graph.input("q", Dims::new(&[2])?)?;
    /// let y = graph.dequantize_linear("y", q, Quantization::unsigned(0.25, 128))?;
    /// graph.output(y)?;
    /// let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::default())?;
    /// let y = session.run(&[("q", &HostTensor::new(Dims::new(&[2])?, vec![128.0, 136.0])?)])?;
    /// assert_eq!(*y[0].to_f32(), [0.0, 2.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the scale is not positive, or the range of integers is empty or beyond `2^24`.
    pub fn dequantize_linear(&mut self, name: &str, q: Value, quantization: Quantization) -> Result<Value> {
        self.add_linear(name, q, Linear::Dequantize(quantization))
    }

    /// What the integers stand for whose numbers `value` is, if [`Graph::dequantize_linear`] made it.
    #[doc(hidden)]
    pub fn quantization(&self, value: Value) -> Option<Quantization> {
        let Origin::Node(node) = self.info(value).ok()?.origin else { return None };
        match self.nodes.get(node)?.operator.linear()? {
            Linear::Dequantize(own) => Some(own),
            Linear::Quantize(..) => None,
        }
    }

    fn add_linear(&mut self, name: &str, x: Value, linear: Linear) -> Result<Value> {
        let operator = Elementwise::of_linear(linear).map_err(|error| error.at_node(name))?;
        self.with_extras(name, Arc::new(operator), vec![(Operand::Arg(0), x)], Extras::default())
    }

    /// Adds `clamp(round(x / scale) + zero, least, most)`: numbers as bytes. Four bytes of neighbouring channels are kept in a
    /// word (u32), the first one in its lowest bits, so that a value of extents `.. c` becomes one of extents `.. ceil(c / 4)`.
    /// Halves are rounded to even numbers.
    ///
    /// ```
    /// use diptych::nn::ByteRange;
    /// use diptych::{Backend, Context, Dims, Graph, HostTensor, Session, SessionOptions};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[1, 3])?)?;
    /// let bytes = graph.quantize("bytes", x, 0.5, ByteRange::all(128))?;
    /// let y = graph.dequantize("y", bytes, 0.5, 128, 3)?;
    /// graph.output(y)?;
    /// let mut session = Session::new(&Context::new(Backend::Auto)?, &graph, SessionOptions::default())?;
    /// let y = session.run(&[("x", &HostTensor::new(Dims::new(&[1, 3])?, vec![0.6, -3.0, 100.0])?)])?;
    /// assert_eq!(*y[0].to_f32(), [0.5, -3.0, 63.5]); // the largest byte is 127 steps above the one of 0
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `x` has no axis, the scale is not positive, or the range is empty.
    pub fn quantize(&mut self, name: &str, x: Value, scale: f32, range: ByteRange) -> Result<Value> {
        let operator = Arc::new(Quantize { scale: Bits(scale), range });
        self.with_extras(name, operator, vec![(Operand::Src, x)], Extras::default())
    }

    /// Adds `scale * (x - zero)`: the numbers that bytes stand for. `channels` is the number of bytes along the last axis, of which
    /// the last word may have fewer than four.
    ///
    /// ```
    /// use diptych::nn::ByteRange;
    /// use diptych::{Dims, Graph};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[1, 10])?)?;
    /// let bytes = graph.quantize("bytes", x, 0.5, ByteRange::all(128))?;
    /// let y = graph.dequantize("y", bytes, 0.5, 128, 10)?;
    /// assert_eq!(graph.dims(bytes)?.extents(), [1, 3]);
    /// assert_eq!(graph.dims(y)?.extents(), [1, 10]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `x` does not hold words of u32, or as many as the channels need, or the scale is not positive.
    pub fn dequantize(
        &mut self,
        name: &str,
        x: Value,
        scale: f32,
        zero: u8,
        channels: usize,
    ) -> Result<Value> {
        let operator = Arc::new(Dequantize { scale: Bits(scale), zero, channels });
        self.with_extras(name, operator, vec![(Operand::Src, x)], Extras::default())
    }

    /// Adds a convolution of bytes, `n h w ceil(c / 4)` words ([`Graph::quantize`]), with weights of `o kh kw ceil(c / 4)` words:
    /// `y = clamp(round(scale[o] * (bias[o] + sum (x - 128) * w)) + zero, least, most)`. Sums are integers of 32 bits.
    ///
    /// For numbers `s_x (x - z_x)`, weights `s_w w`, a bias of `s_x s_w b` and results `s_y (y - zero)`, `scale` is
    /// `s_x s_w / s_y`, `bias` is `b + (128 - z_x) * (sum of w)`, and [`QuantizedConv2d::outside`] is `z_x`.
    ///
    /// ```
    /// use diptych::nn::{ByteRange, QuantizedConv2d};
    /// use diptych::{Dims, Graph, HostTensor, QuantizedWeights};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[1, 8, 8, 3])?)?;
    /// let x = graph.quantize("bytes", x, 0.02, ByteRange::all(128))?;
    /// // Five output channels with one tap: the mean of three channels, 1 standing for 1/127.
    /// let mean = u32::from_le_bytes([42, 42, 42, 0]);
    /// let weights = HostTensor::of::<u32>(Dims::new(&[5, 1, 1, 1])?, vec![mean; 5])?;
    /// let weights = QuantizedWeights {
    ///     weights: graph.constant("weights", weights),
    ///     bias: graph.constant("bias", HostTensor::of::<i32>(Dims::new(&[5])?, vec![0; 5])?),
    ///     scale: graph.constant("scale", HostTensor::vector(vec![1.0 / 127.0; 5])?),
    /// };
    /// let y = graph.quantized_conv2d("y", x, weights, QuantizedConv2d::new(128, ByteRange::all(128)))?;
    /// assert_eq!(graph.dims(y)?.extents(), [1, 8, 8, 2]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If extents or types do not fit each other or the options.
    pub fn quantized_conv2d(
        &mut self,
        name: &str,
        x: Value,
        weights: QuantizedWeights,
        options: QuantizedConv2d,
    ) -> Result<Value> {
        self.with_extras(name, Arc::new(options), weights.inputs(x), Extras::default())
    }

    /// Adds a depthwise convolution of bytes, as [`Graph::quantized_conv2d`] but for its weights, which are `1 kh kw ceil(c / 4)`
    /// words. Bias and scale have `4 ceil(c / 4)` numbers.
    ///
    /// ```
    /// use diptych::nn::{ByteRange, QuantizedDepthwise};
    /// use diptych::{Dims, Graph, HostTensor, QuantizedWeights};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[1, 8, 8, 4])?)?;
    /// let x = graph.quantize("bytes", x, 0.02, ByteRange::all(128))?;
    /// let weights = HostTensor::of::<u32>(Dims::new(&[1, 3, 3, 1])?, vec![0x0101_0101; 9])?;
    /// let weights = QuantizedWeights {
    ///     weights: graph.constant("weights", weights),
    ///     bias: graph.constant("bias", HostTensor::of::<i32>(Dims::new(&[4])?, vec![0; 4])?),
    ///     scale: graph.constant("scale", HostTensor::vector(vec![1.0 / 9.0; 4])?),
    /// };
    /// let y = graph.quantized_depthwise("y", x, weights, QuantizedDepthwise::new(128, ByteRange::all(128)))?;
    /// assert_eq!(graph.dims(y)?.extents(), [1, 6, 6, 1]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If extents or types do not fit each other or the options.
    pub fn quantized_depthwise(
        &mut self,
        name: &str,
        x: Value,
        weights: QuantizedWeights,
        options: QuantizedDepthwise,
    ) -> Result<Value> {
        self.with_extras(name, Arc::new(options), weights.inputs(x), Extras::default())
    }

    /// Adds the sum or the product of two values of bytes. `b` has the extents of `a`, or one row of words for all of it or for
    /// each batch.
    ///
    /// ```
    /// use diptych::nn::{ByteRange, QuantizedBinary, QuantizedFunction};
    /// use diptych::{Bits, Dims, Graph};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[1, 8])?)?;
    /// let bytes = graph.quantize("bytes", x, 0.02, ByteRange::all(128))?;
    /// let function = QuantizedFunction::Add([Bits(0.5); 2]); // the result's steps are twice as large
    /// let options = QuantizedBinary { function, zeros: [128; 2], range: ByteRange::all(128) };
    /// let twice = graph.quantized_binary("twice", bytes, bytes, options)?;
    /// assert_eq!(graph.dims(twice)?.extents(), [1, 2]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If extents or types do not fit each other, or a ratio is beyond its bounds.
    pub fn quantized_binary(
        &mut self,
        name: &str,
        a: Value,
        b: Value,
        options: QuantizedBinary,
    ) -> Result<Value> {
        let inputs = vec![(Operand::Arg(0), a), (Operand::Arg(1), b)];
        self.with_extras(name, Arc::new(options), inputs, Extras::default())
    }

    /// Adds `table[x]` for each byte of `x`: any function of one byte. The table has 256 bytes in 64 words.
    ///
    /// ```
    /// use diptych::nn::ByteRange;
    /// use diptych::{Dims, Graph, HostTensor};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[1, 8])?)?;
    /// let bytes = graph.quantize("bytes", x, 0.02, ByteRange::all(128))?;
    /// let relu: Vec<u8> = (0..=255).map(|byte: u8| byte.max(128)).collect();
    /// let words: Vec<u32> = relu.as_chunks().0.iter().map(|&word| u32::from_le_bytes(word)).collect();
    /// let table = graph.constant("table", HostTensor::of::<u32>(Dims::new(&[64])?, words)?);
    /// let y = graph.quantized_lookup("y", bytes, table)?;
    /// assert_eq!(graph.dims(y)?.extents(), [1, 2]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the table has another length, or one of them does not hold words of u32.
    pub fn quantized_lookup(&mut self, name: &str, x: Value, table: Value) -> Result<Value> {
        let inputs = vec![(Operand::Src, x), (Operand::Arg(0), table)];
        self.with_extras(name, Arc::new(QuantizedLookup), inputs, Extras::default())
    }

    /// Adds a pooling of bytes, `n h w ceil(c / 4)` words ([`Graph::quantize`]).
    ///
    /// ```
    /// use diptych::nn::{ByteRange, QuantizedPool, QuantizedPooling};
    /// use diptych::{Dims, Graph, Padding};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[1, 8, 8, 4])?)?;
    /// let bytes = graph.quantize("bytes", x, 0.02, ByteRange::all(128))?;
    /// let (pooling, range) = (QuantizedPooling::Max, ByteRange::all(128));
    /// let options = QuantizedPool { pooling, window: [2, 2], stride: [2, 2], padding: Padding::Valid, range };
    /// let y = graph.quantized_pool("y", bytes, options)?;
    /// assert_eq!(graph.dims(y)?.extents(), [1, 4, 4, 1]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `x` does not hold words of u32 along four axes, or the windows do not fit it.
    pub fn quantized_pool(&mut self, name: &str, x: Value, options: QuantizedPool) -> Result<Value> {
        self.with_extras(name, Arc::new(options), vec![(Operand::Src, x)], Extras::default())
    }
}
