//! The functions: what each computes, on the CPU and in a kernel's text.

use crate::dtype::DType;

/// A function of each element of one to three values of one integer type.
///
/// Results that do not fit the type wrap, as in two's complement. Comparisons give booleans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IntegerFunction {
    /// `a + b`.
    Add,
    /// `a - b`.
    Sub,
    /// `a b`.
    Mul,
    /// `a / b`, cut off towards zero. Where `b` is 0 it is `a`.
    Div,
    /// What [`IntegerFunction::Div`] leaves of `a`: of the sign of `a`. Where `b` is 0 it is 0.
    Rem,
    /// `floor(a / b)`. Where `b` is 0 it is `a`.
    FloorDiv,
    /// What [`IntegerFunction::FloorDiv`] leaves of `a`: of the sign of `b`. Where `b` is 0 it is 0.
    FloorMod,
    /// `a` to the power of `b`. Where `b` is negative it is 0, or 1 or -1 if `a` is.
    Pow,
    /// The larger of two.
    Maximum,
    /// The smaller of two.
    Minimum,
    /// `abs(a)`.
    Abs,
    /// `-a`.
    Neg,
    /// -1, 0 or 1.
    Sign,
    /// The bits that both have.
    BitAnd,
    /// The bits that one has.
    BitOr,
    /// The bits that one alone has.
    BitXor,
    /// The bits that `a` has not.
    BitNot,
    /// `a` with its bits `b` places higher; 0 where `b` is negative, or there are not as many bits.
    ShiftLeft,
    /// `a` with its bits `b` places lower, the sign's bit in those above. Where `b` is negative, or there are not as many
    /// bits, all are the sign's.
    ShiftRight,
    /// `a == b`.
    Equal,
    /// `a != b`.
    NotEqual,
    /// `a < b`.
    Less,
    /// `a <= b`.
    LessEqual,
    /// `a > b`.
    Greater,
    /// `a >= b`.
    GreaterEqual,
    /// `b` where `a` is true, which is of booleans or floats; else `c`.
    Select,
    /// `min(max(a, b), c)`.
    Clamp,
    /// `a` in another type: a float is cut off towards zero, what is beyond the type's range becomes its nearest end, and
    /// a NaN 0; of an integer the lowest bits are kept; an integer becomes the nearest float.
    Convert,
}

use IntegerFunction::{
    Abs, Add, BitAnd, BitNot, BitOr, BitXor, Clamp, Convert, Div, Equal, FloorDiv, FloorMod, Greater,
    GreaterEqual, Less, LessEqual, Maximum, Minimum, Mul, Neg, NotEqual, Pow, Rem, Select, ShiftLeft,
    ShiftRight, Sign, Sub,
};

/// A number as a function is given it: an integer, or an f32.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::ops) struct Number {
    pub(in crate::ops) integer: i64,
    pub(in crate::ops) float: f32,
}

/// Bits of a word.
#[inline(always)]
fn bits(word: DType) -> i64 {
    8 * word.bytes() as i64
}

/// An integer's lowest bits as one of this type.
#[inline(always)]
pub(in crate::ops) fn wrapped(word: DType, value: i64) -> i64 {
    match word {
        DType::I32 => i64::from(value as i32),
        DType::U32 => i64::from(value as u32),
        _ => value,
    }
}

/// The quotient and the rest, both cut off towards zero. Of integers of 32 bits the quotient is that in f64, which has
/// vectors: it is off by less than `2^-21 / abs(b)`, and a quotient that is not whole by at least `1 / abs(b)` from the next
/// whole number.
#[inline(always)]
fn divided(word: DType, a: i64, b: i64) -> (i64, i64) {
    if word.bytes() == 4 {
        let quotient = (a as f64 / b as f64) as i64;
        return if b == 0 { (a, 0) } else { (quotient, a - quotient * b) };
    }
    if b == 0 { (a, 0) } else { (a.wrapping_div(b), a.wrapping_rem(b)) }
}

/// Whether the quotient of two numbers that leave `rest` is cut off upwards.
#[inline(always)]
fn cut_up(b: i64, rest: i64) -> bool {
    rest != 0 && (rest < 0) != (b < 0)
}

