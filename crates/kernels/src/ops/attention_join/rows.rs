//! What `attention_join` is as an op of rows: a unit of one query's result per invocation.

use super::{AttentionJoinOp, OP, oracle};
use crate::dtype::{DType, Precision};
use crate::emit::{Operand, Scalar, Value};
use crate::ops::attention::{NO_KEY, Sizes};
use crate::ops::kernel::Constants;
use crate::ops::operands::{Operands, get};
use crate::ops::reference::Reference;
use crate::ops::rows::RowsOp;
use crate::ops::spec::{Params, extent, unsigned};
use crate::shape::Shape;

impl RowsOp for AttentionJoinOp {
    const NAME: &'static str = OP;
    const TEXT: &'static str = crate::emit::text!("../../../shaders/attention_join/rows.wgsl");

    fn problem_key(&self) -> String {
        let Sizes { batch, heads, group, rows, width, .. } = self.whole.sizes;
        let nan = if self.whole.rules.nan_if_nothing { " nan" } else { "" };
        format!(
            "b{batch} h{heads} g{group} m{rows} e{width} tail{} y{:?} to{} of{}{nan}",
            self.whole.tail(),
            self.whole.dst,
            self.whole.output,
            self.parts
        )
    }

    fn inputs(&self) -> Vec<(Operand, Shape)> {
        vec![(Operand::Src, self.source)]
    }

    fn output(&self) -> Shape {
        self.whole.output.shape()
    }

    fn flops(&self) -> u64 {
        2 * (self.source.elements() as u64)
    }

    fn invocations(&self) -> usize {
        self.queries() * self.whole.sizes.width / self.lanes()
    }

    fn precision(&self) -> Precision {
        if self.lanes() == 4 { self.precision } else { Precision::F32 }
    }

    fn stored(&self, operand: Operand) -> DType {
        if operand == Operand::Dst { RowsOp::precision(self).storage() } else { DType::F32 }
    }

    fn is_wide(&self, _operand: Operand) -> bool {
        self.lanes() == 4
    }

    fn params(&self) -> Params {
        let Sizes { heads, group, rows, .. } = self.whole.sizes;
        let lanes = self.lanes();
        let [batch_step, head_step, group_step, row_step] = self.whole.dst.steps.map(|step| step / lanes);
        let mut params = vec![
            ("units", unsigned(self.invocations())),
            ("part", unsigned(self.queries() * self.row() / lanes)),
            ("rows", unsigned(rows)),
            ("heads_shared", unsigned(group)),
            ("heads", unsigned(heads)),
            ("dst_batch", unsigned(batch_step)),
            ("dst_head", unsigned(head_step)),
            ("dst_group", unsigned(group_step)),
            ("dst_row", unsigned(row_step)),
        ];
        if self.whole.rules.nan_if_nothing {
            params.push(("nothing", Scalar::U32(f32::NAN.to_bits())));
        }
        params
    }

    fn constants(&self) -> Constants {
        let lanes = self.lanes();
        let numbers = [
            ("LANES", lanes),
            ("UNITS", self.whole.sizes.width / lanes),
            ("TAIL", self.whole.tail() / lanes),
            ("PARTS", self.parts),
            ("NOTHING", usize::from(self.whole.rules.nan_if_nothing)),
        ];
        numbers.map(|(name, number)| (name, Value::U32(extent(number)))).into()
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        oracle::oracle(self, get(operands, Operand::Src).unwrap_or_default())
    }

    fn compute(&self, inputs: &[&[f32]], dst: &mut [f32]) {
        let &[src] = inputs else { return };
        let (row, width) = (self.row(), self.whole.sizes.width);
        let part = self.queries() * row;
        for query in 0..self.queries() {
            let rows = || src.chunks_exact(part).filter_map(|part| part.get(query * row..(query + 1) * row));
            let logarithm = |row: &[f32]| row.get(width).copied().unwrap_or(f32::NAN);
            let most = rows().map(logarithm).fold(NO_KEY, f32::max);
            let Some(to) = dst.get_mut(self.place(query)..).and_then(|dst| dst.get_mut(..width)) else {
                return;
            };
            to.fill(0.0);
            let mut all = 0.0;
            for row in rows() {
                let share = (logarithm(row) - most).exp();
                all += share;
                to.iter_mut().zip(row).for_each(|(sum, value)| *sum += share * value);
            }
            let nothing = most == NO_KEY && self.whole.rules.nan_if_nothing;
            to.iter_mut().for_each(|sum| *sum = if nothing { f32::NAN } else { *sum / all });
        }
    }
}
