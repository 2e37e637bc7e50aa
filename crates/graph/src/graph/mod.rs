//! A network as values and the nodes between them; shapes are checked when a node is added.

mod attention;
mod build;
mod derived;
#[cfg(not(target_family = "wasm"))]
mod described;
mod dynamic;
mod elementwise;
mod expression;
mod integers;
mod layers;
mod moves;
mod packed;
mod part;
mod quantized;
mod random;
mod reductions;
mod samples;
mod sampling;
mod signs;
mod state;
mod value;
mod without_elements;

pub use attention::AttentionInputs;
pub use build::{Extras, Right};
pub use derived::Derived;
pub use dynamic::DynamicWeights;
pub use elementwise::Term;
pub use expression::Expression;
pub use packed::QuantizedMatrix;
pub use quantized::QuantizedWeights;
use random::Draws;
pub use random::{Key, key_of};
pub use sampling::Sampling;
pub use state::State;
pub use value::{Node, TensorType, Value};
pub use value::{Origin, ValueInfo};

use crate::dims::{Dim, Dims};
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::host::HostTensor;
use crate::ops::operator::{Argument, Arguments, Lowered, Operator};
use crate::ops::{Op, Role};
use crate::shape::Shape;
use crate::word;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A network: inputs, constants, nodes in order of execution, outputs.
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
///
/// Extents may be named, and the names given other extents later:
///
/// ```
/// use diptych::{Dim, Extras, Gemm, Graph, HostTensor, Right};
///
/// let mut graph = Graph::new();
/// graph.dimension("batch", 1)?;
/// let x = graph.input_of("features", &["batch".into(), Dim::Fixed(3)])?;
/// let w = HostTensor::matrix(1, 3, 2, vec![1.0; 6])?;
/// let y = graph.gemm("dense", x, Right::Constant(w), Extras::default(), Gemm::default())?;
/// graph.output(y)?;
/// assert_eq!(graph.dims(y)?.extents(), [1, 2]);
/// assert_eq!(graph.with_dimensions(&[("batch", 8)])?.dims(y)?.extents(), [8, 2]);
/// # Ok::<(), diptych::Error>(())
/// ```
///
/// A value may have an extent of 0, and then has no elements. Inputs and outputs of a session are such tensors, too. Nothing is
/// allocated or computed for them; a sum of no terms is 0, a product of no factors 1, and a mean of nothing NaN.
///
/// ```
/// use diptych::{Backend, Context, Dims, Graph, HostTensor, Session, SessionOptions};
///
/// let mut graph = Graph::new();
/// let past = graph.input("past", Dims::new(&[0, 2])?)?;
/// let next = graph.input("next", Dims::new(&[1, 2])?)?;
/// let all = graph.concat("all", &[past, next], 0)?;
/// graph.output(all)?;
/// let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::default())?;
/// let past = HostTensor::new(Dims::new(&[0, 2])?, vec![])?;
/// let next = HostTensor::new(Dims::new(&[1, 2])?, vec![3.0, 4.0])?;
/// assert_eq!(*session.run(&[("past", &past), ("next", &next)])?[0].to_f32(), [3.0, 4.0]);
/// # Ok::<(), diptych::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Graph {
    /// Tells the values of this graph and its clones from those of others.
    number: u64,
    values: Vec<ValueInfo>,
    nodes: Vec<Node>,
    inputs: Vec<Value>,
    outputs: Vec<Value>,
    states: Vec<State>,
    draws: Draws,
    dimensions: BTreeMap<String, usize>,
    /// Whether integers of 64 bits are kept in 32.
    narrow: bool,
    /// Where operands of another type than an operator takes are cast to it: what they were cast to.
    casts: Option<HashMap<(Value, DType), Value>>,
    /// What passes made of its constants.
    derived: Arc<Derived>,
    /// Whether its quantized operators are computed on floats.
    dequantized: bool,
}

/// A tensor of integers of 64 bits in 32; any other as it is.
fn narrowed(name: &str, tensor: &HostTensor) -> Result<HostTensor> {
    if tensor.dtype() != DType::I64 {
        return Ok(tensor.clone());
    }
    let words = word::of_tensor(tensor, DType::I32, DType::I64, &format!("constant {name:?}"))?;
    word::to_tensor(tensor.dims(), DType::I32, DType::I32, &words)
}

