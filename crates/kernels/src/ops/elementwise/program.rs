//! What is computed of each element: steps, each a function of inputs, of earlier steps and of numbers.

use super::OP;
use super::table::{Function, Text};
use crate::emit::Bits;
use crate::error::{Error, Result};
use crate::ops::halves::LARGEST_HALF;
use std::fmt::Write;

/// The most inputs of a program.
pub const MAX_INPUTS: usize = 6;

/// The most steps of a program.
pub const MAX_STEPS: usize = 16;

/// The most numbers of a program, which are scalars of its kernel.
const MAX_NUMBERS: usize = 16;

/// An argument of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// An input, counted from 0.
    Input(u8),
    /// What an earlier step gave, counted from 0.
    Step(u8),
    /// A number.
    Number(Bits),
}

/// A function and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Step {
    /// The function.
    pub function: Function,
    /// Its arguments, all that it takes.
    pub arguments: Vec<Source>,
}

/// Steps in order; the last one's result is the element.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Program {
    steps: Vec<Step>,
    inputs: usize,
}

/// Whether a step changes its result by no more than its arguments are changed by, or by a few times that.
fn is_narrow(step: &Step) -> bool {
    use Function::{
        Abs, Add, Clamp, Div, Elu, Erf, Gelu, GeluTanh, HardSigmoid, HardSwish, LeakyRelu, Maximum, Minimum,
        Mul, Neg, PRelu, Relu, Relu6, ReluN1To1, Select, Sigmoid, Softplus, Square, SquaredDifference, Sub,
        Tanh,
    };
    let function = step.function;
    let sums = matches!(function, Add | Sub | Mul | Square | SquaredDifference | HardSwish);
    let bounded = matches!(function, Relu6 | ReluN1To1 | Sigmoid | HardSigmoid | Tanh | Clamp | Erf);
    let chosen = matches!(function, Maximum | Minimum | Relu | Neg | Abs | LeakyRelu | PRelu | Select);
    let activations = matches!(function, Elu | Gelu | GeluTanh | Softplus);
    let scaled = function == Div && matches!(step.arguments.get(1), Some(Source::Number(_)));
    sums || bounded || chosen || activations || scaled
}

impl Program {
    /// Whether the result may be stored in halves: not where a step magnifies what rounding its arguments changes.
    pub(in crate::ops) fn halves(&self) -> bool {
        self.steps.iter().all(is_narrow)
    }

    /// Whether inputs are read as rows of halves where a network stores them: as [`Program::halves`], and of quotients,
    /// which pass on what their terms are off by. Not beside numbers that are beyond halves, as those that make masks are.
    pub(in crate::ops) fn reads_half_rows(&self) -> bool {
        self.steps.iter().all(|step| is_narrow(step) || step.function == Function::Div)
            && !self.has_large_numbers()
    }

    /// Whether the result is written as rows of halves there. Not a square, whose mean is taken next and which is beyond
    /// halves where what is squared is not.
    pub(in crate::ops) fn writes_half_rows(&self) -> bool {
        use Function::{Cos, Div, Mul, Rsqrt, Sin, Sqrt, Square, SquaredDifference};
        let held = |step: &Step| is_narrow(step) || matches!(step.function, Div | Sqrt | Rsqrt | Sin | Cos);
        let square = |step: &Step| match step.function {
            Square | SquaredDifference => true,
            Mul => step.arguments.first() == step.arguments.get(1),
            _ => false,
        };
        self.steps.iter().all(held) && !self.steps.last().is_some_and(square) && !self.has_large_numbers()
    }

    fn has_large_numbers(&self) -> bool {
        let large = |number: Bits| number.0.is_finite() && f64::from(number.0.abs()) > LARGEST_HALF;
        self.numbers().into_iter().any(large)
    }

