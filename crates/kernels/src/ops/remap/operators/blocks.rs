//! Blocks of pixels as channels or as images, and back.

use super::{Move, Moved, product};
use crate::dims::{Dims, MAX_RANK};
use crate::error::{Error, Result};
use crate::ops::remap::axes::{self, Axis};
use std::collections::BTreeMap;

/// Groups of channels as blocks of pixels: `y[n, h*b + i, w*b + j, c] = x[n, h, w, (i*b + j)*C + c]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DepthToSpace {
    /// Rows and columns of a block.
    pub block: usize,
}

/// Blocks of pixels as groups of channels: the inverse of [`DepthToSpace`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpaceToDepth {
    /// Rows and columns of a block.
    pub block: usize,
}

/// Blocks of elements along the axes behind the batch become images, one for each place in a block: image `p * n + i` has the
/// elements at place `p` of the blocks of image `i`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SpaceToBatch {
    /// The extents of a block along the axes behind the first.
    pub block: Vec<usize>,
}

/// The inverse of [`SpaceToBatch`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BatchToSpace {
    /// The extents of a block along the axes behind the first.
    pub block: Vec<usize>,
}

/// Batch, rows, columns and channels.
fn map(op: &'static str, source: Dims, block: usize) -> Result<[Axis; 4]> {
    let whole = axes::whole(source);
    match whole[..] {
        [n, h, w, c] if block > 0 => Ok([n, h, w, c]),
        _ => {
            let found = format!("{source} in blocks of {block}");
            Err(Error::shape(op, found, "a value of rank 4 and blocks of at least 1"))
        }
    }
}

/// `axis` as blocks and the places in them.
fn split(op: &'static str, source: Dims, axis: Axis, block: usize) -> Result<[Axis; 2]> {
    if block == 0 || !axis.extent.is_multiple_of(block) {
        let found = format!("an axis of {} ({source}) in blocks of {block}", axis.extent);
        return Err(Error::shape(op, found, format!("a multiple of {block}, which is not 0")));
    }
    let blocks = axis.extent / block;
    Ok([Axis::whole(blocks, axis.stride * block), Axis::whole(block, axis.stride)])
}

impl Move for DepthToSpace {
    const NAME: &'static str = "depth_to_space";

    fn moved(&self, source: Dims, _dimensions: &BTreeMap<String, usize>) -> Result<Moved> {
        let [n, h, w, c] = map(Self::NAME, source, self.block)?;
        let [rows, rest] = split(Self::NAME, source, c, product(Self::NAME, self.block, self.block)?)?;
        let channels = rows.extent;
        let (i, j) = (Axis::whole(self.block, channels * self.block), Axis::whole(self.block, channels));
        let c = Axis::whole(channels, rest.stride);
        let extents = [
            n.extent,
            product(Self::NAME, h.extent, self.block)?,
            product(Self::NAME, w.extent, self.block)?,
            channels,
        ];
        Ok(Moved::within(Dims::new(&extents)?, vec![n, h, i, w, j, c]))
    }
}

impl Move for SpaceToDepth {
    const NAME: &'static str = "space_to_depth";

    fn moved(&self, source: Dims, _dimensions: &BTreeMap<String, usize>) -> Result<Moved> {
        let [n, h, w, c] = map(Self::NAME, source, self.block)?;
        let [h, i] = split(Self::NAME, source, h, self.block)?;
        let [w, j] = split(Self::NAME, source, w, self.block)?;
        let places = product(Self::NAME, self.block, self.block)?;
        let extents = [n.extent, h.extent, w.extent, product(Self::NAME, c.extent, places)?];
        Ok(Moved::within(Dims::new(&extents)?, vec![n, h, w, i, j, c]))
    }
}

/// The batch, and as many further axes as a block has, and the others.
fn parted<'a>(
    op: &'static str,
    source: Dims,
    block: &[usize],
    whole: &'a [Axis],
) -> Result<(Axis, &'a [Axis], &'a [Axis])> {
    match whole {
        [n, rest @ ..] if rest.len() >= block.len() && whole.len() <= MAX_RANK => {
            let (space, rest) = rest.split_at(block.len());
            Ok((*n, space, rest))
        }
        _ => Err(Error::shape(
            op,
            format!("{source} in blocks of {block:?}"),
            format!("a batch and at least {} axes behind it", block.len()),
        )),
    }
}

impl Move for SpaceToBatch {
    const NAME: &'static str = "space_to_batch";

    fn moved(&self, source: Dims, _dimensions: &BTreeMap<String, usize>) -> Result<Moved> {
        let whole = axes::whole(source);
        let (n, space, rest) = parted(Self::NAME, source, &self.block, &whole)?;
        let mut batch = n.extent;
        let (mut places, mut blocks) = (Vec::new(), Vec::new());
        for (axis, &block) in space.iter().zip(&self.block) {
            let [outer, place] = split(Self::NAME, source, *axis, block)?;
            batch = product(Self::NAME, batch, block)?;
            places.push(place);
            blocks.push(outer);
        }
        let inner: Vec<Axis> = blocks.into_iter().chain(rest.iter().copied()).collect();
        let extents: Vec<usize> = [batch].into_iter().chain(inner.iter().map(|axis| axis.extent)).collect();
        let axes = places.into_iter().chain([n]).chain(inner).collect();
        Ok(Moved::within(Dims::new(&extents)?, axes))
    }
}

impl Move for BatchToSpace {
    const NAME: &'static str = "batch_to_space";

    fn moved(&self, source: Dims, _dimensions: &BTreeMap<String, usize>) -> Result<Moved> {
        let whole = axes::whole(source);
        let (n, space, rest) = parted(Self::NAME, source, &self.block, &whole)?;
        let places = self.block.iter().try_fold(1, |places, &block| product(Self::NAME, places, block))?;
        let [_, batch] = split(Self::NAME, source, n, places)
            .map(|[batch, _]| [batch, Axis::whole(batch.extent, n.stride)])?;
        let (mut axes, mut extents) = (vec![batch], vec![batch.extent]);
        // The place in a block along the last axis varies fastest.
        let mut stride = places * batch.extent * n.stride;
        for (axis, &block) in space.iter().zip(&self.block) {
            stride /= block;
            axes.extend([*axis, Axis::whole(block, stride)]);
            extents.push(product(Self::NAME, axis.extent, block)?);
        }
        axes.extend(rest);
        extents.extend(rest.iter().map(|axis| axis.extent));
        Ok(Moved::within(Dims::new(&extents)?, axes))
    }
}
