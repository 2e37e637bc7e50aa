//! What `gather` is as an op of rows: one element per invocation, or four where what an index selects is of whole vec4s.

use super::{GatherOp, OP, Sizes};
use crate::cpu::blocks::{MOVED, independent_rows};
use crate::cpu::workers::each;
use crate::dims::MAX_RANK;
use crate::dtype::{DType, Precision};
use crate::emit::{Operand, Value};
use crate::ops::kernel::Constants;
use crate::ops::loops::Nest;
use crate::ops::operands::Operands;
use crate::ops::reference::Reference;
use crate::ops::rows::{RowsOp, word_key, word_number};
use crate::ops::spec::{Params, extent, unsigned};
use crate::shape::Shape;

const EXTENTS: [&str; MAX_RANK] = ["extent0", "extent1", "extent2", "extent3", "extent4", "extent5"];

impl GatherOp {
    /// Elements that every invocation moves at once.
    fn width(&self) -> usize {
        if self.sizes().inner.is_multiple_of(4) { 4 } else { 1 }
    }
}

impl RowsOp for GatherOp {
    const NAME: &'static str = OP;
    const TEXT: &'static str = crate::emit::text!("../../../shaders/gather/rows.wgsl");

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

    fn invocations(&self) -> usize {
        self.target.elements() / self.width()
    }

    fn precision(&self) -> Precision {
        if self.dtypes[0] == DType::F32 { self.precision } else { Precision::F32 }
    }

    fn stored(&self, operand: Operand) -> DType {
        let is_index = operand == Operand::Arg(0);
        match self.dtype(operand) {
            DType::F32 if !is_index => self.precision.storage(),
            word => word,
        }
    }

    fn dtype(&self, operand: Operand) -> DType {
        let [elements, indices] = self.dtypes;
        if operand == Operand::Arg(0) { indices } else { elements }
    }

    fn is_wide(&self, operand: Operand) -> bool {
        self.width() == 4 && operand != Operand::Arg(0)
    }

    /// Elements are counted in vec4s where they are moved.
    fn params(&self) -> Params {
        let (width, sizes) = (self.width(), self.sizes());
        let mut params = vec![
            ("elements", unsigned(self.target.elements() / width)),
            ("outer", unsigned(sizes.outer)),
            ("count", unsigned(sizes.count)),
            ("inner", unsigned(sizes.inner / width)),
        ];
        let extents = EXTENTS.into_iter().zip(sizes.extents).take(self.axes);
        params.extend(extents.map(|(name, extent)| (name, unsigned(extent))));
        params
    }

    fn constants(&self) -> Constants {
        vec![
            ("AXES", Value::U32(extent(self.axes))),
            ("LANES", Value::U32(extent(self.width()))),
            ("INDEX", word_number(self.dtypes[1])),
        ]
    }

    fn nest(&self) -> Option<(Nest, Vec<Operand>)> {
        Some((self.as_nest()?, vec![Operand::Src, Operand::Arg(0)]))
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