    /// Checks the steps.
    ///
    /// # Errors
    /// If there is no step or input, too many of anything, a step has another number of arguments than its
    /// function or reads a step that is not before it, or an input is left out.
    pub fn new(steps: Vec<Step>) -> Result<Self> {
        let refuse = |found: String, wanted: String| Err(Error::shape(OP, found, wanted));
        if steps.is_empty() || steps.len() > MAX_STEPS {
            return refuse(format!("{} steps", steps.len()), format!("1 to {MAX_STEPS}"));
        }
        let mut read = [false; MAX_INPUTS];
        for (index, step) in steps.iter().enumerate() {
            let (function, arity) = (step.function, step.function.arity());
            if step.arguments.len() != arity {
                let found = format!("{} arguments of {}", step.arguments.len(), function.name());
                return refuse(found, arity.to_string());
            }
            for argument in &step.arguments {
                match *argument {
                    Source::Input(input) => match read.get_mut(usize::from(input)) {
                        Some(read) => *read = true,
                        None => {
                            return refuse(format!("input {input}"), format!("inputs below {MAX_INPUTS}"));
                        }
                    },
                    Source::Step(step) if usize::from(step) >= index => {
                        return refuse(
                            format!("step {step} read by step {index}"),
                            "earlier steps".to_owned(),
                        );
                    }
                    Source::Step(_) | Source::Number(_) => {}
                }
            }
        }
        let inputs = read.iter().filter(|read| **read).count();
        if inputs == 0 || read.iter().take(inputs).any(|read| !read) {
            return refuse(format!("inputs read: {read:?}"), "at least one, none left out".to_owned());
        }
        let program = Program { steps, inputs };
        match program.numbers().len() {
            numbers if numbers > MAX_NUMBERS => {
                refuse(format!("{numbers} numbers"), format!("at most {MAX_NUMBERS}"))
            }
            _ => Ok(program),
        }
    }

    /// One function of its arguments.
    ///
    /// # Errors
    /// If [`Program::new`] refuses the step.
    pub fn of(function: Function, arguments: Vec<Source>) -> Result<Self> {
        Program::new(vec![Step { function, arguments }])
    }

    /// The steps.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The number of inputs.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// The numbers that it has, each once.
    pub(in crate::ops) fn numbers(&self) -> Vec<Bits> {
        let mut numbers = Vec::new();
        for argument in self.steps.iter().flat_map(|step| &step.arguments) {
            if let Source::Number(number) = argument
                && !numbers.contains(number)
            {
                numbers.push(*number);
            }
        }
        numbers
    }

    /// What it gives where each input is `number`: each step in f64, rounded to f32.
    #[doc(hidden)]
    pub fn of_number(&self, number: f32) -> f32 {
        let inputs = [number; MAX_INPUTS];
        self.of_numbers(&inputs)
    }

