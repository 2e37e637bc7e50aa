//! Where the samples' axis of a value lies, and how it is moved.

use super::{Own, Samples, Value};
use crate::dims::{Dim, Dims, MAX_RANK};
use crate::error::{Error, Result};

/// Elements of these axes.
pub(super) fn elements(extents: &[usize]) -> usize {
    extents.iter().product()
}

/// Whether the samples' axis before axis `a` is in memory where it would be before axis `b`.
pub(super) fn is_same(extents: &[usize], a: usize, b: usize) -> bool {
    extents.get(a.min(b)..a.max(b)).is_some_and(|between| elements(between) == 1)
}

/// The extents with the axis `at` so many times as long.
pub(super) fn grown(extents: &[usize], at: usize, count: usize) -> Vec<usize> {
    let mut grown = extents.to_vec();
    match grown.get_mut(at) {
        // An extent that is too large is refused where the value is made.
        Some(extent) => *extent = extent.saturating_mul(count),
        None => grown.push(count),
    }
    grown
}

/// The extents with an axis of `extent` before axis `at`.
pub(super) fn inserted(extents: &[usize], at: usize, extent: usize) -> Vec<usize> {
    let (before, behind) = extents.split_at(at.min(extents.len()));
    [before, &[extent], behind].concat()
}

impl Own {
    pub(super) fn rank(&self) -> usize {
        self.dims.rank()
    }

    /// The extents of one sample, behind ones so that there are `rank` of them.
    pub(super) fn aligned(&self, rank: usize) -> Vec<usize> {
        let missing = rank.saturating_sub(self.rank());
        [&vec![1; missing], self.dims.extents()].concat()
    }

    /// Whether the samples' axis lies before axis `to` of the extents aligned to `rank`, or all samples share the value.
    pub(super) fn is_at(&self, to: usize, rank: usize) -> bool {
        let missing = rank.saturating_sub(self.rank());
        self.at.is_none_or(|at| is_same(&self.aligned(rank), at + missing, to))
    }
}

impl Samples<'_> {
    /// Each sample's own value, in whatever extents, the samples' axis before axis `to`.
    pub(super) fn ordered(&mut self, own: Own, to: usize) -> Result<Value> {
        let (extents, count) = (own.dims.extents(), self.count);
        let parts = |from: usize, to: usize| extents.get(from..to).map_or(1, elements);
        let Some(at) = own.at else {
            let (before, behind) = (parts(0, to), parts(to, extents.len()));
            let one = self.shaped(own.value, &[before, 1, behind])?;
            let name = self.name_beside();
            return self.all.broadcast_to(&name, one, &[before, count, behind].map(Dim::Fixed));
        };
        if is_same(extents, at, to) {
            return Ok(own.value);
        }
        let (low, high) = (at.min(to), at.max(to));
        let (before, between, behind) = (parts(0, low), parts(low, high), parts(high, extents.len()));
        let middle = if at > to { [between, count] } else { [count, between] };
        let apart = self.shaped(own.value, &[before, middle[0], middle[1], behind])?;
        let name = self.name_beside();
        self.all.transpose(&name, apart, &[0, 2, 1, 3])
    }

    /// The value with the samples one behind the other along axis `to`; a value without axes gets one.
    pub(super) fn merged(&mut self, own: Own, to: usize) -> Result<Value> {
        let value = self.ordered(own, to)?;
        self.shaped(value, &grown(own.dims.extents(), to, self.count))
    }

    /// The value with an axis of the samples before axis `to`.
    pub(super) fn apart(&mut self, own: Own, to: usize) -> Result<Value> {
        let value = self.ordered(own, to)?;
        self.shaped(value, &inserted(own.dims.extents(), to, self.count))
    }

    /// A value of broadcasting operands, whose extents are aligned at the last of `rank` axes: with the samples along axis
    /// `to` of these. What all samples share stays as it is.
    pub(super) fn merged_aligned(&mut self, own: Own, to: usize, rank: usize) -> Result<Value> {
        if own.at.is_none() {
            return Ok(own.value);
        }
        let missing = rank.saturating_sub(own.rank());
        let value = self.ordered(own, to.saturating_sub(missing))?;
        let extents = grown(&own.aligned(rank), to, self.count);
        self.shaped(value, if to < missing { &extents } else { extents.get(missing..).unwrap_or_default() })
    }

    /// [`Samples::merged_aligned`] with an axis of the samples before axis `to`.
    pub(super) fn apart_aligned(&mut self, own: Own, to: usize, rank: usize) -> Result<Value> {
        let missing = rank.saturating_sub(own.rank());
        if own.at.is_none() {
            return match to > missing {
                true => self.shaped(own.value, &inserted(own.dims.extents(), to - missing, 1)),
                false => Ok(own.value),
            };
        }
        let value = self.ordered(own, to.saturating_sub(missing))?;
        let extents = inserted(&own.aligned(rank), to, self.count);
        self.shaped(value, extents.get(missing.min(to)..).unwrap_or_default())
    }

    /// Whether a value of `rank` axes may have one more.
    pub(super) fn has_room(rank: usize) -> bool {
        rank < MAX_RANK
    }

    /// The dimensions of one sample's output of the current node.
    pub(super) fn output_dims(&self, node: &super::Node) -> Result<Dims> {
        let output = node.outputs.first().copied();
        let output =
            output.ok_or_else(|| Error::Internal(format!("node {:?} without outputs", node.name)))?;
        self.one.info(output).map(|info| info.dims)
    }
}
