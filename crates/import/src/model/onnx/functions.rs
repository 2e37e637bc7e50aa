//! Functions of each element that are made of others.

use super::import::{Import, Op};
use crate::model::build::{Arg, Builder, Operand};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function as F;
use crate::ops::integer::IntegerFunction;

type Done = Result<(), Reason>;

impl<'a> Import<'a> {
    /// A part of a function.
    fn f(&mut self, function: F, args: &[Arg]) -> Result<Arg, Reason> {
        self.apply("part", function, args).map(Arg::Operand)
    }

    /// What a function gives.
    fn result(&mut self, op: &Op<'a>, function: F, args: &[Arg]) -> Done {
        let slot = self.apply("", function, args)?;
        self.set(op, 0, slot)
    }

    fn first(&mut self, op: &Op<'a>) -> Result<Arg, Reason> {
        self.slot(op, 0).map(Arg::Operand)
    }
}

pub(super) fn leaky_relu<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let (x, alpha) = (i.first(op)?, op.preset("alpha")?);
    i.result(op, F::LeakyRelu, &[x, alpha.into()])
}

/// `PRelu`: the slope broadcasts to the input; a list that does not is one slope for each channel.
pub(super) fn prelu<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let (own, slopes) = (i.extents_of(op, 0)?, i.extents_of(op, 1)?);
    let (x, mut slope) = (i.first(op)?, i.slot(op, 1)?);
    if let (&[count], Some(&channels), Some(&last)) = (&slopes[..], own.get(1), own.last())
        && count == channels
        && count > 1
        && own.len() > 2
        && (op.version < 7 || last != count)
    {
        let extents = [&[count][..], &vec![1; own.len() - 2]].concat();
        slope = i.with_extents("slopes", slope, &extents)?;
    }
    i.result(op, F::PRelu, &[x, slope.into()])
}

/// `max(0, min(1, alpha x + beta))`.
pub(super) fn hard_sigmoid<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let (x, alpha, beta) = (i.first(op)?, op.preset("alpha")?, op.preset("beta")?);
    if (alpha, beta) == (1.0 / 6.0, 0.5) {
        return i.result(op, F::HardSigmoid, &[x]);
    }
    let scaled = i.f(F::Mul, &[x, alpha.into()])?;
    let moved = i.f(F::Add, &[scaled, beta.into()])?;
    i.result(op, F::Clamp, &[moved, 0.0.into(), 1.0.into()])
}

pub(super) fn elu<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let (x, alpha) = (i.first(op)?, op.preset("alpha")?);
    if alpha == 1.0 {
        return i.result(op, F::Elu, &[x]);
    }
    let below = i.f(F::Minimum, &[x.clone(), 0.0.into()])?;
    let below = i.f(F::Elu, &[below])?;
    let below = i.f(F::Mul, &[below, alpha.into()])?;
    let above = i.f(F::Relu, &[x])?;
    i.result(op, F::Add, &[above, below])
}

/// `gamma (max(x, 0) + alpha (exp(min(x, 0)) - 1))`.
pub(super) fn selu<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let (alpha, gamma) = match op.version < 6 {
        true => (op.float("alpha", 1.6732), op.float("gamma", 1.0507)),
        false => (op.preset("alpha")?, op.preset("gamma")?),
    };
    let x = i.first(op)?;
    let below = i.f(F::Minimum, &[x.clone(), 0.0.into()])?;
    let below = i.f(F::Elu, &[below])?;
    let below = i.f(F::Mul, &[below, alpha.into()])?;
    let above = i.f(F::Relu, &[x])?;
    let sum = i.f(F::Add, &[above, below])?;
    i.result(op, F::Mul, &[sum, gamma.into()])
}

/// `max(x, 0) + min(0, alpha (exp(x / alpha) - 1))`: above 0 the second is 0, and so is what `min(x, 0)` makes of it,
/// whatever the sign of `alpha`.
pub(super) fn celu<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let (x, alpha) = (i.first(op)?, op.preset("alpha")?);
    let below = i.f(F::Minimum, &[x.clone(), 0.0.into()])?;
    let below = i.f(F::Div, &[below, alpha.into()])?;
    let below = i.f(F::ExpM1, &[below])?;
    let below = i.f(F::Mul, &[below, alpha.into()])?;
    let above = i.f(F::Relu, &[x])?;
    i.result(op, F::Add, &[above, below])
}

/// `x` where it is larger than `alpha`, else 0.
pub(super) fn thresholded<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let (x, alpha) = (i.first(op)?, op.preset("alpha")?);
    let above = i.f(F::Greater, &[x.clone(), alpha.into()])?;
    i.result(op, F::Select, &[above, x, 0.0.into()])
}

/// `x + bias` below `-lambd`, `x - bias` above `lambd`, else 0.
pub(super) fn shrink<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let (x, bias, lambd) = (i.first(op)?, op.preset("bias")?, op.preset("lambd")?);
    let below = i.f(F::Less, &[x.clone(), (-lambd).into()])?;
    let above = i.f(F::Greater, &[x.clone(), lambd.into()])?;
    let lower = i.f(F::Add, &[x.clone(), bias.into()])?;
    let higher = i.f(F::Sub, &[x, bias.into()])?;
    let rest = i.f(F::Select, &[above, higher, 0.0.into()])?;
    i.result(op, F::Select, &[below, lower, rest])
}

