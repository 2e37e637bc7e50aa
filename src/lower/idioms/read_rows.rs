//! Only those rows of a result that are read.
//!
//! A classifier reads the row of one token behind the last layer, and a decoder's caller the scores behind the last token. A row of a
//! product `f(x W + b) + r`, of a function of each element, of a normalisation or softmax along rows depends on the same row of
//! `x` and of `r`; a row of an attention on the same query. So only these rows of `x` and `r` are needed, and
//! so on up to the keys and values, of which an attention needs all.
//!
//! Rows that lie one behind the other are views. A move that takes some rows of each batch is done to the operands instead.

use super::factors::remap;
use super::some_rows::{Moves, Rows, some_elements, some_rows};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::{Bits, Operand};
use crate::error::Result;
use crate::graph::{TensorType, Value};
use crate::lower::mistakes::planted;
use crate::lower::network::Network;
use crate::lower::unit::{Input, Unit};
use crate::ops::attention::Strided;
use crate::ops::gemm::{Gemm, GemmOp};
use crate::ops::normalize::Normalize;
use crate::ops::operator::{Argument, Operator};
use crate::ops::pointwise::Pointwise;
use crate::ops::quantized_gemm::QuantizedGemm;
use crate::ops::softmax::Softmax;
use std::any::Any;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// An operand of a unit, and the columns of its rows. A row of the result depends on its row of the same number.
type RowOperand = (Operand, usize);

/// What a unit becomes that computes some rows.
struct Fewer {
    operator: Arc<dyn Operator>,
    /// The operands that have rows.
    operands: Vec<RowOperand>,
    /// The operands of which only some elements are read, the first and how many.
    cut: Vec<(Operand, Range<usize>)>,
    /// The dimensions of the result.
    dims: Dims,
}

/// Has units compute only the rows that are read; units that `alone` names stay as they are.
pub(in crate::lower) fn read_rows(network: &mut Network<'_>, alone: &dyn Fn(&str) -> bool) -> Result<()> {
    let mut moved = HashMap::new();
    let mut place = network.units().len();
    // Readers first: what they read less of decides what is needed of others.
    while let Some(index) = place.checked_sub(1) {
        place = index;
        if !alone(&network.units()[index].name)
            && let Some((columns, rows, reader)) = needed(network, index, alone)
            && let Some(fewer) = fewer(network, &network.units()[index], columns, rows)
        {
            place = replace(network, index, (columns, rows, reader), fewer, &mut moved)?;
        }
    }
    network.close_gaps();
    Ok(())
}

/// The columns of a row of what unit `index` writes, the rows that are read of it where these are not all, and the move that
/// alone reads these.
fn needed(
    network: &Network<'_>,
    index: usize,
    alone: &dyn Fn(&str) -> bool,
) -> Option<(usize, Rows, Option<usize>)> {
    let unit = &network.units()[index];
    let &[output] = &unit.outputs[..] else { return None };
    let columns = columns(network, unit)?;
    let elements = network.dims(output).ok()?.elements();
    if columns == 0 || network.resolve(output).of != output || elements <= columns {
        return None;
    }
    let range = range(network, output)?;
    let (begin, end) = (range.start / columns, range.end.div_ceil(columns));
    let whole = elements / columns;
    if (begin, end) != (0, whole) {
        return Some((columns, Rows { outer: 1, extent: whole, begin, count: end - begin }, None));
    }
    // A move that takes some rows of each batch.
    let mut readers = network.readers(output);
    let (Some(reader), None, false) = (readers.next(), readers.next(), network.leaves(output)) else {
        return None;
    };
    let unit = &network.units()[reader];
    if alone(&unit.name) || network.resolve(unit.reads().next()?).offset != 0 || unit.outputs.len() != 1 {
        return None;
    }
    let (first, parts) = remap(network, unit)?.strided()?;
    let &[(outer, stride), (some, 1)] = &parts[..] else { return None };
    let taken = [first, stride, some].iter().all(|elements| elements.is_multiple_of(columns));
    if !taken || some == 0 || outer.checked_mul(stride) != Some(elements) || first + some > stride {
        return None;
    }
    let rows = Rows { outer, extent: stride / columns, begin: first / columns, count: some / columns };
    (rows.count < rows.extent).then_some((columns, rows, Some(reader)))
}

