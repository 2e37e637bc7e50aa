//! The axes of a move, and as few parts as they can be merged to.

use super::OP;
use crate::dims::{Dims, MAX_RANK};
use crate::emit::Bits;
use crate::error::{Error, Result};

/// What a coordinate outside `0..extent` of the source stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// There is none.
    Within,
    /// This value.
    Fill(Bits),
    /// The mirror image without the edge: -1 is 1.
    Reflect,
    /// The mirror image with the edge: -1 is 0.
    Symmetric,
    /// The nearest element.
    Edge,
    /// The next copy: `extent` is 0. There is nothing before 0.
    Wrap,
}

/// An axis of the result: element `i` has coordinate `start + step * i` in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Axis {
    /// Elements of the result.
    pub extent: usize,
    /// Elements of the source from one coordinate to the next.
    pub stride: usize,
    /// The coordinate of the first element.
    pub start: isize,
    /// From one element's coordinate to the next one's.
    pub step: isize,
    /// Coordinates that the source has.
    pub source: usize,
}

impl Axis {
    /// All of `extent` elements that are `stride` apart.
    pub const fn whole(extent: usize, stride: usize) -> Self {
        Axis { extent, stride, start: 0, step: 1, source: extent }
    }

    /// The least and the greatest coordinate.
    fn range(&self) -> [i128; 2] {
        let start = self.start as i128;
        let last = start + self.step as i128 * (self.extent as i128 - 1);
        [start.min(last), start.max(last)]
    }

    /// Whether no coordinate is outside.
    pub(super) fn is_within(&self) -> bool {
        let [least, most] = self.range();
        least >= 0 && most < self.source as i128
    }

    /// Whether `rule` has an element for every coordinate.
    pub(super) fn check(&self, index: usize, rule: &Rule) -> Result<()> {
        let source = self.source as i128;
        let [low, high] = match rule {
            Rule::Within => [0, source - 1],
            Rule::Fill(_) | Rule::Edge => [i128::from(i32::MIN), i128::from(i32::MAX)],
            Rule::Reflect => [1 - source, 2 * (source - 1)],
            Rule::Symmetric => [-source, 2 * source - 1],
            Rule::Wrap => [0, i128::from(i32::MAX)],
        };
        let [least, most] = self.range();
        if self.source == 0 || self.extent == 0 || least < low || most > high {
            let found = format!("coordinates {least} to {most} of {} along axis {index}", self.source);
            return Err(Error::shape(OP, found, format!("{low} to {high} ({rule:?})")));
        }
        Ok(())
    }

    /// The coordinate that `rule` makes of that of element `i`; `None` for the fill value.
    pub(super) fn coordinate(&self, i: usize, rule: &Rule) -> Option<usize> {
        ruled(self.start + self.step * i as isize, self.source, rule)
    }
}

/// The coordinate that `rule` makes of `at`; `None` for the fill value.
pub(super) fn ruled(at: isize, source: usize, rule: &Rule) -> Option<usize> {
    let extent = source as isize;
    let mirrored = |before: isize, after: isize| match at {
        at if at < 0 => before - at,
        at if at >= extent => after - at,
        at => at,
    };
    let at = match rule {
        Rule::Within | Rule::Fill(_) => at,
        Rule::Reflect => mirrored(0, 2 * extent - 2),
        Rule::Symmetric => mirrored(-1, 2 * extent - 1),
        Rule::Edge => at.clamp(0, extent - 1),
        Rule::Wrap => at.rem_euclid(extent),
    };
    usize::try_from(at).ok().filter(|at| *at < source)
}

/// Several axes that are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Part {
    /// Elements of the result.
    pub(super) extent: usize,
    /// Elements of the source from one coordinate to the next, backwards where it is negative.
    pub(super) stride: isize,
    /// The coordinate of the first element.
    pub(super) start: isize,
    /// From one element's coordinate to the next one's.
    pub(super) step: isize,
    /// Coordinates that the source has.
    pub(super) source: usize,
}

impl Part {
    /// All coordinates, none of them outside: no rule is needed.
    const fn linear(extent: usize, stride: isize) -> Self {
        Part { extent, stride, start: 0, step: 1, source: extent }
    }

    /// Whether element `i` has coordinate `i`.
    pub(super) const fn is_linear(&self) -> bool {
        self.start == 0 && self.step == 1 && self.source == self.extent
    }

    /// The coordinate of the last element.
    pub(super) const fn last(&self) -> i128 {
        self.start as i128 + self.step as i128 * (self.extent as i128 - 1)
    }

