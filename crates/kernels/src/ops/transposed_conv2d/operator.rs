//! A transposed 2D convolution as a node of a graph: `Src`, `Weights`, and what an epilogue wants.

use super::{OP, TransposedConv2d};
use crate::dtype::Precision;
use crate::emit::{Activation, Residual};
use crate::error::Result;
use crate::ops::activated;
use crate::ops::operator::{Arguments, Lowered, Options};

impl Options for TransposedConv2d {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        activated::lower(self, Residual::AfterActivation, arguments, precision)
    }

    fn activated(&self, activation: Activation) -> Option<Self> {
        (self.activation == Activation::None).then_some(TransposedConv2d { activation, ..*self })
    }

    fn adds(&self) -> [bool; 2] {
        [true, true]
    }
}
