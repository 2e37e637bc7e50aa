//! The floats that a file's integers stand for, `FAKE_QUANT` and `BUCKETIZE`: the nearest of some numbers, and the
//! numbers below.
//!
//! TensorFlow Lite computes with the integers, each operator in its own arithmetic. Values are computed in f32 here
//! and rounded as that arithmetic does: its halves, and where it multiplies by eighths of a byte, by the same.

use super::import::{Import, Op};
use super::operands::missing;
use super::tensors::Steps;
use crate::graph::Value;
use crate::model::build::{Kind, Mapped, Operand, on_grid};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use crate::ops::quantization::Rounding;
use crate::ops::reduce::Reduction;

/// What an operator's arithmetic does, of integers or of floats.
fn rounding_of(operator: &str, integers: bool) -> Rounding {
    match operator {
        "ADD" | "SUB" | "LEAKY_RELU" | "RESIZE_BILINEAR" => Rounding::Up,
        "QUANTIZE" if integers => Rounding::Up,
        "AVERAGE_POOL_2D" => Rounding::Away,
        "SQRT" => Rounding::Down,
        _ => Rounding::EvenOfReciprocal,
    }
}

impl<'a> Import<'a> {
    /// The multiple of a scale that stands for a value.
    pub(super) fn rounded(
        &mut self,
        name: &str,
        value: Value,
        steps: Steps,
        rounding: Rounding,
    ) -> Result<Value, Reason> {
        let rank = self.dims(value)?.rank();
        let outer = self.build.current.clone();
        let b = self.named(name);
        let rounded = match steps.quantization() {
            Some(own) => {
                let q =
                    b.add("integers", |graph, name| graph.quantize_rounded(name, value, own, rounding))?;
                b.add("", |graph, name| graph.dequantize_linear(name, q, own))?
            }
            // Integers that f32 does not hold.
            None => {
                let x = Operand::Value(Mapped::plain(value, rank, Kind::F32));
                let rounded = on_grid(b, x, steps.scale, steps.range)?;
                b.mapped(rounded)?.value
            }
        };
        b.current = outer;
        Ok(rounded)
    }

    /// How what an operator computes is rounded.
    pub(super) fn rounding(&self, op: &Op<'a>) -> Result<Rounding, Reason> {
        let first = op.inputs.first().filter(|&&input| input != -1);
        let steps = match first {
            Some(&input) => self.tensors.steps(self.tensors.position(input)?)?,
            None => None,
        };
        Ok(rounding_of(&op.name, steps.is_some()))
    }

    /// The steps of input 0 and of output 0, if both are bytes.
    pub(super) fn steps_of_bytes(&self, op: &Op<'a>) -> Result<Option<[Steps; 2]>, Reason> {
        let of =
            |tensor: i32| self.tensors.position(tensor).and_then(|position| self.tensors.steps(position));
        Ok(match (of(op.input(0)?)?, of(op.output(0)?)?) {
            (Some(from), Some(to)) if from.are_bytes_like(&to) => Some([from, to]),
            _ => None,
        })
    }
}

/// A factor between integers that is kept in 256ths, and how many these are; `None` if it is too large or small
/// for that.
pub(super) fn in_256ths(factor: f32) -> Option<f32> {
    (2.0f32.powi(-8)..=2.0f32.powi(7)).contains(&factor.abs()).then(|| (256.0 * factor).round_ties_even())
}

/// `QUANTIZE`: the nearest of the floats that the output's integers stand for.
pub(super) fn quantise<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[1], 1)?;
    let value = import.value(op, 0)?;
    let factor = match import.steps_of_bytes(op)? {
        Some([from, to]) if from.scale != to.scale => {
            in_256ths(from.scale / to.scale).map(|factor| factor / 256.0 * (to.scale / from.scale))
        }
        _ => None,
    };
    let Some(factor) = factor else { return import.write(op, 0, value) };
    let value = import.begin(op, 0)?.each("", Function::Mul, &[value.into(), factor.into()])?;
    import.write(op, 0, value)
}

/// `FAKE_QUANT`: the nearest of `2^bits` numbers between two, one of which is 0.
pub(super) fn fake_quant<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[1], 1)?;
    let table = op.table.fake_quant().ok_or_else(|| missing(op, "FakeQuantOptions"))?;
    let (least, most, bits) = (table.min(), table.max(), table.bits());
    let spans = least <= 0.0 && most >= 0.0 && most > least && most - least < f32::MAX;
    if !spans || !(2..=16).contains(&bits) {
        return refused!(
            "found {bits} bits from {least} to {most}, wanted 2 to 16, and 0 between two numbers"
        );
    }
    let first = if table.narrow() { 1.0 } else { 0.0 };
    let last = ((1u32 << bits) - 1) as f32;
    let scale = (most - least) / (last - first);
    let zero = (first - least / scale).clamp(first, last).round();
    let (low, high) = ((first - zero) * scale, (last - zero) * scale);
    let x = import.value(op, 0)?;
    let p = import.begin(op, 0)?;
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
    import.build.budget.spend(4 * bounds.len())?;
    if bounds.is_empty() {
        return refused!("found no bounds, wanted at least one");
    }
    let x = import.value(op, 0)?;
    let mut extents = import.dims(x)?.extents().to_vec();
    extents.push(1);
    let p = import.begin(op, 0)?;
    let x = p.reshape("each", x, &extents)?;
    let bounds = p.constant("bounds", &[bounds.len()], bounds)?;
    let over = p.each("over", Function::GreaterEqual, &[x.into(), bounds.into()])?;
    let value = p.reduce("", over, Reduction::Sum, -1, false)?;
    import.write(op, 0, value)
}
