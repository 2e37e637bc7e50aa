//! What `quantized_lookup` is as an op of rows: a word of four bytes per invocation.

use super::{OP, QuantizedLookupOp, TABLE};
use crate::cpu::blocks::{MOVED, independent_rows};
use crate::cpu::bytes::lookup::look_up;
use crate::cpu::workers::each;
use crate::dtype::DType;
use crate::emit::Operand;
use crate::ops::bytes::{LANES, bytes, bytes_mut, numbers};
use crate::ops::operands::{Operands, get};
use crate::ops::reference::Reference;
use crate::ops::rows::RowsOp;
use crate::ops::spec::{Params, unsigned};
use crate::shape::Shape;

impl RowsOp for QuantizedLookupOp {
    const NAME: &'static str = OP;
    const TEXT: &'static str = crate::emit::text!("../../../shaders/quantized_lookup/rows.wgsl");

    fn problem_key(&self) -> String {
        format!("of{}", self.dims)
    }

    fn inputs(&self) -> Vec<(Operand, Shape)> {
        vec![(Operand::Src, self.dims.shape()), (Operand::Arg(0), Shape::nhwc(1, 1, 1, TABLE))]
    }

    fn output(&self) -> Shape {
        self.dims.shape()
    }

    fn dtype(&self, _operand: Operand) -> DType {
        DType::U32
    }

    fn params(&self) -> Params {
        vec![("elements", unsigned(self.dims.elements()))]
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        let [src, table] =
            [Operand::Src, Operand::Arg(0)].map(|operand| bytes(get(operands, operand).unwrap_or_default()));
        let found: Vec<u8> =
            src.iter().map(|&byte| table.get(usize::from(byte)).copied().unwrap_or(0)).collect();
        Reference::exact(numbers(&found).into_iter())
    }

    fn compute(&self, inputs: &[&[f32]], dst: &mut [f32]) {
        let &[src, table] = inputs else { return };
        let Some(table) = bytes(table).first_chunk::<256>() else { return };
        let block = independent_rows(dst.len(), MOVED * LANES);
        each(dst.chunks_mut(block).zip(src.chunks(block)), |(dst, src)| {
            look_up(table, bytes(src), bytes_mut(dst));
        });
    }
}
