//! Nests that read or write bytes.

use super::compose::{ReadFrom, SourceAt, Sources};
use super::nest::Nest;
use super::{LoopsOp, OpNest, OperandSet};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Bits;
use crate::error::{Error, Result};
use crate::ops::bytes::{self, ByteRange};
use crate::ops::dequantize::{Dequantize, DequantizeOp};
use crate::ops::normalize::{Normalize, NormalizeOp};
use crate::ops::op::Op;
use crate::ops::quantize::{Quantize, QuantizeOp};
use crate::ops::softmax::{Softmax, SoftmaxOp};
use std::sync::Arc;

fn nest_of(op: &dyn Op) -> Result<Nest> {
    let nest = op.nest().map(|OpNest { nest, .. }| nest);
    nest.ok_or_else(|| Error::Internal(format!("{} is no nest", op.name())))
}

/// `reader` of what `writer` writes, which may be kept.
fn after(reader: &Nest, writer: &Nest, keeps: bool) -> Result<Nest> {
    let from: Vec<SourceAt> = (0..writer.sources().len()).map(SourceAt::whole).collect();
    let sources = Sources { all: writer.sources(), reader: &[ReadFrom::Written(0)], writer: &from, keeps };
    reader.after(writer, &sources)
}

/// Normalised rows as bytes; bytes as numbers, which are softmaxed, also to bytes; a map of bytes of which both results are wanted.
pub(super) fn examples(precision: Precision) -> Result<Vec<LoopsOp>> {
    let mut all = Vec::new();
    for channels in [8, 5] {
        let dims = Dims::new(&[2, 3, channels])?;
        let bytes = Quantize { scale: Bits(0.03), range: ByteRange { zero: 100, least: 2, most: 250 } };
        let bytes = nest_of(&QuantizeOp::new(dims, bytes)?)?;
        let numbers = Dequantize { scale: Bits(0.02), zero: 90, channels };
        let numbers = nest_of(&DequantizeOp::new(bytes::packed(super::OP, dims)?, numbers)?)?;
        let options = Normalize { axes: vec![2], epsilon: Bits(1e-3), centred: true };
        let normalised = nest_of(&NormalizeOp::new(dims, &options, false, false, Precision::F32)?)?;
        let softmax = nest_of(&SoftmaxOp::new(dims, &Softmax::default(), Precision::F32)?)?;
        let shares = after(&softmax, &numbers, false)?;
        for (nest, maps) in [
            (after(&bytes, &normalised, false)?, OperandSet::NONE),
            (after(&bytes, &normalised, false)?, OperandSet { sources: 1, results: 0 }),
            (after(&bytes, &shares, false)?, OperandSet::NONE),
            (after(&numbers, &bytes, false)?, OperandSet::NONE),
            (shares, OperandSet { sources: 0, results: 1 }),
        ] {
            all.push(LoopsOp::new(Arc::new(nest), OperandSet::ALL, maps, precision)?);
        }
    }
    // Bytes that another unit reads too.
    let dims = Dims::new(&[3, 8])?;
    let bytes = Quantize { scale: Bits(0.03), range: ByteRange::all(128) };
    let numbers = Dequantize { scale: Bits(0.03), zero: 128, channels: 8 };
    let bytes = nest_of(&QuantizeOp::new(dims, bytes)?)?;
    let numbers = nest_of(&DequantizeOp::new(Dims::new(&[3, 2])?, numbers)?)?;
    let both = after(&numbers, &bytes, true)?;
    all.push(LoopsOp::new(Arc::new(both), OperandSet::ALL, OperandSet::NONE, precision)?);
    Ok(all)
}
