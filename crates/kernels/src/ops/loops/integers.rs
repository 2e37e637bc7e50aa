//! Functions of integers of which a kernel may have others nearby, because it rounded the floats that they were made of.

use super::oracle::{Bounded, exactly};
use super::words;
use crate::dtype::DType;
use crate::ops::elementwise::Interval;
use crate::ops::integer::{IntegerFunction, Number, wrapped};
use crate::ops::reduce::Reduction;

/// The least and the largest integer of a type.
fn ends(word: DType) -> Interval {
    match word {
        DType::U32 => Interval { lo: 0.0, hi: f64::from(u32::MAX) },
        _ => Interval { lo: f64::from(i32::MIN), hi: f64::from(i32::MAX) },
    }
}

fn number(value: f64) -> Number {
    Number { integer: value as i64, float: value as f32 }
}

/// What `function` gives in words of `word`, as a number of type `result`.
pub(super) fn applied(function: IntegerFunction, given: [Bounded; 3], word: DType, result: DType) -> Bounded {
    use IntegerFunction::{
        Abs, Add, Clamp, Convert, Equal, FloorDiv, Greater, GreaterEqual, Less, LessEqual, Maximum, Minimum,
        Mul, Neg, NotEqual, Select, Sub,
    };
    let of = |values: [f64; 3]| words::applied(function, values.map(number), word, result).integer as f64;
    let value = of(given.map(|own| own.0));
    let [a, b, c] = given.map(|own| own.1);
    // An integer as a float is rounded.
    let rounded = |interval: Interval| match (function, result) {
        (Convert, DType::F32) if word != DType::F32 => {
            let by = 2.0 * DType::F32.unit_roundoff() * interval.magnitude();
            let whole = interval.magnitude() <= f64::from(1 << 24);
            if whole { interval } else { interval.widened(by) }
        }
        _ => interval,
    };
    if [a, b, c].iter().all(|own| own.is_exact()) {
        return (value, rounded(Interval::exact(value)));
    }
    // Of functions that rise or fall along each argument all that they give lies between what the ends give.
    let all = || {
        let mut found = Vec::with_capacity(8);
        for x in [a.lo, a.hi] {
            for y in [b.lo, b.hi] {
                found.extend([c.lo, c.hi].map(|z| of([x, y, z])));
            }
        }
        Interval::hull(found)
    };
    let unwrapped = |interval: Interval| {
        let ends = ends(word);
        if interval.lo >= ends.lo && interval.hi <= ends.hi { all() } else { ends }
    };
    let interval = match function {
        Maximum | Minimum | Clamp | Convert => all(),
        Add => unwrapped(Interval { lo: a.lo + b.lo, hi: a.hi + b.hi }),
        Sub => unwrapped(Interval { lo: a.lo - b.hi, hi: a.hi - b.lo }),
        Neg => unwrapped(Interval { lo: -a.hi, hi: -a.lo }),
        Mul => unwrapped(Interval::hull([a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi])),
        FloorDiv if b.is_exact() && b.lo > 0.0 => all(),
        Select if a.is_exact() => {
            if a.lo == 0.0 {
                c
            } else {
                b
            }
        }
        Select => Interval::hull([b.lo, b.hi, c.lo, c.hi]),
        Equal | NotEqual | Less | LessEqual | Greater | GreaterEqual => {
            let apart = a.hi < b.lo || b.hi < a.lo;
            if apart { exactly(value).1 } else { Interval { lo: 0.0, hi: 1.0 } }
        }
        Abs => Interval { lo: 0.0, hi: ends(word).hi },
        _ => ends(word),
    };
    (value, rounded(interval))
}

/// What integers of type `word` are together.
pub(super) fn reduced(reduction: Reduction, terms: &[Bounded], word: DType) -> Bounded {
    let all = |part: &dyn Fn(&Bounded) -> f64| {
        terms.iter().fold(reduction.first_of_integers(word), |all, term| {
            wrapped(word, reduction.joined_integers(all, part(term) as i64))
        }) as f64
    };
    let value = all(&|term| term.0);
    let interval = if terms.iter().all(|term| term.1.is_exact()) {
        Interval::exact(value)
    } else if matches!(reduction, Reduction::Max | Reduction::Min) {
        Interval { lo: all(&|term| term.1.lo), hi: all(&|term| term.1.hi) }
    } else {
        ends(word)
    };
    (value, interval)
}
