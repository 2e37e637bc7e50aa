//! Selections as nodes of a graph: `Src`, and `Arg(0)` the indices.

use super::{Gather, GatherNd, GatherOp, OP};
use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::op::Op;
use crate::ops::operator::{Arguments, Lowered, Options};
use std::sync::Arc;

fn operands(arguments: Arguments<'_>) -> Result<[Dims; 2]> {
    Ok([arguments.need(OP, Operand::Src)?, arguments.need(OP, Operand::Arg(0))?])
}

fn words(arguments: Arguments<'_>) -> [DType; 2] {
    [Operand::Src, Operand::Arg(0)].map(|operand| arguments.dtype(operand).word())
}

fn target(op: &dyn Op) -> Vec<Dims> {
    op.as_any().downcast_ref::<GatherOp>().map(|op| op.target).into_iter().collect()
}

impl Options for Gather {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        let [source, indices] = operands(arguments)?;
        let op = GatherOp::new(source, indices, *self)?.of(words(arguments));
        Ok(Lowered::Op(Arc::new(op.in_precision(precision))))
    }

    fn outputs(&self, _arguments: Arguments<'_>, op: &dyn Op) -> Vec<Dims> {
        target(op)
    }

    fn types(&self, arguments: Arguments<'_>, _op: &dyn Op) -> Vec<DType> {
        vec![arguments.dtype(Operand::Src)]
    }
}

impl Options for GatherNd {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        let [source, indices] = operands(arguments)?;
        let op = GatherOp::nd(source, indices)?.of(words(arguments));
        Ok(Lowered::Op(Arc::new(op.in_precision(precision))))
    }

    fn outputs(&self, _arguments: Arguments<'_>, op: &dyn Op) -> Vec<Dims> {
        target(op)
    }

    fn types(&self, arguments: Arguments<'_>, _op: &dyn Op) -> Vec<DType> {
        vec![arguments.dtype(Operand::Src)]
    }
}
