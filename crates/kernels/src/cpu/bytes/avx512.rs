//! Sums of products of bytes with AVX-512 VNNI: `vpdpbusd` adds four products of an unsigned and a signed byte to each of
//! sixteen sums.

use super::tile::{Bytes, PANEL, Tile, Words};
use super::{Finish, Scaled};
use std::arch::x86_64::{
    __m512i, _mm_storeu_si128, _mm512_add_epi32, _mm512_castps_si512, _mm512_cvtepi32_epi8,
    _mm512_cvtepi32_ps, _mm512_cvtps_epi32, _mm512_dpbusd_epi32, _mm512_fmadd_ps, _mm512_loadu_ps,
    _mm512_loadu_si512, _mm512_max_ps, _mm512_min_ps, _mm512_mul_ps, _mm512_mullo_epi32, _mm512_set1_epi32,
    _mm512_set1_ps, _mm512_setzero_si512, _mm512_storeu_si512, _mm512_sub_epi32,
};

/// What is made of the sums of a tile.
trait Ending {
    /// Takes the sums of `M` pixels and `V` panels.
    ///
    /// # Safety
    /// The machine has AVX-512 F, BW, VL and VNNI, and there are numbers for so many panels and pixels.
    unsafe fn end<const M: usize, const V: usize>(self, sums: [[__m512i; V]; M]);
}

/// Bytes of channels.
struct ToBytes<'a> {
    finish: Finish<'a>,
    bytes: &'a mut Bytes,
}

impl Ending for ToBytes<'_> {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    #[expect(clippy::needless_range_loop, reason = "sums, pixels and weights by their numbers")]
    unsafe fn end<const M: usize, const V: usize>(self, sums: [[__m512i; V]; M]) {
        let ToBytes { finish, bytes } = self;
        let [low, high] = finish.bounds.map(|bound| _mm512_set1_ps(bound as f32));
        let zero = _mm512_set1_epi32(finish.zero.into());
        // SAFETY: bias and scale have a number for each lane, and `bytes` was made for more pixels and panels than any tile has.
        unsafe {
            for v in 0..V {
                let bias = _mm512_loadu_si512(finish.bias.as_ptr().add(v * PANEL).cast());
                let scale = _mm512_loadu_ps(finish.scale.as_ptr().add(v * PANEL));
                for m in 0..M {
                    let steps = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_add_epi32(sums[m][v], bias)), scale);
                    // Rounds halves to even numbers, as the processor does unless it is told otherwise.
                    let steps = _mm512_cvtps_epi32(_mm512_min_ps(_mm512_max_ps(steps, low), high));
                    let found = _mm512_cvtepi32_epi8(_mm512_add_epi32(steps, zero));
                    _mm_storeu_si128(bytes.as_mut_ptr().add(m * V + v).cast(), found);
                }
            }
        }
    }
}

/// Sums less those of a zero point, or the numbers that they stand for.
struct ToWords<'a> {
    scaled: Scaled<'a>,
    words: &'a mut Words,
}

impl Ending for ToWords<'_> {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    #[expect(clippy::needless_range_loop, reason = "sums, pixels and weights by their numbers")]
    unsafe fn end<const M: usize, const V: usize>(self, sums: [[__m512i; V]; M]) {
        let ToWords { scaled, words } = self;
        // SAFETY: there is a number for each lane and for each pixel, and `words` was made for more than any tile has.
        unsafe {
            for v in 0..V {
                let of_weights = _mm512_loadu_si512(scaled.sums.as_ptr().add(v * PANEL).cast());
                let scale = _mm512_loadu_ps(scaled.scale.as_ptr().add(v * PANEL));
                let bias = _mm512_loadu_ps(scaled.bias.as_ptr().add(v * PANEL));
                for m in 0..M {
                    let [factor, zero] = scaled.pixels[m];
                    let zero = _mm512_set1_epi32(zero as i32);
                    let sum = _mm512_sub_epi32(sums[m][v], _mm512_mullo_epi32(zero, of_weights));
                    let found = if scaled.whole {
                        sum
                    } else {
                        let number = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), _mm512_set1_ps(factor));
                        _mm512_castps_si512(_mm512_fmadd_ps(number, scale, bias))
                    };
                    _mm512_storeu_si512(words.as_mut_ptr().add(m * V + v).cast(), found);
                }
            }
        }
    }
}

