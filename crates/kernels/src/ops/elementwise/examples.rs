//! Problems that between them use every kernel, every function and every edge.

use super::{ElementwiseOp, Function, OP, Program, Source, Step};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Bits;
use crate::error::Result;
use crate::ops::examples::Numbers;
use crate::ops::op::Op;
use std::sync::Arc;

/// The examples in `precision`.
pub(crate) fn examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let mut examples: Vec<Box<dyn Op>> = Vec::new();
    let mut push = |program: Program, inputs: &[&[usize]]| -> Result<()> {
        let dims = inputs.iter().map(|extents| Dims::new(extents)).collect::<Result<Vec<_>>>()?;
        examples.push(Box::new(ElementwiseOp::new(program, &dims, precision)?));
        Ok(())
    };
    for &function in Function::ALL {
        let sources = (0..function.arity() as u8).map(Source::Input).collect();
        let shape: &[usize] = &[2, 3, 5, 6];
        push(Program::of(function, sources)?, &[shape, shape, shape][..function.arity()])?;
    }
    // A scale and an offset per channel, then an activation; a number; a factor per pixel; rank 6.
    let step = |function, arguments: &[Source]| Step { function, arguments: arguments.to_vec() };
    let (x, scale, offset) = (Source::Input(0), Source::Input(1), Source::Input(2));
    let scaled = Program::new(vec![
        step(Function::Mul, &[x, scale]),
        step(Function::Add, &[Source::Step(0), offset]),
        step(Function::Exp, &[Source::Step(1)]),
        step(Function::Mul, &[Source::Step(2), Source::Number(Bits(0.5))]),
    ])?;
    push(scaled.clone(), &[&[2, 3, 5, 7], &[7], &[3, 1, 1]])?;
    push(scaled.clone(), &[&[2, 3, 5, 8], &[8], &[1, 5, 1]])?;
    push(scaled, &[&[2, 3, 2, 5, 1, 7], &[3, 2, 1, 2, 7], &[2, 1, 1, 1, 1, 1]])?;
    Ok(examples)
}

const NAMES: &str = "n,h,w,c";

/// A sum of two maps.
pub(crate) const NUMBERS: Numbers = Numbers { names: NAMES, usual: &[1, 56, 56, 64], op: of };

fn of(extents: &[usize], _kernel: Option<&str>, precision: Precision) -> Result<Arc<dyn Op>> {
    if extents.len() != 4 {
        return Numbers::refuse(OP, NAMES, extents);
    }
    let program = Program::of(Function::Add, vec![Source::Input(0), Source::Input(1)])?;
    let dims = Dims::new(extents)?;
    Ok(Arc::new(ElementwiseOp::new(program, &[dims, dims], precision)?))
}
