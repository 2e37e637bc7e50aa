//! A pooling as a node of a graph: `Src` alone. Of the whole map it is a reduction.

use super::{OP, Pool, PoolOp, Pooling};
use crate::dtype::Precision;
use crate::emit::{Activation, Operand};
use crate::error::Result;
use crate::ops::operator::{Arguments, Lowered, Options};
use crate::ops::reduce::{Reduce, ReduceOp, Reduction};
use std::sync::Arc;

/// Elements of a window that is a whole map from which on it is reduced by several invocations.
const LONG_WINDOW: usize = 32;

impl Options for Pool {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        let dims = arguments.need(OP, Operand::Src)?;
        let op = PoolOp::new(dims.shape(), self, precision)?;
        if op.taps() >= LONG_WINDOW
            && op.is_whole()
            && self.activation == Activation::None
            && dims.rank() == 4
        {
            let reduction = match self.pooling {
                Pooling::Max => Reduction::Max,
                Pooling::Average => Reduction::Mean,
            };
            let options = Reduce { reduction, axes: vec![1, 2], keep_dims: true };
            return Ok(Lowered::Op(Arc::new(ReduceOp::new(dims, &options, precision)?)));
        }
        Ok(Lowered::Op(Arc::new(op)))
    }

    fn activated(&self, activation: Activation) -> Option<Self> {
        // A reduction has no epilogue, and what it gives is small.
        let long = self.window[0].saturating_mul(self.window[1]) >= LONG_WINDOW;
        let free = self.activation == Activation::None && activation != Activation::PRelu && !long;
        free.then_some(Pool { activation, ..*self })
    }
}
