//! Tensors as what other crates have, and back.

#[cfg(feature = "ndarray")]
mod arrays;
#[cfg(feature = "image")]
mod pictures;

use super::{HostTensor, TensorElement};
use crate::alloc;
use crate::error::{Error, Result};
use crate::layout::Layout;

impl HostTensor {
    /// A copy of the elements in NHWC order, if they are of this type.
    fn elements_in_nhwc<T: TensorElement>(&self) -> Result<Vec<T>> {
        let elements = self.elements::<T>().ok_or_else(|| {
            Error::shape("host tensor", format!("elements of {}", self.dtype()), T::DTYPE.to_string())
        })?;
        if self.layout == Layout::Nhwc {
            return alloc::copied(elements, "a tensor's elements");
        }
        alloc::expect::<T>(elements.len(), "a tensor's elements")?;
        Ok(self.in_nhwc(elements))
    }
}
