//! `MatMulNBits` of com.microsoft: a product by a constant of few bits whose blocks along the rows have a scale each, and
//! perhaps a zero point. It stays packed where blocks are of whole words, and is made floats else.

use super::import::{Import, Op};
use crate::graph::QuantizedMatrix;
use crate::host::HostTensor;
use crate::model::build::{Kind, Operand, Packed, floats, packed_product, product};
use crate::model::constant::{Constant, Integers, dims_of, elements_of};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function as F;
use crate::ops::quantized_gemm::{QuantizedGemm, packed_words};

/// How a matrix of `rows columns` is packed: by columns, and each of them in blocks of rows.
#[derive(Debug, Clone, Copy)]
struct Packing {
    rows: usize,
    columns: usize,
    bits: usize,
    block: usize,
}

/// The zero points of blocks: half of the range where there are none.
enum Zeros<'c> {
    Middle,
    Floats(Vec<f32>),
    Packed(&'c [i64]),
}

pub(super) fn product_by_packed<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    let size = |name: &str, default: i64| usize::try_from(op.int(name, default)).unwrap_or(0);
    let (rows, columns, bits, block) = (size("K", 0), size("N", 0), size("bits", 4), size("block_size", 0));
    let packing = Packing { rows, columns, bits, block };
    let count = elements_of(&[rows, columns])?;
    if ![2, 4, 8].contains(&bits) || count == 0 || !(1..=1 << 16).contains(&block) || op.has(4) {
        return refused!(
            "found {rows}x{columns} of {bits} bits in blocks of {block}, wanted 2, 4 or 8 bits in the order of rows"
        );
    }
    if op.int("weight_prepacked", 0) != 0 {
        return refused!("found weights packed for one device (weight_prepacked), wanted them as they are");
    }
    let mut sources = vec![i.constant(op, 1)?, i.constant(op, 2)?];
    if op.has(3) {
        sources.push(i.constant(op, 3)?);
    }
    let key = format!("{} {packing:?}", i.current);
    let x = i.slot(op, 0)?;
    let bias = if op.has(5) { Some(i.slot(op, 5)?) } else { None };
    if packing.is_of_words() {
        let made = match i.files.made(&key, &sources) {
            Some(known) => known,
            None => {
                let made = packing.in_words(i, &sources)?;
                i.files.keep(&key, &sources, &made);
                made
            }
        };
        let y = packed_product(i, x, &packing.packed(made)?, bias, None)?;
        return i.set(op, 0, y);
    }
    let weights = match i.files.made(&key, &sources).and_then(|known| known.into_iter().next()) {
        Some(known) => known,
        None => {
            let made = packing.unpacked(i, &sources)?;
            i.files.keep(&key, &sources, std::slice::from_ref(&made));
            made
        }
    };
    let weights = Operand::Constant(weights, Kind::F32);
    let y = product(i, if bias.is_some() { "product" } else { "" }, x, weights)?;
    let y = match bias {
        Some(bias) => i.apply("", F::Add, &[y.into(), bias.into()])?,
        None => y,
    };
    i.set(op, 0, y)
}

/// The integers of a constant.
fn bytes(constant: &Constant) -> Result<&[i64], Reason> {
    match constant {
        Constant::Integers(Integers { values, .. }) => Ok(values),
        Constant::Floats(tensor) => refused!("found floats of {}, wanted bytes", tensor.dims()),
    }
}

/// The words of rows of so many bytes, the first `words` of each.
fn words(bytes: &[i64], row: usize, words: usize) -> Vec<u32> {
    let word = |bytes: &[i64]| bytes.iter().rev().fold(0u32, |word, &byte| word << 8 | u32::from(byte as u8));
    bytes.chunks(row.max(1)).flat_map(|row| row.chunks(4).take(words).map(word)).collect()
}

impl Packing {
    fn blocks(self) -> usize {
        self.rows.div_ceil(self.block)
    }

    /// Bytes of a block.
    fn blob(self) -> usize {
        (self.block * self.bits).div_ceil(8)
    }

    /// Whether blocks are of whole words.
    fn is_of_words(self) -> bool {
        (self.block * self.bits).is_multiple_of(32) || self.blocks() == 1
    }

