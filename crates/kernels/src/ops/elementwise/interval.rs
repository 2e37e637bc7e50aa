//! Where a value lies that several correct kernels compute: an interval that contains what each of them may
//! give.

use super::unit::Unit;

/// `lo ..= hi`; both NaN where a value is none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::ops) struct Interval {
    pub(in crate::ops) lo: f64,
    pub(in crate::ops) hi: f64,
}

/// What a function makes of intervals.
#[derive(Debug, Clone, Copy)]
pub(super) enum Enclosure {
    /// It is least and largest where each argument is at an end of its interval or at one of these points.
    Points(&'static [f64]),
    /// It is least and largest at an end of the interval or at a multiple of a quarter turn.
    Quarters,
    /// Another rule, which includes the rounding of the function's parts.
    Rule(fn(&[Interval; 3], &Unit) -> Interval),
}

impl Interval {
    /// A value that every kernel has.
    pub(in crate::ops) const fn exact(value: f64) -> Self {
        Interval { lo: value, hi: value }
    }

    /// The smallest interval that contains `values`; those that are NaN are left out.
    pub(in crate::ops) fn hull(values: impl IntoIterator<Item = f64>) -> Self {
        let grow = |hull: Interval, value: f64| Interval { lo: hull.lo.min(value), hi: hull.hi.max(value) };
        values.into_iter().fold(Interval::exact(f64::NAN), grow)
    }

    /// The interval with `by` more on both sides.
    pub(in crate::ops) fn widened(self, by: f64) -> Self {
        Interval { lo: self.lo - by, hi: self.hi + by }
    }

    /// The largest absolute value.
    pub(in crate::ops) fn magnitude(self) -> f64 {
        self.lo.abs().max(self.hi.abs())
    }

    pub(in crate::ops) fn is_exact(self) -> bool {
        self.lo == self.hi
    }

    pub(in crate::ops) fn contains(self, value: f64) -> bool {
        self.lo <= value && value <= self.hi
    }

    /// How far a value within may be from `value`.
    pub(in crate::ops) fn distance(self, value: f64) -> f64 {
        (self.hi - value).abs().max((value - self.lo).abs())
    }
}

/// What `function` makes of the first `arity` arguments, without its own rounding unless a rule includes it.
pub(super) fn enclose(
    function: &dyn Fn([f64; 3]) -> f64,
    enclosure: Enclosure,
    arity: usize,
    arguments: &[Interval; 3],
    unit: &Unit,
) -> Interval {
    let taken = &arguments[..arity];
    if taken.iter().any(|argument| argument.lo.is_nan()) {
        return Interval::exact(function(arguments.map(|argument| argument.lo)));
    }
    let points: &[f64] = match enclosure {
        Enclosure::Points(points) => points,
        Enclosure::Quarters => &[],
        Enclosure::Rule(rule) => return rule(arguments, unit),
    };
    let samples = |argument: &Interval| {
        let mut samples = vec![argument.lo];
        if !argument.is_exact() {
            samples.push(argument.hi);
            samples.extend(points.iter().copied().filter(|&point| argument.contains(point)));
        }
        if matches!(enclosure, Enclosure::Quarters) {
            samples.extend(quarters(*argument));
        }
        samples
    };
    let of = |index: usize| taken.get(index).map_or_else(|| vec![0.0], samples);
    let [a, b, c] = [of(0), of(1), of(2)];
    let each = a.iter().flat_map(|&a| b.iter().map(move |&b| [a, b]));
    Interval::hull(each.flat_map(|[a, b]| c.iter().map(move |&c| function([a, b, c]))))
}

/// Multiples of a quarter turn in an interval: all four kinds, where it is longer than a turn.
fn quarters(argument: Interval) -> Vec<f64> {
    const QUARTER: f64 = std::f64::consts::FRAC_PI_2;
    let first = (argument.lo / QUARTER).ceil();
    let each = (0..4).map(|step| (first + f64::from(step)) * QUARTER);
    each.filter(|&point| argument.contains(point)).collect()
}

/// `(a - b)^2`, but for its rounding.
pub(super) fn squared_difference([a, b, _]: &[Interval; 3], unit: &Unit) -> Interval {
    let difference = Interval { lo: a.lo - b.hi, hi: a.hi - b.lo };
    let zero = difference.contains(0.0).then_some(0.0);
    let square = Interval::hull([difference.lo.powi(2), difference.hi.powi(2)].into_iter().chain(zero));
    square.widened(if square.magnitude() == 0.0 {
        0.0
    } else {
        3.1 * unit.v * square.magnitude() + unit.tiny
    })
}

/// 1 where `a` and `b` are equal, else 0.
pub(super) fn equal([a, b, _]: &[Interval; 3], _: &Unit) -> Interval {
    let meet = a.lo <= b.hi && b.lo <= a.hi;
    let surely = a.is_exact() && b.is_exact() && meet;
    Interval { lo: f64::from(u8::from(surely)), hi: f64::from(u8::from(meet)) }
}

/// 1 where `a` and `b` differ, else 0.
pub(super) fn not_equal(arguments: &[Interval; 3], unit: &Unit) -> Interval {
    let equal = equal(arguments, unit);
    Interval { lo: 1.0 - equal.hi, hi: 1.0 - equal.lo }
}

/// `floor(a / b)`: the quotient is rounded before.
pub(super) fn floor_div([a, b, _]: &[Interval; 3], unit: &Unit) -> Interval {
    if b.contains(0.0) {
        return Interval { lo: f64::NEG_INFINITY, hi: f64::INFINITY };
    }
    let quotient = Interval::hull([a.lo / b.lo, a.lo / b.hi, a.hi / b.lo, a.hi / b.hi]);
    let rounded = quotient.widened(2.5 * unit.v * quotient.magnitude());
    Interval { lo: rounded.lo.floor(), hi: rounded.hi.floor() }
}

/// What `floor(a / b)` leaves of `a`: of exact arguments it is exact but for the sum with `b` where the signs differ;
/// of others with either whole number next to a quotient that rounds to one.
pub(super) fn floor_mod(arguments: &[Interval; 3], unit: &Unit) -> Interval {
    let ([a, b, _], whole) = (arguments, floor_div(arguments, unit));
    if a.is_exact() && b.is_exact() {
        let rest = super::Function::FloorMod.reference([a.lo, b.lo, 0.0]);
        let own = if rest == 0.0 { 0.0 } else { unit.v * rest.abs() + unit.tiny };
        return Interval::exact(rest).widened(own);
    }
    if !whole.magnitude().is_finite() {
        return whole;
    }
    let products = Interval::hull([b.lo * whole.lo, b.lo * whole.hi, b.hi * whole.lo, b.hi * whole.hi]);
    let rest = Interval { lo: a.lo - products.hi, hi: a.hi - products.lo };
    // The exact remainder lies between 0 and `b`.
    let rest = Interval { lo: rest.lo.min(b.lo.min(0.0)), hi: rest.hi.max(b.hi.max(0.0)) };
    rest.widened(unit.v * (products.magnitude() + rest.magnitude()) + unit.tiny)
}
