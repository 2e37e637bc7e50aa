//! Quantized operators on bytes: what TensorFlow Lite and ONNX have in common of them.
//!
//! A tensor of 8-bit integers is a value of words of four bytes each, along its last stored axis, which are unsigned: a
//! signed integer has 128 added, and so has its zero point.

use super::builder::Builder;
use super::windows::Windows;
use crate::dims::{Dim, Dims};
use crate::emit::Bits;
use crate::graph::{QuantizedWeights, Value};
use crate::host::HostTensor;
use crate::model::reason::Reason;
use crate::ops::bytes::{ByteRange, LANES};
use crate::ops::elementwise::Function;
use crate::ops::quantized_binary::{QuantizedBinary, QuantizedFunction};
use crate::ops::quantized_conv2d::QuantizedConv2d;
use crate::ops::quantized_depthwise::QuantizedDepthwise;
use crate::ops::quantized_pool::{QuantizedPool, QuantizedPooling};

/// The numbers that bytes stand for: `scale * (byte - zero)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Grid {
    pub(crate) scale: f32,
    pub(crate) zero: u8,
}

impl Grid {
    /// The bytes that an operator's results may be, which applies `after` to them; `None` if that is none of the bounds.
    pub(crate) fn range(self, after: Option<Function>) -> Option<ByteRange> {
        let all = ByteRange::all(self.zero);
        let at = |number: f32| all.of(number / self.scale);
        Some(match after {
            None => all,
            Some(Function::Relu) => ByteRange { least: self.zero, ..all },
            Some(Function::Relu6) => ByteRange { least: self.zero, most: at(6.0), ..all },
            Some(Function::ReluN1To1) => ByteRange { least: at(-1.0), most: at(1.0), ..all },
            Some(_) => return None,
        })
    }

    /// The number that a byte stands for.
    pub(crate) fn number(self, byte: u8) -> f32 {
        (f32::from(byte) - f32::from(self.zero)) * self.scale
    }

    /// The byte that is nearest to a number, as it is found for tables: the zero point is added before the sum is rounded.
    fn nearest(self, number: f32) -> u8 {
        let sum = number * (1.0 / self.scale) + (f32::from(self.zero) - 128.0);
        if sum.is_nan() { self.zero } else { (sum.round_ties_even().clamp(-128.0, 127.0) + 128.0) as u8 }
    }
}

/// A tensor as bytes.
#[derive(Debug, Clone)]
pub(crate) struct Bytes {
    /// Words, along the last axis.
    pub(crate) value: Value,
    /// The extents of the bytes, in the order in which they are stored.
    pub(crate) extents: Vec<usize>,
    pub(crate) grid: Grid,
}

/// The weights of a convolution or a matrix product of bytes.
#[derive(Debug, Clone)]
pub(crate) struct ByteWeights {
    /// `o kh kw c`, or `1 kh kw c` for a depthwise convolution.
    pub(crate) values: Vec<i8>,
    pub(crate) extents: [usize; 4],
    /// One for all, or one for each output channel.
    pub(crate) scales: Vec<f32>,
    /// One for each output channel.
    pub(crate) bias: Option<Vec<i32>>,
}

/// Bytes of rows of `channels`, four in a word, those of the last word of a row filled up.
pub(super) fn words(bytes: &[u8], channels: usize, fill: u8) -> Vec<u32> {
    let channels = channels.max(1);
    let mut words = Vec::with_capacity(bytes.len().div_ceil(channels) * channels.div_ceil(LANES));
    for row in bytes.chunks(channels) {
        let (whole, rest) = row.as_chunks::<LANES>();
        words.extend(whole.iter().map(|&word| u32::from_le_bytes(word)));
        if !rest.is_empty() {
            let mut word = [fill; LANES];
            word.iter_mut().zip(rest).for_each(|(byte, own)| *byte = *own);
            words.push(u32::from_le_bytes(word));
        }
    }
    words
}

/// The words of a tensor's extents.
pub(super) fn of_words(extents: &[usize]) -> Result<Dims, Reason> {
    let mut packed = extents.to_vec();
    if let Some(last) = packed.last_mut() {
        *last = last.div_ceil(LANES);
    }
    Dims::new(&packed).map_err(Reason::from)
}

