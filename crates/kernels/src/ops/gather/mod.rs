//! `y[b, o, i, n] = x[b, o, index[b, i], n]`: elements of an axis, or of several, by their indices
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x` | `b o k_0 k_1 ... n`, each of them any axes | rows |
//! | `index` (`arg0`) | `b i`, and as many numbers as there are axes `k` behind | rows |
//! | `y` | `b o i n` | rows |
//!
//! An index is an integer, or an f32 that holds one; elements are of any type. Where it is not within its axis, or is no number, the elements are
//! zero, as in TensorFlow Lite on a GPU.

mod examples;
mod nest;
mod operator;
mod oracle;
mod rows;

pub(super) use examples::{NUMBERS, examples};

use crate::dims::{Dims, MAX_RANK};
use crate::dtype::{DType, Precision};
use crate::error::{Error, Result};
use crate::word::Integer;

const OP: &str = "gather";

/// Options of a selection of elements along one axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Gather {
    /// The axis along which the indices count; a negative one counts from the last. In the result, the axes of the
    /// indices stand in its place.
    pub axis: isize,
    /// How many outer axes the indices share with the value: each element of these has its own indices.
    pub batch_dims: usize,
}

/// A selection of elements along several axes: each row of the indices has one index for each of the first axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct GatherNd;

/// A selection of concrete shapes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GatherOp {
    source: Dims,
    indices: Dims,
    target: Dims,
    /// The first of the axes that indices are of, and how many there are.
    axis: usize,
    axes: usize,
    batch_dims: usize,
    /// The types of the elements' and of the indices' words.
    dtypes: [DType; 2],
    precision: Precision,
}

impl GatherOp {
    /// The elements of `source` along one axis.
    ///
    /// # Errors
    /// If there is no such axis, the shared axes differ or lie behind it, or the result has too many axes.
    pub fn new(source: Dims, indices: Dims, options: Gather) -> Result<Self> {
        let axis = source.axis(OP, options.axis)?;
        let shared = options.batch_dims;
        let (own, others) = (source.extents(), indices.extents());
        if shared > axis || shared > others.len() || own[..shared] != others[..shared] {
            let found =
                format!("{shared} shared axes of {source} along axis {axis} and of indices {indices}");
            return Err(Error::shape(OP, found, "the same extents, in front of the axis"));
        }
        let extents = [&own[..axis], &others[shared..], &own[axis + 1..]].concat();
        let target = Dims::new(&extents)?;
        let (dtypes, precision) = ([DType::F32; 2], Precision::F32);
        Ok(GatherOp { source, indices, target, axis, axes: 1, batch_dims: shared, dtypes, precision })
    }

    /// The elements of `source` along its first axes, as many as a row of `indices` has.
    ///
    /// # Errors
    /// If the indices have no rows, or more numbers in a row than the source has axes.
    pub fn nd(source: Dims, indices: Dims) -> Result<Self> {
        let rank = source.rank();
        let Some((&axes, rows)) = indices.extents().split_last().filter(|(axes, _)| **axes <= rank) else {
            let found = format!("indices {indices} of {source}");
            return Err(Error::shape(OP, found, format!("rows of 1 to {rank} indices")));
        };
        let target = Dims::new(&[rows, &source.extents()[axes..]].concat())?;
        let (dtypes, precision) = ([DType::F32; 2], Precision::F32);
        Ok(GatherOp { source, indices, target, axis: 0, axes, batch_dims: 0, dtypes, precision })
    }

    /// The op with words of other types: those of the elements and of the indices.
    pub(crate) fn of(self, dtypes: [DType; 2]) -> Self {
        GatherOp { dtypes, ..self }
    }

    /// The op in another precision: elements of f32 are halves where it stores them.
    #[must_use]
    pub fn in_precision(self, precision: Precision) -> Self {
        GatherOp { precision: precision.with_f32_sums(), ..self }
    }

    fn sizes(&self) -> Sizes {
        let own = self.source.extents();
        let product = |extents: &[usize]| extents.iter().product::<usize>();
        let batch = product(&own[..self.batch_dims]);
        let mut extents = [1; MAX_RANK];
        extents[..self.axes].copy_from_slice(&own[self.axis..self.axis + self.axes]);
        Sizes {
            outer: product(&own[self.batch_dims..self.axis]),
            count: self.indices.elements() / (batch * self.axes),
            extents,
            inner: product(&own[self.axis + self.axes..]),
        }
    }
}

/// The extents of a selection, several axes taken as one.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    /// `o`.
    outer: usize,
    /// `i`.
    count: usize,
    /// `k`, ones behind.
    extents: [usize; MAX_RANK],
    /// `n`.
    inner: usize,
}

impl Sizes {
    /// The place that `indices`, words of type `word`, say among those of their axes; `None` if one is outside.
    fn place(&self, word: DType, indices: &[f32]) -> Option<usize> {
        fn place(indices: impl Iterator<Item = Option<usize>>, extents: [usize; MAX_RANK]) -> Option<usize> {
            indices.zip(extents).try_fold(0, |place, (index, extent)| {
                index.filter(|&index| index < extent).map(|index| place * extent + index)
            })
        }
        fn of<T: Integer>(words: T::Words) -> Option<usize> {
            usize::try_from(T::of(words)).ok()
        }
        match word {
            DType::I32 => place(indices.iter().map(|&index| of::<i32>(index)), self.extents),
            DType::U32 => place(indices.iter().map(|&index| of::<u32>(index)), self.extents),
            DType::I64 => place(indices.as_chunks().0.iter().map(|&index| of::<i64>(index)), self.extents),
            _ => {
                let number = |&index: &f32| (index >= 0.0).then_some(index as usize);
                place(indices.iter().map(number), self.extents)
            }
        }
    }

    /// The elements that have an index.
    fn indexed(&self) -> usize {
        self.extents.iter().product()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_indices_stand_in_the_place_of_the_axis() {
        let dims = |extents: &[usize]| Dims::new(extents).expect("small");
        let of = |source: &[usize], indices: &[usize], axis, batch_dims| {
            GatherOp::new(dims(source), dims(indices), Gather { axis, batch_dims })
        };
        assert_eq!(of(&[2, 3, 5], &[7, 4], 1, 0).expect("fits").target, dims(&[2, 7, 4, 5]));
        assert_eq!(of(&[2, 3, 5], &[2, 4], -1, 1).expect("fits").target, dims(&[2, 3, 4]));
        assert_eq!(of(&[2, 3, 5], &[], 0, 0).expect("fits").target, dims(&[3, 5]));
        for (indices, axis, shared, wanted) in [
            (&[4][..], 3, 0, "axis 3"),
            (&[3, 4], 1, 1, "the same extents"),
            (&[2, 3, 4], 1, 2, "in front of the axis"),
            (&[2], 2, 2, "2 shared axes"),
            (&[1; 5], 0, 0, "rank 7"),
        ] {
            let text = of(&[2, 3, 5], indices, axis, shared).expect_err("refused").to_string();
            assert!(text.contains(wanted), "{text}");
        }
        let nd = |indices: &[usize]| GatherOp::nd(dims(&[2, 3, 5]), dims(indices));
        assert_eq!(nd(&[7, 2]).expect("fits").target, dims(&[7, 5]));
        assert_eq!(nd(&[3]).expect("fits").target, Dims::SCALAR);
        assert!(nd(&[7, 4]).expect_err("four axes").to_string().contains("1 to 3 indices"));
        assert!(nd(&[]).is_err());
    }
}
