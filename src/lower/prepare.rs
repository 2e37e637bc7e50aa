//! The passes that every device runs before kernels are chosen.

use super::choosing::Choosing;
use super::network::Network;
use super::rewrites::Rewrites;
use super::simplify::{joined, simplified};
use super::stack::multiple;
use super::{host, idioms, precision};
use crate::dtype::Precision;
use crate::error::Result;
use crate::graph::Graph;
use crate::options::{Rewrite, SessionOptions};
use std::borrow::Cow;

/// The units of `graph` before they are given a place and a precision; a binding may begin at multiples of `alignment` bytes.
pub(super) fn network<'g>(graph: &'g Graph, options: &SessionOptions, alignment: u64) -> Result<Network<'g>> {
    let alone = |name: &str| options.names(name);
    let rewrites = Rewrites::of(options, &alone);
    let mut network = simplified(graph, &rewrites)?;
    joined(&mut network, &rewrites, multiple(options.precision, alignment))?;
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
    let placed = |stacked: &SessionOptions| {
        let mut network = network(graph, stacked, limits.binding_alignment)?;
        host::assign(&mut network, options, limits)?;
        precision::assign(&mut network, asked, limits)?;
        if !options.without_rewrites.contains(&Rewrite::Loops) {
            idioms::compose(&mut network, &|name| options.names(name), options.precision, limits)?;
        }
        if !options.without_rewrites.contains(&Rewrite::ProductRows) {
            idioms::reduce_rows(&mut network, &|name| options.names(name), options.precision, limits)?;
        }
        if !options.without_rewrites.contains(&Rewrite::Epilogues) {
            idioms::follow(&mut network, &|name| options.names(name), options.precision, limits)?;
        }
        if !options.without_rewrites.contains(&Rewrite::Prologues) {
            idioms::precede(&mut network, &|name| options.names(name), options.precision, limits)?;
        }
        Ok(network)
    };
    let mut network: Network<'g> = placed(asked)?;
    // The parts of stacks lie where those of halves may begin. If there are none in the end, they lie as in f32: what the
    // record has of a stack counts then, and the program is that of f32.
    if asked.precision == Precision::Auto
        && network.units().iter().any(|unit| unit.multiple() > 1)
        && !network.units().iter().any(precision::is_narrow)
    {
        network = placed(options)?;
    }
    if !options.without_rewrites.contains(&Rewrite::Parts) {
        idioms::share_large(&mut network, &|name| options.choices.contains_key(name), options.precision)?;
    }
    Ok(network)
}
