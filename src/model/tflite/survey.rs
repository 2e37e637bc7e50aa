//! Everything in a file that cannot run, found before anything of it is built.

use super::import::Import;
use super::operators;
use super::tensors::Reason;
use std::collections::{BTreeMap, HashSet};

/// How many there are of one kind, and where the first one is.
struct Found {
    count: usize,
    first: usize,
    place: String,
}

/// What of the file is not supported, as one sentence; `None` if everything is.
pub(super) fn unsupported(import: &mut Import<'_>, inputs: &[i32]) -> Result<Option<String>, Reason> {
    let mut operators: BTreeMap<String, Found> = BTreeMap::new();
    let mut types: BTreeMap<String, Found> = BTreeMap::new();
    let mut seen = HashSet::new();
    let mut tensor = |import: &Import<'_>, index: i32| {
        let Ok(position) = import.tensors.position(index) else { return };
        if seen.insert(position)
            && let Err(reason) = import.tensors.check_activation(position)
        {
            let kind = reason.strip_prefix(&import.tensors.describe(position)).unwrap_or(&reason);
            let kind = kind.trim_start_matches(": ").to_owned();
            let place = || import.tensors.describe(position);
            let entry = types.entry(kind);
            entry.or_insert_with(|| Found { count: 0, first: position, place: place() }).count += 1;
        }
    };
    for &input in inputs {
        tensor(import, input);
    }
    for index in 0..import.operators.len() {
        let op = import.op(index)?;
        if operators::handler(&op.name).is_none() {
            let found = Found { count: 0, first: index, place: format!("op {index}") };
            operators.entry(op.name).or_insert(found).count += 1;
            continue;
        }
        for output in op.outputs {
            tensor(import, output);
        }
    }
    let told = |found: BTreeMap<String, Found>| {
        let mut found: Vec<_> = found.into_iter().collect();
        found.sort_by_key(|(_, found)| found.first);
        let line = |(what, Found { count, place, .. }): (String, Found)| match count {
            1 => format!("{what} (1, {place})"),
            count => format!("{what} ({count}, first {place})"),
        };
        found.into_iter().map(line).collect::<Vec<_>>().join("; ")
    };
    let parts: Vec<String> = [("operators that are not supported", operators), ("tensors", types)]
        .into_iter()
        .filter(|(_, found)| !found.is_empty())
        .map(|(what, found)| format!("{what}: {}", told(found)))
        .collect();
    Ok((!parts.is_empty()).then(|| parts.join(". ")))
}
