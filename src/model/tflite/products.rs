//! `FULLY_CONNECTED` and `BATCH_MATMUL` to matrix products.

use super::constant::{Constant, broadcast};
use super::convolution::bias;
use super::elementwise::activated;
use super::import::{Import, Op};
use super::names;
use super::operands::missing;
use super::shapes::{extents_to, rest_of};
use super::slots::Input;
use super::tensors::Budget;
use crate::dims::{Dim, Dims};
use crate::graph::{Extras, Right, Value};
use crate::host::HostTensor;
use crate::model::reason::Reason;
use crate::ops::gemm::Gemm;

/// `y = f(x W^T + bias)` over the rows of `x`, which is flattened to a matrix of `W`'s columns.
pub(super) fn fully_connected<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2, 3], 1)?;
    let table = op.table.fully_connected().ok_or_else(|| missing(op, "FullyConnectedOptions"))?;
    if table.format() != 0 {
        return refused!("found weights in format {}, wanted 0 (one row per output)", table.format());
    }
    let (activation, rest) = names::fused(table.activation())?.split();
    let x = import.value(op, 0)?;
    let dims = import.dims(x)?;
    let weights = import.input(op, 1)?;
    let extents = match &weights {
        Input::Value(value) => import.dims(*value)?.extents().to_vec(),
        Input::Constant(constant) => constant.extents(),
    };
    let [out, depth] = extents[..] else {
        return refused!("{}: found shape {extents:?}, wanted rank 2", import.describe(op, 1));
    };
    if depth == 0 || dims.elements() % depth != 0 {
        return refused!("found weights {out}x{depth} for input {dims}, wanted rows of {depth} elements");
    }
    let right = match weights {
        Input::Value(value) => Right::Value(value),
        // The passes of a loop share their weights.
        Input::Constant(_) if import.depth > 0 => Right::Value(import.value(op, 1)?),
        Input::Constant(constant) => {
            let weights = constant.floats(&mut import.build.budget)?;
            let columns = import
                .build
                .derived(&weights, "columns", |build| transposed(&weights, [out, depth], &mut build.budget));
            Right::Constant(columns?)
        }
    };
    let transpose_b = matches!(right, Right::Value(_));
    let extras = Extras { bias: bias(import, op, 2)?, ..Default::default() };
    let keeps = table.keep_dims() && dims.rank() != 2;
    activated(import, op, rest, |import, name| {
        let flat = if dims.rank() == 2 && dims.extents()[1] == depth {
            x
        } else {
            rows_of(import, name, "rows", x, &[Dim::Rest, depth.into()])?
        };
        let options = Gemm { transpose_b, activation, ..Gemm::default() };
        let product = if keeps { import.part_name(name, "product")? } else { name.to_owned() };
        let value = import.build.graph.gemm(&product, flat, right, extras, options)?;
        if !keeps {
            return Ok(value);
        }
        let mut target = dims.extents().to_vec();
        if let Some(last) = target.last_mut() {
            *last = out;
        }
        let target = extents_to(&target, dims.extents());
        import.build.graph.reshape(name, value, &target).map_err(Reason::from)
    })
}

/// A constant matrix with its rows as columns, which is what kernels read side by side.
fn transposed(
    matrix: &HostTensor,
    [rows, columns]: [usize; 2],
    budget: &mut Budget,
) -> Result<HostTensor, Reason> {
    budget.spend(4 * rows * columns)?;
    let elements = matrix.to_nhwc();
    let values = (0..columns).flat_map(|column| elements.iter().skip(column).step_by(columns).copied());
    let dims = Dims::new(&[columns, rows])?;
    HostTensor::new(dims, values.collect::<Vec<f32>>()).map_err(Reason::from)
}

