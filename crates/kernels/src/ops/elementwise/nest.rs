//! A program as a nest of loops.

use super::ElementwiseOp;
use super::program::Source;
use crate::ops::loops::{Nest, Nodes, aligned};

impl ElementwiseOp {
    /// What it computes, as a nest.
    pub(super) fn as_nest(&self) -> Option<Nest> {
        let extents = self.output.extents().to_vec();
        let (rank, mut nodes, mut values) = (extents.len(), Nodes::default(), Vec::new());
        let read = |nodes: &mut Nodes, input: usize| {
            Some(nodes.read(input, aligned(*self.inputs.get(input)?, rank)))
        };
        for step in self.program.steps() {
            let mut arguments = Vec::with_capacity(step.arguments.len());
            for argument in &step.arguments {
                arguments.push(match *argument {
                    Source::Input(input) => read(&mut nodes, usize::from(input))?,
                    Source::Step(step) => *values.get(usize::from(step))?,
                    Source::Number(number) => nodes.number(number.0),
                });
            }
            values.push(nodes.apply(step.function, &arguments));
        }
        let written = (0..rank).collect();
        Nest::new(extents, written, self.inputs.clone(), nodes, *values.last()?, self.output).ok()
    }
}
