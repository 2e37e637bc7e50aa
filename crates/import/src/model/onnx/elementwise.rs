//! Functions of each element, alone and composed of others.

use super::import::{Import, Op};
use crate::model::build::{Arg, Kind, Operand, computed, converted};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;

impl<'a> Import<'a> {
    /// The inputs of an operator as arguments.
    pub(super) fn args(&mut self, op: &Op<'a>, count: usize) -> Result<Vec<Arg>, Reason> {
        if op.inputs() < count {
            return refused!("found {} inputs, wanted {count}", op.inputs());
        }
        (0..count).map(|index| self.slot(op, index).map(Arg::Operand)).collect()
    }
}

/// A function of as many inputs as it takes.
pub(super) fn of<'a>(import: &mut Import<'a>, op: &Op<'a>, function: Function) -> Result<(), Reason> {
    let mut args = import.args(op, function.arity())?;
    if let ([_, Arg::Operand(second)], true) =
        (&args[..], op.flag("broadcast", false) && op.has_attribute("axis"))
    {
        // Until version 6: the axes of the second are those of the first from one on.
        let (own, others) = (import.extents_of(op, 0)?, import.shape(second)?);
        let place = crate::model::build::axis(op.int("axis", 0), own.len().max(1))?;
        let behind = own.len().checked_sub(place + others.len());
        let behind = behind.ok_or_else(|| {
            format!("found {others:?} from axis {place} of {own:?}, wanted axes that are there")
        })?;
        let extents = [&others[..], &vec![1; behind]].concat();
        args[1] = import.with_extents("axes", second.clone(), &extents)?.into();
    }
    let slot = computed(import, function, &args)?;
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
) -> Result<Operand, Reason> {
    let mut args = import.args(op, op.inputs())?.into_iter();
    let Some(Arg::Operand(mut result)) = args.next() else {
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
        Arg::Operand(Operand::Constant(constant, _)) => constant.number(),
        Arg::Operand(Operand::Value(_)) => None,
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

/// `Cast`: to an integer towards zero, to a boolean whether it is not 0.
pub(super) fn cast<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    let to = Kind::of(op.int("to", 1))?;
    to_kind(import, op, to)
}

/// `CastLike`: to the type of the second input.
pub(super) fn cast_like<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    let to = import.kind_of(op, 1)?;
    to_kind(import, op, to)
}

fn to_kind<'a>(import: &mut Import<'a>, op: &Op<'a>, to: Kind) -> Result<(), Reason> {
    let slot = import.slot(op, 0)?;
    let slot = converted(import, slot, to)?;
    import.set(op, 0, slot)
}
