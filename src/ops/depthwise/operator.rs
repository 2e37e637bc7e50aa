//! A depthwise convolution as a node of a graph: `Src`, `Weights`, and where given `Bias`, `Slope` and `Residual`.

use super::{Depthwise, DepthwiseOp};
use crate::dtype::Precision;
use crate::emit::Activation;
use crate::error::Result;
use crate::ops::operator::{self, Arguments, Lowered, Operator, same};
use std::sync::Arc;

impl Operator for Depthwise {
    fn name(&self) -> &'static str {
        "depthwise"
    }

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        let [input, weights] = operator::maps("depthwise", arguments)?;
        let [bias, residual] = operator::extras(arguments);
        let op = DepthwiseOp::new(input, weights, self, bias, residual, precision)?;
        Ok(Lowered::Op(Arc::new(op)))
    }

    fn with_border(&self, border: [usize; 4]) -> Option<Arc<dyn Operator>> {
        Some(Arc::new(Depthwise { padding: self.padding.with_border(border)?, ..*self }))
    }

    fn with_activation(&self, activation: Activation) -> Option<Arc<dyn Operator>> {
        let free = self.activation == Activation::None;
        free.then(|| Arc::new(Depthwise { activation, ..*self }) as Arc<dyn Operator>)
    }

    fn adds_residual(&self) -> bool {
        true
    }

    fn same(&self, other: &dyn Operator) -> bool {
        same(self, other)
    }
}
