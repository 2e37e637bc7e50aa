//! `y[r, n] = f(sum_k x[r, k] (q[n, k] - zero[n, b]) scale[n, b] + bias[n]) + residual[r, n]`, with the block `b = k / block`
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x` (`src`) | `... k`: rows of `k` | rows |
//! | `q` (`weights`) | `n words`: integers of 2, 4 or 8 bits from 0 on, packed | rows of u32 |
//! | `scale` (`scales`) | `n blocks` | rows |
//! | `zero` (`zeros`) | `n blocks` of f32, or packed as the weights are: `n words`; one number in the options if it is left out | rows of f32 or u32 |
//! | `bias`, `slope` | `n` | |
//! | `y` (`dst`), `residual` | `... n` | rows |
//!
//! Integer `i` of a row lies in word `i / (32 / bits)`, `bits * (i % (32 / bits))` bits from the lowest; the last word of a row
//! is filled up. A word's integers share a scale: `block` is a multiple of `32 / bits`, or a row is one block. The last block
//! of a row may be short.
//!
//! Weights stay packed in memory. A kernel unpacks them in registers or in local memory. Sums are in f32; with f16 storage,
//! `x`, `residual` and `y` are rows of halves.
//!
//! With [`QuantizedGemm::rounded`] the CPU may multiply bytes: `x[r, k] ~ s[r, k / 32] i[r, k]` with `s` the largest of 32 numbers by
//! 127, as llama.cpp does it.
//!
//! A NaN or an infinity of `x` reaches its row of `y`, one of a scale or a zero point its column.

mod arguments;
mod cpu;
mod examples;
mod operator;
mod oracle;
mod packing;
mod plan;
mod planes;
mod row;
mod tiled;

pub(super) use examples::{NUMBERS, examples};
pub use packing::{pack, packed_words};

use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::emit::{Activation, Bits, Epilogue};
use crate::error::{Error, Result};

const OP: &str = "quantized_gemm";

/// Options of a matrix product with quantized weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QuantizedGemm {
    /// Bits of a weight: 2, 4 or 8.
    pub bits: usize,
    /// Consecutive weights of a row that share a scale and a zero point: a multiple of `32 / bits`. `None` means all of a row.
    pub block: Option<usize>,
    /// The zero point of all weights, where no input has one for each block.
    pub zero: Bits,
    /// Applied to the biased sum.
    pub activation: Activation,
    /// Whether kernels may round the rows of `x` to bytes, each 32 numbers by a scale of their own, for weights of 4 and 8 bits: each
    /// number is then off by at most 1/254 of the largest of its 32. Kernels of the CPU do so for fewer than 16 rows, where
    /// the machine has AVX-512 VNNI or AVX2.
    pub rounded: bool,
}

impl QuantizedGemm {
    /// Weights of so many bits with a scale for each row. The zero point is the middle of the range, `2^(bits - 1)`.
    ///
    /// ```
    /// use diptych::nn::QuantizedGemm;
    ///
    /// let options = QuantizedGemm { block: Some(32), ..QuantizedGemm::new(4) };
    /// assert_eq!(options.zero.0, 8.0);
    /// ```
    pub fn new(bits: usize) -> Self {
        let zero = Bits(2f32.powi(bits.clamp(1, 32) as i32 - 1));
        QuantizedGemm { bits, block: None, zero, activation: Activation::None, rounded: false }
    }
}

/// The zero points of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Zeros {
    /// One for all.
    Same(Bits),
    /// An f32 for each.
    Floats,
    /// Integers packed as the weights are.
    Packed,
}

/// A matrix product of concrete shapes with quantized weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QuantizedGemmOp {
    /// Rows of `x`, columns of the result, and terms of each sum.
    m: usize,
    n: usize,
    k: usize,
    bits: usize,
    /// Weights of a block: at most `k`.
    block: usize,
    zeros: Zeros,
    /// Whether rows of `x` may be rounded.
    rounded: bool,
    epilogue: Epilogue,
    /// The extents of `x` and of the result.
    src: Dims,
    dst: Dims,
    precision: Precision,
}

/// What a product is made of.
struct OperandDims {
    src: Dims,
    weights: Dims,
    scales: Dims,
    zeros: Option<(Dims, DType)>,
    bias: bool,
    residual: bool,
}

