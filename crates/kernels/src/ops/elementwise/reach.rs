//! Where a program's results lie, and whether one of its functions is taken where it has a pole or is not defined.

use super::interval::{Interval, enclose};
use super::program::Program;
use super::table::Function;
use super::unit::Unit;
use super::{Source, Step};
use crate::dtype::DType;
use crate::emit::Operand;
use crate::ops::halves::{Reach, Reaches};

impl Program {
    /// Where the result lies.
    pub(in crate::ops) fn reach(&self, inputs: &Reaches<'_>) -> Reach {
        self.reaches(inputs, &mut |_, _| {}).pop().unwrap_or(Reach::ALL)
    }

    /// Whether the argument of a function may lie where its result is infinite or none.
    pub(in crate::ops) fn is_singular(&self, inputs: &Reaches<'_>) -> bool {
        let mut singular = false;
        self.reaches(inputs, &mut |step, arguments| singular |= is_singular(step.function, arguments));
        singular
    }

    /// Where each step's result lies; `each` is told of every step's arguments.
    fn reaches(&self, inputs: &Reaches<'_>, each: &mut dyn FnMut(&Step, &[Reach; 3])) -> Vec<Reach> {
        let mut reached: Vec<Reach> = Vec::with_capacity(self.steps().len());
        for step in self.steps() {
            let arguments = [0, 1, 2].map(|index| match step.arguments.get(index) {
                Some(Source::Input(input)) => inputs(Operand::Arg(*input)),
                Some(Source::Step(step)) => reached.get(usize::from(*step)).copied().unwrap_or(Reach::ALL),
                Some(Source::Number(number)) => Reach::new(number.0.into(), number.0.into()),
                None => Reach::around(0.0),
            });
            each(step, &arguments);
            let squares = step.function == Function::Mul && step.arguments.first() == step.arguments.get(1);
            let function = if squares { Function::Square } else { step.function };
            reached.push(of(function, &arguments));
        }
        reached
    }
}

/// Whether an argument may lie where the result is infinite or none.
fn is_singular(function: Function, [a, b, _]: &[Reach; 3]) -> bool {
    match function {
        Function::Div | Function::FloorDiv | Function::FloorMod => b.contains(0.0),
        Function::Reciprocal => a.contains(0.0),
        Function::Log | Function::Rsqrt => a.lo <= 0.0,
        Function::Sqrt => a.lo < 0.0,
        Function::Acosh => a.lo < 1.0,
        Function::Atanh => a.magnitude() >= 1.0,
        Function::Pow => {
            let whole = b.lo == b.hi && b.lo.fract() == 0.0;
            (a.lo < 0.0 && !whole) || (b.lo < 0.0 && a.contains(0.0))
        }
        _ => false,
    }
}

/// Where the results of one function lie.
fn of(function: Function, arguments: &[Reach; 3]) -> Reach {
    let [_, b, _] = *arguments;
    match function {
        _ if is_singular(function, arguments) => Reach::ALL,
        Function::Sin | Function::Cos => Reach::around(1.0),
        Function::Equal | Function::NotEqual | Function::IsNan => Reach::new(0.0, 1.0),
        // Of the divisor's sign, and no larger.
        Function::FloorMod => Reach::new(b.lo.min(0.0), b.hi.max(0.0)),
        Function::FloorDiv => {
            let quotient = of(Function::Div, arguments);
            Reach::new(quotient.lo.floor(), quotient.hi.floor())
        }
        Function::SquaredDifference => {
            of(Function::Square, &[of(Function::Sub, arguments), Reach::ALL, Reach::ALL])
        }
        _ => {
            let arguments = arguments.map(|Reach { lo, hi }| Interval { lo, hi });
            let exact = |arguments| function.reference(arguments);
            let unit = Unit::of(DType::F32);
            let found = enclose(&exact, function.enclosure(), function.arity(), &arguments, &unit);
            Reach::new(found.lo, found.hi)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::Bits;
    use proptest::prelude::*;

    fn program(steps: &[(Function, &[Source])]) -> Program {
        let step = |(function, arguments): &(Function, &[Source])| Step {
            function: *function,
            arguments: arguments.to_vec(),
        };
        Program::new(steps.iter().map(step).collect()).expect("a program")
    }

    #[test]
    fn a_divisor_that_is_kept_from_zero_bounds_a_quotient() {
        let number = |value: f32| Source::Number(Bits(value));
        let (x, y) = (Source::Input(0), Source::Input(1));
        // x / max(y, 1e-3), as vectors of a length of 1 are made.
        let kept =
            program(&[(Function::Maximum, &[y, number(1e-3)]), (Function::Div, &[x, Source::Step(0)])]);
        let of = |operand: Operand| if operand == Operand::Arg(0) { Reach::around(2.0) } else { Reach::ALL };
        assert!(!kept.is_singular(&of));
        assert!((kept.reach(&of).magnitude() - 2000.0).abs() < 1.0, "{:?}", kept.reach(&of));
        let bare = program(&[(Function::Div, &[x, y])]);
        assert!(bare.is_singular(&of));
        assert_eq!(bare.reach(&of), Reach::ALL);
        // 1 / sqrt(x x + epsilon); without the epsilon there is nothing between it and 0.
        for (epsilon, singular) in [(1e-5, false), (0.0, true)] {
            let root = program(&[
                (Function::Mul, &[x, x]),
                (Function::Add, &[Source::Step(0), number(epsilon)]),
                (Function::Rsqrt, &[Source::Step(1)]),
            ]);
            assert_eq!(root.is_singular(&|_| Reach::ALL), singular);
        }
        // 0 times what nothing bounds is no number.
        let none = program(&[(Function::Mul, &[x, number(0.0)])]);
        assert_eq!(none.reach(&|_| Reach::ALL), Reach::ALL);
    }

    proptest! {
        /// Each function of numbers between ends lies between the ends that follow, or is said to have a pole there.
        #[test]
        fn results_lie_within_their_reach(
            ends in prop::array::uniform3((-9.0f64..9.0, prop_oneof![Just(0.0f64), 0.0..4.0])),
            parts in prop::array::uniform3(0.0f64..=1.0),
            whole in any::<bool>(),
        ) {
            let rounded = |value: f64| if whole { value.round() } else { value };
            let arguments = ends.map(|(lo, length)| Reach { lo: rounded(lo), hi: rounded(lo) + length.ceil() });
            for &function in Function::ALL {
                let mut at = [0.0; 3];
                for ((at, reach), part) in at.iter_mut().zip(&arguments).zip(parts) {
                    *at = rounded(reach.lo + part * (reach.hi - reach.lo));
                }
                let found = function.reference(at);
                if is_singular(function, &arguments) {
                    continue;
                }
                let reach = of(function, &arguments);
                let slack = 1e-12 * found.abs().max(1.0);
                prop_assert!(
                    reach.lo - slack <= found && found <= reach.hi + slack,
                    "{} of {at:?} in {arguments:?}: {found} beyond {reach:?}", function.name()
                );
            }
        }
    }
}
