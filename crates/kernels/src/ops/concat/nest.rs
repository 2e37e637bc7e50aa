//! A concatenation as a nest of loops.

use super::ConcatOp;
use crate::dims::Dims;
use crate::dtype::DType;
use crate::emit::Bits;
use crate::ops::loops::{Guard, Index, Nest, Node, Nodes, element};

impl ConcatOp {
    /// What it joins, as a nest of words of 32 bits, whatever these are.
    pub(super) fn nest_of_words(&self) -> Option<Nest> {
        let (rows, words) = (self.rows().0, self.dtype.words());
        let row = |dims: &Dims| Dims::new(&[rows, dims.elements() * words / rows.max(1)]).ok();
        let inputs = self.inputs.iter().map(row).collect::<Option<Vec<Dims>>>()?;
        let target = row(&self.target)?;
        ConcatOp { inputs, target, axis: 1, precision: self.precision, dtype: DType::F32 }.as_nest()
    }

    /// What it joins, as a nest: of each place the element of the input whose part it is; none of integers of 64 bits.
    pub(super) fn as_nest(&self) -> Option<Nest> {
        let extents = self.target.extents().to_vec();
        let mut nodes = Nodes::default();
        let mut value = None;
        for (source, (input, end)) in self.inputs.iter().zip(self.ends(1)).enumerate().rev() {
            let own = input.extents()[self.axis];
            let first = i64::try_from(end - own).ok()?;
            let along = Index::axis(self.axis).plus(&Index::number(-first), 1);
            let guards = vec![Guard { index: along.clone(), below: i64::try_from(own).ok()? }];
            let mut places: Vec<Index> = (0..extents.len()).map(Index::axis).collect();
            places[self.axis] = along.inside(i64::try_from(own).ok()?, &extents);
            let at = element(input.extents()).with(&places, &extents);
            let then = nodes.add(Node::Read { source, at, guards: guards.clone(), otherwise: Bits(0.0) });
            value = Some(match value {
                None => then,
                Some(otherwise) => nodes.add(Node::Choose { guards, then, otherwise }),
            });
        }
        let written = (0..extents.len()).collect();
        let sources = self.inputs.iter().map(|&input| (input, self.dtype)).collect();
        Nest::of_words(extents, written, sources, nodes, value?, self.target).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Precision;
    use crate::emit::Operand;
    use crate::ops::Op;
    use crate::word;

    #[test]
    fn integers_of_two_words_stay_together() {
        let inputs = [Dims::new(&[2, 1]).expect("small"), Dims::new(&[2, 2]).expect("small")];
        let op = ConcatOp::new(&inputs, 1, Precision::F32).expect("it fits").of(DType::I64);
        let words = |integers: &[i64]| word::of_integers(DType::I64, integers.iter().copied());
        let (a, b) = (words(&[1, -2]), words(&[3, 1 << 40, 5, -6]));
        let wanted = words(&[1, 3, 1 << 40, -2, 5, -6]);
        let kernel = Op::cpu(&op, &crate::ops::operands::of(&[])).expect("a kernel");
        let mut found = vec![0.0; wanted.len()];
        let given = [(Operand::Arg(0), &a[..]), (Operand::Arg(1), &b[..])];
        kernel.run(&given, &mut [(Operand::Dst, &mut found[..])]).expect("a run");
        let bits = |words: &[f32]| words.iter().map(|word| word.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&found), bits(&wanted));
    }
}