/// The power of integers, its lowest 64 bits.
fn power(base: i64, exponent: i64) -> i64 {
    if exponent < 0 {
        return match base {
            1 => 1,
            -1 if exponent % 2 == 0 => 1,
            -1 => -1,
            _ => 0,
        };
    }
    let (mut base, mut rest, mut power) = (base, exponent, 1i64);
    while rest > 0 {
        if rest % 2 == 1 {
            power = power.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        rest /= 2;
    }
    power
}

impl IntegerFunction {
    /// Every function.
    pub const ALL: &'static [IntegerFunction] = &[
        Add,
        Sub,
        Mul,
        Div,
        Rem,
        FloorDiv,
        FloorMod,
        Pow,
        Maximum,
        Minimum,
        Abs,
        Neg,
        Sign,
        BitAnd,
        BitOr,
        BitXor,
        BitNot,
        ShiftLeft,
        ShiftRight,
        Equal,
        NotEqual,
        Less,
        LessEqual,
        Greater,
        GreaterEqual,
        Select,
        Clamp,
        Convert,
    ];

    /// Its name: a word.
    pub const fn name(self) -> &'static str {
        match self {
            Add => "add",
            Sub => "sub",
            Mul => "mul",
            Div => "div",
            Rem => "rem",
            FloorDiv => "floor_div",
            FloorMod => "floor_mod",
            Pow => "pow",
            Maximum => "maximum",
            Minimum => "minimum",
            Abs => "abs",
            Neg => "neg",
            Sign => "sign",
            BitAnd => "bit_and",
            BitOr => "bit_or",
            BitXor => "bit_xor",
            BitNot => "bit_not",
            ShiftLeft => "shift_left",
            ShiftRight => "shift_right",
            Equal => "equal",
            NotEqual => "not_equal",
            Less => "less",
            LessEqual => "less_equal",
            Greater => "greater",
            GreaterEqual => "greater_equal",
            Select => "select",
            Clamp => "clamp",
            Convert => "convert",
        }
    }

    /// How many arguments it takes.
    pub const fn arity(self) -> usize {
        match self {
            Abs | Neg | Sign | BitNot | Convert => 1,
            Select | Clamp => 3,
            _ => 2,
        }
    }

    /// Whether it gives booleans.
    pub(in crate::ops) const fn compares(self) -> bool {
        matches!(self, Equal | NotEqual | Less | LessEqual | Greater | GreaterEqual)
    }

    /// The result for integers of type `word`, in all bits of an i64 as one of that type; of a comparison 1 or 0.
    #[inline(always)]
    pub(in crate::ops) fn value(self, word: DType, [a, b, c]: [Number; 3]) -> i64 {
        let condition = a.float;
        let [a, b, c] = [a.integer, b.integer, c.integer];
        let width = bits(word);
        let within = |b: i64| (0..width).contains(&b);
        let value = match self {
            Add => a.wrapping_add(b),
            Sub => a.wrapping_sub(b),
            Mul => a.wrapping_mul(b),
            Div => divided(word, a, b).0,
            Rem => divided(word, a, b).1,
            FloorDiv => {
                let (quotient, rest) = divided(word, a, b);
                quotient.wrapping_sub(i64::from(cut_up(b, rest)))
            }
            FloorMod => {
                let rest = divided(word, a, b).1;
                if cut_up(b, rest) { rest.wrapping_add(b) } else { rest }
            }
            Pow => power(a, b),
            Maximum => a.max(b),
            Minimum => a.min(b),
            Abs => a.wrapping_abs(),
            Neg => a.wrapping_neg(),
            Sign => i64::from(a > 0) - i64::from(a < 0),
            BitAnd => a & b,
            BitOr => a | b,
            BitXor => a ^ b,
            BitNot => !a,
            ShiftLeft if within(b) => a << b,
            ShiftLeft => 0,
            ShiftRight if within(b) => a >> b,
            ShiftRight => a >> 63,
            Equal => i64::from(a == b),
            NotEqual => i64::from(a != b),
            Less => i64::from(a < b),
            LessEqual => i64::from(a <= b),
            Greater => i64::from(a > b),
            GreaterEqual => i64::from(a >= b),
            Select if condition == 0.0 => c,
            Select => b,
            Clamp => a.max(b).min(c),
            Convert => a,
        };
        wrapped(word, value)
    }

    /// The result for integers of type `word`, but for a choice, whose condition is a float.
    #[doc(hidden)]
    pub fn of(self, word: DType, arguments: [i64; 3]) -> i64 {
        self.value(word, arguments.map(|integer| Number { integer, float: integer as f32 }))
    }

    /// A float as an integer of type `word`.
    #[inline(always)]
    pub(in crate::ops) fn cut_off(word: DType, value: f32) -> i64 {
        match word {
            DType::I32 => i64::from(value as i32),
            DType::U32 => i64::from(value as u32),
            _ => value as i64,
        }
    }

    /// The statements that make `y`, of type `result`, of `x0`, `x1` and `x2`; integers among these are of type `word`.
    pub(in crate::ops) fn statements(self, word: DType, result: DType) -> Vec<String> {
        let (t, signed) = (word.to_string(), word == DType::I32);
        let divisor = if signed {
            "let d: i32 = select(x1, 1i, (x1 == 0i) | ((x1 == -1i) & (x0 == bitcast<i32>(0x80000000u))));"
        } else {
            "let d: u32 = select(x1, 1u, x1 == 0u);"
        };
        let zero = if signed { "0i" } else { "0u" };
        // Whether the rest has another sign than the divisor.
        let up = if signed {
            "let up: bool = (x0 % d != 0i) & ((x0 % d < 0i) != (d < 0i));"
        } else {
            "let up: bool = false;"
        };
        let y = |text: &str| vec![format!("let y: {result} = {text};")];
        let compared = |sign: &str| y(&format!("select(0.0f, 1.0f, x0 {sign} x1)"));
        let after = |lines: &[&str], text: &str| {
            let lines = lines.iter().map(|line| (*line).to_owned());
            lines.chain(y(text)).collect()
        };
        match self {
            Add => y("x0 + x1"),
            Sub => y("x0 - x1"),
            Mul => y("x0 * x1"),
            Div => after(&[divisor], "x0 / d"),
            Rem => after(&[divisor], "x0 % d"),
            FloorDiv => after(&[divisor, up], &format!("x0 / d - select({zero}, {t}(1), up)")),
            FloorMod => after(&[divisor, up], &format!("x0 % d + select({zero}, d, up)")),
            Pow => {
                let lines = [
                    format!("var base: {t} = x0;"),
                    format!("var y: {t} = {t}(1);"),
                    format!("let n: u32 = select(u32(x1), 0u, x1 < {zero});"),
                ];
                let bit = |bit: u32| {
                    [
                        format!("y = select(y, y * base, ((n >> {bit}u) & 1u) == 1u);"),
                        "base = base * base;".to_owned(),
                    ]
                };
                let negative = [
                    "let unit: i32 = select(0i, select(1i, x0, (x1 & 1i) == 1i), (x0 == 1i) | (x0 == -1i));",
                    "y = select(y, unit, x1 < 0i);",
                ];
                let negative = if signed { &negative[..] } else { &[] };
                let lines = lines.into_iter().chain((0..32).flat_map(bit));
                lines.chain(negative.iter().map(|line| (*line).to_owned())).collect()
            }
            Maximum => y("max(x0, x1)"),
            Minimum => y("min(x0, x1)"),
            Abs => y("abs(x0)"),
            Neg => y(&format!("{zero} - x0")),
            Sign if signed => y("sign(x0)"),
            Sign => y("min(x0, 1u)"),
            BitAnd => y("x0 & x1"),
            BitOr => y("x0 | x1"),
            BitXor => y("x0 ^ x1"),
            BitNot => y("~x0"),
            ShiftLeft => y(&format!("select({zero}, x0 << (u32(x1) & 31u), u32(x1) < 32u)")),
            ShiftRight if signed => y("x0 >> min(u32(x1), 31u)"),
            ShiftRight => y("select(0u, x0 >> (x1 & 31u), x1 < 32u)"),
            Equal => compared("=="),
            NotEqual => compared("!="),
            Less => compared("<"),
            LessEqual => compared("<="),
            Greater => compared(">"),
            GreaterEqual => compared(">="),
            Select => y("select(x1, x2, x0 == 0.0f)"),
            Clamp => y("min(max(x0, x1), x2)"),
            Convert => match (word, result) {
                // A NaN by its bits, because WGSL lets an implementation assume that there is none.
                (DType::F32, DType::I32) => after(
                    &[
                        "let nan: bool = (bitcast<u32>(x0) & 0x7fffffffu) > 0x7f800000u;",
                        "let inside: f32 = select(clamp(x0, -2147483648.0f, 2147483520.0f), 0.0f, nan);",
                    ],
                    "select(i32(inside), 2147483647i, x0 >= 2147483648.0f)",
                ),
                (DType::F32, _) => after(
                    &[
                        "let nan: bool = (bitcast<u32>(x0) & 0x7fffffffu) > 0x7f800000u;",
                        "let inside: f32 = select(clamp(x0, 0.0f, 4294967040.0f), 0.0f, nan);",
                    ],
                    "select(u32(inside), 4294967295u, x0 >= 4294967296.0f)",
                ),
                _ => y(&format!("{result}(x0)")),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN: i64 = i32::MIN as i64;
    const MAX: i64 = i32::MAX as i64;
    const UMAX: i64 = u32::MAX as i64;

    fn of(function: IntegerFunction, word: DType, values: [i64; 3]) -> i64 {
        let number = |integer| Number { integer, float: integer as f32 };
        function.value(word, values.map(number))
    }

    #[test]
    fn what_does_not_fit_wraps() {
        assert_eq!(of(Add, DType::I32, [MAX, 1, 0]), MIN);
        assert_eq!(of(Sub, DType::U32, [0, 1, 0]), UMAX);
        assert_eq!(of(Mul, DType::I32, [65_536, 65_537, 0]), 65_536);
        assert_eq!(of(Add, DType::I64, [i64::MAX, 1, 0]), i64::MIN);
        assert_eq!(of(Neg, DType::I32, [MIN, 0, 0]), MIN);
        assert_eq!(of(Abs, DType::I32, [MIN, 0, 0]), MIN);
        assert_eq!(of(BitNot, DType::U32, [0, 0, 0]), UMAX);
    }

    #[test]
    fn quotients_and_rests_of_either_sign() {
        for (a, b, of_zero, of_floor) in [
            (7, 3, (2, 1), (2, 1)),
            (-7, 3, (-2, -1), (-3, 2)),
            (7, -3, (-2, 1), (-3, -2)),
            (-7, -3, (2, -1), (2, -1)),
        ] {
            let found = [Div, Rem, FloorDiv, FloorMod].map(|function| of(function, DType::I64, [a, b, 0]));
            assert_eq!(found, [of_zero.0, of_zero.1, of_floor.0, of_floor.1], "{a} by {b}");
        }
        let least = i64::from(i32::MIN);
        let found = [Div, Rem, FloorDiv, FloorMod].map(|function| of(function, DType::I32, [least, -1, 0]));
        assert_eq!(found, [least, 0, least, 0]);
        let found = [Div, Rem, FloorDiv, FloorMod].map(|function| of(function, DType::I32, [5, 0, 0]));
        assert_eq!(found, [5, 0, 5, 0]);
    }

    #[test]
    fn powers_and_shifts_at_their_ends() {
        let pow = |a, b| of(Pow, DType::I32, [a, b, 0]);
        assert_eq!([pow(3, 4), pow(0, 0), pow(-2, 31), pow(2, 32), pow(7, 1000)][..4], [81, 1, MIN, 0]);
        assert_eq!([pow(2, -1), pow(1, -5), pow(-1, -5), pow(-1, -4)], [0, 1, -1, 1]);
        let shift = |function, a, b| of(function, DType::I32, [a, b, 0]);
        assert_eq!([shift(ShiftLeft, 1, 31), shift(ShiftLeft, 1, 32), shift(ShiftLeft, 1, -1)], [MIN, 0, 0]);
        assert_eq!(
            [shift(ShiftRight, -8, 1), shift(ShiftRight, -8, 40), shift(ShiftRight, 8, -1)],
            [-4, -1, 0]
        );
        assert_eq!(of(ShiftRight, DType::U32, [UMAX, 31, 0]), 1);
    }

    #[test]
    fn floats_are_cut_off_and_end_at_the_types_ends() {
        let cut =
            |value| [DType::I32, DType::U32, DType::I64].map(|word| IntegerFunction::cut_off(word, value));
        assert_eq!(cut(-2.7), [-2, 0, -2]);
        assert_eq!(cut(f32::NAN), [0; 3]);
        assert_eq!(cut(1e30), [MAX, UMAX, i64::MAX]);
    }
}
