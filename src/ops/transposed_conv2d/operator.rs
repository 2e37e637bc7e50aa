//! A transposed 2D convolution as a node of a graph: `Src`, `Weights`, and what an epilogue wants.

use super::{OP, TransposedConv2d, TransposedConv2dOp};
use crate::dtype::Precision;
use crate::emit::Activation;
use crate::error::Result;
use crate::ops::operator::{Arguments, Lowered, Options, extras, maps};
use std::sync::Arc;

impl Options for TransposedConv2d {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        let ([input, weights], [bias, residual]) = (maps(OP, arguments)?, extras(arguments));
        Ok(Lowered::Op(Arc::new(TransposedConv2dOp::new(input, weights, self, bias, residual, precision)?)))
    }

    fn activated(&self, activation: Activation) -> Option<Self> {
        (self.activation == Activation::None).then_some(TransposedConv2d { activation, ..*self })
    }

    fn adds(&self) -> [bool; 2] {
        [true, true]
    }
}
