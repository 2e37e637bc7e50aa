//! Axes as they are given, and as kernels loop over them.

use crate::dims::{Dims, MAX_RANK};
use crate::error::{Error, Result};

/// Which axes of a tensor of `rank` are named in `axes`: negative ones are counted from the end, and one may be
/// named more than once.
pub(in crate::ops) fn named(op: &'static str, axes: &[isize], rank: usize) -> Result<[bool; MAX_RANK]> {
    let mut named = [false; MAX_RANK];
    for &axis in axes {
        let place = if axis < 0 { rank.checked_add_signed(axis) } else { usize::try_from(axis).ok() };
        match place.filter(|&place| place < rank).and_then(|place| named.get_mut(place)) {
            Some(slot) => *slot = true,
            None => {
                let wanted = format!("an axis from -{rank} to {rank}, {rank} excluded");
                return Err(Error::shape(op, format!("axis {axis} of rank {rank}"), wanted));
            }
        }
    }
    Ok(named)
}

/// Extents before, along and behind one axis of a tensor.
pub(in crate::ops) fn around(dims: &Dims, axis: usize) -> [usize; 3] {
    let product = |extents: &[usize]| extents.iter().product();
    let extents = dims.extents();
    [
        product(&extents[..axis]),
        extents.get(axis).copied().unwrap_or(1),
        product(&extents[(axis + 1).min(extents.len())..]),
    ]
}

/// Neighbouring axes that are looped over as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::ops) struct Axis {
    pub(in crate::ops) extent: usize,
    /// Elements from one to the next.
    pub(in crate::ops) step: usize,
}

impl Axis {
    const ONE: Axis = Axis { extent: 1, step: 0 };
}

/// Axes as few as they can be, the last ones of each kind last, with extents of 1 before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ops) struct Merged {
    /// Those that stay.
    pub(in crate::ops) kept: [Axis; 3],
    /// Those that are reduced.
    pub(in crate::ops) reduced: [Axis; 3],
}

impl Merged {
    /// Of rows of `dims`, the axes that `reduced` names being reduced: of six axes at most three of each kind do
    /// not touch.
    pub(in crate::ops) fn of(dims: &Dims, reduced: [bool; MAX_RANK]) -> Self {
        let mut merged = Merged { kept: [Axis::ONE; 3], reduced: [Axis::ONE; 3] };
        let (mut step, mut last) = (1, None);
        for (&extent, &is_reduced) in dims.extents().iter().zip(&reduced).rev() {
            if extent == 1 {
                continue;
            }
            let axes = if is_reduced { &mut merged.reduced } else { &mut merged.kept };
            if last == Some(is_reduced) {
                if let Some(axis) = axes.iter_mut().find(|axis| axis.step != 0) {
                    axis.extent *= extent;
                }
            } else if let Some(axis) = axes.iter_mut().rev().find(|axis| axis.step == 0) {
                *axis = Axis { extent, step };
            }
            last = Some(is_reduced);
            step *= extent;
        }
        merged
    }

    /// How many elements become one.
    pub(in crate::ops) fn count(&self) -> usize {
        self.reduced.iter().map(|axis| axis.extent).product()
    }

    /// How many ones there are.
    pub(in crate::ops) fn outputs(&self) -> usize {
        self.kept.iter().map(|axis| axis.extent).product()
    }
}

/// The element that is number `index` of `axes`, counted from the first, the last axis fastest.
pub(in crate::ops) fn place(axes: &[Axis; 3], index: usize) -> usize {
    let [a, b, c] = axes;
    index % c.extent * c.step + index / c.extent % b.extent * b.step + index / (c.extent * b.extent) * a.step
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes(axes: [(usize, usize); 3]) -> [Axis; 3] {
        axes.map(|(extent, step)| Axis { extent, step })
    }

    #[test]
    fn neighbours_of_a_kind_are_one_axis() {
        let dims = Dims::new(&[2, 3, 4, 5]).expect("small");
        let merged = Merged::of(&dims, named("reduce", &[1, -2, 1], 4).expect("axes"));
        assert_eq!(merged.reduced, axes([(1, 0), (1, 0), (12, 5)]));
        assert_eq!(merged.kept, axes([(1, 0), (2, 60), (5, 1)]));
        assert_eq!((merged.count(), merged.outputs()), (12, 10));
        // An axis of one element parts nothing.
        let dims = Dims::new(&[7, 1, 3]).expect("small");
        let merged = Merged::of(&dims, named("reduce", &[0, 2], 3).expect("axes"));
        assert_eq!(merged.reduced, axes([(1, 0), (1, 0), (21, 1)]));
        let dims = Dims::new(&[2, 3, 4, 5, 6, 7]).expect("small");
        let merged = Merged::of(&dims, named("reduce", &[0, 2, 4], 6).expect("axes"));
        assert_eq!(merged.reduced, axes([(2, 2520), (4, 210), (6, 7)]));
        assert_eq!(merged.kept, axes([(3, 840), (5, 42), (7, 1)]));
        let all: Vec<usize> = (0..merged.outputs())
            .flat_map(|out| (0..merged.count()).map(move |at| (out, at)))
            .map(|(out, at)| place(&merged.kept, out) + place(&merged.reduced, at))
            .collect();
        let mut sorted = all.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..5040).collect::<Vec<_>>());
        assert_eq!((all[1], all[6], all[24]), (7, 210, 2520));
    }

    #[test]
    fn axes_beyond_the_rank_are_refused() {
        for axis in [3, -4, isize::MIN, isize::MAX] {
            let error = named("reduce", &[0, axis], 3).expect_err("beyond").to_string();
            assert!(error.contains(&format!("axis {axis} of rank 3")), "{error}");
        }
        assert!(named("reduce", &[0], 0).is_err());
        assert_eq!(around(&Dims::new(&[2, 3, 4, 5]).expect("small"), 2), [6, 4, 5]);
        assert_eq!(around(&Dims::new(&[7]).expect("small"), 0), [1, 7, 1]);
    }
}
