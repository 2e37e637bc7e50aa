//! A softmax as a nest of loops.

use super::SoftmaxOp;
use crate::ops::elementwise::Function;
use crate::ops::loops::{Nest, NodeId, Nodes, element};
use crate::ops::reduce::Reduction;

impl SoftmaxOp {
    /// What it computes, as a nest.
    pub(super) fn as_nest(&self) -> Option<Nest> {
        let extents = self.dims.extents().to_vec();
        let over = 1 << self.axis;
        let mut nodes = Nodes::default();
        let x = nodes.read(0, element(&extents));
        if extents.get(self.axis) == Some(&1) {
            return self.of_one(nodes, x);
        }
        let largest = nodes.reduce(Reduction::Max, x, over);
        let mut exponent = nodes.apply(Function::Sub, &[x, largest]);
        if self.beta.0 != 1.0 {
            let beta = nodes.number(self.beta.0);
            exponent = nodes.apply(Function::Mul, &[exponent, beta]);
        }
        let power = nodes.apply(Function::Exp, &[exponent]);
        let sum = nodes.reduce(Reduction::Sum, power, over);
        let value = if self.log {
            let log = nodes.apply(Function::Log, &[sum]);
            nodes.apply(Function::Sub, &[exponent, log])
        } else {
            nodes.apply(Function::Div, &[power, sum])
        };
        let written = (0..extents.len()).collect();
        Nest::new(extents, written, vec![self.dims], nodes, value, self.dims).ok()
    }

    /// The nest where each sum has one term: 1, or 0 of a logarithm, and NaN of what is no number. A driver may take `x - x` to
    /// be 0 whatever `x` is, so that the root of -1 says it.
    fn of_one(&self, mut nodes: Nodes, x: NodeId) -> Option<Nest> {
        let (size, infinity, one) =
            (nodes.apply(Function::Abs, &[x]), nodes.number(f32::INFINITY), nodes.number(1.0));
        let is_finite = nodes.apply(Function::Less, &[size, infinity]);
        let less = nodes.apply(Function::Sub, &[is_finite, one]);
        let mut value = nodes.apply(Function::Sqrt, &[less]);
        if !self.log {
            value = nodes.apply(Function::Add, &[value, one]);
        }
        let extents = self.dims.extents().to_vec();
        let written = (0..extents.len()).collect();
        Nest::new(extents, written, vec![self.dims], nodes, value, self.dims).ok()
    }
}
