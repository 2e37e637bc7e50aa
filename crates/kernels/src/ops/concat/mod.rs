//! `y = x_0, x_1, ... one behind the other along an axis`
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x_i` | any, the same but along the axis | rows, or C4 on the device |
//! | `y` | the same, with the sum of the extents along the axis | rows, or C4 on the device |
//!
//! An op has 7 inputs at most; `Graph::concat` makes several of more.
//!
//! Elements are moved as they are, NaN and infinities too.

mod examples;
mod nest;
mod operator;
mod oracle;
mod plan;

pub(super) use examples::{NUMBERS, examples};

use crate::dims::{Dims, MAX_RANK};
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::emit::interface::MAX_ARGS;
use crate::error::{Error, Result};

const OP: &str = "concat";

/// The most inputs of a concatenation.
pub const MAX_INPUTS: usize = MAX_ARGS;

/// Options of a concatenation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Concat {
    /// The axis along which the inputs follow each other; a negative one counts from the last.
    pub axis: isize,
}

/// A concatenation of concrete shapes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ConcatOp {
    inputs: Vec<Dims>,
    target: Dims,
    axis: usize,
    precision: Precision,
    /// The type of the words.
    dtype: DType,
}

impl ConcatOp {
    /// `inputs` one behind the other along `axis`.
    ///
    /// # Errors
    /// If there are none or more than 7, or their extents differ along another axis.
    pub fn new(inputs: &[Dims], axis: isize, precision: Precision) -> Result<Self> {
        let first = *inputs.first().filter(|_| inputs.len() <= MAX_INPUTS).ok_or_else(|| {
            Error::shape(OP, format!("{} inputs", inputs.len()), format!("1 to {MAX_INPUTS}"))
        })?;
        let axis = first.axis(OP, axis)?;
        let mut extents = [0; MAX_RANK];
        let extents = &mut extents[..first.rank()];
        extents.copy_from_slice(first.extents());
        for (index, input) in inputs.iter().enumerate().skip(1) {
            let mut others = first.extents().iter().zip(input.extents()).enumerate();
            let same = input.rank() == first.rank() && others.all(|(at, (a, b))| at == axis || a == b);
            if !same {
                let wanted = format!("the extents of {first} but along axis {axis}");
                return Err(Error::shape(OP, format!("input {index} of {input}"), wanted));
            }
            // Each is at most 2^31.
            extents[axis] += input.extents()[axis];
        }
        let target = Dims::new(extents)?;
        target.checked_or_empty(OP)?;
        Ok(ConcatOp { inputs: inputs.to_vec(), target, axis, precision, dtype: DType::F32 })
    }

    /// The concatenation of words of another type.
    fn of(self, dtype: DType) -> Self {
        ConcatOp { dtype, ..self }
    }

    /// The number of rows, and behind which element of a row each input ends.
    fn rows(&self) -> (usize, Vec<usize>) {
        let inner: usize = self.target.extents()[self.axis + 1..].iter().product();
        let outer = self.target.extents()[..self.axis].iter().product();
        (outer, self.ends(inner))
    }

    /// Where each input ends along the axis, each element of it counted `unit` times.
    fn ends(&self, unit: usize) -> Vec<usize> {
        let extents = self.inputs.iter().map(|input| input.extents()[self.axis] * unit);
        let ends = extents.scan(0, |end, extent| {
            *end += extent;
            Some(*end)
        });
        ends.collect()
    }

    /// The axis of the feature maps: 0 for batch, 1 for height, 2 for width, 3 for channels.
    fn map_axis(&self) -> Option<usize> {
        let rank = self.target.rank();
        // Axes in front of the last four are part of the batch.
        let behind = rank.saturating_sub(4);
        if self.axis > behind || rank <= 4 {
            return Some(self.axis + 4 - rank);
        }
        let alone = self.target.extents()[..self.axis].iter().all(|&extent| extent == 1);
        alone.then_some(0)
    }

    /// Whether every input but the last fills its slices of four channels.
    fn fills_slices(&self) -> bool {
        let filled = |input: &Dims| input.shape().c.is_multiple_of(4);
        self.inputs.split_last().is_none_or(|(_, inputs)| inputs.iter().all(filled))
    }
}

/// `Arg(0)`, `Arg(1)` and so on.
fn operand(index: usize) -> Operand {
    Operand::Arg(u8::try_from(index).unwrap_or(u8::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(extents: &[&[usize]], axis: isize) -> Result<ConcatOp> {
        let dims: Vec<Dims> = extents.iter().map(|extents| Dims::new(extents).expect("small")).collect();
        ConcatOp::new(&dims, axis, Precision::F32)
    }

    #[test]
    fn extents_add_up_along_the_axis_alone() {
        let op = of(&[&[2, 3, 5], &[2, 1, 5]], -2).expect("fits");
        assert_eq!(op.target.extents(), [2, 4, 5]);
        assert_eq!(op.rows(), (2, vec![15, 20]));
        for (extents, axis, wanted) in [
            (&[&[2, 3][..], &[2, 4]][..], 0, "the extents of 2x3 but along axis 0"),
            (&[&[2, 3], &[2, 3, 1]], 0, "the extents of 2x3 but along axis 0"),
            (&[&[2, 3], &[2, 3]], 2, "-2 to 2"),
            (&[], 0, "1 to 7"),
            (&[&[1][..]; 8], 0, "1 to 7"),
            (&[&[1 << 30], &[1 << 30]], 0, "at most 2147483647 elements"),
        ] {
            let text = of(extents, axis).expect_err("does not fit").to_string();
            assert!(text.contains(wanted), "{text}");
        }
    }

    #[test]
    fn axes_in_front_of_the_last_four_are_the_batch_where_they_are_alone() {
        let axis = |extents: &[usize], axis| of(&[extents, extents], axis).expect("fits").map_axis();
        assert_eq!(axis(&[7], 0), Some(3));
        assert_eq!(axis(&[2, 3, 5, 7], 1), Some(1));
        assert_eq!(axis(&[2, 3, 5, 7, 2], 2), Some(1));
        assert_eq!(axis(&[1, 3, 5, 7, 2], 1), Some(0));
        assert_eq!(axis(&[2, 3, 5, 7, 2], 1), None);
        assert_eq!(axis(&[2, 3, 5, 7, 2, 2], 0), Some(0));
    }
}
