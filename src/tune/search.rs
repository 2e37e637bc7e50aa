//! Which candidates are tried.

use super::bench::Bench;
use super::generators::tflite_exhaustive;
use crate::error::Result;
use crate::limits::Limits;
use crate::ops::Choice;
use std::collections::HashSet;
use std::time::Duration;

/// Aligned sizes at most: a grid with many divisors has millions.
const MAX_ALIGNED: usize = 2048;

/// How widely to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Search {
    /// Only the default is checked and timed.
    Table,
    /// Every (variant, tile) with a handful of work-groups.
    Fast,
    /// Every (variant, tile) with every work-group of the generator.
    Exhaustive,
    /// The candidates of the exhaustive search that can be timed within this time, the promising ones first: a Gaussian
    /// process over the times so far chooses the next one.
    Budget(Duration),
}

/// Work-groups for a grid on a device.
pub type WorkGroups = fn(grid: [u32; 3], limits: &Limits) -> Vec<[u32; 3]>;

/// The least invocations of a work-group that the generators here make, where the grid has as many.
const MIN_INVOCATIONS: u64 = 8;

/// A handful of shapes: rows, squares and columns of 64 and 256 invocations, cut to the grid and
/// the limits.
pub fn handful(grid: [u32; 3], limits: &Limits) -> Vec<[u32; 3]> {
    let shapes = [
        [64, 1, 1],
        [256, 1, 1],
        [8, 8, 1],
        [16, 16, 1],
        [32, 8, 1],
        [8, 4, 8],
        [4, 4, 4],
        [1, 8, 8],
        [1, 1, 64],
    ];
    let mut seen = HashSet::new();
    shapes.into_iter().map(|shape| cut(shape, grid, limits)).filter(|shape| seen.insert(*shape)).collect()
}

/// `shape` with no axis longer than the grid's, rounded up to a power of two, or than the limits.
fn cut(shape: [u32; 3], grid: [u32; 3], limits: &Limits) -> [u32; 3] {
    let longest = longest(grid, limits);
    super::work_group::shrink(std::array::from_fn(|axis| shape[axis].min(longest[axis])), limits)
}

fn longest(grid: [u32; 3], limits: &Limits) -> [u32; 3] {
    std::array::from_fn(|axis| {
        let covering = grid[axis].clamp(1, 1 << 16).next_power_of_two();
        covering.min(limits.max_work_group[axis].max(1))
    })
}

/// Every box of powers of two up to the grid and the limits, of at least 8 invocations where the
/// grid has as many, then TensorFlow Lite's aligned sizes ([`tflite_exhaustive::aligned`]).
pub fn boxes(grid: [u32; 3], limits: &Limits) -> Vec<[u32; 3]> {
    let longest = longest(grid, limits);
    let total = |size: [u32; 3]| size.into_iter().map(u64::from).product::<u64>();
    let allowed = MIN_INVOCATIONS.min(total(longest))..=u64::from(limits.max_invocations);
    let powers =
        |axis: usize| (0..32).map(|power| 1u32 << power).take_while(move |&size| size <= longest[axis]);
    let powers_of_two =
        powers(0).flat_map(|x| powers(1).flat_map(move |y| powers(2).map(move |z| [x, y, z])));
    let aligned = tflite_exhaustive::aligned(grid, limits.into()).take(MAX_ALIGNED);
    let mut seen = HashSet::new();
    powers_of_two
        .filter(|size| allowed.contains(&total(*size)))
        .chain(aligned)
        .filter(|size| seen.insert(*size))
        .collect()
}

/// The candidates of a search: the default first, then the warm ones, then the others, no choice
/// twice.
///
/// Each (variant, tile) has the table's work-group, whether it fits or not, so that a tile that
/// cannot run at all is reported with its reason. A generator's sizes are guesses: those that do not
/// fit are left out.
///
/// # Errors
/// If the problem has no default.
pub(super) fn candidates(
    bench: &dyn Bench,
    search: Search,
    warm: &[Choice],
    fast: WorkGroups,
    exhaustive: WorkGroups,
) -> Result<Vec<Choice>> {
    let mut list = vec![bench.default_choice()?];
    list.extend_from_slice(warm);
    let generator = match search {
        Search::Table => None,
        Search::Fast => Some(fast),
        Search::Exhaustive | Search::Budget(_) => Some(exhaustive),
    };
    if let Some(generator) = generator {
        let choice =
            |variant, tile, work_group| Choice::new(variant, tile, work_group).with_layout(bench.layout());
        for (variant, tile) in bench.space() {
            list.push(choice(variant, tile, bench.table(variant, tile)));
            let mut guesses = bench.work_groups(variant, tile);
            if guesses.is_empty() {
                guesses = generator(bench.grid(variant, tile), bench.limits());
            }
            let guesses = guesses.into_iter().map(|work_group| choice(variant, tile, work_group));
            list.extend(guesses.filter(|choice| bench.fits(choice).is_ok()));
        }
    }
    let mut seen = HashSet::new();
    list.retain(|choice| seen.insert(*choice));
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_keep_the_limits_and_hold_powers_and_divisors() {
        let limits = Limits::webgpu();
        let sizes = boxes([9, 9, 256], &limits);
        let total = |size: &[u32; 3]| size.iter().product::<u32>();
        assert!(sizes.iter().all(|size| (8..=256).contains(&total(size)) && size[2] <= 64), "{sizes:?}");
        for wanted in [[8, 4, 8], [9, 9, 2], [16, 16, 1], [1, 1, 64], [3, 9, 8]] {
            assert!(sizes.contains(&wanted), "{wanted:?}");
        }
        assert!(!sizes.contains(&[32, 1, 1]), "twice beyond the grid");
        let mut unique = sizes.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), sizes.len());
    }

    #[test]
    fn a_grid_of_one_has_one_work_group() {
        assert_eq!(boxes([1, 1, 1], &Limits::webgpu()), [[1, 1, 1]]);
        assert_eq!(handful([1, 1, 1], &Limits::webgpu()), [[1, 1, 1]]);
    }
}
