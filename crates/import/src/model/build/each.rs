//! Functions of each element.

use super::builder::Builder;
use super::kind::Kind;
use super::operand::{Mapped, Operand, is_plain};
use crate::dims::Dim;
use crate::graph::Term;
use crate::model::constant::{Constant, Integers};
use crate::model::fold;
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;

/// An argument of a function.
#[derive(Clone)]
pub(crate) enum Arg {
    Operand(Operand),
    Number(f32),
}

impl From<Operand> for Arg {
    fn from(slot: Operand) -> Self {
        Arg::Operand(slot)
    }
}

impl From<f32> for Arg {
    fn from(number: f32) -> Self {
        Arg::Number(number)
    }
}

impl Arg {
    pub(crate) fn operand(self) -> Result<Operand, Reason> {
        match self {
            Arg::Operand(operand) => Ok(operand),
            Arg::Number(number) => refused!("found the number {number}, wanted a tensor"),
        }
    }

    pub(crate) fn kind(&self) -> Option<Kind> {
        match self {
            Arg::Operand(Operand::Value(mapped)) => Some(mapped.kind),
            Arg::Operand(Operand::Constant(_, kind)) => Some(*kind),
            Arg::Number(_) => None,
        }
    }
}

/// Whether the result is a truth.
fn is_truth(function: Function) -> bool {
    use Function::{
        Equal, Greater, GreaterEqual, IsNan, Less, LessEqual, LogicalAnd, LogicalNot, LogicalOr, NotEqual,
    };
    let compares = matches!(function, Equal | Greater | GreaterEqual | IsNan | Less | LessEqual | NotEqual);
    compares || matches!(function, LogicalAnd | LogicalNot | LogicalOr)
}

/// Whether a bound that f32 rounds gives the same result: all that is compared is far from it.
fn takes_bounds(function: Function) -> bool {
    matches!(function, Function::Maximum | Function::Minimum | Function::Clamp)
}

impl Builder {
    /// A function of constants and values: a constant if all are constants.
    pub(crate) fn apply(&mut self, part: &str, function: Function, args: &[Arg]) -> Result<Operand, Reason> {
        let kinds: Vec<Kind> = args.iter().filter_map(Arg::kind).collect();
        let own = match function {
            Function::Select => kinds.get(1).or(kinds.first()),
            _ => kinds.first(),
        };
        let own = *own.ok_or("found numbers alone, wanted a value")?;
        if kinds.iter().any(|kind| kind.is_handle()) {
            return refused!("found a sequence or nothing, wanted tensors");
        }
        let kind = if is_truth(function) { Kind::Bool } else { own };
        if let Some(constants) = all_constant(args) {
            let of_floats = constants.iter().any(|constant| matches!(constant, Constant::Floats(_)));
            let constants: Vec<&Constant> = constants.iter().collect();
            let folded = fold::of(function, &constants, &mut self.budget)?;
            let folded = match folded {
                Constant::Floats(tensor) if is_truth(function) || !(kind.is_float() || of_floats) => {
                    let values: Vec<i64> = tensor.to_nhwc().iter().map(|&value| value as i64).collect();
                    Constant::Integers(Integers::new(tensor.dims().extents().to_vec(), values))
                }
                other => self.wrapped(other, kind),
            };
            return Ok(Operand::Constant(folded, kind));
        }
        let args: Vec<Arg> = args.iter().map(|arg| self.typed_arg(arg)).collect::<Result<_, _>>()?;
        let (terms, order) = self.terms(function, &args)?;
        let value = self.add(part, |graph, name| graph.elementwise(name, function, &terms))?;
        Ok(Operand::Value(Mapped { value, order, kind }))
    }

    fn typed_arg(&mut self, arg: &Arg) -> Result<Arg, Reason> {
        Ok(match arg {
            Arg::Operand(Operand::Value(mapped)) => Arg::Operand(Operand::Value(self.typed(mapped.clone())?)),
            arg => arg.clone(),
        })
    }

