//! What `top_k` is as an op of rows: the place of one element in its row per invocation.

use super::{OP, TopKOp, key, oracle, select};
use crate::cpu::blocks::independent_rows;
use crate::cpu::workers::each;
use crate::emit::{Operand, Value};
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, offers};
use crate::ops::operands::{Operands, get};
use crate::ops::reference::Reference;
use crate::ops::rows::{Rows, RowsOp};
use crate::ops::spec::{Params, unsigned};
use crate::shape::Shape;
use std::cmp::Reverse;

impl RowsOp for TopKOp {
    const NAME: &'static str = OP;
    const TEXT: &'static str = crate::emit::text!("../../../shaders/top_k/rows.wgsl");
    const UNTUNABLE: &'static str = "a choice of the largest has one kernel for rows of a length";

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&Rows, &select::Select]
    }

    fn offers(&self, limits: &Limits) -> Vec<Offer> {
        if self.is_long(limits) { Vec::new() } else { offers(0, [[1, 1, 1]]) }
    }

    fn problem_key(&self) -> String {
        let what = if self.indices { "indices" } else { "values" };
        format!("from{} to{} {what}", self.source, self.target)
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

    fn params(&self) -> Params {
        let [terms, chosen] = self.extents();
        vec![
            ("elements", unsigned(self.source.elements())),
            ("terms", unsigned(terms)),
            ("chosen", unsigned(chosen)),
        ]
    }

    fn constants(&self) -> Constants {
        vec![("INDICES", Value::U32(u32::from(self.indices)))]
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        oracle::oracle(self, get(operands, Operand::Src).unwrap_or_default())
    }

    fn compute(&self, inputs: &[&[f32]], dst: &mut [f32]) {
        let &[src] = inputs else { return };
        let [extent, k] = self.extents();
        let block = independent_rows(dst.len() / k, 8 * extent);
        each(dst.chunks_mut(block * k).zip(src.chunks(block * extent)), |(dst, src)| {
            let mut places = Vec::with_capacity(extent);
            for (dst, src) in dst.chunks_exact_mut(k).zip(src.chunks_exact(extent)) {
                let order = |place: &usize| (Reverse(key(src[*place])), *place);
                places.clear();
                places.extend(0..extent);
                places.select_nth_unstable_by_key(k - 1, order);
                places.truncate(k);
                places.sort_unstable_by_key(order);
                for (value, &place) in dst.iter_mut().zip(&places) {
                    *value = if self.indices { place as f32 } else { src[place] };
                }
            }
        });
    }
}
