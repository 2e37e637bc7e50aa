//! What `one_hot` is as an op of rows: one element per invocation.

use super::{OP, OneHotOp};
use crate::cpu::blocks::{MOVED, independent_rows};
use crate::cpu::workers::each;
use crate::emit::{Operand, Scalar};
use crate::ops::operands::{Operands, get};
use crate::ops::reference::Reference;
use crate::ops::rows::RowsOp;
use crate::ops::spec::{Params, unsigned};
use crate::shape::Shape;

impl RowsOp for OneHotOp {
    const NAME: &'static str = OP;
    const TEXT: &'static str = crate::emit::text!("../../../shaders/one_hot/rows.wgsl");

    fn problem_key(&self) -> String {
        format!("from{} to{} axis{} on{} off{}", self.indices, self.target, self.axis, self.on.0, self.off.0)
    }

    fn inputs(&self) -> Vec<(Operand, Shape)> {
        vec![(Operand::Src, self.indices.shape())]
    }

    fn output(&self) -> Shape {
        self.target.shape()
    }

    fn params(&self) -> Params {
        vec![
            ("elements", unsigned(self.target.elements())),
            ("depth", unsigned(self.depth())),
            ("inner", unsigned(self.inner())),
            ("on", Scalar::F32(self.on.0)),
            ("off", Scalar::F32(self.off.0)),
        ]
    }

    /// Each element by itself.
    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        let indices = get(operands, Operand::Src).unwrap_or_default();
        let (depth, inner) = (self.depth(), self.inner());
        Reference::exact((0..self.target.elements()).map(|element| {
            let (n, row) = (element % inner, element / inner);
            let index = indices.get(row / depth * inner + n).copied().unwrap_or(f32::NAN);
            let on = f64::from(index) == (row % depth) as f64;
            f64::from(if on { self.on.0 } else { self.off.0 })
        }))
    }

    fn compute(&self, inputs: &[&[f32]], dst: &mut [f32]) {
        let &[src] = inputs else { return };
        let (depth, inner) = (self.depth(), self.inner());
        let block = independent_rows(dst.len() / inner, MOVED * inner);
        each(dst.chunks_mut(block * inner).enumerate(), |(index, dst)| {
            for (row, dst) in dst.chunks_exact_mut(inner).enumerate() {
                let row = index * block + row;
                let at = (row % depth) as f32;
                let indices = &src[row / depth * inner..(row / depth + 1) * inner];
                for (value, &index) in dst.iter_mut().zip(indices) {
                    *value = if index == at { self.on.0 } else { self.off.0 };
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims::Dims;
    use crate::emit::Bits;
    use crate::ops::one_hot::OneHot;
    use crate::ops::operands::of as operands;

    fn of(axis: isize) -> crate::error::Result<OneHotOp> {
        let options = OneHot { depth: 3, on: Bits(5.0), off: Bits(-1.0), axis };
        OneHotOp::new(Dims::new(&[2]).expect("small"), options)
    }

    #[test]
    fn an_index_is_where_the_value_is() {
        let value = |axis, indices: &[f32]| {
            of(axis).expect("an axis").oracle(&operands(&[(Operand::Src, indices)])).value().to_vec()
        };
        assert_eq!(value(-1, &[2.0, 0.0]), [-1.0, -1.0, 5.0, 5.0, -1.0, -1.0]);
        assert_eq!(value(0, &[2.0, 0.0]), [-1.0, 5.0, -1.0, -1.0, 5.0, -1.0]);
        assert_eq!(value(0, &[3.0, f32::NAN]), [-1.0; 6]);
        assert!(of(2).expect_err("rank 2").to_string().contains("-2 to 1"));
        assert!(of(-3).is_err());
    }
}
