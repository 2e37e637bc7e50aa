//! TensorFlow Lite's `EXHAUSTIVE` rules: every work-group that divides the grid, or nearly.
//!
//! Source: `GenerateWorkGroupSizes`, `AddCornerCases` and the divisor lists of
//! `delegates/gpu/common/workgroup_selection.cc` (TensorFlow commit b5d2374f5e21 has the two
//! alignments). x is the outermost loop and z the innermost.

use super::{Bounds, divisors, invocations};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Fewer invocations than this are not worth a work-group, unless nothing else fits.
const MIN_SIZE: u128 = 32;

/// An unaligned work-group covers at most so many invocations more than the grid, along each axis.
const SLACK: u64 = 5;

/// The most parts, and the largest extent, that the corner cases try along each axis.
const CORNER: u32 = 4;

/// How a work-group must cover the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Alignment {
    /// Whole work-groups make up the grid exactly: for kernels that do not check the edge.
    Precise,
    /// Whole work-groups may reach a little beyond the grid.
    Free,
}

/// Work-groups that divide the grid along every axis, of 32 to `bounds.max_size` invocations.
///
/// Where there is none, the corner cases: first the grid cut into 1 to 4 parts along each axis,
/// then every size of up to 4 along each axis, both only where they divide the grid and keep the
/// bounds. Corner cases come more than once, as in the source; (1,1,1) is always among them.
pub fn aligned(grid: [u32; 3], bounds: Bounds) -> impl Iterator<Item = [u32; 3]> {
    generate(grid, bounds, Alignment::Precise)
}

/// Work-groups some multiple of which lies within 5 above the grid, along every axis, of 32 to
/// `bounds.max_size` invocations.
///
/// The sizes along an axis are in rising order. Where no work-group has 32 invocations, the corner
/// cases of [`aligned`], whether they divide the grid or not.
pub fn unaligned(grid: [u32; 3], bounds: Bounds) -> impl Iterator<Item = [u32; 3]> {
    generate(grid, bounds, Alignment::Free)
}

/// Lazy, because a huge grid with huge bounds has more work-groups than memory holds.
fn generate(grid: [u32; 3], bounds: Bounds, alignment: Alignment) -> impl Iterator<Item = [u32; 3]> {
    let [xs, ys, zs]: [Arc<[u32]>; 3] = std::array::from_fn(|axis| {
        let sizes = match alignment {
            _ if grid.contains(&0) => Vec::new(),
            Alignment::Precise => divisors(grid[axis]),
            Alignment::Free => near_divisors(grid[axis]),
        };
        // What is too long alone is too large with others: this keeps the loops short.
        let most = bounds.max_dims[axis].min(bounds.max_size);
        sizes.into_iter().filter(|&size| size <= most).collect()
    });
    let fits = move |size: &[u32; 3]| invocations(*size) >= MIN_SIZE && bounds.hold(*size);
    let mut sizes = product(xs, ys, zs, bounds.max_size).filter(fits).peekable();
    let corners = if sizes.peek().is_none() { corner_cases(grid, bounds, alignment) } else { Vec::new() };
    sizes.chain(corners)
}

/// Every (x, y, z), leaving out whole rows whose x and y are too large together.
fn product(xs: Arc<[u32]>, ys: Arc<[u32]>, zs: Arc<[u32]>, max_size: u32) -> impl Iterator<Item = [u32; 3]> {
    let list = |sizes: &Arc<[u32]>| {
        let sizes = Arc::clone(sizes);
        (0..sizes.len()).filter_map(move |index| sizes.get(index).copied())
    };
    list(&xs).flat_map(move |x| {
        let zs = Arc::clone(&zs);
        list(&ys)
            .filter(move |&y| u64::from(x) * u64::from(y) <= u64::from(max_size))
            .flat_map(move |y| list(&zs).map(move |z| [x, y, z]))
    })
}

