//! Constants made of numbers and of other constants.

use super::builder::Builder;
use crate::host::HostTensor;
use crate::model::constant::{Constant, Integers, dims_of, elements_of};
use crate::model::reason::Reason;

/// Floats of these extents; of none there are no floats, but no integers either.
pub(crate) fn floats(extents: &[usize], values: Vec<f32>) -> Result<Constant, Reason> {
    if elements_of(extents)? == 0 && values.is_empty() {
        return Ok(Constant::Integers(Integers::new(extents.to_vec(), Vec::new())));
    }
    let tensor = HostTensor::new(dims_of(extents)?, values);
    tensor.map(Constant::Floats).map_err(Reason::from)
}

pub(crate) fn integers(extents: &[usize], values: Vec<i64>) -> Result<Constant, Reason> {
    let wanted = elements_of(extents)?;
    if values.len() != wanted {
        return refused!("found {} values, wanted {wanted} for shape {extents:?}", values.len());
    }
    Ok(Constant::Integers(Integers::new(extents.to_vec(), values)))
}

/// Constants one behind the other along an axis.
pub(crate) fn joined(b: &mut Builder, constants: &[Constant], place: usize) -> Result<Constant, Reason> {
    let mut extents = constants.first().map(Constant::extents).unwrap_or_default();
    if place >= extents.len() {
        return refused!("found {extents:?} to be joined along axis {place}, wanted the same other extents");
    }
    let mut ends = Vec::new();
    let mut whole = 0usize;
    for constant in constants {
        let own = constant.extents();
        let fits = own.len() == extents.len()
            && own.iter().zip(&extents).enumerate().all(|(axis, (a, b))| axis == place || a == b);
        if !fits {
            return refused!("found {own:?} beside {extents:?}, wanted the same but along axis {place}");
        }
        whole = whole.checked_add(own[place]).ok_or("found too many elements")?;
        ends.push(whole);
    }
    if let Some(extent) = extents.get_mut(place) {
        *extent = whole;
    }
    let elements = crate::model::constant::elements_of(&extents)?;
    b.budget.spend(elements.saturating_mul(16))?;
    let all_integers: Option<Vec<&Integers>> = constants
        .iter()
        .map(|constant| match constant {
            Constant::Integers(integers) => Some(integers),
            Constant::Floats(_) => None,
        })
        .collect();
    let inner: usize = extents[place + 1..].iter().product();
    let outer: usize = if elements == 0 { 0 } else { extents[..place].iter().product() };
    if let Some(all) = all_integers {
        let mut values = Vec::new();
        for row in 0..outer {
            for own in &all {
                let length = own.dims[place] * inner;
                values.extend_from_slice(own.values.get(row * length..(row + 1) * length).unwrap_or(&[]));
            }
        }
        return integers(&extents, values);
    }
    let tensors = constants.iter().map(|own| own.floats(&mut b.budget)).collect::<Result<Vec<_>, _>>()?;
    let lists: Vec<_> = tensors.iter().map(|tensor| tensor.to_nhwc()).collect();
    let mut values = Vec::new();
    for row in 0..outer {
        for (tensor, own) in tensors.iter().zip(&lists) {
            let length = tensor.dims().extents()[place] * inner;
            values.extend_from_slice(own.get(row * length..(row + 1) * length).unwrap_or(&[]));
        }
    }
    floats(&extents, values)
}

/// The most numbers that are counted.
const MOST_COUNTED: f64 = (1 << 28) as f64;

/// The numbers from the first to before the second in steps of the third; integers if all three are.
pub(crate) fn range(b: &mut Builder, ends: &[Constant; 3]) -> Result<Constant, Reason> {
    let count = |count: f64| match count {
        count if (0.0..MOST_COUNTED).contains(&count) => Ok(count as usize),
        count if count < 0.0 => Ok(0),
        _ => refused!("found a range of {count} numbers, wanted a step that is not 0, and fewer"),
    };
    if let [Constant::Integers(start), Constant::Integers(limit), Constant::Integers(step)] = ends {
        let (&[start], &[limit], &[step]) = (&start.values[..], &limit.values[..], &step.values[..]) else {
            return refused!("found vectors, wanted a start, a limit and a step");
        };
        let count = count(((limit as f64 - start as f64) / step as f64).ceil())?;
        b.budget.spend(8 * count)?;
        let values = (0..count as i64).map(|index| start.wrapping_add(index.wrapping_mul(step)));
        return integers(&[count], values.collect());
    }
    let [Some(start), Some(limit), Some(step)] = ends.each_ref().map(Constant::number) else {
        return refused!("found vectors, wanted a start, a limit and a step");
    };
    let [start, limit, step] = [start, limit, step].map(f64::from);
    let count = count(((limit - start) / step).ceil())?;
    b.budget.spend(4 * count)?;
    floats(&[count], (0..count).map(|index| (start + index as f64 * step) as f32).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::budget::Budget;

    #[test]
    fn constants_are_joined_along_any_axis() {
        let b = &mut Builder::new(Budget::new(1000), 0, crate::model::prepared);
        let part = |dims: &[usize], values: &[i64]| Constant::Integers(Integers::new(dims.to_vec(), values));
        let parts = [part(&[2, 1], &[1, 4]), part(&[2, 2], &[2, 3, 5, 6])];
        assert_eq!(joined(b, &parts, 1), Ok(part(&[2, 3], &[1, 2, 3, 4, 5, 6])));
        assert!(joined(b, &parts, 0).is_err());
    }
}