/// Products of the last two axes; those before them are batches, which broadcast as in numpy.
pub(super) fn batch_matmul<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let (transpose_a, transpose_b) =
        op.table.batch_matmul().map_or((false, false), |table| (table.transpose_a(), table.transpose_b()));
    let name = import.name(op, 0)?;
    let (mut a, mut b) = (Input::Value(import.value(op, 0)?), import.input(op, 1)?);
    let (mut a_extents, mut b_extents) = (extents_of(import, &a)?, extents_of(import, &b)?);
    let (&[ref a_batch @ .., rows, columns], &[ref b_batch @ .., b_rows, b_columns]) =
        (&a_extents[..], &b_extents[..])
    else {
        return refused!("found {a_extents:?} and {b_extents:?}, wanted matrices");
    };
    let count = |batch: &[usize]| batch.iter().product::<usize>();
    let trimmed = |batch: &[usize]| -> Vec<usize> { batch.iter().copied().skip_while(|&e| e == 1).collect() };
    if count(b_batch) != 1 && trimmed(a_batch) != trimmed(b_batch) {
        let batch = broadcast(a_batch, b_batch)?;
        let [a_whole, b_whole] =
            [[rows, columns], [b_rows, b_columns]].map(|matrix| [&batch[..], &matrix].concat());
        a = spread(import, &name, a, &a_extents, &a_whole)?;
        b = spread(import, &name, b, &b_extents, &b_whole)?;
        (a_extents, b_extents) = (a_whole, b_whole);
    }
    let (a_batch, b_batch) = (&a_extents[..a_extents.len() - 2], &b_extents[..b_extents.len() - 2]);
    let a = match a {
        Input::Value(a) => a,
        Input::Constant(_) => return refused!("found a constant left matrix, wanted a value"),
    };
    let shared = count(b_batch) == 1;
    // A batch of matrices has height 1; with one right matrix, all rows are one matrix.
    let one: Dim = 1.into();
    let left = if shared && !transpose_a {
        rows_of(import, &name, "left", a, &[Dim::Rest, columns.into()])?
    } else {
        rows_of(import, &name, "left", a, &[Dim::Rest, one.clone(), rows.into(), columns.into()])?
    };
    let right = match b {
        Input::Value(value) if shared => {
            Right::Value(rows_of(import, &name, "right", value, &[b_rows.into(), b_columns.into()])?)
        }
        Input::Value(value) => {
            let target = [Dim::Rest, one, b_rows.into(), b_columns.into()];
            Right::Value(rows_of(import, &name, "right", value, &target)?)
        }
        Input::Constant(constant) => Right::Constant(matrices(import, constant, shared, b_rows, b_columns)?),
    };
    let options = Gemm { transpose_a, transpose_b, ..Gemm::default() };
    let mut target: Vec<usize> = if a_batch.len() >= b_batch.len() { a_batch } else { b_batch }.to_vec();
    target.push(if transpose_a { columns } else { rows });
    target.push(if transpose_b { b_rows } else { b_columns });
    let product = import.part_name(&name, "product")?;
    let value = import.build.graph.gemm(&product, left, right, Extras::default(), options)?;
    let target = rest_of(&target, import.dims(value)?.extents(), &a_extents);
    let value = import.build.graph.reshape(&name, value, &target)?;
    import.write(op, 0, value)
}

/// The extents of an input.
fn extents_of(import: &Import<'_>, input: &Input) -> Result<Vec<usize>, Reason> {
    Ok(match input {
        Input::Value(value) => import.dims(*value)?.extents().to_vec(),
        Input::Constant(constant) => constant.extents(),
    })
}

/// An input of `extents`, repeated to `target`.
fn spread(
    import: &mut Import<'_>,
    name: &str,
    input: Input,
    extents: &[usize],
    target: &[usize],
) -> Result<Input, Reason> {
    if extents == target {
        return Ok(input);
    }
    Ok(match input {
        Input::Value(value) => {
            let part = import.part_name(name, "spread")?;
            let target: Vec<Dim> = target.iter().map(|&extent| extent.into()).collect();
            let value = import.build.graph.broadcast_to(&part, value, &target);
            Input::Value(value?)
        }
        Input::Constant(constant) => {
            Input::Constant(constant.broadcast_to(target.to_vec(), &mut import.build.budget)?)
        }
    })
}

/// A value in other dimensions, as a part of the node `name`.
fn rows_of(
    import: &mut Import<'_>,
    name: &str,
    part: &str,
    value: Value,
    target: &[Dim],
) -> Result<Value, Reason> {
    let part = import.part_name(name, part)?;
    import.build.graph.reshape(&part, value, target).map_err(Reason::from)
}

fn matrices(
    import: &mut Import<'_>,
    constant: Constant,
    shared: bool,
    rows: usize,
    columns: usize,
) -> Result<HostTensor, Reason> {
    let tensor = constant.floats(&mut import.build.budget)?;
    let batch = tensor.dims().elements() / (rows * columns).max(1);
    let dims = if shared { vec![rows, columns] } else { vec![batch, 1, rows, columns] };
    tensor.reshaped(super::constant::dims_of(&dims)?).map_err(Reason::from)
}
