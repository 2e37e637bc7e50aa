//! A move as a nest of loops.

use super::axes::{self, Axis};
use super::{RemapOp, Rule};
use crate::dims::Dims;
use crate::dtype::DType;
use crate::emit::Bits;
use crate::ops::loops::{Guard, Index, Mirror, Nest, Node, Nodes};

impl RemapOp {
    /// What it moves, as a nest; none of integers of 64 bits.
    pub(super) fn as_nest(&self) -> Option<Nest> {
        self.nest_of(&self.axes, (self.source, self.dtype), self.target, &[self.fill()])
    }

    /// What it moves, as a nest of words of 32 bits, whatever these are.
    pub(super) fn nest_of_words(&self) -> Option<Nest> {
        let words = self.dtype.words();
        let apart = |axis: &Axis| Axis { stride: axis.stride * words, ..*axis };
        let mut axes: Vec<Axis> = self.axes.iter().map(apart).collect();
        axes.extend(axes::whole(Dims::new(&[words]).ok()?));
        let of_words = |dims: Dims| Dims::new(&[dims.elements() * words]).ok();
        let source = (of_words(self.source)?, DType::F32);
        self.nest_of(&axes, source, of_words(self.target)?, &self.fill_words())
    }

    /// The nest that moves elements of `source` along `axes`. What has no source is filled with one number, or with two that
    /// take turns along the last axis.
    fn nest_of(&self, axes: &[Axis], source: (Dims, DType), target: Dims, fills: &[f32]) -> Option<Nest> {
        let extents: Vec<usize> = axes.iter().map(|axis| axis.extent).collect();
        let (mut at, mut guards) = (Index::default(), Vec::new());
        for (place, axis) in axes.iter().enumerate() {
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
        let mut nodes = Nodes::default();
        let mut read = |fill: f32| {
            let (at, guards) = (at.clone(), guards.clone());
            nodes.add(Node::Read { source: 0, at, guards, otherwise: Bits(fill) })
        };
        let mut value = read(fills.first().copied()?);
        if let &[low, high] = fills
            && low.to_bits() != high.to_bits()
        {
            let (then, otherwise) = (value, read(high));
            let guards = vec![Guard { index: Index::axis(axes.len().checked_sub(1)?), below: 1 }];
            value = nodes.add(Node::Choose { guards, then, otherwise });
        }
        let written = (0..extents.len()).collect();
        Nest::of_words(extents, written, vec![source], nodes, value, target).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Precision;
    use crate::emit::Operand;
    use crate::ops::Op;
    use crate::word;

    /// One place before and one behind each row: integers of one word and of two, whose words differ for 7 and not for -1.
    #[test]
    fn words_of_integers_are_moved_and_filled_as_such() {
        let (source, target) = (Dims::new(&[2, 3]).expect("small"), Dims::new(&[2, 5]).expect("small"));
        for (dtype, fill) in [(DType::I32, 7), (DType::I64, 7), (DType::I64, -1)] {
            let mut axes = axes::whole(source);
            axes[1] = Axis { extent: 5, start: -1, ..axes[1] };
            let rule = Rule::Fill(Bits(fill as f32));
            let op = RemapOp::new(source, target, axes, rule, Precision::F32).expect("a border").of(dtype);
            let given = word::of_integers(dtype, [1, -2, 1 << 30, 4, 5, -6].into_iter());
            let wanted = [fill, 1, -2, 1 << 30, fill, fill, 4, 5, -6, fill];
            let wanted = word::of_integers(dtype, wanted.into_iter());
            let kernel = Op::cpu(&op, &crate::ops::operands::of(&[])).expect("a kernel");
            let mut found = vec![0.0; wanted.len()];
            kernel.run(&[(Operand::Src, &given)], &mut [(Operand::Dst, &mut found[..])]).expect("a run");
            let bits = |words: &[f32]| words.iter().map(|word| word.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&found), bits(&wanted), "{dtype:?} filled with {fill}");
        }
    }
}
