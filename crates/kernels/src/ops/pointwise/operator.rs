//! A 1x1 convolution as a node of a graph: `Src`, `Weights`, and where given `Bias`, `Slope` and `Residual`.

use super::{OP, Pointwise};
use crate::dtype::Precision;
use crate::emit::{Activation, Residual};
use crate::error::Result;
use crate::ops::activated;
use crate::ops::operator::{Arguments, Lowered, Operator, Options};
use std::sync::Arc;

impl Options for Pointwise {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        activated::lower(self, Residual::AfterActivation, arguments, precision)
    }

    fn activated(&self, activation: Activation) -> Option<Self> {
        (self.activation == Activation::None).then_some(Pointwise { activation })
    }

    fn with_activation_last(&self, activation: Activation) -> Option<Arc<dyn Operator>> {
        activated::last(self, activation)
    }

    fn adds(&self) -> [bool; 2] {
        [true, true]
    }
}
