//! The program of each element in f64, and where correct kernels may be (`tolerance.rs`).

use super::interval::{self, Interval};
use super::program::{Program, Source};
use super::tolerance::Units;
use super::unit::Unit;
use super::{ElementwiseOp, Function};
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::ops::operands::{Operands, get};
use crate::ops::reference::Reference;
use half::f16;

/// The result for `operands`, which were checked.
pub(super) fn oracle(op: &ElementwiseOp, operands: &Operands<'_>) -> Reference {
    let inputs: Vec<&[f32]> = (0..op.inputs.len())
        .map(|input| get(operands, Operand::Arg(input as u8)).unwrap_or_default())
        .collect();
    let units = Units::of(op.precision);
    let (mut value, mut bound) = (Vec::new(), Vec::new());
    for index in 0..op.output.elements() {
        let given: Vec<(f64, Interval)> = inputs
            .iter()
            .enumerate()
            .map(|(input, values)| {
                let value = values.get(op.broadcast.place(input, index)).copied().map_or(f64::NAN, f64::from);
                (value, Interval::exact(value))
            })
            .collect();
        let (exact, interval) = element(&op.program, &given, &units);
        value.push(exact);
        bound.push(if interval.is_exact() && interval.lo == exact { 0.0 } else { interval.distance(exact) });
    }
    Reference::Bounded { value, bound }
}

impl Program {
    /// The result for inputs `[value, lo, hi]`, of each of which a kernel has something in `lo ..= hi`: the exact
    /// one, and between what correct kernels of `precision` store for it.
    #[doc(hidden)]
    pub fn enclose(&self, inputs: &[[f64; 3]], precision: Precision) -> [f64; 3] {
        let given: Vec<(f64, Interval)> =
            inputs.iter().map(|&[value, lo, hi]| (value, Interval { lo, hi })).collect();
        let (exact, interval) = element(self, &given, &Units::of(precision));
        [exact, interval.lo, interval.hi]
    }
}

/// One element of inputs that lie in intervals, and the interval of what correct kernels store for it.
fn element(program: &Program, inputs: &[(f64, Interval)], units: &Units) -> (f64, Interval) {
    let mut steps: Vec<(f64, Interval)> = Vec::with_capacity(program.steps().len());
    // What a half has room for is not rounded.
    let is_half = |value: f64| f64::from(f16::from_f64(value)) == value;
    let rounded = |given: Interval, unit: Option<Unit>| match unit {
        Some(unit) if !(given.is_exact() && is_half(given.lo)) => unit.rounded(given),
        _ => given,
    };
    for step in program.steps() {
        let of = |argument: Option<&Source>| match argument {
            Some(Source::Input(input)) => {
                let none = (f64::NAN, Interval::exact(f64::NAN));
                let (value, given) = inputs.get(usize::from(*input)).copied().unwrap_or(none);
                (value, rounded(given, units.store))
            }
            Some(Source::Step(step)) => steps[usize::from(*step)],
            Some(Source::Number(number)) => {
                let number = f64::from(number.0);
                (number, rounded(Interval::exact(number), units.numbers))
            }
            None => (0.0, Interval::exact(0.0)),
        };
        let given = [0, 1, 2].map(|place| of(step.arguments.get(place)));
        steps.push(applied(step.function, given, &units.sums));
    }
    let (exact, interval) = steps.last().copied().unwrap_or((f64::NAN, Interval::exact(f64::NAN)));
    (exact, units.store.map_or(interval, |unit| unit.rounded(interval)))
}

