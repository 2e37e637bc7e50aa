//! Integers of 4 to 16 bits in f32: what is beyond their range wraps, as it does where they are stored as integers.
//!
//! All of it is exact for what f32 holds exactly: scales are powers of two, and nothing reaches 2^24 that did not.

use super::reason::Reason;
use crate::ops::elementwise::Function;

/// An integer type of at most 16 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::model) struct Narrow {
    pub(in crate::model) bits: i32,
    pub(in crate::model) signed: bool,
}

/// The halves that products of 16 bits are made of.
const HALF: f32 = 256.0;

/// What adds a function of each element under a part's name; the result has the empty one.
pub(in crate::model) type Each<'e, A> = &'e mut dyn FnMut(&str, Function, &[A]) -> Result<A, Reason>;

/// The quotient of two integers, cut off towards zero, if it is below 2^21. A GPU's division may be off by a few units in the last place, so
/// that 6 / 3 may be below 2: the nearest integer is one too far from zero where the rest has another sign than `a`.
pub(in crate::model) fn quotient<A: Clone + From<f32>>(
    name: &str,
    [a, b]: [A; 2],
    each: Each<'_, A>,
) -> Result<A, Reason> {
    let quotient = each("quotient", Function::Div, &[a.clone(), b.clone()])?;
    let nearest = each("nearest", Function::Round, &[quotient])?;
    let product = each("product", Function::Mul, &[nearest.clone(), b])?;
    let rest = each("rest", Function::Sub, &[a.clone(), product])?;
    let turned = each("turned", Function::Mul, &[rest, a])?;
    let beyond = each("beyond", Function::Less, &[turned, 0.0.into()])?;
    let sign = each("sign", Function::Sign, std::slice::from_ref(&nearest))?;
    let step = each("step", Function::Mul, &[beyond, sign])?;
    each(name, Function::Sub, &[nearest, step])
}

impl Narrow {
    /// How many integers there are.
    fn count(self) -> f32 {
        2.0f32.powi(self.bits)
    }

    /// An integer that is known, wrapped.
    pub(in crate::model) const fn of(self, integer: i64) -> i64 {
        let beyond = 64 - self.bits as u32;
        match self.signed {
            true => integer << beyond >> beyond,
            false => (((integer as u64) << beyond) >> beyond) as i64,
        }
    }

    /// Whether a function of these integers may give one that is none of them.
    pub(in crate::model) fn may_leave(self, function: Function) -> bool {
        use Function::{Abs, Add, Div, FloorDiv, Mul, Neg, Pow, Square, SquaredDifference, Sub};
        matches!(function, Add | Sub | Mul | Pow | Neg | Square | SquaredDifference)
            || self.signed && matches!(function, Abs | Div | FloorDiv)
    }

    /// The integers of this range that whole numbers are modulo their count: `x - count floor((x + half) / count)`.
    pub(in crate::model) fn wrapped<A: Clone + From<f32>>(
        self,
        x: A,
        each: Each<'_, A>,
    ) -> Result<A, Reason> {
        self.named("", x, each)
    }

    fn named<A: Clone + From<f32>>(self, name: &str, x: A, each: Each<'_, A>) -> Result<A, Reason> {
        let count = self.count();
        let mut turns = each("turns", Function::Mul, &[x.clone(), (1.0 / count).into()])?;
        if self.signed {
            turns = each("turns", Function::Add, &[turns, 0.5.into()])?;
        }
        let whole = each("whole_turns", Function::Floor, &[turns])?;
        let over = each("over", Function::Mul, &[whole, count.into()])?;
        each(name, Function::Sub, &[x, over])
    }

