//! What the kernels' texts name, and the product that both of them end with.

use super::SqueezeOp;
use crate::dtype::DType;
use crate::emit::{Access, Binding, Element, Operand, Value};
use crate::layout::Form;
use crate::ops::group_product;
use crate::ops::kernel::Constants;
use crate::ops::spec::{self, Params, binding, extent, unsigned};

pub(super) fn form(op: &SqueezeOp, operand: Operand) -> Option<Form> {
    Some(if operand == Operand::Dst && op.rows { Form::Rows } else { Form::C4 })
}

/// The buffers of both kernels but for scratch memory, which comes last.
pub(super) fn bindings(op: &SqueezeOp) -> Vec<Binding> {
    let map = Element::Vec4(op.dense.precision.storage());
    let mut bindings =
        vec![binding(Operand::Src, map, Access::Read), binding(Operand::Weights, map, Access::Read)];
    let bias = binding(Operand::Bias, Element::Vec4(DType::F32), Access::Read);
    bindings.extend(op.dense.epilogue.bias.then_some(bias));
    let dst = if op.rows { Element::Scalar(DType::F32) } else { map };
    bindings.push(binding(Operand::Dst, dst, Access::Write));
    bindings
}

pub(super) fn params(op: &SqueezeOp) -> Params {
    vec![
        ("plane", unsigned(op.plane())),
        ("slices", unsigned(op.map.slices())),
        ("inputs", unsigned(op.map.c)),
        ("outputs", unsigned(op.dense.output.c)),
        ("rows", unsigned(op.dense.output.slices())),
    ]
}

/// The constants of a work-group of `size` invocations with `words` of local memory for means.
pub(super) fn constants(op: &SqueezeOp, size: u32, words: usize) -> Constants {
    let shares = group_product::shares(size, op.dense.output.slices(), op.map.c);
    let unrolled = group_product::unrolled(op.map.c, shares);
    [
        ("SIZE", size),
        ("MEANS", extent(words)),
        ("SHARES", extent(shares)),
        ("UNROLL", extent(unrolled)),
        ("ROWS", op.rows.into()),
    ]
    .map(|(name, value)| (name, Value::U32(value)))
    .to_vec()
}

/// Weights as `[output slice][input][4]`.
pub(super) fn pack(op: &SqueezeOp, operand: Operand, data: &[f32]) -> Vec<f32> {
    let (inputs, rows) = (op.map.c, op.dense.output.slices());
    if operand == Operand::Bias {
        return spec::pack_channels(data, rows);
    }
    group_product::pack(data, inputs, rows)
}
