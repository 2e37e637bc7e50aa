//! `y = f(conv(x) + r)`: a convolution whose residual is added before its activation.
//!
//! In a graph this is three nodes, as in residual networks (He et al., *Deep Residual Learning for Image
//! Recognition*, 2016); the lowering makes one of them.

use super::op::Op;
use super::operator::{self, Arguments, Lowered, Operator, same};
use crate::dtype::Precision;
use crate::emit::Residual;
use crate::error::Result;
use crate::shape::{Border, Shape};
use std::fmt;
use std::sync::Arc;

/// A convolution's options whose activation is applied last.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ActivatedLast<O>(pub(super) O);

/// The options of a convolution, as they differ from op to op.
pub(super) trait ConvolutionOptions: fmt::Debug + PartialEq + Send + Sync + Sized + 'static {
    /// The op's name.
    const NAME: &'static str;

    /// The op for these shapes, a bias if the first of `extras` says so, and a residual.
    fn op(&self, shapes: [Shape; 2], extras: (bool, Residual), precision: Precision) -> Result<Arc<dyn Op>>;

    /// As [`Operator::with_border`].
    fn bordered(&self, border: Border, extents: [usize; 4]) -> Option<Self>;
}

impl<O: ConvolutionOptions> Operator for ActivatedLast<O> {
    fn name(&self) -> &'static str {
        O::NAME
    }

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        let shapes = operator::maps(O::NAME, arguments)?;
        let [bias, residual] = operator::extras(arguments);
        let residual = if residual { Residual::BeforeActivation } else { Residual::None };
        Ok(Lowered::Op(self.0.op(shapes, (bias, residual), precision)?))
    }

    fn with_border(&self, border: Border, extents: [usize; 4]) -> Option<Arc<dyn Operator>> {
        Some(Arc::new(ActivatedLast(self.0.bordered(border, extents)?)))
    }

    fn same(&self, other: &dyn Operator) -> bool {
        same(self, other)
    }
}
