//! Where data goes into a session and comes out, by name.

use crate::error::{Error, Result};
#[cfg(not(target_family = "wasm"))]
use crate::host::HostTensor;
use crate::source::Port;

/// The tensors in the order of the ports.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn arranged<'a>(ports: &[Port], inputs: &[(&str, &'a HostTensor)]) -> Result<Vec<&'a HostTensor>> {
    let mut found = vec![None; ports.len()];
    for (name, tensor) in inputs {
        let index =
            ports.iter().position(|port| port.name == *name).ok_or_else(|| unknown("input", name, ports))?;
        ports[index].takes(tensor)?;
        if found[index].is_some() {
            return Err(Error::input(format!("input {name:?}"), "two tensors", "one"));
        }
        found[index] = Some(*tensor);
    }
    every("input", ports, found)
}

/// The error of a name that no port has.
pub(super) fn unknown(what: &str, name: &str, ports: &[Port]) -> Error {
    let names: Vec<String> = ports.iter().map(|port| format!("{:?} ({})", port.name, port.shape)).collect();
    Error::input(what, format!("{name:?}"), format!("one of {}", names.join(", ")))
}

/// Each port's item, or an error that names the port without one.
pub(super) fn every<T>(what: &str, ports: &[Port], items: Vec<Option<T>>) -> Result<Vec<T>> {
    ports
        .iter()
        .zip(items)
        .map(|(port, item)| {
            item.ok_or_else(|| {
                Error::input(format!("{what} {:?}", port.name), "nothing", format!("shape {}", port.shape))
            })
        })
        .collect()
}

/// The caller's slices in the order of the ports. Of outputs that share a name, the first is the first
/// given.
pub(super) fn targets<'a>(
    ports: &[Port],
    outputs: &'a mut [(&str, &mut [f32])],
) -> Result<Vec<&'a mut [f32]>> {
    let mut found: Vec<Option<&mut [f32]>> = ports.iter().map(|_| None).collect();
    for (name, target) in outputs {
        let mut named = ports.iter().zip(&mut found).filter(|(port, _)| port.name == *name).peekable();
        if named.peek().is_none() {
            return Err(unknown("output", name, ports));
        }
        let Some((port, place)) = named.find(|(_, place)| place.is_none()) else {
            return Err(Error::input(format!("output {name:?}"), "two slices", "one"));
        };
        let wanted = port.shape.elements();
        if target.len() != wanted {
            return Err(Error::input(
                format!("output {name:?}"),
                format!("a slice of {} elements", target.len()),
                format!("{wanted} for shape {}", port.dims),
            ));
        }
        *place = Some(target);
    }
    every("output", ports, found)
}
