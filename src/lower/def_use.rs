//! Who writes and who reads each value of a network, so that a pass looks at the neighbours of a unit and not at all
//! units.

use super::alias::Aliases;
use super::unit::Unit;
use crate::graph::{Graph, Value};
use crate::sorted;
use std::collections::{HashMap, HashSet};

/// The places of writers and readers.
#[derive(Debug, Default)]
pub(super) struct Uses {
    writers: HashMap<Value, usize>,
    /// The units that read each value that holds elements, or a view of it, in ascending order.
    readers: HashMap<Value, Vec<usize>>,
    /// Values of which an output of the graph, or a state's next value, shows elements.
    leaving: HashSet<Value>,
}

impl Uses {
    pub(super) fn of(graph: &Graph, units: &[Unit], aliases: &Aliases) -> Self {
        let mut uses = Uses::default();
        for (place, unit) in units.iter().enumerate() {
            uses.add(aliases, place, unit);
        }
        let next = graph.states().iter().filter_map(|state| state.next);
        uses.leaving = graph.outputs().iter().copied().chain(next).map(|it| aliases.resolve(it).of).collect();
        uses
    }

    pub(super) fn add(&mut self, aliases: &Aliases, place: usize, unit: &Unit) {
        for &value in &unit.outputs {
            self.writers.insert(value, place);
        }
        for read in unit.reads() {
            let readers = self.readers.entry(aliases.resolve(read).of).or_default();
            if let Err(at) = readers.binary_search(&place) {
                readers.insert(at, place);
            }
        }
    }

    pub(super) fn remove(&mut self, aliases: &Aliases, place: usize, unit: &Unit) {
        for value in &unit.outputs {
            self.writers.remove(value);
        }
        for read in unit.reads() {
            let Some(readers) = self.readers.get_mut(&aliases.resolve(read).of) else { continue };
            if let Ok(at) = readers.binary_search(&place) {
                readers.remove(at);
            }
        }
    }

    /// Notes that `value`, which no unit writes any more, shows elements of `of`: its readers are readers of `of`.
    pub(super) fn show(&mut self, value: Value, of: Value) {
        self.writers.remove(&value);
        if let Some(moved) = self.readers.remove(&value) {
            let readers = self.readers.entry(of).or_default();
            readers.extend(moved);
            sorted::sort(readers, Ord::cmp);
            readers.dedup();
        }
        if self.leaving.remove(&value) {
            self.leaving.insert(of);
        }
    }

    pub(super) fn writer(&self, value: Value) -> Option<usize> {
        self.writers.get(&value).copied()
    }

    pub(super) fn readers(&self, value: Value) -> &[usize] {
        self.readers.get(&value).map_or(&[], Vec::as_slice)
    }

    pub(super) fn leaves(&self, value: Value) -> bool {
        self.leaving.contains(&value)
    }
}
