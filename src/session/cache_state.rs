//! What a session knows of its caches: how many places are filled, and what the next run adds.

use super::caches::Caches;
use super::input::FedInput;
use crate::alloc;
use crate::dims::Dims;
use crate::error::{Error, Result, Setting};
use crate::host::HostTensor;
use crate::source::{Caching, Filling, OpenInput};
use crate::word;
use std::ops::Range;

/// What a session may be asked for and does not have.
pub(super) const CACHE: &str = "a cache between runs";

/// The name by which a plan knows that a run takes an input from the one before.
pub(super) fn fed_by_last(input: &str) -> String {
    format!("(fed) {input}")
}

/// The caches of a session.
#[derive(Debug)]
pub(super) struct CacheState {
    pub(super) caches: Caches,
    pub(super) grown: Vec<(String, usize)>,
    /// How runs fill them behind the first one.
    pub(super) filling: Filling,
    /// How many places the runs have filled.
    pub(super) filled: usize,
    /// Whether there was a run.
    pub(super) ran: bool,
    /// How many the last planned run adds.
    pub(super) adds: usize,
    /// The masks of the run that begins, and how many places each has.
    pub(super) masks: Vec<(String, usize)>,
    /// The extents of a feature map of each cache in the first run, places left out.
    pub(super) held: Vec<Vec<usize>>,
}

impl CacheState {
    /// How the next run fills them.
    pub(super) fn way(&self) -> Filling {
        match self.filling {
            Filling::Whole => Filling::Whole,
            _ if self.filled == 0 => Filling::First,
            way => way,
        }
    }

    pub(super) fn caching(&self) -> Caching<'_> {
        Caching { pairs: &self.caches.pairs, places: self.caches.places, grown: &self.grown, way: self.way() }
    }

    pub(super) fn has_input(&self, name: &str) -> bool {
        self.caches.pairs.iter().any(|(_, input)| input == name)
    }

    /// Whether a run that is not given this input takes what the run before has left.
    pub(super) fn has_fed(&self, name: &str) -> bool {
        self.caches.fed.iter().any(|(_, input)| input == name)
    }

    pub(super) fn has_output(&self, name: &str) -> bool {
        self.caches.pairs.iter().any(|(output, _)| output == name)
    }

    /// How many places the masks of the run that begins have more than the runs before: one where there are no masks.
    pub(super) fn more(&self, given: &[FedInput<'_>]) -> usize {
        let extents = self.grown.iter().filter_map(|(name, axis)| {
            let own = given.iter().find(|given| *given.name == *name)?;
            own.dims.extents().get(*axis)?.checked_sub(self.filled)
        });
        extents.max().filter(|more| (1..self.caches.places).contains(more)).unwrap_or(1)
    }

    /// The dimensions of a cache in the next run, which adds so many places.
    pub(super) fn dims(&self, own: &OpenInput, known: &[(&str, usize)], adds: usize) -> Result<Dims> {
        let extents = own.extents.as_deref().unwrap_or_default();
        let places = extents.len().wrapping_sub(2);
        let shown = match self.way() {
            Filling::First => 0,
            Filling::Next | Filling::Apart => self.caches.places - adds,
            Filling::Whole => self.caches.places,
        };
        let mut dims = Vec::with_capacity(extents.len());
        for (axis, extent) in extents.iter().enumerate() {
            let name = own.open.iter().find(|open| open.axis == axis).map(|open| open.name.as_str());
            let known =
                name.and_then(|name| known.iter().find(|(own, _)| *own == name)).map(|(_, extent)| *extent);
            let extent = match (axis == places, extent, known, axis) {
                (true, ..) => shown,
                (false, Some(extent), ..) => *extent,
                (false, None, Some(known), _) => known,
                (false, None, None, 0) => 1,
                (false, None, None, _) => {
                    let name = name.unwrap_or_default();
                    let found = format!("an axis {axis}, {name:?}, whose extent no input says");
                    let error = Error::input(format!("cache {:?}", own.name), found, "a fixed one");
                    return Err(error.with_setting(Setting::Dimension(name.to_owned())));
                }
            };
            dims.push(extent);
        }
        Dims::new(&dims)
    }
}

/// A tensor with zeros behind its elements along an axis.
pub(super) fn extended(tensor: &HostTensor, axis: usize, extent: usize) -> Result<HostTensor> {
    let (own, dtype) = (tensor.dims(), tensor.dtype());
    let mut extents = own.extents().to_vec();
    let before = std::mem::replace(&mut extents[axis], extent);
    let inner: usize = extents[axis + 1..].iter().product::<usize>() * dtype.word().words();
    let dims = Dims::new(&extents)?;
    let mut words = alloc::zeros(dims.elements() * dtype.word().words(), "a mask")?;
    let given = tensor.words()?;
    for (to, from) in words.chunks_mut((extent * inner).max(1)).zip(given.chunks((before * inner).max(1))) {
        to[..from.len()].copy_from_slice(from);
    }
    word::to_tensor(dims, dtype, dtype.word(), &words)
}

/// A tensor whose `count` elements from `first` on along an axis are the last ones, and zeros in between.
pub(super) fn moved_behind(
    tensor: &HostTensor,
    axis: usize,
    first: usize,
    count: usize,
) -> Result<HostTensor> {
    let (dims, dtype) = (tensor.dims(), tensor.dtype());
    let inner: usize = dims.extents()[axis + 1..].iter().product::<usize>() * dtype.word().words();
    let mut words = tensor.words()?.into_owned();
    let (begin, end) = (first * inner, (first + count) * inner);
    for row in words.chunks_mut((dims.extents()[axis] * inner).max(1)).filter(|row| row.len() >= end) {
        let to = row.len() - (end - begin);
        row.copy_within(begin..end, to);
        row[begin..to].fill(0.0);
    }
    word::to_tensor(dims, dtype, dtype.word(), &words)
}

/// Where some places of a cache of `whole` places lie, in ranges of its `words`; nothing of what is no such cache.
pub(super) fn rows_of(
    dims: Dims,
    whole: usize,
    places: &Range<usize>,
    words: usize,
) -> impl Iterator<Item = Range<usize>> {
    let own = dims.extents().iter().rev().nth(1).is_some_and(|&own| own == whole);
    let places = Some(places.clone()).filter(|places| own && !places.is_empty());
    let outer: usize = dims.extents().iter().rev().skip(2).product();
    let each = words.checked_div(outer * whole).unwrap_or(0);
    let rows =
        places.into_iter().flat_map(move |places| (0..outer).map(move |row| (row * whole, places.clone())));
    rows.map(move |(row, places)| (row + places.start) * each..(row + places.end) * each)
}
