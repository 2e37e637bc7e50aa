//! A depthwise convolution as a node of a graph: `Src`, `Weights`, and where given `Bias`, `Slope` and `Residual`.

use super::{Depthwise, OP};
use crate::dtype::Precision;
use crate::emit::{Activation, Residual};
use crate::error::Result;
use crate::ops::activated;
use crate::ops::operator::{Arguments, Lowered, Operator, Options};
use crate::shape::Border;
use std::sync::Arc;

impl Options for Depthwise {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        activated::lower(self, Residual::AfterActivation, arguments, precision)
    }

    fn with_border(&self, border: Border, extents: [usize; 4]) -> Option<Self> {
        let zeros = border == Border::Zeros;
        Some(Depthwise { padding: self.padding.with_border(extents).filter(|_| zeros)?, ..*self })
    }

    fn activated(&self, activation: Activation) -> Option<Self> {
        (self.activation == Activation::None).then_some(Depthwise { activation, ..*self })
    }

    fn with_activation_last(&self, activation: Activation) -> Option<Arc<dyn Operator>> {
        activated::last(self, activation)
    }

    fn adds(&self) -> [bool; 2] {
        [true, true]
    }
}
