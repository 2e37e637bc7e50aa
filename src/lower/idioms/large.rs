//! Reductions of few long rows, such as normalisations of large maps, as two units: of parts of the rows, and of what these give;
//! and attentions of few queries to many keys: those to parts of the keys, and their join. One work-group for each row, or for each
//! head, leaves most of a GPU idle. What the CPU computes stays one.

use super::compose::reduction_in_parts;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::lower::mistakes::planted;
use crate::lower::network::Network;
use crate::lower::unit::{Input, Unit};
use crate::ops::attention::{Attention, AttentionOp, MOST_PARTS, Strided};
use crate::ops::attention_join::AttentionJoin;
use std::any::Any;
use std::sync::Arc;

/// Queries that share a head of keys, at most: more read keys together.
const FEW_QUERIES: usize = 8;

/// Keys of a part, at least.
const KEYS_OF_PART: usize = 256;

/// Parts of all heads and queries that keep a GPU busy.
const MANY_PARTS: usize = 256;

/// Makes two units of each reduction of few long rows and of each attention of few queries to many keys, but for those that
/// `alone` names.
pub(in crate::lower) fn share_large(
    network: &mut Network<'_>,
    alone: &dyn Fn(&str) -> bool,
    precision: Precision,
) -> Result<()> {
    let mut units = Vec::new();
    for unit in network.take_units() {
        let stays = alone(&unit.name) || unit.host.is_some();
        let two = if stays {
            None
        } else {
            reduction_in_parts(network, &unit, precision).or_else(|| attention_in_parts(network, &unit))
        };
        match two {
            Some(two) => units.extend(two),
            None => units.push(unit),
        }
    }
    network.set_units(units);
    Ok(())
}

/// An attention of few queries to many keys as two units.
fn attention_in_parts(network: &mut Network<'_>, unit: &Unit) -> Option<[Unit; 2]> {
    let whole = strided(network, unit)?;
    let sizes = &whole.sizes;
    let queries = sizes.group * sizes.rows;
    let heads = sizes.batch * sizes.heads;
    let parts = (sizes.keys / KEYS_OF_PART).min(MANY_PARTS / (heads * queries).max(1)).min(MOST_PARTS);
    if whole.parts != 1 || queries > FEW_QUERIES || parts < 2 {
        return None;
    }
    let mut in_parts = whole.in_parts(parts).ok()?;
    if planted("parts_factor") {
        in_parts.rules.scale.0 *= 2.0;
    }
    let dims = in_parts.output;
    let between = network.add_value(dims);
    let src = vec![(Operand::Src, Input::Value(between), dims)];
    let name = format!("{} (parts)", unit.name);
    let mut two = [
        Unit::of_node(name, Arc::new(in_parts), unit.given(), vec![between]),
        Unit::of_node(unit.name.clone(), Arc::new(AttentionJoin { whole, parts }), src, unit.outputs.clone()),
    ];
    two.iter_mut().for_each(|part| part.precision.clone_from(&unit.precision));
    two.iter().all(|part| part.op(network.graph, Precision::F32).is_ok()).then_some(two)
}

/// The attention that `unit` is, with everything's place.
fn strided(network: &Network<'_>, unit: &Unit) -> Option<Strided> {
    let operator = unit.operator()? as &dyn Any;
    if !operator.is::<Strided>() && !operator.is::<Attention>() {
        return None;
    }
    let op = unit.op(network.graph, Precision::F32).ok()?;
    op.as_any().downcast_ref::<AttentionOp>().map(AttentionOp::strided)
}
