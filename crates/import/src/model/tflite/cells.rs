//! The weights and options of recurrent layers (`recurrent`).

use super::constant::dims_of;
use super::import::{Import, Op};
use super::names::fused;
use crate::host::HostTensor;
use crate::model::build::{
    Cell, Clips, Coupled, Kind, Layer, Lstm, Mapped, Norms, Operand, Plain, Projection,
};
use crate::model::constant::Constant;
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;

/// What TensorFlow Lite adds to a variance.
const EPSILON: f32 = 1e-8;

/// Constants one below the other.
pub(super) fn below<'a>(import: &mut Import<'a>, op: &Op<'a>, inputs: &[usize]) -> Result<Operand, Reason> {
    let mut values = Vec::new();
    let mut dims: Option<Vec<usize>> = None;
    for &index in inputs {
        let gate = import.floats(op, index)?;
        let own = gate.dims().extents().to_vec();
        if *dims.get_or_insert_with(|| own.clone()) != own || own.is_empty() {
            let place = import.describe(op, index);
            return refused!("{place}: found {own:?}, wanted gates of one shape");
        }
        import.build.budget.spend(4 * gate.dims().elements())?;
        values.extend_from_slice(&gate.to_nhwc());
    }
    let mut dims = dims.unwrap_or_default();
    if let Some(rows) = dims.first_mut() {
        *rows *= inputs.len();
    }
    let tensor = HostTensor::new(dims_of(&dims)?, values)?;
    Ok(Operand::Constant(Constant::Floats(tensor), Kind::F32))
}

/// Input `index` as a vector, if it is there.
pub(super) fn vector<'a>(
    import: &mut Import<'a>,
    op: &Op<'a>,
    index: usize,
) -> Result<Option<Operand>, Reason> {
    if !op.has(index) {
        return Ok(None);
    }
    let values = import.floats(op, index)?.to_nhwc().into_owned();
    import.build.budget.spend(4 * values.len())?;
    let tensor = HostTensor::new(dims_of(&[values.len()])?, values)?;
    Ok(Some(Operand::Constant(Constant::Floats(tensor), Kind::F32)))
}

/// The rows and columns of weights.
pub(super) fn matrix(import: &Import<'_>, weights: &Operand) -> Result<[usize; 2], Reason> {
    let extents = import.build.shape(weights)?;
    <[usize; 2]>::try_from(extents)
        .map_err(|extents| format!("found weights {extents:?}, wanted a matrix").into())
}

/// The functions and bounds of an LSTM.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options {
    pub(super) activation: Option<Function>,
    pub(super) clips: Clips,
}

impl Options {
    pub(super) fn new(activation: i8, cell: f32, projection: f32) -> Result<Self, Reason> {
        Ok(Options { activation: fused(activation)?, clips: Clips { sums: 0.0, cell, projection } })
    }

    fn functions(self) -> [Option<Function>; 3] {
        [Some(Function::Sigmoid), self.activation, self.activation]
    }
}

/// The LSTM whose weights begin at input `first`, and how many outputs it has.
pub(super) fn lstm_of<'a>(
    import: &mut Import<'a>,
    op: &Op<'a>,
    first: usize,
    norms: Option<usize>,
    options: Options,
) -> Result<(Layer, [usize; 2]), Reason> {
    let has_input_gate = op.has(first);
    let gates = |at: usize| if has_input_gate { at..at + 4 } else { at + 1..at + 4 };
    let list = |at: usize| gates(at).collect::<Vec<_>>();
    let weights = below(import, op, &list(first))?;
    let recurrent = below(import, op, &list(first + 4))?;
    let bias = below(import, op, &list(first + 11))?;
    let count = gates(0).len();
    let ([rows, _], [other, outputs]) = (matrix(import, &weights)?, matrix(import, &recurrent)?);
    let units = import.build.shape(&bias)?.iter().product::<usize>() / count;
    if rows != count * units || other != rows {
        return refused!("found weights of {rows} and {other} rows for {units} units");
    }
    let flat = |import: &mut Import<'a>, all: Operand| import.build.with_extents("bias", all, &[rows]);
    let bias = flat(import, bias)?;
    let norms = match norms.filter(|&at| op.has(at + 1)) {
        Some(at) => {
            let scale = below(import, op, &list(at))?;
            Some(Norms { scale: flat(import, scale)?, bias: bias.clone(), epsilon: EPSILON })
        }
        None => None,
    };
    let mut peepholes = [None, None, None];
    for (index, peephole) in peepholes.iter_mut().enumerate() {
        if let Some(weights) = vector(import, op, first + 8 + index)? {
            *peephole = Some(import.build.kept("peephole", weights)?);
        }
    }
    let projection = match op.has(first + 15) {
        true => {
            let weights = Operand::Constant(Constant::Floats(import.floats(op, first + 15)?), Kind::F32);
            let bias = vector(import, op, first + 16)?;
            Some(Projection { weights: import.build.kept("projection", weights)?, bias })
        }
        false if outputs != units => {
            return refused!("found {outputs} outputs of {units} units without a projection");
        }
        false => None,
    };
    // With norms the bias is added after them.
    let bias = norms.is_none().then_some(bias);
    let cell = Cell::Lstm(Box::new(Lstm {
        units,
        // Without an input gate the others are one place further in front.
        places: if has_input_gate { [0, 1, 2, 3] } else { [0, 0, 1, 2] },
        coupled: if has_input_gate { Coupled::No } else { Coupled::Input },
        recurrent: Some(import.build.kept("recurrent", recurrent)?),
        peepholes,
        projection,
        functions: options.functions(),
        clips: options.clips,
        norms,
    }));
    Ok((Layer { weights, bias, cell }, [units, outputs]))
}

/// The plain cell whose weights begin at input `first`, and its units.
pub(super) fn plain_of<'a>(
    import: &mut Import<'a>,
    op: &Op<'a>,
    first: usize,
    function: Option<Function>,
) -> Result<(Layer, usize), Reason> {
    let (weights, recurrent) = (below(import, op, &[first])?, below(import, op, &[first + 1])?);
    let ([units, _], other) = (matrix(import, &weights)?, matrix(import, &recurrent)?);
    if other != [units; 2] {
        return refused!("found weights of {units} rows and {other:?}, wanted as many rows and columns");
    }
    let bias = vector(import, op, first + 2)?;
    let recurrent = Operand::Value(Mapped::plain(import.value(op, first + 1)?, 2, Kind::F32));
    Ok((Layer { weights, bias, cell: Cell::Plain(Plain { recurrent, function, clip: 0.0 }) }, units))
}
