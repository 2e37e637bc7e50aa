//! `y[r] = (i_0, s_0), (i_1, s_1), ..., rest`: the boxes with the largest scores, without those that overlap one
//! of them (non-maximum suppression)
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `boxes` (`arg0`) | `r n 4`, or `1 n 4` for all rows: two corners, `y x y x`, in any order | rows |
//! | `scores` (`arg1`) | `r n` | rows |
//! | `y` | `r (2 k + n)` | rows |
//!
//! `i_j` is the place of a box, -1 where none is left, and `s_j` its score then, or 0. The rest are the scores
//! that are left, `NONE` where there is none: of what was suppressed, and of what was below the threshold.
//! Of equal scores the first comes first. The overlap of two boxes is the area of their intersection over that of
//! their union; 0 where one has no area.
//!
//! A score that is NaN is not above the threshold. Corners are finite: what a box overlaps whose corner is not, the
//! device decides.
//!
//! Source: TensorFlow Lite's `NON_MAX_SUPPRESSION_V5` and `TFLite_Detection_PostProcess`.

mod examples;
mod operator;
mod oracle;
mod plan;
mod rows;

pub(super) use examples::{NUMBERS, examples};

use crate::dims::Dims;
use crate::emit::Bits;
use crate::error::{Error, Result};

const OP: &str = "suppress";

/// The score of what is no candidate.
const NONE: f32 = -3.0e38;

/// Options of a suppression of boxes that overlap better ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Suppress {
    /// How many boxes of a row are kept at most.
    pub count: usize,
    /// A box that overlaps a kept box by more than this is suppressed. `strict` says what happens at the value itself.
    pub overlap: Bits,
    /// A box with less than this score is no candidate. `strict` says what happens at the value itself.
    pub score: Bits,
    /// `sigma`: other scores are multiplied by `exp(-overlap^2 / (2 sigma))`; they stay as they are if it is 0.
    pub sigma: Bits,
    /// Whether a box is a candidate only above `score`, and suppressed at `overlap` itself; otherwise it is a
    /// candidate at `score` itself, and suppressed only above `overlap`. A chosen box is treated as any other
    /// then: without an area, it is chosen again.
    pub strict: bool,
}

/// A suppression of concrete shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SuppressOp {
    boxes: Dims,
    scores: Dims,
    target: Dims,
    options: Suppress,
}

impl SuppressOp {
    /// The best of `boxes` for each row of `scores`.
    ///
    /// # Errors
    /// If the boxes are not `r n 4` or `1 n 4`, the scores not `r n`, none is wanted, or a threshold is no
    /// number.
    pub fn new(boxes: Dims, scores: Dims, options: Suppress) -> Result<Self> {
        let (&[of, n, 4], &[rows, other]) = (boxes.extents(), scores.extents()) else {
            return Err(Error::shape(OP, format!("boxes {boxes}, scores {scores}"), "r n 4 and r n"));
        };
        if n != other || (of != rows && of != 1) {
            return Err(Error::shape(OP, format!("boxes {boxes}, scores {scores}"), "r n 4 and r n"));
        }
        let Suppress { count, overlap, score, sigma, .. } = options;
        let numbers = [overlap.0, score.0, sigma.0];
        if count == 0 || numbers.iter().any(|number| number.is_nan()) || sigma.0 < 0.0 {
            let found = format!("{count} boxes, overlap, score and sigma {numbers:?}");
            return Err(Error::shape(OP, found, "at least 1, numbers, and a sigma of at least 0"));
        }
        let wide = count.checked_mul(2).and_then(|own| own.checked_add(n));
        let wide = wide.ok_or_else(|| Error::shape(OP, format!("{count} boxes"), "fewer"))?;
        Ok(SuppressOp { boxes, scores, target: Dims::new(&[rows, wide])?, options })
    }

    /// Rows, and boxes of each.
    fn extents(&self) -> [usize; 2] {
        [self.scores.extents()[0], self.scores.extents()[1]]
    }

    /// The boxes of row `row`.
    fn boxes_of<'a>(&self, boxes: &'a [f32], row: usize) -> &'a [f32] {
        let [_, n] = self.extents();
        let row = if self.boxes.extents()[0] == 1 { 0 } else { row };
        boxes.get(4 * n * row..4 * n * (row + 1)).unwrap_or_default()
    }
}
