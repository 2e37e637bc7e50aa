//! Values of a network: those of its graph, and those that passes put between the units that they made of one.

use super::network::Network;
use crate::dims::Dims;
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{TensorType, Value};
use crate::host::HostTensor;

impl Network<'_> {
    /// The dimensions of `value`.
    pub(crate) fn dims(&self, value: Value) -> Result<Dims> {
        match self.own_place(value) {
            Some(place) => Ok(self.own[place].dims),
            None => self.graph.dims(value),
        }
    }

    /// A value more, which lies between units and is none of the graph's.
    pub(super) fn add_value(&mut self, dims: Dims) -> Value {
        self.add_value_of(TensorType { dtype: DType::F32, dims })
    }

    /// A value more, of this type.
    pub(super) fn add_value_of(&mut self, of: TensorType) -> Value {
        self.own.push(of);
        self.graph.beyond(self.own.len() - 1)
    }

    /// A value more, of this type, that shows the elements of `of` from `offset` on.
    pub(super) fn add_view(&mut self, own: TensorType, of: Value, offset: usize) -> Value {
        let value = self.add_value_of(own);
        self.view_of(value, of, offset);
        value
    }

    /// A constant more, which is none of the graph's.
    pub(super) fn add_constant(&mut self, tensor: HostTensor) -> Value {
        let value = self.add_value_of(TensorType { dtype: tensor.dtype(), dims: tensor.dims() });
        self.constants.insert(value, tensor);
        value
    }

    /// The type of the elements of `value`.
    pub(super) fn dtype(&self, value: Value) -> DType {
        match self.own_place(value) {
            Some(place) => self.own[place].dtype,
            None => self.graph.dtype(value).unwrap_or_default(),
        }
    }

    /// The type of the words of `value` in rows.
    pub(crate) fn word(&self, value: Value) -> DType {
        self.dtype(value).word()
    }

    /// The name of a value, or nothing.
    pub(super) fn value_name(&self, value: Value) -> &str {
        self.name(value).unwrap_or("")
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
