//! Where data goes into a session and comes out, by name.

use crate::dims::Dims;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::graph::{Graph, TensorType, Value};
use crate::host::HostTensor;
use crate::shape::Shape;

/// An axis whose extent each run decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenAxis {
    /// Its place among the dimensions.
    pub axis: usize,
    /// Its name in the file, or else the input's and the axis, as `image.1`.
    pub name: String,
}

/// A named place where data goes in or comes out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// The name of the graph's input, or of the node that writes the output.
    pub name: String,
    /// Its shape as a feature map (see [`Dims::shape`]); the elements are in NHWC order.
    pub shape: Shape,
    /// Its dimensions.
    pub dims: Dims,
    /// The type of its elements. An input takes elements of another type if each is a number of this one.
    pub dtype: DType,
    /// The axes whose extents each run decides, in a session of a [`ModelFile`](crate::ModelFile). `dims` has the
    /// extents of the last run, and 1 for these axes before the first run.
    pub open: Vec<OpenAxis>,
}

impl Port {
    /// The ports of some of a graph's values.
    pub(crate) fn all(graph: &Graph, values: &[Value]) -> Result<Vec<Self>> {
        let port = |&value: &Value| {
            let (name, TensorType { dtype, dims }) =
                (graph.name(value)?.to_owned(), graph.tensor_type(value)?);
            Ok(Port { name, shape: dims.shape(), dims, dtype, open: Vec::new() })
        };
        values.iter().map(port).collect()
    }
}

impl Port {
    /// Whether it is given a tensor of its dimensions.
    pub(super) fn takes(&self, tensor: &HostTensor) -> Result<()> {
        self.takes_dims(tensor.dims())
    }

    pub(super) fn takes_dims(&self, dims: Dims) -> Result<()> {
        // Rank 4 serves for any rank: a tensor of a picture, a vector or a matrix as a feature map.
        let as_map = dims.rank() == 4 && dims.shape() == self.shape;
        if dims == self.dims || as_map {
            return Ok(());
        }
        let name = format!("input {:?}", self.name);
        Err(Error::input(name, format!("shape {dims}"), format!("{}", self.dims)))
    }
}

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
