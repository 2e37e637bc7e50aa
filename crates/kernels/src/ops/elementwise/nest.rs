//! A program as a nest of loops.

use super::program::{Program, Source};
use super::{ElementwiseOp, Function};
use crate::emit::Activation;
use crate::ops::loops::{Nest, NodeId, Nodes, aligned};

impl Program {
    /// The node that the program gives of inputs that `read` adds.
    pub(in crate::ops) fn node(
        &self,
        nodes: &mut Nodes,
        read: &dyn Fn(&mut Nodes, usize) -> Option<NodeId>,
    ) -> Option<NodeId> {
        let mut values = Vec::with_capacity(self.steps().len());
        for step in self.steps() {
            let mut arguments = Vec::with_capacity(step.arguments.len());
            for argument in &step.arguments {
                arguments.push(match *argument {
                    Source::Input(input) => read(nodes, usize::from(input))?,
                    Source::Step(step) => *values.get(usize::from(step))?,
                    Source::Number(number) => nodes.number(number.0),
                });
            }
            values.push(nodes.apply(step.function, &arguments));
        }
        values.last().copied()
    }
}

impl Nodes {
    /// The node that an activation gives of `x`; none with slopes, which are an operand.
    pub(in crate::ops) fn activate(&mut self, activation: Activation, x: NodeId) -> Option<NodeId> {
        let function = match activation {
            Activation::None => return Some(x),
            Activation::PRelu => return None,
            Activation::LeakyRelu(slope) => {
                let slope = self.number(slope.0);
                return Some(self.apply(Function::LeakyRelu, &[x, slope]));
            }
            Activation::Silu => {
                let sigmoid = self.apply(Function::Sigmoid, &[x]);
                return Some(self.apply(Function::Mul, &[x, sigmoid]));
            }
            Activation::Relu => Function::Relu,
            Activation::Relu6 => Function::Relu6,
            Activation::Sigmoid => Function::Sigmoid,
            Activation::Tanh => Function::Tanh,
            Activation::HardSwish => Function::HardSwish,
            Activation::HardSigmoid => Function::HardSigmoid,
            Activation::Gelu => Function::Gelu,
            Activation::GeluTanh => Function::GeluTanh,
        };
        Some(self.apply(function, &[x]))
    }
}

impl ElementwiseOp {
    /// What it computes, as a nest.
    pub(super) fn as_nest(&self) -> Option<Nest> {
        let extents = self.output.extents().to_vec();
        let (rank, mut nodes) = (extents.len(), Nodes::default());
        let value = self.program.node(&mut nodes, &|nodes, input| {
            Some(nodes.read(input, aligned(*self.inputs.get(input)?, rank)))
        })?;
        let written = (0..rank).collect();
        Nest::new(extents, written, self.inputs.clone(), nodes, value, self.output).ok()
    }
}
