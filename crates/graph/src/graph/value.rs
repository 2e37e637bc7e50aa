//! Values and nodes of a graph.

use crate::dims::{Dim, Dims};
use crate::dtype::DType;
use crate::emit::Operand;
use crate::host::HostTensor;
use crate::ops::operator::Operator;
use std::sync::Arc;

/// A tensor in a graph: an input, a constant, or an output of a node. It belongs to one graph and that graph's clones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value {
    /// The graph's number.
    pub(super) graph: u64,
    pub(super) index: usize,
}

impl Value {
    /// Its index among the graph's values, in the order they were added.
    ///
    /// ```
    /// use diptych::{Graph, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let first = graph.input("first", Shape::nhwc(1, 1, 1, 1))?;
    /// let second = graph.input("second", Shape::nhwc(1, 1, 1, 1))?;
    /// assert_eq!((first.index(), second.index()), (0, 1));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn index(self) -> usize {
        self.index
    }
}

/// Where a value comes from.
#[derive(Debug, Clone)]
pub enum Origin {
    /// The caller, at each run; the extents as they were declared.
    Input(Vec<Dim>),
    /// The graph.
    Constant(HostTensor),
    /// The run before, or before the first one the graph.
    State,
    /// A node, by its index.
    Node(usize),
}

/// One value of a graph.
#[derive(Debug, Clone)]
pub struct ValueInfo {
    pub(crate) name: String,
    pub dims: Dims,
    pub(crate) dtype: DType,
    pub origin: Origin,
}

/// The element type and the dimensions of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// The type of an element, as it enters and leaves the network.
    pub dtype: DType,
    /// The dimensions.
    pub dims: Dims,
}

/// One op of a graph: what it computes, from which values, and what it writes.
#[derive(Debug, Clone)]
pub struct Node {
    pub(crate) name: String,
    #[doc(hidden)]
    pub operator: Arc<dyn Operator>,
    pub(crate) inputs: Vec<(Operand, Value)>,
    pub(crate) outputs: Vec<Value>,
}

impl Node {
    /// Its name.
    ///
    /// ```
    /// use diptych::{Graph, Pool, Pooling, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 8, 8, 2))?;
    /// let y = graph.pool("half", x, Pool::new(Pooling::Max, [2, 2]))?;
    /// let node = &graph.nodes()[0];
    /// assert_eq!(node.name(), "half");
    /// # let _ = y;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it computes.
    ///
    /// ```
    /// use diptych::{Graph, Pool, Pooling, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 8, 8, 2))?;
    /// let y = graph.pool("half", x, Pool::new(Pooling::Max, [2, 2]))?;
    /// let node = &graph.nodes()[0];
    /// assert_eq!(node.operator().name(), "pool");
    /// # let _ = y;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn operator(&self) -> &dyn Operator {
        &*self.operator
    }

    /// What it reads, constants included, each with its operand.
    ///
    /// ```
    /// use diptych::{Graph, Operand, Pool, Pooling, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 8, 8, 2))?;
    /// let y = graph.pool("half", x, Pool::new(Pooling::Max, [2, 2]))?;
    /// let node = &graph.nodes()[0];
    /// assert_eq!(node.inputs(), [(Operand::Src, x)]);
    /// # let _ = y;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn inputs(&self) -> &[(Operand, Value)] {
        &self.inputs
    }

    /// What it writes.
    ///
    /// ```
    /// use diptych::{Graph, Pool, Pooling, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 8, 8, 2))?;
    /// let y = graph.pool("half", x, Pool::new(Pooling::Max, [2, 2]))?;
    /// let node = &graph.nodes()[0];
    /// assert_eq!(node.outputs(), [y]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn outputs(&self) -> &[Value] {
        &self.outputs
    }
}
