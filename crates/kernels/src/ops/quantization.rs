//! Numbers that integers stand for, `scale (q - zero)`, and the programs that round numbers to such integers and give the numbers
//! of integers: ONNX's QuantizeLinear and DequantizeLinear.
//!
//! These are functions of each element in f32. A session computes the operators between them on bytes where it can, and then
//! nothing is left of these programs.

use super::elementwise::{Function, Program, Source, Step};
use crate::emit::Bits;
use crate::error::{Error, Result};

/// What f32 leaves uncertain of a few hundred steps.
const NEAR: f32 = 1.0 / 8192.0;

/// The largest integer that f32 holds with all smaller ones.
const MOST: i32 = 1 << 24;

/// Integers that stand for numbers: `q` with `low <= q <= high` stands for `scale (q - zero)`.
///
/// The terms are those of ONNX's QuantizeLinear and of TensorFlow Lite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Quantization {
    /// How far apart the numbers of neighbouring integers are. Positive and finite.
    pub scale: Bits,
    /// The integer that stands for 0.
    pub zero: i32,
    /// The least integer.
    pub low: i32,
    /// The largest integer.
    pub high: i32,
}

impl Quantization {
    /// Signed integers of 8 bits.
    ///
    /// ```
    /// use diptych::nn::Quantization;
    ///
    /// let steps = Quantization::signed(0.5, -3);
    /// assert_eq!((steps.low, steps.high, steps.zero), (-128, 127, -3));
    /// ```
    pub const fn signed(scale: f32, zero: i8) -> Self {
        Quantization { scale: Bits(scale), zero: zero as i32, low: -128, high: 127 }
    }

    /// Unsigned integers of 8 bits.
    ///
    /// ```
    /// use diptych::nn::Quantization;
    ///
    /// let steps = Quantization::unsigned(0.5, 128);
    /// assert_eq!((steps.low, steps.high, steps.zero), (0, 255, 128));
    /// ```
    pub const fn unsigned(scale: f32, zero: u8) -> Self {
        Quantization { scale: Bits(scale), zero: zero as i32, low: 0, high: 255 }
    }

    /// Refuses a scale that is no positive number, an empty range, and integers that f32 does not hold.
    #[doc(hidden)]
    pub fn check(&self, op: &'static str) -> Result<()> {
        let Quantization { scale: Bits(scale), zero, low, high } = *self;
        if !(scale > 0.0 && scale.is_finite() && (1.0 / scale).is_finite()) {
            return Err(Error::shape(op, format!("a scale of {scale}"), "a positive number"));
        }
        let fits = |number: i32| (-MOST..=MOST).contains(&number);
        if low > high || ![zero, low, high].into_iter().all(fits) {
            let found = format!("integers from {low} to {high}, of which {zero} stands for 0");
            return Err(Error::shape(op, found, "a range that is not empty, within 2^24"));
        }
        Ok(())
    }

    /// What is added to the integers where they are kept as unsigned bytes, if they are of 8 bits.
    #[doc(hidden)]
    pub fn byte_offset(&self) -> Option<i32> {
        match (self.low, self.high) {
            (-128, 127) => Some(128),
            (0, 255) => Some(0),
            _ => None,
        }
    }
}

/// How a number of steps is rounded to a whole one.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// Rounds to the nearest integer, halves to even ones.
    Even,
    /// Rounds the product with the reciprocal of the scale to the nearest integer, halves to even ones.
    EvenOfReciprocal,
    /// Rounds to the nearest integer, halves up. The number was computed in f32: one that is nearly halfway is halfway.
    Up,
    /// Rounds to the nearest integer; halves, and what is nearly halfway, go away from the stored 0.
    Away,
    /// Rounds down, but for what is nearly the next integer.
    Down,
}

/// What a function of each element is in a quantized network.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Linear {
    /// `q = clamp(round(x / scale) + zero, low, high)`.
    Quantize(Quantization, Rounding),
    /// `y = scale (q - zero)`.
    Dequantize(Quantization),
}

