//! Functions that converters write out in several, as the one that they are.
//!
//! | function | written out as |
//! |---|---|
//! | PReLU | `relu(x) + a * -relu(-x)`, `relu(x) - a * relu(-x)` |
//! | leaky ReLU, `0 < a < 1` | `max(x, a * x)` |
//! | hard swish | `x * relu6(x + 3) / 6`, `x` times a hard sigmoid |
//! | hard sigmoid | `relu6(x + 3) / 6`, `relu6(x + 3) * (1/6)`, `clamp(x / 6 + 0.5, 0, 1)`, `clamp(x * (1/6) + 0.5, 0, 1)` |
//! | GELU | `0.5 * x * (1 + erf(x / sqrt(2)))`, in any order |
//! | its approximation | `0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))`, in any order |

use super::program::{Program, Source, Step};
use super::table::Function;
use crate::emit::Bits;

/// More factors than any of the functions has.
const MAX_FACTORS: usize = 6;

fn number(source: Source) -> Option<f32> {
    match source {
        Source::Number(number) => Some(number.0),
        _ => None,
    }
}

/// What `function` of `a` and `b` is a sixth of.
fn sixth(function: Function, a: Source, b: Source) -> Option<Source> {
    match (function, number(a), number(b)) {
        (Function::Div, _, Some(6.0)) => Some(a),
        (Function::Mul, _, Some(factor)) if factor == 1.0 / 6.0 => Some(a),
        (Function::Mul, Some(factor), _) if factor == 1.0 / 6.0 => Some(b),
        _ => None,
    }
}

impl Program {
    /// The program as one function, if it is one written out.
    pub fn recognised(&self) -> Option<Program> {
        let last = self.steps().last()?;
        let one = self
            .prelu(last)
            .or_else(|| self.leaky(last))
            .or_else(|| self.hard_swish(last))
            .or_else(|| self.hard_sigmoid(last))
            .or_else(|| self.gelu())?;
        let program = Program::new(vec![one]).ok()?;
        // Each input is an input of the one, in the same place.
        (program.inputs() == self.inputs()).then_some(program)
    }

    /// The step that `source` is, if it is `function`'s.
    fn step(&self, source: Source, function: Function) -> Option<&Step> {
        match source {
            Source::Step(step) => {
                self.steps().get(usize::from(step)).filter(|step| step.function == function)
            }
            _ => None,
        }
    }

    /// The argument of the step that `source` is, if it is `function`'s of one.
    fn inside(&self, source: Source, function: Function) -> Option<Source> {
        self.step(source, function)?.arguments.first().copied()
    }

    /// The two arguments of a step of `function`, in both orders.
    fn both(&self, source: Source, function: Function) -> [Option<(Source, Source)>; 2] {
        match self.step(source, function).map(|step| &step.arguments[..]) {
            Some(&[a, b]) => [Some((a, b)), Some((b, a))],
            _ => [None, None],
        }
    }

    fn prelu(&self, last: &Step) -> Option<Step> {
        let &[a, b] = &last.arguments[..] else { return None };
        let (orders, negated): (&[(Source, Source)], bool) = match last.function {
            Function::Add => (&[(a, b), (b, a)], true),
            Function::Sub => (&[(a, b)], false),
            _ => return None,
        };
        for &(positive, scaled) in orders {
            let Some(x) = self.inside(positive, Function::Relu) else { continue };
            for (slope, negative) in self.both(scaled, Function::Mul).into_iter().flatten() {
                let negative = if negated { self.inside(negative, Function::Neg) } else { Some(negative) };
                let found = negative
                    .and_then(|negative| self.inside(negative, Function::Relu))
                    .and_then(|negative| self.inside(negative, Function::Neg));
                if found == Some(x) && !matches!(slope, Source::Step(_)) {
                    return Some(Step { function: Function::PRelu, arguments: vec![x, slope] });
                }
            }
        }
        None
    }

    fn leaky(&self, last: &Step) -> Option<Step> {
        let (Function::Maximum, &[a, b]) = (last.function, &last.arguments[..]) else { return None };
        for (x, scaled) in [(a, b), (b, a)] {
            for (slope, inner) in self.both(scaled, Function::Mul).into_iter().flatten() {
                if let Source::Number(number) = slope
                    && inner == x
                    && number.0 > 0.0
                    && number.0 < 1.0
                {
                    return Some(Step { function: Function::LeakyRelu, arguments: vec![x, slope] });
                }
            }
        }
        None
    }

