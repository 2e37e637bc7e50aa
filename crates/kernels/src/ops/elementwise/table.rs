//! The functions: one entry says a function's GPU text, what the CPU and the oracle compute, and its error.
//!
//! In a text `{a}`, `{b}` and `{c}` are the arguments, and `#(x)` is a constant, an f32 or a vec4 of one. No text has `!=`: of
//! a NaN it is false where SPIR-V's ordered comparison stands for it. An activation's text and reference are those of `emit/epilogue.rs`.

use super::interval::Enclosure::{self, Points, Quarters, Rule};
use super::interval::{self, Interval};
use super::unit::Unit;
use crate::emit::Activation;
use crate::{erf, vector};

/// The text of a function.
#[derive(Debug, Clone, Copy)]
pub(super) enum Text {
    Wgsl(&'static str),
    /// The activation's, the second argument being the slope.
    Of(Activation),
}

/// The largest error of a function's own, from its arguments, the largest magnitude of its result and what
/// one rounding is.
pub(super) type RoundingError = fn(&[Interval; 3], f64, &Unit) -> f64;

/// What a function makes of none: only what its arguments bring along.
const CHOICE: RoundingError = |_, _, _| 0.0;

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident $word:literal ($($arg:ident),+)
        $text:expr, $cpu:expr, $reference:expr, $enclosure:expr, $own:expr;)*) => {
        /// A function of each element of one to three values.
        ///
        /// Comparisons and logic give 1 and 0; anything but 0 counts as true.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Function {
            $($(#[$doc])* $name,)*
        }

        impl Function {
            /// Every function.
            pub const ALL: &'static [Function] = &[$(Function::$name),*];

            /// Its name: a word.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Function::$name => $word,)*
                }
            }

            /// How many arguments it takes.
            pub const fn arity(self) -> usize {
                match self {
                    $(Function::$name => [$(stringify!($arg)),+].len(),)*
                }
            }

            pub(super) fn text(self) -> Text {
                match self {
                    $(Function::$name => $text,)*
                }
            }

            /// The exact result for as many arguments as it takes; the others are not looked at.
            #[doc(hidden)]
            pub fn reference(self, arguments: [f64; 3]) -> f64 {
                match self {
                    $(Function::$name => {
                        let [$($arg,)+ ..] = arguments;
                        $reference
                    })*
                }
            }

            pub(super) fn enclosure(self) -> Enclosure {
                match self {
                    $(Function::$name => $enclosure,)*
                }
            }

            pub(super) fn own(self) -> RoundingError {
                match self {
                    $(Function::$name => $own,)*
                }
            }

            /// The function of each element on the CPU: a loop for each, so that it is compiled to vectors.
            #[inline(always)]
            pub(in crate::ops) fn each(self, arguments: [&[f32]; 3], out: &mut [f32]) {
                match self {
                    $(Function::$name => {
                        let [$($arg,)+ ..] = arguments;
                        functions!(@each out, $cpu, $($arg),+)
                    })*
                }
            }
        }
    };
    // Indices, not iterators: whether those are inlined depends on the profile.
    (@each $out:ident, $cpu:expr, $($arg:ident),+) => {{
        $(let Some($arg) = $arg.get(..$out.len()) else { return };)+
        for index in 0..$out.len() {
            $(let $arg = $arg[index];)+
            $out[index] = $cpu;
        }
    }};
}

impl Function {
    /// Whether it gives true or false, as 1 or 0.
    pub(super) const fn decides(self) -> bool {
        use Function::{
            Equal, Greater, GreaterEqual, IsNan, Less, LessEqual, LogicalAnd, LogicalNot, LogicalOr, NotEqual,
        };
        matches!(
            self,
            Equal
                | NotEqual
                | Less
                | LessEqual
                | Greater
                | GreaterEqual
                | LogicalAnd
                | LogicalOr
                | LogicalNot
                | IsNan
        )
    }
}

/// Without a point at which it turns.
const MONOTONE: Enclosure = Points(&[]);
/// It turns at zero, or jumps there.
const AT_ZERO: Enclosure = Points(&[0.0]);
/// It has a pole at zero.
const POLE: Enclosure = Points(&[-0.0, 0.0]);

const ROUNDED: RoundingError = |_, f, u| u.v * f;
const QUOTIENT: RoundingError = |_, f, u| 2.5 * u.v * f;