    /// What it gives of these inputs: each step in f64, rounded to f32.
    #[doc(hidden)]
    pub fn of_numbers(&self, inputs: &[f32]) -> f32 {
        let mut values: Vec<f32> = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let mut arguments = [0.0; 3];
            for (argument, source) in arguments.iter_mut().zip(&step.arguments) {
                let found = match *source {
                    Source::Input(input) => inputs.get(usize::from(input)).copied(),
                    Source::Step(step) => values.get(usize::from(step)).copied(),
                    Source::Number(number) => Some(number.0),
                };
                *argument = f64::from(found.unwrap_or_default());
            }
            values.push(step.function.reference(arguments) as f32);
        }
        values.last().copied().unwrap_or_default()
    }

    /// The program that computes `self` of what `first` gives as input `place`. The inputs are `first`'s and
    /// then those of `self` that are left, unless `shared` says that one of them is one of `first`'s; the
    /// second result says for each input of `self` which one it has become.
    ///
    /// # Errors
    /// If together they are too long or have too many inputs.
    pub fn after(
        &self,
        first: &Program,
        place: usize,
        shared: &dyn Fn(usize) -> Option<usize>,
    ) -> Result<(Program, Vec<Option<usize>>)> {
        let mut inputs = first.inputs;
        let mut places = Vec::with_capacity(self.inputs);
        for input in 0..self.inputs {
            places.push(match shared(input) {
                _ if input == place => None,
                Some(known) => Some(known),
                None => {
                    inputs += 1;
                    Some(inputs - 1)
                }
            });
        }
        let before = first.steps.len() as u8;
        let moved = |argument: &Source| match *argument {
            Source::Input(input) => match places.get(usize::from(input)) {
                Some(Some(place)) => Source::Input(*place as u8),
                _ => Source::Step(before - 1),
            },
            Source::Step(step) => Source::Step(step + before),
            Source::Number(number) => Source::Number(number),
        };
        let second = self.steps.iter().map(|step| Step {
            function: step.function,
            arguments: step.arguments.iter().map(moved).collect(),
        });
        let steps: Vec<Step> = first.steps.iter().cloned().chain(second).collect();
        Ok((Program::new(steps)?, places))
    }

    /// One line without spaces, such as `add(x0,relu(x1))`. A step that several read comes first, with a
    /// name.
    pub(in crate::ops) fn key(&self) -> String {
        let mut uses = vec![0usize; self.steps.len()];
        for argument in self.steps.iter().flat_map(|step| &step.arguments) {
            if let Source::Step(step) = argument {
                uses[usize::from(*step)] += 1;
            }
        }
        let mut texts: Vec<String> = Vec::with_capacity(self.steps.len());
        let mut key = String::new();
        for (index, step) in self.steps.iter().enumerate() {
            let argument = |argument: &Source| match *argument {
                Source::Input(input) => format!("x{input}"),
                Source::Step(step) => texts[usize::from(step)].clone(),
                Source::Number(number) => format!("{:?}", number.0),
            };
            let arguments: Vec<String> = step.arguments.iter().map(argument).collect();
            let mut text = format!("{}({})", step.function.name(), arguments.join(","));
            let last = index + 1 == self.steps.len();
            if !last && uses[index] != 1 {
                // Writing to a string does not fail.
                let _ = write!(key, "s{index}={text};");
                text = format!("s{index}");
            }
            texts.push(text);
        }
        key + texts.last().map_or("", |text| text)
    }
}

impl Function {
    /// The function of arguments with these names, in f32: as vec4s if `wide`, else as scalars. Functions of
    /// `shaders/shared/functions.wgsl` that it calls are added to `calls`.
    pub(in crate::ops) fn expression(
        self,
        names: &[String],
        wide: bool,
        calls: &mut Vec<&'static str>,
    ) -> String {
        let ty = if wide { "vec4<f32>" } else { "f32" };
        let mut call = |function: &'static str| {
            if !calls.contains(&function) {
                calls.push(function);
            }
        };
        match self.text() {
            Text::Of(activation) => {
                activation.call().into_iter().for_each(&mut call);
                let constant = |value: f32| format!("{ty}({value:?}f)");
                let in_f32 = |function: &str, x: &str| format!("{function}({x})");
                let [x, slope] = [0, 1].map(|place| names.get(place).map_or("", |name| name));
                let is_nan = |x: &str| format!("is_nan({x})");
                activation.text(x, slope, &constant, &in_f32, &is_nan)
            }
            Text::Wgsl(text) => {
                let called = CALLS.into_iter().filter(|call| {
                    let all = [format!("({call}("), format!(" {call}(")];
                    text.starts_with(&format!("{call}(")) || all.iter().any(|call| text.contains(call))
                });
                called.for_each(&mut call);
                let mut text = spelled(text, ty);
                for (place, name) in ["{a}", "{b}", "{c}"].iter().zip(names) {
                    text = text.replace(place, name);
                }
                text
            }
        }
    }
}

/// The functions of `shaders/shared/functions.wgsl` that texts of the table call.
const CALLS: [&str; 11] = [
    "is_nan",
    "power",
    "floor_modulo",
    "exp_minus_one",
    "softplus",
    "hyperbolic_sine",
    "hyperbolic_cosine",
    "inverse_hyperbolic_sine",
    "inverse_hyperbolic_cosine",
    "inverse_hyperbolic_tangent",
    "error_function",
];

