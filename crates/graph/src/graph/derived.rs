//! Constants that passes make of a graph's constants: once for all graphs that share these.

use crate::dims::Dims;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::host::{HostTensor, Watch};
use crate::layout::Layout;
use crate::sync::{Mutex, lock};
use std::borrow::Cow;

/// What was made of tensors, for as long as something else has all of these.
#[derive(Debug, Default)]
pub struct Derived(Mutex<Vec<Joined>>);

/// A tensor as [`Derived`] knows it: where its elements lie, and what they are.
type Known = ((usize, Layout), Dims, DType);

fn known(part: &HostTensor) -> Known {
    (part.place(), part.dims(), part.dtype())
}

#[derive(Debug)]
struct Joined {
    how: String,
    of: Vec<(Known, Watch)>,
    whole: HostTensor,
}

/// What was made of `parts` in this way, if it is there. What was made of tensors that are no more is dropped.
fn find(all: &mut Vec<Joined>, how: &str, parts: &[&HostTensor]) -> Option<HostTensor> {
    all.retain(|joined| joined.of.iter().all(|(_, watch)| watch.is_alive()));
    let same = |joined: &&Joined| {
        joined.how == how && joined.of.iter().map(|(own, _)| *own).eq(parts.iter().map(|part| known(part)))
    };
    all.iter().find(same).map(|joined| joined.whole.clone())
}

/// The elements of tensors as words of their type, if all have one; else, of floats, as f32.
fn elements<'a>(parts: &[&'a HostTensor]) -> Result<(DType, Vec<Cow<'a, [f32]>>)> {
    let dtype = parts.first().map_or(DType::F32, |part| part.dtype());
    if parts.iter().all(|part| part.dtype() == dtype) {
        return Ok((dtype, parts.iter().map(|part| part.words()).collect::<Result<_>>()?));
    }
    match parts.iter().find(|part| !part.dtype().is_float()) {
        Some(part) => {
            Err(Error::Internal(format!("a tensor of {} joined with one of another type", part.dtype())))
        }
        None => Ok((DType::F32, parts.iter().map(|part| part.try_nhwc()).collect::<Result<_>>()?)),
    }
}

impl Derived {
    /// What `make` makes of the elements of `parts`, as they are in rows: words of the type that all have, or f32. `how` names
    /// what it does with them. What is made of floats is kept, and made once for each `how`.
    ///
    /// # Errors
    /// If integers are to be joined with elements of another type; those of `make`.
    pub fn joined(
        &self,
        how: &str,
        parts: &[&HostTensor],
        make: impl FnOnce(DType, &[&[f32]]) -> Result<HostTensor>,
    ) -> Result<HostTensor> {
        self.made(how, parts, || {
            let (dtype, elements) = elements(parts)?;
            let elements: Vec<&[f32]> = elements.iter().map(|part| &**part).collect();
            make(dtype, &elements)
        })
    }

    /// What `make` makes of `parts`, which it reads itself: kept, and made once for each `how`.
    ///
    /// # Errors
    /// What `make` fails with.
    pub fn made(
        &self,
        how: &str,
        parts: &[&HostTensor],
        make: impl FnOnce() -> Result<HostTensor>,
    ) -> Result<HostTensor> {
        if let Some(whole) = find(&mut lock(&self.0), how, parts) {
            return Ok(whole);
        }
        let whole = make()?;
        let watched = parts.iter().map(|part| Some((known(part), part.watch()?)));
        let Some(of) = watched.collect::<Option<Vec<_>>>() else { return Ok(whole) };
        let mut all = lock(&self.0);
        // Another thread may have made it meanwhile.
        Ok(find(&mut all, how, parts).unwrap_or_else(|| {
            all.push(Joined { how: how.to_owned(), of, whole: whole.clone() });
            whole
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(values: &[f32]) -> HostTensor {
        HostTensor::vector(values.to_vec()).expect("a tensor")
    }

    #[test]
    fn what_is_made_of_the_same_tensors_is_made_once_while_they_are_there() {
        let derived = Derived::default();
        let made = |parts: &[&HostTensor]| {
            derived.joined("behind", parts, |_, parts| HostTensor::vector(parts.concat())).expect("a tensor")
        };
        let (one, two) = (vector(&[1.0, 2.0]), vector(&[3.0]));
        let first = made(&[&one, &two]);
        assert_eq!(*first.to_f32(), [1.0, 2.0, 3.0]);
        assert_eq!(made(&[&one.clone(), &two]).place(), first.place());
        assert_eq!(*made(&[&two, &one]).to_f32(), [3.0, 1.0, 2.0]);
        let count = || lock(&derived.0).len();
        for index in 0..100 {
            let other = vector(&[index as f32, 2.0]);
            assert_eq!(*made(&[&other, &two]).to_f32(), [index as f32, 2.0, 3.0]);
        }
        assert_eq!(made(&[&one, &two]).place(), first.place());
        assert_eq!(count(), 2);
    }
}
