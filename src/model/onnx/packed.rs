//! `MatMulNBits` of com.microsoft: a product by a constant of few bits whose blocks along the rows have a scale each, and
//! perhaps a zero point. The constant is made floats while the file is read.

use super::import::{Import, Op};
use crate::model::build::{Kind, Operand, floats, product};
use crate::model::constant::{Constant, Integers, elements_of};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function as F;

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
    let weights = match i.files.made(&key, &sources) {
        Some(known) => known,
        None => {
            let made = packing.unpacked(i, &sources)?;
            i.files.keep(&key, &sources, &made);
            made
        }
    };
    let weights = Operand::Constant(weights, Kind::F32);
    let x = i.slot(op, 0)?;
    let y = product(i, if op.has(5) { "product" } else { "" }, x, weights)?;
    if !op.has(5) {
        return i.set(op, 0, y);
    }
    let bias = i.slot(op, 5)?;
    let y = i.apply("", F::Add, &[y.into(), bias.into()])?;
    i.set(op, 0, y)
}

/// The integers of a constant.
fn bytes(constant: &Constant) -> Result<&[i64], Reason> {
    match constant {
        Constant::Integers(Integers { values, .. }) => Ok(values),
        Constant::Floats(tensor) => refused!("found floats of {}, wanted bytes", tensor.dims()),
    }
}

impl Packing {
    /// The number at a place of bytes, the first in the lowest bits.
    fn number(self, bytes: &[i64], at: usize) -> f32 {
        let byte = bytes.get(at * self.bits / 8).copied().unwrap_or(0) as u8;
        let shift = at * self.bits % 8;
        f32::from(u16::from(byte >> shift) & ((1 << self.bits) - 1))
    }

    /// The matrix that bytes, scales and perhaps zero points stand for.
    fn unpacked(self, i: &mut Import<'_>, sources: &[Constant]) -> Result<Constant, Reason> {
        let Packing { rows, columns, bits, block } = self;
        let [packed, scales, zeros @ ..] = sources else { return refused!("found no scales") };
        let (packed, scales) = (bytes(packed)?, scales.floats(&mut i.budget)?.to_nhwc().into_owned());
        let zeros = match zeros {
            [] => Zeros::Middle,
            [Constant::Integers(zeros), ..] => Zeros::Packed(&zeros.values),
            [zeros, ..] => Zeros::Floats(zeros.floats(&mut i.budget)?.to_nhwc().into_owned()),
        };
        let blocks = rows.div_ceil(block);
        // Blocks, and the zero points of a column, are whole bytes.
        let (blob, wide) = ((block * bits).div_ceil(8), (blocks * bits).div_ceil(8));
        if packed.len() != columns * blocks * blob || scales.len() != columns * blocks {
            return refused!(
                "found {} bytes and {} scales for {rows}x{columns}, wanted as many as the blocks need",
                packed.len(),
                scales.len()
            );
        }
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
