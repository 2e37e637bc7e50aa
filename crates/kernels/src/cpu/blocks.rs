//! How work is cut into blocks, and the scratch memory of a worker.

use super::aligned::{SKIPPED, first_aligned};
use super::tile;
use super::workers::workers;
use std::cell::RefCell;

/// Values of a block and its operands that a core's second-level cache holds besides the weights.
const CACHED_VALUES: usize = 96 * 1024;

/// Blocks per worker: enough that one that is held up leaves work for the others.
pub(crate) const BLOCKS_PER_WORKER: usize = 4;

/// Fewest rows of a matrix product's block where there are more: below, reading the right operand
/// once per block costs as much as the product.
const MIN_ROWS: usize = 128;

/// Multiply-adds below which handing a tile to another worker does not pay.
const MIN_PRODUCTS: usize = 1 << 18;

/// What it takes to ask a worker, some 300 ns, in thousandths of what [`MIN_PRODUCTS`] take.
const PRODUCTS_ASKED: usize = 60;

/// What it takes to ask a worker, in thousandths of what [`MIN_WORK`] takes.
pub(crate) const WORK_ASKED: usize = 230;

/// What it costs to move a value from one place in memory to another, in multiply-adds: a core does some 25 of these in
/// a nanosecond, and moves three values.
pub(crate) const MOVED: usize = 8;

/// Multiply-adds below which handing a block of rows to another worker does not pay: those of a microsecond.
const MIN_WORK: usize = 32 * 1024;

/// Columns of a row's part are a multiple of this: a few of the widest vectors.
const PART_COLUMNS: usize = 64;

/// Cuts a product of `rows x depth` with `depth x columns` into blocks of so many rows; a single row into parts of so
/// many columns.
pub(crate) fn cut_product(rows: usize, depth: usize, columns: usize) -> tile::Cut {
    let parts = parts(products([rows, depth, columns]) / MIN_PRODUCTS, PRODUCTS_ASKED);
    if rows == 1 {
        return tile::Cut { rows, columns: columns.div_ceil(parts).next_multiple_of(PART_COLUMNS) };
    }
    let cached = CACHED_VALUES / (depth + columns).max(1);
    let share = rows.div_ceil(parts.min(workers()));
    tile::Cut { rows: rows.div_ceil(parts).min(cached).max(MIN_ROWS).min(share).max(1), columns }
}

/// The product of these, or the greatest `usize` if that is less, as it may be where it has 32 bits.
pub(crate) fn products<const N: usize>(extents: [usize; N]) -> usize {
    extents.into_iter().fold(1, usize::saturating_mul)
}

/// Parts of work that is worth being cut into so many: as many for each worker, if there is one for each. Workers are
/// asked one after the other, which takes `asked` thousandths of a part's time each. With `p` workers work that takes
/// `t` takes `t / p + p * asked`, which is least where `p` is the square root of `t / asked`.
pub(crate) fn parts(worth: usize, asked: usize) -> usize {
    parts_for(worth, asked, workers())
}

fn parts_for(worth: usize, asked: usize, workers: usize) -> usize {
    let pays = worth.min((worth.saturating_mul(1000) / asked).isqrt()).max(1);
    match workers {
        1 => 1,
        workers if pays < workers => pays,
        workers => worth.next_multiple_of(workers).min(workers * BLOCKS_PER_WORKER),
    }
}

/// Cuts a product of `rows x depth` with packed panels of `width` columns, `columns` in all, into
/// tiles.
pub(crate) fn cut_panels(rows: usize, depth: usize, columns: usize, width: usize) -> tile::Cut {
    /// Fewest rows that reading all the panels pays for.
    const MIN_ROWS: usize = 16;
    /// Rows that take as long as fewer, which wait for the panels.
    const LEAST_ROWS: usize = 4;
    let worth = products([rows.max(LEAST_ROWS), depth, columns]) / MIN_PRODUCTS;
    let (workers, tiles) = (workers(), parts(worth, PRODUCTS_ASKED));
    // Whole rows are stored fastest, and are what the next step reads. Where there are too few, each block of rows
    // reads all panels, each part of the columns all rows: the traffic is least with tiles that are square.
    let (most, few) = (rows / MIN_ROWS, tiles.min(workers));
    let (blocks, parts) = if most >= few {
        (tiles.min(most - most % few), 1)
    } else {
        let square = ((tiles * rows) as f64 / columns as f64).sqrt() as usize;
        let blocks = square.clamp(1, tiles);
        (blocks, tiles.div_ceil(blocks))
    };
    let cached = (CACHED_VALUES / (depth + columns.div_ceil(parts)).max(1)).max(2 * MIN_ROWS);
    tile::Cut {
        rows: rows.div_ceil(blocks).min(cached).max(1),
        columns: columns.div_ceil(parts).next_multiple_of(width.max(1)),
    }
}

