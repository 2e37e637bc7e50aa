//! The elements one by one, found by their indices in the source's own axes.

use super::GatherOp;
use crate::emit::Operand;
use crate::ops::operands::{Operands, get};
use crate::ops::reference::Reference;
use crate::ops::rows::RowsOp;
use crate::word::numbers;

/// The result of `operands`, which were checked: it is exact, but for the rounding to stored halves.
pub(super) fn oracle(op: &GatherOp, operands: &Operands<'_>) -> Reference {
    let src = numbers(op.dtypes[0], get(operands, Operand::Src).unwrap_or_default());
    let indices = numbers(op.dtypes[1], get(operands, Operand::Arg(0)).unwrap_or_default());
    let target = op.target.extents();
    let own = op.source.extents();
    // Axes of the result that are those of the indices, from the first gathered one on.
    let looked_up = target.len() + op.axes - own.len();
    let values = (0..op.target.elements()).map(|element| {
        let mut place = vec![0; target.len()];
        let mut rest = element;
        for (at, extent) in place.iter_mut().zip(target).rev() {
            *at = rest % extent;
            rest /= extent;
        }
        let (before, behind) = place.split_at(op.axis);
        let (row, inner) = behind.split_at(looked_up);
        let shared = before[..op.batch_dims].iter().chain(row);
        let row = shared.zip(op.indices.extents()).fold(0, |row, (at, extent)| row * extent + at);
        let chosen = indices.iter().skip(row * op.axes).take(op.axes).copied();
        let at = before.iter().map(|&at| at as f64).chain(chosen).chain(inner.iter().map(|&at| at as f64));
        let from = at.zip(own).try_fold(0.0, |from, (at, &extent)| {
            (at >= 0.0 && at < extent as f64).then(|| from * extent as f64 + at.floor())
        });
        from.and_then(|from| src.get(from as usize)).map_or(0.0, |&value| value)
    });
    Reference::moved(values.collect(), RowsOp::precision(op))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims::Dims;
    use crate::ops::gather::Gather;
    use crate::ops::operands::of;

    fn dims(extents: &[usize]) -> Dims {
        Dims::new(extents).expect("small")
    }

    fn found(op: &GatherOp, indices: &[f32]) -> Vec<f64> {
        let source: Vec<f32> = (0..op.source.elements()).map(|value| value as f32).collect();
        oracle(op, &of(&[(Operand::Src, &source), (Operand::Arg(0), indices)])).value().to_vec()
    }

    #[test]
    fn elements_are_those_of_the_indices_and_zero_outside() {
        let options = Gather { axis: 1, batch_dims: 0 };
        let op = GatherOp::new(dims(&[2, 3, 2]), dims(&[2]), options).expect("fits");
        assert_eq!(found(&op, &[2.0, 1.0]), [4.0, 5.0, 2.0, 3.0, 10.0, 11.0, 8.0, 9.0]);
        assert_eq!(found(&op, &[f32::NAN, 3.0]), [0.0; 8]);
        assert_eq!(found(&op, &[-1.0, 0.0]), [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 6.0, 7.0]);
        let shared = Gather { axis: 1, batch_dims: 1 };
        let op = GatherOp::new(dims(&[2, 3, 2]), dims(&[2, 1]), shared).expect("fits");
        assert_eq!(found(&op, &[2.0, 1.0]), [4.0, 5.0, 8.0, 9.0]);
        let op = GatherOp::nd(dims(&[2, 3, 2]), dims(&[3, 2])).expect("fits");
        assert_eq!(found(&op, &[1.0, 2.0, 0.0, 0.0, 0.0, 3.0]), [10.0, 11.0, 0.0, 1.0, 0.0, 0.0]);
    }
}
