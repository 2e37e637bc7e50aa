//! A transposed 2D convolution as a node of a graph: `Src`, `Weights`, and what an epilogue wants.

use super::{OP, TransposedConv2d, TransposedConv2dOp};
use crate::dtype::Precision;
use crate::emit::Activation;
use crate::error::Result;
use crate::ops::operator::{Arguments, Lowered, Operator, extras, maps, same};
use std::sync::Arc;

impl Operator for TransposedConv2d {
    fn name(&self) -> &'static str {
        OP
    }

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        let ([input, weights], [bias, residual]) = (maps(OP, arguments)?, extras(arguments));
        Ok(Lowered::Op(Arc::new(TransposedConv2dOp::new(input, weights, self, bias, residual, precision)?)))
    }

    fn with_activation(&self, activation: Activation) -> Option<Arc<dyn Operator>> {
        let free = self.activation == Activation::None;
        free.then(|| Arc::new(TransposedConv2d { activation, ..*self }) as Arc<dyn Operator>)
    }

    fn adds_bias(&self) -> bool {
        true
    }

    fn adds_residual(&self) -> bool {
        true
    }

    fn same(&self, other: &dyn Operator) -> bool {
        same(self, other)
    }
}
