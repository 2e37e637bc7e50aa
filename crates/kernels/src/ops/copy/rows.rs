//! What `copy` is as an op of rows: one element per invocation.

use super::{CopyOp, OP};
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::layout::Layout;
use crate::ops::operands::{Operands, get};
use crate::ops::reference::Reference;
use crate::ops::rows::{RowsOp, word_key};
use crate::ops::spec::{Params, unsigned};
use crate::shape::Shape;
use crate::word::numbers;

impl RowsOp for CopyOp {
    const NAME: &'static str = OP;
    const TEXT: &'static str = crate::emit::text!("../../../shaders/copy/rows.wgsl");
    const LAYOUTS: &'static [Layout] = &[Layout::C4];

    fn problem_key(&self) -> String {
        let (source, target) = (self.source.elements(), self.target.elements());
        format!("from{} of{source} elements{target}{}", self.first, word_key(self.dtype))
    }

    fn inputs(&self) -> Vec<(Operand, Shape)> {
        vec![(Operand::Src, self.source)]
    }

    fn output(&self) -> Shape {
        self.target
    }

    fn precision(&self) -> Precision {
        if self.dtype == DType::F16 { Precision::F16Storage } else { Precision::F32 }
    }

    fn dtype(&self, _operand: Operand) -> DType {
        self.dtype
    }

    fn params(&self) -> Params {
        vec![("first", unsigned(self.first)), ("elements", unsigned(self.target.elements()))]
    }

    /// The elements themselves.
    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        let values = numbers(self.dtype, get(operands, Operand::Src).unwrap_or_default());
        Reference::exact(values.into_iter().skip(self.first).take(self.target.elements()))
    }

    fn compute(&self, inputs: &[&[f32]], dst: &mut [f32]) {
        let &[src] = inputs else { return };
        let first = self.first * self.dtype.words();
        dst.copy_from_slice(&src[first..first + dst.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::operands::of;

    #[test]
    fn elements_are_counted_from_the_first_that_is_taken() {
        let op = CopyOp::new(Shape::nhwc(1, 1, 2, 4), 3, Shape::nhwc(1, 1, 1, 4)).expect("within");
        let reference = op.oracle(&of(&[(Operand::Src, &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])]));
        assert_eq!(reference.value(), [3.0, 4.0, 5.0, 6.0]);
        assert!(CopyOp::new(Shape::nhwc(1, 1, 2, 4), 5, Shape::nhwc(1, 1, 1, 4)).is_err());
        assert!(CopyOp::new(Shape::nhwc(1, 1, 2, 4), usize::MAX, Shape::nhwc(1, 1, 1, 4)).is_err());
    }
}
