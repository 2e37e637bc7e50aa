//! Every operator of a file that cannot run, found before anything of it is built.

use super::import::Import;
use super::operators;
use super::schema::{Graph as Network, Node};
use crate::sorted;
use std::collections::{BTreeMap, HashSet};

/// How many there are of one kind, and where the first one is.
struct Found {
    count: usize,
    first: usize,
    place: String,
}

/// What of the file is not supported, as one sentence; `None` if everything is. What no output needs is not looked at.
pub(super) fn unsupported(import: &Import<'_>, network: &Network<'_>) -> Option<String> {
    let outputs: Vec<&str> = network.outputs.iter().map(|output| output.name).collect();
    let needed = super::import::needed(&network.nodes, &outputs);
    let mut found = BTreeMap::new();
    let mut called = HashSet::new();
    for (index, node) in network.nodes.iter().enumerate().filter(|(index, _)| needed[*index]) {
        look(import, node, index, &mut found, &mut called);
    }
    let mut found: Vec<(String, Found)> = found.into_iter().collect();
    sorted::sort_by_key(&mut found, |(_, found)| found.first);
    let line = |(what, Found { count, place, .. }): (String, Found)| match count {
        1 => format!("{what} (1, {place})"),
        count => format!("{what} ({count}, first {place})"),
    };
    let lines: Vec<String> = found.into_iter().map(line).collect();
    (!lines.is_empty()).then(|| format!("operators that are not supported: {}", lines.join("; ")))
}

fn look<'a>(
    import: &Import<'a>,
    node: &Node<'a>,
    index: usize,
    found: &mut BTreeMap<String, Found>,
    called: &mut HashSet<(&'a str, &'a str, &'a str)>,
) {
    let key = (node.domain, node.op, node.overload);
    if let Some(function) = import.functions.get(&key).copied() {
        if called.insert(key) {
            for inner in &function.nodes {
                look(import, inner, index, found, called);
            }
        }
        return;
    }
    if operators::handler(node.domain, node.op).is_some() {
        return;
    }
    let name =
        if node.domain.is_empty() { node.op.to_owned() } else { format!("{}.{}", node.domain, node.op) };
    let place = match node.name {
        "" => format!("op {index}"),
        name => format!("op {index} {name:?}"),
    };
    found.entry(name).or_insert(Found { count: 0, first: index, place }).count += 1;
}
