//! Some of the elements along each axis.

use super::{Move, Moved, check_rank};
use crate::dims::Dims;
use crate::error::{Error, Result};
use crate::ops::remap::axes;
use std::collections::BTreeMap;

/// The elements `begin..end` of an axis, `step` apart, as in Python: negative numbers count from the end,
/// what lies outside is left out, and a negative step goes backwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AxisRange {
    /// The first element. Unless given, the first of the axis, or the last if the step is negative.
    pub begin: Option<isize>,
    /// The element behind the last one taken. Unless given, the range goes to the end of the axis.
    pub end: Option<isize>,
    /// The distance from one element to the next; not 0.
    pub step: isize,
}

impl Default for AxisRange {
    fn default() -> Self {
        AxisRange::ALL
    }
}

impl AxisRange {
    /// The whole axis.
    pub const ALL: AxisRange = AxisRange { begin: None, end: None, step: 1 };

    /// `begin..end`, each element.
    ///
    /// ```
    /// use diptych::nn::AxisRange;
    ///
    /// let last_three = AxisRange { begin: Some(-3), end: None, step: 1 };
    /// assert_eq!(AxisRange::new(0, 5), AxisRange { begin: Some(0), end: Some(5), step: 1 });
    /// # let _ = last_three;
    /// ```
    pub const fn new(begin: isize, end: isize) -> Self {
        AxisRange { begin: Some(begin), end: Some(end), step: 1 }
    }

    /// The first element and the number of elements, of `extent`; `None` if the step is 0.
    fn of(&self, extent: usize) -> Option<[usize; 2]> {
        let extent = isize::try_from(extent).ok()?;
        let forward = self.step > 0;
        let (low, high) = if forward { (0, extent) } else { (-1, extent - 1) };
        let place = |given: Option<isize>, other: isize| match given {
            None => other,
            Some(at) if at < 0 => at.saturating_add(extent).clamp(low, high),
            Some(at) => at.clamp(low, high),
        };
        let (first, behind) = if forward {
            (place(self.begin, 0), place(self.end, extent))
        } else {
            (place(self.begin, extent - 1), place(self.end, -1))
        };
        let span = if forward { behind - first } else { first - behind };
        let step = self.step.checked_abs().filter(|step| *step > 0)?;
        let count = if span > 0 { (span - 1) / step + 1 } else { 0 };
        Some([usize::try_from(first).unwrap_or(0), count.unsigned_abs()])
    }
}

/// A range of each axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StridedSlice {
    /// One for each axis.
    pub ranges: Vec<AxisRange>,
}

impl Move for StridedSlice {
    const NAME: &'static str = "strided_slice";

    fn moved(&self, source: Dims, _dimensions: &BTreeMap<String, usize>) -> Result<Moved> {
        check_rank(Self::NAME, "ranges", self.ranges.len(), source)?;
        let mut axes = axes::whole(source);
        for (axis, range) in axes.iter_mut().zip(&self.ranges) {
            let [first, count] = range.of(axis.extent).ok_or_else(|| {
                let found = format!("{range:?} of an axis of {} ({source})", axis.extent);
                Error::shape(Self::NAME, found, "a step that is not 0")
            })?;
            axis.extent = count;
            axis.start = first as isize;
            // One element has no next one.
            axis.step = if count <= 1 { 1 } else { range.step };
        }
        let extents: Vec<usize> = axes.iter().map(|axis| axis.extent).collect();
        Ok(Moved::within(Dims::new(&extents)?, axes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_python() {
        let of = |begin: Option<isize>, end: Option<isize>, step| AxisRange { begin, end, step }.of(5);
        assert_eq!(of(None, None, 1), Some([0, 5]));
        assert_eq!(of(Some(1), Some(-1), 1), Some([1, 3]));
        assert_eq!(of(Some(-9), Some(9), 2), Some([0, 3]));
        assert_eq!(of(None, None, -1), Some([4, 5]));
        assert_eq!(of(Some(9), Some(-9), -2), Some([4, 3]));
        assert_eq!(of(Some(3), Some(0), -1), Some([3, 3]));
        assert_eq!(of(Some(3), Some(3), 1).map(|[_, count]| count), Some(0));
        assert_eq!(of(Some(0), Some(-1), -1).map(|[_, count]| count), Some(0));
        assert_eq!(of(None, None, 0), None);
        assert_eq!(of(None, None, isize::MIN), None);
        assert_eq!(of(Some(isize::MIN), Some(isize::MAX), isize::MAX), Some([0, 1]));
    }
}
