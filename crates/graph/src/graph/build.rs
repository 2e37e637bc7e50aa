//! The methods that add nodes of one op each.

use super::{Graph, Value};
use crate::dims::Dim;
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::host::HostTensor;
use crate::ops::conv2d::Conv2d;
use crate::ops::custom::Custom;
use crate::ops::depthwise::Depthwise;
use crate::ops::gemm::Gemm;
use crate::ops::operator::Operator;
use crate::ops::pointwise::Pointwise;
use crate::ops::pool::Pool;
use crate::ops::view::{Reshape, Slice};
use crate::shape::{Border, Shape};
use std::sync::Arc;

/// What a node may have beside its input and weights.
#[derive(Debug, Clone, Default)]
pub struct Extras {
    /// One value per output channel, added to the sum.
    pub bias: Option<HostTensor>,
    /// One PReLU slope per output channel; wanted by [`Activation::PRelu`](crate::emit::epilogue::Activation::PRelu) and only by it.
    pub slope: Option<HostTensor>,
    /// A value of the output's shape, added after the activation.
    pub residual: Option<Value>,
}

impl Extras {
    /// Only a bias.
    ///
    /// ```
    /// use diptych::{Extras, HostTensor};
    ///
    /// let extras = Extras::bias(HostTensor::vector(vec![0.5, -0.5])?);
    /// assert!(extras.bias.is_some() && extras.residual.is_none());
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn bias(bias: HostTensor) -> Self {
        Extras { bias: Some(bias), ..Default::default() }
    }
}

/// The right operand of a matrix product in a graph.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Right {
    /// A constant matrix, uploaded once.
    Constant(HostTensor),
    /// A value computed or given at each run.
    Value(Value),
}

/// The weights and options of the depthwise convolution that a convolution is whose groups have one channel each.
fn by_channel(weights: &HostTensor, options: &Conv2d) -> Option<(Result<HostTensor>, Depthwise)> {
    let Conv2d { stride, dilation, padding, border, groups, activation } = *options;
    let Shape { n: outputs, h, w, c } = weights.shape();
    if groups < 2 || c != 1 || !outputs.is_multiple_of(groups) || border != Border::Zeros {
        return None;
    }
    let values = weights.to_nhwc();
    let taps = h * w;
    let own = (0..taps).flat_map(|tap| values.iter().skip(tap).step_by(taps).copied()).collect::<Vec<f32>>();
    let weights = HostTensor::new(Shape::nhwc(1, h, w, outputs), own);
    Some((weights, Depthwise { stride, dilation, padding, activation }))
}

