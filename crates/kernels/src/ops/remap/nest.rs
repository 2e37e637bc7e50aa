//! A move as a nest of loops.

use super::{RemapOp, Rule};
use crate::dims::Dims;
use crate::emit::Bits;
use crate::ops::loops::{Guard, Index, Mirror, Nest, Node, Nodes};

impl RemapOp {
    /// What it moves, as a nest; none of integers of 64 bits.
    pub(super) fn as_nest(&self) -> Option<Nest> {
        if self.dtype.words() != 1 {
            return None;
        }
        let extents: Vec<usize> = self.axes.iter().map(|axis| axis.extent).collect();
        let (at, guards) = self.place(&extents)?;
        let otherwise = if let Rule::Fill(fill) = self.rule { fill } else { Bits(0.0) };
        let mut nodes = Nodes::default();
        let value = nodes.add(Node::Read { source: 0, at, guards, otherwise });
        let written = (0..extents.len()).collect();
        Nest::of_words(extents, written, vec![(self.source, self.dtype)], nodes, value, self.target).ok()
    }

    /// The words that it moves, as a nest: whatever they hold, they are moved as floats are.
    pub(super) fn as_nest_of_words(&self) -> Option<Nest> {
        let (words, fill) = (self.dtype.words(), self.fill_words());
        let mut extents: Vec<usize> = self.axes.iter().map(|axis| axis.extent).collect();
        // The words of an element are one axis more.
        let word = extents.len();
        extents.push(words);
        let (at, guards) = self.place(&extents)?;
        let at = at.times(i64::try_from(words).ok()?).plus(&Index::axis(word), 1);
        let (mut nodes, first) = (Nodes::default(), Bits(fill.first().copied().unwrap_or_default()));
        let mut value = nodes.add(Node::Read { source: 0, at, guards: guards.clone(), otherwise: first });
        if let (&[_, second], false) = (&fill[..], guards.is_empty()) {
            let is_first = vec![Guard { index: Index::axis(word), below: 1 }];
            let (then, otherwise) = (nodes.number(first.0), nodes.number(second));
            let otherwise = nodes.add(Node::Choose { guards: is_first, then, otherwise });
            value = nodes.add(Node::Choose { guards, then: value, otherwise });
        }
        let written = (0..extents.len()).collect();
        let in_words = |dims: Dims| match words {
            1 => Some(dims),
            _ => Dims::new(&[dims.elements() * words]).ok(),
        };
        let (source, target) = (in_words(self.source)?, in_words(self.target)?);
        Nest::new(extents, written, vec![source], nodes, value, target).ok()
    }

    /// The element of the source at the places along axes of these extents, and what keeps it within the source.
    fn place(&self, extents: &[usize]) -> Option<(Index, Vec<Guard>)> {
        let (mut at, mut guards) = (Index::default(), Vec::new());
        for (place, axis) in self.axes.iter().enumerate() {
            let source = i64::try_from(axis.source).ok()?;
            let coordinate =
                Index::number(axis.start as i64).plus(&Index::axis(place), i64::try_from(axis.step).ok()?);
            let coordinate = match self.rule {
                Rule::Within => coordinate,
                Rule::Wrap => coordinate.remainder(source, extents),
                Rule::Fill(_) => {
                    let [least, most] = coordinate.range(extents);
                    if least < 0 || most >= source {
                        guards.push(Guard { index: coordinate.clone(), below: source });
                    }
                    coordinate.inside(source, extents)
                }
                rule => coordinate.ruled(Mirror::of(&rule)?, source, extents),
            };
            at = at.plus(&coordinate, i64::try_from(axis.stride).ok()?);
        }
        Some((at, guards))
    }
}
