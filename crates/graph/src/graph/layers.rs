//! Common layers by the names that other frameworks give them: each method adds nodes that other methods add as well.

use super::{Expression, Extras, Graph, Right, Term, Value};
use crate::emit::{Bits, Operand};
use crate::error::{Error, Result};
use crate::host::HostTensor;
use crate::ops::elementwise::Function;
use crate::ops::gather::Gather;
use crate::ops::gemm::Gemm;
use crate::ops::normalize::Normalize;
use std::sync::Arc;

impl Graph {
    /// Adds `max(x, 0)`: [`Graph::elementwise`] with [`Function::Relu`].
    ///
    /// ```
    /// use diptych::{Backend, Context, Dims, Graph, HostTensor, Session, SessionOptions};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[3])?)?;
    /// let y = graph.relu("y", x)?;
    /// graph.output(y)?;
    /// let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::new())?;
    /// let x = HostTensor::new(Dims::new(&[3])?, vec![-1.0, 0.0, 7.0])?;
    /// assert_eq!(*session.run(&[("x", &x)])?[0].to_f32(), [0.0, 0.0, 7.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the value is of another graph.
    pub fn relu(&mut self, name: &str, x: Value) -> Result<Value> {
        self.elementwise(name, Function::Relu, &[x.into()])
    }

    /// Adds `min(max(x, 0), 6)`: [`Graph::elementwise`] with [`Function::Relu6`].
    ///
    /// ```
    /// use diptych::{Dims, Graph};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[3])?)?;
    /// let y = graph.relu6("y", x)?;
    /// assert_eq!(graph.dims(y)?.extents(), [3]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the value is of another graph, or of integers.
    pub fn relu6(&mut self, name: &str, x: Value) -> Result<Value> {
        self.elementwise(name, Function::Relu6, &[x.into()])
    }

    /// Adds `1 / (1 + exp(-x))`: [`Graph::elementwise`] with [`Function::Sigmoid`].
    ///
    /// ```
    /// use diptych::{Dims, Graph};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[3])?)?;
    /// let y = graph.sigmoid("y", x)?;
    /// assert_eq!(graph.dims(y)?.extents(), [3]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the value is of another graph, or of integers.
    pub fn sigmoid(&mut self, name: &str, x: Value) -> Result<Value> {
        self.elementwise(name, Function::Sigmoid, &[x.into()])
    }

    /// Adds the hyperbolic tangent: [`Graph::elementwise`] with [`Function::Tanh`].
    ///
    /// ```
    /// use diptych::{Dims, Graph};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[3])?)?;
    /// let y = graph.tanh("y", x)?;
    /// assert_eq!(graph.dims(y)?.extents(), [3]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the value is of another graph, or of integers.
    pub fn tanh(&mut self, name: &str, x: Value) -> Result<Value> {
        self.elementwise(name, Function::Tanh, &[x.into()])
    }

    /// Adds `x (1 + erf(x / sqrt(2))) / 2`: [`Graph::elementwise`] with [`Function::Gelu`]. The approximation by a tangent is
    /// [`Function::GeluTanh`].
    ///
    /// ```
    /// use diptych::{Dims, Graph};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[3])?)?;
    /// let y = graph.gelu("y", x)?;
    /// assert_eq!(graph.dims(y)?.extents(), [3]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the value is of another graph, or of integers.
    pub fn gelu(&mut self, name: &str, x: Value) -> Result<Value> {
        self.elementwise(name, Function::Gelu, &[x.into()])
    }

    /// Adds `x / (1 + exp(-x))` as the product of `x` and its sigmoid, which is a node of its own, `{name}.0`. Sessions compute
    /// both in one kernel.
    ///
    /// ```
    /// use diptych::{Dims, Graph};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[3])?)?;
    /// let y = graph.silu("y", x)?;
    /// assert_eq!(graph.dims(y)?.extents(), [3]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the value is of another graph, or of integers.
    pub fn silu(&mut self, name: &str, x: Value) -> Result<Value> {
        self.expression(name, x * Expression::from(x).apply(Function::Sigmoid))
    }