/// The range of elements of `value` within which others read it or it leaves the network.
fn range(network: &Network<'_>, value: Value) -> Option<Range<usize>> {
    let mut reads: Vec<Value> = Vec::new();
    for reader in network.readers(value) {
        reads.extend(network.units()[reader].reads());
    }
    if network.leaves(value) {
        reads.extend(network.graph.outputs());
        reads.extend(network.graph.states().iter().filter_map(|state| state.next));
    }
    let mut all: Option<Range<usize>> = None;
    for read in reads {
        let alias = network.resolve(read);
        if alias.of != value {
            continue;
        }
        let own = alias.offset..alias.offset + network.dims(read).ok()?.elements();
        all = Some(all.map_or(own.clone(), |all| all.start.min(own.start)..all.end.max(own.end)));
    }
    all.filter(|all| !all.is_empty())
}

/// The columns of a row of what `unit` writes.
fn columns(network: &Network<'_>, unit: &Unit) -> Option<usize> {
    let output = unit.outputs.first()?;
    if let Some(own) = operator::<Strided>(unit) {
        return own.row();
    }
    network.dims(*output).ok()?.extents().last().copied()
}

fn operator<T: Operator>(unit: &Unit) -> Option<&T> {
    (unit.operator()? as &dyn Any).downcast_ref::<T>()
}

/// `rank` extents with so many rows.
fn of_rank(rank: usize, rows: usize, columns: usize) -> Option<Dims> {
    let mut extents = vec![1; rank.checked_sub(2)?];
    extents.extend([rows, columns]);
    Dims::new(&extents).ok()
}

/// What `unit` becomes for `rows` of its result, if a row depends on the same row of its operands.
fn fewer(network: &Network<'_>, unit: &Unit, columns: usize, rows: Rows) -> Option<Fewer> {
    if let Some(own) = operator::<Strided>(unit) {
        return fewer_queries(unit, own, rows);
    }
    let given = unit.given();
    let dims = network.dims(*unit.outputs.first()?).ok()?;
    let dims_of = |operand: Operand| given.iter().find(|(own, ..)| *own == operand).map(|(.., dims)| *dims);
    let last = |operand: Operand| dims_of(operand)?.extents().last().copied();
    let only = |wanted: &[Operand]| given.iter().all(|(own, ..)| wanted.contains(own));
    let mut operands: Vec<RowOperand> = Vec::new();
    if let Some(own) = operator::<Gemm>(unit) {
        let op = unit.op(network.graph, Precision::F32).ok()?;
        let op = op.as_any().downcast_ref::<GemmOp>()?;
        let packed = [own.lda, own.ldb, own.ldc].iter().all(Option::is_none);
        let one = op.batch == 1 || op.shared_b;
        let known = [Operand::A, Operand::B, Operand::Bias, Operand::Slope, Operand::Residual];
        if own.transpose_a || !packed || own.beta != Bits(0.0) || !one || !only(&known) {
            return None;
        }
        operands.push((Operand::A, last(Operand::A)?));
    } else if operator::<Pointwise>(unit).is_some() || operator::<QuantizedGemm>(unit).is_some() {
        operands.push((Operand::Src, last(Operand::Src)?));
    } else if let Some(own) = operator::<Normalize>(unit) {
        let [axis] = own.axes[..] else { return None };
        is_last(axis, dims).then_some(())?;
        operands.push((Operand::Src, columns));
    } else if let Some(own) = operator::<Softmax>(unit) {
        is_last(own.axis, dims).then_some(())?;
        operands.push((Operand::Src, columns));
    } else if unit.operator()?.program().is_some() {
        for (operand, _, own) in &given {
            if let Some(columns) = row_columns(*own, dims)? {
                operands.push((*operand, columns));
            }
        }
    } else {
        return None;
    }
    if dims_of(Operand::Residual).is_some() && !operands.iter().any(|(own, _)| *own == Operand::Residual) {
        operands.push((Operand::Residual, columns));
    }
    // Each has as many rows as the result.
    let whole = |(operand, columns): &RowOperand| {
        dims_of(*operand).is_some_and(|own| own.elements() == rows.whole() * columns)
    };
    if operands.is_empty() || !operands.iter().all(whole) {
        return None;
    }
    let dims = of_rank(dims.rank(), rows.all(), columns)?;
    Some(Fewer { operator: unit.shared_operator()?, operands, cut: Vec::new(), dims })
}

fn is_last(axis: isize, dims: Dims) -> bool {
    axis == -1 || usize::try_from(axis).is_ok_and(|axis| axis + 1 == dims.rank())
}

/// The columns of an argument that has a row for each of the result's, nothing inside if all rows share it; `None` of others.
fn row_columns(own: Dims, result: Dims) -> Option<Option<usize>> {
    let Some((&columns, leading)) = own.extents().split_last() else { return Some(None) };
    if leading.iter().all(|&extent| extent == 1) {
        return Some(None);
    }
    let (_, wanted) = result.extents().split_last()?;
    (leading == wanted).then_some(Some(columns))
}

