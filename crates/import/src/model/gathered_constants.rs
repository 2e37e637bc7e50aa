//! Constants of some elements of others: transposed, repeated, cut, gathered.

use super::budget::Budget;
use super::constant::{Constant, Indices, Integers, dims_of, elements_of, strides};
use super::reason::Reason;
use crate::dims::MAX_RANK;
use crate::dtype::DType;
use crate::host::HostTensor;
use crate::layout::Layout;
use half::f16;

impl Constant {
    /// Elements of this tensor in dimensions `dims`: the one at each index of `dims`, in order, is the one at
    /// the position that `source` gives.
    pub(in crate::model) fn moved(
        &self,
        dims: Vec<usize>,
        budget: &mut Budget,
        source: impl Fn(&[usize]) -> usize,
    ) -> Result<Self, Reason> {
        self.taken(dims, budget, &Moved(source))
    }

    /// Elements of this tensor in dimensions `dims`: the one at an index is `first`, or along each axis as many of
    /// its steps from it as the index says.
    pub(in crate::model) fn strided(
        &self,
        dims: Vec<usize>,
        budget: &mut Budget,
        first: isize,
        steps: &[isize],
    ) -> Result<Self, Reason> {
        self.taken(dims, budget, &Strided { first, steps })
    }

    /// This tensor repeated to `dims`, as numpy broadcasts.
    pub(in crate::model) fn broadcast_to(
        &self,
        dims: Vec<usize>,
        budget: &mut Budget,
    ) -> Result<Self, Reason> {
        let own = self.extents();
        let new = dims.len().saturating_sub(own.len());
        let repeated =
            own.iter().zip(strides(&own)).map(|(&extent, step)| if extent == 1 { 0 } else { step });
        let steps: Vec<isize> =
            std::iter::repeat_n(0, new).chain(repeated.map(|step| step as isize)).collect();
        self.strided(dims, budget, 0, &steps)
    }

    /// What lies at the places of `list` along `axis`, in whose stead are the list's dimensions.
    pub(in crate::model) fn gathered(
        &self,
        axis: usize,
        list: &[usize],
        list_dims: &[usize],
        budget: &mut Budget,
    ) -> Result<Self, Reason> {
        let own = self.extents();
        let (outer, inner) = (own.get(..axis).unwrap_or(&[]), own.get(axis + 1..).unwrap_or(&[]));
        let extent = own.get(axis).copied().unwrap_or(1);
        let rows = Rows { outer: outer.iter().product(), extent, inner: inner.iter().product(), list };
        self.taken([outer, list_dims, inner].concat(), budget, &rows)
    }

    /// What `take` makes of this tensor's elements, in dimensions `dims`.
    fn taken(&self, dims: Vec<usize>, budget: &mut Budget, take: &impl Take) -> Result<Self, Reason> {
        let elements = elements_of(&dims)?;
        // Their list is copied once. An index of many axes takes longer to count.
        let each = 2 * if self.is_integers() { size_of::<i64>() } else { size_of::<f32>() };
        let axes = 16 * dims.len().saturating_sub(MAX_RANK);
        budget.spend(elements.saturating_mul(each + axes))?;
        let floats = |tensor: Result<HostTensor, crate::error::Error>| {
            tensor.map(Constant::Floats).map_err(Reason::from)
        };
        match self {
            Constant::Floats(tensor) if tensor.dtype() == DType::F16 => {
                let from: &[f16] = bytemuck::cast_slice(tensor.bytes());
                let values = elements_at(from, &dims, elements, take)?;
                floats(HostTensor::from_f16(dims_of(&dims)?, Layout::Nhwc, values))
            }
            Constant::Floats(tensor) => {
                let values = elements_at(&tensor.to_f32(), &dims, elements, take)?;
                floats(HostTensor::new(dims_of(&dims)?, values))
            }
            Constant::Integers(integers) => {
                let values = elements_at(&integers.values, &dims, elements, take)?;
                Ok(Constant::Integers(Integers::new(dims, values)))
            }
        }
    }
}

/// Which elements of a tensor another one of dimensions `dims` has.
trait Take {
    /// Puts them behind `to`, in order; none if there is not one at each place.
    fn take<T: Copy>(&self, from: &[T], dims: &[usize], to: &mut Vec<T>) -> Option<()>;
}

/// The one at the position that a function has for each index.
struct Moved<F>(F);

impl<F: Fn(&[usize]) -> usize> Take for Moved<F> {
    fn take<T: Copy>(&self, from: &[T], dims: &[usize], to: &mut Vec<T>) -> Option<()> {
        let mut every = Indices::new(dims);
        while let Some(index) = every.following() {
            to.push(*from.get((self.0)(index))?);
        }
        Some(())
    }
}

/// The first, and those so many steps from it along each axis.
struct Strided<'a> {
    first: isize,
    steps: &'a [isize],
}

