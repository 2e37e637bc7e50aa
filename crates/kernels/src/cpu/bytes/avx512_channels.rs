//! Sums of products of bytes of each channel by itself with AVX-512 VNNI: the bytes of four taps are interleaved, so that
//! `vpdpbusd` adds four products to the sum of each channel.

use super::Finish;
use super::GROUP;
use std::arch::x86_64::*;

/// The bytes of one pixel, from those of its taps, whose number is a multiple of four.
///
/// # Safety
/// The machine has AVX-512 F, BW, VL and VNNI. Each tap has as many bytes as `dst`; `weights` has `block` words for each block of
/// channels and each group of taps, and bias and scale have a number for each channel of each block. `block` is 16, 32 or 64.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(super) unsafe fn pixel(
    taps: &[&[u8]],
    weights: &[f32],
    block: usize,
    finish: Finish<'_>,
    dst: &mut [u8],
) {
    // SAFETY: the caller's.
    unsafe {
        match block {
            16 => block16(taps, weights, finish, dst),
            32 => block32(taps, weights, finish, dst),
            _ => block64(taps, weights, finish, dst),
        }
    }
}

/// A function for blocks of as many channels as a vector has bytes.
macro_rules! blocks {
    (
        $name:ident, $block:literal, $mask:ty,
        load $load:ident, store $store:ident, whole $whole:ident, floats $floats:ident, zeros $zeros:ident,
        low8 $low8:ident, high8 $high8:ident, low16 $low16:ident, high16 $high16:ident,
        dot $dot:ident, add $add:ident, number $number:ident, times $times:ident,
        greatest $greatest:ident, least $least:ident, nearest $nearest:ident,
        words $words:ident, bytes $bytes:ident, every $every:ident, every_float $every_float:ident
    ) => {
        /// # Safety
        /// That of [`pixel`], for blocks of this size.
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
        unsafe fn $name(taps: &[&[u8]], weights: &[f32], finish: Finish<'_>, dst: &mut [u8]) {
            let [low, high] = finish.bounds.map(|bound| $every_float(bound as f32));
            let zero = $every(finish.zero.into());
            let mut weights = weights.as_ptr();
            let mut first = 0;
            while first < dst.len() {
                let left = dst.len() - first;
                let mask: $mask = if left >= $block { <$mask>::MAX } else { (1 << left) - 1 };
                let mut sums = [$zeros(); GROUP];
                // SAFETY: a tap has as many bytes as `dst`, and those beyond the mask are not read; weights, bias and scale have
                // all of a block.
                unsafe {
                    for taps in taps.as_chunks::<GROUP>().0 {
                        let [a, b, c, d] = taps.map(|tap| $load(mask, tap.as_ptr().add(first).cast()));
                        let (ab, cd) = ([$low8(a, b), $high8(a, b)], [$low8(c, d), $high8(c, d)]);
                        let groups = [
                            $low16(ab[0], cd[0]),
                            $high16(ab[0], cd[0]),
                            $low16(ab[1], cd[1]),
                            $high16(ab[1], cd[1]),
                        ];
                        for (vector, group) in groups.into_iter().enumerate() {
                            let w = $whole(weights.add(vector * $block / GROUP).cast());
                            sums[vector] = $dot(sums[vector], group, w);
                        }
                        weights = weights.add($block);
                    }
                    let mut steps = [zero; GROUP];
                    for (vector, step) in steps.iter_mut().enumerate() {
                        let place = first + vector * $block / GROUP;
                        let bias = $whole(finish.bias.as_ptr().add(place).cast());
                        let scale = $floats(finish.scale.as_ptr().add(place));
                        let scaled = $times($number($add(sums[vector], bias)), scale);
                        *step = $add($nearest($least($greatest(scaled, low), high)), zero);
                    }
                    let found = $bytes($words(steps[0], steps[1]), $words(steps[2], steps[3]));
                    $store(dst.as_mut_ptr().add(first).cast(), mask, found);
                }
                first += $block;
            }
        }
    };
}

blocks!(
    block64, 64, u64,
    load _mm512_maskz_loadu_epi8, store _mm512_mask_storeu_epi8, whole _mm512_loadu_si512, floats _mm512_loadu_ps,
    zeros _mm512_setzero_si512,
    low8 _mm512_unpacklo_epi8, high8 _mm512_unpackhi_epi8, low16 _mm512_unpacklo_epi16, high16 _mm512_unpackhi_epi16,
    dot _mm512_dpbusd_epi32, add _mm512_add_epi32, number _mm512_cvtepi32_ps, times _mm512_mul_ps,
    greatest _mm512_max_ps, least _mm512_min_ps, nearest _mm512_cvtps_epi32,
    words _mm512_packs_epi32, bytes _mm512_packus_epi16, every _mm512_set1_epi32, every_float _mm512_set1_ps
);
blocks!(
    block32, 32, u32,
    load _mm256_maskz_loadu_epi8, store _mm256_mask_storeu_epi8, whole _mm256_loadu_si256, floats _mm256_loadu_ps,
    zeros _mm256_setzero_si256,
    low8 _mm256_unpacklo_epi8, high8 _mm256_unpackhi_epi8, low16 _mm256_unpacklo_epi16, high16 _mm256_unpackhi_epi16,
    dot _mm256_dpbusd_epi32, add _mm256_add_epi32, number _mm256_cvtepi32_ps, times _mm256_mul_ps,
    greatest _mm256_max_ps, least _mm256_min_ps, nearest _mm256_cvtps_epi32,
    words _mm256_packs_epi32, bytes _mm256_packus_epi16, every _mm256_set1_epi32, every_float _mm256_set1_ps
);
blocks!(
    block16, 16, u16,
    load _mm_maskz_loadu_epi8, store _mm_mask_storeu_epi8, whole _mm_loadu_si128, floats _mm_loadu_ps,
    zeros _mm_setzero_si128,
    low8 _mm_unpacklo_epi8, high8 _mm_unpackhi_epi8, low16 _mm_unpacklo_epi16, high16 _mm_unpackhi_epi16,
    dot _mm_dpbusd_epi32, add _mm_add_epi32, number _mm_cvtepi32_ps, times _mm_mul_ps,
    greatest _mm_max_ps, least _mm_min_ps, nearest _mm_cvtps_epi32,
    words _mm_packs_epi32, bytes _mm_packus_epi16, every _mm_set1_epi32, every_float _mm_set1_ps
);
