//! Values that are known while a file is read: floats, and the integers that shapes are made of.

use super::budget::Budget;
use super::reason::Reason;
use crate::dims::Dims;
use crate::host::HostTensor;
use std::sync::Arc;

/// Integers of any dimensions; an extent may be 0.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::model) struct Integers {
    pub(in crate::model) dims: Vec<usize>,
    pub(in crate::model) values: Arc<[i64]>,
}

impl Integers {
    pub(in crate::model) fn new(dims: Vec<usize>, values: impl Into<Arc<[i64]>>) -> Self {
        Integers { dims, values: values.into() }
    }

    pub(in crate::model) fn vector(values: Vec<i64>) -> Self {
        Integers { dims: vec![values.len()], values: values.into() }
    }
}

/// The integers that a tensor's elements are, if all are whole.
pub(in crate::model) fn whole(tensor: &HostTensor) -> Option<Vec<i64>> {
    let whole = |&value: &f32| (value.fract() == 0.0).then_some(value as i64);
    match tensor.to_i64() {
        Some(integers) => Some(integers.into_owned()),
        None => tensor.to_nhwc().iter().map(whole).collect(),
    }
}

/// A tensor whose elements are known.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::model) enum Constant {
    Floats(HostTensor),
    Integers(Integers),
}

impl Constant {
    pub(in crate::model) fn extents(&self) -> Vec<usize> {
        match self {
            Constant::Floats(tensor) => tensor.dims().extents().to_vec(),
            Constant::Integers(integers) => integers.dims.clone(),
        }
    }

    pub(in crate::model) fn elements(&self) -> usize {
        match self {
            Constant::Floats(tensor) => tensor.dims().elements(),
            Constant::Integers(integers) => integers.values.len(),
        }
    }

    /// The elements as f32; integers are rounded to the nearest f32.
    pub(in crate::model) fn floats(&self, budget: &mut Budget) -> Result<HostTensor, Reason> {
        match self {
            Constant::Floats(tensor) => Ok(tensor.clone()),
            Constant::Integers(Integers { dims, values }) => {
                budget.spend(4 * values.len())?;
                let values: Arc<[f32]> = values.iter().map(|&value| value as f32).collect();
                HostTensor::new(dims_of(dims)?, values).map_err(Reason::from)
            }
        }
    }

    /// The only element as f32; `None` if there is not exactly one.
    pub(in crate::model) fn number(&self) -> Option<f32> {
        match self {
            Constant::Floats(tensor) => match *tensor.to_f32() {
                [value] => Some(value),
                _ => None,
            },
            Constant::Integers(integers) => match integers.values[..] {
                [value] => Some(value as f32),
                _ => None,
            },
        }
    }

    /// Whether the only element differs from 0; `None` if there is not exactly one.
    pub(in crate::model) fn truth(&self) -> Option<bool> {
        self.number().map(|number| number != 0.0)
    }

    /// The elements in dimensions `dims`, in the same order; refuses dimensions of another number of elements.
    pub(in crate::model) fn reshaped(self, dims: &[usize]) -> Result<Self, Reason> {
        if elements_of(dims)? != self.elements() {
            return refused!("found {:?} to {dims:?}, wanted as many elements", self.extents());
        }
        Ok(match self {
            Constant::Floats(tensor) => Constant::Floats(tensor.reshaped(dims_of(dims)?)?),
            Constant::Integers(integers) => Constant::Integers(Integers { dims: dims.to_vec(), ..integers }),
        })
    }

    /// Whether the elements are integers, not floats.
    pub(in crate::model) fn is_integers(&self) -> bool {
        matches!(self, Constant::Integers(_))
    }
}

/// The number of elements of these extents. Also where one is 0, the product of the others has a bound.
pub(in crate::model) fn elements_of(extents: &[usize]) -> Result<usize, Reason> {
    let others = extents.iter().filter(|&&extent| extent > 0);
    let product = others.copied().try_fold(1usize, |product, extent| product.checked_mul(extent));
    match product.filter(|&product| product <= i32::MAX as usize) {
        Some(_) if extents.contains(&0) => Ok(0),
        Some(product) => Ok(product),
        None => refused!("found extents {extents:?}, wanted fewer elements (32-bit indices)"),
    }
}

/// Dimensions of a graph's value.
pub(in crate::model) fn dims_of(extents: &[usize]) -> Result<Dims, Reason> {
    Dims::new(extents).map_err(Reason::from)
}

