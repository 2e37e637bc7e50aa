//! A move of what another move gave, as one.

use super::{Move, Moved};
use crate::dims::Dims;
use crate::error::{Error, Result};
use crate::ops::remap::axes::Part;
use crate::ops::remap::{Axis, OP, RemapOp};
use std::collections::BTreeMap;

/// Element `j_0, j_1, ...` of the result is element `first + sum_d stride_d j_d` of the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Composed {
    source: Dims,
    target: Dims,
    first: usize,
    /// Extent and stride, outermost first.
    lines: Vec<[usize; 2]>,
}

impl Move for Composed {
    const NAME: &'static str = OP;

    fn moved(&self, source: Dims, _: &BTreeMap<String, usize>) -> Result<Moved> {
        if source.elements() != self.source.elements() {
            return Err(Error::shape(OP, source.to_string(), format!("the elements of {}", self.source)));
        }
        let first =
            Axis { extent: 1, stride: 1, start: self.first as isize, step: 1, source: self.first + 1 };
        let lines = self.lines.iter().map(|&[extent, stride]| Axis::whole(extent, stride));
        Ok(Moved::within(self.target, std::iter::once(first).chain(lines).collect()))
    }
}

/// Extent and stride of a part without coordinates outside that goes forward.
fn line(part: &Part) -> Option<[usize; 2]> {
    let stride = usize::try_from(part.stride).ok()?;
    part.is_linear().then_some([part.extent, stride])
}

impl RemapOp {
    /// This move and then `second`, whose source begins at element `offset` of this one's result.
    ///
    /// The elements of this one's result are numbers whose digits are its parts. A part of the second counts in one digit,
    /// or all through one and on in the next; where no sum of what they count carries over, each digit is a sum of parts
    /// of the second, and so is the element of the source.
    pub fn then(&self, second: &RemapOp, offset: usize) -> Option<Composed> {
        let own = self.parts.iter().map(line).collect::<Option<Vec<_>>>()?;
        let parts = second.parts.iter().map(line).collect::<Option<Vec<_>>>()?;
        let at = offset + second.first;
        let (mut first, mut digits, mut weight) = (self.first, Vec::with_capacity(own.len()), 1);
        for &[extent, stride] in own.iter().rev() {
            let digit = at / weight % extent;
            first += digit * stride;
            digits.push(Digit { extent, stride, weight, most: digit });
            weight *= extent;
        }
        let mut lines = Vec::new();
        for [extent, stride] in parts.into_iter().rev() {
            count(&mut digits, extent, stride, &mut lines)?;
        }
        lines.reverse();
        let (source, target) = (self.source, second.target);
        (at < weight).then_some(Composed { source, target, first, lines })
    }
}

/// A part of the first move as a digit of its result's elements.
struct Digit {
    extent: usize,
    /// In the source.
    stride: usize,
    /// Elements of the result from one value of the digit to the next.
    weight: usize,
    /// The largest value so far.
    most: usize,
}

impl Digit {
    /// Counts `extent` times by `step`; the stride of it in the source. None if the digit has no such value.
    fn counted(&mut self, extent: usize, step: usize) -> Option<usize> {
        self.most += (extent - 1) * step;
        (self.most < self.extent).then_some(step * self.stride)
    }
}

