//! Paddle-Lite's default: the grid itself, halved until it fits.
//!
//! Source: `CLContext::DefaultLocalWorkSize` of Paddle-Lite's OpenCL back end, as quoted in
//! ysh329's *Paddle-Lite OpenCL* notes (2021).

/// The rule's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Options {
    /// The device's maximum is divided by this; 0 and 1 leave it as it is.
    pub divisor: u32,
    /// Exchanges x and z: z is filled before x where this is false, x before z where it is true.
    pub reverse: bool,
    /// A maximum that takes the device's place if it is smaller; 0 is none.
    pub user_max: u32,
}

impl Default for Options {
    /// The source's defaults: half of the device's maximum, not reversed, no maximum of the user's.
    fn default() -> Self {
        Options { divisor: 2, reverse: false, user_max: 0 }
    }
}

/// Halves the grid's extents until the work-group has no more invocations than the maximum: y
/// first until it fits alone, then z until it fits beside y, then x.
///
/// An odd extent that is too long becomes 1 at once. A maximum that the division makes 0 limits
/// nothing, as in the source: the work-group is the whole grid. A grid without work has none.
pub fn default_size(grid: [u32; 3], max_size: u32, options: Options) -> Option<[u32; 3]> {
    if grid.contains(&0) {
        return None;
    }
    let [mut x, mut y, mut z] = if options.reverse { [grid[2], grid[1], grid[0]] } else { grid };
    let given = Some(options.user_max).filter(|&user| user > 0 && user <= max_size);
    let max_size = given.unwrap_or(max_size) / options.divisor.max(1);
    if max_size > 0 {
        y = halved(y, 1, max_size);
        z = halved(z, y, max_size);
        // y z is at most max_size here, which has 32 bits.
        x = halved(x, y * z, max_size);
    }
    Some(if options.reverse { [z, y, x] } else { [x, y, z] })
}

/// `extent`, halved until `extent * others` is at most `max_size`; an odd one falls to 1.
fn halved(mut extent: u32, others: u32, max_size: u32) -> u32 {
    while u64::from(extent) * u64::from(others) > u64::from(max_size) {
        extent = if extent % 2 == 1 { 1 } else { extent / 2 };
        // `others` alone keeps the maximum, so that 1 ends the loop.
        if extent == 1 {
            break;
        }
    }
    extent
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: Options = Options { divisor: 1, reverse: false, user_max: 0 };

    #[test]
    fn y_is_kept_before_z_and_z_before_x() {
        // Maximum 256 / 2 = 128. y = 9 fits. 9 z: 256, 128, 64, 32 and 16 (144) are too many, 8 (72)
        // fits. 72 x: 32 down to 2 (144) are too many, 1 fits.
        assert_eq!(default_size([32, 9, 256], 256, Options::default()), Some([1, 9, 8]));
        // All 256: z = 16 fits (144), x = 1 (2 would be 288).
        assert_eq!(default_size([32, 9, 256], 256, WHOLE), Some([1, 9, 16]));
        // 4 z: 4 * 8 = 32 fits 256; 32 x: 32 (1024) and 16 (512) do not, 8 (256) does.
        assert_eq!(default_size([32, 4, 8], 256, WHOLE), Some([8, 4, 8]));
    }

    #[test]
    fn reverse_keeps_x_before_z() {
        // Maximum 128, y = 9. 9 x: 32 (288) and 16 (144) are too many, 8 (72) fits. z falls to 1.
        let options = Options { reverse: true, ..Options::default() };
        assert_eq!(default_size([32, 9, 256], 256, options), Some([8, 9, 1]));
    }

    #[test]
    fn odd_extents_fall_to_one() {
        // y: 300 and 150 and 75 are more than 64, and 75 is odd: 1. z = 5 fits, 5 * 6 = 30 too.
        assert_eq!(default_size([6, 300, 5], 64, WHOLE), Some([6, 1, 5]));
        // y = 7; 7 z: 10 (70) is too many, 5 fits; 35 x: 9 is odd and too long: 1.
        assert_eq!(default_size([9, 7, 10], 64, WHOLE), Some([1, 7, 5]));
    }

    #[test]
    fn the_users_maximum_counts_if_it_is_smaller() {
        let user = |user_max| Options { user_max, ..Options::default() };
        // 64 / 2 = 32: y = 4, z = 8 (32), x = 1.
        assert_eq!(default_size([32, 4, 8], 256, user(64)), Some([1, 4, 8]));
        // 256 is not larger than 256, 257 is and is ignored: 128 either way, x = 4.
        for user_max in [0, 256, 257] {
            assert_eq!(default_size([32, 4, 8], 256, user(user_max)), Some([4, 4, 8]), "{user_max}");
        }
    }

    #[test]
    fn a_maximum_of_0_limits_nothing() {
        assert_eq!(default_size([32, 4, 8], 1, Options::default()), Some([32, 4, 8]));
        assert_eq!(default_size([32, 4, 8], 0, WHOLE), Some([32, 4, 8]));
        // A divisor of 0 or 1 does not divide.
        let undivided = Options { divisor: 0, ..WHOLE };
        assert_eq!(default_size([32, 4, 8], 256, undivided), Some([8, 4, 8]));
    }

    #[test]
    fn huge_and_empty_grids_end() {
        assert_eq!(default_size([u32::MAX; 3], u32::MAX, WHOLE), Some([1, u32::MAX, 1]));
        assert_eq!(default_size([u32::MAX; 3], 256, Options::default()), Some([1, 1, 1]));
        assert_eq!(default_size([1 << 31; 3], 256, WHOLE), Some([1, 256, 1]));
        assert_eq!(default_size([0, 4, 4], 256, WHOLE), None);
    }
}
