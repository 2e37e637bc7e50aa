//! Constants that are alike: a program keeps one of them, as for the passes of a loop that was unrolled.

use super::constants::{Constant, MIN_SHARED};
use crate::dims::Dims;
use crate::dtype::DType;
use crate::emit::Operand;
use crate::graph::Value;
use crate::layout::Layout;
use std::collections::HashMap;

/// Of packed constants that are equal in this, kernels read the same elements.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Packing {
    /// What the op and its choice are.
    words: String,
    operand: Operand,
    dtype: DType,
    tensor: TensorPlace,
}

/// Where a tensor lies. The program and its network hold their tensors: no other one is there.
pub(super) type TensorPlace = (usize, Layout);

/// What is kept of constants that are alike.
#[derive(Debug, Default)]
pub(super) struct Alike {
    /// The places of packed constants among the program's.
    pub(super) packed: HashMap<Packing, usize>,
    /// The values of constants that kernels read as they are.
    pub(super) values: HashMap<(TensorPlace, Dims), Value>,
}

impl Constant {
    /// What it is packed by; none where nothing is worth sharing, or the op has no words.
    pub(super) fn packing(&self) -> Option<Packing> {
        let Constant { op, choice, operand, tensor, dtype, .. } = self;
        if tensor.dims().elements() < MIN_SHARED {
            return None;
        }
        let words = format!("{} {choice:?}", op.words()?);
        Some(Packing { words, operand: *operand, dtype: *dtype, tensor: tensor.place() })
    }
}
