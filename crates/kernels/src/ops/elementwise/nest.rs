//! A program as a nest of loops.

use super::ElementwiseOp;
use super::program::{Program, Source};
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