impl Default for Graph {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Graph {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            values: Vec::new(),
            nodes: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            states: Vec::new(),
            draws: Draws::default(),
            dimensions: BTreeMap::new(),
            narrow: false,
            casts: None,
            derived: Arc::default(),
            dequantized: false,
        }
    }
}

impl Graph {
    /// What passes made of its constants.
    #[doc(hidden)]
    pub fn derived(&self) -> &Derived {
        &self.derived
    }

    /// Shares what passes make of constants with other graphs of them.
    #[doc(hidden)]
    pub fn share_derived(&mut self, derived: Arc<Derived>) {
        self.derived = derived;
    }

    /// Has sessions compute quantized operators on floats, whatever their options say.
    #[doc(hidden)]
    pub fn dequantize_operators(&mut self) {
        self.dequantized = true;
    }

    /// Whether sessions compute quantized operators on floats, whatever their options say.
    #[doc(hidden)]
    pub fn is_dequantized(&self) -> bool {
        self.dequantized
    }

    /// An empty graph.
    ///
    /// ```
    /// use diptych::Graph;
    ///
    /// assert!(Graph::new().nodes().is_empty());
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Names a dimension and gives it an extent, which [`Graph::with_dimensions`] and
    /// [`SessionOptions::dimensions`](struct.SessionOptions.html#structfield.dimensions) change.
    ///
    /// ```
    /// use diptych::{Dim, Graph};
    ///
    /// let mut graph = Graph::new();
    /// graph.dimension("batch", 2)?;
    /// let x = graph.input_of("x", &["batch".into(), Dim::Fixed(3)])?;
    /// assert_eq!(graph.dims(x)?.extents(), [2, 3]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the graph has a dimension of this name.
    pub fn dimension(&mut self, name: &str, extent: usize) -> Result<()> {
        if self.dimensions.contains_key(name) {
            return Err(Error::input(format!("dimension {name:?}"), "two of this name", "distinct names"));
        }
        self.dimensions.insert(name.to_owned(), extent);
        Ok(())
    }