    /// This part and the next one inwards as one, if they are.
    fn joined(&self, inner: &Part, rule: &Rule) -> Option<Part> {
        let apart = inner.stride * inner.extent as isize;
        if !inner.is_linear() || self.stride != apart {
            return None;
        }
        if self.is_linear() {
            return Some(Part::linear(self.extent * inner.extent, inner.stride));
        }
        let splits = matches!(rule, Rule::Fill(_) | Rule::Wrap);
        (splits && self.step == 1).then(|| Part {
            extent: self.extent * inner.extent,
            stride: inner.stride,
            start: self.start * inner.extent as isize,
            step: 1,
            source: self.source * inner.extent,
        })
    }
}

/// The first element of the source, and the parts from there: axes of one element left out, those that lie
/// behind each other merged.
pub(super) fn merged(axes: &[Axis], rule: &Rule) -> (usize, Vec<Part>) {
    let mut first = 0;
    let mut parts: Vec<Part> = Vec::new();
    for axis in axes.iter().rev() {
        let copies = axis.source == 1 && !matches!(rule, Rule::Fill(_));
        let part = if copies {
            Part::linear(axis.extent, 0)
        } else if axis.is_within() {
            first += axis.start.unsigned_abs() * axis.stride;
            Part::linear(axis.extent, axis.stride as isize * axis.step)
        } else {
            let Axis { extent, stride, start, step, source } = *axis;
            Part { extent, stride: stride as isize, start, step, source }
        };
        if part.is_linear() && part.extent == 1 {
            continue;
        }
        match parts.last().and_then(|inner| part.joined(inner, rule)) {
            Some(joined) => {
                parts.pop();
                parts.push(joined);
            }
            None => parts.push(part),
        }
    }
    parts.reverse();
    (first, parts)
}

/// The elements from one coordinate to the next along each axis of `dims`; ones beyond the rank.
pub(super) fn strides(dims: Dims) -> [usize; MAX_RANK] {
    let mut strides = [1; MAX_RANK];
    let mut stride = 1;
    for (axis, extent) in dims.extents().iter().enumerate().rev() {
        strides[axis] = stride;
        stride *= extent;
    }
    strides
}

/// All axes of `dims` as they are.
pub(super) fn whole(dims: Dims) -> Vec<Axis> {
    dims.extents().iter().zip(strides(dims)).map(|(&extent, stride)| Axis::whole(extent, stride)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_outside_follow_the_rule() {
        let of = |rule: Rule| (-2..5).map(|at| ruled(at, 3, &rule)).collect::<Vec<_>>();
        let some = |values: [usize; 7]| values.map(Some).to_vec();
        assert_eq!(of(Rule::Reflect), some([2, 1, 0, 1, 2, 1, 0]));
        assert_eq!(of(Rule::Symmetric), some([1, 0, 0, 1, 2, 2, 1]));
        assert_eq!(of(Rule::Edge), some([0, 0, 0, 1, 2, 2, 2]));
        assert_eq!(of(Rule::Wrap), some([1, 2, 0, 1, 2, 0, 1]));
        assert_eq!(of(Rule::Fill(Bits(1.0))), [None, None, Some(0), Some(1), Some(2), None, None]);
    }

    #[test]
    fn axes_that_lie_behind_each_other_are_one() {
        let dims = Dims::new(&[2, 3, 5, 7]).expect("small");
        let whole = whole(dims);
        assert_eq!(merged(&whole, &Rule::Within), (0, vec![Part::linear(210, 1)]));
        // n h w c -> n c h w: three of four.
        let [n, h, w, c] = whole[..] else { panic!("rank 4") };
        let parts = [Part::linear(2, 105), Part::linear(7, 1), Part::linear(15, 7)];
        assert_eq!(merged(&[n, c, h, w], &Rule::Within), (0, parts.to_vec()));
        // A border left and right is one of whole pixels.
        let fill = Rule::Fill(Bits(0.0));
        let padded = Axis { extent: 8, start: -1, ..w };
        let wide = Part { extent: 56, stride: 1, start: -7, step: 1, source: 35 };
        assert_eq!(merged(&[n, h, padded, c], &fill), (0, vec![Part::linear(6, 35), wide]));
        let mirrored = Part { extent: 8, stride: 7, ..wide };
        let mirrored = Part { start: -1, source: 5, ..mirrored };
        let parts = vec![Part::linear(6, 35), mirrored, Part::linear(7, 1)];
        assert_eq!(merged(&[n, h, padded, c], &Rule::Reflect), (0, parts));
        // Backwards from the last.
        let back = Axis { start: 4, step: -1, ..w };
        let parts = vec![Part::linear(6, 35), Part::linear(5, -7), Part::linear(7, 1)];
        assert_eq!(merged(&[n, h, back, c], &Rule::Within), (28, parts));
    }
}
