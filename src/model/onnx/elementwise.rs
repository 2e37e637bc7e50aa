//! Functions of each element, alone and composed of others.

use super::casts;
use super::import::{Import, Op, Slot};
use super::kind::Kind;
use super::order::{Mapped, is_plain};
use crate::dims::Dim;
use crate::graph::Term;
use crate::model::constant::{Constant, Integers};
use crate::model::fold;
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;

/// An argument of a function.
#[derive(Clone)]
pub(super) enum Arg {
    Slot(Slot),
    Number(f32),
}

impl From<Slot> for Arg {
    fn from(slot: Slot) -> Self {
        Arg::Slot(slot)
    }
}

impl From<f32> for Arg {
    fn from(number: f32) -> Self {
        Arg::Number(number)
    }
}

impl Arg {
    pub(super) fn slot(self) -> Result<Slot, Reason> {
        match self {
            Arg::Slot(slot) => Ok(slot),
            Arg::Number(number) => refused!("found the number {number}, wanted a tensor"),
        }
    }

    fn kind(&self) -> Option<Kind> {
        match self {
            Arg::Slot(Slot::Value(mapped)) => Some(mapped.kind),
            Arg::Slot(Slot::Constant(_, kind)) => Some(*kind),
            Arg::Number(_) => None,
        }
    }
}

/// Whether the result is a truth.
fn is_truth(function: Function) -> bool {
    use Function::{
        Equal, Greater, GreaterEqual, Less, LessEqual, LogicalAnd, LogicalNot, LogicalOr, NotEqual,
    };
    matches!(
        function,
        Equal | Greater | GreaterEqual | Less | LessEqual | LogicalAnd | LogicalNot | LogicalOr | NotEqual
    )
}

/// Whether a bound that f32 rounds gives the same result: all that is compared is far from it.
fn takes_bounds(function: Function) -> bool {
    matches!(function, Function::Maximum | Function::Minimum | Function::Clamp)
}

impl<'a> Import<'a> {
    /// A function of constants and values: a constant if all are constants.
    pub(super) fn apply(&mut self, part: &str, function: Function, args: &[Arg]) -> Result<Slot, Reason> {
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
            return Ok(Slot::Constant(folded, kind));
        }
        let (terms, order) = self.terms(function, args)?;
        let value = self.add(part, |graph, name| graph.elementwise(name, function, &terms))?;
        Ok(Slot::Value(Mapped { value, order, kind }))
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
                Arg::Slot(Slot::Value(mapped)) => {
                    rank = rank.max(mapped.rank());
                    of_values = of_values.max(mapped.rank());
                }
                Arg::Slot(Slot::Constant(constant, _)) => rank = rank.max(constant.extents().len()),
                Arg::Number(_) => (),
            }
        }
        for arg in args {
            if let Arg::Slot(Slot::Value(mapped)) = arg
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
                Arg::Slot(Slot::Constant(constant, kind)) => match constant.number() {
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
                        let mapped = self.mapped_slot(Slot::Constant(constant, *kind), None)?;
                        Term::Value(mapped.value)
                    }
                },
                Arg::Slot(Slot::Value(mapped)) if mapped.rank() == rank => {
                    Term::Value(self.in_order(mapped, &order)?)
                }
                Arg::Slot(Slot::Value(mapped)) => {
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

    /// The inputs of an operator as arguments.
    pub(super) fn args(&mut self, op: &Op<'a>, count: usize) -> Result<Vec<Arg>, Reason> {
        if op.inputs() < count {
            return refused!("found {} inputs, wanted {count}", op.inputs());
        }
        (0..count).map(|index| self.slot(op, index).map(Arg::Slot)).collect()
    }
}

