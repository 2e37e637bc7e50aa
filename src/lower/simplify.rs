//! The passes that every backend runs first: fewer units that compute the same.

use super::stack::stack;
use super::unit::Network;
use super::{border, chain, idioms, unread};
use crate::error::Result;
use crate::graph::Graph;

/// The units of `graph`, simplified; a node that `alone` names stays a unit by itself.
pub(crate) fn simplified<'g>(graph: &'g Graph, alone: &dyn Fn(&str) -> bool) -> Result<Network<'g>> {
    let mut network = Network::of(graph)?;
    unread::leave_out(&mut network);
    border::absorb(&mut network, alone)?;
    idioms::recognise(&mut network, alone)?;
    idioms::attention(&mut network, alone);
    unread::leave_out(&mut network);
    chain::join(&mut network, alone)?;
    // A factor may be a part of a function of each element.
    idioms::take_factors(&mut network, alone)?;
    idioms::join_moves(&mut network, alone)?;
    idioms::join_products(&mut network, alone)?;
    Ok(network)
}

/// The passes that only devices run: fewer dispatches for more work. A binding may begin at a channel of a pixel
/// that is a multiple of `multiple`.
pub(crate) fn joined(network: &mut Network<'_>, alone: &dyn Fn(&str) -> bool, multiple: usize) -> Result<()> {
    idioms::split_patches(network, alone)?;
    idioms::gates(network, alone)?;
    idioms::squeezes(network, alone)?;
    idioms::gated_products(network, alone)?;
    idioms::dense_layers(network, alone)?;
    stack(network, alone, multiple)
}