    /// What `source` is a sixth of.
    fn sixth_of(&self, source: Source) -> Option<Source> {
        [Function::Div, Function::Mul].into_iter().find_map(|function| {
            let &[a, b] = &self.step(source, function)?.arguments[..] else { return None };
            sixth(function, a, b)
        })
    }

    /// What `added` is added to in `sum`.
    fn besides(&self, sum: Source, added: f32) -> Option<Source> {
        let mut orders = self.both(sum, Function::Add).into_iter().flatten();
        orders.find(|(_, other)| number(*other) == Some(added)).map(|(x, _)| x)
    }

    /// The `x` of `relu6(x + 3)`.
    fn relu6_of(&self, source: Source) -> Option<Source> {
        self.besides(self.inside(source, Function::Relu6)?, 3.0)
    }

    fn hard_sigmoid(&self, last: &Step) -> Option<Step> {
        let x = match (last.function, &last.arguments[..]) {
            (Function::Clamp, &[sum, low, high]) if (number(low), number(high)) == (Some(0.0), Some(1.0)) => {
                self.sixth_of(self.besides(sum, 0.5)?)?
            }
            (function, &[a, b]) => self.relu6_of(sixth(function, a, b)?)?,
            _ => return None,
        };
        let step = Step { function: Function::HardSigmoid, arguments: vec![x] };
        (!matches!(x, Source::Step(_))).then_some(step)
    }

    fn hard_swish(&self, last: &Step) -> Option<Step> {
        let &[a, b] = &last.arguments[..] else { return None };
        let mut found = None;
        if let Some(product) = sixth(last.function, a, b) {
            let mut orders = self.both(product, Function::Mul).into_iter().flatten();
            found = orders.find(|&(x, other)| self.relu6_of(other) == Some(x)).map(|(x, _)| x);
        }
        if found.is_none() && last.function == Function::Mul {
            let mut orders = [(a, b), (b, a)].into_iter();
            let written = |other: Source| self.relu6_of(self.sixth_of(other)?);
            // It may have been found before its product was.
            let gate = |other: Source| self.inside(other, Function::HardSigmoid).or_else(|| written(other));
            found = orders.find(|&(x, other)| gate(other) == Some(x)).map(|(x, _)| x);
        }
        let x = found.filter(|x| !matches!(x, Source::Step(_)))?;
        Some(Step { function: Function::HardSwish, arguments: vec![x] })
    }

    /// The product that `source` is: its factors, and the product of those that are numbers. None of more factors
    /// than are looked for.
    fn product(&self, source: Source) -> Option<(f32, Vec<Source>)> {
        let (mut number, mut factors, mut open) = (1.0, Vec::new(), vec![source]);
        while let Some(next) = open.pop() {
            if open.len() + factors.len() > MAX_FACTORS {
                return None;
            }
            let step = match next {
                Source::Number(factor) => {
                    number *= factor.0;
                    continue;
                }
                Source::Step(step) => self.steps().get(usize::from(step))?,
                Source::Input(_) => {
                    factors.push(next);
                    continue;
                }
            };
            match (step.function, &step.arguments[..]) {
                (Function::Mul, &[a, b]) => open.extend([a, b]),
                (Function::Square, &[a]) => open.extend([a, a]),
                (Function::Pow, &[a, Source::Number(Bits(3.0))]) => open.extend([a, a, a]),
                (Function::Div, &[a, Source::Number(divisor)]) => {
                    number /= divisor.0;
                    open.push(a);
                }
                _ => factors.push(next),
            }
        }
        Some((number, factors))
    }

    /// What is added to `known` in `sum`.
    fn addend(&self, sum: Source, known: Source) -> Option<Source> {
        let mut orders = self.both(sum, Function::Add).into_iter().flatten();
        orders.find(|(_, other)| *other == known).map(|(addend, _)| addend)
    }

