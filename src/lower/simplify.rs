//! The passes that every backend runs first: fewer units that compute the same.

use super::unit::Network;
use super::{border, chain, idioms};
use crate::error::Result;
use crate::graph::Graph;

/// The units of `graph`, simplified; a node that `alone` names stays a unit by itself.
pub(crate) fn simplified<'g>(graph: &'g Graph, alone: &dyn Fn(&str) -> bool) -> Result<Network<'g>> {
    let mut network = Network::of(graph)?;
    border::absorb(&mut network, alone)?;
    idioms::recognise(&mut network, alone)?;
    chain::join(&mut network, alone)?;
    Ok(network)
}
