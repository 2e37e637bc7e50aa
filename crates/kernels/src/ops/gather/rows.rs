//! What `gather` is as an op of rows.

use super::{GatherOp, OP, Sizes};
use crate::cpu::blocks::{MOVED, independent_rows};
use crate::cpu::workers::each;
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::ops::kernel::Kernel;
use crate::ops::loops::{AsNest, OpNest, OperandSet};
use crate::ops::operands::Operands;
use crate::ops::reference::Reference;
use crate::ops::rows::{RowsOp, word_key};
use crate::shape::Shape;

impl RowsOp for GatherOp {
    const NAME: &'static str = OP;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&AsNest::ELEMENTS]
    }

    fn problem_key(&self) -> String {
        let GatherOp { source, indices, axis, axes, batch_dims, dtypes: [elements, index], .. } = self;
        let of = match index {
            DType::F32 => String::new(),
            index => format!(" index_{index}"),
        };
        format!(
            "from{source} by{indices} axis{axis} axes{axes} shared{batch_dims}{}{of}",
            word_key(*elements)
        )
    }

    fn inputs(&self) -> Vec<(Operand, Shape)> {
        vec![(Operand::Src, self.source.shape()), (Operand::Arg(0), self.indices.shape())]
    }

    fn output(&self) -> Shape {
        self.target.shape()
    }

    fn precision(&self) -> Precision {
        if self.dtypes[0] == DType::F32 { self.precision } else { Precision::F32 }
    }

    fn dtype(&self, operand: Operand) -> DType {
        let [elements, indices] = self.dtypes;
        if operand == Operand::Arg(0) { indices } else { elements }
    }

    fn nest(&self) -> Option<OpNest> {
        // Indices are exact.
        let halves = OperandSet { sources: 0b01, results: 1 };
        Some(OpNest::new(self.as_nest()?, vec![Operand::Src, Operand::Arg(0)]).with_halves(halves))
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        super::oracle::oracle(self, operands)
    }

    /// What each index selects, copied in one piece.
    fn compute(&self, inputs: &[&[f32]], dst: &mut [f32]) {
        let &[src, indices] = inputs else { return };
        let sizes = self.sizes();
        let Sizes { outer, count, inner, .. } = sizes;
        let inner = inner * self.dtypes[0].words();
        let (axes, indexed) = (self.axes * self.dtypes[1].words(), sizes.indexed());
        let word = self.dtypes[1];
        let block = independent_rows(dst.len() / inner, MOVED * inner);
        each(dst.chunks_mut(block * inner).enumerate(), |(index, dst)| {
            for (row, dst) in dst.chunks_exact_mut(inner).enumerate() {
                let row = index * block + row;
                let entry = row % count + count * (row / count / outer);
                match sizes.place(word, &indices[axes * entry..axes * (entry + 1)]) {
                    Some(place) => {
                        let first = (row / count * indexed + place) * inner;
                        dst.copy_from_slice(&src[first..first + inner]);
                    }
                    None => dst.fill(0.0),
                }
            }
        });
    }
}
