//! Axes in another order, backwards, or several times.

use super::{Move, Moved, check_rank, product};
use crate::dims::{Dim, Dims};
use crate::error::{Error, Result};
use crate::ops::remap::axes::{self, Axis, Rule};
use std::collections::BTreeMap;

/// The axes in another order: axis `i` of the result is axis `permutation[i]` of the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transpose {
    /// Each axis of the source once.
    pub permutation: Vec<usize>,
}

impl Move for Transpose {
    const NAME: &'static str = "transpose";

    fn moved(&self, source: Dims, _dimensions: &BTreeMap<String, usize>) -> Result<Moved> {
        check_rank(Self::NAME, "axes", self.permutation.len(), source)?;
        let mut seen = vec![false; source.rank()];
        for &axis in &self.permutation {
            if seen.get(axis) != Some(&false) {
                let found = format!("permutation {:?} of {source}", self.permutation);
                return Err(Error::shape(Self::NAME, found, "each axis once"));
            }
            seen[axis] = true;
        }
        let whole = axes::whole(source);
        let axes: Vec<Axis> = self.permutation.iter().map(|&axis| whole[axis]).collect();
        let extents: Vec<usize> = axes.iter().map(|axis| axis.extent).collect();
        Ok(Moved::within(Dims::new(&extents)?, axes))
    }
}

/// Some axes backwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reverse {
    /// The axes; negative ones count from the last.
    pub axes: Vec<isize>,
}

impl Move for Reverse {
    const NAME: &'static str = "reverse";

    fn moved(&self, source: Dims, _dimensions: &BTreeMap<String, usize>) -> Result<Moved> {
        let mut axes = axes::whole(source);
        let mut seen = vec![false; source.rank()];
        for &axis in &self.axes {
            let at = source.axis(Self::NAME, axis)?;
            if std::mem::replace(&mut seen[at], true) {
                let found = format!("axes {:?} of {source}", self.axes);
                return Err(Error::shape(Self::NAME, found, "each axis once at most"));
            }
            axes[at].start = axes[at].extent as isize - 1;
            axes[at].step = -1;
        }
        Ok(Moved::within(source, axes))
    }
}

/// The source several times along each axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tile {
    /// How often along each axis, 1 at least.
    pub repeats: Vec<usize>,
}

impl Move for Tile {
    const NAME: &'static str = "tile";

    fn moved(&self, source: Dims, _dimensions: &BTreeMap<String, usize>) -> Result<Moved> {
        check_rank(Self::NAME, "repeats", self.repeats.len(), source)?;
        let mut axes = axes::whole(source);
        for (axis, &repeats) in axes.iter_mut().zip(&self.repeats) {
            axis.extent = product(Self::NAME, axis.extent, repeats)?;
        }
        let extents: Vec<usize> = axes.iter().map(|axis| axis.extent).collect();
        Ok(Moved { target: Dims::new(&extents)?, axes, rule: Rule::Wrap })
    }
}

/// A broadcast: axes of one element are repeated, and axes are added in front.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BroadcastTo {
    /// The extents of the result. [`Dim::Rest`] stands for the source's own.
    pub target: Vec<Dim>,
}

impl Move for BroadcastTo {
    const NAME: &'static str = "broadcast_to";

    fn moved(&self, source: Dims, dimensions: &BTreeMap<String, usize>) -> Result<Moved> {
        let told = self.target.iter().map(Dim::to_string).collect::<Vec<_>>().join(" ");
        let refused = || {
            let wanted = "the source's extents behind others, of which those of 1 may be any";
            Error::shape(Self::NAME, format!("{source} to {told}"), wanted)
        };
        let added = self.target.len().checked_sub(source.rank()).ok_or_else(refused)?;
        let whole = axes::whole(source);
        let mut axes = Vec::with_capacity(self.target.len());
        for (index, dim) in self.target.iter().enumerate() {
            let own = index.checked_sub(added).map(|index| whole[index]);
            let axis = own.unwrap_or(Axis::whole(1, source.elements()));
            let extent = dim.resolved(dimensions).map_err(|_| refused())?.unwrap_or(axis.extent);
            if extent != axis.extent && axis.extent != 1 {
                return Err(refused());
            }
            axes.push(if extent == axis.extent { axis } else { Axis { extent, step: 0, ..axis } });
        }
        let extents: Vec<usize> = axes.iter().map(|axis| axis.extent).collect();
        Ok(Moved::within(Dims::new(&extents)?, axes))
    }
}
