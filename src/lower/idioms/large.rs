//! Normalisations of large maps as two units: moments of parts of a map, and what is made of them. One work-group for
//! each slice of channels leaves most of a GPU idle. What the CPU computes stays one.

use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::lower::unit::{Input, Network, Unit};
use crate::ops::moments::{Moments, MomentsOfParts};
use crate::ops::normalize::{Finished, MOST_KEPT, Normalize};
use std::any::Any;
use std::sync::Arc;

/// Slices of all images of which a work-group each keeps a GPU busy.
const MANY_SLICES: usize = 512;

/// Makes two units of each normalisation of a large map, but for those that `alone` names.
pub(in crate::lower) fn share_large(network: &mut Network<'_>, alone: &dyn Fn(&str) -> bool) -> Result<()> {
    let mut units = Vec::new();
    for unit in network.take_units() {
        let stays = alone(&unit.name) || unit.host.is_some();
        let large = if stays { None } else { large(&unit) };
        match large.map(|(operator, dims)| two(network, &unit, operator, dims)) {
            Some(Some(two)) => units.extend(two),
            _ => units.push(unit),
        }
    }
    network.set_units(units);
    Ok(())
}

/// The operator of a normalisation of a large map, and the map's dimensions.
fn large(unit: &Unit) -> Option<(Finished, Dims)> {
    let operator = unit.operator()? as &dyn Any;
    let plain = || operator.downcast_ref::<Normalize>().cloned().map(Finished::new);
    let operator = operator.downcast_ref::<Finished>().cloned().or_else(plain)?;
    let given = unit.given();
    let (_, _, dims) = given.iter().find(|(operand, ..)| *operand == Operand::Src)?;
    let shape = dims.shape();
    let large = shape.h * shape.w > MOST_KEPT && shape.n * shape.slices() < MANY_SLICES;
    (large && dims.rank() == 4).then_some((operator, *dims))
}

/// `unit` as two, if it is over height and width.
fn two(network: &mut Network<'_>, unit: &Unit, operator: Finished, dims: Dims) -> Option<[Unit; 2]> {
    let moments = Dims::from(Moments::of(dims.shape()).shape());
    let between = network.add_value(moments);
    let mut given = unit.given();
    let src: Vec<_> = given.iter().filter(|(operand, ..)| *operand == Operand::Src).cloned().collect();
    given.push((Operand::Arg(2), Input::Value(between), moments));
    let name = format!("{} (moments)", unit.name);
    let mut two = [
        Unit::of_node(name, Arc::new(MomentsOfParts), src, vec![between]),
        Unit::of_node(unit.name.clone(), Arc::new(operator), given, unit.outputs.clone()),
    ];
    two.iter_mut().for_each(|part| part.precision.clone_from(&unit.precision));
    two.iter().all(|part| part.op(network.graph, Precision::F32).is_ok()).then_some(two)
}
