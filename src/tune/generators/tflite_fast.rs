//! TensorFlow Lite's `FAST` rules: one work-group from the grid and the limits, without measuring.
//!
//! Source: `GetWorkGroup` and `GetWorkGroupConv` of `delegates/gpu/cl/kernels/work_group_picking.cc`
//! at TensorFlow commit ee2c2d17814c. Where the source would divide by zero or give an empty
//! work-group (no work, or no room beside z), there is no candidate.

use super::divisors;
use crate::limits::Family;

/// Kernels other than convolutions.
///
/// z is 8, 4 or 2, the first that divides the grid's depth, or else the depth's largest divisor
/// up to 8. x is half the grid's width, rounded up, as far as `max_size / z` has room; y takes the
/// rest of the room, as far as the grid's height.
pub fn ordinary(grid: [u32; 3], max_size: u32) -> Option<[u32; 3]> {
    if grid.contains(&0) {
        return None;
    }
    let [width, height, depth] = grid;
    let z = [8, 4, 2]
        .into_iter()
        .find(|divisor| depth.is_multiple_of(*divisor))
        .unwrap_or_else(|| largest_divisor(depth, 8));
    plane(width.div_ceil(2), height, max_size, z)
}

/// Convolutions: `conv_buffer_1x1`, the transposed ones and the general one.
///
/// z is the largest divisor of the grid's depth up to `z_limit` ([`conv_z_limit`]). x is the
/// grid's width as far as `min(256, max_size) / z` has room; y takes the rest, as far as the
/// grid's height. A y that covers an even height is halved.
pub fn conv(grid: [u32; 3], max_size: u32, z_limit: u32) -> Option<[u32; 3]> {
    if grid.contains(&0) {
        return None;
    }
    let [width, height, depth] = grid;
    let [x, y, z] = plane(width, height, max_size.min(256), largest_divisor(depth, z_limit))?;
    let y = if y == height && height.is_multiple_of(2) { height / 2 } else { y };
    Some([x, y, z])
}

/// The deepest work-group that [`conv`] tries: 64 on Adreno, 16 on Adreno 3xx and on every other
/// GPU, and no more than the device allows along z.
pub fn conv_z_limit(family: Family, device_max_z: u32) -> u32 {
    let limit = match family {
        Family::Adreno(300..=399) => 16,
        Family::Adreno(_) => 64,
        _ => 16,
    };
    limit.min(device_max_z)
}

/// x and y beside `z`: as much of `width` as has room, then as much of `height`.
fn plane(width: u32, height: u32, max_size: u32, z: u32) -> Option<[u32; 3]> {
    let room = max_size.checked_div(z)?;
    let x = width.min(room);
    let y = room.checked_div(x)?.min(height);
    (y > 0).then_some([x, y, z])
}