impl QuantizedGemmOp {
    /// Checks the extents.
    fn new(options: &QuantizedGemm, given: &OperandDims, precision: Precision) -> Result<Self> {
        let refuse = |found: String, wanted: String| Err(Error::shape(OP, found, wanted));
        let QuantizedGemm { bits, block, zero, activation, rounded } = *options;
        if ![2, 4, 8].contains(&bits) {
            return refuse(format!("weights of {bits} bits"), "2, 4 or 8 bits".to_owned());
        }
        let (&[.., k], &[n, words]) = (given.src.extents(), given.weights.extents()) else {
            let found = format!("src {} and weights {}", given.src, given.weights);
            return refuse(found, "rows, and weights of two extents: columns and words".to_owned());
        };
        let wanted = packed_words(bits, k);
        if k == 0 || words != wanted {
            let found = format!("{words} words in a row of weights, and rows of {k} elements");
            return refuse(found, format!("{wanted} words, {} weights of {bits} bits in each", 32 / bits));
        }
        if let Some(block) = block
            && (block == 0 || block < k && !block.is_multiple_of(32 / bits))
        {
            let wanted = format!("a multiple of {}, so that a word has one scale", 32 / bits);
            return refuse(format!("blocks of {block} weights of {bits} bits"), wanted);
        }
        let block = block.map_or(k, |block| block.min(k));
        let blocks = k.div_ceil(block);
        if given.scales.extents() != [n, blocks] {
            let found = format!("scales {} for {n} rows of {k} weights", given.scales);
            return refuse(found, format!("{n}x{blocks}, one for each block of {block}"));
        }
        let zeros = match given.zeros {
            None if !zero.0.is_finite() => {
                return refuse(format!("a zero point of {}", zero.0), "a finite one".to_owned());
            }
            None => Zeros::Same(zero),
            Some((dims, dtype)) => {
                let (zeros, row) = match dtype {
                    DType::F32 => (Zeros::Floats, blocks),
                    DType::U32 => (Zeros::Packed, packed_words(bits, blocks)),
                    _ => {
                        return refuse(format!("zeros of {dtype}"), "f32, or u32 that are packed".to_owned());
                    }
                };
                if dims.extents() != [n, row] {
                    let wanted = format!("{n}x{row}, for {blocks} blocks of each of {n} rows");
                    return refuse(format!("zeros {dims} of {dtype}"), wanted);
                }
                zeros
            }
        };
        let mut extents = given.src.extents().to_vec();
        if let Some(last) = extents.last_mut() {
            *last = n;
        }
        let dst = Dims::new(&extents)?;
        let m = given.src.elements() / k;
        let epilogue = Epilogue::new(given.bias, activation, given.residual.into());
        let rounded = rounded && bits != 2;
        let src = given.src;
        Ok(QuantizedGemmOp { m, n, k, bits, block, zeros, rounded, epilogue, src, dst, precision })
    }

    /// Blocks of a row.
    const fn blocks(&self) -> usize {
        self.k.div_ceil(self.block)
    }

    /// Weights of a word.
    const fn per_word(&self) -> usize {
        packing::per_word(self.bits)
    }

    /// Words of a row of weights.
    const fn words(&self) -> usize {
        packed_words(self.bits, self.k)
    }

    /// Words of a row of packed zero points.
    const fn zero_words(&self) -> usize {
        packed_words(self.bits, self.blocks())
    }

    /// The largest integer of a weight.
    const fn mask(&self) -> u32 {
        (1 << self.bits) - 1
    }

    /// Words of a block, of which a row's last one may have fewer.
    const fn block_words(&self) -> usize {
        packed_words(self.bits, self.block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dims(extents: &[usize]) -> Dims {
        Dims::new(extents).expect("small")
    }

    fn of(
        options: QuantizedGemm,
        src: &[usize],
        weights: &[usize],
        scales: &[usize],
    ) -> Result<QuantizedGemmOp> {
        let (src, weights, scales) = (dims(src), dims(weights), dims(scales));
        let given = OperandDims { src, weights, scales, zeros: None, bias: false, residual: false };
        QuantizedGemmOp::new(&options, &given, Precision::F32)
    }

    #[test]
    fn extents_that_do_not_fit_are_named() {
        let four = QuantizedGemm::new(4);
        let blocks = QuantizedGemm { block: Some(16), ..four };
        let op = of(blocks, &[2, 3, 40], &[5, 5], &[5, 3]).expect("a product");
        assert_eq!((op.m, op.n, op.k, op.blocks(), op.words()), (6, 5, 40, 3, 5));
        assert_eq!(op.dst, dims(&[2, 3, 5]));
        for (found, wanted) in [
            (of(QuantizedGemm { bits: 3, ..four }, &[2, 8], &[5, 1], &[5, 1]), "3 bits"),
            (of(four, &[2, 8], &[5, 2], &[5, 1]), "2 words in a row of weights, and rows of 8 elements"),
            (
                of(QuantizedGemm { block: Some(12), ..four }, &[2, 40], &[5, 5], &[5, 4]),
                "blocks of 12 weights",
            ),
            (of(QuantizedGemm { block: Some(0), ..four }, &[2, 40], &[5, 5], &[5, 4]), "blocks of 0 weights"),
            (of(blocks, &[2, 40], &[5, 5], &[5, 2]), "wanted 5x3, one for each block of 16"),
            (
                of(QuantizedGemm { zero: Bits(f32::NAN), ..four }, &[2, 8], &[5, 1], &[5, 1]),
                "zero point of NaN",
            ),
        ] {
            let found = found.expect_err(wanted).to_string();
            assert!(found.contains(wanted), "{found}");
        }
        let given = |zeros| OperandDims {
            src: dims(&[2, 40]),
            weights: dims(&[5, 5]),
            scales: dims(&[5, 3]),
            zeros: Some(zeros),
            bias: false,
            residual: false,
        };
        let with = |zeros| QuantizedGemmOp::new(&blocks, &given(zeros), Precision::F32);
        assert_eq!(with((dims(&[5, 3]), DType::F32)).expect("floats").zeros, Zeros::Floats);
        assert_eq!(with((dims(&[5, 1]), DType::U32)).expect("packed").zeros, Zeros::Packed);
        assert!(with((dims(&[5, 3]), DType::U32)).is_err() && with((dims(&[5, 3]), DType::I32)).is_err());
    }
}
