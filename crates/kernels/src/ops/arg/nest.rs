//! An index of the largest or smallest element as a nest of loops.

use super::ArgOp;
use crate::dtype::DType;
use crate::ops::elementwise::Function;
use crate::ops::integer::IntegerFunction;
use crate::ops::loops::{Index, Nest, Node, Nodes, element};

impl ArgOp {
    /// What it computes, as a nest; none of integers of 64 bits.
    pub(super) fn as_nest(&self) -> Option<Nest> {
        let (extents, word) = (self.extents().to_vec(), self.dtype);
        let mut nodes = Nodes::default();
        let x = nodes.read(0, element(&extents));
        let value = match (extents[1], word) {
            // The only index is 0, which is whether an element is less than itself.
            (1, DType::F32) => nodes.apply(Function::Less, &[x, x]),
            (1, _) => {
                let (function, arguments) = (IntegerFunction::Less, vec![x, x]);
                nodes.add(Node::ApplyIntegers { function, arguments, word, result: DType::F32 })
            }
            _ => {
                let place = Some(nodes.add(Node::Place(Index::axis(1))));
                nodes.add(Node::Reduce { reduction: self.reduction, of: x, over: 0b10, place })
            }
        };
        Nest::of_words(extents, vec![0, 2], vec![(self.input, word)], nodes, value, self.output).ok()
    }
}
