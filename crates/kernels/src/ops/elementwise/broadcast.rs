//! Which element of each input belongs to an element of the output.

use crate::dims::{Dims, MAX_RANK};
use crate::error::{Error, Result};

/// An output's axes, the outermost first, with each input's stride along them; 0 where the input has one
/// element for all. Axes that all values step through together are one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::ops) struct Broadcast {
    /// Extents of the output, none of them 1, except where it has a single element.
    pub(in crate::ops) extents: Vec<usize>,
    /// Of each input, a stride for each axis, in elements.
    pub(in crate::ops) strides: Vec<Vec<usize>>,
}

/// The extents of `dims`, as many as the highest rank, ones before them.
fn aligned(dims: &Dims) -> [usize; MAX_RANK] {
    let mut extents = [1; MAX_RANK];
    extents[MAX_RANK - dims.rank()..].copy_from_slice(dims.extents());
    extents
}

/// The dimensions that `inputs` have together by numpy's rule: aligned at the last axis, an extent of 1 goes
/// with any other.
pub(in crate::ops) fn dims_of(op: &'static str, inputs: &[Dims]) -> Result<Dims> {
    let rank = inputs.iter().map(Dims::rank).max().unwrap_or(0);
    let mut extents = [1; MAX_RANK];
    for input in inputs {
        for (extent, own) in extents.iter_mut().zip(aligned(input)) {
            if *extent == 1 {
                *extent = own;
            } else if own != 1 && own != *extent {
                let found = inputs.iter().map(Dims::to_string).collect::<Vec<_>>().join(" and ");
                return Err(Error::shape(op, found, "extents that are equal, or 1 in one of them"));
            }
        }
    }
    let dims = Dims::new(&extents[MAX_RANK - rank..])?;
    dims.checked_or_empty(op)?;
    Ok(dims)
}

impl Broadcast {
    /// The broadcast of `inputs` to `output`, which is what they have together.
    pub(in crate::ops) fn new(output: &Dims, inputs: &[Dims]) -> Self {
        let whole = aligned(output);
        let strides = |input: &Dims| {
            let (own, mut stride) = (aligned(input), 1);
            let mut strides = [0; MAX_RANK];
            for axis in (0..MAX_RANK).rev() {
                strides[axis] = if own[axis] == 1 { 0 } else { stride };
                stride *= own[axis];
            }
            strides
        };
        let natural: Vec<[usize; MAX_RANK]> = inputs.iter().map(strides).collect();
        let mut broadcast = Broadcast { extents: Vec::new(), strides: vec![Vec::new(); inputs.len()] };
        for axis in (0..MAX_RANK).filter(|&axis| whole[axis] > 1) {
            let joined = broadcast.strides.iter().zip(&natural).all(|(strides, natural)| {
                strides.last().is_some_and(|outer| *outer == natural[axis] * whole[axis])
            });
            match broadcast.extents.last_mut() {
                Some(extent) if joined => {
                    *extent *= whole[axis];
                    for (strides, natural) in broadcast.strides.iter_mut().zip(&natural) {
                        strides.pop();
                        strides.push(natural[axis]);
                    }
                }
                _ => {
                    broadcast.extents.push(whole[axis]);
                    for (strides, natural) in broadcast.strides.iter_mut().zip(&natural) {
                        strides.push(natural[axis]);
                    }
                }
            }
        }
        if broadcast.extents.is_empty() {
            broadcast.extents.push(1);
            broadcast.strides.iter_mut().for_each(|strides| strides.push(1));
        }
        broadcast
    }

    /// Where `input` has the element that belongs to element `index` of the output.
    pub(in crate::ops) fn place(&self, input: usize, index: usize) -> usize {
        let mut rest = index;
        let mut place = 0;
        for (extent, stride) in self.extents.iter().zip(&self.strides[input]).rev() {
            place += rest % extent * stride;
            rest /= extent;
        }
        place
    }

    /// Whether `input` has all elements of the output.
    pub(in crate::ops) fn is_whole(&self, input: usize) -> bool {
        let mut wanted = 1;
        self.strides[input].iter().zip(&self.extents).rev().all(|(&stride, extent)| {
            let own = stride == wanted;
            wanted *= extent;
            own
        })
    }

    /// The innermost axis: its extent, and the strides of `input` along it.
    pub(in crate::ops) fn inner(&self, input: usize) -> (usize, usize) {
        let last = |values: &[usize]| values.last().copied().unwrap_or(1);
        (last(&self.extents), last(&self.strides[input]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dims(extents: &[usize]) -> Dims {
        Dims::new(extents).expect("small")
    }

    fn of(inputs: &[&[usize]]) -> (Dims, Broadcast) {
        let inputs: Vec<Dims> = inputs.iter().map(|extents| dims(extents)).collect();
        let output = dims_of("test", &inputs).expect("they fit");
        (output, Broadcast::new(&output, &inputs))
    }

    #[test]
    fn axes_are_joined_as_far_as_all_inputs_agree() {
        let (output, broadcast) = of(&[&[2, 3, 4, 5], &[5]]);
        assert_eq!((output, broadcast.extents), (dims(&[2, 3, 4, 5]), vec![24, 5]));
        assert_eq!(broadcast.strides, [vec![5, 1], vec![0, 1]]);
        assert_eq!(of(&[&[2, 3, 4], &[2, 3, 4]]).1.extents, [24]);
        assert_eq!(of(&[&[2, 3, 4], &[]]).1.strides, [[1], [0]]);
        let (_, broadcast) = of(&[&[2, 1, 4, 1], &[3, 1, 5]]);
        assert_eq!(broadcast.extents, [2, 3, 4, 5]);
        assert_eq!(broadcast.strides, [[4, 0, 1, 0], [0, 5, 0, 1]]);
        assert_eq!(of(&[&[], &[1]]).1.extents, [1]);
    }

    #[test]
    fn every_element_is_where_its_coordinates_say() {
        let (_, broadcast) = of(&[&[2, 1, 3], &[4, 1], &[2, 4, 3]]);
        for (index, (i, j, k)) in
            (0..2).flat_map(|i| (0..4).flat_map(move |j| (0..3).map(move |k| (i, j, k)))).enumerate()
        {
            let places = [0, 1, 2].map(|input| broadcast.place(input, index));
            assert_eq!(places, [3 * i + k, j, index]);
        }
    }

    #[test]
    fn extents_that_differ_are_refused() {
        let text = dims_of("test", &[dims(&[2, 3]), dims(&[2])]).expect_err("3 and 2").to_string();
        assert!(text.contains("2x3 and 2"), "{text}");
    }
}
