//! Whether the elements of a tensor are in use.

use super::{Data, HostTensor};
use half::f16;
use std::sync::{Arc, Weak};

/// Tells whether the elements of a tensor are still in use elsewhere. Their place in memory is not given to others meanwhile.
#[derive(Debug)]
pub enum Watch {
    F32(Weak<[f32]>),
    F16(Weak<[f16]>),
}

impl Watch {
    /// Whether some tensor has the elements.
    #[doc(hidden)]
    pub fn is_alive(&self) -> bool {
        let owners = match self {
            Watch::F32(elements) => elements.strong_count(),
            Watch::F16(elements) => elements.strong_count(),
        };
        owners > 0
    }
}

impl HostTensor {
    /// Watches its elements without keeping them; none of a tensor of integers.
    #[doc(hidden)]
    pub fn watch(&self) -> Option<Watch> {
        match &self.data {
            Data::F32(elements) => Some(Watch::F32(Arc::downgrade(elements))),
            Data::F16(elements) => Some(Watch::F16(Arc::downgrade(elements))),
            _ => None,
        }
    }
}
