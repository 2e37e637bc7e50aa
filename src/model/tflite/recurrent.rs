//! `UNIDIRECTIONAL_SEQUENCE_LSTM`, one step after the other.
//!
//! `c = s(f) c + s(i) tanh(g)`, `h = s(o) tanh(c)`, where `i f g o = W x + R h + b` and `s` is the logistic
//! function. Cell and output are zero before the first step of each run: the file's state tensors are not kept
//! from run to run.

use super::convolution::missing;
use super::import::{Import, Op};
use super::tensors::Reason;
use crate::dims::Dim;
use crate::error::Error;
use crate::graph::{Extras, Graph, Right, Value};
use crate::host::HostTensor;
use crate::ops::elementwise::Function;
use crate::ops::gemm::Gemm;
use crate::ops::remap::AxisRange;

/// The most steps: each is a dozen nodes.
const MAX_STEPS: usize = 1024;

/// Inputs of the kinds of cell that are not read: peepholes, a projection, norms.
const OTHER: [(std::ops::Range<usize>, &str); 3] =
    [(9..12, "peepholes"), (16..18, "a projection"), (20..24, "norms")];

/// The gates' weights, one matrix for all four.
struct Cell {
    units: usize,
    inner: HostTensor,
    bias: HostTensor,
    recurrent: HostTensor,
    clip: f32,
}

pub(super) fn sequence_lstm<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[20, 24], 1)?;
    let options = "UnidirectionalSequenceLSTMOptions";
    let table = op.table.sequence_lstm().ok_or_else(|| missing(op, options))?;
    if table.activation() != 4 || table.projection_clip() != 0.0 {
        let (activation, clip) = (table.activation(), table.projection_clip());
        return Err(format!(
            "found activation {activation} and a projection clipped to {clip}, wanted TANH and 0"
        ));
    }
    for (inputs, what) in OTHER {
        if inputs.into_iter().any(|index| op.has(index)) {
            return Err(format!("found {what}, wanted a cell of four gates alone"));
        }
    }
    if !op.has(1) || !op.has(5) || !op.has(12) {
        return Err("found no input gate, wanted a cell of four gates".to_owned());
    }
    let cell = Cell {
        inner: gates(import, op, 1)?,
        recurrent: gates(import, op, 5)?,
        bias: gates(import, op, 12)?,
        units: 0,
        clip: table.cell_clip(),
    };
    let cell = Cell { units: cell.bias.dims().elements() / 4, ..cell };
    let x = import.value(op, 0)?;
    let dims = import.dims(x)?;
    let time_axis = usize::from(!table.time_major());
    let (&[_, _, _], Some(&steps)) = (dims.extents(), dims.extents().get(time_axis)) else {
        return Err(format!("found an input of {dims}, wanted batch, time and features"));
    };
    if steps > MAX_STEPS {
        return Err(format!("found {steps} steps, wanted at most {MAX_STEPS}"));
    }
    let name = import.name(op, 0)?;
    import.budget.spend(steps.saturating_mul(16 * (name.len() + 16)))?;
    let value = unrolled(&mut import.graph, &name, x, &cell, time_axis, steps);
    import.write(op, 0, value.map_err(|error| error.to_string())?)
}

/// Inputs `first..first + 4`, one below the other.
fn gates<'a>(import: &mut Import<'a>, op: &Op<'a>, first: usize) -> Result<HostTensor, Reason> {
    let mut values = Vec::new();
    let mut dims: Option<Vec<usize>> = None;
    for index in first..first + 4 {
        let gate = import.floats(op, index)?;
        let own = gate.dims().extents().to_vec();
        if *dims.get_or_insert_with(|| own.clone()) != own || own.is_empty() {
            return Err(format!(
                "{}: found {own:?}, wanted four gates of one shape",
                import.describe(op, index)
            ));
        }
        import.budget.spend(4 * gate.dims().elements())?;
        values.extend_from_slice(&gate.to_nhwc());
    }
    let mut dims = dims.unwrap_or_default();
    if let Some(rows) = dims.first_mut() {
        *rows *= 4;
    }
    HostTensor::new(super::constant::dims_of(&dims)?, values).map_err(|error| error.to_string())
}