impl Graph {
    /// Adds a 2D convolution; `weights` is `oc kh kw c/groups`. One whose groups have one input channel each is added
    /// as the depthwise convolution that it is.
    ///
    /// ```
    /// use diptych::{Activation, Conv2d, Extras, Graph, HostTensor, Padding, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("image", Shape::nhwc(1, 8, 8, 3))?;
    /// let weights = HostTensor::new(Shape::nhwc(4, 3, 3, 3), vec![0.1; 108])?;
    /// let options = Conv2d {
    ///     stride: [2, 2],
    ///     padding: Padding::Same,
    ///     activation: Activation::Relu,
    ///     ..Default::default()
    /// };
    /// let y = graph.conv2d("stem", x, weights, Extras::default(), options)?;
    /// assert_eq!(graph.shape(y)?, Shape::nhwc(1, 4, 4, 4));
    /// # Ok::<(), diptych::Error>(())
    /// ```
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
        let channels = self.dims(x)?.extents().last().copied();
        if let Some((weights, options)) =
            by_channel(&weights, &options).filter(|_| channels == Some(options.groups))
        {
            return self.depthwise(name, x, weights?, extras, options);
        }
        self.with_constants(name, Arc::new(options), (Operand::Src, x), (Operand::Weights, weights), extras)
    }

    /// Adds a depthwise convolution; `weights` is `1 kh kw c*multiplier`.
    ///
    /// ```
    /// use diptych::{Depthwise, Extras, Graph, HostTensor, Padding, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 8, 8, 4))?;
    /// let weights = HostTensor::new(Shape::nhwc(1, 3, 3, 4), vec![0.1; 36])?;
    /// let options = Depthwise { padding: Padding::Same, ..Default::default() };
    /// let y = graph.depthwise("y", x, weights, Extras::default(), options)?;
    /// assert_eq!(graph.shape(y)?, Shape::nhwc(1, 8, 8, 4));
    /// # Ok::<(), diptych::Error>(())
    /// ```
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
        self.with_constants(name, Arc::new(options), (Operand::Src, x), (Operand::Weights, weights), extras)
    }

    /// Adds a 1x1 convolution; `weights` is `oc 1 1 c`.
    ///
    /// ```
    /// use diptych::{Extras, Graph, HostTensor, Pointwise, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 8, 8, 16))?;
    /// let weights = HostTensor::new(Shape::nhwc(4, 1, 1, 16), vec![0.1; 64])?;
    /// // The residual is added by the same kernel.
    /// let residual = graph.input("residual", Shape::nhwc(1, 8, 8, 4))?;
    /// let extras = Extras { residual: Some(residual), ..Default::default() };
    /// let y = graph.pointwise("head", x, weights, extras, Pointwise::default())?;
    /// assert_eq!(graph.shape(y)?, Shape::nhwc(1, 8, 8, 4));
    /// # Ok::<(), diptych::Error>(())
    /// ```
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
        self.with_constants(name, Arc::new(options), (Operand::Src, x), (Operand::Weights, weights), extras)
    }

    /// Adds a matrix product of `x` (`rows columns`, `batch rows columns`, or `batch 1 rows columns`; see
    /// [`Shape::matrix`](crate::shape::Shape::matrix)) and `right`, both packed. A batch of left matrices may share one right
    /// matrix. The result has the rank of `x`.
    ///
    /// ```
    /// use diptych::{Dims, Extras, Gemm, Graph, HostTensor, Right};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[5, 3])?)?;
    /// let weights = HostTensor::matrix(1, 3, 2, vec![1.0; 6])?;
    /// let y = graph.gemm("dense", x, Right::Constant(weights), Extras::default(), Gemm::default())?;
    /// assert_eq!(graph.dims(y)?.extents(), [5, 2]);
    /// // A product of two values: queries and keys, say.
    /// let options = Gemm { transpose_b: true, ..Default::default() };
    /// let scores = graph.gemm("scores", x, Right::Value(x), Extras::default(), options)?;
    /// assert_eq!(graph.dims(scores)?.extents(), [5, 5]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
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
        match right {
            Right::Constant(tensor) => {
                self.with_constants(name, Arc::new(options), (Operand::A, x), (Operand::B, tensor), extras)
            }
            Right::Value(value) => {
                self.with_extras(name, Arc::new(options), vec![(Operand::A, x), (Operand::B, value)], extras)
            }
        }
    }

    /// Adds a maximum or average over windows of each channel.
    ///
    /// ```
    /// use diptych::{Graph, Pool, Pooling, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 8, 8, 16))?;
    /// let y = graph.pool("half", x, Pool::new(Pooling::Max, [2, 2]))?;
    /// assert_eq!(graph.shape(y)?, Shape::nhwc(1, 4, 4, 16));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a window does not fit the input.
    pub fn pool(&mut self, name: &str, x: Value, options: Pool) -> Result<Value> {
        self.with_extras(name, Arc::new(options), vec![(Operand::Src, x)], Extras::default())
    }

    /// `x` in other dimensions, its elements in the same order: no kernel runs for it. At most one extent
    /// is [`Dim::Rest`].
    ///
    /// ```
    /// use diptych::{Dim, Graph, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 7, 7, 1024))?;
    /// let rows = graph.reshape("rows", x, &[49.into(), Dim::Rest])?;
    /// assert_eq!(graph.dims(rows)?.extents(), [49, 1024]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the number of elements is another.
    pub fn reshape(&mut self, name: &str, x: Value, target: &[Dim]) -> Result<Value> {
        let operator = Arc::new(Reshape { target: target.to_vec() });
        self.with_extras(name, operator, vec![(Operand::Src, x)], Extras::default())
    }

    /// `x[begin..end]` along `axis`; every axis before it has one element. A kernel runs only where a device
    /// cannot bind what lies there: it copies.
    ///
    /// ```
    /// use diptych::{Dims, Graph};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[1, 10, 4])?)?;
    /// let y = graph.slice("middle", x, 1, 2..6)?;
    /// assert_eq!(graph.dims(y)?.extents(), [1, 4, 4]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the range ends before it begins or beyond the axis, or an axis before it has more than one element.
    pub fn slice(
        &mut self,
        name: &str,
        x: Value,
        axis: usize,
        range: std::ops::Range<usize>,
    ) -> Result<Value> {
        let operator = Arc::new(Slice { axis, begin: range.start, end: range.end });
        self.with_extras(name, operator, vec![(Operand::Src, x)], Extras::default())
    }

    /// Adds a compute shader of the application's own, which reads `inputs` in the order of its bindings,
    /// and returns its outputs in that order.
    ///
    /// ```
    /// use diptych::{Custom, Graph, Shape};
    ///
    /// let invert = Custom::new("invert", "
    ///     @group(0) @binding(0) var<storage, read> x: array<f32>;
    ///     @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    ///     @compute @workgroup_size(64)
    ///     fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    ///         if id.x < arrayLength(&x) { y[id.x] = 1.0 - x[id.x]; }
    ///     }
    /// ")?;
    /// let mut graph = Graph::new();
    /// let x = graph.input("picture", Shape::nhwc(1, 4, 4, 1))?;
    /// let outputs = graph.custom("negative", &invert, &[x])?;
    /// assert_eq!(graph.shape(outputs[0])?, Shape::nhwc(1, 4, 4, 1));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the shader has another number of inputs or outputs, its uniform other members, or a tensor is
    /// not of whole vec4s where it is read so; the error names the node.
    pub fn custom(&mut self, name: &str, kernel: &Custom, inputs: &[Value]) -> Result<Vec<Value>> {
        let operand = |(index, &value): (usize, &Value)| (Operand::Input(index.min(255) as u8), value);
        let inputs: Vec<(Operand, Value)> = inputs.iter().enumerate().map(operand).collect();
        self.add(name, Arc::new(kernel.clone()), &inputs)
    }

    pub(super) fn with_constants(
        &mut self,
        name: &str,
        operator: Arc<dyn Operator>,
        x: (Operand, Value),
        (operand, tensor): (Operand, HostTensor),
        extras: Extras,
    ) -> Result<Value> {
        let before = self.values.len();
        let constant = self.constant(&format!("{name}.{}", operand.name()), tensor);
        let added = self.with_extras(name, operator, vec![x, (operand, constant)], extras);
        if added.is_err() {
            self.values.truncate(before);
        }
        added
    }

    /// Adds a node of one output; what is added with it is taken back if it does not fit.
    pub(super) fn with_extras(
        &mut self,
        name: &str,
        operator: Arc<dyn Operator>,
        mut inputs: Vec<(Operand, Value)>,
        extras: Extras,
    ) -> Result<Value> {
        let before = self.values.len();
        for (operand, tensor) in [(Operand::Bias, extras.bias), (Operand::Slope, extras.slope)] {
            if let Some(tensor) = tensor {
                let constant = self.constant(&format!("{name}.{}", operand.name()), tensor);
                inputs.push((operand, constant));
            }
        }
        inputs.extend(extras.residual.map(|residual| (Operand::Residual, residual)));
        match self.add(name, operator, &inputs) {
            Ok(outputs) => match outputs[..] {
                [output] => Ok(output),
                _ => Err(Error::Internal(format!("node {name:?} has {} outputs", outputs.len()))),
            },
            Err(error) => {
                self.values.truncate(before);
                Err(error)
            }
        }
    }
}