/// The largest divisor of `number` up to `most`; 1 if `most` is 0.
fn largest_divisor(number: u32, most: u32) -> u32 {
    divisors(number).into_iter().filter(|&divisor| divisor <= most).max().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_grids_take_z_then_half_of_x_then_y() {
        for (grid, max_size, wanted) in [
            // 256 % 8 = 0, z = 8; room 256 / 8 = 32; x = min(ceil(9 / 2) = 5, 32) = 5;
            // y = min(32 / 5 = 6, 9) = 6.
            ([9, 9, 256], 256, [5, 6, 8]),
            // 12 % 8 = 4, 12 % 4 = 0, z = 4; room 64; x = min(64, 50) = 50; y = min(64 / 50 = 1, 7).
            ([100, 7, 12], 256, [50, 1, 4]),
            // 6 is even but not a multiple of 4, z = 2 (though 6 divides it too); room 128;
            // x = min(2, 128) = 2; y = min(64, 3) = 3.
            ([4, 3, 6], 256, [2, 3, 2]),
            // 21 is odd: 8, then 7 divides it. Room 256 / 7 = 36; x = min(17, 36); y = min(2, 33).
            ([33, 33, 21], 256, [17, 2, 7]),
            // 11 has only 1 up to 8. Room 128; x = min(129, 128) = 128; y = 1.
            ([257, 257, 11], 128, [128, 1, 1]),
            // z = 8 leaves room for one.
            ([16, 16, 8], 8, [1, 1, 8]),
            ([1, 1, 1], 256, [1, 1, 1]),
        ] {
            assert_eq!(ordinary(grid, max_size), Some(wanted), "{grid:?}, {max_size}");
        }
    }

    #[test]
    fn convolutions_take_the_deepest_z() {
        for (grid, max_size, z_limit, wanted) in [
            // The largest divisor of 256 up to 16 is 16; room 16; x = 9; y = min(16 / 9 = 1, 9).
            ([9, 9, 256], 256, 16, [9, 1, 16]),
            // Up to 64 it is 64; room 4; x = 4; y = 1.
            ([9, 9, 256], 256, 64, [4, 1, 64]),
            // More than 256 invocations are never used: z = 1, room 256, x = 257 cut to 256, y = 1.
            ([257, 257, 1], 1024, 16, [256, 1, 1]),
            // z = 6 (12 is beyond 8); room 256 / 6 = 42; x = 5; y = min(8, 8) covers an even
            // height and is halved.
            ([5, 8, 12], 256, 8, [5, 4, 6]),
            // The same with an odd height: y = min(8, 7) = 7 stays.
            ([5, 7, 12], 256, 8, [5, 7, 6]),
            // A y of 8 out of 10 does not cover and stays, though 10 is even.
            ([5, 10, 12], 256, 8, [5, 8, 6]),
            // No room along z at all is taken as 1: x = 4, y = min(64, 3) = 3.
            ([4, 3, 8], 256, 0, [4, 3, 1]),
        ] {
            assert_eq!(conv(grid, max_size, z_limit), Some(wanted), "{grid:?}, {max_size}, {z_limit}");
        }
    }

    #[test]
    fn the_z_limit_is_the_familys_and_the_devices() {
        for (family, device, wanted) in [
            (Family::Adreno(630), 1024, 64),
            (Family::Adreno(0), 1024, 64),
            (Family::Adreno(330), 1024, 16),
            (Family::Adreno(405), 1024, 64),
            (Family::Adreno(630), 32, 32),
            (Family::Nvidia, 64, 16),
            (Family::Unknown, 8, 8),
        ] {
            assert_eq!(conv_z_limit(family, device), wanted, "{family}, {device}");
        }
    }

    #[test]
    fn nothing_is_given_where_the_source_divides_by_zero() {
        // z = 8 of at most 4 invocations leaves x no room.
        assert_eq!(ordinary([16, 16, 8], 4), None);
        assert_eq!(conv([16, 16, 64], 32, 64), None);
        for grid in [[0, 4, 4], [4, 0, 4], [4, 4, 0]] {
            assert_eq!((ordinary(grid, 256), conv(grid, 256, 16)), (None, None), "{grid:?}");
        }
        assert_eq!((ordinary([4; 3], 0), conv([4; 3], 0, 16)), (None, None));
    }

    #[test]
    fn huge_grids_and_limits_neither_hang_nor_overflow() {
        let huge = [u32::MAX; 3];
        // 2^32 - 1 is odd; its largest divisor up to 8 is 5. Room (2^32 - 1) / 5 = 858993459.
        assert_eq!(ordinary(huge, u32::MAX), Some([858_993_459, 1, 5]));
        // All of it along z leaves no room in 256.
        assert_eq!(conv(huge, u32::MAX, u32::MAX), None);
        // Divisors up to 16: 15 = 3 * 5. Room 256 / 15 = 17.
        assert_eq!(conv(huge, u32::MAX, 16), Some([17, 1, 15]));
    }
}
