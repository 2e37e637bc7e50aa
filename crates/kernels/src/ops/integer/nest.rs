//! A function of integers as a nest of loops.

use super::{Argument, IntegerFunction, IntegerOp};
use crate::dtype::DType;
use crate::ops::loops::{Nest, Node, Nodes, aligned};

impl IntegerOp {
    /// What it computes, as a nest; none of integers of 64 bits.
    pub(super) fn as_nest(&self) -> Option<Nest> {
        let extents = self.output.extents().to_vec();
        let (mut nodes, mut arguments) = (Nodes::default(), Vec::with_capacity(self.arguments.len()));
        for (place, argument) in self.arguments.iter().enumerate() {
            arguments.push(match *argument {
                Argument::Input(input) => nodes
                    .read(usize::from(input), aligned(*self.inputs.get(usize::from(input))?, extents.len())),
                // A condition is a float.
                Argument::Number(value) if self.function == IntegerFunction::Select && place == 0 => {
                    nodes.number(value as f32)
                }
                Argument::Number(value) => nodes.add(Node::Integer { value, word: self.word }),
            });
        }
        let (function, word, result) = (self.function, self.word, self.result);
        let value = nodes.add(Node::ApplyIntegers { function, arguments, word, result });
        let sources = self.inputs.iter().copied().zip(self.words.iter().copied()).collect();
        let written = (0..extents.len()).collect();
        Nest::of_words(extents, written, sources, nodes, value, self.output).ok()
    }

    /// Whether it computes with words of 32 bits alone.
    pub(super) fn has_nest(&self) -> bool {
        self.words.iter().chain([&self.word, &self.result]).all(|word| word.bytes() == DType::F32.bytes())
    }
}
