//! A 1x1 convolution as a node of a graph: `Src`, `Weights`, and where given `Bias`, `Slope` and `Residual`.

use super::{Pointwise, PointwiseOp};
use crate::dtype::Precision;
use crate::emit::Activation;
use crate::error::Result;
use crate::ops::operator::{self, Arguments, Lowered, Operator, same};
use std::sync::Arc;

impl Operator for Pointwise {
    fn name(&self) -> &'static str {
        "pointwise"
    }

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        let [input, weights] = operator::maps("pointwise", arguments)?;
        let [bias, residual] = operator::extras(arguments);
        let op = PointwiseOp::new(input, weights, self, bias, residual, precision)?;
        Ok(Lowered::Op(Arc::new(op)))
    }

    fn with_activation(&self, activation: Activation) -> Option<Arc<dyn Operator>> {
        let free = self.activation == Activation::None;
        free.then(|| Arc::new(Pointwise { activation }) as Arc<dyn Operator>)
    }

    fn adds_residual(&self) -> bool {
        true
    }

    fn same(&self, other: &dyn Operator) -> bool {
        same(self, other)
    }
}