/// Of the functions that are computed in f32, `by` off, and then rounded to what the kernel computes in.
fn in_f32(by: f64, f: f64, u: &Unit) -> f64 {
    if u.v > u.v32 { by + u.v * f } else { by }
}

/// Of a number near 1 without what is lost in `log(1 + t)`.
fn acosh(a: f64) -> f64 {
    if (1.0..1e15).contains(&a) { (a - 1.0 + ((a - 1.0) * (a + 1.0)).sqrt()).ln_1p() } else { a.acosh() }
}

use Text::{Of, Wgsl};

functions! {
    /// `a + b`.
    Add "add" (a, b) Wgsl("{a} + {b}"), a + b, a + b, MONOTONE, ROUNDED;
    /// `a - b`.
    Sub "sub" (a, b) Wgsl("{a} - {b}"), a - b, a - b, MONOTONE, ROUNDED;
    /// `a b`.
    Mul "mul" (a, b) Wgsl("{a} * {b}"), a * b, a * b, MONOTONE, ROUNDED;
    /// `a / b`.
    Div "div" (a, b) Wgsl("{a} / {b}"), a / b, a / b, POLE, QUOTIENT;
    /// The larger of two; NaN if one is.
    Maximum "maximum" (a, b)
        Wgsl("select(select({b}, {a}, {a} > {b}), {a} + {b}, is_nan({a}) | is_nan({b}))"),
        if a > b || a.is_nan() { a } else { b }, if a > b || a.is_nan() { a } else { b }, MONOTONE, CHOICE;
    /// The smaller of two; NaN if one is.
    Minimum "minimum" (a, b)
        Wgsl("select(select({b}, {a}, {a} < {b}), {a} + {b}, is_nan({a}) | is_nan({b}))"),
        if a < b || a.is_nan() { a } else { b }, if a < b || a.is_nan() { a } else { b }, MONOTONE, CHOICE;
    /// `a` to the power of `b`; of a negative number for whole powers alone, otherwise NaN.
    Pow "pow" (a, b) Wgsl("power({a}, {b})"), a.powf(b), a.powf(b), AT_ZERO, |x, f, u| {
        let log = x[0].lo.abs().log2().abs().max(x[0].hi.abs().log2().abs());
        if f == 0.0 || x[1].magnitude() == 0.0 || !log.is_finite() {
            return if log.is_finite() { 0.0 } else { u.v * f };
        }
        let t = x[1].magnitude() * log;
        let of_log = x[1].magnitude() * f64::powi(2.0, -21) + 3.0 * u.v32 * t;
        in_f32(f * ((16.0 + 2.0 * t) * u.v32 + of_log), f, u)
    };
    /// `(a - b)^2`.
    SquaredDifference "squared_difference" (a, b) Wgsl("({a} - {b}) * ({a} - {b})"),
        (a - b) * (a - b), (a - b) * (a - b), Rule(interval::squared_difference), CHOICE;
    /// `floor(a / b)`.
    ///
    /// Where the quotient is whole it is that, also on a GPU whose quotients are rounded below.
    FloorDiv "floor_div" (a, b)
        Wgsl("select(floor({a} / {b}), round({a} / {b}), round({a} / {b}) * {b} == {a})"), (a / b).floor(), (a / b).floor(),
        Rule(interval::floor_div), CHOICE;
    /// What `floor(a / b)` leaves of `a`: of the sign of `b`.
    FloorMod "floor_mod" (a, b) Wgsl("floor_modulo({a}, {b})"),
        { let r = a % b; if r != 0.0 && (r < 0.0) != (b < 0.0) { r + b } else { r } },
        { let r = a % b; if r != 0.0 && (r < 0.0) != (b < 0.0) { r + b } else { r } },
        Rule(interval::floor_mod), CHOICE;
    /// `max(a, 0)`; NaN of NaN.
    Relu "relu" (a) Of(Activation::Relu),
        Activation::Relu.apply(a, 0.0), Activation::Relu.reference(a, 0.0), MONOTONE, CHOICE;
    /// `min(max(a, 0), 6)`; NaN of NaN.
    Relu6 "relu6" (a) Of(Activation::Relu6),
        Activation::Relu6.apply(a, 0.0), Activation::Relu6.reference(a, 0.0), MONOTONE, CHOICE;
    /// `min(max(a, -1), 1)`; NaN of NaN.
    ReluN1To1 "relu_n1_to_1" (a) Wgsl("select(clamp({a}, #(-1.0), #(1.0)), {a}, is_nan({a}))"),
        a.clamp(-1.0, 1.0), a.clamp(-1.0, 1.0), MONOTONE, CHOICE;
    /// `1 / (1 + exp(-a))`.
    Sigmoid "sigmoid" (a) Of(Activation::Sigmoid),
        Activation::Sigmoid.apply(a, 0.0), Activation::Sigmoid.reference(a, 0.0), MONOTONE, |_, _, u| 5.0 * u.v;
    /// `tanh(a)`.
    Tanh "tanh" (a) Of(Activation::Tanh),
        Activation::Tanh.apply(a, 0.0), Activation::Tanh.reference(a, 0.0), MONOTONE,
        |x, _, u| ((12.0 + 4.0 * x[0].magnitude().min(10.0)) * u.v).max(1e-5);
    /// `a min(max(a + 3, 0), 6) / 6`.
    HardSwish "hard_swish" (a) Of(Activation::HardSwish),
        Activation::HardSwish.apply(a, 0.0), Activation::HardSwish.reference(a, 0.0), Points(&[-1.5]),
        |_, f, u| 4.1 * u.v * f;
    /// `min(max(a / 6 + 1/2, 0), 1)`; NaN of NaN.
    HardSigmoid "hard_sigmoid" (a) Of(Activation::HardSigmoid),
        Activation::HardSigmoid.apply(a, 0.0), Activation::HardSigmoid.reference(a, 0.0), MONOTONE, |_, _, u| 4.1 * u.v;
    /// `a` if `a > 0`, else `exp(a) - 1`.
    Elu "elu" (a) Wgsl("select(exp_minus_one({a}), {a}, {a} > #(0.0))"),
        if a > 0.0 { a } else { vector::exp_m1(a) }, if a > 0.0 { a } else { a.exp_m1() }, MONOTONE,
        |_, f, u| in_f32(12.0 * u.v32 * f, f, u);
    /// `a (1 + erf(a / sqrt(2))) / 2`.
    Gelu "gelu" (a) Of(Activation::Gelu), erf::gelu_f32(a), erf::gelu(a),
        Points(&[-0.751_791_524_693_564_5]),
        |x, f, u| in_f32(x[0].magnitude() / 2.0 * (1.5e-7 + 130.0 * u.v32) + 4.0 * u.v32 * f, f, u);
    /// `a (1 + tanh(sqrt(2 / pi) (a + 0.044715 a^3))) / 2`.
    GeluTanh "gelu_tanh" (a) Of(Activation::GeluTanh), erf::gelu_tanh_f32(a), erf::gelu_tanh(a),
        Points(&[-0.752_461_422_071_016_2]),
        |x, f, u| in_f32(x[0].magnitude() / 2.0 * (1e-5 + 56.0 * u.v32) + 4.0 * u.v32 * f, f, u);
    /// The error function: `2 / sqrt(pi)` times the integral of `exp(-t^2)` from 0 to `a`.
    Erf "erf" (a) Wgsl("error_function({a})"), erf::erf_f32(a), erf::erf(a), MONOTONE, |x, f, u| {
        let near = x[0].magnitude() < 0.5;
        in_f32(if near { 8.0 * u.v32 * f } else { 1.5e-7 + 40.0 * u.v32 }, f, u)
    };
    /// `log(1 + exp(a))`.
    Softplus "softplus" (a) Wgsl("softplus({a})"), vector::softplus(a),
        a.max(0.0) + (-a.abs()).exp().ln_1p(), MONOTONE,
        |x, f, u| in_f32((12.0 + 2.0 * x[0].magnitude()) * u.v32 * f, f, u);
    /// `exp(a) - 1`.
    ExpM1 "exp_m1" (a) Wgsl("exp_minus_one({a})"), vector::exp_m1(a), a.exp_m1(), MONOTONE,
        |x, f, u| in_f32((12.0 + 2.0 * x[0].magnitude()) * u.v32 * f, f, u);
    /// The hyperbolic sine.
    Sinh "sinh" (a) Wgsl("hyperbolic_sine({a})"), vector::sinh(a), a.sinh(), MONOTONE,
        |x, f, u| in_f32((16.0 + 4.0 * x[0].magnitude()) * u.v32 * f, f, u);
    /// The hyperbolic cosine.
    Cosh "cosh" (a) Wgsl("hyperbolic_cosine({a})"), vector::cosh(a), a.cosh(), AT_ZERO,
        |x, f, u| in_f32((16.0 + 4.0 * x[0].magnitude()) * u.v32 * f, f, u);
    /// The inverse of the hyperbolic sine.
    Asinh "asinh" (a) Wgsl("inverse_hyperbolic_sine({a})"), vector::asinh(a), a.asinh(), MONOTONE,
        |_, f, u| in_f32(24.0 * u.v32 * f, f, u);
    /// The inverse of the hyperbolic cosine; NaN below 1.
    Acosh "acosh" (a) Wgsl("inverse_hyperbolic_cosine({a})"), vector::acosh(a), acosh(a), MONOTONE,
        |_, f, u| in_f32(24.0 * u.v32 * f, f, u);
    /// The inverse of the hyperbolic tangent; NaN beyond -1 and 1.
    Atanh "atanh" (a) Wgsl("inverse_hyperbolic_tangent({a})"), vector::atanh(a), a.atanh(), MONOTONE,
        |_, f, u| in_f32(24.0 * u.v32 * f, f, u);
    /// `exp(a)`.
    Exp "exp" (a) Wgsl("exp({a})"), vector::exp(a), a.exp(), MONOTONE,
        |x, f, u| (3.0 + 2.0 * x[0].magnitude()) * u.v * f;
    /// The natural logarithm.
    Log "log" (a) Wgsl("log({a})"), a.ln(), a.ln(), AT_ZERO, |_, f, u| u.log + 3.0 * u.v * f;
    /// The square root.
    Sqrt "sqrt" (a) Wgsl("sqrt({a})"), a.sqrt(), a.sqrt(), AT_ZERO, |_, f, u| 5.0 * u.v * f;
    /// `1 / sqrt(a)`.
    Rsqrt "rsqrt" (a) Wgsl("inverseSqrt({a})"), 1.0 / a.sqrt(), 1.0 / a.sqrt(), POLE, QUOTIENT;
    /// `-a`.
    Neg "neg" (a) Wgsl("-{a}"), -a, -a, MONOTONE, CHOICE;
    /// The absolute value.
    Abs "abs" (a) Wgsl("abs({a})"), a.abs(), a.abs(), AT_ZERO, CHOICE;
    /// `a^2`.
    Square "square" (a) Wgsl("{a} * {a}"), a * a, a * a, AT_ZERO, ROUNDED;
    /// `1 / a`.
    Reciprocal "reciprocal" (a) Wgsl("#(1.0) / {a}"), 1.0 / a, 1.0 / a, POLE, QUOTIENT;
    /// The sine of radians.
    Sin "sin" (a) Wgsl("sin({a})"), a.sin(), a.sin(), Quarters,
        |x, _, u| u.sine * (x[0].magnitude() / std::f64::consts::PI).max(1.0);
    /// The cosine of radians.
    Cos "cos" (a) Wgsl("cos({a})"), a.cos(), a.cos(), Quarters,
        |x, _, u| u.sine * (x[0].magnitude() / std::f64::consts::PI).max(1.0);
    /// The largest whole number that is not larger.
    Floor "floor" (a) Wgsl("floor({a})"), a.floor(), a.floor(), MONOTONE, CHOICE;
    /// The smallest whole number that is not smaller.
    Ceil "ceil" (a) Wgsl("ceil({a})"), a.ceil(), a.ceil(), MONOTONE, CHOICE;
    /// The nearest whole number, the even one of two.
    Round "round" (a) Wgsl("round({a})"), a.round_ties_even(), a.round_ties_even(), MONOTONE, CHOICE;
    /// The whole number next to it towards zero: what a conversion to an integer gives.
    Truncate "truncate" (a) Wgsl("trunc({a})"), a.trunc(), a.trunc(), MONOTONE, CHOICE;
    /// 1, 0 or -1; NaN of NaN.
    Sign "sign" (a) Wgsl("select(sign({a}), {a}, is_nan({a}))"),
        if a > 0.0 { 1.0 } else if a < 0.0 { -1.0 } else { a },
        if a > 0.0 { 1.0 } else if a < 0.0 { -1.0 } else { a }, AT_ZERO, CHOICE;
    /// 1 where `a` is 0.
    LogicalNot "logical_not" (a) Wgsl("select(#(0.0), #(1.0), {a} == #(0.0))"),
        f32::from(u8::from(a == 0.0)), f64::from(u8::from(a == 0.0)), AT_ZERO, CHOICE;
    /// 1 where `a` is NaN.
    IsNan "is_nan" (a) Wgsl("select(#(0.0), #(1.0), is_nan({a}))"),
        f32::from(u8::from(a.is_nan())), f64::from(u8::from(a.is_nan())), MONOTONE, CHOICE;
    /// `x` if `x >= 0`, else `alpha x`; the arguments are `x` and a number.
    LeakyRelu "leaky_relu" (a, b) Of(Activation::PRelu),
        Activation::PRelu.apply(a, b), Activation::PRelu.reference(a, b), AT_ZERO, |_, f, u| 2.1 * u.v * f;
    /// `x` if `x >= 0`, else `alpha x`; the arguments are `x` and a value.
    PRelu "prelu" (a, b) Of(Activation::PRelu),
        Activation::PRelu.apply(a, b), Activation::PRelu.reference(a, b), AT_ZERO, |_, f, u| 2.1 * u.v * f;
    /// 1 where `a = b`.
    Equal "equal" (a, b) Wgsl("select(#(0.0), #(1.0), {a} == {b})"),
        f32::from(u8::from(a == b)), f64::from(u8::from(a == b)), Rule(interval::equal), CHOICE;
    /// 1 where `a` and `b` differ.
    NotEqual "not_equal" (a, b) Wgsl("select(#(1.0), #(0.0), {a} == {b})"),
        f32::from(u8::from(a != b)), f64::from(u8::from(a != b)), Rule(interval::not_equal), CHOICE;
    /// 1 where `a < b`.
    Less "less" (a, b) Wgsl("select(#(0.0), #(1.0), {a} < {b})"),
        f32::from(u8::from(a < b)), f64::from(u8::from(a < b)), MONOTONE, CHOICE;
    /// 1 where `a <= b`.
    LessEqual "less_equal" (a, b) Wgsl("select(#(0.0), #(1.0), {a} <= {b})"),
        f32::from(u8::from(a <= b)), f64::from(u8::from(a <= b)), MONOTONE, CHOICE;
    /// 1 where `a > b`.
    Greater "greater" (a, b) Wgsl("select(#(0.0), #(1.0), {a} > {b})"),
        f32::from(u8::from(a > b)), f64::from(u8::from(a > b)), MONOTONE, CHOICE;
    /// 1 where `a >= b`.
    GreaterEqual "greater_equal" (a, b) Wgsl("select(#(0.0), #(1.0), {a} >= {b})"),
        f32::from(u8::from(a >= b)), f64::from(u8::from(a >= b)), MONOTONE, CHOICE;
    /// 1 where both are true.
    LogicalAnd "logical_and" (a, b) Wgsl("select(#(1.0), #(0.0), ({a} == #(0.0)) | ({b} == #(0.0)))"),
        f32::from(u8::from((a != 0.0) & (b != 0.0))), f64::from(u8::from((a != 0.0) & (b != 0.0))),
        AT_ZERO, CHOICE;
    /// 1 where one is true.
    LogicalOr "logical_or" (a, b) Wgsl("select(#(1.0), #(0.0), ({a} == #(0.0)) & ({b} == #(0.0)))"),
        f32::from(u8::from((a != 0.0) | (b != 0.0))), f64::from(u8::from((a != 0.0) | (b != 0.0))),
        AT_ZERO, CHOICE;
    /// The second argument where the first is true, else the third.
    Select "select" (a, b, c) Wgsl("select({b}, {c}, {a} == #(0.0))"),
        if a != 0.0 { b } else { c }, if a != 0.0 { b } else { c }, AT_ZERO, CHOICE;
    /// The first argument, not below the second and not above the third; NaN of NaN.
    Clamp "clamp" (a, b, c) Wgsl("select(min(max({a}, {b}), {c}), {a}, is_nan({a}))"),
        vector::at_most(vector::at_least(a, b), c), if a.is_nan() { a } else { a.max(b).min(c) },
        MONOTONE, CHOICE;
}
