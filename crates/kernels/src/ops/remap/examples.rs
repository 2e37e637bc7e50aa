//! Problems that between them use every kernel, rule and width.

use super::axes::Axis;
use super::{OP, RemapOp, Rule, axes};
use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::emit::Bits;
use crate::error::Result;
use crate::ops::examples::Numbers;
use crate::ops::op::Op;
use std::sync::Arc;

/// The examples in `precision`.
pub(crate) fn examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let mut examples: Vec<Box<dyn Op>> = Vec::new();
    for channels in [8, 5] {
        examples.push(Box::new(transposed(Dims::new(&[2, 6, 7, channels])?, precision)?));
        for rule in [Rule::Fill(Bits(0.5)), Rule::Reflect, Rule::Symmetric, Rule::Edge] {
            examples.push(Box::new(bordered(Dims::new(&[2, 6, 7, channels])?, rule, precision)?));
        }
    }
    let pixels = Dims::new(&[2, 9, 67])?;
    examples.push(Box::new(transposed(pixels, precision)?));
    let source = Dims::new(&[1, 3, 4, 5])?;
    let tiled = axes::whole(source).into_iter().map(|axis| Axis { extent: 2 * axis.extent, ..axis });
    let target = Dims::new(&[2, 6, 8, 10])?;
    examples.push(Box::new(RemapOp::new(source, target, tiled.collect(), Rule::Wrap, precision)?));
    // Rows of integers.
    for word in [DType::I32, DType::U32] {
        examples.push(Box::new(transposed(pixels, precision)?.of(word)));
        for channels in [8, 5] {
            let source = Dims::new(&[1, 3, 4, channels])?;
            examples.push(Box::new(bordered(source, Rule::Fill(Bits(7.0)), precision)?.of(word)));
        }
    }
    Ok(examples)
}

/// Rows and columns exchanged.
fn transposed(source: Dims, precision: Precision) -> Result<RemapOp> {
    let mut axes = axes::whole(source);
    axes.swap(1, 2);
    let extents: Vec<usize> = axes.iter().map(|axis| axis.extent).collect();
    RemapOp::new(source, Dims::new(&extents)?, axes, Rule::Within, precision)
}

/// Two rows and columns before and one after.
fn bordered(source: Dims, rule: Rule, precision: Precision) -> Result<RemapOp> {
    let mut axes = axes::whole(source);
    for axis in &mut axes[1..3] {
        axis.extent += 3;
        axis.start = -2;
    }
    let extents: Vec<usize> = axes.iter().map(|axis| axis.extent).collect();
    RemapOp::new(source, Dims::new(&extents)?, axes, rule, precision)
}

const NAMES: &str = "n,h,w,c";

/// A border of zeros.
pub(crate) const NUMBERS: Numbers = Numbers { names: NAMES, usual: &[1, 112, 112, 64], op: of };

fn of(extents: &[usize], _kernel: Option<&str>, precision: Precision) -> Result<Arc<dyn Op>> {
    let &[n, h, w, c] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    Ok(Arc::new(bordered(Dims::new(&[n, h, w, c])?, Rule::Fill(Bits(0.0)), precision)?))
}