impl ByteWeights {
    /// Adds what a convolution takes: sums of `x - 128` want what the input's zero point adds in their bias.
    fn constants(
        &self,
        b: &mut Builder,
        [x, y]: [Grid; 2],
        depthwise: bool,
    ) -> Result<QuantizedWeights, Reason> {
        let [outputs, kernel_h, kernel_w, channels] = self.extents;
        let taps = kernel_h * kernel_w;
        b.budget.spend(8 * self.values.len())?;
        let count = if depthwise { channels } else { outputs };
        let mut sums = vec![0i32; count];
        for (at, &value) in self.values.iter().enumerate() {
            let channel = if depthwise { at % channels } else { at / (taps * channels) };
            if let Some(sum) = sums.get_mut(channel) {
                *sum += i32::from(value);
            }
        }
        // A depthwise convolution has numbers for the bytes of the last word, too.
        let padded = if depthwise { channels.next_multiple_of(LANES) } else { outputs };
        let at_128 = 128 - i32::from(x.zero);
        let bias = (0..padded).map(|channel| {
            let own = self.bias.as_ref().and_then(|bias| bias.get(channel)).copied().unwrap_or(0);
            own.wrapping_add(sums.get(channel).map_or(0, |sum| sum.wrapping_mul(at_128)))
        });
        let scale = (0..padded).map(|channel| {
            let own = self.scales.get(channel).or(self.scales.first().filter(|_| self.scales.len() == 1));
            own.map_or(0.0, |own| x.scale * own / y.scale)
        });
        let (bias, scale): (Vec<i32>, Vec<f32>) = (bias.collect(), scale.collect());
        let values: Vec<u8> = self.values.iter().map(|value| value.cast_unsigned()).collect();
        let weights = HostTensor::of::<u32>(of_words(&self.extents)?, words(&values, channels, 0))?;
        Ok(QuantizedWeights {
            weights: constant(b, "weights", weights)?,
            bias: constant(b, "bias", HostTensor::of::<i32>(Dims::new(&[padded])?, bias)?)?,
            scale: constant(b, "scale", HostTensor::vector(scale)?)?,
        })
    }
}

fn constant(b: &mut Builder, part: &str, tensor: HostTensor) -> Result<Value, Reason> {
    b.add(part, |graph, name| Ok(graph.constant(name, tensor)))
}

impl Builder {
    /// Numbers as bytes.
    pub(crate) fn bytes_made(&mut self, part: &str, x: Value, grid: Grid) -> Result<Bytes, Reason> {
        let extents = self.dims(x)?.extents().to_vec();
        let range = ByteRange::all(grid.zero);
        let value = self.add(part, |graph, name| graph.quantize(name, x, grid.scale, range))?;
        Ok(Bytes { value, extents, grid })
    }

    /// Bytes that are known.
    pub(crate) fn known_bytes(
        &mut self,
        extents: &[usize],
        bytes: &[u8],
        grid: Grid,
    ) -> Result<Bytes, Reason> {
        let words = words(bytes, extents.last().copied().unwrap_or(1), grid.zero);
        let tensor = HostTensor::of::<u32>(of_words(extents)?, words)?;
        Ok(Bytes { value: constant(self, "constant", tensor)?, extents: extents.to_vec(), grid })
    }

    /// The numbers that bytes stand for.
    pub(crate) fn bytes_as_floats(&mut self, part: &str, x: &Bytes) -> Result<Value, Reason> {
        let Bytes { value, ref extents, grid: Grid { scale, zero } } = *x;
        let channels = extents.last().copied().unwrap_or(1);
        self.add(part, |graph, name| graph.dequantize(name, value, scale, zero, channels))
    }

    /// The bytes of `x` in other `extents`, in the same order and on the same grid; `None` if that would cut words of four bytes.
    pub(crate) fn bytes_reshaped(
        &mut self,
        part: &str,
        x: &Bytes,
        extents: &[usize],
    ) -> Result<Option<Bytes>, Reason> {
        let [own, wanted] = [x.extents.last(), extents.last()].map(|last| last.copied().unwrap_or(1));
        let whole = own.is_multiple_of(LANES) && wanted.is_multiple_of(LANES);
        if extents.is_empty() || own != wanted && !whole {
            return Ok(None);
        }
        let mut dims: Vec<Dim> =
            of_words(extents)?.extents().iter().map(|&extent| Dim::Fixed(extent)).collect();
        if let Some(first) = dims.first_mut().filter(|_| extents.len() > 1) {
            *first = Dim::Rest;
        }
        let value = self.add(part, |graph, name| graph.reshape(name, x.value, &dims))?;
        Ok(Some(Bytes { value, extents: extents.to_vec(), grid: x.grid }))
    }

