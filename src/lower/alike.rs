//! Constants that are alike: a program keeps one of them, as for the passes of a loop that was unrolled.

use super::constants::{Constant, MIN_SHARED};
use super::program::Builder;
use crate::dims::Dims;
use crate::dtype::DType;
use crate::emit::Operand;
use crate::error::Result;
use crate::graph::Value;
use crate::host::HostTensor;
use crate::layout::Layout;
use std::collections::HashMap;

/// Of packed constants that are equal in this, kernels read the same elements.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Packing {
    /// What the op and its choice are.
    words: String,
    operand: Operand,
    dtype: DType,
    tensor: Place,
}

/// Where a tensor lies. The program and its network hold their tensors: no other one is there.
type Place = (usize, Layout);

/// What is kept of constants that are alike.
#[derive(Debug, Default)]
pub(super) struct Alike {
    /// The places of packed constants among the program's.
    packed: HashMap<Packing, usize>,
    /// The values of constants that kernels read as they are.
    values: HashMap<(Place, Dims), Value>,
}

impl Constant {
    /// What it is packed by; none where nothing is worth sharing, or the op has no words.
    fn packing(&self) -> Option<Packing> {
        let Constant { op, choice, operand, tensor, dtype, .. } = self;
        if tensor.dims().elements() < MIN_SHARED {
            return None;
        }
        let words = format!("{} {choice:?}", op.words()?);
        Some(Packing { words, operand: *operand, dtype: *dtype, tensor: tensor.place() })
    }
}

impl Builder<'_, '_> {
    /// The place of a packed constant among the program's.
    pub(super) fn constant(&mut self, constant: Constant) -> usize {
        let next = self.program.constants.len();
        let place =
            constant.packing().map_or(next, |packing| *self.alike.packed.entry(packing).or_insert(next));
        if place == next {
            self.program.constants.push(constant);
        }
        place
    }

    /// The value that is stored for the constant `value`: the first of its tensor and dimensions.
    pub(super) fn stored_alike(&mut self, value: Value) -> Result<Value> {
        let dims = self.network.dims(value)?;
        let place = self.network.constant(value).map(HostTensor::place);
        Ok(place.map_or(value, |place| *self.alike.values.entry((place, dims)).or_insert(value)))
    }
}
