//! A depthwise convolution as a node of a graph: `Src`, `Weights`, and where given `Bias`, `Slope` and `Residual`.

use super::{Depthwise, DepthwiseOp, OP};
use crate::dtype::Precision;
use crate::emit::{Activation, Residual};
use crate::error::Result;
use crate::ops::activated::{ActivatedLast, ConvolutionOptions};
use crate::ops::op::Op;
use crate::ops::operator::{self, Arguments, Lowered, Operator, same};
use crate::shape::{Border, Shape};
use std::sync::Arc;

impl Operator for Depthwise {
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
        free.then(|| Arc::new(Depthwise { activation, ..*self }) as Arc<dyn Operator>)
    }

    fn with_activation_last(&self, activation: Activation) -> Option<Arc<dyn Operator>> {
        let free = self.activation == Activation::None;
        free.then(|| Arc::new(ActivatedLast(Depthwise { activation, ..*self })) as Arc<dyn Operator>)
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

impl ConvolutionOptions for Depthwise {
    const NAME: &'static str = OP;

    fn op(
        &self,
        [input, weights]: [Shape; 2],
        (bias, residual): (bool, Residual),
        precision: Precision,
    ) -> Result<Arc<dyn Op>> {
        Ok(Arc::new(DepthwiseOp::new(input, weights, self, bias, residual, precision)?))
    }

    fn bordered(&self, border: Border, extents: [usize; 4]) -> Option<Self> {
        let zeros = border == Border::Zeros;
        Some(Depthwise { padding: self.padding.with_border(extents).filter(|_| zeros)?, ..*self })
    }
}