    /// Bytes of the same grid one behind the other; `None` if words would be cut.
    pub(crate) fn bytes_joined(
        &mut self,
        part: &str,
        parts: &[Bytes],
        axis: usize,
    ) -> Result<Option<Bytes>, Reason> {
        let Some((first, rest)) = parts.split_first() else { return Ok(None) };
        let cut = |x: &Bytes| !x.extents.last().is_some_and(|last| last.is_multiple_of(LANES));
        let is_last = axis + 1 == first.extents.len();
        if rest.iter().any(|x| x.grid != first.grid) || is_last && parts.iter().rev().skip(1).any(cut) {
            return Ok(None);
        }
        let values: Vec<Value> = parts.iter().map(|x| x.value).collect();
        let value = self.add(part, |graph, name| graph.concat(name, &values, axis as isize))?;
        let mut extents = first.extents.clone();
        if let Some(extent) = extents.get_mut(axis) {
            *extent = parts.iter().filter_map(|x| x.extents.get(axis)).sum();
        }
        Ok(Some(Bytes { value, extents, grid: first.grid }))
    }

    /// A convolution of bytes `n h w c`. The function after it is one of bounds ([`Grid::range`]).
    pub(crate) fn bytes_convolved(
        &mut self,
        part: &str,
        x: &Bytes,
        (weights, depthwise): (&ByteWeights, bool),
        windows: &Windows,
        (grid, range): (Grid, ByteRange),
    ) -> Result<Bytes, Reason> {
        let constants = weights.constants(self, [x.grid, grid], depthwise)?;
        let pair = |list: &[usize]| [list.first().copied().unwrap_or(1), list.get(1).copied().unwrap_or(1)];
        let (stride, dilation, padding) = (pair(&windows.stride), pair(&windows.dilation), windows.padding());
        let (outside, input) = (x.grid.zero, x.value);
        let value = self.add(part, |graph, name| match depthwise {
            true => {
                let options = QuantizedDepthwise { stride, dilation, padding, outside, range };
                graph.quantized_depthwise(name, input, constants, options)
            }
            false => {
                let options = QuantizedConv2d { stride, dilation, padding, outside, range };
                graph.quantized_conv2d(name, input, constants, options)
            }
        })?;
        let [outputs, _, _, channels] = weights.extents;
        self.bytes_of(value, if depthwise { channels } else { outputs }, grid)
    }

    /// Bytes whose last axis has so many.
    fn bytes_of(&mut self, value: Value, channels: usize, grid: Grid) -> Result<Bytes, Reason> {
        let mut extents = self.dims(value)?.extents().to_vec();
        if let Some(last) = extents.last_mut() {
            *last = channels;
        }
        Ok(Bytes { value, extents, grid })
    }

    /// The rows of bytes times a matrix `o 1 1 c`; the result has as many axes as `x`.
    pub(crate) fn bytes_multiplied(
        &mut self,
        x: &Bytes,
        weights: &ByteWeights,
        (grid, range): (Grid, ByteRange),
    ) -> Result<Option<Bytes>, Reason> {
        let [outputs, _, _, channels] = weights.extents;
        let rows = x.extents.iter().product::<usize>() / channels.max(1);
        let Some(maps) = self.bytes_reshaped("rows", x, &[rows, 1, 1, channels])? else { return Ok(None) };
        let windows = Windows::new(&[1, 1]);
        let y = self.bytes_convolved("product", &maps, (weights, false), &windows, (grid, range))?;
        let mut extents = x.extents.clone();
        if extents.last() != Some(&channels) {
            extents = vec![rows, channels];
        }
        if let Some(last) = extents.last_mut() {
            *last = outputs;
        }
        self.bytes_reshaped("", &y, &extents)
    }

    /// A pooling of bytes `n h w c`.
    pub(crate) fn bytes_pooled(
        &mut self,
        part: &str,
        x: &Bytes,
        pooling: QuantizedPooling,
        windows: &Windows,
        (grid, range): (Grid, ByteRange),
    ) -> Result<Bytes, Reason> {
        let pair = |list: &[usize]| [list.first().copied().unwrap_or(1), list.get(1).copied().unwrap_or(1)];
        let (window, stride, padding) = (pair(&windows.kernel), pair(&windows.stride), windows.padding());
        let options = QuantizedPool { pooling, window, stride, padding, range };
        let value = self.add(part, |graph, name| graph.quantized_pool(name, x.value, options))?;
        self.bytes_of(value, x.extents.last().copied().unwrap_or(1), grid)
    }

