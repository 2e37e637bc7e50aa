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

/// A named place where data goes in or comes out: an input or an output of a session, of a [`Batch`](struct.Batch.html) or of a
/// [`Model`](struct.Model.html), or an output of a [`ModelFile`](struct.ModelFile.html), whose inputs are of the type
/// [`FileInput`](struct.FileInput.html).
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
    /// The axes whose extents each run decides, in a session of a [`ModelFile`](struct.ModelFile.html). `dims` has the
    /// extents of the last run, and 1 for these axes before the first run.
    pub open: Vec<OpenAxis>,
}

impl Port {
    /// The ports of some of a graph's values.
    #[doc(hidden)]
    pub fn all(graph: &Graph, values: &[Value]) -> Result<Vec<Self>> {
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
    #[doc(hidden)]
    pub fn takes(&self, tensor: &HostTensor) -> Result<()> {
        self.takes_dims(tensor.dims())
    }

    #[doc(hidden)]
    pub fn takes_dims(&self, dims: Dims) -> Result<()> {
        // Rank 4 serves for any rank: a tensor of a picture, a vector or a matrix as a feature map.
        let as_map = dims.rank() == 4 && dims.shape() == self.shape;
        if dims == self.dims || as_map {
            return Ok(());
        }
        let name = format!("input {:?}", self.name);
        Err(Error::input(name, format!("shape {dims}"), format!("{}", self.dims)))
    }
}
