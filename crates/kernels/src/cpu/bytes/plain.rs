//! Sums of products of bytes in loops.

use super::tile::{PANEL, Tile};

/// Calls `put` with the number of each pixel's panel and the sums of its channels, of a tile that was checked.
pub(super) fn sums(tile: &Tile<'_>, mut put: impl FnMut(usize, &[i32; PANEL])) {
    let depth = tile.depth();
    for (pixel, &first) in tile.first.iter().take(tile.pixels).enumerate() {
        for panel in 0..tile.panels {
            let weights = tile.weights.get(panel * PANEL * depth..).unwrap_or_default();
            let mut sums = [0; PANEL];
            let mut weights = weights.as_chunks::<PANEL>().0.iter();
            for line in tile.lines {
                let words = tile.src.get(first + line..first + line + tile.len).unwrap_or_default();
                for (word, weights) in words.iter().zip(&mut weights) {
                    let x = word.to_bits().to_le_bytes().map(i32::from);
                    for (sum, weights) in sums.iter_mut().zip(weights) {
                        let w = weights.to_bits().to_le_bytes().map(|byte| i32::from(byte.cast_signed()));
                        *sum += x[0] * w[0] + x[1] * w[1] + x[2] * w[2] + x[3] * w[3];
                    }
                }
            }
            put(pixel * tile.panels + panel, &sums);
        }
    }
}
