//! What the kernels of `reduce` are given.

use super::Reduction;
use crate::emit::Value;
use crate::ops::kernel::Constants;

/// The constants that say what many elements become.
pub(super) fn constants(reduction: Reduction) -> Constants {
    let one_of = |reductions: &[Reduction]| Value::U32(u32::from(reductions.contains(&reduction)));
    vec![
        ("ADDS", one_of(&[Reduction::Sum, Reduction::Mean])),
        ("MULTIPLIES", one_of(&[Reduction::Product])),
        ("LARGEST", one_of(&[Reduction::Max, Reduction::Any])),
        ("LOGICAL", one_of(&[Reduction::Any, Reduction::All])),
        ("DIVIDES", one_of(&[Reduction::Mean])),
    ]
}