/// The numbers that have a multiple from `number` to `number + 5`, in rising order. None of 0.
fn near_divisors(number: u32) -> Vec<u32> {
    let first = u64::from(number);
    let last = first + SLACK;
    let mut sizes = BTreeSet::new();
    if number > 0 {
        for small in 1..=last.isqrt() {
            let mut multiple = first.next_multiple_of(small);
            while multiple <= last {
                sizes.extend([small, multiple / small]);
                multiple += small;
            }
        }
    }
    sizes.into_iter().filter_map(|size| u32::try_from(size).ok()).collect()
}

fn corner_cases(grid: [u32; 3], bounds: Bounds, alignment: Alignment) -> Vec<[u32; 3]> {
    if grid.contains(&0) {
        return Vec::new();
    }
    let covers = |size: [u32; 3]| match alignment {
        Alignment::Precise => size.iter().zip(grid).all(|(&extent, whole)| whole.is_multiple_of(extent)),
        Alignment::Free => true,
    };
    let corners =
        || (1..=CORNER).flat_map(|x| (1..=CORNER).flat_map(move |y| (1..=CORNER).map(move |z| [x, y, z])));
    let parts = corners().map(|parts| std::array::from_fn(|axis| grid[axis].div_ceil(parts[axis])));
    parts.chain(corners()).filter(|&size| bounds.hold(size) && covers(size)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: [u32; 3] = [256; 3];

    fn bounds(max_size: u32, max_dims: [u32; 3]) -> Bounds {
        Bounds { max_size, max_dims }
    }

    fn aligned_to(grid: [u32; 3], max_size: u32, max_dims: [u32; 3]) -> Vec<[u32; 3]> {
        aligned(grid, bounds(max_size, max_dims)).collect()
    }

    fn near(grid: [u32; 3], max_size: u32) -> Vec<[u32; 3]> {
        unaligned(grid, bounds(max_size, WIDE)).collect()
    }

    #[test]
    fn aligned_sizes_are_the_divisors_in_the_sources_order() {
        // x from [1, 4, 2], y from [1, 6, 2, 3], z from [1, 4, 2]; 32 to 64 in all.
        // x = 1: at most 1 * 6 * 4 = 24. x = 4: y = 1 gives at most 16; y = 6 gives 24, 96, 48;
        // y = 2 gives 8, 32, 16; y = 3 gives 12, 48, 24. x = 2: y = 6 gives 12, 48, 24; the others
        // at most 2 * 3 * 4 = 24.
        let wanted = [[4, 6, 2], [4, 2, 4], [4, 3, 4], [2, 6, 4]];
        assert_eq!(aligned_to([4, 6, 4], 64, WIDE), wanted);
        // With at most 3 along y the sizes with y = 6 go.
        assert_eq!(aligned_to([4, 6, 4], 64, [256, 3, 256]), [[4, 2, 4], [4, 3, 4]]);
    }

    #[test]
    fn the_bounds_are_inclusive() {
        // x from [1, 64, 2, 32, 4, 16, 8].
        assert_eq!(aligned_to([64, 1, 1], 64, WIDE), [[64, 1, 1], [32, 1, 1]]);
        assert_eq!(aligned_to([64, 1, 1], 63, WIDE), [[32, 1, 1]]);
        assert_eq!(aligned_to([64, 1, 1], 64, [32, 1, 1]), [[32, 1, 1]]);
    }

    #[test]
    fn small_grids_get_corner_cases_with_repeats() {
        // First the grid in parts: ceil(2 / 1..=4) = 2, 1, 1, 1 along x, and 1 always along y and z:
        // 16 times (2,1,1), 48 times (1,1,1). Then 1..=4 along x where it divides 2, in order.
        let mut wanted = vec![[2, 1, 1]; 16];
        wanted.extend([[1, 1, 1]; 48]);
        wanted.extend([[1, 1, 1], [2, 1, 1]]);
        assert_eq!(aligned_to([2, 1, 1], 256, WIDE), wanted);
        // ceil(5 / 1..=4) = 5, 3, 2, 2, of which only 5 divides 5; then only 1 does.
        let mut wanted = vec![[5, 1, 1]; 16];
        wanted.push([1, 1, 1]);
        assert_eq!(aligned_to([5, 1, 1], 256, WIDE), wanted);
        // At most 4 along x leaves nothing of the parts.
        assert_eq!(aligned_to([5, 1, 1], 256, [4, 4, 4]), [[1, 1, 1]]);
    }

    #[test]
    fn a_low_maximum_leads_to_corner_cases_too() {
        // Nothing has 32 to 3 invocations. No part of 64 is 3 or smaller. Of 1..=4 along x 1, 2 and 4
        // divide 64, and 4 is too many.
        assert_eq!(aligned_to([64, 1, 1], 3, WIDE), [[1, 1, 1], [2, 1, 1]]);
        assert_eq!(aligned_to([64, 1, 1], 0, WIDE), [[0; 3]; 0]);
    }

    #[test]
    fn near_divisors_reach_5_beyond_the_grid() {
        // Multiples from 9 to 14: 1 (9), 2 (10), 3 (9), 4 (12), 5 (10), 6 (12), 7 (14), 9 to 14
        // themselves. 8 has none: 8 is below and 16 beyond.
        assert_eq!(near_divisors(9), [1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14]);
        assert_eq!(near_divisors(1), [1, 2, 3, 4, 5, 6]);
        assert!(near_divisors(0).is_empty());
        for number in 1..200 {
            let has_multiple = |size: &u32| (number..=number + 5).any(|multiple| multiple % size == 0);
            let wanted: Vec<u32> = (1..=number + 5).filter(has_multiple).collect();
            assert_eq!(near_divisors(number), wanted, "{number}");
        }
    }

    #[test]
    fn unaligned_sizes_need_not_divide_the_grid() {
        // 1 to 6 along each axis; exactly 32 are powers of two only: 2 * 4 * 4.
        assert_eq!(near([1, 1, 1], 32), [[2, 4, 4], [4, 2, 4], [4, 4, 2]]);
    }

    #[test]
    fn unaligned_corner_cases_need_not_divide_either() {
        // Parts of 5 along x are 5, 3, 2, 2, each 16 times, of 1 along y and z always 1. Then all of
        // 1..=4 along each axis with at most 16: 16 with x = 1 (y z up to 16), 12 with x = 2 (up to
        // 8: 4 + 4 + 2 + 2), 8 with x = 3 (up to 5: 4 + 2 + 1 + 1), 8 with x = 4 (up to 4).
        let sizes = near([5, 1, 1], 16);
        assert_eq!(sizes.len(), 64 + 44);
        let parts: Vec<u32> = sizes.iter().step_by(16).take(4).map(|size| size[0]).collect();
        assert_eq!(parts, [5, 3, 2, 2]);
        assert_eq!((sizes[64], sizes[107]), ([1, 1, 1], [4, 4, 1]));
    }

    #[test]
    fn empty_grids_have_no_sizes() {
        for grid in [[0, 4, 4], [4, 0, 4], [4, 4, 0], [0; 3]] {
            assert!(aligned_to(grid, 256, WIDE).is_empty() && near(grid, 256).is_empty(), "{grid:?}");
        }
    }

    #[test]
    fn huge_grids_and_bounds_neither_hang_nor_overflow() {
        let all = bounds(u32::MAX, [u32::MAX; 3]);
        // 2^32 - 1 alone along z is the first: x = 1, y = 1, z from [1, 2^32 - 1, ...].
        assert_eq!(aligned([u32::MAX; 3], all).next(), Some([1, 1, u32::MAX]));
        let far = unaligned([u32::MAX; 3], all).take(1000).last();
        assert!(far.is_some_and(|size| all.hold(size)), "{far:?}");
        // 3 * 5 * 17 = 255 is its largest divisor up to 256.
        let sizes = aligned_to([u32::MAX, 1, 1], 256, WIDE);
        assert_eq!(sizes, [[51, 1, 1], [85, 1, 1], [255, 1, 1]]);
        // 2^32 - 5 is prime: corner cases, though every part of it is too long.
        assert_eq!(aligned_to([u32::MAX - 4; 3], 256, WIDE), [[1, 1, 1]]);
        assert!(near([u32::MAX - 4; 3], 256).len() > 100);
    }
}