    /// The product of two integers of this type, wrapped. That of two of 16 bits is added up of the products with the
    /// upper and the lower half of one of them, because f32 does not hold it whole.
    pub(in crate::model) fn product<A: Clone + From<f32>>(
        self,
        [a, b]: [A; 2],
        each: Each<'_, A>,
    ) -> Result<A, Reason> {
        if self.bits <= 8 {
            let product = each("product", Function::Mul, &[a, b])?;
            return self.wrapped(product, each);
        }
        let upper = each("scaled", Function::Mul, &[a.clone(), (1.0 / HALF).into()])?;
        let upper = each("upper", Function::Floor, &[upper])?;
        let without = each("without", Function::Mul, &[upper.clone(), HALF.into()])?;
        let lower = each("lower", Function::Sub, &[a, without])?;
        let upper = each("products", Function::Mul, &[upper, b.clone()])?;
        let upper = Narrow { bits: self.bits - 8, ..self }.named("kept", upper, each)?;
        let upper = each("placed", Function::Mul, &[upper, HALF.into()])?;
        let lower = each("products", Function::Mul, &[lower, b])?;
        let lower = self.named("kept", lower, each)?;
        let sum = each("sum", Function::Add, &[upper, lower])?;
        self.wrapped(sum, each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compute(_: &str, function: Function, arguments: &[f32]) -> Result<f32, Reason> {
        let mut all = [0.0; 3];
        all.iter_mut().zip(arguments).for_each(|(to, &argument)| *to = f64::from(argument));
        Ok(function.reference(all) as f32)
    }

    #[test]
    fn integers_wrap_as_they_do_in_memory() {
        let numbers = [0, 1, 2, 7, 8, 15, 16, 127, 128, 200, 255, 256, 300, 32_767, 32_768, 65_535, 65_536];
        let numbers: Vec<i64> = numbers.into_iter().flat_map(|number| [number, -number]).collect();
        let most = 1 << 24;
        for &number in numbers.iter().chain(&[most, most - 1, -most, 1 - most]) {
            let of = |bits, signed| {
                Narrow { bits, signed }.wrapped(number as f32, &mut compute).expect("a number") as i64
            };
            assert_eq!(of(8, false), i64::from(number as u8), "{number}");
            assert_eq!(of(8, true), i64::from(number as i8), "{number}");
            assert_eq!(of(16, false), i64::from(number as u16), "{number}");
            assert_eq!(of(16, true), i64::from(number as i16), "{number}");
            assert_eq!(of(4, true), i64::from((number as i8) << 4 >> 4), "{number}");
            for (bits, signed) in [(4, false), (4, true), (8, false), (8, true), (16, false), (16, true)] {
                assert_eq!(of(bits, signed), Narrow { bits, signed }.of(number), "{number}");
            }
        }
    }

    #[test]
    fn quotients_are_cut_off_towards_zero_whatever_a_division_rounds() {
        let numbers =
            [1i64, 2, 3, 5, 6, 7, 9, 10, 49, 63, 99, 127, 1000, 4096, 65_535, 1 << 20, (1 << 21) - 1];
        let both = || numbers.into_iter().flat_map(|number| [number, -number]);
        for off in [-3i32, -1, 0, 1, 3] {
            let mut rounded = |part: &str, function: Function, arguments: &[f32]| {
                let exact = compute(part, function, arguments)?;
                Ok(if function == Function::Div && exact != 0.0 {
                    f32::from_bits(exact.to_bits().wrapping_add_signed(off))
                } else {
                    exact
                })
            };
            for a in both().chain([0]) {
                for b in both() {
                    let found = quotient("", [a as f32, b as f32], &mut rounded).expect("a number");
                    assert_eq!(found as i64, a / b, "{a} / {b}, off by {off}");
                }
            }
        }
    }

    #[test]
    fn products_of_16_bits_wrap_exactly() {
        let numbers = [0i64, 1, 3, 255, 256, 257, 4099, 12_345, 32_767, 32_768, 40_001, 65_535];
        for &a in &numbers {
            for &b in &numbers {
                let of = |bits, signed, a: i64, b: i64| {
                    let factors = [a as f32, b as f32];
                    Narrow { bits, signed }.product(factors, &mut compute).expect("a number") as i64
                };
                assert_eq!(of(16, false, a, b), i64::from((a * b) as u16), "{a} {b}");
                let (c, d) = (i64::from(a as i16), i64::from(-b as i16));
                assert_eq!(of(16, true, c, d), i64::from((c * d) as i16), "{c} {d}");
                let (c, d) = (i64::from(a as i8), i64::from(b as i8));
                assert_eq!(of(8, true, c, d), i64::from((c * d) as i8), "{c} {d}");
            }
        }
    }
}
