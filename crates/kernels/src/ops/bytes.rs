//! Integers of 8 bits, four in a word: what quantized ops read and write.
//!
//! A tensor of extents `.. c` is kept as unsigned words of 32 bits of extents `.. ceil(c / 4)`: channel `c` is byte
//! `c % 4` of word `c / 4`, the lowest byte first. A byte stands for the number `scale * (byte - zero)`. Bytes are unsigned:
//! a signed integer is kept with 128 added, and so is its zero point. What the bytes beyond the channels hold is what the op
//! that wrote the value made of bytes like them.

pub use crate::cpu::bytes::{LANES, bytes, bytes_mut, nearest};

use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::emit::{Binding, Element, Epilogue, Operand, Scalar, Value};
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::limits::faults::Quirk;
use crate::ops::convolution::{self, Convolution, WindowOptions};
use crate::ops::definition::Definition;
use crate::ops::operands::{OperandInfo, Role};
use crate::ops::operator::{self, Arguments};
use crate::ops::spec::{self, Params, bindings_as};
use crate::shape::Shape;

/// The extents of the words that hold bytes of these extents.
///
/// # Errors
/// If there is no axis.
pub(crate) fn packed(op: &'static str, dims: Dims) -> Result<Dims> {
    match dims.extents().split_last() {
        Some((channels, outer)) => Dims::new(&[outer, &[channels.div_ceil(LANES)]].concat()),
        None => Err(Error::shape(op, "a value without axes", "at least one axis, whose elements are packed")),
    }
}

/// Bytes of rows of `channels`, four in a word; those of the last word of a row beyond the channels are `fill`.
#[doc(hidden)]
pub fn words_of_rows(bytes: &[u8], channels: usize, fill: u8) -> Vec<u32> {
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

/// The words of bytes, as numbers.
pub(crate) fn numbers(bytes: &[u8]) -> Vec<f64> {
    bytes.as_chunks::<LANES>().0.iter().map(|&word| f64::from(u32::from_le_bytes(word))).collect()
}

/// The constant of a kernel whose bytes are unpacked before they are multiplied, where the driver cannot do it otherwise.
pub(super) fn unpacked(limits: &Limits) -> Option<(&'static str, Value)> {
    limits.faults.has(Quirk::WrongDotsOfBytes).then_some(("UNPACKED", Value::U32(1)))
}

/// The bytes that results may be, and the one that stands for 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ByteRange {
    /// The byte that stands for 0.
    pub zero: u8,
    /// The least byte.
    pub least: u8,
    /// The largest byte.
    pub most: u8,
}

impl ByteRange {
    /// All bytes, of which this one stands for 0.
    ///
    /// ```
    /// use diptych::nn::ByteRange;
    ///
    /// assert_eq!(ByteRange::all(128).most, 255);
    /// ```
    pub const fn all(zero: u8) -> Self {
        ByteRange { zero, least: 0, most: u8::MAX }
    }

    /// Refuses a range that holds no byte.
    pub(super) fn check(&self, op: &'static str) -> Result<()> {
        if self.least <= self.most {
            return Ok(());
        }
        Err(Error::shape(op, format!("bytes from {} to {}", self.least, self.most), "at least one byte"))
    }

    /// The ends of the range in steps from the byte that stands for 0.
    pub(super) fn steps(&self) -> [i32; 2] {
        [self.least, self.most].map(|end| i32::from(end) - i32::from(self.zero))
    }

    /// The byte that is so many steps from the one that stands for 0: the nearest, and of two the one an even number of
    /// steps away.
    #[inline(always)]
    #[doc(hidden)]
    pub fn of(&self, steps: f32) -> u8 {
        let [low, high] = self.steps();
        let steps = steps.max(low as f32).min(high as f32);
        // Within the range, which is of bytes.
        (nearest(steps) + i32::from(self.zero)) as u8
    }

    /// The parameters by which a text knows the range.
    pub(super) fn params(&self) -> Params {
        let [low, high] = self.steps();
        vec![
            ("low", Scalar::F32(low as f32)),
            ("high", Scalar::F32(high as f32)),
            ("zero", Scalar::I32(self.zero.into())),
        ]
    }

    /// The range in a problem's key.
    pub(super) fn key(&self) -> String {
        format!("zero{} from{} to{}", self.zero, self.least, self.most)
    }
}

