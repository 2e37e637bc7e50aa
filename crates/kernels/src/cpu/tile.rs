//! Cutting a destination into tiles of rows and columns that are computed apart.

use super::workers::each;

/// Rows of a destination, or their part between two columns.
#[derive(Debug)]
pub(crate) enum Tile<'a> {
    /// Whole rows, `columns` values each.
    Rows { data: &'a mut [f32], columns: usize },
    /// A part of each row.
    Parts(Vec<&'a mut [f32]>),
}

impl Tile<'_> {
    /// The tile's part of a row; empty beyond the last.
    #[inline(always)]
    pub(crate) fn row(&mut self, row: usize) -> &mut [f32] {
        match self {
            Tile::Rows { data, columns } => {
                data.get_mut(row * *columns..(row + 1) * *columns).unwrap_or_default()
            }
            Tile::Parts(rows) => rows.get_mut(row).map(|row| &mut **row).unwrap_or_default(),
        }
    }

    pub(crate) fn rows(&self) -> usize {
        match self {
            Tile::Rows { data, columns } => data.len() / columns,
            Tile::Parts(rows) => rows.len(),
        }
    }
}

/// How a destination is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Rows of a tile.
    pub(crate) rows: usize,
    /// Columns of a tile.
    pub(crate) columns: usize,
}

/// Calls `work` with the first row and column of each tile of `dst`, whose rows have `columns`
/// values, on the threads of the run. Tiles of whole rows need no allocation.
pub(crate) fn for_each_tile(
    dst: &mut [f32],
    columns: usize,
    cut: Cut,
    work: impl Fn([usize; 2], Tile<'_>) + Sync,
) {
    if cut.columns >= columns {
        return each(dst.chunks_mut(cut.rows * columns).enumerate(), |(index, data)| {
            work([index * cut.rows, 0], Tile::Rows { data, columns });
        });
    }
    let parts = columns.div_ceil(cut.columns);
    let mut tiles = Vec::new();
    for (index, rows) in dst.chunks_mut(cut.rows * columns).enumerate() {
        let first = tiles.len();
        tiles.extend((0..parts).map(|part| ([index * cut.rows, part * cut.columns], Vec::new())));
        for row in rows.chunks_mut(columns) {
            for ((_, tile), part) in tiles.iter_mut().skip(first).zip(row.chunks_mut(cut.columns)) {
                tile.push(part);
            }
        }
    }
    each(tiles.into_iter(), |(first, rows)| work(first, Tile::Parts(rows)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_is_in_one_tile() {
        for cut in [(3, 7), (4, 2), (1, 3), (20, 20), (5, 6)] {
            let cut = Cut { rows: cut.0, columns: cut.1 };
            let mut dst = vec![0.0; 7 * 6];
            for_each_tile(&mut dst, 6, cut, |[first_row, first_column], mut tile| {
                assert!(tile.rows() <= cut.rows && tile.row(tile.rows()).is_empty());
                for row in 0..tile.rows() {
                    for (column, value) in tile.row(row).iter_mut().enumerate() {
                        *value += (10 * (first_row + row) + first_column + column) as f32 + 1.0;
                    }
                }
            });
            for (index, value) in dst.iter().enumerate() {
                assert_eq!(*value, (10 * (index / 6) + index % 6) as f32 + 1.0, "element {index}, {cut:?}");
            }
        }
    }
}
