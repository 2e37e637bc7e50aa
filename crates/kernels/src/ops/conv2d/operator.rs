//! A 2D convolution as a node of a graph: `Src`, `Weights`, and where given `Bias`, `Slope` and `Residual`.

use super::{Conv2d, OP};
use crate::dtype::Precision;
use crate::emit::{Activation, Residual};
use crate::error::Result;
use crate::ops::activated;
use crate::ops::operator::{Arguments, Lowered, Operator, Options};
use crate::shape::{Border, Padding};
use std::sync::Arc;

impl Options for Conv2d {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        activated::lower(self, Residual::AfterActivation, arguments, precision)
    }

    fn with_border(&self, border: Border, extents: [usize; 4]) -> Option<Self> {
        // More of what lies there, or around an input that has nothing around it.
        let bare = matches!(
            self.padding,
            Padding::Valid | Padding::Explicit { top: 0, bottom: 0, left: 0, right: 0 }
        );
        let adds = self.border == border && border == Border::Zeros;
        if !adds && !bare {
            return None;
        }
        Some(Conv2d { padding: self.padding.with_border(extents)?, border, ..*self })
    }

    fn activated(&self, activation: Activation) -> Option<Self> {
        (self.activation == Activation::None).then_some(Conv2d { activation, ..*self })
    }

    fn with_activation_last(&self, activation: Activation) -> Option<Arc<dyn Operator>> {
        activated::last(self, activation)
    }

    fn adds(&self) -> [bool; 2] {
        [true, true]
    }
}