/// The extents of the operand of a node that holds bytes.
///
/// # Errors
/// If the node lacks it, or it does not hold unsigned words.
pub(super) fn need(op: &'static str, arguments: Arguments<'_>, operand: Operand) -> Result<Dims> {
    let dims = arguments.need(op, operand)?;
    let dtype = arguments.dtype(operand);
    if dtype == DType::U32 {
        return Ok(dims);
    }
    Err(Error::shape(
        op,
        format!("{} of {dtype}", operand.name()),
        "bytes in words of u32 (Graph::quantize makes them)",
    ))
}

/// The words of the input, and the weights, of a node that is a convolution of bytes; both have rank 4.
///
/// # Errors
/// If they are of other types or ranks.
pub(super) fn maps(op: &'static str, arguments: Arguments<'_>) -> Result<[Shape; 2]> {
    need(op, arguments, Operand::Src)?;
    need(op, arguments, Operand::Weights)?;
    operator::maps(op, arguments)
}

/// Windows over words of shape `input`, for so many output channels in so many groups of words; a row of weights is as many words.
///
/// # Errors
/// If the shapes do not fit each other.
pub(super) fn windows(
    op: &'static str,
    [input, weights]: [Shape; 2],
    [channels, groups]: [usize; 2],
    options: WindowOptions,
) -> Result<Convolution> {
    convolution::check_weights(op, [weights.n, weights.h, weights.w, LANES * weights.c])?;
    let kernel = [weights.h, weights.w];
    let words = channels.div_ceil(LANES);
    Convolution::new(op, input, kernel, words, groups, options, Epilogue::default(), Precision::F32)
}

/// What a convolution of bytes reads and writes, whose weights and output channels are these.
pub(super) fn operands(windows: &Convolution, weights: Shape, channels: usize) -> Vec<OperandInfo> {
    vec![
        OperandInfo::new(Operand::Src, windows.input, Role::Input).of(DType::U32),
        OperandInfo::new(Operand::Weights, weights, Role::Constant).of(DType::U32),
        OperandInfo::vector(Operand::Bias, channels).of(DType::I32),
        OperandInfo::vector(Operand::Scale, channels),
        OperandInfo::new(Operand::Dst, windows.output, Role::Output).of(DType::U32),
    ]
}

/// The buffers that a kernel of such a convolution takes.
pub(super) fn bindings<O: Definition>(op: &O, weights: Element) -> Vec<Binding> {
    bindings_as(op, |info| match info.operand {
        Operand::Weights => weights,
        Operand::Bias | Operand::Scale => Element::Vec4(info.dtype),
        _ => Element::Scalar(info.dtype),
    })
}

/// The scalars of windows over words, but for the words of a pixel.
pub(super) fn window_params(windows: &Convolution) -> Params {
    let mut params = spec::window_params(windows);
    params.retain(|(name, _)| *name != "dst_c4");
    params
}

/// The scalars of a kernel of a convolution of bytes, but for the words of a pixel.
pub(super) fn params(windows: &Convolution, outside: u8, range: &ByteRange) -> Params {
    let outside = ("outside", Scalar::U32(u32::from_le_bytes([outside; LANES])));
    [window_params(windows), vec![outside], range.params()].concat()
}

/// Refuses a bias and factors that are not one for each of so many output channels.
pub(super) fn check_channels(op: &'static str, arguments: Arguments<'_>, channels: usize) -> Result<()> {
    for (operand, wanted) in [(Operand::Bias, DType::I32), (Operand::Scale, DType::F32)] {
        let (dims, dtype) = (arguments.need(op, operand)?, arguments.dtype(operand));
        if dims.elements() != channels || dtype != wanted {
            return Err(Error::shape(
                op,
                format!("{} {dims} of {dtype}", operand.name()),
                format!("{channels} of {wanted}, one for each output channel"),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_go_to_the_nearest_byte_in_the_range_and_halves_to_even_ones() {
        let range = ByteRange { zero: 10, least: 10, most: 20 };
        let found = [-3.0, 0.5, 1.5, 2.5, 9.6, 1e9].map(|steps| range.of(steps));
        assert_eq!(found, [10, 10, 12, 12, 20, 20]);
        assert!(ByteRange { zero: 0, least: 2, most: 1 }.check("op").is_err());
    }

    #[test]
    fn channels_lie_in_words_of_four() {
        let dims = |extents: &[usize]| Dims::new(extents).expect("small");
        assert_eq!(packed("op", dims(&[2, 5])).expect("an axis"), dims(&[2, 2]));
        assert!(packed("op", Dims::SCALAR).is_err());
        assert_eq!(numbers(&[1, 2, 0, 0, 0, 0, 0, 1]), [513.0, 16_777_216.0]);
    }
}
