//! A network as a list of nodes whose shapes were checked when they were added.

use crate::dtype::Precision;
use crate::emit::Activation;
use crate::error::{Error, Result};
use crate::host::HostTensor;
use crate::ops::Op;
use crate::ops::conv2d::{Conv2d, Conv2dOp};
use crate::ops::depthwise::{Depthwise, DepthwiseOp};
use crate::ops::gemm::{Gemm, GemmOp};
use crate::ops::pointwise::{Pointwise, PointwiseOp};
use crate::ops::separable::SeparableOp;
use crate::shape::Shape;

/// A feature map (or matrix) in a graph: an input or the output of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(pub(crate) usize);

impl Value {
    /// Its index among the graph's values, in the order they were added.
    pub fn index(self) -> usize {
        self.0
    }
}

/// What a node may have beside its input and weights.
#[derive(Debug, Clone, Default)]
pub struct Extras {
    /// One value per output channel, added to the sum.
    pub bias: Option<HostTensor>,
    /// One PReLU slope per output channel; wanted by [`Activation::PRelu`] and only by it.
    pub slope: Option<HostTensor>,
    /// A value of the output's shape, added after the activation.
    pub residual: Option<Value>,
}

impl Extras {
    /// Only a bias.
    pub fn bias(bias: HostTensor) -> Self {
        Extras { bias: Some(bias), ..Default::default() }
    }
}

/// The right operand of a matrix product in a graph.
#[derive(Debug, Clone)]
pub enum Right {
    /// A constant matrix, uploaded once.
    Constant(HostTensor),
    /// A value computed or given at each run.
    Value(Value),
}

/// What a node computes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NodeOp {
    /// A 2D convolution.
    Conv2d(Conv2d),
    /// A depthwise convolution.
    Depthwise(Depthwise),
    /// A 1x1 convolution.
    Pointwise(Pointwise),
    /// A matrix product. `beta` must be 0: a graph's values are written once.
    Gemm(Gemm),
}

impl NodeOp {
    /// The op's name.
    pub const fn name(&self) -> &'static str {
        match self {
            NodeOp::Conv2d(_) => "conv2d",
            NodeOp::Depthwise(_) => "depthwise",
            NodeOp::Pointwise(_) => "pointwise",
            NodeOp::Gemm(_) => "gemm",
        }
    }

    /// The activation of its epilogue.
    pub const fn activation(&self) -> Activation {
        match self {
            NodeOp::Conv2d(options) => options.activation,
            NodeOp::Depthwise(options) => options.activation,
            NodeOp::Pointwise(options) => options.activation,
            NodeOp::Gemm(options) => options.activation,
        }
    }
}

/// One op of a graph.
#[derive(Debug, Clone)]
pub struct Node {
    pub(crate) name: String,
    pub(crate) op: NodeOp,
    pub(crate) input: Value,
    pub(crate) right: Option<Value>,
    pub(crate) weights: Option<HostTensor>,
    pub(crate) extras: Extras,
    pub(crate) output: Value,
}

impl Node {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it computes.
    pub fn op(&self) -> &NodeOp {
        &self.op
    }

    /// What it reads, constants excluded.
    pub fn inputs(&self) -> impl Iterator<Item = Value> + '_ {
        [Some(self.input), self.right, self.extras.residual].into_iter().flatten()
    }

    /// What it writes.
    pub fn output(&self) -> Value {
        self.output
    }
}

/// One value of a graph.
#[derive(Debug, Clone)]
pub(crate) struct ValueInfo {
    pub(crate) name: String,
    pub(crate) shape: Shape,
}

