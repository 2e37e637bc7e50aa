//! Numbers of axes and extents as files have them.

use crate::model::constant::elements_of;
use crate::model::reason::Reason;
use crate::sorted;

/// Numbers in a list of axes, extents or parts, at most.
pub(crate) const MOST_LISTED: usize = 1 << 16;

/// The axis that a number of the file names.
pub(crate) fn axis(axis: i64, rank: usize) -> Result<usize, Reason> {
    let place = if axis < 0 { axis.checked_add(rank as i64) } else { Some(axis) };
    let place = place.and_then(|place| usize::try_from(place).ok()).filter(|place| *place < rank);
    place.ok_or_else(|| format!("found axis {axis}, wanted one of {rank}").into())
}

/// How indices of places count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Count {
    /// Negative ones from the end; others beyond the tensor are refused.
    FromEnd,
    /// From the beginning; updates of places beyond the tensor are left out where the places are known, and refused else.
    FromStart,
}

impl Count {
    pub(super) fn place(self, index: i64, extent: usize) -> Result<Option<usize>, Reason> {
        match self {
            Count::FromEnd => axis(index, extent).map(Some),
            Count::FromStart => Ok(usize::try_from(index).ok().filter(|&index| index < extent)),
        }
    }

    /// The place of each update among those of `extents`, by a row of indices for each.
    pub(crate) fn places(self, indices: &[i64], extents: &[usize]) -> Result<Vec<Option<usize>>, Reason> {
        let row = |row: &[i64]| -> Result<Option<usize>, Reason> {
            let mut place = Some(0);
            for (&index, &extent) in row.iter().zip(extents) {
                let own = self.place(index, extent)?;
                place = place.zip(own).map(|(place, own)| place * extent + own);
            }
            Ok(place)
        };
        indices.chunks_exact(extents.len().max(1)).map(row).collect()
    }
}

/// Several axes, each once, in order.
pub(crate) fn axes(list: &[i64], rank: usize) -> Result<Vec<usize>, Reason> {
    if list.len() > rank {
        return refused!("found axes {list:?}, wanted at most {rank}");
    }
    let mut axes = list.iter().map(|&own| axis(own, rank)).collect::<Result<Vec<_>, _>>()?;
    sorted::sort(&mut axes, Ord::cmp);
    match axes.windows(2).any(|pair| pair[0] == pair[1]) {
        true => refused!("found axes {list:?}, wanted each once"),
        false => Ok(axes),
    }
}

/// Numbers that must not be negative.
pub(crate) fn sizes(list: &[i64]) -> Result<Vec<usize>, Reason> {
    if list.len() > MOST_LISTED {
        return refused!("found {} numbers, wanted at most {MOST_LISTED}", list.len());
    }
    let sizes: Option<Vec<usize>> = list.iter().map(|&size| usize::try_from(size).ok()).collect();
    sizes.ok_or_else(|| format!("found {list:?}, wanted none below 0").into())
}

/// The extents that a reshape of `own` to `wanted` gives: -1 is what is left, and 0 the extent in its place if
/// `zeros_keep`.
pub(crate) fn reshaped_to(own: &[usize], wanted: &[i64], zeros_keep: bool) -> Result<Vec<usize>, Reason> {
    let elements = elements_of(own)?;
    let refused = || format!("found {own:?} to {wanted:?}, wanted extents of {elements} elements in all");
    let (mut target, mut rest) = (Vec::with_capacity(wanted.len()), None);
    for (place, &extent) in wanted.iter().enumerate() {
        target.push(match extent {
            0 if zeros_keep => *own.get(place).ok_or_else(refused)?,
            -1 if rest.is_none() => {
                rest = Some(place);
                1
            }
            extent => usize::try_from(extent).map_err(|_| refused())?,
        });
    }
    let mut known = elements_of(&target)?;
    if let Some(place) = rest {
        target[place] = elements.checked_div(known).ok_or_else(refused)?;
        known *= target[place];
    }
    if known == elements { Ok(target) } else { Err(refused().into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_of_a_shape_are_the_inputs_extents_and_one_is_worked_out() {
        assert_eq!(reshaped_to(&[2, 3, 4], &[0, -1], true), Ok(vec![2, 12]));
        assert_eq!(reshaped_to(&[2, 3, 4], &[-1, 0, 2], true), Ok(vec![4, 3, 2]));
        assert_eq!(reshaped_to(&[0, 3], &[3, 0], false), Ok(vec![3, 0]));
        assert!(reshaped_to(&[2, 3], &[-1, -1], true).is_err());
        assert!(reshaped_to(&[2, 3], &[4, -1], true).is_err());
        assert!(reshaped_to(&[2, 3], &[2, 3, 0], true).is_err());
        assert!(reshaped_to(&[2, 3], &[2, 2], true).is_err());
    }

    #[test]
    fn indices_count_from_the_end_or_are_beyond() {
        assert_eq!(Count::FromEnd.places(&[-1, 0, 1, -3], &[2, 3]), Ok(vec![Some(3), Some(3)]));
        assert!(Count::FromEnd.places(&[2, 0], &[2, 3]).is_err());
        assert_eq!(Count::FromStart.places(&[1, 2, -1, 0, 0, 3], &[2, 3]), Ok(vec![Some(5), None, None]));
    }
}
