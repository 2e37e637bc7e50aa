//! `y[o, r] = x[o, i_r]`, or `i_r`: the largest elements of each row in descending order, or the smallest in ascending
//! order; or their indices
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x` | `o n`, `o` any axes | rows |
//! | `y` | `o k` | rows |
//!
//! Of equal elements the first one comes first, as in TensorFlow Lite; both zeros are equal, and a NaN is larger than
//! anything, infinity included, as in NumPy. Elements are moved as they are.
//!
//! Short rows have their elements compared with all others, long ones (`TopKOp::is_long`) are sorted by a work-group.

mod examples;
mod operator;
mod oracle;
mod rows;
mod select;

pub(super) use examples::{NUMBERS, examples};

use crate::dims::Dims;
use crate::dtype::DType;
use crate::emit::Value;
use crate::error::{Error, Result};
use crate::limits::{Family, Limits};
use crate::word;

const OP: &str = "top_k";

/// Options of a choice of the largest or smallest elements of each row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TopK {
    /// How many.
    pub k: usize,
    /// Whether to find the largest elements; else the smallest.
    pub largest: bool,
    /// Whether the result is their indices, not the elements themselves.
    pub indices: bool,
}

/// A choice of concrete shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TopKOp {
    source: Dims,
    target: Dims,
    largest: bool,
    indices: bool,
    /// The type of the source's words.
    dtype: DType,
}

impl TopKOp {
    /// The largest or smallest elements along the last axis of `source`.
    ///
    /// # Errors
    /// If there is no axis, or it does not have so many elements.
    pub fn new(source: Dims, TopK { k, largest, indices }: TopK) -> Result<Self> {
        let Some((_, outer)) = source.extents().split_last().filter(|(extent, _)| k <= **extent) else {
            let wanted = "a last axis of at least as many";
            let which = if largest { "largest" } else { "smallest" };
            return Err(Error::shape(OP, format!("the {k} {which} of {source}"), wanted));
        };
        let target = Dims::new(&[outer, &[k]].concat())?;
        Ok(TopKOp { source, target, largest, indices, dtype: DType::F32 })
    }

    /// The largest of words of another type.
    fn of(self, dtype: DType) -> Self {
        TopKOp { dtype, ..self }
    }

    /// Numbers that are less for elements that come earlier.
    fn keys(&self, src: &[f32]) -> Vec<i64> {
        let mut keys: Vec<i64> = match self.dtype {
            DType::F32 => src.iter().map(|&value| i64::from(key(value))).collect(),
            integer => word::integers(integer, src),
        };
        if self.largest {
            // Every integer has a complement, where the least one has no negative.
            keys.iter_mut().for_each(|key| *key = !*key);
        }
        keys
    }

    /// What the kernels' keys differ in from those that are larger for elements that come earlier.
    fn turned(&self) -> Value {
        Value::U32(if self.largest { 0 } else { u32::MAX })
    }

    /// Whether rows are so long that to compare each element with all others takes longer than to sort them.
    fn is_long(&self, limits: &Limits) -> bool {
        let [terms, _] = self.extents();
        let few = if limits.family == Family::CpuDriver { 1024 } else { 4096 };
        let pairs = self.source.elements().saturating_mul(terms);
        terms > few || (terms >= 512 && pairs > 1 << 26)
    }

    /// Elements of a row, and how many of them are chosen.
    fn extents(&self) -> [usize; 2] {
        [self.source.shape().c, self.target.shape().c]
    }
}

/// A number that is larger for a larger value: 0 for both zeros, the largest for what is no number.
fn key(value: f32) -> u32 {
    let bits = value.to_bits();
    match bits {
        _ if value.is_nan() => u32::MAX,
        0x8000_0000 => 0x8000_0000,
        bits if bits >> 31 == 1 => !bits,
        bits => bits | 0x8000_0000,
    }
}
