//! Values that show the elements of another one where they lie: no kernel, no copy.
//!
//! | operator | result |
//! |---|---|
//! | [`Reshape`] | the same elements in the same order, in other dimensions |
//! | [`Slice`] | some of the rows along an outer axis |

use crate::dims::{Dim, Dims};
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::ops::operator::{Arguments, Lowered, Options, View};

/// `y = x` in other dimensions; the number of elements stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reshape {
    /// The new extents; at most one is [`Dim::Rest`].
    pub target: Vec<Dim>,
}

impl Options for Reshape {
    const NAME: &'static str = "reshape";

    fn lower(&self, arguments: Arguments<'_>, _precision: Precision) -> Result<Lowered> {
        let source = arguments.need("reshape", Operand::Src)?;
        let told = || self.target.iter().map(Dim::to_string).collect::<Vec<_>>().join(" ");
        let refused = || {
            let found = format!("{source} to {}", told());
            Error::shape("reshape", found, format!("extents of {} elements in all", source.elements()))
        };
        let mut extents = Vec::with_capacity(self.target.len());
        let (mut rest, mut known) = (None, 1usize);
        for (axis, dim) in self.target.iter().enumerate() {
            let extent = dim.resolved(arguments.dimensions).map_err(|name| {
                Error::shape("reshape", format!("dimension {name:?}"), "one of the graph's dimensions")
            })?;
            if extent.is_none() && rest.replace(axis).is_some() {
                return Err(refused());
            }
            let extent = extent.unwrap_or(1);
            known = known.checked_mul(extent).ok_or_else(refused)?;
            extents.push(extent);
        }
        if let Some(axis) = rest {
            // What is left of no elements beside another extent of 0 is undecided.
            extents[axis] = source.elements().checked_div(known).ok_or_else(refused)?;
        }
        let dims = Dims::new(&extents)?;
        if dims.elements() != source.elements() {
            return Err(refused());
        }
        Ok(Lowered::View(View { dims, offset: 0 }))
    }
}

/// `y = x[begin..end]` along `axis`, all of the other axes. Every axis before it has one element, so
/// that the result lies in one piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice {
    /// The axis, counted from the outermost.
    pub axis: usize,
    /// The first index that is taken.
    pub begin: usize,
    /// The index behind the last that is taken.
    pub end: usize,
}

impl Options for Slice {
    const NAME: &'static str = "slice";

    fn lower(&self, arguments: Arguments<'_>, _precision: Precision) -> Result<Lowered> {
        let source = arguments.need("slice", Operand::Src)?;
        let Slice { axis, begin, end } = *self;
        let Some(&extent) = source.extents().get(axis) else {
            return Err(Error::shape("slice", format!("axis {axis} of {source}"), "an axis of the value"));
        };
        if begin > end || end > extent {
            let wanted = format!("a range within {extent}");
            return Err(Error::shape("slice", format!("{begin}..{end} of axis {axis} of {source}"), wanted));
        }
        let (before, after) = (&source.extents()[..axis], &source.extents()[axis + 1..]);
        if before.iter().any(|&outer| outer != 1) {
            let wanted = "one element along every axis before it";
            return Err(Error::shape("slice", format!("axis {axis} of {source}"), wanted));
        }
        let mut extents = source.extents().to_vec();
        extents[axis] = end - begin;
        let offset = begin * after.iter().product::<usize>();
        Ok(Lowered::View(View { dims: Dims::new(&extents)?, offset }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::ops::operator::{Argument, Operator};
    use std::collections::BTreeMap;

    fn lowered(operator: &dyn Operator, extents: &[usize]) -> Result<View> {
        let dims = Dims::new(extents).expect("small");
        let inputs = [Argument { operand: Operand::Src, dims, dtype: DType::F32 }];
        match operator.lower(
            Arguments { inputs: &inputs, dimensions: &BTreeMap::new(), narrow: false },
            Precision::F32,
        )? {
            Lowered::View(view) => Ok(view),
            Lowered::Op(op) => panic!("{op:?} is no view"),
        }
    }

    #[test]
    fn a_reshape_keeps_the_elements_and_works_out_the_rest() {
        let to = |target: &[Dim]| lowered(&Reshape { target: target.to_vec() }, &[2, 3, 4]);
        assert_eq!(to(&[6.into(), Dim::Rest]).expect("6 x 4").dims, Dims::new(&[6, 4]).expect("small"));
        assert_eq!(to(&[24.into()]).expect("flat").dims.rank(), 1);
        for wrong in [
            vec![5.into(), Dim::Rest],
            vec![Dim::Rest, Dim::Rest],
            vec![0.into(), Dim::Rest],
            vec![23.into()],
        ] {
            let error = to(&wrong).expect_err("24 elements").to_string();
            assert!(error.contains("2x3x4"), "{error}");
        }
    }

    #[test]
    fn a_slice_begins_behind_what_it_leaves_out() {
        let of = |axis, begin, end, extents: &[usize]| lowered(&Slice { axis, begin, end }, extents);
        let view = of(0, 1, 3, &[4, 5, 6]).expect("outer");
        assert_eq!((view.dims, view.offset), (Dims::new(&[2, 5, 6]).expect("small"), 30));
        assert_eq!(of(1, 2, 3, &[1, 5, 6]).expect("behind ones").offset, 12);
        assert!(of(1, 0, 1, &[2, 5, 6]).expect_err("in two pieces").to_string().contains("2x5x6"));
        assert!(of(0, 3, 5, &[4, 5]).is_err());
        assert_eq!(of(0, 2, 2, &[4, 5]).expect("no rows").dims, Dims::new(&[0, 5]).expect("small"));
        assert!(of(0, 3, 2, &[4, 5]).is_err());
        assert!(of(2, 0, 1, &[4, 5]).is_err());
    }
}
