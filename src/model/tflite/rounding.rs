//! `FAKE_QUANT` and `BUCKETIZE`: the nearest of some numbers, and the numbers below.

use super::convolution::missing;
use super::import::{Import, Op};
use super::tensors::Reason;
use crate::ops::elementwise::Function;
use crate::ops::reduce::Reduction;

/// `FAKE_QUANT`: the nearest of `2^bits` numbers between two, one of which is 0.
pub(super) fn fake_quant<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[1], 1)?;
    let table = op.table.fake_quant().ok_or_else(|| missing(op, "FakeQuantOptions"))?;
    let (least, most, bits) = (table.min(), table.max(), table.bits());
    let spans = least <= 0.0 && most >= 0.0 && most > least && most - least < f32::MAX;
    if !spans || !(2..=16).contains(&bits) {
        return Err(format!(
            "found {bits} bits from {least} to {most}, wanted 2 to 16, and 0 between two numbers"
        ));
    }
    let first = if table.narrow() { 1.0 } else { 0.0 };
    let last = ((1u32 << bits) - 1) as f32;
    let scale = (most - least) / (last - first);
    let zero = (first - least / scale).clamp(first, last).round();
    let (low, high) = ((first - zero) * scale, (last - zero) * scale);
    let x = import.value(op, 0)?;
    let mut parts = import.compose(op, 0)?;
    let p = &mut parts;
    let clamped = p.each("clamped", Function::Clamp, &[x.into(), low.into(), high.into()])?;
    let moved = p.each("moved", Function::Sub, &[clamped.into(), low.into()])?;
    let steps = p.each("steps", Function::Mul, &[moved.into(), (1.0 / scale).into()])?;
    let above = p.each("above", Function::Add, &[steps.into(), 0.5.into()])?;
    let whole = p.each("whole", Function::Floor, &[above.into()])?;
    let scaled = p.each("scaled", Function::Mul, &[whole.into(), scale.into()])?;
    let value = p.each("", Function::Add, &[scaled.into(), low.into()])?;
    import.write(op, 0, value)
}

/// `BUCKETIZE`: how many of some numbers are not larger.
pub(super) fn bucketize<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[1], 1)?;
    let table = op.table.bucketize().ok_or_else(|| missing(op, "BucketizeOptions"))?;
    let bounds: Vec<f32> = table.bounds().map_or_else(Vec::new, |bounds| bounds.iter().collect());
    import.budget.spend(4 * bounds.len())?;
    if bounds.is_empty() {
        return Err("found no bounds, wanted at least one".to_owned());
    }
    let x = import.value(op, 0)?;
    let mut extents = import.dims(x)?.extents().to_vec();
    extents.push(1);
    let mut parts = import.compose(op, 0)?;
    let p = &mut parts;
    let x = p.reshape("each", x, &extents)?;
    let bounds = p.constant("bounds", &[bounds.len()], bounds)?;
    let over = p.each("over", Function::GreaterEqual, &[x.into(), bounds.into()])?;
    let value = p.reduce("", over, Reduction::Sum, -1, false)?;
    import.write(op, 0, value)
}
