//! Which inputs of a network decide what had to be known while its file is read.

use crate::error::{Hint, Setting};
use crate::graph::{Graph, Value};
use std::collections::{BTreeSet, HashMap, HashSet};

/// The most elements of an input whose value somebody would give.
pub(in crate::model) const FEW: usize = 64;

/// The most elements of a value that a network is made for.
pub(in crate::model) const MOST_BY_VALUE: usize = 4096;

/// What would help where a value is computed at each run and should not be: the inputs that it depends on, as far as
/// they are of few elements. None where there are none.
pub(in crate::model) fn help(graph: &Graph, values: &[Value]) -> Option<Hint> {
    let few = |value: Value| graph.dims(value).is_ok_and(|dims| dims.elements() <= FEW);
    let names = names(graph, values, few);
    if names.is_empty() {
        return None;
    }
    let listed: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    let (them, values) = match names.len() {
        1 => ("input", "its value"),
        _ => ("inputs", "their values"),
    };
    let before =
        format!("; it depends on the {them} {}: give {values} when the file is read (", listed.join(", "));
    Some(Hint::new(before, Setting::Values(names.into_iter().collect()), ")"))
}

/// What would help where a file leaves an extent open.
pub(in crate::model) fn of_dimension(key: &str) -> Hint {
    Hint::new(format!(" for dimension {key:?} ("), Setting::Dimension(key.to_owned()), ")")
}

/// The names of all inputs that these values depend on.
pub(in crate::model) fn inputs(graph: &Graph, values: &[Value]) -> BTreeSet<String> {
    names(graph, values, |_| true)
}

/// The names of the inputs that these values depend on, of those that count.
fn names(graph: &Graph, values: &[Value], counts: impl Fn(Value) -> bool) -> BTreeSet<String> {
    let mut writers = HashMap::new();
    for (index, node) in graph.nodes().iter().enumerate() {
        writers.extend(node.outputs().iter().map(|&output| (output, index)));
    }
    let mut seen: HashSet<Value> = values.iter().copied().collect();
    let mut open: Vec<Value> = values.to_vec();
    let mut names = BTreeSet::new();
    while let Some(value) = open.pop() {
        if graph.inputs().contains(&value) {
            names.extend(graph.name(value).ok().filter(|_| counts(value)).map(str::to_owned));
        }
        let node = writers.get(&value).and_then(|&index| graph.nodes().get(index));
        let inputs = node.into_iter().flat_map(|node| node.inputs());
        open.extend(inputs.map(|&(_, input)| input).filter(|&input| seen.insert(input)));
    }
    names
}