/// What `extent` elements `stride` apart are in the source, innermost first.
fn count(
    digits: &mut [Digit],
    mut extent: usize,
    mut stride: usize,
    lines: &mut Vec<[usize; 2]>,
) -> Option<()> {
    if stride == 0 {
        lines.push([extent, 0]);
        return Some(());
    }
    loop {
        let within = |digit: &&mut Digit| (digit.weight..digit.weight * digit.extent).contains(&stride);
        let digit = digits.iter_mut().find(within)?;
        if !stride.is_multiple_of(digit.weight) {
            return None;
        }
        let step = stride / digit.weight;
        if digit.most + (extent - 1) * step < digit.extent {
            lines.push([extent, digit.counted(extent, step)?]);
            return Some(());
        }
        let whole = digit.extent / step;
        if !digit.extent.is_multiple_of(step) || !extent.is_multiple_of(whole) || whole == 1 {
            return None;
        }
        lines.push([whole, digit.counted(whole, step)?]);
        (extent, stride) = (extent / whole, stride * whole);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Precision;
    use crate::ops::remap::Rule;

    fn moved(source: &[usize], target: &[usize], axes: &[Axis]) -> RemapOp {
        let dims = |extents: &[usize]| Dims::new(extents).expect("small");
        RemapOp::new(dims(source), dims(target), axes.to_vec(), Rule::Within, Precision::F32).expect("a move")
    }

    /// The elements of the source in the order of the result.
    fn elements(op: &RemapOp) -> Vec<usize> {
        op.parts.iter().fold(vec![op.first], |all, part| {
            let of = |at: usize| (0..part.extent).map(move |i| at + i * part.stride.unsigned_abs());
            all.into_iter().flat_map(of).collect()
        })
    }

    fn composed(one: &RemapOp, other: &RemapOp, offset: usize) -> Option<RemapOp> {
        let both = one.then(other, offset)?;
        let Moved { target, axes, rule } = both.moved(one.source, &BTreeMap::new()).expect("a move");
        let whole = RemapOp::new(one.source, target, axes, rule, Precision::F32).expect("a move");
        let between = elements(one);
        let wanted: Vec<usize> = elements(other).into_iter().map(|at| between[offset + at]).collect();
        assert_eq!(elements(&whole), wanted);
        Some(whole)
    }

    #[test]
    fn heads_of_a_slice_are_one_move() {
        // Columns 12 to 24 of 36, as three heads of four.
        let columns = Axis { extent: 12, stride: 1, start: 12, step: 1, source: 36 };
        let slice = moved(&[5, 36], &[5, 12], &[Axis::whole(5, 36), columns]);
        let heads = [Axis::whole(3, 4), Axis::whole(5, 12), Axis::whole(4, 1)];
        let heads = moved(&[5, 12], &[3, 5, 4], &heads);
        assert!(composed(&slice, &heads, 0).is_some());
        // Those of every other row; those that are read from the second row on.
        let rows = Axis { step: 2, extent: 3, ..Axis::whole(5, 12) };
        let some = moved(&[5, 12], &[3, 12], &[rows, Axis::whole(12, 1)]);
        assert!(composed(&slice, &some, 0).is_some());
        let later = moved(&[4, 12], &[12, 4], &[Axis::whole(12, 1), Axis::whole(4, 12)]);
        assert!(composed(&slice, &later, 12).is_some());
    }

    #[test]
    fn all_that_composes_is_what_one_move_makes_of_the_other() {
        let extents = [2, 3, 4];
        let strides = [12, 4, 1];
        let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        let mut found = 0;
        for order in orders {
            let axes = order.map(|axis| Axis::whole(extents[axis], strides[axis]));
            let one = moved(&extents, &order.map(|axis| extents[axis]), &axes);
            for (splits, other) in [([4, 6], [1, 0]), ([6, 4], [1, 0]), ([3, 8], [1, 0]), ([2, 12], [1, 0])] {
                let strides = [splits[1], 1];
                let axes = other.map(|axis| Axis::whole(splits[axis], strides[axis]));
                let other = moved(&splits, &other.map(|axis| splits[axis]), &axes);
                found += usize::from(composed(&one, &other, 0).is_some());
            }
        }
        assert!(found > 8, "{found}");
    }

    #[test]
    fn what_carries_over_is_left_alone() {
        let turned = moved(&[3, 4], &[4, 3], &[Axis::whole(4, 1), Axis::whole(3, 4)]);
        // Rows of six of the twelve, which begin in the middle of a row of three.
        let axes = [Axis::whole(2, 1), Axis::whole(5, 2)];
        let across = moved(&[10], &[2, 5], &axes);
        assert!(composed(&turned, &across, 1).is_none());
        let backwards = Axis { start: 2, step: -1, ..Axis::whole(3, 1) };
        let back = moved(&[4, 3], &[4, 3], &[Axis::whole(4, 3), backwards]);
        assert!(composed(&turned, &back, 0).is_none());
    }
}
