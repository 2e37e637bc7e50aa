//! Zeros or mirror images around a feature map as the padding of what alone reads it: `conv(pad(x)) = conv'(x)`.
//!
//! Networks that were converted from another framework, whose padding is not one of a file format's two kinds,
//! have a node of its own for it before each convolution.

use super::network::Network;
use super::unit::Unit;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::lower::mistakes::planted;
use crate::ops::operator::Operator;
use crate::shape::Border;

/// Takes out the nodes whose elements their reader can have as its padding, if `wanted` says so of the kind of border; those that
/// `alone` names stay. The reader keeps its name, under which a step of it is named again
/// ([`Session::steps`](crate::Session::steps)).
pub(super) fn absorb(
    network: &mut Network<'_>,
    alone: &dyn Fn(&str) -> bool,
    wanted: &dyn Fn(Border) -> bool,
) -> Result<()> {
    for index in 0..network.units().len() {
        if let Some((reader, unit)) = merged(network, index, alone, wanted)? {
            network.merge(index, reader, unit);
        }
    }
    network.close_gaps();
    Ok(())
}

/// The reader of unit `index`, and what it is with the elements that the unit adds.
fn merged(
    network: &Network<'_>,
    index: usize,
    alone: &dyn Fn(&str) -> bool,
    wanted: &dyn Fn(Border) -> bool,
) -> Result<Option<(usize, Unit)>> {
    let unit = &network.units()[index];
    let border = unit.operator().and_then(Operator::border).filter(|(border, _)| wanted(*border));
    let Some((border, mut extents)) = border else { return Ok(None) };
    if planted("border_sides") {
        extents.swap(0, 1);
    }
    let (&[output], Some(input)) = (&unit.outputs[..], unit.reads().next()) else { return Ok(None) };
    let mut readers = network.readers(output);
    let (Some(reader), None) = (readers.next(), readers.next()) else { return Ok(None) };
    let second = &network.units()[reader];
    let once = second.reads().filter(|&read| network.resolve(read).of == output).count() == 1;
    let as_source = second.input(Operand::Src).is_ok_and(|input| input.value() == Some(output));
    if alone(&unit.name) || !once || !as_source || network.leaves(output) {
        return Ok(None);
    }
    let Some(operator) = second.operator().and_then(|operator| operator.with_border(border, extents)) else {
        return Ok(None);
    };
    let Some(whole) = second.instead(operator, (Operand::Src, input, network.dims(input)?)) else {
        return Ok(None);
    };
    // The result has the extents that it had.
    let shapes = |unit: &Unit| -> Result<Vec<_>> {
        let op = unit.op(network.graph, Precision::F32)?;
        Ok(crate::ops::outputs(&*op).map(|info| info.shape).collect())
    };
    let same = shapes(&whole).is_ok_and(|found| shapes(second).is_ok_and(|wanted| found == wanted));
    Ok(same.then_some((reader, whole)))
}