/// Rows of a block of which each costs as much as `row_work` multiply-adds and is independent of the others.
pub(crate) fn independent_rows(rows: usize, row_work: usize) -> usize {
    balanced(rows, parts(products([rows, row_work]) / MIN_WORK, WORK_ASKED), workers())
}

/// Rows of a block, of which there are `most` at most, so that no worker is given more rows than it must be: each begins
/// with as many blocks as the others.
fn balanced(rows: usize, most: usize, workers: usize) -> usize {
    let workers = workers.clamp(1, most.max(1));
    let blocks = (1..=most / workers).rev().map(|blocks| rows.div_ceil(blocks * workers).max(1));
    let share = |block: usize| block * rows.div_ceil(block).div_ceil(workers);
    blocks.min_by_key(|block| share(*block)).unwrap_or(rows).max(1)
}

thread_local! {
    /// Kept from run to run, so that a warm kernel allocates nothing.
    static SCRATCH: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// Lends `work` a worker's scratch of `len` values, whatever they held before.
pub(crate) fn with_scratch<T>(len: usize, work: impl FnOnce(&mut [f32]) -> T) -> T {
    // Taken out, not borrowed, so that a nested call on the same thread gets a fresh one.
    let mut scratch = SCRATCH.with(RefCell::take);
    if scratch.len() < len + SKIPPED {
        scratch.resize(len + SKIPPED, 0.0);
    }
    let first = first_aligned(&scratch);
    let result = work(scratch.get_mut(first..first + len).unwrap_or_default());
    SCRATCH.with(|slot| slot.replace(scratch));
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_neither_empty_nor_longer_than_the_work() {
        for rows in [1, 2, 127, 128, 129, 289, 16641] {
            for row_values in [1, 64, 2048, 1 << 20] {
                for block in [cut_product(rows, row_values, 64).rows, independent_rows(rows, row_values)] {
                    assert!((1..=rows).contains(&block), "{block} of {rows} rows of {row_values}");
                }
            }
        }
    }

    #[test]
    fn no_worker_is_given_more_rows_than_it_must_be() {
        // In four blocks of four rows at most one worker would have eight of the fourteen.
        assert_eq!(balanced(14, 4, 2), 7);
        // What divides is cut as finely as is worth it.
        assert_eq!(balanced(112, 8, 2), 14);
        for rows in 1..80 {
            for workers in 1..10 {
                for most in 1..40 {
                    let block = balanced(rows, most, workers);
                    let shares = most.min(workers).min(rows);
                    let given = block * rows.div_ceil(block).div_ceil(shares);
                    assert!(rows.div_ceil(block) <= most, "{rows} rows, {most}, {workers}: {block}");
                    assert!(given < rows.div_ceil(shares) + block, "{rows} rows, {most}, {workers}: {block}");
                }
            }
        }
    }

    #[test]
    fn few_workers_are_asked_for_little_work() {
        for workers in 1..20 {
            for worth in 0..300 {
                let found = parts_for(worth, WORK_ASKED, workers);
                // What pays for all workers has as many parts for each, else no worker has two.
                let most = worth.min((worth * 1000 / WORK_ASKED).isqrt()).max(1);
                let wanted = if most >= workers { found.is_multiple_of(workers) } else { found == most };
                assert!(wanted, "{found} parts of {worth}, {workers} workers");
            }
        }
        // 20 us, of which one of sixteen workers would have little more than it takes to ask all.
        assert_eq!(parts_for(16, WORK_ASKED, 16), 8);
    }

    #[test]
    fn scratch_may_be_asked_for_within_scratch() {
        with_scratch(3, |outer| {
            outer.fill(1.0);
            with_scratch(5, |inner| inner.fill(2.0));
            assert_eq!(outer, [1.0; 3]);
        });
    }
}