/// `text` with its constants `#(x)` as `ty`.
fn spelled(text: &str, ty: &str) -> String {
    let mut out = String::with_capacity(2 * text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("#(") {
        let (constant, behind) = after.split_once(')').unwrap_or((after, ""));
        out.push_str(&format!("{before}{ty}({constant}f)"));
        rest = behind;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(function: Function, arguments: &[Source]) -> Step {
        Step { function, arguments: arguments.to_vec() }
    }

    const X: [Source; 3] = [Source::Input(0), Source::Input(1), Source::Input(2)];

    #[test]
    fn steps_that_do_not_fit_are_refused_with_what_is_wanted() {
        let text = |steps: Vec<Step>| Program::new(steps).expect_err("refused").to_string();
        assert!(text(Vec::new()).contains("0 steps"));
        assert!(text(vec![step(Function::Add, &X[..1])]).contains("1 arguments of add"));
        assert!(text(vec![step(Function::Neg, &[Source::Step(0)])]).contains("step 0 read by step 0"));
        assert!(text(vec![step(Function::Neg, &X[1..2])]).contains("none left out"));
        assert!(text(vec![step(Function::Neg, &[Source::Input(6)])]).contains("input 6"));
        assert!(text(vec![step(Function::Neg, &[Source::Number(Bits(1.0))])]).contains("at least one"));
        let long = (0..17)
            .map(|index| step(Function::Neg, &[if index == 0 { X[0] } else { Source::Step(index - 1) }]));
        assert!(text(long.collect()).contains("17 steps"));
    }

    #[test]
    fn a_key_reads_like_a_formula_and_names_what_is_read_twice() {
        let relu = step(Function::Relu, &X[1..2]);
        let add = step(Function::Add, &[X[0], Source::Step(0)]);
        assert_eq!(Program::new(vec![relu, add]).expect("a program").key(), "add(x0,relu(x1))");
        let exp = step(Function::Exp, &X[..1]);
        let one = step(Function::Add, &[Source::Step(0), Source::Number(Bits(0.5))]);
        let quotient = step(Function::Div, &[Source::Step(0), Source::Step(1)]);
        let program = Program::new(vec![exp, one, quotient]).expect("a program");
        assert_eq!(program.key(), "s0=exp(x0);div(s0,add(s0,0.5))");
    }

    #[test]
    fn a_program_goes_on_with_another_ones_result() {
        let first = Program::of(Function::Mul, vec![X[0], X[1]]).expect("a program");
        // x0 - first, x0 being the second input of `first`.
        let second = Program::of(Function::Sub, vec![X[0], X[1]]).expect("a program");
        let (both, places) = second.after(&first, 1, &|input| (input == 0).then_some(1)).expect("short");
        assert_eq!(
            (both.key().as_str(), both.inputs(), places),
            ("sub(x1,mul(x0,x1))", 2, vec![Some(1), None])
        );
        let (both, places) = second.after(&first, 0, &|_| None).expect("short");
        assert_eq!(
            (both.key().as_str(), both.inputs(), places),
            ("sub(mul(x0,x1),x2)", 3, vec![None, Some(2)])
        );
    }

    #[test]
    fn a_text_is_spelled_for_vectors_and_for_scalars() {
        let mut calls = Vec::new();
        let mut text =
            |function: Function, wide: bool| function.expression(&["x0".to_owned()], wide, &mut calls);
        assert_eq!(text(Function::Gelu, true), "gelu(x0)");
        let clamped = "select(clamp(x0, vec4<f32>(-1.0f), vec4<f32>(1.0f)), x0, is_nan(x0))";
        assert_eq!(text(Function::ReluN1To1, true), clamped);
        assert_eq!(
            text(Function::ReluN1To1, false),
            "select(clamp(x0, f32(-1.0f), f32(1.0f)), x0, is_nan(x0))"
        );
        assert_eq!(calls, ["gelu", "is_nan"]);
    }
}
