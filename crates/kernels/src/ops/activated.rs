//! `y = f(conv(x) + r)`: a convolution whose residual is added before its activation.
//!
//! In a graph this is three nodes, as in residual networks (He et al., *Deep Residual Learning for Image
//! Recognition*, 2016); the lowering makes one of them.

use super::operator::{self, Arguments, Lowered, Operator, Options};
use super::windowed::ConvolutionOptions;
use crate::dtype::Precision;
use crate::emit::{Activation, Residual};
use crate::error::Result;
use crate::shape::Border;
use std::sync::Arc;

/// A convolution's options whose activation is applied last.
#[derive(Debug, Clone, PartialEq)]
struct ActivatedLast<O>(O);

/// The convolution of a node, which adds the residual that the node may have as `added` says.
pub(super) fn lower<O: ConvolutionOptions>(
    options: &O,
    added: Residual,
    arguments: Arguments<'_>,
    precision: Precision,
) -> Result<Lowered> {
    let shapes = operator::maps(O::NAME, arguments)?;
    let [bias, residual] = operator::extras(arguments);
    let residual = if residual { added } else { Residual::None };
    Ok(Lowered::Op(Arc::new(options.op(shapes, (bias, residual), precision)?)))
}

/// The convolution with `activation` after its residual, if it has none yet.
pub(super) fn last(options: &impl ConvolutionOptions, activation: Activation) -> Option<Arc<dyn Operator>> {
    Some(Arc::new(ActivatedLast(options.activated(activation)?)))
}

impl<O: ConvolutionOptions> Options for ActivatedLast<O> {
    const NAME: &'static str = O::NAME;

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        lower(&self.0, Residual::BeforeActivation, arguments, precision)
    }

    fn with_border(&self, border: Border, extents: [usize; 4]) -> Option<Self> {
        Some(ActivatedLast(self.0.with_border(border, extents)?))
    }
}
