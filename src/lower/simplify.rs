//! The passes that every backend runs first: fewer units that compute the same.

use super::network::Network;
use super::rewrites::Rewrites;
use super::stack::stack;
use super::{border, chain, idioms, quantized, unread};
use crate::error::Result;
use crate::graph::Graph;
use crate::options::Rewrite;
use crate::shape::Border;

/// The units of `graph`, simplified by `rewrites`.
pub(crate) fn simplified<'g>(graph: &'g Graph, rewrites: &Rewrites<'_>) -> Result<Network<'g>> {
    let mut network = Network::of(graph)?;
    let alone = rewrites.alone;
    network.changes_states = rewrites.has(Rewrite::Updates);
    unread::leave_out(&mut network);
    // Zeros are a byte that an op of bytes has around its input; mirror images of bytes have no op.
    if rewrites.has(Rewrite::Borders) {
        border::absorb(&mut network, alone, &|border| border == Border::Zeros)?;
    }
    if !rewrites.dequantize && !graph.is_dequantized() {
        quantized::compute_on_bytes(&mut network, alone)?;
        unread::leave_out(&mut network);
    }
    if rewrites.has(Rewrite::Borders) {
        border::absorb(&mut network, alone, &|_| true)?;
    }
    idioms::recognise(&mut network, rewrites)?;
    if rewrites.has(Rewrite::Attention) {
        idioms::attention(&mut network, alone);
    }
    unread::leave_out(&mut network);
    chain::join(&mut network, rewrites)?;
    if rewrites.has(Rewrite::ReadRows) {
        idioms::read_rows(&mut network, alone)?;
    }
    // A factor may be a part of a function of each element.
    if rewrites.has(Rewrite::Factors) {
        idioms::take_factors(&mut network, alone)?;
    }
    if rewrites.has(Rewrite::Projections) {
        idioms::join_products(&mut network, alone)?;
    }
    Ok(network)
}

/// The passes that only devices run: fewer dispatches for more work. A binding may begin at a channel of a pixel
/// that is a multiple of `multiple`.
pub(crate) fn joined(network: &mut Network<'_>, rewrites: &Rewrites<'_>, multiple: usize) -> Result<()> {
    type Pass<'a> = &'a dyn Fn(&mut Network<'_>, &dyn Fn(&str) -> bool) -> Result<()>;
    let passes: [(Rewrite, Pass<'_>); 6] = [
        (Rewrite::Patches, &idioms::split_patches),
        (Rewrite::Gates, &idioms::gates),
        (Rewrite::Squeezes, &idioms::squeezes),
        (Rewrite::GatedProducts, &idioms::gated_products),
        (Rewrite::Stacks, &|network, alone| idioms::join_rows(network, alone, multiple)),
        (Rewrite::DenseLayers, &idioms::dense_layers),
    ];
    for (_, pass) in passes.into_iter().filter(|(rewrite, _)| rewrites.has(*rewrite)) {
        pass(network, rewrites.alone)?;
    }
    if rewrites.has(Rewrite::Stacks) {
        stack(network, rewrites.alone, multiple)?;
    }
    Ok(())
}