/// [`Tile::finish`] by AVX-512 VNNI: the bytes of all pixels of the tile, those of a pixel's panels one after the other.
///
/// # Safety
/// The machine has AVX-512 F, BW, VL and VNNI; the tile's words and weights are there; bias and scale have as many numbers as
/// the tile has channels.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(super) unsafe fn finish(tile: &Tile<'_>, finish: Finish<'_>, bytes: &mut Bytes) {
    // SAFETY: the caller's.
    unsafe { ended(tile, ToBytes { finish, bytes }) }
}

/// [`Tile::scaled`] by AVX-512 VNNI: the words of all pixels of the tile, those of a pixel's panels one after the other.
///
/// # Safety
/// The machine has AVX-512 F, BW, VL and VNNI; the tile's words and weights are there; sums, scale and bias have as many
/// numbers as the tile has channels.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(super) unsafe fn scaled(tile: &Tile<'_>, scaled: Scaled<'_>, words: &mut Words) {
    // SAFETY: the caller's.
    unsafe { ended(tile, ToWords { scaled, words }) }
}

/// # Safety
/// That of [`finish`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn ended(tile: &Tile<'_>, ending: impl Ending) {
    // SAFETY: the caller's.
    unsafe {
        match (tile.pixels, tile.panels) {
            (1, 1) => sums::<1, 1>(tile, ending),
            (1, 2) => sums::<1, 2>(tile, ending),
            (1, 3) => sums::<1, 3>(tile, ending),
            (1, _) => sums::<1, 4>(tile, ending),
            (2, 1) => sums::<2, 1>(tile, ending),
            (2, _) => sums::<2, 2>(tile, ending),
            (3, 1) => sums::<3, 1>(tile, ending),
            (3, _) => sums::<3, 2>(tile, ending),
            (4, 1) => sums::<4, 1>(tile, ending),
            (4, _) => sums::<4, 2>(tile, ending),
            (5, 1) => sums::<5, 1>(tile, ending),
            (5, _) => sums::<5, 2>(tile, ending),
            (6, 1) => sums::<6, 1>(tile, ending),
            (6, _) => sums::<6, 2>(tile, ending),
            (7, 1) => sums::<7, 1>(tile, ending),
            (7, _) => sums::<7, 2>(tile, ending),
            (_, 1) => sums::<8, 1>(tile, ending),
            (..) => sums::<8, 2>(tile, ending),
        }
    }
}

/// `M` pixels and `V` panels.
///
/// # Safety
/// That of [`finish`], for so many pixels and panels.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn sums<const M: usize, const V: usize>(tile: &Tile<'_>, ending: impl Ending) {
    let mut sums: [[__m512i; V]; M] = [[_mm512_setzero_si512(); V]; M];
    let panel = PANEL * tile.depth();
    // SAFETY: a pixel's first word and each line behind it are in `src`, and each panel in `weights`, as the caller has
    // checked: all places below are within them. What the ending reads is there.
    unsafe {
        let mut weights = tile.weights.as_ptr();
        for &line in tile.lines {
            let rows: [*const f32; M] = std::array::from_fn(|m| tile.src.as_ptr().add(tile.first[m] + line));
            for word in 0..tile.len {
                let w: [__m512i; V] =
                    std::array::from_fn(|v| _mm512_loadu_si512(weights.add(v * panel).cast()));
                for m in 0..M {
                    let x = _mm512_set1_epi32(rows[m].add(word).cast::<i32>().read_unaligned());
                    for v in 0..V {
                        sums[m][v] = _mm512_dpbusd_epi32(sums[m][v], x, w[v]);
                    }
                }
                weights = weights.add(PANEL);
            }
        }
        ending.end(sums);
    }
}