/// Every index of a tensor, the last axis varying fastest.
pub(in crate::model) struct Indices<'a> {
    extents: &'a [usize],
    index: Vec<usize>,
    begun: bool,
    done: bool,
}

impl<'a> Indices<'a> {
    pub(in crate::model) fn new(extents: &'a [usize]) -> Self {
        Indices { extents, index: vec![0; extents.len()], begun: false, done: extents.contains(&0) }
    }

    /// The next one.
    pub(in crate::model) fn following(&mut self) -> Option<&[usize]> {
        if self.begun && !self.done {
            // All axes are at their ends, unless one can go on.
            self.done = true;
            for (at, &extent) in self.index.iter_mut().zip(self.extents).rev() {
                *at += 1;
                if *at < extent {
                    self.done = false;
                    break;
                }
                *at = 0;
            }
        }
        self.begun = true;
        (!self.done).then_some(&self.index)
    }
}

/// Every index of a tensor of `extents`, the last axis varying fastest: an iterator of allocated indices. [`Indices`] lends
/// one at a time.
pub(in crate::model) fn indices(extents: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    let mut every = Indices::new(extents);
    std::iter::from_fn(move || every.following().map(<[usize]>::to_vec))
}

/// How far apart the elements of a tensor lie along each axis.
pub(in crate::model) fn strides(extents: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; extents.len()];
    for axis in (1..extents.len()).rev() {
        strides[axis - 1] = extents[axis].saturating_mul(strides[axis]);
    }
    strides
}

/// The first position of a part of a tensor of these extents, of which `ranges` have the first index and the step along
/// each axis, and the part's steps.
pub(in crate::model) fn ranged(
    extents: &[usize],
    ranges: impl Iterator<Item = (usize, isize)>,
) -> (isize, Vec<isize>) {
    let along = strides(extents).into_iter().zip(ranges);
    let along = along.map(|(stride, (first, step))| (stride as isize, first as isize, step));
    let along: Vec<(isize, isize, isize)> = along.collect();
    let first =
        along.iter().map(|(stride, first, _)| stride.wrapping_mul(*first)).fold(0, isize::wrapping_add);
    (first, along.into_iter().map(|(stride, _, step)| stride.wrapping_mul(step)).collect())
}

/// The position of an index among the elements of a tensor of these extents.
pub(in crate::model) fn position(extents: &[usize], index: &[usize]) -> usize {
    extents.iter().zip(index).fold(0, |position, (&extent, &index)| position * extent + index)
}

/// The position, in a tensor of `extents`, of what is at `index` of one that it is broadcast to.
pub(in crate::model) fn broadcast_position(extents: &[usize], index: &[usize]) -> usize {
    let index = &index[index.len().saturating_sub(extents.len())..];
    extents
        .iter()
        .zip(index)
        .fold(0, |position, (&extent, &index)| position * extent + if extent == 1 { 0 } else { index })
}

/// The extents that both broadcast to, as in numpy.
pub(in crate::model) fn broadcast(a: &[usize], b: &[usize]) -> Result<Vec<usize>, Reason> {
    let rank = a.len().max(b.len());
    let at = |extents: &[usize], axis: usize| {
        (axis + extents.len()).checked_sub(rank).and_then(|axis| extents.get(axis)).copied().unwrap_or(1)
    };
    (0..rank)
        .map(|axis| match (at(a, axis), at(b, axis)) {
            (x, y) if x == y => Ok(x),
            (1, y) => Ok(y),
            (x, 1) => Ok(x),
            _ => refused!("found {a:?} and {b:?}, wanted extents that are equal or 1"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_is_visited_in_order() {
        let all: Vec<_> = indices(&[2, 3]).collect();
        assert_eq!(all, [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]);
        assert_eq!(all.iter().map(|index| position(&[2, 3], index)).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
        assert_eq!(indices(&[]).count(), 1);
        assert_eq!(indices(&[2, 0]).count(), 0);
    }

    #[test]
    fn extents_broadcast_as_in_numpy() {
        assert_eq!(broadcast(&[4, 1, 3], &[2, 1]), Ok(vec![4, 2, 3]));
        assert_eq!(broadcast(&[], &[5]), Ok(vec![5]));
        assert!(broadcast(&[2], &[3]).is_err());
        assert_eq!(broadcast_position(&[2, 1], &[7, 1, 5]), 1);
    }
}
