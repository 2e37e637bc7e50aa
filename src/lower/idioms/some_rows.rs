//! Some rows, or some elements, of what a unit reads: views of values, moves of them, and parts of constants.

use crate::alloc;
use crate::dims::Dims;
use crate::emit::Operand;
use crate::error::Result;
use crate::graph::{TensorType, Value};
use crate::host::HostTensor;
use crate::lower::network::Network;
use crate::lower::unit::{Input, Unit};
use crate::nn::AxisRange;
use crate::ops::operator::Argument;
use crate::ops::remap::StridedSlice;
use crate::word;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Rows of a value of `outer` times `extent` rows: `count` of each `extent`, from `begin` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Rows {
    pub(super) outer: usize,
    pub(super) extent: usize,
    pub(super) begin: usize,
    pub(super) count: usize,
}

impl Rows {
    /// How many they are.
    pub(super) fn all(&self) -> usize {
        self.outer * self.count
    }

    /// How many rows the value has.
    pub(super) fn whole(&self) -> usize {
        self.outer * self.extent
    }
}

/// The results of moves that were added, by the value that they read, its first element, the columns and the rows.
pub(super) type Moves = HashMap<(Value, usize, usize, Rows), Value>;

/// Some rows of what a unit reads.
pub(super) fn some_rows(
    network: &mut Network<'_>,
    input: &Input,
    columns: usize,
    rows: Rows,
    dims: Dims,
    (name, moves, before): (&str, &mut Moves, &mut Vec<(Value, Unit)>),
) -> Result<Input> {
    let (outer, each) = (rows.extent * columns, rows.begin * columns..(rows.begin + rows.count) * columns);
    let value = match input {
        Input::Constant(tensor, _) => {
            let ranges = (0..rows.outer).map(|place| place * outer + each.start..place * outer + each.end);
            return elements_of(network, tensor, ranges, dims);
        }
        Input::Value(value) => *value,
    };
    let dtype = network.dtype(value);
    if rows.outer == 1 {
        return Ok(Input::Value(network.add_view(TensorType { dtype, dims }, value, each.start)));
    }
    let source = network.resolve(value);
    let key = (source.of, source.offset, columns, rows);
    let moved = match moves.get(&key) {
        Some(&moved) => moved,
        None => {
            let of = |extent: usize| Dims::new(&[rows.outer, extent, columns]);
            let whole = TensorType { dtype, dims: of(rows.extent)? };
            let shown = network.add_view(whole, value, 0);
            let moved = network.add_value_of(TensorType { dtype, dims: of(rows.count)? });
            let place = |place: usize| isize::try_from(place).unwrap_or(isize::MAX);
            let some = AxisRange::new(place(rows.begin), place(rows.begin + rows.count));
            let operator = StridedSlice { ranges: vec![AxisRange::ALL, some, AxisRange::ALL] };
            let argument = Argument { operand: Operand::Src, dims: whole.dims, dtype };
            let given = (vec![(Operand::Src, Input::Value(shown))], vec![argument]);
            before.push((
                source.of,
                Unit::of_arguments(name.to_owned(), Arc::new(operator), given, vec![moved]),
            ));
            moves.insert(key, moved);
            moved
        }
    };
    Ok(Input::Value(network.add_view(TensorType { dtype, dims }, moved, 0)))
}

/// Some elements of what a unit reads.
pub(super) fn some_elements(
    network: &mut Network<'_>,
    input: &Input,
    cut: Range<usize>,
    dims: Dims,
) -> Result<Input> {
    match input {
        Input::Constant(tensor, _) => elements_of(network, tensor, [cut].into_iter(), dims),
        Input::Value(value) => {
            let dtype = network.dtype(*value);
            Ok(Input::Value(network.add_view(TensorType { dtype, dims }, *value, cut.start)))
        }
    }
}

/// A constant of elements of another one, made once for all graphs of one file.
fn elements_of(
    network: &mut Network<'_>,
    tensor: &HostTensor,
    ranges: impl Iterator<Item = Range<usize>> + Clone,
    dims: Dims,
) -> Result<Input> {
    let each = tensor.dtype().word().words();
    let how = format!("elements {:?} as {dims}", ranges.clone().collect::<Vec<_>>());
    let some = network.graph.derived().joined(&how, &[tensor], |dtype, parts| {
        let words = parts.first().copied().unwrap_or_default();
        let mut some = alloc::reserved(each * dims.elements(), "rows of a constant")?;
        for range in ranges {
            some.extend_from_slice(words.get(each * range.start..each * range.end).unwrap_or_default());
        }
        word::to_tensor(dims, dtype, dtype.word(), &some)
    })?;
    let value = network.add_constant(some.clone());
    Ok(Input::Constant(some, Some(value)))
}
