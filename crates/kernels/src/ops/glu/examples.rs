//! Problems of whole vec4s and others, of the functions that gates have.

use super::{GluOp, OP};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::error::Result;
use crate::ops::elementwise::{Function, Program, Source, Step};
use crate::ops::examples::Numbers;
use crate::ops::op::Op;
use std::sync::Arc;

/// `silu(a) b`.
fn swiglu() -> Result<Program> {
    let step = |function, arguments: [Source; 2]| Step { function, arguments: arguments.to_vec() };
    let (a, b) = (Source::Input(0), Source::Input(1));
    Program::new(vec![
        Step { function: Function::Sigmoid, arguments: vec![a] },
        step(Function::Mul, [a, Source::Step(0)]),
        step(Function::Mul, [Source::Step(1), b]),
    ])
}

/// The examples in `precision`.
pub(crate) fn examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let gelu = Program::new(vec![
        Step { function: Function::Gelu, arguments: vec![Source::Input(0)] },
        Step { function: Function::Mul, arguments: vec![Source::Step(0), Source::Input(1)] },
    ])?;
    Ok(vec![
        Box::new(GluOp::new(swiglu()?, Dims::new(&[3, 5, 16])?, precision)?),
        Box::new(GluOp::new(gelu, Dims::new(&[7, 10])?, precision)?),
    ])
}

const NAMES: &str = "rows,n";

/// The gate of a transformer of 4096 channels.
pub(crate) const NUMBERS: Numbers =
    Numbers { names: NAMES, usual: &[64, 11008], op: |extents, _, precision| of(extents, precision) };

fn of(extents: &[usize], precision: Precision) -> Result<Arc<dyn Op>> {
    let &[rows, n] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    Ok(Arc::new(GluOp::new(swiglu()?, Dims::new(&[rows, 2 * n])?, precision)?))
}
