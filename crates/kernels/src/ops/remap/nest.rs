//! A move as a nest of loops.

use super::{RemapOp, Rule};
use crate::emit::Bits;
use crate::ops::loops::{Guard, Index, Mirror, Nest, Node, Nodes};

impl RemapOp {
    /// What it moves, as a nest; none of integers of 64 bits.
    pub(super) fn as_nest(&self) -> Option<Nest> {
        let extents: Vec<usize> = self.axes.iter().map(|axis| axis.extent).collect();
        let (mut at, mut guards) = (Index::default(), Vec::new());
        for (place, axis) in self.axes.iter().enumerate() {
            let source = i64::try_from(axis.source).ok()?;
            let coordinate =
                Index::number(axis.start as i64).plus(&Index::axis(place), i64::try_from(axis.step).ok()?);
            let coordinate = match self.rule {
                Rule::Within => coordinate,
                Rule::Wrap => coordinate.remainder(source, &extents),
                Rule::Fill(_) => {
                    let [least, most] = coordinate.range(&extents);
                    if least < 0 || most >= source {
                        guards.push(Guard { index: coordinate.clone(), below: source });
                    }
                    coordinate.inside(source, &extents)
                }
                rule => coordinate.ruled(Mirror::of(&rule)?, source, &extents),
            };
            at = at.plus(&coordinate, i64::try_from(axis.stride).ok()?);
        }
        let otherwise = Bits(self.fill());
        let mut nodes = Nodes::default();
        let value = nodes.add(Node::Read { source: 0, at, guards, otherwise });
        let written = (0..extents.len()).collect();
        Nest::of_words(extents, written, vec![(self.source, self.dtype)], nodes, value, self.target).ok()
    }
}
