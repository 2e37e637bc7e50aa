//! A 2D convolution as a node of a graph: `Src`, `Weights`, and where given `Bias`, `Slope` and `Residual`.

use super::{Conv2d, Conv2dOp};
use crate::dtype::Precision;
use crate::emit::Activation;
use crate::error::Result;
use crate::ops::operator::{self, Arguments, Lowered, Operator, same};
use std::sync::Arc;

impl Operator for Conv2d {
    fn name(&self) -> &'static str {
        "conv2d"
    }

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        let [input, weights] = operator::maps("conv2d", arguments)?;
        let [bias, residual] = operator::extras(arguments);
        let op = Conv2dOp::new(input, weights, self, bias, residual, precision)?;
        Ok(Lowered::Op(Arc::new(op)))
    }

    fn with_border(&self, border: [usize; 4]) -> Option<Arc<dyn Operator>> {
        Some(Arc::new(Conv2d { padding: self.padding.with_border(border)?, ..*self }))
    }

    fn with_activation(&self, activation: Activation) -> Option<Arc<dyn Operator>> {
        let free = self.activation == Activation::None;
        free.then(|| Arc::new(Conv2d { activation, ..*self }) as Arc<dyn Operator>)
    }

    fn adds_residual(&self) -> bool {
        true
    }

    fn same(&self, other: &dyn Operator) -> bool {
        same(self, other)
    }
}
