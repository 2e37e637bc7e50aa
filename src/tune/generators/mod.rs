//! Work-groups worth trying: the rules of other engines, exact and pure.
//!
//! | generator | source | gives |
//! |---|---|---|
//! | [`tables::gl_ideal`], [`tables::gl_conv`], [`tables::gl_workload`] | TensorFlow Lite, GL delegate | one size |
//! | [`tflite_fast::ordinary`], [`tflite_fast::conv`] | TensorFlow Lite, OpenCL delegate, `FAST` | one size |
//! | [`tflite_exhaustive::aligned`], [`tflite_exhaustive::unaligned`] | the same, `EXHAUSTIVE` | many |
//! | [`paddle::default_size`] | Paddle-Lite, OpenCL back end | one size |
//! | [`user::list`], [`user::up_to`] | the user | many |
//!
//! A grid is the invocations along x, y and z that have work. Candidates come in the order of the
//! source, and twice where the source gives them twice. A grid without work has no candidates.
//!
//! The sources count in 32-bit integers that overflow; here nothing overflows, so that a product
//! that is too large is refused instead of wrapping round to a small one.
//!
//! [`tables::gl_ideal`]: super::tables::gl_ideal
//! [`tables::gl_conv`]: super::tables::gl_conv
//! [`tables::gl_workload`]: super::tables::gl_workload

pub mod paddle;
pub mod tflite_exhaustive;
pub mod tflite_fast;
pub mod user;

use crate::limits::Limits;

/// How large a work-group may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// The most invocations: the device's limit, or the kernel's where the driver reports a smaller
    /// one (OpenCL's `CL_KERNEL_WORK_GROUP_SIZE`).
    pub max_size: u32,
    /// The most invocations along x, y and z.
    pub max_dims: [u32; 3],
}

impl From<&Limits> for Bounds {
    fn from(limits: &Limits) -> Self {
        Bounds { max_size: limits.max_invocations, max_dims: limits.max_work_group }
    }
}

impl Bounds {
    fn hold(&self, size: [u32; 3]) -> bool {
        let within = size.iter().zip(self.max_dims).all(|(&extent, most)| extent <= most);
        within && invocations(size) <= u128::from(self.max_size)
    }
}

/// Invocations of a work-group.
fn invocations(size: [u32; 3]) -> u128 {
    size.iter().map(|&extent| u128::from(extent)).product()
}

/// The divisors of `number` as TensorFlow Lite lists them: 1, `number`, then the next larger
/// divisor and its counterpart, up to the square root. None of 0.
fn divisors(number: u32) -> Vec<u32> {
    let mut divisors = Vec::new();
    for small in (1..=number.isqrt()).filter(|small| number.is_multiple_of(*small)) {
        divisors.push(small);
        if number / small != small {
            divisors.push(number / small);
        }
    }
    divisors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisors_come_in_pairs_from_both_ends() {
        assert_eq!(divisors(12), [1, 12, 2, 6, 3, 4]);
        assert_eq!(divisors(9), [1, 9, 3]);
        assert_eq!(divisors(1), [1]);
        assert!(divisors(0).is_empty());
        // 2^32 - 1 = 3 * 5 * 17 * 257 * 65537 has 2^5 divisors.
        assert_eq!(divisors(u32::MAX).len(), 32);
    }

    #[test]
    fn huge_sizes_are_held_against_the_bounds_without_overflow() {
        let bounds = Bounds { max_size: 256, max_dims: [u32::MAX; 3] };
        // 2^32 invocations, which 32 bits would take for 0.
        assert!(!bounds.hold([1 << 16, 1 << 16, 1]));
        assert!(!bounds.hold([u32::MAX; 3]));
        assert!(bounds.hold([16, 16, 1]));
        assert!(!Bounds { max_size: 256, max_dims: [256, 256, 64] }.hold([1, 1, 65]));
    }
}