/// The attention of some queries of each batch.
fn fewer_queries(unit: &Unit, own: &Strided, rows: Rows) -> Option<Fewer> {
    let given = unit.given();
    let elements =
        |operand: Operand| given.iter().find(|(own, ..)| *own == operand).map(|own| own.2.elements());
    let begin = if planted("read_rows_queries") { 0 } else { rows.begin };
    let by_input = unit.input(Operand::Begins).is_ok();
    if (rows.outer, rows.extent) != (own.sizes.batch, own.sizes.rows) {
        return None;
    }
    let some = own.of_queries([begin, rows.count], elements(Operand::Query)?, by_input)?;
    let mut cut = Vec::new();
    for (operand, first) in [Operand::Bias, Operand::Mask].into_iter().zip(some.begins) {
        if first > 0 && !planted("read_rows_mask") {
            cut.push((operand, first..elements(operand)?));
        }
    }
    let operands = some.query.map(|columns| (Operand::Query, columns)).into_iter().collect();
    let dims = some.attention.output;
    Some(Fewer { operator: Arc::new(some.attention), operands, cut, dims })
}

/// Puts a unit of `rows` in the place of unit `index`, and its result in that of the move that took the rows. The place of the
/// unit then.
fn replace(
    network: &mut Network<'_>,
    index: usize,
    (columns, rows, reader): (usize, Rows, Option<usize>),
    fewer: Fewer,
    moves: &mut Moves,
) -> Result<usize> {
    let unit = network.units()[index].clone();
    let &[output] = &unit.outputs[..] else { return Ok(index) };
    // Whether it serves: nothing was changed before.
    let Some(arguments) = arguments(network, &unit, &fewer, rows) else { return Ok(index) };
    let name = unit.name.clone();
    let dims = fewer.dims;
    let dtype = network.dtype(output);
    let serves = network.graph.lower(&*fewer.operator, &arguments, Precision::F32).is_ok_and(|lowered| {
        matches!(lowered, crate::ops::operator::Lowered::Op(op)
            if crate::ops::outputs(&*op).map(|info| info.shape.elements()).eq([dims.elements()]))
    });
    if !serves {
        return Ok(index);
    }
    let named = reader.map_or_else(|| name.clone(), |reader| network.units()[reader].name.clone());
    let (mut inputs, mut before) = (unit.inputs, Vec::new());
    for ((operand, input), argument) in inputs.iter_mut().zip(&arguments) {
        if let Some((_, own)) = fewer.operands.iter().find(|(own, _)| own == operand) {
            *input = some_rows(
                network,
                input,
                *own,
                rows,
                argument.dims,
                (&format!("{named}/{}", operand.name()), moves, &mut before),
            )?;
        } else if let Some((_, cut)) = fewer.cut.iter().find(|(own, _)| own == operand) {
            *input = some_elements(network, input, cut.clone(), argument.dims)?;
        }
    }
    let value = network.add_value_of(TensorType { dtype, dims });
    let new = Unit::of_arguments(name, fewer.operator, (inputs, arguments), vec![value]);
    let mut units = network.take_units();
    units[index] = new;
    if let Some(reader) = reader {
        let shown = units[reader].outputs[0];
        units[reader] = Unit::stacked(Vec::new(), Vec::new(), 1);
        network.set_units(units);
        network.show(shown, value);
    } else {
        network.set_units(units);
        let begin = if planted("read_rows_begin") { 0 } else { rows.begin };
        network.show_part(output, value, begin * columns);
    }
    let mut place = index;
    for (source, unit) in before {
        let at = network.writer(source).map_or(0, |writer| writer + 1);
        let mut units = network.take_units();
        units.insert(at, unit);
        network.set_units(units);
        place += 1;
    }
    Ok(place)
}

/// The dimensions and types of the inputs of a unit of fewer rows.
fn arguments(network: &Network<'_>, unit: &Unit, fewer: &Fewer, rows: Rows) -> Option<Vec<Argument>> {
    let mut all = Vec::new();
    for (operand, input, dims) in unit.given() {
        let dtype = match &input {
            Input::Value(value) => network.dtype(*value),
            Input::Constant(tensor, _) => tensor.dtype(),
        };
        let columns = fewer.operands.iter().find(|(own, _)| *own == operand).map(|(_, columns)| *columns);
        let cut = fewer.cut.iter().find(|(own, _)| *own == operand).map(|(_, cut)| cut.len());
        let dims = match (columns, cut) {
            (Some(columns), _) => of_rank(dims.rank().max(2), rows.all(), columns)?,
            (None, Some(count)) => Dims::new(&[count]).ok()?,
            (None, None) => dims,
        };
        all.push(Argument { operand, dims, dtype });
    }
    (all.len() == unit.inputs.len()).then_some(all)
}
