//! Constants of a file that is read several times: those that were read, and what was made of them.
//!
//! A file of open extents is read anew for each set of extents. Its weights are the same each time, and so is what is made
//! of them alone: transposed weights, weights with a normalisation folded in, results of operators on constants. They are
//! found by what they were made of, which stays where it is as long as this lives.

use super::build::{Kind, Quantised};
use super::constant::{Constant, Integers};
use super::reason::Reason;
#[cfg(any(feature = "onnx", feature = "tflite"))]
use crate::graph::Derived;
use crate::sync::{Mutex, lock};
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::Arc;

/// Constants of fewer elements are known by their values, and made again.
pub(in crate::model) const FEW: usize = 64;

/// Constants, each with its type.
type Constants = Vec<(Constant, Kind)>;

/// What is kept of a file.
#[derive(Debug, Default)]
pub(in crate::model) struct ConstantCache {
    state: Mutex<State>,
    /// What lowering makes of constants.
    #[cfg(any(feature = "onnx", feature = "tflite"))]
    derived: Arc<Derived>,
}

#[derive(Debug, Default)]
struct State {
    known: HashMap<String, Constants>,
    /// Matrices of integers, with what was made of them.
    quantised: HashMap<String, Arc<Quantised>>,
    /// The addresses of their elements.
    places: HashSet<usize>,
    /// Bytes of what was read, and of what was made of it.
    read: usize,
    made: usize,
}

/// What may be made of a file's constants and kept: so many times their bytes. What is made of extents, too, is another
/// one for each.
const MOST_MADE: usize = 3;

/// The bytes of a constant, nearly.
fn bytes(constant: &Constant) -> usize {
    constant.elements() * if constant.is_integers() { 8 } else { 4 }
}

/// Where the elements of a constant lie.
fn place(constant: &Constant) -> usize {
    match constant {
        Constant::Floats(tensor) => tensor.place().0,
        Constant::Integers(Integers { values, .. }) => Arc::as_ptr(values).addr(),
    }
}

impl ConstantCache {
    /// What lowering makes of constants, for each graph of the file.
    #[cfg(any(feature = "onnx", feature = "tflite"))]
    pub(in crate::model) fn derived(&self) -> Arc<Derived> {
        Arc::clone(&self.derived)
    }

    /// What a constant is called in names of what is made of it: its place if it is kept, its values if there are few.
    /// `None` if it is neither.
    pub(in crate::model) fn identity(&self, constant: &Constant) -> Option<String> {
        let extents = constant.extents();
        if constant.elements() > FEW {
            let place = place(constant);
            return lock(&self.state).places.contains(&place).then(|| format!("{place:x} {extents:?}"));
        }
        let mut text = format!("{extents:?}");
        match constant {
            Constant::Floats(tensor) => {
                let values = tensor.to_nhwc();
                values.iter().try_for_each(|value| write!(text, " f{:x}", value.to_bits())).ok()?;
            }
            Constant::Integers(Integers { values, .. }) => {
                values.iter().try_for_each(|value| write!(text, " {value}")).ok()?;
            }
        }
        Some(text)
    }

    /// What has this name.
    pub(in crate::model) fn known(&self, name: &str) -> Option<Constants> {
        lock(&self.state).known.get(name).cloned()
    }

    /// The matrix of integers that has this name, or what `make` makes.
    pub(in crate::model) fn quantised(
        &self,
        name: String,
        make: impl FnOnce() -> Result<Option<Arc<Quantised>>, Reason>,
    ) -> Result<Option<Arc<Quantised>>, Reason> {
        if let Some(known) = lock(&self.state).quantised.get(&name) {
            return Ok(Some(Arc::clone(known)));
        }
        let made = make()?;
        if let Some(made) = &made {
            lock(&self.state).quantised.insert(name, Arc::clone(made));
        }
        Ok(made)
    }

    /// Keeps a constant that was read.
    pub(in crate::model) fn keep_read(&self, name: String, constant: &(Constant, Kind)) {
        lock(&self.state).read += bytes(&constant.0);
        self.insert(name, std::slice::from_ref(constant));
    }

    /// Keeps constants that were read as several.
    #[cfg(feature = "tflite")]
    pub(in crate::model) fn keep_all(&self, name: String, constants: &[(Constant, Kind)]) {
        lock(&self.state).read += constants.iter().map(|(constant, _)| bytes(constant)).sum::<usize>();
        self.insert(name, constants);
    }

    /// Keeps constants that were made of others, if they are not too many.
    pub(in crate::model) fn keep_made(&self, name: String, constants: &[(Constant, Kind)]) {
        let more: usize = constants.iter().map(|(constant, _)| bytes(constant)).sum();
        let mut state = lock(&self.state);
        if state.made + more > MOST_MADE * state.read {
            return;
        }
        state.made += more;
        drop(state);
        self.insert(name, constants);
    }

    /// What has the name already stays: others are known by its place.
    fn insert(&self, name: String, constants: &[(Constant, Kind)]) {
        let mut state = lock(&self.state);
        if !state.known.contains_key(&name) {
            state.places.extend(constants.iter().map(|(constant, _)| place(constant)));
            state.known.insert(name, constants.to_vec());
        }
    }
}
