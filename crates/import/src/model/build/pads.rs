//! What lies around the elements of an operand.

use super::builder::Builder;
use super::moves::{padded, part_of};
use super::operand::Operand;
use crate::emit::Bits;
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use crate::ops::remap::PadMode;

/// What lies around.
pub(crate) enum Around {
    Number(f32),
    /// One number that is computed at each run, or that f32 does not hold.
    Operand(Operand),
    /// The elements mirrored at the border, which is not repeated: `c b a b c`.
    Reflect,
    /// The elements mirrored at the border, which is repeated: `b a a b c`.
    Symmetric,
    /// The element at the border, repeated.
    Edge,
    /// The elements of the other end.
    Wrap,
}

/// An operand with elements before and after those of each axis; where there are fewer than none, some are cut off.
pub(crate) fn surrounded(
    b: &mut Builder,
    x: Operand,
    around: &[(i64, i64)],
    what: Around,
) -> Result<Operand, Reason> {
    let own = b.shape(&x)?;
    let mode = match what {
        Around::Number(number) => PadMode::Constant(Bits(number)),
        Around::Reflect => PadMode::Reflect,
        Around::Symmetric => PadMode::Symmetric,
        Around::Edge => PadMode::Edge,
        Around::Operand(value) => return chosen(b, x, &own, around, value),
        Around::Wrap => return wrapped(b, x, &own, around),
    };
    padded(b, "", x, &own, around, mode)
}

/// A value that is chosen where no element is.
fn chosen(
    b: &mut Builder,
    x: Operand,
    own: &[usize],
    around: &[(i64, i64)],
    value: Operand,
) -> Result<Operand, Reason> {
    let zeros = PadMode::Constant(Bits(0.0));
    let x = padded(b, "padded", x, own, around, zeros)?;
    let inside = b.filled(own, 1.0)?;
    let inside = padded(b, "inside", inside, own, around, zeros)?;
    // One number, of whatever rank.
    let value = b.with_extents("value", value, &[])?;
    b.apply("", Function::Select, &[inside.into(), x.into(), value.into()])
}

/// Along one axis after the other the elements of the other end.
fn wrapped(b: &mut Builder, x: Operand, own: &[usize], around: &[(i64, i64)]) -> Result<Operand, Reason> {
    let mut x = x;
    for (place, (&extent, &(before, after))) in own.iter().zip(around).enumerate() {
        let fits = |pad: i64| usize::try_from(pad).ok().filter(|&pad| pad <= extent);
        let (Some(before), Some(after)) = (fits(before), fits(after)) else {
            return refused!("found pads {around:?} of {own:?}, wanted none longer than an axis");
        };
        let mut parts = Vec::new();
        if before > 0 {
            parts.push(part_of(b, "end", &x, place, [extent - before, before])?);
        }
        parts.push(x.clone());
        if after > 0 {
            parts.push(part_of(b, "end", &x, place, [0, after])?);
        }
        if parts.len() > 1 {
            x = b.joined("wrapped", parts, place)?;
        }
    }
    Ok(x)
}
