//! Recurrent layers, one step after the other.
//!
//! An operator of one step keeps its state from run to run, as TensorFlow Lite does with the file's variables. One
//! of several steps begins each run with zeros: there the state is what the step before left.

mod lstm;
mod plain;

pub(super) use lstm::{bidirectional_lstm, lstm, sequence_lstm};
pub(super) use plain::{bidirectional_rnn, rnn, sequence_rnn, svdf};

use super::compose::Compose;
use super::constant::dims_of;
use super::import::{Import, Op};
use super::names::{self, Fused};
use crate::emit::Activation;
use crate::graph::{Extras, Right, Value};
use crate::host::HostTensor;
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;

/// The most steps: each is a dozen nodes.
const MAX_STEPS: usize = 1024;

/// The function of each element that an activation is, if it is one.
fn function(code: i8) -> Result<Option<Function>, Reason> {
    Ok(match names::fused(code)? {
        Fused::Own(Activation::None) => None,
        Fused::Own(Activation::Relu) => Some(Function::Relu),
        Fused::Own(Activation::Relu6) => Some(Function::Relu6),
        Fused::Own(Activation::Tanh) => Some(Function::Tanh),
        Fused::ReluN1To1 => Some(Function::ReluN1To1),
        Fused::Own(other) => return refused!("found activation {other:?}"),
    })
}

/// The activation of `x`, if there is one.
fn activated(
    p: &mut Compose<'_, '_>,
    part: &str,
    function: Option<Function>,
    x: Value,
) -> Result<Value, Reason> {
    function.map_or(Ok(x), |function| p.each(part, function, &[x.into()]))
}

/// Constants one below the other.
fn stacked<'a>(import: &mut Import<'a>, op: &Op<'a>, inputs: &[usize]) -> Result<HostTensor, Reason> {
    let mut values = Vec::new();
    let mut dims: Option<Vec<usize>> = None;
    for &index in inputs {
        let gate = import.floats(op, index)?;
        let own = gate.dims().extents().to_vec();
        if *dims.get_or_insert_with(|| own.clone()) != own || own.is_empty() {
            let place = import.describe(op, index);
            return refused!("{place}: found {own:?}, wanted gates of one shape");
        }
        import.budget.spend(4 * gate.dims().elements())?;
        values.extend_from_slice(&gate.to_nhwc());
    }
    let mut dims = dims.unwrap_or_default();
    if let Some(rows) = dims.first_mut() {
        *rows *= inputs.len();
    }
    HostTensor::new(dims_of(&dims)?, values).map_err(Reason::from)
}

/// Input `index` as a vector, if it is there.
fn vector<'a>(import: &mut Import<'a>, op: &Op<'a>, index: usize) -> Result<Option<HostTensor>, Reason> {
    if !op.has(index) {
        return Ok(None);
    }
    let values = import.floats(op, index)?.to_nhwc().into_owned();
    import.budget.spend(4 * values.len())?;
    HostTensor::vector(values).map(Some).map_err(Reason::from)
}

/// The steps of an input.
#[derive(Debug, Clone, Copy)]
struct Steps {
    batch: usize,
    count: usize,
    time_axis: usize,
}

impl Steps {
    /// Those of a sequence: batch, time and features, or time first.
    fn of<'a>(import: &mut Import<'a>, x: Value, time_major: bool) -> Result<Self, Reason> {
        let dims = import.dims(x)?;
        let &[first, second, _] = dims.extents() else {
            return refused!("found an input of {dims}, wanted batch, time and features");
        };
        let (batch, count) = if time_major { (second, first) } else { (first, second) };
        if count > MAX_STEPS {
            return refused!("found {count} steps, wanted at most {MAX_STEPS}");
        }
        import.allow_steps(count)?;
        Ok(Steps { batch, count, time_axis: usize::from(!time_major) })
    }

    /// One step of batch and features.
    fn one<'a>(import: &mut Import<'a>, x: Value) -> Result<Self, Reason> {
        let dims = import.dims(x)?;
        let &[batch, _] = dims.extents() else {
            return refused!("found an input of {dims}, wanted batch and features");
        };
        Ok(Steps { batch, count: 1, time_axis: 0 })
    }

    /// What all steps make of the input alone, `width` numbers of each; then `step` for each of these, the last
    /// one first if it goes backwards. The results lie as the input does.
    fn each(
        self,
        p: &mut Compose<'_, '_>,
        x: Value,
        (inner, bias): (&HostTensor, Option<&HostTensor>),
        backwards: bool,
        step: &mut dyn FnMut(&mut Compose<'_, '_>, Value) -> Result<Value, Reason>,
    ) -> Result<Value, Reason> {
        let (width, depth) = (inner.shape().w, inner.shape().c);
        let Steps { batch, count, time_axis } = self;
        let rows = p.reshape("rows", x, &[batch * count, depth])?;
        let extras = Extras { bias: bias.cloned(), ..Extras::default() };
        let sums = p.product("inputs", rows, Right::Constant(inner.clone()), true, extras)?;
        let lying = if time_axis == 0 { [count, batch, width] } else { [batch, count, width] };
        let sums = p.reshape("sums", sums, &lying)?;
        let mut outputs = Vec::with_capacity(count);
        for index in 0..count {
            let at = if backwards { count - 1 - index } else { index };
            let own = p.slice("step", sums, time_axis, [at, at + 1])?;
            let own = p.reshape("own", own, &[batch, width])?;
            let output = step(p, own)?;
            let units = p.extents(output)?.last().copied().unwrap_or(1);
            let lying = if time_axis == 0 { [1, batch, units] } else { [batch, 1, units] };
            outputs.push(p.reshape("y", output, &lying)?);
        }
        if backwards {
            outputs.reverse();
        }
        match outputs[..] {
            [output] => Ok(output),
            _ => p.concat("outputs", &outputs, time_axis as isize),
        }
    }

    /// What the first step begins with: of one step what the run before left, of several nothing.
    fn state(self, p: &mut Compose<'_, '_>, part: &str, units: usize) -> Result<Option<Value>, Reason> {
        if self.count != 1 {
            return Ok(None);
        }
        let zeros = super::control::zeros(p.import, &[self.batch, units])?;
        let name = p.name(part)?;
        Ok(Some(p.import.graph.state(&name, zeros)))
    }

    /// Says what the next run begins with.
    fn keep(self, p: &mut Compose<'_, '_>, state: Option<Value>, next: Value) -> Result<(), Reason> {
        match state {
            Some(state) => p.import.graph.update(state, next).map_err(Reason::from),
            None => Ok(()),
        }
    }
}

/// Writes output 0 in these extents.
fn finish<'a>(import: &mut Import<'a>, op: &Op<'a>, name: &str, y: Value) -> Result<(), Reason> {
    let extents = import.dims(y)?.extents().to_vec();
    let value = Compose::named(import, name).reshape("", y, &extents)?;
    import.write(op, 0, value)
}
