//! Constants that kernels of the CPU packed, for kernels of the same constants and other extents.

use super::aligned::Aligned;
use crate::error::Result;
use crate::host::HostTensor;
use crate::layout::Layout;
use crate::sync::{Mutex, lock};
use std::collections::HashMap;
use std::sync::{Arc, Weak};

/// What is packed of an op's constants: the op and their places, which of them and how, the depth and the columns of the
/// matrix, and the lanes of a vector.
type Key = (String, String, [usize; 3]);

/// Where the elements of a tensor are.
type Place = (usize, Layout);

/// Constants as the CPU reads them, as long as a kernel or a session has them.
#[derive(Debug, Default)]
pub struct Shelves {
    packed: Mutex<HashMap<Key, Weak<Aligned>>>,
    /// The words of tensors by their places.
    words: Mutex<HashMap<Place, Weak<[f32]>>>,
}

/// Where the constants of one op are packed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Shelf<'s> {
    /// The shelves, and what the op's constants are called. `None`: they are packed anew.
    of: Option<(&'s Shelves, &'s str)>,
}

impl Shelves {
    /// The shelf of the op whose name and constants' places are `identity`. The constants stay where they are as long as
    /// anything that was packed of them.
    pub fn of<'s>(&'s self, identity: &'s str) -> Shelf<'s> {
        Shelf { of: Some((self, identity)) }
    }

    /// The words of a tensor, which stays where it is as long as anybody has them.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub fn words(&self, tensor: &HostTensor) -> Result<Arc<[f32]>> {
        if let Some(known) = lock(&self.words).get(&tensor.place()).and_then(Weak::upgrade) {
            return Ok(known);
        }
        let words = tensor.clone().into_words()?;
        lock(&self.words).insert(tensor.place(), Arc::downgrade(&words));
        Ok(words)
    }

    /// Forgets what nobody has any more.
    pub fn sweep(&self) {
        lock(&self.packed).retain(|_, packed| packed.strong_count() > 0);
        lock(&self.words).retain(|_, words| words.strong_count() > 0);
    }
}

impl Shelf<'_> {
    /// What `pack` makes of the op's constants, or what it made before under the same name and of the same extents.
    pub(crate) fn packed(
        self,
        name: &str,
        extents: [usize; 3],
        pack: impl FnOnce() -> Aligned,
    ) -> Arc<Aligned> {
        let Some((shelves, identity)) = self.of else { return Arc::new(pack()) };
        let key = (identity.to_owned(), name.to_owned(), extents);
        if let Some(known) = lock(&shelves.packed).get(&key).and_then(Weak::upgrade) {
            return known;
        }
        let packed = Arc::new(pack());
        lock(&shelves.packed).insert(key, Arc::downgrade(&packed));
        packed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_shared_while_somebody_has_it() {
        let shelves = Shelves::default();
        let pack = |value: f32| move || Aligned::from(&[value][..]);
        let first = shelves.of("op").packed("rows", [1, 1, 8], pack(1.0));
        let same = shelves.of("op").packed("rows", [1, 1, 8], pack(2.0));
        assert!(Arc::ptr_eq(&first, &same));
        for other in [
            shelves.of("other").packed("rows", [1, 1, 8], pack(3.0)),
            shelves.of("op").packed("turned", [1, 1, 8], pack(3.0)),
            shelves.of("op").packed("rows", [2, 1, 8], pack(3.0)),
        ] {
            assert_eq!(other[0], 3.0);
        }
        drop((first, same));
        assert_eq!(shelves.of("op").packed("rows", [1, 1, 8], pack(4.0))[0], 4.0);
    }
}