    /// The named dimensions with their extents.
    ///
    /// ```
    /// use diptych::Graph;
    ///
    /// let mut graph = Graph::new();
    /// graph.dimension("batch", 2)?;
    /// assert_eq!(graph.dimensions()["batch"], 2);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn dimensions(&self) -> &BTreeMap<String, usize> {
        &self.dimensions
    }

    /// Adds an input of f32.
    ///
    /// ```
    /// use diptych::{Dims, Graph, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let picture = graph.input("picture", Shape::nhwc(1, 8, 8, 3))?;
    /// let rows = graph.input("rows", Dims::new(&[5, 3])?)?;
    /// assert_eq!(graph.inputs(), [picture, rows]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the shape is too large, or another input has this name.
    pub fn input(&mut self, name: &str, shape: impl Into<Dims>) -> Result<Value> {
        let extents: Vec<Dim> = shape.into().extents().iter().map(|&extent| Dim::Fixed(extent)).collect();
        self.input_of(name, &extents)
    }

    /// Adds an input of f32, some of whose extents may be named dimensions.
    ///
    /// ```
    /// use diptych::{Dim, Graph};
    ///
    /// let mut graph = Graph::new();
    /// graph.dimension("batch", 1)?;
    /// let x = graph.input_of("x", &["batch".into(), Dim::Fixed(3)])?;
    /// assert_eq!(graph.with_dimensions(&[("batch", 8)])?.dims(x)?.extents(), [8, 3]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the dimensions are too large, a name is not one of [`Graph::dimensions`], or another
    /// input has this name.
    pub fn input_of(&mut self, name: &str, extents: &[Dim]) -> Result<Value> {
        self.typed_input(name, DType::F32, extents)
    }

    /// Adds an input whose elements are of another type than f32: token ids, positions, masks.
    ///
    /// ```
    /// use diptych::{DType, Dim, Graph};
    ///
    /// let mut graph = Graph::new();
    /// graph.dimension("length", 12)?;
    /// let ids = graph.typed_input("ids", DType::I64, &[Dim::Fixed(1), "length".into()])?;
    /// assert_eq!(graph.tensor_type(ids)?.dtype, DType::I64);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Graph::input_of`].
    pub fn typed_input(&mut self, name: &str, dtype: DType, extents: &[Dim]) -> Result<Value> {
        if self.inputs.iter().any(|&input| self.values[input.index].name == name) {
            return Err(Error::input(name, "two inputs of this name", "distinct names"));
        }
        let numbers = extents.iter().map(|dim| self.extent(name, dim)).collect::<Result<Vec<_>>>()?;
        let dims = Dims::new(&numbers).map_err(|error| error.at_node(name))?;
        let value = self.value(name, dims, dtype, Origin::Input(extents.to_vec()));
        self.inputs.push(value);
        Ok(value)
    }

    /// The extents of an input as it was declared.
    #[doc(hidden)]
    pub fn declared(&self, input: Value) -> Result<&[Dim]> {
        match &self.info(input)?.origin {
            Origin::Input(declared) => Ok(declared),
            Origin::Constant(_) | Origin::State | Origin::Node(_) => Ok(&[]),
        }
    }

    fn extent(&self, input: &str, dim: &Dim) -> Result<usize> {
        dim.resolved(&self.dimensions).ok().flatten().ok_or_else(|| {
            let names: Vec<&String> = self.dimensions.keys().collect();
            Error::input(
                format!("input {input:?}"),
                format!("extent {dim}"),
                format!("a number or one of the dimensions {names:?}"),
            )
        })
    }

    /// Adds a constant, which nodes read like any other value.
    ///
    /// ```
    /// use diptych::{Function, Graph, HostTensor, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 8, 8, 2))?;
    /// let scale = graph.constant("scale", HostTensor::vector(vec![0.5, 2.0])?);
    /// let y = graph.elementwise("y", Function::Mul, &[x.into(), scale.into()])?;
    /// assert_eq!(graph.shape(y)?, Shape::nhwc(1, 8, 8, 2));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn constant(&mut self, name: &str, tensor: HostTensor) -> Value {
        self.value(name, tensor.dims(), tensor.dtype(), Origin::Constant(tensor))
    }

    /// Marks a value as an output. Outputs are returned in the order they were marked.
    ///
    /// ```
    /// use diptych::{Graph, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 8, 8, 2))?;
    /// graph.output(x)?;
    /// assert_eq!(graph.outputs(), [x]);
    /// assert!(graph.output(x).is_err()); // each value once
    /// # Ok::<(), diptych::Error>(())
    /// ```
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

    /// Has the outputs `outputs` and no others, in their order, each once.
    ///
    /// # Errors
    /// If a value is of another graph, or there twice. The outputs are as before then.
    #[doc(hidden)]
    pub fn set_outputs(&mut self, outputs: Vec<Value>) -> Result<()> {
        let before = std::mem::take(&mut self.outputs);
        let all = outputs.into_iter().try_for_each(|output| self.output(output));
        if all.is_err() {
            self.outputs = before;
        }
        all
    }

    /// Adds a node that applies `operator` to `inputs`, each as the operand named with it, and returns what
    /// it writes. The methods named after ops are short for this. The sum of two values is [`Graph::plus`].
    ///
    /// ```
    /// use diptych::{Graph, Operand, Pool, Pooling, Shape};
    /// use std::sync::Arc;
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 8, 8, 2))?;
    /// let y = graph.add("half", Arc::new(Pool::new(Pooling::Max, [2, 2])), &[(Operand::Src, x)])?;
    /// assert_eq!(graph.shape(y[0])?, Shape::nhwc(1, 4, 4, 2));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an input is missing, not wanted, of another graph, or of a shape that does not fit; the error
    /// names the node. The graph is then as it was.
    pub fn add(
        &mut self,
        name: &str,
        operator: Arc<dyn Operator>,
        inputs: &[(Operand, Value)],
    ) -> Result<Vec<Value>> {
        let cast = self.cast_operands(&*operator, inputs).map_err(|error| error.at_node(name))?;
        let inputs = cast.as_deref().unwrap_or(inputs);
        let checked = self.check(&*operator, inputs).map_err(|error| error.at_node(name))?;
        let node = self.nodes.len();
        let named = |index: usize| if index == 0 { name.to_owned() } else { format!("{name}:{index}") };
        let outputs: Vec<Value> = checked
            .into_iter()
            .enumerate()
            .map(|(index, (dims, dtype))| self.value(&named(index), dims, dtype, Origin::Node(node)))
            .collect();
        self.nodes.push(Node {
            name: name.to_owned(),
            operator,
            inputs: inputs.to_vec(),
            outputs: outputs.clone(),
        });
        Ok(outputs)
    }

    /// The dimensions of the outputs, if everything fits.
    fn check(&self, operator: &dyn Operator, inputs: &[(Operand, Value)]) -> Result<Vec<(Dims, DType)>> {
        let arguments = self.arguments(inputs)?;
        let op = operator.name();
        for (index, argument) in arguments.iter().enumerate() {
            if arguments[..index].iter().any(|earlier| earlier.operand == argument.operand) {
                return Err(Error::shape(
                    op,
                    format!("{} twice", argument.operand.name()),
                    "each input once",
                ));
            }
        }
        let given = self.given(&arguments);
        match operator.lower(given, Precision::F32)? {
            Lowered::View(view) => {
                let shown = arguments.first().map_or(DType::F32, |argument| argument.dtype);
                Ok(vec![(view.dims, shown)])
            }
            Lowered::Op(lowered) => {
                let read = inputs.iter().filter(|(operand, _)| operator.like() != Some(*operand));
                self.check_operands(&*lowered, &read.copied().collect::<Vec<_>>())?;
                let dims = operator.outputs(given, &*lowered);
                self.without_elements(operator, &arguments, &dims)?;
                Ok(dims.into_iter().zip(operator.types(given, &*lowered)).collect())
            }
        }
    }

    /// Whether the inputs are what the op reads.
    fn check_operands(&self, op: &dyn Op, inputs: &[(Operand, Value)]) -> Result<()> {
        let operands = op.operands();
        for (operand, value) in inputs {
            let (name, info) = (operand.name(), self.info(*value)?);
            let wanted = operands.iter().find(|wanted| wanted.operand == *operand);
            let Some(wanted) = wanted.filter(|wanted| !wanted.role.writes()) else {
                let reads = operands.iter().filter(|wanted| !wanted.role.writes());
                let reads: Vec<&str> = reads.map(|wanted| wanted.operand.name()).collect();
                return Err(Error::shape(op.name(), format!("an input {name}"), format!("only {reads:?}")));
            };
            // A batch of matrices may have rank 3.
            let same = info.dims.shape() == wanted.shape || info.dims.matrices() == Some(wanted.shape);
            if !same {
                let found = format!("{name} {}", info.dims);
                return Err(Error::shape(op.name(), found, format!("{name} {}", wanted.shape)));
            }
            if info.dtype.word() != wanted.dtype {
                let found = format!("{name} of {}", info.dtype);
                let wanted = format!("{} (Graph::cast changes types)", wanted.dtype);
                return Err(Error::shape(op.name(), found, wanted));
            }
            if wanted.role == Role::Constant && !matches!(info.origin, Origin::Constant(_)) {
                let found = format!("{name} computed at each run ({:?})", info.name);
                return Err(Error::shape(op.name(), found, format!("a constant {name}")));
            }
        }
        for wanted in operands.iter().filter(|wanted| !wanted.role.writes()) {
            if !inputs.iter().any(|(operand, _)| *operand == wanted.operand) {
                let name = wanted.operand.name();
                return Err(Error::shape(
                    op.name(),
                    format!("no {name}"),
                    format!("{name} {}", wanted.shape),
                ));
            }
        }
        Ok(())
    }

    /// The inputs of a node with their dimensions.
    #[doc(hidden)]
    pub fn arguments(&self, inputs: &[(Operand, Value)]) -> Result<Vec<Argument>> {
        let argument = |&(operand, value): &(Operand, Value)| {
            let info = self.info(value)?;
            Ok(Argument { operand, dims: info.dims, dtype: info.dtype })
        };
        inputs.iter().map(argument).collect()
    }

    /// What `operator` is, for inputs of these dimensions.
    #[doc(hidden)]
    pub fn lower(
        &self,
        operator: &dyn Operator,
        inputs: &[Argument],
        precision: Precision,
    ) -> Result<Lowered> {
        operator.lower(self.given(inputs), precision)
    }

    /// The dimensions and the types of what `operator` writes, which is `op` for these inputs.
    #[doc(hidden)]
    pub fn results(
        &self,
        operator: &dyn Operator,
        inputs: &[Argument],
        op: &dyn Op,
    ) -> (Vec<Dims>, Vec<DType>) {
        let given = self.given(inputs);
        (operator.outputs(given, op), operator.types(given, op))
    }

    /// What an operator is told of `inputs`.
    fn given<'a>(&'a self, inputs: &'a [Argument]) -> Arguments<'a> {
        Arguments { inputs, dimensions: &self.dimensions, narrow: self.narrow }
    }

    /// The graph that a device runs for this one: it keeps integers of 64 bits in 32.
    ///
    /// # Errors
    /// If a constant or the first value of a state does not fit.
    #[doc(hidden)]
    pub fn on_device(&self) -> Result<Cow<'_, Graph>> {
        if self.narrow || self.values.iter().all(|info| info.dtype != DType::I64) {
            return Ok(Cow::Borrowed(self));
        }
        let mut graph = self.clone();
        graph.narrow = true;
        for info in &mut graph.values {
            if let Origin::Constant(tensor) = &mut info.origin {
                *tensor = narrowed(&info.name, tensor)?;
            }
            info.dtype = match info.dtype {
                DType::I64 => DType::I32,
                dtype => dtype,
            };
        }
        for state in &mut graph.states {
            let name = self.info(state.value)?.name.clone();
            state.initial = narrowed(&name, &state.initial)?;
        }
        Ok(Cow::Owned(graph))
    }

    /// The type of a value's elements; `None` of another graph's.
    #[doc(hidden)]
    pub fn dtype(&self, value: Value) -> Option<DType> {
        let found = self.values.get(value.index).filter(|_| value.graph == self.number);
        found.map(|info| info.dtype)
    }

    fn value(&mut self, name: &str, dims: Dims, dtype: DType, origin: Origin) -> Value {
        self.values.push(ValueInfo { name: name.to_owned(), dims, dtype, origin });
        Value { graph: self.number, index: self.values.len() - 1 }
    }

    /// Every value with what is known of it, in the order they were added.
    #[doc(hidden)]
    pub fn all_values(&self) -> impl Iterator<Item = (Value, &ValueInfo)> {
        let value = |index| Value { graph: self.number, index };
        self.values.iter().enumerate().map(move |(index, info)| (value(index), info))
    }

    /// The value of number `place` behind those of the graph: of a network that was made of it.
    #[doc(hidden)]
    pub fn beyond(&self, place: usize) -> Value {
        Value { graph: self.number, index: self.values.len() + place }
    }

    /// The inverse of [`Graph::beyond`], nothing of a value of the graph or of another one.
    #[doc(hidden)]
    pub fn place_beyond(&self, value: Value) -> Option<usize> {
        value.index.checked_sub(self.values.len()).filter(|_| value.graph == self.number)
    }

    #[doc(hidden)]
    pub fn info(&self, value: Value) -> Result<&ValueInfo> {
        let found = self.values.get(value.index).filter(|_| value.graph == self.number);
        found.ok_or_else(|| {
            Error::input(
                "graph value",
                format!("value {} of another graph", value.index),
                format!("one of this graph's {} values", self.values.len()),
            )
        })
    }

    /// Makes the network for `n` samples at once: its inputs and its outputs have `n` times as much along their outermost axis;
    /// those of one number become `n` of them. Constants are shared, not copied. Values keep their indices.
    ///
    /// Each sample has the results that it would have alone, also where the network reshapes values, joins them with
    /// constants, or computes something along the axis of its batch. Where an operator can only take one sample after the
    /// other, as an application's own ([`Custom`](crate::ops::custom::Custom)), the network has a node for each: `NAME.0`, `NAME.1` and so on,
    /// by which options name them.
    ///
    /// Random numbers are the exception: those of [`Graph::random`] are the same for all samples, and those of
    /// [`Graph::random_like`] differ from sample to sample, and from what a sample has alone.
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
    /// If `n` is 0, a value would become too large, or a state would depend on the samples.
    pub fn with_batch(&self, n: usize) -> Result<Graph> {
        match n {
            0 => Err(Error::input("batch", "0", "at least 1")),
            1 => self.again(self.dimensions.clone()),
            _ => self.for_samples(n),
        }
    }

    /// The named dimension that is the outermost of every input.
    #[cfg(not(target_family = "wasm"))]
    #[doc(hidden)]
    pub fn outermost_dimension(&self) -> Option<&str> {
        let outermost = |&input: &Value| match &self.values.get(input.index)?.origin {
            Origin::Input(declared) => match declared.first()? {
                Dim::Named(name) => Some(name.as_str()),
                _ => None,
            },
            _ => None,
        };
        let first = outermost(self.inputs.first()?)?;
        self.inputs.iter().all(|input| outermost(input) == Some(first)).then_some(first)
    }

    /// The network with other extents of its named dimensions. Constants are shared, not copied.
    /// Values keep their indices.
    ///
    /// ```
    /// use diptych::{Dim, Graph};
    ///
    /// let mut graph = Graph::new();
    /// graph.dimension("batch", 1)?;
    /// let x = graph.input_of("x", &["batch".into(), Dim::Fixed(3)])?;
    /// let eight = graph.with_dimensions(&[("batch", 8)])?;
    /// assert_eq!((graph.dims(x)?.extents()[0], eight.dims(x)?.extents()[0]), (1, 8));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a name is not one of [`Graph::dimensions`], or shapes no longer fit.
    pub fn with_dimensions(&self, extents: &[(&str, usize)]) -> Result<Graph> {
        let mut dimensions = self.dimensions.clone();
        for &(name, extent) in extents {
            let wanted = format!("one of {:?}", self.dimensions.keys().collect::<Vec<_>>());
            let known = dimensions.get_mut(name);
            *known.ok_or_else(|| Error::input("dimension", format!("{name:?}"), wanted))? = extent;
        }
        self.again(dimensions)
    }

    /// Makes the graph anew with other dimensions, and checks every shape.
    fn again(&self, dimensions: BTreeMap<String, usize>) -> Result<Graph> {
        let mut graph = Graph {
            number: self.number,
            values: self.values.clone(),
            dimensions,
            narrow: self.narrow,
            draws: self.draws.clone(),
            // Of the same constants, which passes make others of.
            derived: Arc::clone(&self.derived),
            dequantized: self.dequantized,
            ..Graph::default()
        };
        for &input in &self.inputs {
            let (name, declared) = (self.name(input)?, self.declared(input)?);
            let extents = declared.iter().map(|dim| graph.extent(name, dim)).collect::<Result<Vec<_>>>()?;
            graph.values[input.index].dims = Dims::new(&extents).map_err(|error| error.at_node(name))?;
        }
        graph.inputs.clone_from(&self.inputs);
        for node in &self.nodes {
            let checked = graph.check(&*node.operator, &node.inputs);
            let checked = checked.map_err(|error| error.at_node(&node.name))?;
            for (value, (dims, _)) in node.outputs.iter().zip(checked) {
                graph.values[value.index].dims = dims;
            }
            graph.nodes.push(node.clone());
        }
        graph.outputs.clone_from(&self.outputs);
        graph.states = self.states.iter().map(|state| State { next: None, ..state.clone() }).collect();
        graph.updates_again(self)?;
        Ok(graph)
    }

    /// The shape of a value as a feature map (see [`Dims::shape`]).
    ///
    /// ```
    /// use diptych::{Graph, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 8, 8, 2))?;
    /// assert_eq!(graph.shape(x)?, Shape::nhwc(1, 8, 8, 2));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the value is not of this graph.
    pub fn shape(&self, value: Value) -> Result<Shape> {
        self.info(value).map(|info| info.dims.shape())
    }

    /// The dimensions of a value.
    ///
    /// ```
    /// use diptych::{Graph, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 8, 8, 2))?;
    /// assert_eq!(graph.dims(x)?.extents(), [1, 8, 8, 2]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the value is not of this graph.
    pub fn dims(&self, value: Value) -> Result<Dims> {
        self.info(value).map(|info| info.dims)
    }

    /// The element type and the dimensions of a value.
    ///
    /// ```
    /// use diptych::{DType, Graph, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 8, 8, 2))?;
    /// assert_eq!(graph.tensor_type(x)?.dtype, DType::F32);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the value is not of this graph.
    pub fn tensor_type(&self, value: Value) -> Result<TensorType> {
        let info = self.info(value)?;
        Ok(TensorType { dtype: info.dtype, dims: info.dims })
    }

    /// The name of a value: of the input or constant, or of the node that writes it.
    ///
    /// ```
    /// use diptych::{Graph, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 8, 8, 2))?;
    /// assert_eq!(graph.name(x)?, "x");
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the value is not of this graph.
    pub fn name(&self, value: Value) -> Result<&str> {
        self.info(value).map(|info| info.name.as_str())
    }

    /// The tensor of a constant; `None` for other values.
    ///
    /// ```
    /// use diptych::{Graph, HostTensor};
    ///
    /// let mut graph = Graph::new();
    /// let bias = graph.constant("bias", HostTensor::vector(vec![0.5])?);
    /// let x = graph.input("x", HostTensor::vector(vec![0.0])?.dims())?;
    /// assert!(graph.tensor(bias)?.is_some() && graph.tensor(x)?.is_none());
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the value is not of this graph.
    pub fn tensor(&self, value: Value) -> Result<Option<&HostTensor>> {
        Ok(match &self.info(value)?.origin {
            Origin::Constant(tensor) => Some(tensor),
            Origin::Input(_) | Origin::State | Origin::Node(_) => None,
        })
    }

    /// Says that a value's elements are of another type that has the same words: that numbers in f32 are integers of
    /// at most 16 bits, booleans or halves. They must be.
    #[doc(hidden)]
    pub fn retype(&mut self, value: Value, dtype: DType) -> Result<()> {
        let found = self.info(value)?.dtype;
        if found.word() != dtype.word() {
            return Err(Error::Internal(format!("value {} of {found} as {dtype}", value.index)));
        }
        self.values[value.index].dtype = dtype;
        Ok(())
    }

    /// Gives a value another name, and the node that writes it first.
    #[doc(hidden)]
    pub fn rename(&mut self, value: Value, name: &str) -> Result<()> {
        let origin = self.info(value)?.origin.clone();
        self.values[value.index].name = name.to_owned();
        if let Origin::Node(node) = origin
            && let Some(node) = self.nodes.get_mut(node)
            && node.outputs.first() == Some(&value)
        {
            node.name = name.to_owned();
        }
        Ok(())
    }

    /// The inputs, in the order they were added.
    ///
    /// ```
    /// use diptych::{Graph, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 8, 8, 2))?;
    /// assert_eq!(graph.inputs(), [x]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn inputs(&self) -> &[Value] {
        &self.inputs
    }

    /// The outputs, in the order they were marked.
    ///
    /// ```
    /// use diptych::{Graph, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 8, 8, 2))?;
    /// graph.output(x)?;
    /// assert_eq!(graph.outputs(), [x]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn outputs(&self) -> &[Value] {
        &self.outputs
    }

    /// The nodes, in order of execution.
    ///
    /// ```
    /// use diptych::{Graph, Reduction, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 8, 8, 2))?;
    /// graph.reduce("mean", x, Reduction::Mean, &[1, 2], false)?;
    /// assert_eq!(graph.nodes()[0].name(), "mean");
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The op of a node for the graph's shapes; `None` for one that only shows elements of its input.
    ///
    /// # Errors
    /// If the node is of another graph.
    #[doc(hidden)]
    pub fn op(&self, node: &Node, precision: Precision) -> Result<Option<Arc<dyn Op>>> {
        let arguments = self.arguments(&node.inputs)?;
        Ok(match self.lower(&*node.operator, &arguments, precision)? {
            Lowered::Op(op) => Some(op),
            Lowered::View(_) => None,
        })
    }

    /// Floating-point operations of one run.
    ///
    /// ```
    /// use diptych::{Extras, Graph, HostTensor, Pointwise, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 8, 8, 16))?;
    /// let weights = HostTensor::new(Shape::nhwc(4, 1, 1, 16), vec![0.1; 64])?;
    /// graph.pointwise("head", x, weights, Extras::default(), Pointwise::default())?;
    /// assert_eq!(graph.flops()?, 2 * 64 * 16 * 4); // a product and a sum for each weight and pixel
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a node's shapes are inconsistent, which insertion rules out.
    pub fn flops(&self) -> Result<u64> {
        self.nodes
            .iter()
            .try_fold(0u64, |sum, node| Ok(sum + self.op(node, Precision::F32)?.map_or(0, |op| op.flops())))
    }
}

#[cfg(test)]
mod tests;