impl Take for Strided<'_> {
    fn take<T: Copy>(&self, from: &[T], dims: &[usize], to: &mut Vec<T>) -> Option<()> {
        let (&row, outer) = dims.split_last().unwrap_or((&1, &[]));
        let (step, steps) = match self.steps.split_last() {
            Some((&step, steps)) if !dims.is_empty() => (step, steps),
            _ => (0, self.steps),
        };
        let mut every = Indices::new(outer);
        while let Some(index) = every.following() {
            let along = index.iter().zip(steps).map(|(&at, &step)| (at as isize).wrapping_mul(step));
            let first = along.fold(self.first, isize::wrapping_add);
            match step {
                _ if row == 0 => {}
                0 => to.resize(to.len() + row, *from.get(usize::try_from(first).ok()?)?),
                1 => {
                    let first = usize::try_from(first).ok()?;
                    to.extend_from_slice(from.get(first..first.checked_add(row)?)?);
                }
                _ => {
                    let mut position = first;
                    for _ in 0..row {
                        to.push(*from.get(usize::try_from(position).ok()?)?);
                        position = position.wrapping_add(step);
                    }
                }
            }
        }
        Some(())
    }
}

/// Takes the indices in `list` along an axis of `extent`: there are `outer` rows before the axis, and `inner` elements behind
/// each index of it.
struct Rows<'a> {
    outer: usize,
    extent: usize,
    inner: usize,
    list: &'a [usize],
}

impl Take for Rows<'_> {
    fn take<T: Copy>(&self, from: &[T], _: &[usize], to: &mut Vec<T>) -> Option<()> {
        if self.inner == 0 {
            return Some(());
        }
        for row in 0..self.outer {
            for &at in self.list {
                let first = row.checked_mul(self.extent)?.checked_add(at)?.checked_mul(self.inner)?;
                match self.inner {
                    1 => to.push(*from.get(first)?),
                    inner => to.extend_from_slice(from.get(first..first.checked_add(inner)?)?),
                }
            }
        }
        Some(())
    }
}

/// The elements of a tensor of dimensions `dims`, which has `count`.
fn elements_at<T: Copy>(
    from: &[T],
    dims: &[usize],
    count: usize,
    take: &impl Take,
) -> Result<Vec<T>, Reason> {
    let mut elements = Vec::with_capacity(count);
    match take.take(from, dims, &mut elements) {
        Some(()) => Ok(elements),
        None => refused!("found an index beyond a constant"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::constant::{position, ranged};
    use super::*;

    /// Elements 0 to 23 in dimensions 2, 3 and 4.
    fn counted() -> Constant {
        Constant::Integers(Integers::new(vec![2, 3, 4], (0..24).collect::<Vec<_>>()))
    }

    /// What `source` takes, or nothing if that is beyond it.
    fn moved(dims: &[usize], source: impl Fn(&[usize]) -> usize) -> Option<Vec<i64>> {
        let moved = counted().moved(dims.to_vec(), &mut Budget::new(1 << 20), source);
        moved.ok().map(|constant| integers(&constant))
    }

    fn integers(constant: &Constant) -> Vec<i64> {
        match constant {
            Constant::Integers(integers) => integers.values.to_vec(),
            Constant::Floats(_) => panic!("floats"),
        }
    }

    #[test]
    fn steps_take_what_positions_do() {
        let budget = &mut Budget::new(1 << 20);
        let (constant, own) = (counted(), [2, 3, 4]);
        for (dims, first, steps) in [
            (vec![4, 3, 2], 0, vec![1, 4, 12]),
            (vec![2, 2], 5, vec![12, 2]),
            (vec![2, 3, 4], 23, vec![-12, -4, -1]),
            (vec![3, 5], 7, vec![0, 0]),
            (vec![2, 0, 3], 0, vec![12, 4, 1]),
            (vec![], 6, vec![]),
            (vec![2, 13], 0, vec![12, 1]),
            (vec![3], 1, vec![-1]),
        ] {
            let found = constant.strided(dims.clone(), budget, first, &steps).ok();
            let at = |index: &[usize]| {
                let along = index.iter().zip(&steps).map(|(&at, &step)| at as isize * step);
                (first + along.sum::<isize>()) as usize
            };
            assert_eq!(found.map(|found| integers(&found)), moved(&dims, at), "{dims:?} {first} {steps:?}");
        }
        let (first, steps) = ranged(&own, [(1, 1), (2, -2), (0, 3)].into_iter());
        let found = constant.strided(vec![1, 2, 2], budget, first, &steps).expect("a part");
        assert_eq!(integers(&found), [20, 23, 12, 15]);
    }

    #[test]
    fn repeated_and_listed_elements_are_those_at_their_positions() {
        let budget = &mut Budget::new(1 << 20);
        let column = counted().strided(vec![2, 1, 4], budget, 4, &[12, 0, 1]).expect("a row of each");
        let found = column.broadcast_to(vec![2, 2, 3, 4], budget).expect("repeated");
        let at = |index: &[usize]| position(&[2, 3, 4], &[index[1], 1, index[3]]);
        assert_eq!(Some(integers(&found)), moved(&[2, 2, 3, 4], at));
        let list = [2, 0, 2, 1];
        for (axis, dims) in [(1, [2, 2, 2, 4]), (2, [2, 3, 2, 2])] {
            let found = counted().gathered(axis, &list, &[2, 2], budget).expect("what is listed");
            let at = |index: &[usize]| {
                let listed = list[index[axis] * 2 + index[axis + 1]];
                position(&[2, 3, 4], &[&index[..axis], &[listed], &index[axis + 2..]].concat())
            };
            assert_eq!(Some(integers(&found)), moved(&dims, at), "axis {axis}");
        }
        assert!(counted().gathered(2, &[24], &[1], budget).is_err());
    }
}
