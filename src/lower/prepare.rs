//! The passes that every device runs before kernels are chosen.

use super::choose::Choosing;
use super::simplify::{joined, simplified};
use super::stack::multiple;
use super::unit::Network;
use super::{host, idioms, precision};
use crate::dtype::Precision;
use crate::error::Result;
use crate::graph::Graph;
use crate::options::SessionOptions;
use std::borrow::Cow;

/// The units of `graph` before they are given a place and a precision; a binding may begin at multiples of `alignment` bytes.
pub(super) fn network<'g>(graph: &'g Graph, options: &SessionOptions, alignment: u64) -> Result<Network<'g>> {
    let alone = |name: &str| options.names(name);
    let mut network = simplified(graph, &alone)?;
    joined(&mut network, &alone, multiple(options.precision, alignment))?;
    Ok(network)
}

/// The options that all nodes have which have no precision of their own.
pub(super) fn base(asked: &SessionOptions) -> Cow<'_, SessionOptions> {
    match asked.precision {
        Precision::Auto => Cow::Owned(SessionOptions { precision: Precision::F32, ..asked.clone() }),
        _ => Cow::Borrowed(asked),
    }
}

/// The units of `graph` as the device of `choosing` runs them.
pub(super) fn prepared<'g>(
    graph: &'g Graph,
    asked: &SessionOptions,
    choosing: &Choosing<'_>,
) -> Result<Network<'g>> {
    let (options, limits) = (choosing.options, choosing.limits);
    let mut network = network(graph, asked, limits.binding_alignment)?;
    host::assign(&mut network, options, limits)?;
    precision::assign(&mut network, asked, limits)?;
    idioms::share_large(&mut network, &|name| options.choices.contains_key(name))?;
    Ok(network)
}
