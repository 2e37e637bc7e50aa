//! Every operator of a file that cannot run, found before anything of it is built.

use super::import::Import;
use super::schema::{Graph as Network, Node};
use crate::sorted;
use std::collections::{BTreeMap, HashSet};

/// How many there are of one kind, and where the first one is.
struct Occurrences {
    count: usize,
    first: usize,
    place: String,
}

/// What of the file is not supported, as one sentence; `None` if everything is. What no output needs is not looked at.
pub(super) fn unsupported(import: &Import<'_>, network: &Network<'_>) -> Option<String> {
    let outputs: Vec<&str> = network.outputs.iter().map(|output| output.name).collect();
    let needed = super::import::needed(&network.nodes, &outputs);
    let mut found: BTreeMap<String, Occurrences> = BTreeMap::new();
    let mut called = HashSet::new();
    for (_, node) in network.nodes.iter().enumerate().filter(|(place, _)| needed[*place]) {
        // Functions may call others, as many as there are.
        let mut open = vec![node];
        while let Some(inner) = open.pop() {
            let key = (inner.domain, inner.op, inner.overload);
            if let Some(function) = import.functions.get(&key).copied() {
                if called.insert(key) {
                    open.extend(function.nodes.iter().rev());
                }
            } else if (import.handlers.find)(inner.domain, inner.op).is_none() {
                let entry = found.entry(kind(inner));
                entry
                    .or_insert_with(|| Occurrences {
                        count: 0,
                        first: node.index,
                        place: place(inner, node.index),
                    })
                    .count += 1;
            }
        }
    }
    let mut found: Vec<(String, Occurrences)> = found.into_iter().collect();
    sorted::sort_by_key(&mut found, |(_, found)| found.first);
    let line = |(what, Occurrences { count, place, .. }): (String, Occurrences)| match count {
        1 => format!("{what} (1, {place})"),
        count => format!("{what} ({count}, first {place})"),
    };
    let lines: Vec<String> = found.into_iter().map(line).collect();
    (!lines.is_empty()).then(|| format!("operators that are not supported: {}", lines.join("; ")))
}

/// An operator as a message names it.
fn kind(node: &Node<'_>) -> String {
    if node.domain.is_empty() { node.op.to_owned() } else { format!("{}.{}", node.domain, node.op) }
}

/// Where a node is.
fn place(node: &Node<'_>, index: usize) -> String {
    match node.name {
        "" => format!("op {index}"),
        name => format!("op {index} {name:?}"),
    }
}
