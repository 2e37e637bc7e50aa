//! Constants that passes make of a graph's constants: once for all graphs that share these.

use crate::error::Result;
use crate::host::HostTensor;
use crate::sync::{Mutex, lock};

/// Tensors, and what was made of them.
#[derive(Debug, Default)]
pub(crate) struct Derived(Mutex<Vec<Joined>>);

#[derive(Debug)]
struct Joined {
    /// They stay where they are as long as this lives.
    of: Vec<HostTensor>,
    whole: HostTensor,
}

impl Derived {
    /// What `make` makes of the elements of `parts`, as they are in rows: the first time.
    pub(crate) fn joined(
        &self,
        parts: &[&HostTensor],
        make: impl FnOnce(&[&[f32]]) -> Result<HostTensor>,
    ) -> Result<HostTensor> {
        let same = |known: &&Joined| {
            known.of.len() == parts.len()
                && known.of.iter().zip(parts).all(|(one, other)| {
                    one.place() == other.place() && one.dims() == other.dims() && one.dtype() == other.dtype()
                })
        };
        if let Some(known) = lock(&self.0).iter().find(same) {
            return Ok(known.whole.clone());
        }
        let elements: Vec<_> = parts.iter().map(|part| part.to_nhwc()).collect();
        let elements: Vec<&[f32]> = elements.iter().map(|part| &**part).collect();
        let whole = make(&elements)?;
        let of = parts.iter().map(|part| (*part).clone()).collect();
        lock(&self.0).push(Joined { of, whole: whole.clone() });
        Ok(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_of_the_same_tensors_is_made_once() {
        let derived = Derived::default();
        let one = HostTensor::vector(vec![1.0, 2.0]).expect("a tensor");
        let two = HostTensor::vector(vec![3.0]).expect("a tensor");
        let made = |parts: &[&HostTensor]| {
            derived.joined(parts, |parts| HostTensor::vector(parts.concat())).expect("a tensor")
        };
        let first = made(&[&one, &two]);
        assert_eq!(*first.to_f32(), [1.0, 2.0, 3.0]);
        assert_eq!(made(&[&one.clone(), &two]).place(), first.place());
        assert_eq!(*made(&[&two, &one]).to_f32(), [3.0, 1.0, 2.0]);
        let other = HostTensor::vector(vec![1.0, 2.0]).expect("a tensor");
        assert_ne!(made(&[&other, &two]).place(), first.place());
    }
}