    /// The sum of two tensors (a factor of -1 subtracts the second one), or their product. `None` if their extents or scales
    /// do not fit.
    pub(crate) fn bytes_combined(
        &mut self,
        part: &str,
        [a, b]: [&Bytes; 2],
        function: Function,
        (grid, range): (Grid, ByteRange),
    ) -> Result<Option<Bytes>, Reason> {
        let last = |x: &Bytes| x.extents.last().copied().unwrap_or(1);
        let elements = |x: &Bytes| x.extents.iter().product::<usize>();
        if elements(a) < elements(b) && function != Function::Sub {
            return self.bytes_combined(part, [b, a], function, (grid, range));
        }
        let fits = a.extents == b.extents
            || last(a) == last(b) && {
                let batch = a.extents.first().copied().unwrap_or(1);
                let one_each = b.extents.len() == a.extents.len() && b.extents.first() == Some(&batch);
                elements(b) == last(b) || one_each && elements(b) == batch * last(b)
            };
        let Some(function) = combination([a.grid, b.grid, grid], function).filter(|_| fits) else {
            return Ok(None);
        };
        let options = QuantizedBinary { function, zeros: [a.grid.zero, b.grid.zero], range };
        let value = self.add(part, |graph, name| graph.quantized_binary(name, a.value, b.value, options))?;
        Ok(Some(Bytes { value, extents: a.extents.clone(), grid }))
    }

    /// What a table makes of each byte.
    pub(crate) fn bytes_looked_up(
        &mut self,
        part: &str,
        x: &Bytes,
        table: &[u8; 256],
        grid: Grid,
    ) -> Result<Bytes, Reason> {
        let words = HostTensor::of::<u32>(Dims::new(&[256 / LANES])?, words(table, 256, 0))?;
        let table = constant(self, "table", words)?;
        let value = self.add(part, |graph, name| graph.quantized_lookup(name, x.value, table))?;
        Ok(Bytes { value, extents: x.extents.clone(), grid })
    }
}

/// A sum, a difference or a product of tensors on the first two grids, on the third one.
fn combination([a, b, y]: [Grid; 3], function: Function) -> Option<QuantizedFunction> {
    let [of_a, of_b] = [a.scale / y.scale, b.scale / y.scale];
    let sum =
        |ratios: [f32; 2]| QuantizedBinary::adds(ratios).then_some(QuantizedFunction::Add(ratios.map(Bits)));
    match function {
        Function::Add => sum([of_a, of_b]),
        Function::Sub => sum([of_a, -of_b]),
        Function::Mul => Some(QuantizedFunction::Mul(Bits(a.scale * b.scale / y.scale))),
        _ => None,
    }
}

/// The bytes of a function of numbers, for each byte of its argument.
pub(crate) fn table(function: impl Fn(f32) -> f32, [x, y]: [Grid; 2]) -> [u8; 256] {
    std::array::from_fn(|byte| y.nearest(function(x.number(byte as u8))))
}

/// The table of another scale and zero point: as XNNPACK computes it, the scales' ratio is in 256ths. `None` if it is too
/// large or small for that.
pub(crate) fn rescaled([x, y]: [Grid; 2], slope: f32) -> Option<[u8; 256]> {
    let ratio = x.scale / y.scale;
    let in_256ths = |ratio: f32| {
        (1.0 / 256.0..=128.0).contains(&ratio.abs()).then(|| (256.0 * ratio).round_ties_even() as i32)
    };
    let (above, below) = (in_256ths(ratio)?, in_256ths(ratio * slope)?);
    Some(std::array::from_fn(|byte| {
        let steps = byte as i32 - i32::from(x.zero);
        let sum = steps * if steps >= 0 { above } else { below } + (i32::from(y.zero) << 8) + 0x80;
        (sum >> 8).clamp(0, 255) as u8
    }))
}

/// The table of a sum, a difference or a product with one number, which stands on a grid.
pub(crate) fn combined_with(
    x: Grid,
    (number, other): (u8, Grid),
    function: Function,
    number_first: bool,
    (y, range): (Grid, ByteRange),
) -> Option<[u8; 256]> {
    let (grids, zeros) = match number_first {
        false => ([x, other, y], [x.zero, other.zero]),
        true => ([other, x, y], [other.zero, x.zero]),
    };
    let options = QuantizedBinary { function: combination(grids, function)?, zeros, range };
    let of = |byte: u8| if number_first { options.byte(number, byte) } else { options.byte(byte, number) };
    let bytes: Option<Vec<u8>> = (0..=u8::MAX).map(of).collect();
    bytes?.try_into().ok()
}