fn unrolled(
    graph: &mut Graph,
    name: &str,
    x: Value,
    cell: &Cell,
    time_axis: usize,
    steps: usize,
) -> Result<Value, Error> {
    let units = cell.units;
    let product = |activation| Gemm { transpose_b: true, activation, ..Gemm::default() };
    let plain = product(crate::emit::Activation::None);
    let depth = *graph.dims(x)?.extents().last().unwrap_or(&1);
    let rows = graph.reshape(&format!("{name}/rows"), x, &[Dim::Rest, depth.into()])?;
    let inner = Right::Constant(cell.inner.clone());
    let recurrent = graph.constant(&format!("{name}/recurrent"), cell.recurrent.clone());
    let bias = Extras::bias(HostTensor::vector(cell.bias.to_nhwc().into_owned())?);
    let sums = graph.gemm(&format!("{name}/inputs"), rows, inner, bias, plain)?;
    // Time is the axis of a known number of steps; the batch may become another one.
    let known = if time_axis == 0 { [steps.into(), Dim::Rest] } else { [Dim::Rest, steps.into()] };
    let [first, second] = known;
    let sums = graph.reshape(&format!("{name}/sums"), sums, &[first, second, (4 * units).into()])?;
    let (mut state, mut outputs): (Option<[Value; 2]>, _) = (None, Vec::with_capacity(steps));
    for step in 0..steps {
        let of = |part: &str| format!("{name}/{step}/{part}");
        let mut ranges = [AxisRange::ALL; 3];
        ranges[time_axis] = AxisRange::new(step as isize, step as isize + 1);
        let own = graph.strided_slice(&of("step"), sums, &ranges)?;
        let mut gates = graph.reshape(&of("own"), own, &[Dim::Rest, (4 * units).into()])?;
        if let Some([_, output]) = state {
            let extras = Extras { residual: Some(gates), ..Extras::default() };
            gates = graph.gemm(&of("gates"), output, Right::Value(recurrent), extras, plain)?;
        }
        let parts = graph.split(&of("gate"), gates, -1, &[units; 4])?;
        let &[input, forget, update, output] = &parts[..] else {
            return Err(Error::Internal(format!("{} gates", parts.len())));
        };
        let mut each = |part: &str, function, terms: &[crate::graph::Term]| {
            graph.elementwise(&of(part), function, terms)
        };
        let input = each("input", Function::Sigmoid, &[input.into()])?;
        let update = each("update", Function::Tanh, &[update.into()])?;
        let mut cells = each("new", Function::Mul, &[input.into(), update.into()])?;
        if let Some([before, _]) = state {
            let forget = each("forget", Function::Sigmoid, &[forget.into()])?;
            let kept = each("kept", Function::Mul, &[forget.into(), before.into()])?;
            cells = each("cell", Function::Add, &[kept.into(), cells.into()])?;
        }
        if cell.clip > 0.0 {
            cells = each("clip", Function::Clamp, &[cells.into(), (-cell.clip).into(), cell.clip.into()])?;
        }
        let output = each("output", Function::Sigmoid, &[output.into()])?;
        let bounded = each("bounded", Function::Tanh, &[cells.into()])?;
        let result = each("result", Function::Mul, &[output.into(), bounded.into()])?;
        state = Some([cells, result]);
        let target = if time_axis == 0 {
            [Dim::Fixed(1), Dim::Rest, units.into()]
        } else {
            [Dim::Rest, Dim::Fixed(1), units.into()]
        };
        outputs.push(graph.reshape(&of("y"), result, &target)?);
    }
    graph.concat(name, &outputs, time_axis as isize)
}
