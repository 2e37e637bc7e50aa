//! Windows that move over maps.

use crate::shape::Padding;

/// How a window moves along the spatial axes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Windows {
    pub(crate) kernel: Vec<usize>,
    pub(crate) stride: Vec<usize>,
    pub(crate) dilation: Vec<usize>,
    /// Before and after each axis; a negative one cuts.
    pub(crate) pads: Vec<(i64, i64)>,
}

impl Windows {
    /// The elements from the first tap to the last.
    pub(crate) fn span(&self, axis: usize) -> usize {
        (self.kernel[axis] - 1) * self.dilation[axis] + 1
    }

    pub(crate) fn has_negative_pads(&self) -> bool {
        self.pads.iter().any(|&(before, after)| before < 0 || after < 0)
    }

    /// The padding of a map; both axes have pads from 0 on.
    pub(crate) fn padding(&self) -> Padding {
        let size = |pad: i64| pad.max(0) as usize;
        match self.pads[..] {
            [(top, bottom), (left, right)] => Padding::Explicit {
                top: size(top),
                bottom: size(bottom),
                left: size(left),
                right: size(right),
            },
            _ => Padding::Valid,
        }
    }

    /// The same with a height of one before, so that there are two axes.
    pub(crate) fn flat(mut self) -> Self {
        self.kernel.insert(0, 1);
        self.stride.insert(0, 1);
        self.dilation.insert(0, 1);
        self.pads.insert(0, (0, 0));
        self
    }
}