/// `x / (1 + |x|)`.
pub(super) fn softsign<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let x = i.first(op)?;
    let size = i.f(F::Abs, std::slice::from_ref(&x))?;
    let below = i.f(F::Add, &[size, 1.0.into()])?;
    i.result(op, F::Div, &[x, below])
}

/// `x tanh(log(1 + exp(x)))`.
pub(super) fn mish<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let x = i.first(op)?;
    let soft = i.f(F::Softplus, std::slice::from_ref(&x))?;
    let bounded = i.f(F::Tanh, &[soft])?;
    i.result(op, F::Mul, &[x, bounded])
}

/// `x sigmoid(alpha x)`.
pub(super) fn swish<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let (x, alpha) = (i.first(op)?, op.preset("alpha")?);
    let scaled = if alpha == 1.0 { x.clone() } else { i.f(F::Mul, &[x.clone(), alpha.into()])? };
    let share = i.f(F::Sigmoid, &[scaled])?;
    i.result(op, F::Mul, &[x, share])
}

/// `SwiGLU`: `a sigmoid(alpha a) b`.
pub(super) fn swiglu<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let (a, alpha) = (i.first(op)?, op.preset("alpha")?);
    let scaled = if alpha == 1.0 { a.clone() } else { i.f(F::Mul, &[a.clone(), alpha.into()])? };
    let share = i.f(F::Sigmoid, &[scaled])?;
    let gate = i.f(F::Mul, &[a, share])?;
    let b = i.slot(op, 1)?.into();
    i.result(op, F::Mul, &[gate, b])
}

/// `x max(0, min(1, x / 6 + 1 / 2))`.
pub(super) fn hard_swish<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let x = i.first(op)?;
    i.result(op, F::HardSwish, &[x])
}

/// `Gelu`: with `tanh` where the options say so.
pub(super) fn gelu<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let x = i.first(op)?;
    let function = match op.text("approximate", "none")? {
        "none" => F::Gelu,
        "tanh" => F::GeluTanh,
        other => return refused!("found the approximation {other:?}, wanted none or tanh"),
    };
    i.result(op, function, &[x])
}

/// `FastGelu` and `BiasGelu`: of the sum of the input and a bias.
pub(super) fn biased_gelu<'a>(i: &mut Import<'a>, op: &Op<'a>, function: F) -> Done {
    let mut x = i.first(op)?;
    if op.has(1) {
        let bias = i.slot(op, 1)?.into();
        x = i.f(F::Add, &[x, bias])?;
    }
    i.result(op, function, &[x])
}

pub(super) fn tan<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let x = i.first(op)?;
    let (sine, cosine) = (i.f(F::Sin, std::slice::from_ref(&x))?, i.f(F::Cos, &[x])?);
    i.result(op, F::Div, &[sine, cosine])
}

/// `Asin`, `Acos` and `Atan`.
pub(super) fn arc<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    angle: fn(&mut Builder, Arg) -> Result<Operand, Reason>,
) -> Done {
    let x = i.first(op)?;
    let slot = angle(i, x)?;
    i.set(op, 0, slot)
}

/// `Mod`: of the sign of the divisor, or with `fmod` of that of the dividend.
pub(super) fn modulo<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let args = i.args(op, 2)?;
    if op.flag("fmod", false) && !i.kind_of(op, 0)?.is_float() {
        return super::bits::of(i, op, IntegerFunction::Rem);
    }
    if !op.flag("fmod", false) {
        return i.result(op, F::FloorMod, &args);
    }
    let [x, y] = &args[..] else { return refused!("found no two inputs") };
    let (sign, size) = (i.f(F::Sign, std::slice::from_ref(x))?, i.f(F::Abs, std::slice::from_ref(x))?);
    let divisor = i.f(F::Abs, std::slice::from_ref(y))?;
    let rest = i.f(F::FloorMod, &[size, divisor])?;
    i.result(op, F::Mul, &[sign, rest])
}

pub(super) fn is_inf<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let x = i.first(op)?;
    let (negative, positive) = (op.flag("detect_negative", true), op.flag("detect_positive", true));
    match (negative, positive) {
        (true, true) => {
            let size = i.f(F::Abs, &[x])?;
            i.result(op, F::Greater, &[size, f32::MAX.into()])
        }
        (true, false) => i.result(op, F::Less, &[x, f32::MIN.into()]),
        (false, true) => i.result(op, F::Greater, &[x, f32::MAX.into()]),
        (false, false) => i.result(op, F::NotEqual, &[x.clone(), x]),
    }
}

/// `Not` of booleans, `Xor` as their difference.
pub(super) fn xor<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let args = i.args(op, 2)?;
    i.result(op, F::NotEqual, &args)
}

/// The error function.
pub(super) fn erf<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let x = i.first(op)?;
    i.result(op, F::Erf, &[x])
}