/// A program in the making.
struct Steps(Vec<Step>);

impl Steps {
    fn add(&mut self, function: Function, arguments: &[Source]) -> Source {
        self.0.push(Step { function, arguments: arguments.to_vec() });
        Source::Step(self.0.len() as u8 - 1)
    }
}

fn number(value: f32) -> Source {
    Source::Number(Bits(value))
}

impl Linear {
    /// What is computed of each element.
    ///
    /// # Errors
    /// If the scale or the integers are none ([`Quantization::check`]).
    pub fn program(self) -> Result<Program> {
        let mut steps = Steps(Vec::new());
        match self {
            Linear::Quantize(own, rounding) => {
                own.check("quantize_linear")?;
                let Quantization { scale, zero, low, high } = own;
                let x = match rounding {
                    Rounding::Even => steps.add(Function::Div, &[Source::Input(0), Source::Number(scale)]),
                    _ => steps.add(Function::Mul, &[Source::Input(0), number(1.0 / scale.0)]),
                };
                let zero_point = number(zero as f32);
                let whole = match rounding {
                    Rounding::Even | Rounding::EvenOfReciprocal => steps.add(Function::Round, &[x]),
                    Rounding::Up | Rounding::Down => {
                        let more = if rounding == Rounding::Up { 0.5 + NEAR } else { NEAR };
                        let moved = steps.add(Function::Add, &[x, number(more)]);
                        steps.add(Function::Floor, &[moved])
                    }
                    Rounding::Away => {
                        let stored = steps.add(Function::Add, &[x, zero_point]);
                        let sign = steps.add(Function::Sign, &[stored]);
                        let half = steps.add(Function::Mul, &[sign, number(0.5 + NEAR)]);
                        let moved = steps.add(Function::Add, &[stored, half]);
                        steps.add(Function::Truncate, &[moved])
                    }
                };
                let q = match (rounding, zero) {
                    (Rounding::Away, _) | (_, 0) => whole,
                    _ => steps.add(Function::Add, &[whole, zero_point]),
                };
                steps.add(Function::Clamp, &[q, number(low as f32), number(high as f32)]);
            }
            Linear::Dequantize(own) => {
                own.check("dequantize_linear")?;
                let centred = match own.zero {
                    0 => Source::Input(0),
                    zero => steps.add(Function::Sub, &[Source::Input(0), number(zero as f32)]),
                };
                steps.add(Function::Mul, &[centred, Source::Number(own.scale)]);
            }
        }
        Program::new(steps.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(linear: Linear, x: f32) -> f32 {
        linear.program().expect("a program").of_number(x)
    }

    #[test]
    fn numbers_are_rounded_as_their_rule_says() {
        let own = Quantization::signed(0.5, -3);
        for (rounding, x, wanted) in [
            (Rounding::Even, 0.25, -3.0),
            (Rounding::Even, 0.75, -1.0),
            (Rounding::Up, 0.25, -2.0),
            (Rounding::Up, -0.25, -3.0),
            (Rounding::Down, 0.49, -3.0),
            (Rounding::Away, -0.25, -4.0),
            (Rounding::Away, 1.75, 1.0),
            (Rounding::Even, 1000.0, 127.0),
            (Rounding::Even, -1000.0, -128.0),
        ] {
            assert_eq!(of(Linear::Quantize(own, rounding), x), wanted, "{x} by {rounding:?}");
        }
        assert_eq!(of(Linear::Dequantize(own), -1.0), 1.0);
    }

    #[test]
    fn what_no_scale_is_and_no_range_is_refused() {
        for own in [
            Quantization { scale: Bits(0.0), ..Quantization::signed(1.0, 0) },
            Quantization { scale: Bits(f32::NAN), ..Quantization::signed(1.0, 0) },
            Quantization { low: 1, high: 0, ..Quantization::signed(1.0, 0) },
            Quantization { high: i32::MAX, ..Quantization::signed(1.0, 0) },
        ] {
            assert!(Linear::Dequantize(own).program().is_err(), "{own:?}");
        }
    }
}
