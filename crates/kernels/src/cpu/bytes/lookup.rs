//! Bytes looked up in a table.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    _mm512_loadu_si512, _mm512_mask_blend_epi8, _mm512_movepi8_mask, _mm512_permutex2var_epi8,
    _mm512_storeu_si512,
};

#[cfg(target_arch = "aarch64")]
use std::arch::aarch64::{
    uint8x16x4_t, vdupq_n_u8, vld1q_u8, vld1q_u8_x4, vqtbl4q_u8, vqtbx4q_u8, vst1q_u8, vsubq_u8,
};

/// The bytes of a table.
pub(crate) type Table = [u8; 256];

/// `dst[i] = table[src[i]]`, for as many as both have.
pub(crate) fn look_up(table: &Table, src: &[u8], dst: &mut [u8]) {
    let len = src.len().min(dst.len());
    let (src, dst) = (&src[..len], &mut dst[..len]);
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx512vbmi") && std::arch::is_x86_feature_detected!("avx512bw") {
        // SAFETY: the machine has these vectors; the function has no other demands.
        return unsafe { look_up_avx512(table, src, dst) };
    }
    #[cfg(target_arch = "aarch64")]
    if std::arch::is_aarch64_feature_detected!("neon") {
        // SAFETY: as above.
        return unsafe { look_up_neon(table, src, dst) };
    }
    look_up_plain(table, src, dst);
}

#[inline(always)]
pub(in crate::cpu) fn look_up_plain(table: &Table, src: &[u8], dst: &mut [u8]) {
    for (found, byte) in dst.iter_mut().zip(src) {
        *found = table[usize::from(*byte)];
    }
}

/// 64 bytes at a time: each half of the table is two vectors, of which an instruction picks by seven bits.
///
/// # Safety
/// The machine has AVX-512 F, BW and VBMI. Both have as many bytes.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
unsafe fn look_up_avx512(table: &Table, src: &[u8], dst: &mut [u8]) {
    let ((wide, rest), (wide_dst, rest_dst)) = (src.as_chunks::<64>(), dst.as_chunks_mut::<64>());
    // SAFETY: the table has four vectors of 64 bytes, and each chunk has one.
    unsafe {
        let part = |at: usize| _mm512_loadu_si512(table.as_ptr().add(64 * at).cast());
        let [a, b, c, d] = [part(0), part(1), part(2), part(3)];
        for (src, dst) in wide.iter().zip(wide_dst) {
            let index = _mm512_loadu_si512(src.as_ptr().cast());
            let (low, high) = (_mm512_permutex2var_epi8(a, index, b), _mm512_permutex2var_epi8(c, index, d));
            let found = _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), low, high);
            _mm512_storeu_si512(dst.as_mut_ptr().cast(), found);
        }
    }
    look_up_plain(table, rest, rest_dst);
}

/// 16 bytes at a time: each quarter of the table is four vectors, of which an instruction picks by six bits, and leaves what
/// it has where there are more.
///
/// # Safety
/// The machine has NEON. Both have as many bytes.
#[cfg(target_arch = "aarch64")]
#[target_feature(enable = "neon")]
unsafe fn look_up_neon(table: &Table, src: &[u8], dst: &mut [u8]) {
    let ((wide, rest), (wide_dst, rest_dst)) = (src.as_chunks::<16>(), dst.as_chunks_mut::<16>());
    // SAFETY: the table has four quarters of 64 bytes, and each chunk has a vector.
    unsafe {
        let part = |at: usize| -> uint8x16x4_t { vld1q_u8_x4(table.as_ptr().add(64 * at)) };
        let [a, b, c, d] = [part(0), part(1), part(2), part(3)];
        let quarter = vdupq_n_u8(64);
        for (src, dst) in wide.iter().zip(wide_dst) {
            let index = vld1q_u8(src.as_ptr());
            let mut found = vqtbl4q_u8(a, index);
            let index = vsubq_u8(index, quarter);
            found = vqtbx4q_u8(found, b, index);
            let index = vsubq_u8(index, quarter);
            found = vqtbx4q_u8(found, c, index);
            found = vqtbx4q_u8(found, d, vsubq_u8(index, quarter));
            vst1q_u8(dst.as_mut_ptr(), found);
        }
    }
    look_up_plain(table, rest, rest_dst);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_found() {
        let table: Table = std::array::from_fn(|at| (at * 37 + 11) as u8);
        for len in [0, 1, 15, 16, 17, 63, 64, 65, 300] {
            let src: Vec<u8> = (0..len).map(|at| (at * 101 % 256) as u8).collect();
            let mut dst = vec![0; len];
            look_up(&table, &src, &mut dst);
            let wanted: Vec<u8> = src.iter().map(|&byte| table[usize::from(byte)]).collect();
            assert_eq!(dst, wanted, "{len}");
        }
    }
}