fn all_constant(args: &[Arg]) -> Option<Vec<Constant>> {
    let constant = |arg: &Arg| match arg {
        Arg::Slot(Slot::Constant(constant, _)) => Some(constant.clone()),
        Arg::Slot(Slot::Value(_)) => None,
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

/// A function of as many inputs as it takes.
pub(super) fn of<'a>(import: &mut Import<'a>, op: &Op<'a>, function: Function) -> Result<(), Reason> {
    let mut args = import.args(op, function.arity())?;
    if let ([_, Arg::Slot(second)], true) =
        (&args[..], op.flag("broadcast", false) && op.has_attribute("axis"))
    {
        // Until version 6: the axes of the second are those of the first from one on.
        let (own, others) = (import.extents_of(op, 0)?, import.slot_extents(second)?);
        let place = super::operands::axis(op.int("axis", 0), own.len().max(1))?;
        let behind = own.len().checked_sub(place + others.len());
        let behind = behind.ok_or_else(|| {
            format!("found {others:?} from axis {place} of {own:?}, wanted axes that are there")
        })?;
        let extents = [&others[..], &vec![1; behind]].concat();
        args[1] = import.slot_reshaped("axes", second.clone(), &extents)?.into();
    }
    let kind = args.first().and_then(Arg::kind).unwrap_or(Kind::F32);
    if all_constant(&args).is_some() || kind.is_float() {
        let slot = import.apply("", function, &args)?;
        return import.set(op, 0, slot);
    }
    let narrow = kind.narrow().filter(|narrow| narrow.may_leave(function));
    if let (Some(narrow), Function::Mul, [a, b]) = (narrow, function, &args[..]) {
        let slot = casts::product(import, narrow, [a.clone(), b.clone()])?;
        return import.set(op, 0, slot);
    }
    let last = if narrow.is_some() { "whole" } else { "" };
    let mut slot = match function {
        Function::Div => casts::quotient(import, last, &args)?,
        Function::Pow => {
            let power = import.apply("power", Function::Pow, &args)?;
            import.apply(last, Function::Round, &[power.into()])?
        }
        _ => import.apply(last, function, &args)?,
    };
    if let Some(narrow) = narrow {
        slot = casts::wrapped(import, narrow, slot)?;
    }
    import.set(op, 0, slot)
}

/// A function of any number of inputs, two at a time.
pub(super) fn several<'a>(import: &mut Import<'a>, op: &Op<'a>, function: Function) -> Result<(), Reason> {
    let slot = folded_up(import, op, function, "")?;
    import.set(op, 0, slot)
}

fn folded_up<'a>(
    import: &mut Import<'a>,
    op: &Op<'a>,
    function: Function,
    last: &str,
) -> Result<Slot, Reason> {
    let mut args = import.args(op, op.inputs())?.into_iter();
    let Some(Arg::Slot(mut result)) = args.next() else {
        return refused!("found no inputs, wanted at least one");
    };
    let mut rest = args.peekable();
    while let Some(arg) = rest.next() {
        let part = if rest.peek().is_none() { last } else { "part" };
        result = import.apply(part, function, &[result.into(), arg])?;
    }
    Ok(result)
}

/// `Mean`: of any number of inputs.
pub(super) fn mean<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    let sum = folded_up(import, op, Function::Add, "sum")?;
    let slot = import.apply("", Function::Mul, &[sum.into(), (1.0 / op.inputs().max(1) as f32).into()])?;
    import.set(op, 0, slot)
}

/// `Clip`: bounds are inputs from version 11 on, attributes before; either may be left out.
pub(super) fn clip<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    let bound = |import: &mut Import<'a>, index: usize, name: &str| -> Result<Option<Arg>, Reason> {
        if op.has(index) {
            return import.slot(op, index).map(|slot| Some(slot.into()));
        }
        Ok(op.has_attribute(name).then(|| op.float(name, 0.0).into()))
    };
    let x: Arg = import.slot(op, 0)?.into();
    let (low, high) = (bound(import, 1, "min")?, bound(import, 2, "max")?);
    let number = |arg: &Arg| match arg {
        Arg::Number(number) => Some(*number),
        Arg::Slot(Slot::Constant(constant, _)) => constant.number(),
        Arg::Slot(Slot::Value(_)) => None,
    };
    let slot = match (low, high) {
        (Some(low), Some(high)) => match (number(&low), number(&high)) {
            (Some(0.0), Some(6.0)) => import.apply("", Function::Relu6, &[x])?,
            (Some(_), Some(_)) => import.apply("", Function::Clamp, &[x, low, high])?,
            _ => {
                let above = import.apply("above", Function::Maximum, &[x, low])?;
                import.apply("", Function::Minimum, &[above.into(), high])?
            }
        },
        (Some(low), None) if number(&low) == Some(0.0) => import.apply("", Function::Relu, &[x])?,
        (Some(low), None) => import.apply("", Function::Maximum, &[x, low])?,
        (None, Some(high)) => import.apply("", Function::Minimum, &[x, high])?,
        (None, None) => return super::shapes::identity(import, op),
    };
    import.set(op, 0, slot)
}
