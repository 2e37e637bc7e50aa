//! The pixels of a feature map, some axes of which are reduced.

use crate::dims::{Dims, MAX_RANK};

/// Batch, height and width of a feature map, as kernels loop over them.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct Pixels {
    /// Extents of those that stay, 1 in place of the others.
    pub(in crate::ops) kept: [usize; 3],
    /// Extents of those that are reduced, 1 in place of the others.
    pub(in crate::ops) reduced: [usize; 3],
}

impl Pixels {
    /// The pixels of a map of `dims`, of which the axes that `reduced` names are reduced; the channels stay.
    pub(in crate::ops) fn of(dims: &Dims, reduced: [bool; MAX_RANK]) -> Self {
        let shape = dims.shape();
        let extents = [shape.n, shape.h, shape.w];
        let missing = 4 - dims.rank().min(4);
        let is_reduced = |axis: usize| axis >= missing && reduced[axis - missing];
        let of =
            |wanted| std::array::from_fn(|axis| if is_reduced(axis) == wanted { extents[axis] } else { 1 });
        Pixels { kept: of(false), reduced: of(true) }
    }

    /// Whether what becomes one lies side by side: all of height and width of one map.
    pub(in crate::ops) fn whole(&self) -> bool {
        self.reduced[0] == 1 && self.kept[1] == 1 && self.kept[2] == 1
    }

    /// How many remain.
    pub(in crate::ops) fn outputs(&self) -> usize {
        self.kept.iter().product()
    }
}

/// Why the axes of a tensor that `reduced` names cannot be reduced in a feature map, if they cannot.
pub(in crate::ops) fn obstacle(dims: &Dims, reduced: [bool; MAX_RANK]) -> Option<String> {
    match dims.rank() {
        rank @ (0 | 5..) => Some(format!("rank {rank}, feature maps have 1 to 4")),
        rank if reduced[rank - 1] => Some("the channels are reduced, in maps they stay".to_owned()),
        _ => None,
    }
}
