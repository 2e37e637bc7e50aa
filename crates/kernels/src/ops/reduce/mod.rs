//! `y[k] = sum_r x[k,r]`, or the mean, product, maximum or minimum, over any axes `r` of `x`
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x` | any | rows, or C4 where the channels stay |
//! | `y` | that of `x` without the axes `r`, or with extents of 1 there | as `x` |
//!
//! A NaN makes every reduction NaN but `Any` and `All`, which take what is not 0 as true, a NaN too, and give 1 or 0.
//! Sums are in f32 in every precision: halves end at 65504. Sums, products, maxima and minima of integers are exact, and
//! wrap.

mod arguments;
mod axes;
mod empty;
mod examples;
pub(super) mod groups;
mod integers;
mod maps_last;
mod nest;
mod operator;
mod oracle;
pub(super) mod pixels;
mod plan;

pub(super) use axes::{Merged, around, named, place};
pub(super) use examples::{NUMBERS, examples};

use crate::dims::{Dims, MAX_RANK};
use crate::dtype::{DType, Precision};
use crate::error::Result;

const OP: &str = "reduce";

/// How many elements become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
    /// The largest.
    Max,
    /// The smallest.
    Min,
    /// Their product.
    Product,
    /// 1 if one is not 0, else 0.
    Any,
    /// 1 if none is 0, else 0.
    All,
}

impl Reduction {
    /// Every reduction.
    pub const ALL: [Reduction; 7] = [
        Reduction::Sum,
        Reduction::Mean,
        Reduction::Max,
        Reduction::Min,
        Reduction::Product,
        Reduction::Any,
        Reduction::All,
    ];

    /// What a reduction of nothing is, but for a mean, which has none: then it is that of a sum.
    pub(in crate::ops) const fn first(self) -> f32 {
        match self {
            Reduction::Sum | Reduction::Mean | Reduction::Any => 0.0,
            Reduction::Product | Reduction::All => 1.0,
            Reduction::Max => f32::NEG_INFINITY,
            Reduction::Min => f32::INFINITY,
        }
    }

    /// Its name in keys and messages.
    ///
    /// ```
    /// use diptych::Reduction;
    ///
    /// assert_eq!(Reduction::Mean.name(), "mean");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Reduction::Sum => "sum",
            Reduction::Mean => "mean",
            Reduction::Max => "max",
            Reduction::Min => "min",
            Reduction::Product => "product",
            Reduction::Any => "any",
            Reduction::All => "all",
        }
    }

    /// Whether its elements are taken as true and false.
    const fn is_logical(self) -> bool {
        matches!(self, Reduction::Any | Reduction::All)
    }
}

/// Options of a reduction.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reduce {
    /// How many elements become one.
    pub reduction: Reduction,
    /// The axes that are reduced. Negative ones count from the last, and one may be named twice.
    pub axes: Vec<isize>,
    /// Whether they stay, with one element each.
    pub keep_dims: bool,
}

/// A reduction of concrete shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReduceOp {
    reduction: Reduction,
    input: Dims,
    reduced: [bool; MAX_RANK],
    output: Dims,
    precision: Precision,
    /// The type of the words.
    dtype: DType,
}

impl ReduceOp {
    /// Checks the axes.
    ///
    /// # Errors
    /// If an axis is beyond the rank, or the shape is too large.
    pub fn new(input: Dims, options: &Reduce, precision: Precision) -> Result<Self> {
        input.checked_or_empty(OP)?;
        let reduced = named(OP, &options.axes, input.rank())?;
        let kept = input.extents().iter().zip(reduced).filter_map(|(&extent, reduced)| {
            if reduced { options.keep_dims.then_some(1) } else { Some(extent) }
        });
        let output = Dims::new(&kept.collect::<Vec<_>>())?;
        output.checked_or_empty(OP)?;
        let precision = precision.with_f32_sums();
        Ok(ReduceOp { reduction: options.reduction, input, reduced, output, precision, dtype: DType::F32 })
    }

    /// Whether it is over height and width of a feature map.
    pub fn is_over_pixels(&self) -> bool {
        self.input.rank() == 4 && self.reduced[..4] == [false, true, true, false]
    }

    /// The reduction of words of another type, if integers have this reduction.
    fn of(self, word: DType) -> Self {
        ReduceOp { dtype: if self.reduction.is_of_integers() { word } else { DType::F32 }, ..self }
    }

    /// The axes that kernels of rows loop over.
    fn merged(&self) -> Merged {
        Merged::of(&self.input, self.reduced)
    }
}
