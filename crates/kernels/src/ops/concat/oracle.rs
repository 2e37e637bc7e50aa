//! The inputs' rows in turn.

use super::ConcatOp;
use crate::emit::Operand;
use crate::ops::operands::{Operands, get};
use crate::ops::reference::Reference;
use crate::word::numbers;

/// The result of `operands`, which were checked.
pub(super) fn oracle(op: &ConcatOp, operands: &Operands<'_>) -> Reference {
    let (rows, ends) = op.rows();
    let mut value = Vec::with_capacity(op.target.elements());
    for row in 0..rows {
        let mut begin = 0;
        for (index, end) in ends.iter().enumerate() {
            let values = numbers(op.dtype, get(operands, Operand::Arg(index as u8)).unwrap_or_default());
            let length = end - begin;
            value.extend(values.into_iter().skip(row * length).take(length));
            begin = *end;
        }
    }
    Reference::moved(value, op.precision)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims::Dims;
    use crate::dtype::Precision;
    use crate::ops::operands::of;

    #[test]
    fn rows_follow_each_other() {
        let inputs = [&[2, 1][..], &[2, 3]].map(|extents| Dims::new(extents).expect("small"));
        let op = ConcatOp::new(&inputs, 1, Precision::F32).expect("fits");
        let operands =
            [(Operand::Arg(0), &[0.0, 1.0][..]), (Operand::Arg(1), &[2.0, 3.0, 4.0, 5.0, 6.0, 7.0])];
        let reference = oracle(&op, &of(&operands));
        assert_eq!(reference.value(), [0.0, 2.0, 3.0, 4.0, 1.0, 5.0, 6.0, 7.0]);
    }
}