    /// Adds `a + b`: [`Graph::elementwise`] with [`Function::Add`]. Either may be a number. [`Graph::add`] is the method that
    /// adds a node of any operator, and [`Graph::expression`] takes whole formulas.
    ///
    /// ```
    /// use diptych::{Dims, Graph};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[2, 3])?)?;
    /// let row = graph.input("row", Dims::new(&[3])?)?;
    /// let sums = graph.plus("sums", x, row)?;
    /// let y = graph.plus("y", sums, 1.0)?;
    /// assert_eq!(graph.dims(y)?.extents(), [2, 3]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the shapes or types do not fit, or both are numbers.
    pub fn plus(&mut self, name: &str, a: impl Into<Term>, b: impl Into<Term>) -> Result<Value> {
        self.elementwise(name, Function::Add, &[a.into(), b.into()])
    }

    /// Adds `a - b`: [`Graph::elementwise`] with [`Function::Sub`]. Either may be a number.
    ///
    /// ```
    /// use diptych::{Dims, Graph};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[3])?)?;
    /// let y = graph.sub("y", 1.0, x)?;
    /// assert_eq!(graph.dims(y)?.extents(), [3]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the shapes or types do not fit, or both are numbers.
    pub fn sub(&mut self, name: &str, a: impl Into<Term>, b: impl Into<Term>) -> Result<Value> {
        self.elementwise(name, Function::Sub, &[a.into(), b.into()])
    }

    /// Adds `a b`, element by element: [`Graph::elementwise`] with [`Function::Mul`]. Either may be a number.
    /// [`Graph::matmul`] multiplies matrices.
    ///
    /// ```
    /// use diptych::{Dims, Graph};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[3])?)?;
    /// let y = graph.mul("y", x, 2.0)?;
    /// assert_eq!(graph.dims(y)?.extents(), [3]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the shapes or types do not fit, or both are numbers.
    pub fn mul(&mut self, name: &str, a: impl Into<Term>, b: impl Into<Term>) -> Result<Value> {
        self.elementwise(name, Function::Mul, &[a.into(), b.into()])
    }

    /// Adds `a / b`, element by element: [`Graph::elementwise`] with [`Function::Div`]. Either may be a number.
    ///
    /// ```
    /// use diptych::{Dims, Graph};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[3])?)?;
    /// let y = graph.div("y", x, 255.0)?;
    /// assert_eq!(graph.dims(y)?.extents(), [3]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the shapes or types do not fit, or both are numbers.
    pub fn div(&mut self, name: &str, a: impl Into<Term>, b: impl Into<Term>) -> Result<Value> {
        self.elementwise(name, Function::Div, &[a.into(), b.into()])
    }

    /// Adds the matrix product `a b` of two values: [`Graph::gemm`] with the default options. Both are `rows columns` or
    /// `batch rows columns`; a batch of left matrices may share one right matrix.
    ///
    /// ```
    /// use diptych::{Dims, Graph};
    ///
    /// let mut graph = Graph::new();
    /// let a = graph.input("a", Dims::new(&[2, 5, 3])?)?;
    /// let b = graph.input("b", Dims::new(&[2, 3, 4])?)?;
    /// let c = graph.matmul("c", a, b)?;
    /// assert_eq!(graph.dims(c)?.extents(), [2, 5, 4]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the shapes do not fit each other; the error names the node.
    pub fn matmul(&mut self, name: &str, a: Value, b: Value) -> Result<Value> {
        self.gemm(name, a, Right::Value(b), Extras::default(), Gemm::default())
    }

