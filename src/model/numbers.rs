//! Numbers as model files store them: one after the other, the lowest byte of each first.

use bytemuck::Pod;

/// What `read` makes of each number of `N` bytes. Bytes of a part of a number, at the end, are left out.
pub(super) fn each<const N: usize, T>(bytes: &[u8], read: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks::<N>().0.iter().map(|&chunk| read(chunk)).collect()
}

/// The same for a type that has these very bytes on most machines: there they are copied all at once.
pub(super) fn copied<const N: usize, T: Pod>(bytes: &[u8], read: impl Fn([u8; N]) -> T) -> Vec<T> {
    if cfg!(target_endian = "big") || size_of::<T>() != N {
        return each(bytes, read);
    }
    let whole = bytes.as_chunks::<N>().0;
    let mut values = vec![T::zeroed(); whole.len()];
    bytemuck::cast_slice_mut(&mut values).copy_from_slice(whole.as_flattened());
    values
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
                let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect::<Vec<_>>();
                assert_eq!(bits(copied(bytes, f32::from_le_bytes)), bits(each(bytes, f32::from_le_bytes)));
                let bits = |values: Vec<f16>| values.into_iter().map(f16::to_bits).collect::<Vec<_>>();
                assert_eq!(bits(copied(bytes, f16::from_le_bytes)), bits(each(bytes, f16::from_le_bytes)));
            }
        }
        assert!(copied(&[], f32::from_le_bytes).is_empty());
    }
}