    fn gelu(&self) -> Option<Step> {
        let close = |found: f32, wanted: f32| (found - wanted).abs() <= 1e-6 * wanted;
        let last = u8::try_from(self.steps().len().checked_sub(1)?).ok()?;
        let (half, factors) = self.product(Source::Step(last))?;
        let &[a, b] = &factors[..] else { return None };
        let (x, sum) = if matches!(a, Source::Input(_)) { (a, b) } else { (b, a) };
        let share = self.addend(sum, Source::Number(Bits(1.0)))?;
        if !matches!(x, Source::Input(_)) || half != 0.5 {
            return None;
        }
        let function = if let Some(argument) = self.inside(share, Function::Erf) {
            let (scale, factors) = self.product(argument)?;
            (factors == [x] && close(scale, std::f32::consts::FRAC_1_SQRT_2)).then_some(Function::Gelu)
        } else {
            let (scale, factors) = self.product(self.inside(share, Function::Tanh)?)?;
            let &[sum] = &factors[..] else { return None };
            let (cubic, factors) = self.product(self.addend(sum, x)?)?;
            let constants = close(scale, 0.797_884_6) && close(cubic, 0.044_715);
            (factors == [x, x, x] && constants).then_some(Function::GeluTanh)
        };
        Some(Step { function: function?, arguments: vec![x] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const X: Source = Source::Input(0);

    fn number(value: f32) -> Source {
        Source::Number(Bits(value))
    }

    fn recognised(steps: &[(Function, &[Source])]) -> Option<(Function, Vec<Source>)> {
        let step = |(function, arguments): &(Function, &[Source])| Step {
            function: *function,
            arguments: arguments.to_vec(),
        };
        let program = Program::new(steps.iter().map(step).collect()).expect("a program");
        let one = program.recognised()?;
        Some((one.steps()[0].function, one.steps()[0].arguments.clone()))
    }

    #[test]
    fn a_prelu_is_found_with_either_sign_and_order() {
        use Function::{Add, Mul, Neg, Relu, Sub};
        let (slope, s) = (Source::Input(1), Source::Step);
        let wanted = Some((Function::PRelu, vec![X, slope]));
        let kept = [(Relu, &[X][..]), (Neg, &[X]), (Relu, &[s(1)]), (Neg, &[s(2)]), (Mul, &[slope, s(3)])];
        for last in [(Add, &[s(0), s(4)][..]), (Add, &[s(4), s(0)])] {
            let steps: Vec<_> = kept.iter().copied().chain([last]).collect();
            assert_eq!(recognised(&steps), wanted);
        }
        let sub =
            [(Relu, &[X][..]), (Neg, &[X]), (Relu, &[s(1)]), (Mul, &[s(2), slope]), (Sub, &[s(0), s(3)])];
        assert_eq!(recognised(&sub), wanted);
        // Another sign, and another value below zero.
        let wrong =
            [(Relu, &[X][..]), (Neg, &[X]), (Relu, &[s(1)]), (Mul, &[s(2), slope]), (Add, &[s(0), s(3)])];
        assert_eq!(recognised(&wrong), None);
        let other =
            [(Relu, &[X][..]), (Neg, &[slope]), (Relu, &[s(1)]), (Mul, &[s(2), X]), (Sub, &[s(0), s(3)])];
        assert_eq!(recognised(&other), None);
    }

    #[test]
    fn a_hard_swish_is_found_wherever_its_six_stands() {
        use Function::{Add, Div, Mul, Relu6};
        let s = Source::Step;
        let wanted = Some((Function::HardSwish, vec![X]));
        let gate = [(Add, &[X, number(3.0)][..]), (Relu6, &[s(0)])];
        for rest in [
            [(Mul, &[X, s(1)][..]), (Div, &[s(2), number(6.0)])],
            [(Mul, &[s(1), X]), (Mul, &[number(1.0 / 6.0), s(2)])],
            [(Div, &[s(1), number(6.0)]), (Mul, &[X, s(2)])],
            [(Mul, &[s(1), number(1.0 / 6.0)]), (Mul, &[s(2), X])],
        ] {
            let steps: Vec<_> = gate.iter().copied().chain(rest).collect();
            assert_eq!(recognised(&steps), wanted, "{rest:?}");
        }
        let five =
            [(Add, &[X, number(3.0)][..]), (Relu6, &[s(0)]), (Mul, &[X, s(1)]), (Div, &[s(2), number(5.0)])];
        assert_eq!(recognised(&five), None);
    }

    #[test]
    fn a_hard_sigmoid_is_a_sixth_and_a_half_or_a_sixth_of_a_relu6() {
        use Function::{Add, Clamp, Div, HardSigmoid, Mul, Relu6};
        let s = Source::Step;
        let (wanted, sixth) = (Some((HardSigmoid, vec![X])), number(1.0 / 6.0));
        let clamped = [s(1), number(0.0), number(1.0)];
        for first in [(Mul, [X, sixth]), (Mul, [sixth, X]), (Div, [X, number(6.0)])] {
            let steps = [(first.0, &first.1[..]), (Add, &[s(0), number(0.5)]), (Clamp, &clamped)];
            assert_eq!(recognised(&steps), wanted, "{first:?}");
        }
        for last in [(Mul, [s(1), sixth]), (Mul, [sixth, s(1)]), (Div, [s(1), number(6.0)])] {
            let steps = [(Add, &[X, number(3.0)][..]), (Relu6, &[s(0)]), (last.0, &last.1)];
            assert_eq!(recognised(&steps), wanted, "{last:?}");
        }
        // Keras' has another slope.
        let keras = [(Mul, &[X, number(0.2)][..]), (Add, &[s(0), number(0.5)]), (Clamp, &clamped)];
        assert_eq!(recognised(&keras), None);
        let two = [s(1), number(0.0), number(2.0)];
        assert_eq!(recognised(&[(Mul, &[X, sixth][..]), (Add, &[s(0), number(0.5)]), (Clamp, &two)]), None);
        let swish = [(HardSigmoid, &[X][..]), (Mul, &[X, s(0)])];
        assert_eq!(recognised(&swish), Some((Function::HardSwish, vec![X])));
    }

    #[test]
    fn a_leaky_relu_is_a_maximum_with_a_part_of_itself() {
        use Function::{Maximum, Mul};
        let of = |slope: f32| recognised(&[(Mul, &[number(slope), X]), (Maximum, &[X, Source::Step(0)])]);
        assert_eq!(of(0.25), Some((Function::LeakyRelu, vec![X, number(0.25)])));
        assert_eq!(of(1.5), None);
        assert_eq!(of(-0.5), None);
    }

    #[test]
    fn a_gelu_is_found_in_any_order() {
        use Function::{Add, Div, Erf, Mul, Pow, Square, Tanh};
        let s = Source::Step;
        let wanted = Some((Function::Gelu, vec![X]));
        let (one, half) = (number(1.0), number(0.5));
        let (root, x, sum) = ([X, number(std::f32::consts::SQRT_2)], [X, s(2)], [s(1), one]);
        let (inner, halved) = ([s(0)], [s(3), half]);
        let exported = [(Div, &root[..]), (Erf, &inner), (Add, &sum), (Mul, &x), (Mul, &halved)];
        assert_eq!(recognised(&exported), wanted);
        let (scaled, other_sum) = ([number(0.707_106_77), X], [one, s(1)]);
        let (first, then) = ([half, X], [s(3), s(2)]);
        let other = [(Mul, &scaled[..]), (Erf, &inner), (Add, &other_sum), (Mul, &first), (Mul, &then)];
        assert_eq!(recognised(&other), wanted);
        let (divisor, quarter, argument) = ([X, number(1.5)], [s(3), number(0.25)], [s(0), s(2)]);
        for (place, wrong) in [(0, (Div, &divisor[..])), (4, (Mul, &quarter)), (3, (Mul, &argument))] {
            let mut steps = exported;
            steps[place] = wrong;
            assert_eq!(recognised(&steps), None, "{place}");
        }
        let (cubed, itself, squared, times) = ([X, number(3.0)], [s(0), one], [X], [X, s(0)]);
        for cube in [[(Pow, &cubed[..]), (Mul, &itself)], [(Square, &squared[..]), (Mul, &times)]] {
            let rest = [
                (Mul, [s(1), number(0.044715)]),
                (Add, [X, s(2)]),
                (Mul, [s(3), number(0.797_884_6)]),
                (Tanh, [s(4), s(4)]),
                (Add, [s(5), one]),
                (Mul, [X, half]),
                (Mul, [s(7), s(6)]),
            ];
            let rest = rest.iter().map(|(function, of)| (*function, &of[..function.arity()]));
            let steps: Vec<_> = cube.into_iter().chain(rest).collect();
            assert_eq!(recognised(&steps), Some((Function::GeluTanh, vec![X])));
        }
    }
}