    /// Integers as their type holds them.
    fn wrapped(&self, constant: Constant, kind: Kind) -> Constant {
        match constant {
            Constant::Integers(integers) => {
                let values: Vec<i64> = integers.values.iter().map(|&value| kind.wrapped(value)).collect();
                Constant::Integers(Integers::new(integers.dims, values))
            }
            floats => floats,
        }
    }

    /// The arguments with their axes stored in one order.
    fn terms(&mut self, function: Function, args: &[Arg]) -> Result<(Vec<Term>, Vec<usize>), Reason> {
        let (mut rank, mut of_values) = (0, 0);
        let mut order: Option<(usize, Vec<usize>)> = None;
        for arg in args {
            match arg {
                Arg::Operand(Operand::Value(mapped)) => {
                    rank = rank.max(mapped.rank());
                    of_values = of_values.max(mapped.rank());
                }
                Arg::Operand(Operand::Constant(constant, _)) => rank = rank.max(constant.extents().len()),
                Arg::Number(_) => (),
            }
        }
        for arg in args {
            if let Arg::Operand(Operand::Value(mapped)) = arg
                && mapped.rank() == rank
            {
                let elements = self.dims(mapped.value)?.elements();
                if order.as_ref().is_none_or(|(most, _)| elements > *most) {
                    order = Some((elements, mapped.order.clone()));
                }
            }
        }
        let order = order.map_or_else(|| (0..rank).collect(), |(_, order)| order);
        let mut terms = Vec::with_capacity(args.len());
        for arg in args {
            terms.push(match arg {
                Arg::Number(number) => Term::Number(*number),
                Arg::Operand(Operand::Constant(Constant::Integers(integers), kind))
                    if kind.is_wide() && integers.values.len() == 1 && integers.dims.len() <= of_values =>
                {
                    Term::Integer(integers.values[0])
                }
                Arg::Operand(Operand::Constant(constant, kind)) => match constant.number() {
                    Some(number) if constant.extents().len() <= of_values => {
                        if !takes_bounds(function) {
                            self.check_exact(constant, *kind)?;
                        }
                        Term::Number(number)
                    }
                    _ => {
                        let mut whole = vec![1; rank - constant.extents().len()];
                        whole.extend(constant.extents());
                        let constant = match is_plain(&order) {
                            true => constant.clone(),
                            false => constant.clone().reshaped(&whole)?,
                        };
                        let constant = if is_plain(&order) {
                            constant
                        } else {
                            self.constant_in_order(&constant, &order)?
                        };
                        let mapped = self.mapped(Operand::Constant(constant, *kind))?;
                        Term::Value(mapped.value)
                    }
                },
                Arg::Operand(Operand::Value(mapped)) if mapped.rank() == rank => {
                    Term::Value(self.in_order(mapped, &order)?)
                }
                Arg::Operand(Operand::Value(mapped)) => {
                    let value = self.logical(mapped)?;
                    if is_plain(&order) {
                        terms.push(Term::Value(value));
                        continue;
                    }
                    let mut whole = vec![Dim::Fixed(1); rank - mapped.rank()];
                    whole.extend(self.extents(mapped)?.into_iter().map(Dim::Fixed));
                    let value = self.add("axes", |graph, name| graph.reshape(name, value, &whole))?;
                    let whole = Mapped::plain(value, rank, mapped.kind);
                    Term::Value(self.in_order(&whole, &order)?)
                }
            });
        }
        Ok((terms, order))
    }
}

pub(crate) fn all_constant(args: &[Arg]) -> Option<Vec<Constant>> {
    let constant = |arg: &Arg| match arg {
        Arg::Operand(Operand::Constant(constant, _)) => Some(constant.clone()),
        Arg::Operand(Operand::Value(_)) => None,
        Arg::Number(number) => {
            let whole = number.fract() == 0.0 && number.abs() < 1e9;
            let floats = crate::host::HostTensor::new(crate::dims::Dims::SCALAR, vec![*number]).ok();
            match whole {
                true => Some(Constant::Integers(Integers::new(Vec::new(), vec![*number as i64]))),
                false => floats.map(Constant::Floats),
            }
        }
    };
    args.iter().map(constant).collect()
}
