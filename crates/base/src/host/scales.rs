//! Tensors whose elements are integers times scales.

use super::HostTensor;
use std::sync::Arc;

/// The scales of a tensor whose elements are integers times a scale: quantized weights.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq)]
pub struct Scales {
    /// One scale for all elements, or one for each index along the axis.
    pub values: Arc<[f32]>,
    /// The axis that the scales belong to.
    pub axis: usize,
}

impl Scales {
    /// The scales of the same elements in the same order, which had extents `from` and have extents `to`; nothing where the
    /// axis is none of these.
    pub(super) fn reshaped(&self, from: &[usize], to: &[usize]) -> Option<Scales> {
        if self.values.len() == 1 {
            return Some(Scales { axis: 0, ..self.clone() });
        }
        let behind = |extents: &[usize], axis: usize| extents.iter().skip(axis + 1).product::<usize>();
        let (extent, inner) = (*from.get(self.axis)?, behind(from, self.axis));
        let axis = (0..to.len()).find(|&axis| to.get(axis) == Some(&extent) && behind(to, axis) == inner)?;
        Some(Scales { axis, ..self.clone() })
    }
}

impl HostTensor {
    /// The tensor, whose elements are integers times these scales: one for all, or one for each index along `axis`. The elements
    /// stay as they are. Operators on quantized values with such weights are computed on bytes
    /// ([`Graph::quantize_linear`](struct.Graph.html#method.quantize_linear)).
    ///
    /// ```
    /// use diptych::{HostTensor, Shape};
    ///
    /// // One output channel in steps of 0.5, the other one of 0.25.
    /// let weights = HostTensor::new(Shape::nhwc(2, 1, 1, 2), vec![0.5, -1.0, 0.25, 0.75])?.with_scales(vec![0.5, 0.25], 0);
    /// assert_eq!(*weights.to_f32(), [0.5, -1.0, 0.25, 0.75]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    #[must_use]
    pub fn with_scales(self, values: impl Into<Arc<[f32]>>, axis: usize) -> Self {
        HostTensor { scales: Some(Arc::new(Scales { values: values.into(), axis })), ..self }
    }

    /// The scales that the elements are multiples of, if they are known.
    #[doc(hidden)]
    pub fn scales(&self) -> Option<&Scales> {
        self.scales.as_deref()
    }
}