/// A network: inputs, nodes in order of execution, outputs.
///
/// ```
/// use diptych::{Conv2d, Extras, Graph, HostTensor, Padding, Shape};
///
/// let mut graph = Graph::new();
/// let x = graph.input("image", Shape::nhwc(1, 8, 8, 3))?;
/// let w = HostTensor::new(Shape::nhwc(4, 3, 3, 3), vec![0.1; 108])?;
/// let options = Conv2d { stride: [2, 2], padding: Padding::Same, ..Default::default() };
/// let y = graph.conv2d("stem", x, w, Extras::default(), options)?;
/// assert_eq!(graph.shape(y)?, Shape::nhwc(1, 4, 4, 4));
/// graph.output(y)?;
/// # Ok::<(), diptych::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Graph {
    pub(crate) values: Vec<ValueInfo>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) inputs: Vec<Value>,
    pub(crate) outputs: Vec<Value>,
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an input.
    ///
    /// # Errors
    /// If the shape is empty or too large, or another input has this name.
    pub fn input(&mut self, name: &str, shape: Shape) -> Result<Value> {
        shape.check("input").map_err(|error| error.at_node(name))?;
        if self.inputs.iter().any(|&input| self.values[input.0].name == name) {
            return Err(Error::input(name, "two inputs of this name", "distinct names"));
        }
        let value = self.value(name, shape);
        self.inputs.push(value);
        Ok(value)
    }

    /// Marks a value as an output. Outputs are returned in the order they were marked.
    ///
    /// # Errors
    /// If the value is not of this graph, or is an output already.
    pub fn output(&mut self, value: Value) -> Result<()> {
        let info = self.info(value)?;
        if self.outputs.contains(&value) {
            return Err(Error::input(info.name.clone(), "an output twice", "each output once"));
        }
        self.outputs.push(value);
        Ok(())
    }

    /// Adds a 2D convolution; `weights` is `oc kh kw c/groups`.
    ///
    /// # Errors
    /// If the shapes do not fit each other; the error names the node.
    pub fn conv2d(
        &mut self,
        name: &str,
        x: Value,
        weights: HostTensor,
        extras: Extras,
        options: Conv2d,
    ) -> Result<Value> {
        self.convolution(name, x, weights, extras, NodeOp::Conv2d(options))
    }

    /// Adds a depthwise convolution; `weights` is `1 kh kw c*multiplier`.
    ///
    /// # Errors
    /// If the shapes do not fit each other; the error names the node.
    pub fn depthwise(
        &mut self,
        name: &str,
        x: Value,
        weights: HostTensor,
        extras: Extras,
        options: Depthwise,
    ) -> Result<Value> {
        self.convolution(name, x, weights, extras, NodeOp::Depthwise(options))
    }

    /// Adds a 1x1 convolution; `weights` is `oc 1 1 c`.
    ///
    /// # Errors
    /// If the shapes do not fit each other; the error names the node.
    pub fn pointwise(
        &mut self,
        name: &str,
        x: Value,
        weights: HostTensor,
        extras: Extras,
        options: Pointwise,
    ) -> Result<Value> {
        self.convolution(name, x, weights, extras, NodeOp::Pointwise(options))
    }

    /// Adds a matrix product of `x` (see [`Shape::matrix`]) and `right`, both packed. A batch of
    /// left matrices may share one right matrix.
    ///
    /// # Errors
    /// If the shapes do not fit each other, `beta` is not 0, or a leading dimension is given:
    /// the values of a graph are packed and written once.
    pub fn gemm(
        &mut self,
        name: &str,
        x: Value,
        right: Right,
        extras: Extras,
        options: Gemm,
    ) -> Result<Value> {
        let (right, weights) = match right {
            Right::Constant(tensor) => (None, Some(tensor)),
            Right::Value(value) => {
                self.info(value)?;
                (Some(value), None)
            }
        };
        let node = Node {
            name: name.to_owned(),
            op: NodeOp::Gemm(options),
            input: x,
            right,
            weights,
            extras,
            output: Value(usize::MAX),
        };
        self.insert(node)
    }

    fn convolution(
        &mut self,
        name: &str,
        x: Value,
        weights: HostTensor,
        extras: Extras,
        op: NodeOp,
    ) -> Result<Value> {
        let node = Node {
            name: name.to_owned(),
            op,
            input: x,
            right: None,
            weights: Some(weights),
            extras,
            output: Value(usize::MAX),
        };
        self.insert(node)
    }

    fn insert(&mut self, mut node: Node) -> Result<Value> {
        let shape = self.check(&node).map_err(|error| error.at_node(&node.name))?;
        let output = self.value(&node.name, shape);
        node.output = output;
        self.nodes.push(node);
        Ok(output)
    }

    /// The node's output shape, if everything fits.
    fn check(&self, node: &Node) -> Result<Shape> {
        let op = node.op.name();
        self.info(node.input)?;
        let shape = match self.problem(node, Precision::F32)? {
            Problem::Conv2d(Conv2dOp(problem))
            | Problem::Depthwise(DepthwiseOp(problem))
            | Problem::Pointwise(PointwiseOp(problem)) => problem.output,
            Problem::Separable(op) => op.pointwise().output,
            Problem::Gemm(problem) => Shape::matrix(problem.batch, problem.m, problem.n),
        };
        for (what, tensor) in [("bias", &node.extras.bias), ("slope", &node.extras.slope)] {
            if let Some(tensor) = tensor
                && tensor.shape() != Shape::nhwc(1, 1, 1, shape.c)
            {
                return Err(Error::shape(
                    op,
                    format!("{what} of shape {}", tensor.shape()),
                    format!("one {what} for each of {} output channels", shape.c),
                ));
            }
        }
        let wants_slope = node.op.activation() == Activation::PRelu;
        if wants_slope != node.extras.slope.is_some() {
            return Err(Error::shape(
                op,
                format!("activation {:?}, slope {}", node.op.activation(), node.extras.slope.is_some()),
                "a slope per channel with PRelu, and only with it",
            ));
        }
        if let Some(residual) = node.extras.residual {
            let found = self.info(residual)?.shape;
            if found != shape {
                return Err(Error::shape(op, format!("residual {found}"), format!("residual {shape}")));
            }
        }
        Ok(shape)
    }

    /// The op of `node` with its concrete shapes.
    pub(crate) fn problem(&self, node: &Node, precision: Precision) -> Result<Problem> {
        let input = self.info(node.input)?.shape;
        let bias = node.extras.bias.is_some();
        let residual = node.extras.residual.is_some();
        let weights = match (&node.weights, node.right) {
            (Some(weights), _) => weights.shape(),
            (None, Some(right)) => self.info(right)?.shape,
            (None, None) => return Err(Error::Internal(format!("node {:?} has no weights", node.name))),
        };
        match &node.op {
            NodeOp::Conv2d(options) => {
                Conv2dOp::new(input, weights, options, bias, residual, precision).map(Problem::Conv2d)
            }
            NodeOp::Depthwise(options) => {
                DepthwiseOp::new(input, weights, options, bias, residual, precision).map(Problem::Depthwise)
            }
            NodeOp::Pointwise(options) => {
                PointwiseOp::new(input, weights, options, bias, residual, precision).map(Problem::Pointwise)
            }
            NodeOp::Gemm(options) => {
                GemmOp::of_matrices(input, weights, options, bias, residual, precision).map(Problem::Gemm)
            }
        }
    }

    fn value(&mut self, name: &str, shape: Shape) -> Value {
        self.values.push(ValueInfo { name: name.to_owned(), shape });
        Value(self.values.len() - 1)
    }

    pub(crate) fn info(&self, value: Value) -> Result<&ValueInfo> {
        self.values.get(value.0).ok_or_else(|| {
            Error::input(
                "graph value",
                format!("value {} of another graph", value.0),
                format!("one of this graph's {} values", self.values.len()),
            )
        })
    }

    /// The same network for `n` images at once: its inputs, which must have batch 1, have batch `n`.
    /// Weights are shared, not copied. Values keep their indices.
    ///
    /// ```
    /// # use diptych::{Conv2d, Extras, Graph, HostTensor, Shape};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("image", Shape::nhwc(1, 8, 8, 3))?;
    /// # let w = HostTensor::new(Shape::nhwc(4, 3, 3, 3), vec![0.1; 108])?;
    /// # let y = graph.conv2d("stem", x, w, Extras::default(), Conv2d::default())?;
    /// # graph.output(y)?;
    /// assert_eq!(graph.shape(y)?, Shape::nhwc(1, 6, 6, 4));
    /// assert_eq!(graph.with_batch(5)?.shape(y)?, Shape::nhwc(5, 6, 6, 4));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `n` is 0, an input has another batch than 1, or a value would become too large.
    pub fn with_batch(&self, n: usize) -> Result<Graph> {
        let mut graph = Graph::new();
        let mut nodes = self.nodes.iter();
        for (index, info) in self.values.iter().enumerate() {
            if self.inputs.contains(&Value(index)) {
                if info.shape.n != 1 {
                    return Err(Error::shape(
                        "batch",
                        format!("input {:?} of {}", info.name, info.shape),
                        "batch 1",
                    ));
                }
                graph.input(&info.name, Shape { n, ..info.shape })?;
            } else if let Some(node) = nodes.next() {
                graph.insert(node.clone())?;
            }
        }
        graph.outputs = self.outputs.clone();
        Ok(graph)
    }

    /// The shape of a value.
    ///
    /// # Errors
    /// If the value is not of this graph.
    pub fn shape(&self, value: Value) -> Result<Shape> {
        self.info(value).map(|info| info.shape)
    }

    /// The name of a value: of the input, or of the node that writes it.
    ///
    /// # Errors
    /// If the value is not of this graph.
    pub fn name(&self, value: Value) -> Result<&str> {
        self.info(value).map(|info| info.name.as_str())
    }

    /// The inputs, in the order they were added.
    pub fn inputs(&self) -> &[Value] {
        &self.inputs
    }

    /// The outputs, in the order they were marked.
    pub fn outputs(&self) -> &[Value] {
        &self.outputs
    }

    /// The nodes, in order of execution.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Floating-point operations of one run.
    ///
    /// # Errors
    /// If a node's shapes are inconsistent, which insertion rules out.
    pub fn flops(&self) -> Result<u64> {
        self.nodes.iter().try_fold(0u64, |sum, node| Ok(sum + self.problem(node, Precision::F32)?.flops()))
    }
}

