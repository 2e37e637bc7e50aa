//! The operators that are moves of elements, each a node with `Src` alone.

mod blocks;
mod pad;
mod permute;
mod slice;

pub use blocks::{BatchToSpace, DepthToSpace, SpaceToBatch, SpaceToDepth};
pub use pad::{Pad, PadMode};
pub use permute::{BroadcastTo, Reverse, Tile, Transpose};
pub use slice::{AxisRange, StridedSlice};

use super::RemapOp;
use super::axes::{Axis, Rule};
use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::ops::op::Op;
use crate::ops::operator::{Arguments, Lowered, Options, WithoutElements};
use crate::shape::Border;
use std::collections::BTreeMap;
use std::fmt;

/// Where the elements of a result come from.
pub(super) struct Moved {
    pub(super) target: Dims,
    pub(super) axes: Vec<Axis>,
    pub(super) rule: Rule,
}

impl Moved {
    /// Moves that leave no coordinate outside.
    fn within(target: Dims, axes: Vec<Axis>) -> Self {
        Moved { target, axes, rule: Rule::Within }
    }
}

/// An operator that moves elements.
pub(super) trait Move: fmt::Debug + PartialEq + Send + Sync + 'static {
    /// Its name.
    const NAME: &'static str;

    /// The axes of the result for a source of these dimensions. `dimensions` are the graph's.
    fn moved(&self, source: Dims, dimensions: &BTreeMap<String, usize>) -> Result<Moved>;

    /// How many elements of which kind it puts around a feature map, if that is all it does.
    fn border(&self) -> Option<(Border, [usize; 4])> {
        None
    }
}

impl<M: Move> Options for M {
    const NAME: &'static str = M::NAME;

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        let source = arguments.need(M::NAME, Operand::Src)?;
        let Moved { target, axes, rule } = self.moved(source, arguments.dimensions)?;
        let op = RemapOp::new(source, target, axes, rule, precision)?;
        Ok(op.of(arguments.dtype(Operand::Src).word()).lowered())
    }

    fn types(&self, arguments: Arguments<'_>, _op: &dyn Op) -> Vec<DType> {
        vec![arguments.dtype(Operand::Src)]
    }

    fn outputs(&self, _arguments: Arguments<'_>, op: &dyn Op) -> Vec<Dims> {
        op.as_any().downcast_ref::<RemapOp>().map(RemapOp::target).into_iter().collect()
    }

    fn border(&self) -> Option<(Border, [usize; 4])> {
        Move::border(self)
    }

    fn without_elements(&self, arguments: Arguments<'_>) -> Option<WithoutElements> {
        let source = arguments.get(Operand::Src)?;
        match self.moved(source, arguments.dimensions).ok()?.rule {
            Rule::Fill(value) => Some(WithoutElements::Number(value.0)),
            _ => None,
        }
    }
}

/// Refuses another number of entries than the source has axes.
fn check_rank(op: &'static str, what: &str, found: usize, source: Dims) -> Result<()> {
    if found == source.rank() {
        return Ok(());
    }
    Err(Error::shape(op, format!("{found} {what}"), format!("one for each axis of {source}")))
}

/// `extent * factor`, if it is a number of elements.
fn product(op: &'static str, extent: usize, factor: usize) -> Result<usize> {
    let found = || Error::shape(op, format!("{extent} times {factor} elements"), "an extent of 32 bits");
    extent.checked_mul(factor).filter(|product| i32::try_from(*product).is_ok()).ok_or_else(found)
}

#[cfg(test)]
mod tests;