    /// Adds a dense layer, `x W^T + bias`: [`Graph::gemm`] with the constant `weights` transposed. `x` is `rows in` or
    /// `batch rows in`, `weights` is `out in`, the order in which PyTorch stores them, and `bias` has `out` elements.
    ///
    /// ```
    /// use diptych::{Backend, Context, Dims, Graph, HostTensor, Session, SessionOptions};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[1, 3])?)?;
    /// let weights = HostTensor::new(Dims::new(&[2, 3])?, vec![1.0, 0.0, 0.0, 0.0, 1.0, 1.0])?;
    /// let bias = HostTensor::vector(vec![0.5, -0.5])?;
    /// let y = graph.linear("dense", x, weights, Some(bias))?;
    /// graph.output(y)?;
    /// let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::new())?;
    /// let x = HostTensor::new(Dims::new(&[1, 3])?, vec![1.0, 2.0, 3.0])?;
    /// assert_eq!(*session.run(&[("x", &x)])?[0].to_f32(), [1.5, 4.5]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the shapes do not fit each other; the error names the node.
    pub fn linear(
        &mut self,
        name: &str,
        x: Value,
        weights: HostTensor,
        bias: Option<HostTensor>,
    ) -> Result<Value> {
        let options = Gemm { transpose_b: true, ..Gemm::default() };
        self.gemm(name, x, Right::Constant(weights), Extras { bias, ..Extras::default() }, options)
    }

    /// Adds a layer normalisation over the last axis, `(x - mean) / sqrt(variance + epsilon) scale + bias`:
    /// [`Graph::normalize`] over that axis. `scale` and `bias` have one element for each place along it.
    ///
    /// ```
    /// use diptych::{Dims, Graph, HostTensor};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[7, 4])?)?;
    /// let scale = HostTensor::vector(vec![1.0; 4])?;
    /// let y = graph.layer_norm("norm", x, Some(scale), None, 1e-5)?;
    /// assert_eq!(graph.dims(y)?.extents(), [7, 4]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is not one value for each place along the axis, or `epsilon` is not finite and larger than 0.
    pub fn layer_norm(
        &mut self,
        name: &str,
        x: Value,
        scale: Option<HostTensor>,
        bias: Option<HostTensor>,
        epsilon: f32,
    ) -> Result<Value> {
        let options = Normalize { axes: vec![-1], epsilon: Bits(epsilon), centred: true };
        self.normalize(name, x, options, scale, bias)
    }

    /// Adds the rows of `table` that `ids` name: [`Graph::gather`] along the first axis of a constant. `table` is
    /// `ids features`, and the result has the axes of `ids` and then the features. Where an id is not one of the table, the
    /// row is of zeros.
    ///
    /// ```
    /// use diptych::{Backend, Context, DType, Dim, Dims, Graph, HostTensor, Session, SessionOptions};
    ///
    /// let mut graph = Graph::new();
    /// let ids = graph.typed_input("ids", DType::I64, &[Dim::Fixed(2)])?;
    /// let table = HostTensor::new(Dims::new(&[3, 2])?, vec![0.0, 0.5, 1.0, 1.5, 2.0, 2.5])?;
    /// let rows = graph.embedding("rows", table, ids)?;
    /// graph.output(rows)?;
    /// let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::new())?;
    /// let ids = HostTensor::of(Dims::new(&[2])?, vec![2_i64, 0])?;
    /// assert_eq!(*session.run(&[("ids", &ids)])?[0].to_f32(), [2.0, 2.5, 0.0, 0.5]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `table` is not of rank 2, or the result has too many axes.
    pub fn embedding(&mut self, name: &str, table: HostTensor, ids: Value) -> Result<Value> {
        if table.dims().rank() != 2 {
            let (found, wanted) = (format!("a table of {}", table.dims()), "rank 2: ids and features");
            return Err(Error::shape("gather", found, wanted).at_node(name));
        }
        let operator = Arc::new(Gather { axis: 0, batch_dims: 0 });
        self.with_constants(name, operator, (Operand::Arg(0), ids), (Operand::Src, table), Extras::default())
    }
}
