//! Fourier transforms as products with matrices of cosines and sines.

use super::builder::Builder;
use super::constants::floats;
use super::kind::Kind;
use super::moves::padded;
use super::operand::Operand;
use super::products::product;
use crate::emit::Bits;
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use crate::ops::remap::PadMode;
use std::f64::consts::TAU;

/// The longest transform: its matrices have as many rows and columns.
pub(crate) const MAX_LENGTH: usize = 1 << 13;

/// A transform along one axis.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transform {
    pub(crate) axis: usize,
    /// How many elements it has: a longer signal is cut off, zeros follow a shorter one.
    pub(crate) length: usize,
    pub(crate) inverse: bool,
    /// Of a real signal: whether the frequencies above half of the length, which mirror the others, are left out.
    pub(crate) onesided: bool,
}

/// A real and an imaginary part.
pub(crate) type Complex = (Operand, Option<Operand>);

impl Transform {
    /// The frequencies of one side.
    const fn bins(self) -> usize {
        self.length / 2 + 1
    }

    /// What becomes of a signal, whose imaginary part may be zeros. Backwards from one side there is only a real part.
    pub(crate) fn of(self, b: &mut Builder, (real, imaginary): Complex) -> Result<Complex, Reason> {
        let Transform { axis, length, inverse, onesided } = self;
        let halves = inverse && onesided;
        let rows = if halves { self.bins() } else { length };
        let columns = if onesided && !inverse { self.bins() } else { length };
        let real = self.laid(b, real, rows)?;
        let imaginary = match imaginary {
            Some(imaginary) => Some(self.laid(b, imaginary, rows)?),
            None => None,
        };
        let scale = if inverse { 1.0 / length as f64 } else { 1.0 };
        // What a frequency that is left out adds, its mirror image does.
        let twice = move |n: usize| if halves && n > 0 && 2 * n != length { 2.0 } else { 1.0 };
        let sign = if inverse { 1.0 } else { -1.0 };
        let cosines = waves(b, [rows, columns], length, |n, angle| twice(n) * scale * angle.cos())?;
        let sines = waves(b, [rows, columns], length, |n, angle| twice(n) * sign * scale * angle.sin())?;
        let mut first = product(b, "real", real.clone(), cosines.clone())?;
        if let Some(imaginary) = &imaginary {
            let more = product(b, "part", imaginary.clone(), sines.clone())?;
            first = b.apply("real", Function::Sub, &[first.into(), more.into()])?;
        }
        let mut second = None;
        if !halves {
            let mut own = product(b, "imaginary", real, sines)?;
            if let Some(imaginary) = imaginary {
                let more = product(b, "part", imaginary, cosines)?;
                own = b.apply("imaginary", Function::Add, &[own.into(), more.into()])?;
            }
            second = Some(own);
        }
        // Back to the order of the signal.
        let rank = b.shape(&first)?.len();
        let back: Vec<usize> = (0..axis).chain([rank - 1]).chain(axis..rank - 1).collect();
        let first = b.transposed(first, &back)?;
        let second = match second {
            Some(second) => Some(b.transposed(second, &back)?),
            None => None,
        };
        Ok((first, second))
    }

    /// A signal of so many elements, with the axis behind the others.
    fn laid(self, b: &mut Builder, signal: Operand, count: usize) -> Result<Operand, Reason> {
        let extents = b.shape(&signal)?;
        let Some(&own) = extents.get(self.axis) else {
            return refused!("found a signal of {extents:?} for axis {}", self.axis);
        };
        let mut around = vec![(0, 0); extents.len()];
        around[self.axis] = (0, count as i64 - own as i64);
        let signal = padded(b, "length", signal, &extents, &around, PadMode::Constant(Bits(0.0)))?;
        let order: Vec<usize> =
            (0..extents.len()).filter(|&axis| axis != self.axis).chain([self.axis]).collect();
        b.transposed(signal, &order)
    }
}

/// A matrix `rows columns` of a function of the row `n` and the angle `TAU k n / length`.
pub(crate) fn waves(
    b: &mut Builder,
    [rows, columns]: [usize; 2],
    length: usize,
    of: impl Fn(usize, f64) -> f64,
) -> Result<Operand, Reason> {
    if [length, rows, columns].iter().any(|count| !(1..=MAX_LENGTH).contains(count)) {
        return refused!("found a transform of {length} elements, wanted 1 to {MAX_LENGTH}");
    }
    b.budget.spend(rows.saturating_mul(columns).saturating_mul(8))?;
    let mut values = Vec::with_capacity(rows * columns);
    for n in 0..rows {
        values.extend((0..columns).map(|k| of(n, TAU * ((n * k) % length) as f64 / length as f64) as f32));
    }
    Ok(Operand::Constant(floats(&[rows, columns], values)?, Kind::F32))
}
