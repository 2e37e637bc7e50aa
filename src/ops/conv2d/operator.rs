//! A 2D convolution as a node of a graph: `Src`, `Weights`, and where given `Bias`, `Slope` and `Residual`.

use super::{Conv2d, Conv2dOp, OP};
use crate::dtype::Precision;
use crate::emit::{Activation, Residual};
use crate::error::Result;
use crate::ops::activated::{ActivatedLast, ConvolutionOptions};
use crate::ops::op::Op;
use crate::ops::operator::{self, Arguments, Lowered, Operator, same};
use crate::shape::{Border, Padding, Shape};
use std::sync::Arc;

impl Operator for Conv2d {
    fn name(&self) -> &'static str {
        OP
    }

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        let shapes = operator::maps(OP, arguments)?;
        let [bias, residual] = operator::extras(arguments);
        Ok(Lowered::Op(self.op(shapes, (bias, residual.into()), precision)?))
    }

    fn with_border(&self, border: Border, extents: [usize; 4]) -> Option<Arc<dyn Operator>> {
        Some(Arc::new(self.bordered(border, extents)?))
    }

    fn with_activation(&self, activation: Activation) -> Option<Arc<dyn Operator>> {
        let free = self.activation == Activation::None;
        free.then(|| Arc::new(Conv2d { activation, ..*self }) as Arc<dyn Operator>)
    }

    fn with_activation_last(&self, activation: Activation) -> Option<Arc<dyn Operator>> {
        let free = self.activation == Activation::None;
        free.then(|| Arc::new(ActivatedLast(Conv2d { activation, ..*self })) as Arc<dyn Operator>)
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

impl ConvolutionOptions for Conv2d {
    const NAME: &'static str = OP;

    fn op(
        &self,
        [input, weights]: [Shape; 2],
        (bias, residual): (bool, Residual),
        precision: Precision,
    ) -> Result<Arc<dyn Op>> {
        Ok(Arc::new(Conv2dOp::new(input, weights, self, bias, residual, precision)?))
    }

    fn bordered(&self, border: Border, extents: [usize; 4]) -> Option<Self> {
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
}
