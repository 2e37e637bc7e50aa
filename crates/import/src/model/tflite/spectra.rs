//! Spectra of real values: `RFFT2D` and what is made of complex numbers.
//!
//! A complex value is two values of the graph: the slot has the real part, and `Import::imaginary` the other one.

use super::import::{Import, Op};
use crate::emit::Bits;
use crate::graph::Value;
use crate::model::build::{MAX_LENGTH, Transform, padded, sizes};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use crate::ops::remap::PadMode;

/// `RFFT2D`: the spectrum over the last two axes, cut off or extended by zeros to given lengths.
pub(super) fn rfft2d<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let x = import.operand(op, 0)?;
    let lengths = sizes(&import.integers(op, 1)?.values)?;
    let extents = import.build.shape(&x)?;
    let (&[ref outer @ .., h, w], &[height, width]) = (&extents[..], &lengths[..]) else {
        return refused!("found {extents:?} over lengths {lengths:?}, wanted two axes and lengths");
    };
    if !(1..=MAX_LENGTH).contains(&height) || !(1..=MAX_LENGTH).contains(&width) {
        return refused!("found lengths {lengths:?}, wanted 1 to {MAX_LENGTH}");
    }
    let bins = width / 2 + 1;
    import.build.budget.grow_by_lengths(16 * width * bins + 16 * height * height)?;
    let build = import.begin(op, 0)?;
    let rank = extents.len();
    let mut around = vec![(0, 0); rank];
    around[rank - 2] = (0, height as i64 - h as i64);
    around[rank - 1] = (0, width as i64 - w as i64);
    let x = padded(build, "lengths", x, &extents, &around, PadMode::Constant(Bits(0.0)))?;
    let rows = Transform { axis: rank - 1, length: width, inverse: false, onesided: true };
    let mut spectrum = rows.of(build, (x, None))?;
    if height > 1 {
        let columns = Transform { axis: rank - 2, length: height, inverse: false, onesided: false };
        spectrum = columns.of(build, spectrum)?;
    }
    let (real, Some(imaginary)) = spectrum else { return refused!("found no imaginary part") };
    let target = [outer, &[height, bins]].concat();
    let imaginary = build.with_extents("imaginary", imaginary, &target)?;
    let real = build.with_extents("", real, &target)?;
    let (real, imaginary) = (build.mapped(real)?.value, build.mapped(imaginary)?.value);
    import.imaginary.insert(real, imaginary);
    import.write(op, 0, real)
}

/// The real and the imaginary part of input 0.
fn complex<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<[Value; 2], Reason> {
    op.check(&[1], 1)?;
    let real = import.value(op, 0)?;
    let imaginary = import.imaginary.get(&real).copied();
    let found = || format!("{}: found no complex value, wanted one of RFFT2D", import.describe(op, 0));
    Ok([real, imaginary.ok_or_else(found)?])
}

/// `COMPLEX_ABS`.
pub(super) fn magnitude<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    let [real, imaginary] = complex(import, op)?;
    let parts = import.begin(op, 0)?;
    let a = parts.each("real2", Function::Square, &[real.into()])?;
    let b = parts.each("imaginary2", Function::Square, &[imaginary.into()])?;
    let sum = parts.each("sum", Function::Add, &[a.into(), b.into()])?;
    let value = parts.each("", Function::Sqrt, &[sum.into()])?;
    import.write(op, 0, value)
}

/// `REAL` and `IMAG`.
pub(super) fn part<'a>(import: &mut Import<'a>, op: &Op<'a>, imaginary: bool) -> Result<(), Reason> {
    let value = complex(import, op)?[usize::from(imaginary)];
    let extents = import.dims(value)?.extents().to_vec();
    let value = import.begin(op, 0)?.reshape("", value, &extents)?;
    import.write(op, 0, value)
}
