//! Sums of products of bytes with AVX2: bytes become numbers of 16 bits, whose products are added in pairs.

use super::tile::{PANEL, Tile};
use std::arch::x86_64::{
    __m128i, __m256i, _mm_loadu_si128, _mm256_add_epi32, _mm256_castsi256_si128, _mm256_cvtepi8_epi16,
    _mm256_cvtepu8_epi16, _mm256_madd_epi16, _mm256_set1_epi32, _mm256_setzero_si256, _mm256_storeu_si256,
};

/// Vectors of a panel: each has two sums of four channels.
const VECTORS: usize = PANEL / 4;

/// Calls `put` with the number of each pixel's panel and the sums of its channels.
///
/// # Safety
/// The machine has AVX2; the tile's words and weights are there.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn sums(tile: &Tile<'_>, mut put: impl FnMut(usize, &[i32; PANEL])) {
    let mut pixel = 0;
    while pixel < tile.pixels {
        let count = if tile.pixels - pixel >= 2 { 2 } else { 1 };
        for panel in 0..tile.panels {
            // SAFETY: the caller's.
            unsafe {
                match count {
                    2 => of_pixels::<2>(tile, [pixel, panel], &mut put),
                    _ => of_pixels::<1>(tile, [pixel, panel], &mut put),
                }
            }
        }
        pixel += count;
    }
}

/// `M` pixels from one on, and a panel.
///
/// # Safety
/// That of [`sums`], for pixels and a panel of the tile.
#[target_feature(enable = "avx2")]
#[expect(clippy::needless_range_loop, reason = "sums, pixels and weights by their numbers")]
unsafe fn of_pixels<const M: usize>(
    tile: &Tile<'_>,
    [pixel, panel]: [usize; 2],
    put: &mut impl FnMut(usize, &[i32; PANEL]),
) {
    let mut sums: [[__m256i; VECTORS]; M] = [[_mm256_setzero_si256(); VECTORS]; M];
    // SAFETY: a pixel's first word and each line behind it are in `src`, and the panel in `weights`, as the caller has
    // checked: all places below are within them.
    unsafe {
        let mut weights = tile.weights.as_ptr().add(panel * PANEL * tile.depth());
        for &line in tile.lines {
            let rows: [*const f32; M] =
                std::array::from_fn(|m| tile.src.as_ptr().add(tile.first[pixel + m] + line));
            for word in 0..tile.len {
                let x: [__m256i; M] = std::array::from_fn(|m| {
                    let word = _mm256_set1_epi32(rows[m].add(word).cast::<i32>().read_unaligned());
                    _mm256_cvtepu8_epi16(_mm256_castsi256_si128(word))
                });
                for v in 0..VECTORS {
                    let w = _mm_loadu_si128(weights.add(4 * v).cast::<__m128i>());
                    let w = _mm256_cvtepi8_epi16(w);
                    for m in 0..M {
                        sums[m][v] = _mm256_add_epi32(sums[m][v], _mm256_madd_epi16(x[m], w));
                    }
                }
                weights = weights.add(PANEL);
            }
        }
    }
    for (m, sums) in sums.iter().enumerate() {
        let mut found = [0; PANEL];
        for (sum, found) in sums.iter().zip(found.as_chunks_mut::<4>().0) {
            let mut halves = [0i32; 8];
            // SAFETY: eight numbers of 32 bits.
            unsafe { _mm256_storeu_si256(halves.as_mut_ptr().cast(), *sum) };
            found.iter_mut().zip(halves.as_chunks::<2>().0).for_each(|(found, [a, b])| *found = a + b);
        }
        put((pixel + m) * tile.panels + panel, &found);
    }
}
