//! A 1x1 convolution as a node of a graph: `Src`, `Weights`, and where given `Bias`, `Slope` and `Residual`.

use super::{OP, Pointwise, PointwiseOp};
use crate::dtype::Precision;
use crate::emit::{Activation, Residual};
use crate::error::Result;
use crate::ops::activated::{ActivatedLast, ConvolutionOptions};
use crate::ops::op::Op;
use crate::ops::operator::{self, Arguments, Lowered, Operator, same};
use crate::shape::{Border, Shape};
use std::sync::Arc;

impl Operator for Pointwise {
    fn name(&self) -> &'static str {
        OP
    }

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        let shapes = operator::maps(OP, arguments)?;
        let [bias, residual] = operator::extras(arguments);
        Ok(Lowered::Op(self.op(shapes, (bias, residual.into()), precision)?))
    }

    fn with_activation(&self, activation: Activation) -> Option<Arc<dyn Operator>> {
        let free = self.activation == Activation::None;
        free.then(|| Arc::new(Pointwise { activation }) as Arc<dyn Operator>)
    }

    fn with_activation_last(&self, activation: Activation) -> Option<Arc<dyn Operator>> {
        let free = self.activation == Activation::None;
        free.then(|| Arc::new(ActivatedLast(Pointwise { activation })) as Arc<dyn Operator>)
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

impl ConvolutionOptions for Pointwise {
    const NAME: &'static str = OP;

    fn op(
        &self,
        [input, weights]: [Shape; 2],
        (bias, residual): (bool, Residual),
        precision: Precision,
    ) -> Result<Arc<dyn Op>> {
        Ok(Arc::new(PointwiseOp::new(input, weights, self, bias, residual, precision)?))
    }

    fn bordered(&self, _border: Border, _extents: [usize; 4]) -> Option<Self> {
        None
    }
}
