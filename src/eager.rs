//! Single ops on host tensors: a network of one node, run once.

use crate::context::Context;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::graph::{Extras, Graph, Value};
use crate::host::HostTensor;
use crate::ops::conv2d::Conv2d;
use crate::ops::depthwise::Depthwise;
use crate::ops::gemm::GemmOp;
use crate::ops::pointwise::Pointwise;
use crate::options::SessionOptions;
use crate::product::{MatrixProduct, ProductOptions};
use crate::session::Session;
use crate::shape::Shape;

impl Context {
    /// A 2D convolution; `weights` is `oc kh kw c/groups`.
    ///
    /// For repeated runs build a [`Graph`] and a [`Session`]: this compiles, uploads and downloads
    /// at every call (compiled kernels are kept by the context).
    ///
    /// ```
    /// use diptych::{Backend, Context, Conv2d, HostTensor, Shape};
    ///
    /// let context = Context::new(Backend::Cpu)?;
    /// let x = HostTensor::new(Shape::nhwc(1, 1, 3, 1), vec![1.0, 2.0, 3.0])?;
    /// let ones = HostTensor::new(Shape::nhwc(1, 1, 3, 1), vec![1.0; 3])?;
    /// let sum = context.conv2d(&x, &ones, None, &Conv2d::default())?;
    /// assert_eq!(*sum.to_f32(), [6.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the shapes do not fit each other, or the device fails.
    pub fn conv2d(
        &self,
        x: &HostTensor,
        weights: &HostTensor,
        bias: Option<&HostTensor>,
        options: &Conv2d,
    ) -> Result<HostTensor> {
        self.one(x, bias, |graph, x, extras| graph.conv2d("conv2d", x, weights.clone(), extras, *options))
    }

    /// A depthwise convolution; `weights` is `1 kh kw c*multiplier`. See [`Context::conv2d`].
    ///
    /// ```
    /// use diptych::{Backend, Context, Depthwise, HostTensor, Shape};
    ///
    /// let context = Context::new(Backend::Cpu)?;
    /// let x = HostTensor::new(Shape::nhwc(1, 1, 2, 2), vec![1.0, 10.0, 2.0, 20.0])?;
    /// let ones = HostTensor::new(Shape::nhwc(1, 1, 2, 2), vec![1.0; 4])?;
    /// let sums = context.depthwise(&x, &ones, None, &Depthwise::default())?; // each channel by itself
    /// assert_eq!(*sums.to_f32(), [3.0, 30.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the shapes do not fit each other, or the device fails.
    pub fn depthwise(
        &self,
        x: &HostTensor,
        weights: &HostTensor,
        bias: Option<&HostTensor>,
        options: &Depthwise,
    ) -> Result<HostTensor> {
        self.one(x, bias, |graph, x, extras| {
            graph.depthwise("depthwise", x, weights.clone(), extras, *options)
        })
    }

    /// A 1x1 convolution; `weights` is `oc 1 1 c`. See [`Context::conv2d`].
    ///
    /// ```
    /// use diptych::{Backend, Context, HostTensor, Pointwise, Shape};
    ///
    /// let context = Context::new(Backend::Cpu)?;
    /// let x = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![1.0, 2.0])?;
    /// let weights = HostTensor::new(Shape::nhwc(2, 1, 1, 2), vec![1.0, 1.0, 1.0, -1.0])?;
    /// let bias = HostTensor::vector(vec![0.5, 0.0])?;
    /// let y = context.pointwise(&x, &weights, Some(&bias), &Pointwise::default())?;
    /// assert_eq!(*y.to_f32(), [3.5, -1.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the shapes do not fit each other, or the device fails.
    pub fn pointwise(
        &self,
        x: &HostTensor,
        weights: &HostTensor,
        bias: Option<&HostTensor>,
        options: &Pointwise,
    ) -> Result<HostTensor> {
        self.one(x, bias, |graph, x, extras| {
            graph.pointwise("pointwise", x, weights.clone(), extras, *options)
        })
    }

    /// `alpha * op(A) * op(B) + beta * C` of packed matrices (see [`Shape::matrix`]), with the
    /// activation of `options`. For repeated products of one shape use [`MatrixProduct`]. The kernel is that of the tuner's
    /// record, where the context has one ([`Context::use_record`]).
    ///
    /// ```
    /// use diptych::{Backend, Context, Gemm, HostTensor};
    ///
    /// let context = Context::new(Backend::Cpu)?;
    /// let a = HostTensor::matrix(1, 1, 2, vec![1.0, 2.0])?;
    /// let b = HostTensor::matrix(1, 2, 2, vec![1.0, 0.0, 0.0, 1.0])?;
    /// let c = context.gemm(&a, &b, None, &Gemm::default())?;
    /// assert_eq!(*c.to_f32(), [1.0, 2.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the shapes do not fit each other, `beta` is not 0 and there is no `c`, or a leading
    /// dimension is given.
    pub fn gemm(
        &self,
        a: &HostTensor,
        b: &HostTensor,
        c: Option<&HostTensor>,
        options: &crate::Gemm,
    ) -> Result<HostTensor> {
        let beta = options.beta;
        let product = crate::Gemm { beta: crate::Bits(0.0), ..*options };
        let mut op = GemmOp::of_matrices(a.shape(), b.shape(), &product, false, false, Precision::F32)?;
        op.beta = beta;
        let result = Shape::matrix(op.batch, op.m, op.n);
        match c {
            Some(c) if c.shape() != result => {
                return Err(Error::shape("gemm", format!("C {}", c.shape()), format!("C {result}")));
            }
            None if beta.0 != 0.0 => {
                return Err(Error::shape("gemm", format!("beta {} and no C", beta.0), "a C to scale"));
            }
            _ => {}
        }
        let product = MatrixProduct::new(self, op, None, None, ProductOptions::default())?;
        let fill = |operand, tensor: &HostTensor| {
            product.write(operand, |data| data.copy_from_slice(&tensor.to_nhwc()))
        };
        fill(Operand::A, a)?;
        fill(Operand::B, b)?;
        if let Some(c) = c {
            fill(Operand::C, c)?;
        }
        product.run()?;
        product.read(Operand::C, |data| HostTensor::new(result, data.to_vec()))?
    }

    fn one(
        &self,
        x: &HostTensor,
        bias: Option<&HostTensor>,
        node: impl FnOnce(&mut Graph, Value, Extras) -> Result<Value>,
    ) -> Result<HostTensor> {
        let mut graph = Graph::new();
        let input = graph.input("x", x.shape())?;
        let output = node(&mut graph, input, Extras { bias: bias.cloned(), ..Default::default() })?;
        graph.output(output)?;
        let mut session = Session::new(self, &graph, SessionOptions::default())?;
        let mut outputs = session.run(&[("x", x)])?;
        outputs.pop().ok_or_else(|| Error::Internal("a network without an output".to_owned()))
    }
}
