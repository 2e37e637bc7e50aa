//! Everything in a file that cannot run, found before anything of it is built.

use super::import::Import;
use super::names::{self, element};
use crate::model::reason::Reason;
use crate::sorted;
use std::collections::{BTreeMap, HashSet};

/// How many there are of one kind, and where the first one is.
struct Occurrences {
    count: usize,
    first: usize,
    place: String,
}

/// Looks at every operator of the network that is read, and gives the networks that it calls.
fn look<'a>(
    import: &mut Import<'a>,
    rank: usize,
    network: Option<usize>,
    operators: &mut BTreeMap<String, Occurrences>,
    tensor: &mut dyn FnMut(&Import<'a>, i32),
) -> Result<Vec<i32>, Reason> {
    let mut called = Vec::new();
    for index in 0..import.operator_count() {
        if import.unneeded.contains(&index) {
            continue;
        }
        let op = import.op(index)?;
        if (import.handlers)(&op.name).is_none() {
            let place = match network {
                None => format!("op {index}"),
                Some(network) => format!("op {index} of network {network}"),
            };
            let found = Occurrences { count: 0, first: rank + index, place };
            operators.entry(op.name).or_insert(found).count += 1;
            continue;
        }
        called.extend(op.table.while_loop().into_iter().flat_map(|table| [table.condition(), table.body()]));
        called.extend(op.table.branch().into_iter().flat_map(|table| [table.then(), table.otherwise()]));
        called.extend(op.table.call_once().map(|table| table.network()));
        called.extend(op.table.composite().map(|table| table.decomposition()));
        for output in op.outputs {
            tensor(import, output);
        }
    }
    Ok(called)
}

/// Refuses an input of the network that has no elements: a variable's handle, or a list of tensors.
fn check_input(import: &Import<'_>, position: usize) -> Result<(), Reason> {
    import.tensors.check_activation(position)?;
    match import.tensors.tensor(position)?.element_type() {
        handle @ (element::RESOURCE | element::VARIANT) => refused!(
            "{}: found {} as an input, wanted floats of 16 or 32 bits, integers or BOOL",
            import.tensors.describe(position),
            names::element_type(handle)
        ),
        _ => Ok(()),
    }
}

/// What of the file is not supported, as one sentence; `None` if everything is.
pub(super) fn unsupported(import: &mut Import<'_>, inputs: &[i32]) -> Result<Option<String>, Reason> {
    let mut operators: BTreeMap<String, Occurrences> = BTreeMap::new();
    let mut types: BTreeMap<String, Occurrences> = BTreeMap::new();
    let mut seen = HashSet::new();
    let mut tensor = |import: &Import<'_>, index: i32, is_input: bool| {
        let Ok(position) = import.tensors.position(index) else { return };
        let check = || match is_input {
            true => check_input(import, position),
            false => import.tensors.check_activation(position),
        };
        if seen.insert(position)
            && let Err(reason) = check()
        {
            let reason = reason.to_string();
            let kind = reason.strip_prefix(&import.tensors.describe(position)).unwrap_or(&reason);
            let kind = kind.trim_start_matches(": ").to_owned();
            let place = || import.tensors.describe(position);
            let entry = types.entry(kind);
            entry.or_insert_with(|| Occurrences { count: 0, first: position, place: place() }).count += 1;
        }
    };
    for &input in inputs {
        tensor(import, input, true);
    }
    let mut written = |import: &Import<'_>, index: i32| tensor(import, index, false);
    let mut called = look(import, 0, None, &mut operators, &mut written)?;
    let mut seen = HashSet::new();
    while let Some(network) = called.pop() {
        if let Ok(index) = usize::try_from(network)
            && index != import.main
            && seen.insert(index)
        {
            let found = import.within(index, |import| {
                look(import, operators.len(), Some(index), &mut operators, &mut |_, _| ())
            });
            called.extend(found?);
        }
    }
    let list = |found: BTreeMap<String, Occurrences>| {
        let mut found: Vec<_> = found.into_iter().collect();
        sorted::sort_by_key(&mut found, |(_, found)| found.first);
        let line = |(what, Occurrences { count, place, .. }): (String, Occurrences)| match count {
            1 => format!("{what} (1, {place})"),
            count => format!("{what} ({count}, first {place})"),
        };
        found.into_iter().map(line).collect::<Vec<_>>().join("; ")
    };
    let parts: Vec<String> = [("operators that are not supported", operators), ("tensors", types)]
        .into_iter()
        .filter(|(_, found)| !found.is_empty())
        .map(|(what, found)| format!("{what}: {}", list(found)))
        .collect();
    Ok((!parts.is_empty()).then(|| parts.join(". ")))
}
