//! Products of one row, all of one input, as one product: as the queries, keys and values of a decoder's next token are.
//!
//! `[y_1 y_2 ..] = x [W_1 W_2 ..] + [b_1 b_2 ..]`: each is a launch that reads its weights for a few microseconds, and what is one
//! row lies in one piece, so that whoever reads a part of it reads it where it is. Products of several rows whose parts an
//! attention reads are joined too (`attention/products.rs`), and two whose results one function reads (`glu.rs`).

use super::Finder;
use super::glu::{Side, constants};
use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::emit::{Activation, Operand};
use crate::error::Result;
use crate::graph::TensorType;
use crate::lower::mistakes::planted;
use crate::lower::network::Network;
use crate::lower::step::TOGETHER;
use crate::lower::unit::{Input, Unit};
use std::sync::Arc;

/// Joins products; units that `alone` names stay as they are. A binding may begin at an element of a row that is a multiple of
/// `multiple`.
pub(in crate::lower) fn join_rows(
    network: &mut Network<'_>,
    alone: &dyn Fn(&str) -> bool,
    multiple: usize,
) -> Result<()> {
    let mut joined = false;
    for index in 0..network.units().len() {
        if let Some(sides) = sides(&Finder { network, alone }, index, multiple) {
            joined |= join(network, sides)?;
        }
    }
    if joined {
        network.close_gaps();
    }
    Ok(())
}

/// Unit `index`, if it is a product of one row that stays in the network.
fn side(finder: &Finder<'_, '_>, index: usize) -> Option<Side> {
    let network = finder.network;
    let unit = network.units().get(index)?;
    let &[output] = &unit.outputs[..] else { return None };
    if (finder.alone)(&unit.name) || network.leaves(output) || network.resolve(output).of != output {
        return None;
    }
    let side = finder.side(output)?;
    let columns = side.output.extents().last().copied()?;
    (side.activation == Activation::None && side.output.elements() == columns).then_some(side)
}

/// The product that unit `index` is and those behind it that read what it does, each of which but the last ends where another
/// binding may begin.
fn sides(finder: &Finder<'_, '_>, index: usize, multiple: usize) -> Option<Vec<Side>> {
    let first = side(finder, index)?;
    let (_, x, _) = first.source()?;
    let shown = finder.network.resolve(x).of;
    let others = finder.network.readers(shown).filter(|&other| other > index);
    let alike =
        |other: &Side| (finder.read_alike(&first, other) || planted("one_row_input")) && first.is_like(other);
    let others: Vec<Side> = others.filter_map(|other| side(finder, other)).filter(alike).collect();
    let is_whole = |side: &Side| side.output.elements().is_multiple_of(multiple);
    let (mut whole, ragged): (Vec<Side>, Vec<Side>) = [first].into_iter().chain(others).partition(is_whole);
    // Nothing begins behind the last one.
    whole.extend(ragged.into_iter().take(1));
    (whole.len() > 1).then_some(whole)
}

/// Puts one product in the place of those of `sides`, whose results become parts of its own, if there is one.
fn join(network: &mut Network<'_>, sides: Vec<Side>) -> Result<bool> {
    let Some((operand, x, of_x)) = sides.first().and_then(Side::source) else { return Ok(false) };
    let mut inputs = vec![(operand, Input::Value(x), of_x)];
    inputs.extend(constants(network, &sides)?);
    let all: usize = sides.iter().map(|side| side.output.elements()).sum();
    let mut extents = sides[0].output.extents().to_vec();
    if let Some(last) = extents.last_mut() {
        *last = all;
    }
    let value = network.add_value(Dims::new(&extents)?);
    let names: Vec<&str> = sides.iter().map(|side| network.units()[side.index].name.as_str()).collect();
    let product = Unit::of_node(names.join(TOGETHER), Arc::clone(&sides[0].operator), inputs, vec![value]);
    let wanted = [Operand::B, Operand::Weights].iter().any(|&operand| product.input(operand).is_ok());
    if !wanted || product.op(network.graph, Precision::F32).is_err() {
        return Ok(false);
    }
    let first = sides.iter().map(|side| side.index).min().unwrap_or_default();
    let mut begin = 0;
    let mut units = network.take_units();
    for side in &sides {
        let output = units[side.index].outputs[0];
        units[side.index] = Unit::stacked(Vec::new(), Vec::new(), 1);
        let part = network.add_view(TensorType { dtype: DType::F32, dims: side.output }, value, begin);
        network.show(output, part);
        begin += if planted("one_row_places") { 0 } else { side.output.elements() };
    }
    units[first] = product;
    network.set_units(units);
    Ok(true)
}
