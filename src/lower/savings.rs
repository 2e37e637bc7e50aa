//! What halves save, and what conversions between storages cost.

use crate::ops::Op;

/// What a conversion between two storages costs beside what it moves, in bytes that could be moved meanwhile: 4 us at
/// 1000 GB/s. So much it took on an NVIDIA H200 when it was two dispatches; networks that move less were slower with
/// it then, by up to a tenth. It is one dispatch since.
pub(super) const CONVERSION: f64 = (4 << 20) as f64;

/// Operations that a device makes in f32 while it moves a byte.
const OPERATIONS_PER_BYTE: f64 = 16.0;

/// Bytes that an op moves if its values are stored in elements of so many bytes: one that computes nothing reads no more
/// than it writes.
fn moved(op: &dyn Op, bytes: usize) -> f64 {
    let written: usize = crate::ops::outputs(op).map(|info| info.elements()).sum();
    let most = if op.flops() == 0 { written } else { usize::MAX };
    op.operands().iter().map(|info| info.elements().min(most) * bytes).sum::<usize>() as f64
}

/// What an op saves in f16, in bytes that could be moved meanwhile.
pub(super) fn saves(op: &dyn Op) -> f64 {
    moved(op, 2) + op.flops() as f64 / (2.0 * OPERATIONS_PER_BYTE)
}
