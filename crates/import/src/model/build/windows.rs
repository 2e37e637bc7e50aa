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
    /// Whether the pads follow from the input's extents, so that an input of others has others: those of
    /// [`Windows::surround`].
    pub(crate) same: bool,
}

impl Windows {
    /// Windows of these taps, which are next to each other and move by one element, without pads.
    pub(crate) fn new(kernel: &[usize]) -> Self {
        let ones = vec![1; kernel.len()];
        let pads = vec![(0, 0); kernel.len()];
        Windows { kernel: kernel.to_vec(), stride: ones.clone(), dilation: ones, pads, same: false }
    }

    /// The elements from the first tap to the last.
    pub(crate) fn span(&self, axis: usize) -> usize {
        (self.kernel[axis] - 1).saturating_mul(self.dilation[axis]).saturating_add(1)
    }

    /// How many windows there are along an axis, if one fits.
    pub(crate) fn count(&self, axis: usize, extent: usize) -> Option<usize> {
        let (before, after) = self.pads[axis];
        let whole = usize::try_from(extent as i64 + before + after).ok()?;
        Some(whole.checked_sub(self.span(axis))? / self.stride[axis] + 1)
    }

    /// Pads with which there is a window for each step within the input; the odd element is behind it, or before it.
    pub(crate) fn surround(&mut self, input: &[usize], odd_behind: bool) {
        for (axis, &extent) in input.iter().enumerate() {
            let steps = extent.div_ceil(self.stride[axis]).saturating_sub(1);
            let span = steps.saturating_mul(self.stride[axis]).saturating_add(self.span(axis));
            let whole = span.saturating_sub(extent) as i64;
            let (less, more) = (whole / 2, whole - whole / 2);
            self.pads[axis] = if odd_behind { (less, more) } else { (more, less) };
        }
    }

    pub(crate) fn has_negative_pads(&self) -> bool {
        self.pads.iter().any(|&(before, after)| before < 0 || after < 0)
    }

    /// Whether nothing lies around the input.
    pub(crate) fn is_bare(&self) -> bool {
        self.pads.iter().all(|&pads| pads == (0, 0))
    }

    /// The padding of a map; both axes have pads from 0 on.
    pub(crate) fn padding(&self) -> Padding {
        let size = |pad: i64| pad.max(0) as usize;
        match self.pads[..] {
            _ if self.same => Padding::Same,
            [(top, bottom), (left, right)] if !self.is_bare() => Padding::Explicit {
                top: size(top),
                bottom: size(bottom),
                left: size(left),
                right: size(right),
            },
            _ => Padding::Valid,
        }
    }

    /// The windows with an axis of one tap (a height) before their own, so that windows of a line are windows of a map.
    pub(crate) fn flat(mut self) -> Self {
        self.kernel.insert(0, 1);
        self.stride.insert(0, 1);
        self.dilation.insert(0, 1);
        self.pads.insert(0, (0, 0));
        self
    }

    /// The windows without their first axis (depth): how they move over each map of a volume.
    pub(crate) fn of_maps(&self) -> Self {
        let mut maps = self.clone();
        for list in [&mut maps.kernel, &mut maps.stride, &mut maps.dilation] {
            list.remove(0);
        }
        maps.pads.remove(0);
        maps
    }

    /// The windows without pads, for an input to which the pads were already added.
    pub(crate) fn bare(mut self) -> Self {
        self.pads.fill((0, 0));
        self.same = false;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pads_give_a_window_for_each_step() {
        let mut windows = Windows { stride: vec![2, 1], dilation: vec![1, 2], ..Windows::new(&[3, 2]) };
        windows.surround(&[6, 5], true);
        assert_eq!(windows.pads, [(0, 1), (1, 1)]);
        assert_eq!((windows.count(0, 6), windows.count(1, 5)), (Some(3), Some(5)));
        windows.surround(&[6, 5], false);
        assert_eq!(windows.pads[0], (1, 0));
        assert_eq!(windows.bare().count(1, 2), None);
    }
}