    /// Words, scales and perhaps zero points as a product takes them.
    fn in_words(self, i: &mut Import<'_>, sources: &[Constant]) -> Result<Vec<Constant>, Reason> {
        let Packing { rows, columns, bits, .. } = self;
        let (packed, scales) = self.checked(sources)?;
        i.budget.spend(rows.saturating_mul(columns))?;
        let tensor = |count: usize, words: Vec<u32>| -> Result<Constant, Reason> {
            Ok(Constant::Floats(HostTensor::of(dims_of(&[columns, count])?, words)?))
        };
        let blocks = self.blocks();
        let count = packed_words(bits, rows);
        let scales = scales.floats(&mut i.budget)?.to_nhwc().into_owned();
        let mut made = vec![
            tensor(count, words(packed, blocks * self.blob(), count))?,
            floats(&[columns, blocks], scales)?,
        ];
        match sources.get(2) {
            None => {}
            Some(Constant::Integers(zeros)) => {
                let (row, count) = ((blocks * bits).div_ceil(8), packed_words(bits, blocks));
                made.push(tensor(count, words(&zeros.values, row, count))?);
            }
            Some(zeros) => {
                let zeros = zeros.floats(&mut i.budget)?.to_nhwc().into_owned();
                made.push(floats(&[columns, blocks], zeros)?);
            }
        }
        Ok(made)
    }

    /// What [`Packing::in_words`] made, as a matrix.
    fn packed(self, made: Vec<Constant>) -> Result<Packed, Reason> {
        let mut tensors = Vec::new();
        for made in made {
            match made {
                Constant::Floats(tensor) => tensors.push(tensor),
                Constant::Integers(_) => return refused!("found no elements"),
            }
        }
        let mut tensors = tensors.into_iter();
        let (Some(words), Some(scales)) = (tensors.next(), tensors.next()) else {
            return refused!("found no scales");
        };
        let matrix = QuantizedMatrix { words, scales, zeros: tensors.next() };
        let options = QuantizedGemm { block: Some(self.block), ..QuantizedGemm::new(self.bits) };
        Ok(Packed { matrix, options, rows: self.columns, columns: self.rows })
    }

    /// The bytes and the scales, if there are as many as are needed.
    fn checked(self, sources: &[Constant]) -> Result<(&[i64], &Constant), Reason> {
        let [packed, scales, ..] = sources else { return refused!("found no scales") };
        let (packed, scaled) = (bytes(packed)?, scales.elements());
        let wanted = self.columns * self.blocks();
        if packed.len() != wanted * self.blob() || scaled != wanted {
            return refused!(
                "found {} bytes and {scaled} scales for {}x{}, wanted as many as the blocks need",
                packed.len(),
                self.rows,
                self.columns
            );
        }
        let zeros = match sources.get(2) {
            Some(Constant::Integers(zeros)) => {
                (zeros.values.len(), self.columns * (self.blocks() * self.bits).div_ceil(8))
            }
            Some(zeros) => (zeros.elements(), wanted),
            None => (0, 0),
        };
        if zeros.0 != zeros.1 {
            return refused!("found {} zero points or bytes of them, wanted {}", zeros.0, zeros.1);
        }
        Ok((packed, scales))
    }

    /// The number at a place of bytes, the first in the lowest bits.
    fn number(self, bytes: &[i64], at: usize) -> f32 {
        let byte = bytes.get(at * self.bits / 8).copied().unwrap_or(0) as u8;
        let shift = at * self.bits % 8;
        f32::from(u16::from(byte >> shift) & ((1 << self.bits) - 1))
    }

    /// The matrix that bytes, scales and perhaps zero points stand for.
    fn unpacked(self, i: &mut Import<'_>, sources: &[Constant]) -> Result<Constant, Reason> {
        let Packing { rows, columns, bits, block } = self;
        let (packed, scales) = self.checked(sources)?;
        let (zeros, scales) =
            (sources.get(2..).unwrap_or_default(), scales.floats(&mut i.budget)?.to_nhwc().into_owned());
        let zeros = match zeros {
            [] => Zeros::Middle,
            [Constant::Integers(zeros), ..] => Zeros::Packed(&zeros.values),
            [zeros, ..] => Zeros::Floats(zeros.floats(&mut i.budget)?.to_nhwc().into_owned()),
        };
        // Blocks, and the zero points of a column, are whole bytes.
        let (blocks, blob) = (self.blocks(), self.blob());
        let wide = (blocks * bits).div_ceil(8);
        i.budget.spend(rows.saturating_mul(columns).saturating_mul(8))?;
        let mut weights = vec![0.0f32; rows * columns];
        let own = packed.chunks(blob).zip(&scales).enumerate();
        for (index, (packed, scale)) in own {
            let (column, part) = (index / blocks, index % blocks);
            let zero = match &zeros {
                Zeros::Middle => (1 << (bits - 1)) as f32,
                Zeros::Floats(list) => list.get(index).copied().unwrap_or(0.0),
                Zeros::Packed(list) => self.number(list.get(column * wide..).unwrap_or(&[]), part),
            };
            let first = part * block;
            let rows = weights.chunks_mut(columns).skip(first).take(block);
            for (at, weight) in rows.filter_map(|row| row.get_mut(column)).enumerate() {
                *weight = (self.number(packed, at) - zero) * scale;
            }
        }
        floats(&[rows, columns], weights)
    }
}
