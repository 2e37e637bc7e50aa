//! Memory of large outputs, used again once nobody else holds it.
//!
//! One thread takes as long to copy a map of some megabytes as a fast GPU to compute it, and new memory would be
//! zeroed before several threads could write to it.

use crate::alloc;
use crate::device::copy::{MIN_PARALLEL_BYTES, copy};
use crate::error::Result;
use crate::sync::{Mutex, lock};
use std::sync::Arc;

/// Runs whose outputs are kept: the caller may hold those of one while the next is made.
const RUNS: usize = 2;

/// Large outputs of the last runs.
#[derive(Debug, Default)]
pub(super) struct OutputMemory {
    kept: Mutex<Vec<Arc<[f32]>>>,
    most: usize,
}

impl OutputMemory {
    /// For a session of so many outputs; without any nothing is kept.
    pub(super) fn new(outputs: usize) -> Self {
        OutputMemory { kept: Mutex::default(), most: RUNS * outputs }
    }

    /// The elements that `bytes` are.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory) if new memory is needed and there is none.
    pub(super) fn elements(&self, bytes: &[u8]) -> Result<Arc<[f32]>> {
        if bytes.len() < MIN_PARALLEL_BYTES || self.most == 0 {
            return new(bytes);
        }
        let mut kept = lock(&self.kept);
        let fits = |own: &mut Arc<[f32]>| size_of_val(&**own) == bytes.len() && Arc::get_mut(own).is_some();
        let mut free = kept.iter_mut().position(fits).map(|place| kept.swap_remove(place));
        if let Some(own) = free.as_mut().and_then(Arc::get_mut) {
            copy(bytemuck::cast_slice_mut(own), bytes);
        }
        let elements = match free {
            Some(elements) => elements,
            None => new(bytes)?,
        };
        kept.push(Arc::clone(&elements));
        if kept.len() > self.most {
            kept.remove(0);
        }
        Ok(elements)
    }
}

/// Memory of its own.
fn new(bytes: &[u8]) -> Result<Arc<[f32]>> {
    alloc::expect::<u8>(bytes.len(), "an output")?;
    // Drivers map memory at whole vec4s; what is copied before it gets here may lie anywhere.
    Ok(match bytemuck::try_cast_slice(bytes) {
        Ok(elements) => Arc::from(elements),
        Err(_) => bytemuck::pod_collect_to_vec(bytes).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(spare: &OutputMemory, values: &[f32]) -> Arc<[f32]> {
        spare.elements(bytemuck::cast_slice(values)).expect("memory")
    }

    #[test]
    fn what_is_held_is_left_alone_and_what_is_not_is_used_again() {
        let of = |value: f32| vec![value; MIN_PARALLEL_BYTES / 4 + 3];
        let spare = OutputMemory::new(1);
        let all: Vec<Arc<[f32]>> = (0..4).map(|run| elements(&spare, &of(run as f32))).collect();
        for (run, elements) in all.iter().enumerate() {
            assert_eq!(**elements, of(run as f32)[..]);
        }
        let last = all[3].as_ptr();
        drop(all);
        let again = elements(&spare, &of(4.0));
        let other = elements(&spare, &of(5.0));
        assert!([again.as_ptr(), other.as_ptr()].contains(&last));
        assert_eq!((&*again, &*other), (&of(4.0)[..], &of(5.0)[..]));
        let small = elements(&spare, &[1.0, 2.0]);
        assert_eq!(*small, [1.0, 2.0]);
    }
}
