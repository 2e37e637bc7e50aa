//! Numbers as model files store them: one after the other, the lowest byte of each first.

use bytemuck::Pod;
use std::sync::Arc;

/// What `read` makes of each number of `N` bytes. Bytes of a part of a number, at the end, are left out.
pub(super) fn each<const N: usize, T>(bytes: &[u8], read: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks::<N>().0.iter().map(|&chunk| read(chunk)).collect()
}

/// Numbers of a type that has these very bytes on most machines: there they are copied all at once, and once only.
pub(super) fn copied<const N: usize, T: Pod>(bytes: &[u8], read: impl Fn([u8; N]) -> T) -> Arc<[T]> {
    let whole = bytes.as_chunks::<N>().0;
    match bytemuck::try_cast_slice::<u8, T>(whole.as_flattened()) {
        Ok(values) if cfg!(target_endian = "little") && size_of::<T>() == N => Arc::from(values),
        // They do not lie where such numbers may.
        _ => whole.iter().map(|&chunk| read(chunk)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::f16;

    #[test]
    fn copies_are_what_is_read_number_by_number() {
        // No alignment, and a part of a number at the end.
        let bytes: Vec<u8> = (0..40_u8).map(|byte| byte.wrapping_mul(37)).collect();
        for first in 0..4 {
            for last in 36..40 {
                let bytes = &bytes[first..last];
                let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&copied(bytes, f32::from_le_bytes)), bits(&each(bytes, f32::from_le_bytes)));
                let bits = |values: &[f16]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&copied(bytes, f16::from_le_bytes)), bits(&each(bytes, f16::from_le_bytes)));
            }
        }
        assert!(copied(&[], f32::from_le_bytes).is_empty());
    }
}