/// A node's op with its concrete shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Problem {
    Conv2d(Conv2dOp),
    Depthwise(DepthwiseOp),
    Pointwise(PointwiseOp),
    /// Two nodes that run as one.
    Separable(SeparableOp),
    Gemm(GemmOp),
}

impl Problem {
    pub(crate) fn flops(&self) -> u64 {
        match self {
            Problem::Conv2d(Conv2dOp(problem))
            | Problem::Depthwise(DepthwiseOp(problem))
            | Problem::Pointwise(PointwiseOp(problem)) => problem.flops(),
            Problem::Separable(op) => op.flops(),
            Problem::Gemm(problem) => 2 * (problem.batch * problem.m * problem.n * problem.k) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Padding;

    fn zeros(shape: Shape) -> HostTensor {
        HostTensor::new(shape, vec![0.0; shape.elements()]).expect("zeros")
    }

    #[test]
    fn a_wrong_weight_shape_names_the_node_and_both_shapes() {
        let mut graph = Graph::new();
        let x = graph.input("image", Shape::nhwc(1, 8, 8, 3)).expect("an input");
        let error = graph
            .conv2d("stem", x, zeros(Shape::nhwc(4, 3, 3, 5)), Extras::default(), Conv2d::default())
            .expect_err("5 channels against 3");
        let text = error.to_string();
        assert!(text.contains("stem") && text.contains("4x3x3x5") && text.contains("1x8x8x3"), "{text}");
        assert!(graph.nodes().is_empty(), "nothing was added");
    }

    #[test]
    fn a_residual_of_another_shape_is_refused() {
        let mut graph = Graph::new();
        let x = graph.input("image", Shape::nhwc(1, 8, 8, 4)).expect("an input");
        let extras = Extras { residual: Some(x), ..Default::default() };
        let options = Conv2d { stride: [2, 2], padding: Padding::Same, ..Default::default() };
        let error = graph.conv2d("down", x, zeros(Shape::nhwc(4, 3, 3, 4)), extras, options);
        assert!(error.expect_err("4x4 against 8x8").to_string().contains("residual 1x8x8x4"));
    }

    #[test]
    fn prelu_wants_its_slopes() {
        let mut graph = Graph::new();
        let x = graph.input("image", Shape::nhwc(1, 2, 2, 4)).expect("an input");
        let options = Pointwise { activation: Activation::PRelu };
        let weights = zeros(Shape::nhwc(4, 1, 1, 4));
        assert!(graph.pointwise("p", x, weights, Extras::default(), options).is_err());
    }

    #[test]
    fn a_value_of_another_graph_is_refused() {
        let mut other = Graph::new();
        other.input("a", Shape::nhwc(1, 1, 1, 1)).expect("an input");
        let foreign = other.input("b", Shape::nhwc(1, 1, 1, 1)).expect("an input");
        let mut graph = Graph::new();
        graph.input("a", Shape::nhwc(1, 1, 1, 1)).expect("an input");
        assert!(graph.output(foreign).is_err());
    }
}
