//! `y[i_0, i_1, ...] = x[sum over axes of stride * f(start + step * i)]`: elements moved, axis by axis
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x` | any | rows, or C4 on the device |
//! | `y` | any | rows, or C4 on the device |
//!
//! `f` is the rule for coordinates outside the source: a fill value, the mirror image, the edge, or the next
//! copy. Transposes, slices with steps, pads, tiles, broadcasts and moves between depth, space and batch are
//! all of this form; the axes of the result may be split finer than the tensor's own. Where the elements
//! stay in their order the operator is a view.
//!
//! Elements are moved as they are, NaN and infinities too; the fill value may be infinite.

mod axes;
mod examples;
mod nest;
mod operators;
mod oracle;
mod plan;
mod transpose;

pub(super) use examples::{NUMBERS, examples};
pub use operators::{
    AxisRange, BatchToSpace, BroadcastTo, DepthToSpace, Pad, PadMode, Reverse, SpaceToBatch, SpaceToDepth,
    StridedSlice, Tile, Transpose,
};

use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::emit::Bits;
use crate::error::{Error, Result};
use crate::ops::operator::{Lowered, View};
use crate::word;
use axes::Part;
pub use axes::{Axis, Rule};
use std::sync::Arc;

const OP: &str = "remap";

/// The most axes of a kernel's text, those merged that can be.
const MAX_AXES: usize = 8;

/// A move of concrete shapes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RemapOp {
    source: Dims,
    target: Dims,
    rule: Rule,
    /// The axes of the result, which the operator gives.
    axes: Vec<Axis>,
    /// The first element of the source that the parts count from.
    first: usize,
    /// The parts of the coordinates, the fewest that there can be.
    parts: Vec<Part>,
    precision: Precision,
    /// The type of the words.
    dtype: DType,
}

impl RemapOp {
    /// The elements of `source` as `target`, whose rows `axes` are, outermost first, perhaps split.
    ///
    /// # Errors
    /// If the axes have another number of elements than the target, a coordinate is where the rule has no
    /// element for it, or more than 8 axes are left when those that can be are merged.
    pub fn new(
        source: Dims,
        target: Dims,
        axes: Vec<Axis>,
        rule: Rule,
        precision: Precision,
    ) -> Result<Self> {
        source.checked_or_empty(OP)?;
        target.checked_or_empty(OP)?;
        let product = axes.iter().try_fold(1usize, |product, axis| product.checked_mul(axis.extent));
        if product != Some(target.elements()) {
            let extents: Vec<usize> = axes.iter().map(|axis| axis.extent).collect();
            return Err(Error::shape(OP, format!("axes {extents:?}"), format!("the elements of {target}")));
        }
        let fills = matches!(rule, Rule::Fill(_));
        if target.elements() == 0 || source.elements() == 0 && fills {
            let (first, parts, dtype) = (0, Vec::new(), DType::F32);
            return Ok(RemapOp { source, target, rule, axes, first, parts, precision, dtype });
        }
        if source.elements() == 0 {
            let found = format!("{source} to {target} ({rule:?})");
            return Err(Error::shape(OP, found, "at least one element, of which the others are made"));
        }
        for (index, axis) in axes.iter().enumerate() {
            axis.check(index, &rule)?;
        }
        let (first, parts) = axes::merged(&axes, &rule);
        if parts.len() > MAX_AXES {
            let found = format!("{} axes from {source} to {target}", parts.len());
            return Err(Error::unsupported(OP, format!("{found}, wanted at most {MAX_AXES}")));
        }
        let op = RemapOp { source, target, rule, axes, first, parts, precision, dtype: DType::F32 };
        op.check_reach()?;
        Ok(op)
    }

    /// The move of words of another type. A fill value is the nearest number of that type.
    pub(super) fn of(self, dtype: DType) -> Self {
        RemapOp { dtype, ..self }
    }

    /// Whether the parts stay within the source and their numbers within 32 bits.
    fn check_reach(&self) -> Result<()> {
        let (mut least, mut most) = (self.first as i128, self.first as i128);
        for part in &self.parts {
            let reach = part.stride as i128 * (part.source as i128 - 1);
            least += reach.min(0);
            most += reach.max(0);
            let numbers = [part.stride as i128, part.start as i128, part.last(), part.source as i128];
            if numbers.iter().any(|number| number.unsigned_abs() > i32::MAX as u128) {
                let found = format!("an axis {part:?} of {} to {}", self.source, self.target);
                return Err(Error::shape(OP, found, "coordinates of 32 bits"));
            }
        }
        if least < 0 || most >= self.source.elements() as i128 {
            let found = format!("elements {least} to {most} of {}", self.source);
            return Err(Error::shape(OP, found, format!("0 to {}", self.source.elements() - 1)));
        }
        Ok(())
    }

    /// The first element of the source, and extents with their strides there, outermost first, if every element of the result
    /// lies at a sum of multiples of them.
    pub fn strided(&self) -> Option<(usize, Vec<(usize, usize)>)> {
        let part = |part: &Part| {
            let stride = usize::try_from(part.stride).ok().filter(|_| part.is_linear())?;
            Some((part.extent, stride))
        };
        Some((self.first, self.parts.iter().map(part).collect::<Option<Vec<_>>>()?))
    }

    /// The result's dimensions.
    pub(super) fn target(&self) -> Dims {
        self.target
    }

    /// A view where the elements stay in their order.
    pub(super) fn lowered(self) -> Lowered {
        let stays = match &self.parts[..] {
            [] => self.source.elements() > 0 || self.target.elements() == 0,
            [part] => part.is_linear() && part.stride == 1,
            _ => false,
        };
        if stays {
            return Lowered::View(View { dims: self.target, offset: self.first });
        }
        Lowered::Op(Arc::new(self))
    }

    /// Whether elements may have no source.
    pub const fn fills(&self) -> bool {
        matches!(self.rule, Rule::Fill(_))
    }

    /// The value of what has no source. A finite one is at most the largest half where halves are stored; an infinite one
    /// stays so.
    fn fill(&self) -> f32 {
        let Rule::Fill(Bits(value)) = self.rule else { return 0.0 };
        let largest = half::f16::MAX.to_f32();
        match self.stored() {
            DType::F16 if value.is_finite() => value.clamp(-largest, largest),
            _ => value,
        }
    }

    /// What rows are moved in: integers as words of 32 bits in every precision.
    fn precision_of_rows(&self) -> Precision {
        if self.dtype == DType::F32 { self.precision.with_f32_sums() } else { Precision::F32 }
    }

    /// The type of its rows.
    fn stored(&self) -> DType {
        if self.dtype == DType::F32 { self.precision.storage() } else { self.dtype }
    }

    /// The value of what has no source, in words.
    fn fill_words(&self) -> Vec<f32> {
        match self.dtype {
            DType::F32 => vec![self.fill()],
            integer => word::of_integers(integer, [self.fill() as i64].into_iter()),
        }
    }
}