/// A function of arguments that lie in intervals: the exact result, and where correct kernels have it.
pub(in crate::ops) fn applied(
    function: Function,
    arguments: [(f64, Interval); 3],
    unit: &Unit,
) -> (f64, Interval) {
    let exact = function.reference(arguments.map(|(value, _)| value));
    let intervals = arguments.map(|(_, interval)| interval);
    let evaluate = |arguments| function.reference(arguments);
    let image = interval::enclose(&evaluate, function.enclosure(), function.arity(), &intervals, unit);
    // Of infinite arguments and results it is no number: those are exact.
    let own = Some(function.own()(&intervals, image.magnitude(), unit)).filter(|own| !own.is_nan());
    let own = if exact.is_finite() { own.unwrap_or(0.0) } else { 0.0 };
    let widened = if own > 0.0 { image.widened(own + unit.tiny) } else { image };
    (exact, unit.limited(widened))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims::Dims;
    use crate::emit::Bits;
    use crate::ops::elementwise::program::Step;
    use crate::ops::operands::of;

    const X: [Source; 2] = [Source::Input(0), Source::Input(1)];

    fn result(steps: Vec<Step>, inputs: &[(&[usize], &[f32])], precision: Precision) -> Reference {
        let program = Program::new(steps).expect("a program");
        let dims: Vec<Dims> = inputs.iter().map(|(extents, _)| Dims::new(extents).expect("small")).collect();
        let op = ElementwiseOp::new(program, &dims, precision).expect("they fit");
        let given: Vec<(Operand, &[f32])> = inputs
            .iter()
            .enumerate()
            .map(|(index, (_, values))| (Operand::Arg(index as u8), *values))
            .collect();
        oracle(&op, &of(&given))
    }

    fn one(function: Function, arguments: &[Source]) -> Vec<Step> {
        vec![Step { function, arguments: arguments.to_vec() }]
    }

    #[test]
    fn values_meet_those_of_the_same_place() {
        let sub = one(Function::Sub, &X);
        let found = result(sub, &[(&[2, 1], &[10.0, 20.0]), (&[3], &[1.0, 2.0, 3.0])], Precision::F32);
        assert_eq!(found.value(), [9.0, 8.0, 7.0, 19.0, 18.0, 17.0]);
    }

    #[test]
    fn a_choice_is_exact_and_a_jump_is_as_wide_as_it_is() {
        let bound = |function, value: f32, precision| {
            let found = result(one(function, &X[..1]), &[(&[1], &[value])], precision);
            found.tolerance(0, precision)
        };
        assert_eq!(bound(Function::Floor, 2.0, Precision::F32), 0.0);
        assert_eq!(bound(Function::Neg, 2.5, Precision::F32), 0.0);
        let half = bound(Function::Floor, 2.0, Precision::F16Storage);
        assert!(half < 0.01, "2 is exact in f16, and so is its floor but for the store: {half}");
        let above = bound(Function::Floor, 2.0 + f32::EPSILON * 4.0, Precision::F16Storage);
        assert!((1.0..1.01).contains(&above), "what was rounded may lie below 2: {above}");
        assert!(bound(Function::Floor, 2.5, Precision::F16Storage) < 0.01);
    }

    #[test]
    fn a_chain_carries_its_parts_errors() {
        // (x + 1) * 1000: the error of the sum a thousandfold.
        let number = |value| Source::Number(Bits(value));
        let mut steps = one(Function::Add, &[X[0], number(1.0)]);
        let sum = result(steps.clone(), &[(&[1], &[0.3])], Precision::F32).tolerance(0, Precision::F32);
        steps.extend(one(Function::Mul, &[Source::Step(0), number(1000.0)]));
        let product = result(steps, &[(&[1], &[0.3])], Precision::F32).tolerance(0, Precision::F32);
        assert!(product > 1999.0 * sum && product < 2001.0 * sum, "{product} of {sum}");
    }

    #[test]
    fn what_is_no_number_stays_none_in_a_maximum() {
        for function in [Function::Maximum, Function::Minimum, Function::Add] {
            let inputs: [(&[usize], &[f32]); 2] = [(&[2], &[f32::NAN, 1.0]), (&[2], &[1.0, f32::NAN])];
            let found = result(one(function, &X), &inputs, Precision::F32);
            assert!(found.value().iter().all(|value| value.is_nan()), "{function:?}");
        }
    }

    /// The CPU's function of many arguments is within the bound that the kernels have.
    #[test]
    fn what_the_cpu_computes_is_within_the_bound() {
        let grid: Vec<f32> = (-40..=40).map(|step| step as f32 * 0.173).collect();
        let mut failures = Vec::new();
        for &function in Function::ALL {
            let arguments: Vec<Source> = (0..function.arity() as u8).map(Source::Input).collect();
            for (at, &a) in grid.iter().enumerate() {
                let others = [grid[(7 * at + 3) % grid.len()], grid[(29 * at + 11) % grid.len()].abs() + 0.5];
                let given = [[a], [others[0]], [others[1]]];
                let inputs: Vec<(&[usize], &[f32])> =
                    given[..function.arity()].iter().map(|value| (&[1][..], &value[..])).collect();
                let found = result(one(function, &arguments), &inputs, Precision::F32);
                let mut y = [0.0];
                function.each([&given[0], &given[1], &given[2]], &mut y);
                let (wanted, bound) = (found.value()[0], found.tolerance(0, Precision::F32));
                let off = (f64::from(y[0]) - wanted).abs();
                let both_none = !wanted.is_finite() && !y[0].is_finite();
                if !both_none && (off.is_nan() || off > bound) {
                    failures.push(format!("{function:?}{given:?}: {} instead of {wanted} +- {bound}", y[0]));
                }
            }
        }
        assert!(failures.is_empty(), "{}", failures.join("\n"));
    }
}
