//! Spectra of real values: `RFFT2D` and what is made of complex numbers.
//!
//! A complex value is two values of the graph: the slot has the real part, and `Import::imaginary` the other one.

use super::compose::Compose;
use super::import::{Import, Op};
use super::shapes::sizes;
use crate::graph::{Extras, Right, Value};
use crate::host::HostTensor;
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;

/// The longest transform: it is a product with a matrix.
const MAX_LENGTH: usize = 8192;

/// `n` cosines and sines of each of `m` frequencies, `n m`.
fn waves(n: usize, m: usize, wave: fn(f64) -> f64) -> Result<HostTensor, Reason> {
    let turn = std::f64::consts::TAU / n as f64;
    let turns: Vec<f32> = (0..n).map(|at| wave(turn * at as f64) as f32).collect();
    let mut values = Vec::with_capacity(n * m);
    for at in 0..n {
        values.extend((0..m).map(|k| turns[(at * k) % n]));
    }
    let dims = super::constant::dims_of(&[n, m])?;
    HostTensor::new(dims, values).map_err(Reason::from)
}

/// `RFFT2D`: the spectrum over the last two axes, cut off or extended by zeros to given lengths.
pub(super) fn rfft2d<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let x = import.value(op, 0)?;
    let lengths = sizes(&import.integers(op, 1)?.values)?;
    let extents = import.dims(x)?.extents().to_vec();
    let (&[ref outer @ .., h, w], &[height, width]) = (&extents[..], &lengths[..]) else {
        return refused!("found {extents:?} over lengths {lengths:?}, wanted two axes and lengths");
    };
    if !(1..=MAX_LENGTH).contains(&height) || !(1..=MAX_LENGTH).contains(&width) {
        return refused!("found lengths {lengths:?}, wanted 1 to {MAX_LENGTH}");
    }
    let bins = width / 2 + 1;
    import.budget.grow_by_lengths(8 * width * bins + 16 * height * height)?;
    let mut parts = import.compose(op, 0)?;
    let p = &mut parts;
    let mut x = x;
    for (axis, own, wanted) in [(outer.len(), h, height), (outer.len() + 1, w, width)] {
        if own > wanted {
            x = p.slice("cut", x, axis, [0, wanted])?;
        } else if own < wanted {
            x = p.extended("extended", x, axis, wanted - own, 0.0)?;
        }
    }
    let count: usize = outer.iter().product();
    let rows = p.reshape("rows", x, &[count * height, width])?;
    let transformed = |p: &mut Compose<'_, 'a>, rows: Value, n: usize, m: usize, wave: fn(f64) -> f64| {
        p.product("waves", rows, Right::Constant(waves(n, m, wave)?), false, Extras::default())
    };
    let mut real = transformed(p, rows, width, bins, f64::cos)?;
    let mut imaginary = transformed(p, rows, width, bins, |turn| -turn.sin())?;
    if height > 1 {
        let columns = |p: &mut Compose<'_, 'a>, value: Value| {
            let value = p.reshape("lines", value, &[count, height, bins])?;
            let value = p.transpose("columns", value, &[0, 2, 1])?;
            p.reshape("columns", value, &[count * bins, height])
        };
        let (a, b) = (columns(p, real)?, columns(p, imaginary)?);
        let mut along = |value: Value, wave: fn(f64) -> f64| transformed(p, value, height, height, wave);
        // (a + i b) (cos - i sin)
        let [ac, asn] = [along(a, f64::cos)?, along(a, f64::sin)?];
        let [bc, bsn] = [along(b, f64::cos)?, along(b, f64::sin)?];
        real = p.each("real", Function::Add, &[ac.into(), bsn.into()])?;
        imaginary = p.each("imaginary", Function::Sub, &[bc.into(), asn.into()])?;
        let mut lines = |value: Value| {
            let value = p.reshape("columns", value, &[count, bins, height])?;
            p.transpose("lines", value, &[0, 2, 1])
        };
        (real, imaginary) = (lines(real)?, lines(imaginary)?);
    }
    let target = [outer, &[height, bins]].concat();
    let imaginary = p.reshape("imaginary", imaginary, &target)?;
    let real = p.reshape("", real, &target)?;
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
    let mut parts = import.compose(op, 0)?;
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
    let value = import.compose(op, 0)?.reshape("", value, &extents)?;
    import.write(op, 0, value)
}
