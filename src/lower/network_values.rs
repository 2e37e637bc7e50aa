//! Values of a network: those of its graph, and those that passes put between the units that they made of one.

use super::network::Network;
use crate::dims::Dims;
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::Value;
use crate::host::HostTensor;

impl Network<'_> {
    /// The dimensions of `value`.
    pub(crate) fn dims(&self, value: Value) -> Result<Dims> {
        match self.own_place(value) {
            Some(place) => Ok(self.own[place]),
            None => self.graph.dims(value),
        }
    }

    /// A value more, which lies between units and is none of the graph's.
    pub(super) fn add_value(&mut self, dims: Dims) -> Value {
        self.own.push(dims);
        self.graph.beyond(self.own.len() - 1)
    }

    /// A constant more, which is none of the graph's.
    pub(super) fn add_constant(&mut self, tensor: HostTensor) -> Value {
        let value = self.add_value(tensor.dims());
        self.constants.insert(value, tensor);
        value
    }

    /// The type of the words of `value` in rows: what passes made is of f32.
    pub(crate) fn word(&self, value: Value) -> DType {
        self.graph.dtype(value).unwrap_or_default().word()
    }

    fn own_place(&self, value: Value) -> Option<usize> {
        self.graph.place_beyond(value).filter(|&place| place < self.own.len())
    }

    /// The name of `value`.
    pub(super) fn name(&self, value: Value) -> Result<&str> {
        match self.own_place(value) {
            Some(_) => Ok(self.writer(value).map_or("", |writer| self.units()[writer].name.as_str())),
            None => self.graph.name(value),
        }
    }
}
