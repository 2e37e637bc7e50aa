//! What the kernels' texts name.

use super::MlpOp;
use crate::dtype::DType;
use crate::emit::{Access, Binding, Element, Operand, Scalar, Value};
use crate::ops::convolution::Convolution;
use crate::ops::group_product::{self, unrolled};
use crate::ops::kernel::Constants;
use crate::ops::spec::{self, Params, binding, extent, unsigned};

/// The invocations of the largest work-group that every kernel is offered in.
pub(super) const SIZE: u32 = 256;

/// The words that rows may take beside a vec4 of each invocation in the 16 KiB of local memory that every device has.
pub const MOST_WORDS: usize = ((16 << 10) - 16 * SIZE as usize - 16) / 4;

/// Values beyond which powers of two would waste what there is.
const FINE: usize = 1024;

/// Words of local memory for `count` values, so that one text serves those below.
pub fn words_of(count: usize) -> usize {
    if count <= FINE { count.next_power_of_two().max(64) } else { count.next_multiple_of(FINE / 2) }
}

/// The buffers of all kernels but for scratch memory, which comes last.
pub(super) fn bindings(op: &MlpOp) -> Vec<Binding> {
    let storage = op.last.precision.storage();
    let (matrix, vector) = (Element::Vec4(storage), Element::Vec4(DType::F32));
    let mut bindings = vec![binding(Operand::Src, Element::Scalar(storage), Access::Read)];
    if let Some(first) = &op.first {
        bindings.push(binding(Operand::Window, matrix, Access::Read));
        let bias = binding(Operand::WindowBias, vector, Access::Read);
        bindings.extend(first.epilogue.bias.then_some(bias));
    }
    bindings.push(binding(Operand::Weights, matrix, Access::Read));
    bindings.extend(op.last.epilogue.bias.then_some(binding(Operand::Bias, vector, Access::Read)));
    bindings.push(binding(Operand::Dst, Element::Scalar(storage), Access::Write));
    bindings
}

pub(super) fn params(op: &MlpOp) -> Params {
    let (rows, output) = (op.rows(), op.last.output);
    let mut params = vec![
        ("lines", unsigned(rows.n)),
        ("inputs", unsigned(rows.c)),
        ("outputs", unsigned(output.c)),
        ("rows", unsigned(output.slices())),
    ];
    if let Some(first) = &op.first {
        params
            .extend([("hidden", unsigned(first.output.c)), ("hidden_rows", unsigned(first.output.slices()))]);
    }
    params.extend(op.norm.map(|norm| ("epsilon", Scalar::F32(norm.epsilon.0))));
    params
}

/// The constants of a work-group of `size` invocations, `shares` of which have each four outputs of the last layer.
pub(super) fn constants(op: &MlpOp, size: u32, shares: usize) -> Constants {
    [
        ("SIZE", size),
        ("LINE", extent(words_of(op.rows().c))),
        ("SHARES", extent(shares)),
        ("UNROLL", extent(unrolled(op.last.input.c, shares))),
        ("ROWS", 1),
        ("NORM", op.norm.is_some().into()),
        ("CENTRED", op.norm.is_some_and(|norm| norm.centred).into()),
    ]
    .map(|(name, value)| (name, Value::U32(value)))
    .to_vec()
}

/// The constants of the first of two layers, four of whose outputs `shares` invocations have.
pub(super) fn constants_of_first(first: &Convolution, shares: usize) -> Constants {
    [
        ("HIDDEN", extent(words_of(first.output.c))),
        ("HIDDEN_SHARES", extent(shares)),
        ("HIDDEN_UNROLL", extent(unrolled(first.input.c, shares))),
    ]
    .map(|(name, value)| (name, Value::U32(value)))
    .to_vec()
}

/// Weights as `[output slice][input][4]`.
pub(super) fn pack(op: &MlpOp, operand: Operand, data: &[f32]) -> Vec<f32> {
    let layer = match operand {
        Operand::Window | Operand::WindowBias => op.first.as_ref().unwrap_or(&op.last),
        _ => &op.last,
    };
    if matches!(operand, Operand::Bias | Operand::WindowBias) {
        return spec::pack_channels(data, layer.output.slices());
    }
    group_product::pack(data, layer.input.c, layer.output.slices())
}
