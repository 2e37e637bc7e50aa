//! A concatenation as a node of a graph: `Arg(0)`, `Arg(1)` and so on.

use super::{Concat, ConcatOp, OP};
use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::op::Op;
use crate::ops::operator::{Arguments, Lowered, Options, View, WithoutElements};
use std::sync::Arc;

impl Options for Concat {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        let inputs = (0..arguments.inputs.len()).map(|index| {
            let index = u8::try_from(index).unwrap_or(u8::MAX);
            arguments.need(OP, Operand::Arg(index))
        });
        let inputs = inputs.collect::<Result<Vec<Dims>>>()?;
        let op = ConcatOp::new(&inputs, self.axis, precision)?.of(arguments.dtype(Operand::Arg(0)).word());
        Ok(match inputs[..] {
            [dims] => Lowered::View(View { dims, offset: 0 }),
            _ => Lowered::Op(Arc::new(op)),
        })
    }

    fn outputs(&self, _arguments: Arguments<'_>, op: &dyn Op) -> Vec<Dims> {
        op.as_any().downcast_ref::<ConcatOp>().map(|op| op.target).into_iter().collect()
    }

    fn without_elements(&self, _arguments: Arguments<'_>) -> Option<WithoutElements> {
        Some(WithoutElements::LeftOut)
    }

    fn types(&self, arguments: Arguments<'_>, _op: &dyn Op) -> Vec<DType> {
        // Booleans, halves and narrow integers lie in words of f32, so that others of them may follow.
        let first = arguments.dtype(Operand::Arg(0));
        let alike = arguments.inputs.iter().all(|argument| argument.dtype == first);
        vec![if alike { first } else { first.word() }]
    }
}
