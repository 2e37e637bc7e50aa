//! What `top_k` is as an op of rows: the place of one element in its row per invocation.

use super::{OP, TopKOp, oracle, select};
use crate::cpu::blocks::independent_rows;
use crate::cpu::workers::each;
use crate::dtype::DType;
use crate::emit::{Operand, Value};
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, offers};
use crate::ops::operands::{Operands, get};
use crate::ops::reference::Reference;
use crate::ops::rows::{Rows, RowsOp, word_key, word_number};
use crate::ops::spec::{Params, unsigned};
use crate::shape::Shape;

impl RowsOp for TopKOp {
    const NAME: &'static str = OP;
    const TEXT: &'static str = crate::emit::text!("../../../shaders/top_k/rows.wgsl");
    const UNTUNABLE: &'static str = "a choice of elements has one kernel for rows of a length";

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&Rows, &select::Select]
    }

    fn offers(&self, limits: &Limits) -> Vec<Offer> {
        if self.is_long(limits) { Vec::new() } else { offers(0, [[1, 1, 1]]) }
    }

    fn problem_key(&self) -> String {
        let what = if self.indices { "indices" } else { "values" };
        let which = if self.largest { "" } else { " smallest" };
        format!("from{} to{} {what}{which}{}", self.source, self.target, word_key(self.dtype))
    }

    fn inputs(&self) -> Vec<(Operand, Shape)> {
        vec![(Operand::Src, self.source.shape())]
    }

    fn output(&self) -> Shape {
        self.target.shape()
    }

    /// A comparison of each two elements of a row.
    fn flops(&self) -> u64 {
        self.source.elements() as u64 * self.extents()[0] as u64
    }

    fn invocations(&self) -> usize {
        self.source.elements()
    }

    fn dtype(&self, operand: Operand) -> DType {
        if self.indices && operand == Operand::Dst { DType::F32 } else { self.dtype }
    }

    fn params(&self) -> Params {
        let [terms, chosen] = self.extents();
        vec![
            ("elements", unsigned(self.source.elements())),
            ("terms", unsigned(terms)),
            ("chosen", unsigned(chosen)),
        ]
    }

    fn constants(&self) -> Constants {
        vec![
            ("INDICES", Value::U32(u32::from(self.indices))),
            ("SOURCE", word_number(self.dtype)),
            ("TURNED", self.turned()),
        ]
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        oracle::oracle(self, get(operands, Operand::Src).unwrap_or_default())
    }

    fn compute(&self, inputs: &[&[f32]], dst: &mut [f32]) {
        let &[src] = inputs else { return };
        let [extent, k] = self.extents();
        let words = self.dtype.words();
        // Of each row that is written.
        let written = if self.indices { k } else { k * words };
        let block = independent_rows(dst.len() / written, 8 * extent);
        each(dst.chunks_mut(block * written).zip(src.chunks(block * extent * words)), |(dst, src)| {
            let mut places = Vec::with_capacity(extent);
            for (dst, src) in dst.chunks_exact_mut(written).zip(src.chunks_exact(extent * words)) {
                let keys = self.keys(src);
                let order = |place: &usize| (keys[*place], *place);
                places.clear();
                places.extend(0..extent);
                places.select_nth_unstable_by_key(k - 1, order);
                places.truncate(k);
                #[expect(clippy::disallowed_methods, reason = "it sorts at each run")]
                places.sort_unstable_by_key(order);
                if self.indices {
                    dst.iter_mut().zip(&places).for_each(|(index, &place)| *index = place as f32);
                    continue;
                }
                for (value, &place) in dst.chunks_exact_mut(words).zip(&places) {
                    value.copy_from_slice(&src[words * place..words * (place + 1)]);
                }
            }
        });
    }
}
