//! Reshapes of tensors whose axes are not stored in the order of the file.
//!
//! A map of a convolution has its channels last, and a reshape to tokens joins height and width, which lie one behind the other: it
//! moves nothing, and its result has the channels last as well. So a network that goes from maps to tokens and back stays in one
//! order.

use super::builder::Builder;
use super::operand::{Mapped, is_plain, stored};
use crate::graph::Value;
use crate::model::reason::Reason;
use crate::sorted;

/// The orders in which a tensor of extents `own` and its reshape to `target` are stored, if its axes are stored in `order`: the
/// first one is `order` where the reshape joins and splits no axes but those that are stored one behind the other. None if
/// there are no elements.
fn reshaped_orders(own: &[usize], order: &[usize], target: &[usize]) -> Option<[Vec<usize>; 2]> {
    if own.contains(&0) || target.contains(&0) {
        return None;
    }
    // Groups of axes with those that they become. An axis of one element may be stored anywhere.
    let mut axes = (0..own.len()).filter(|&axis| own[axis] > 1);
    let mut wanted = (0..target.len()).peekable();
    let of_one = |axis: &usize| target[*axis] == 1;
    let mut before: Vec<usize> = order.iter().copied().filter(|&axis| own[axis] == 1).collect();
    let mut after: Vec<usize> = std::iter::from_fn(|| wanted.next_if(of_one)).collect();
    let mut groups: Vec<[Vec<usize>; 2]> = Vec::new();
    while let Some(axis) = axes.next() {
        let (mut joined, mut split) = (vec![axis], vec![wanted.next()?]);
        let (mut elements, mut found) = (own[axis], target[split[0]]);
        while elements != found {
            let (list, product, next) = match found < elements {
                true => (&mut split, &mut found, wanted.next().map(|axis| (axis, target[axis]))),
                false => (&mut joined, &mut elements, axes.next().map(|axis| (axis, own[axis]))),
            };
            let (axis, extent) = next?;
            *product = product.checked_mul(extent)?;
            list.push(axis);
        }
        split.extend(std::iter::from_fn(|| wanted.next_if(of_one)));
        groups.push([joined, split]);
    }
    // What is stored innermost stays so.
    sorted::sort_by_key(&mut groups, |[joined, _]| order.iter().rposition(|axis| joined.contains(axis)));
    let large: Vec<usize> = groups.iter().flat_map(|[joined, _]| joined.iter().copied()).collect();
    after.extend(groups.into_iter().flat_map(|[_, split]| split));
    let stays = order.iter().filter(|&&axis| own[axis] > 1).eq(&large);
    before.extend(large);
    Some([if stays { order.to_vec() } else { before }, after])
}

impl Builder {
    /// A tensor in other dimensions. Axes that a reshape joins or splits are brought together, and all others stay where they
    /// are stored.
    pub(crate) fn reshaped_in_order(
        &mut self,
        part: &str,
        mapped: &Mapped,
        extents: &[usize],
    ) -> Result<Mapped, Reason> {
        let own = self.extents(mapped)?;
        let (value, order) = match reshaped_orders(&own, &mapped.order, extents) {
            Some([before, after]) => (self.in_order(mapped, &before)?, after),
            None => (self.logical(mapped)?, (0..extents.len()).collect()),
        };
        let value = self.reshaped(part, value, &stored(extents, &order))?;
        if !is_plain(&order) {
            // A reshape of a reshape is one of the first one's source, so that a long chain of them is no deep recursion.
            let key = (mapped.value, mapped.order.clone());
            let source = self.reshaped.get(&key).unwrap_or(mapped).clone();
            self.reshaped.entry((value, order.clone())).or_insert(source);
        }
        Ok(Mapped { value, order, kind: mapped.kind })
    }

    /// Whether a reshape gave the tensor, whose axes are not stored in the order of the file.
    pub(crate) fn is_reshaped(&self, mapped: &Mapped) -> bool {
        self.reshaped.contains_key(&(mapped.value, mapped.order.clone()))
    }

    /// What [`Builder::reshaped_in_order`] gave, in the order of the file: its source is brought into that order before the
    /// reshape, since whoever wrote it may write it so.
    pub(super) fn reshaped_in_file_order(&mut self, mapped: &Mapped) -> Result<Option<Value>, Reason> {
        let key = (mapped.value, mapped.order.clone());
        let Some(source) = self.reshaped.get(&key).cloned() else { return Ok(None) };
        let (extents, value) = (self.extents(mapped)?, self.logical(&source)?);
        self.reshaped("order", value, &extents).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::reshaped_orders;

    #[test]
    fn a_reshape_keeps_the_order_of_axes_that_it_does_not_join() {
        let of = |own: &[usize], order: &[usize], target: &[usize]| reshaped_orders(own, order, target);
        let last = [0, 2, 3, 1];
        // Pixels in a row and back.
        assert_eq!(of(&[2, 8, 3, 5], &last, &[2, 8, 15]), Some([last.to_vec(), vec![0, 2, 1]]));
        assert_eq!(of(&[2, 8, 15], &[0, 2, 1], &[2, 8, 3, 5]), Some([vec![0, 2, 1], last.to_vec()]));
        // Axes of one element.
        assert_eq!(of(&[1, 8, 1, 5], &last, &[8, 1, 5]), Some([last.to_vec(), vec![2, 0, 1]]));
        assert_eq!(of(&[1, 8, 1, 1], &last, &[1, 8]), Some([last.to_vec(), vec![0, 1]]));
        assert_eq!(of(&[8, 15], &[1, 0], &[1, 4, 2, 15]), Some([vec![1, 0], vec![0, 3, 1, 2]]));
        // Channels and pixels become one axis; two axes change places.
        assert_eq!(of(&[2, 8, 3, 5], &last, &[2, 120]), Some([vec![0, 1, 2, 3], vec![0, 1]]));
        assert_eq!(of(&[3, 4, 2], &[2, 1, 0], &[12, 2]), Some([vec![2, 0, 1], vec![1, 0]]));
        assert_eq!(of(&[3, 4, 2], &[1, 0, 2], &[3, 8]), Some([vec![0, 1, 2], vec![0, 1]]));
        assert_eq!(of(&[2, 0], &[1, 0], &[0, 3]), None);
    }
}
