//! What a kernel must know of the values that it reads and writes as they are stored.

use super::definition::Definition;
use super::kernel::Kernel;
use super::plan::{Choice, Op};
use super::spec;
use crate::emit::words::CHANNELS;
use crate::emit::{Binding, Least, Scalar};
use crate::layout::{Form, Layout};

/// The channels of what `kernel` writes, if it is a feature map and the lanes beyond them, which must be zero,
/// may not be: because the activation makes something of zeros, or the sum is of products with zeros.
pub(super) fn channels<O: Definition>(
    op: &O,
    kernel: &dyn Kernel<O>,
    choice: &Choice,
) -> Option<(&'static str, Scalar)> {
    let output = op.operands().into_iter().next_back()?;
    let rows = kernel.form(op, output.operand, choice) == Form::Rows;
    let sums_are_zero = !O::mixes_channels() || output.map.c.is_multiple_of(4);
    let kept = rows || (sums_are_zero && op.epilogue().activation.keeps_zero());
    (!kept).then_some((CHANNELS, spec::unsigned(output.map.c)))
}

/// What the kernel of `choice` reads or writes of a binding at least, as `op` stores it.
pub(super) fn least<O: Definition>(op: &O, choice: &Choice, binding: &Binding) -> Least {
    let infos = Definition::operands(op);
    let Some(info) = infos.iter().find(|info| info.operand == binding.operand) else {
        return Least::Element;
    };
    let elements = match Op::form(op, binding.operand, choice) {
        Some(Form::Image) => return Least::Pixels(Layout::image_extent(&info.map)),
        Some(form) => info.stored_elements(form),
        // Packing drops no value, and fills the last element.
        None => info.elements(),
    };
    let bytes = elements as u64 * binding.element.dtype().bytes() as u64;
    Least::Bytes(bytes.next_multiple_of(binding.element.bytes() as u64))
}
