//! The function of both halves, element by element: what `elementwise` makes of them, within its bound.

use super::GluOp;
use crate::emit::Operand;
use crate::ops::definition::Definition;
use crate::ops::operands::{Operands, get};
use crate::ops::reference::Reference;
use crate::sorted;
use std::borrow::Cow;

/// The result, in the order of the rows.
pub(super) fn oracle(op: &GluOp, operands: &Operands<'_>) -> Reference {
    let (src, n) = (get(operands, Operand::Src).unwrap_or_default(), op.columns());
    let half = |operand: Operand, first: usize| {
        let rows = src.chunks_exact(2 * n).flat_map(|row| &row[first..first + n]);
        (operand, Cow::Owned(rows.copied().collect::<Vec<f32>>()))
    };
    let given: Operands<'_> = sorted::map([half(Operand::Arg(0), 0), half(Operand::Arg(1), n)]);
    Definition::oracle(&op.each, &given)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims::Dims;
    use crate::dtype::Precision;
    use crate::ops::elementwise::{Function, Program, Source};
    use crate::ops::operands::of;

    fn op(extents: &[usize]) -> crate::error::Result<GluOp> {
        let program = Program::of(Function::Sub, vec![Source::Input(0), Source::Input(1)])?;
        GluOp::new(program, Dims::new(extents)?, Precision::F32)
    }

    #[test]
    fn rows_worked_out_by_hand() {
        let src = [1.0, 2.0, 10.0, 20.0, 3.0, 4.0, 0.5, -1.0];
        let found = oracle(&op(&[2, 1, 4]).expect("rows"), &of(&[(Operand::Src, &src)]));
        assert_eq!(found.value(), [-9.0, -18.0, 2.5, 5.0]);
    }

    #[test]
    fn rows_without_halves_are_refused() {
        assert!(op(&[3, 5]).expect_err("an odd extent").to_string().contains("an even extent"));
        let program = Program::of(Function::Neg, vec![Source::Input(0)]).expect("a program");
        let error = GluOp::new(program, Dims::new(&[4]).expect("small"), Precision::F32);
        assert!(error.expect_err("one input").to_string().contains("of two"));
    }
}
