//! `m[i] = mean_r(x[i,r] - o)`, `q[i] = sum_r((x[i,r] - o - m[i])^2)` over parts `i` of `PART` pixels of a feature map,
//! `o` its first pixel, or 0 where the op is not centred
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x` | `n h w c` | C4 |
//! | `y` | `n parts 2 c`, `c` in whole slices of four: `m`, then `q` | f32 rows |
//!
//! The last part has what is left. A normalisation of a large map adds them up (Chan, Golub and LeVeque, *Updating
//! Formulae and a Pairwise Algorithm for Computing Sample Variances*, 1979): many work-groups share the map, and no
//! mean is lost in a larger one's rounding. Values are taken from the first pixel, so that a mean that is much larger than
//! the deviation takes no bits of it. Sums are in f32 in every precision.
//!
//! A NaN or an infinity makes both results of its part and channel NaN or infinite.

mod cpu;
mod examples;
mod maps;
mod operator;
mod oracle;
mod plan;

pub(super) use examples::{NUMBERS, examples};
pub use operator::MomentsOfParts;

use crate::dtype::Precision;
use crate::error::Result;
use crate::shape::Shape;

const OP: &str = "moments";

/// Pixels of a part.
pub(in crate::ops) const PART: usize = 2048;

/// The moments of the parts of a feature map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Moments {
    map: Shape,
}

impl Moments {
    /// The moments of a map's parts.
    pub const fn of(map: Shape) -> Self {
        Moments { map }
    }

    /// How many parts a map has.
    pub(crate) const fn parts(&self) -> usize {
        (self.map.h * self.map.w).div_ceil(PART)
    }

    /// Pixels of part `index`.
    pub(crate) fn count(&self, index: usize) -> usize {
        (self.map.h * self.map.w).saturating_sub(index * PART).min(PART)
    }

    /// Their shape.
    pub const fn shape(&self) -> Shape {
        Shape::nhwc(self.map.n, self.parts(), 2, 4 * self.map.slices())
    }

    /// Where the moments of channel `c` of part `index` of image `n` are among all: the mean and the squares.
    pub(crate) const fn places(&self, n: usize, index: usize, c: usize) -> [usize; 2] {
        let channels = 4 * self.map.slices();
        let mean = 2 * channels * (n * self.parts() + index) + c;
        [mean, mean + channels]
    }
}

/// The op: see the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MomentsOp {
    map: Shape,
    /// Whether values are taken from the map's first pixel; else from 0, so that squares about 0 follow from the results.
    centred: bool,
    precision: Precision,
}

impl MomentsOp {
    /// Checks the shape.
    ///
    /// # Errors
    /// If the map or its moments have more elements than a tensor may have.
    pub fn new(map: Shape, centred: bool, precision: Precision) -> Result<Self> {
        map.check(OP)?;
        Moments::of(map).shape().check(OP)?;
        Ok(MomentsOp { map, centred, precision: precision.with_f32_sums() })
    }

    pub(crate) const fn moments(&self) -> Moments {
        Moments::of(self.map)
    }
}
