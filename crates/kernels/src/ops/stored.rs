//! What a kernel must know of the values that it reads and writes as they are stored.

use super::definition::Definition;
use super::operands::{OperandInfo, Role};
use super::spec;
use crate::emit::words::CHANNELS;
use crate::emit::{Binding, Epilogue, Least, Operand, Scalar};
use crate::layout::{Form, Layout};

/// The channels of the output, if it is a feature map and the lanes beyond them, which must be zero,
/// may not be: because the activation makes something of zeros, or the sum is of products with zeros.
pub(super) fn channels<O: Definition>(
    epilogue: &Epilogue,
    output: Option<&OperandInfo>,
    form: &dyn Fn(Operand) -> Form,
) -> Option<(&'static str, Scalar)> {
    let output = output?;
    let rows = form(output.operand).is_rows();
    let sums_are_zero = !O::MIXES_CHANNELS || output.map.c.is_multiple_of(4);
    let kept = rows || (sums_are_zero && epilogue.activation.keeps_zero());
    (!kept).then_some((CHANNELS, spec::unsigned(output.map.c)))
}

/// What a kernel reads or writes of a binding at least, if it stores what is not packed in this form.
pub(super) fn least(infos: &[OperandInfo], form: &dyn Fn(Operand) -> Form, binding: &Binding) -> Least {
    let Some(info) = infos.iter().find(|info| info.operand == binding.operand) else {
        // Scratch memory is no operand of the op, and knows its size.
        return binding.least;
    };
    let elements = match (info.role, form(binding.operand)) {
        // Packing drops no value, and fills the last element.
        (Role::Constant, _) => info.elements(),
        (_, Form::Image) => return Least::Pixels(Layout::image_extent(&info.map)),
        (_, form) => info.stored_elements(form),
    };
    let bytes = elements as u64 * binding.element.dtype().bytes() as u64;
    Least::Bytes(bytes.next_multiple_of(binding.element.bytes() as u64))
}
