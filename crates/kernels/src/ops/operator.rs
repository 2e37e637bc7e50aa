//! What a node of a graph computes, before its shapes are known.

use super::elementwise::Program;
use super::op::Op;
use super::quantization::Linear;
use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::emit::{Activation, Operand};
use crate::error::{Error, Result};
use crate::shape::{Border, Shape};
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// An input of a node: its role, and its dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Argument {
    /// The role.
    pub operand: Operand,
    /// Its dimensions.
    pub dims: Dims,
    /// The type of its elements.
    pub dtype: DType,
}

/// The inputs of a node, and the graph's dimensions.
#[derive(Debug, Clone, Copy)]
pub struct Arguments<'a> {
    /// The inputs.
    pub inputs: &'a [Argument],
    /// The extents of the graph's named dimensions.
    pub dimensions: &'a BTreeMap<String, usize>,
    /// Whether integers of 64 bits are kept in 32, as on a device.
    pub narrow: bool,
}

impl Arguments<'_> {
    /// The dimensions of `operand`, if the node has it.
    pub fn get(&self, operand: Operand) -> Option<Dims> {
        self.inputs.iter().find(|argument| argument.operand == operand).map(|argument| argument.dims)
    }

    /// The type of `operand`'s elements; f32 if the node lacks it.
    pub fn dtype(&self, operand: Operand) -> DType {
        let found = self.inputs.iter().find(|argument| argument.operand == operand);
        found.map_or(DType::F32, |argument| argument.dtype)
    }

    /// Whether the node has `operand`.
    pub fn has(&self, operand: Operand) -> bool {
        self.get(operand).is_some()
    }

    /// The dimensions of `operand`.
    ///
    /// # Errors
    /// If the node lacks it.
    pub fn need(&self, op: &'static str, operand: Operand) -> Result<Dims> {
        self.get(operand).ok_or_else(|| {
            let found: Vec<&str> = self.inputs.iter().map(|argument| argument.operand.name()).collect();
            Error::shape(op, format!("inputs {}", found.join(", ")), format!("an input {}", operand.name()))
        })
    }
}

/// A value that is another one's elements, where they lie: it costs no kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct View {
    /// Its dimensions.
    pub dims: Dims,
    /// Its first element, among those of the value it shows.
    pub offset: usize,
}

/// What an operator is for concrete shapes.
#[derive(Debug, Clone)]
pub enum Lowered {
    /// An op with kernels.
    Op(Arc<dyn Op>),
    /// The elements of the only input, seen otherwise.
    View(View),
}

/// How a node is computed some of whose inputs have no elements, where its results have some.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WithoutElements {
    /// By the same operator, with an extent of 1 for each extent of 0 of the inputs, filled with this number: a sum of no
    /// terms is one of a single 0.
    Filled(f32),
    /// Without these inputs; the others are numbered anew.
    LeftOut,
    /// The result is this input.
    Shown(Operand),
    /// Every element of the result is this number.
    Number(f32),
}

/// What a node of a graph computes: an op and its options, for any shapes.
///
/// The options of the ops are operators, and so is [`Custom`](super::custom::Custom), for what an
/// application computes itself. It is not meant to be implemented outside the crate.
///
/// Shapes, constants and the graph's dimensions are checked by the [`Op`] that [`Operator::lower`]
/// makes; a graph asks for it when a node is added, and again when its dimensions change.
pub trait Operator: Any + fmt::Debug + Send + Sync {
    /// The op's name: that of its folder.
    fn name(&self) -> &'static str;

    /// The op for inputs of these dimensions.
    ///
    /// # Errors
    /// If they do not fit each other or the options; the error says what was found and wanted.
    #[doc(hidden)]
    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered>;

    /// The dimensions of the outputs, in the order of the op's operands. Those of a feature map unless
    /// the operator says otherwise.
    #[doc(hidden)]
    fn outputs(&self, _arguments: Arguments<'_>, op: &dyn Op) -> Vec<Dims> {
        super::outputs(op).map(|info| Dims::from(info.shape)).collect()
    }

    /// The types of the outputs' elements, in the order of the op's operands: those of the op's words unless the
    /// operator says otherwise.
    #[doc(hidden)]
    fn types(&self, _arguments: Arguments<'_>, op: &dyn Op) -> Vec<DType> {
        super::outputs(op).map(|info| info.dtype).collect()
    }

    /// How many elements of which kind it puts around a feature map above, below, left and right, if that is all
    /// it does.
    #[doc(hidden)]
    fn border(&self) -> Option<(Border, [usize; 4])> {
        None
    }

    /// The operator that does the same to an input without the elements around it that the input of this one
    /// has, if there is one.
    #[doc(hidden)]
    fn with_border(&self, _border: Border, _extents: [usize; 4]) -> Option<Arc<dyn Operator>> {
        None
    }

    /// The operator that applies `activation` to the result of this one, if there is one: not where it has an
    /// activation, or a residual, which is added after it.
    #[doc(hidden)]
    fn with_activation(&self, _activation: Activation) -> Option<Arc<dyn Operator>> {
        None
    }

    /// The operator that adds its residual and applies `activation` then, if there is one.
    #[doc(hidden)]
    fn with_activation_last(&self, _activation: Activation) -> Option<Arc<dyn Operator>> {
        None
    }

    /// The operator that does the same and has a place for a residual, where this one has none.
    #[doc(hidden)]
    fn with_residual(&self) -> Option<Arc<dyn Operator>> {
        None
    }

    /// Whether an input [`Operand::Bias`], one number for each channel, is added to what it computes, before all else that
    /// follows.
    #[doc(hidden)]
    fn adds_bias(&self) -> bool {
        false
    }

    /// Whether an input [`Operand::Residual`] of the result's shape is added to the result.
    #[doc(hidden)]
    fn adds_residual(&self) -> bool {
        false
    }

    /// What it computes of each element, if that is all that it does.
    #[doc(hidden)]
    fn program(&self) -> Option<&Program> {
        None
    }

    /// What it is in a quantized network, if it rounds numbers to integers or gives the numbers of integers.
    #[doc(hidden)]
    fn linear(&self) -> Option<Linear> {
        None
    }

    /// An input of which it takes the extents alone, where a node has it: the op does not read it.
    #[doc(hidden)]
    fn like(&self) -> Option<Operand> {
        None
    }

    /// How results that have elements are computed where some of the inputs have none; none if they take elements.
    #[doc(hidden)]
    fn without_elements(&self, _arguments: Arguments<'_>) -> Option<WithoutElements> {
        None
    }

    /// Whether `other` is the same operator with the same options.
    #[doc(hidden)]
    fn same(&self, other: &dyn Operator) -> bool;
}

/// Plain options that are an operator: each op's folder says what differs. The methods without a comment are those of
/// [`Operator`].
pub(crate) trait Options: fmt::Debug + PartialEq + Sized + Send + Sync + 'static {
    /// The op's name: that of its folder.
    const NAME: &'static str;

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered>;

    fn outputs(&self, _arguments: Arguments<'_>, op: &dyn Op) -> Vec<Dims> {
        super::outputs(op).map(|info| Dims::from(info.shape)).collect()
    }

    fn types(&self, _arguments: Arguments<'_>, op: &dyn Op) -> Vec<DType> {
        super::outputs(op).map(|info| info.dtype).collect()
    }

    fn border(&self) -> Option<(Border, [usize; 4])> {
        None
    }

    /// The options for an input without the elements around it that the input of these has.
    fn with_border(&self, _border: Border, _extents: [usize; 4]) -> Option<Self> {
        None
    }

    /// These options with `activation`, where they have a place for it that is free.
    fn activated(&self, _activation: Activation) -> Option<Self> {
        None
    }

    fn with_activation(&self, activation: Activation) -> Option<Arc<dyn Operator>> {
        Some(Arc::new(self.activated(activation)?))
    }

    fn with_activation_last(&self, _activation: Activation) -> Option<Arc<dyn Operator>> {
        None
    }

    fn with_residual(&self) -> Option<Arc<dyn Operator>> {
        None
    }

    /// Whether inputs [`Operand::Bias`] and [`Operand::Residual`] are added.
    fn adds(&self) -> [bool; 2] {
        [false, false]
    }

    fn program(&self) -> Option<&Program> {
        None
    }

    fn linear(&self) -> Option<Linear> {
        None
    }

    fn like(&self) -> Option<Operand> {
        None
    }

    fn without_elements(&self, _arguments: Arguments<'_>) -> Option<WithoutElements> {
        None
    }
}

impl<O: Options> Operator for O {
    fn name(&self) -> &'static str {
        O::NAME
    }

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        Options::lower(self, arguments, precision)
    }

    fn outputs(&self, arguments: Arguments<'_>, op: &dyn Op) -> Vec<Dims> {
        Options::outputs(self, arguments, op)
    }

    fn types(&self, arguments: Arguments<'_>, op: &dyn Op) -> Vec<DType> {
        Options::types(self, arguments, op)
    }

    fn border(&self) -> Option<(Border, [usize; 4])> {
        Options::border(self)
    }

    fn with_border(&self, border: Border, extents: [usize; 4]) -> Option<Arc<dyn Operator>> {
        Some(Arc::new(Options::with_border(self, border, extents)?))
    }

    fn with_activation(&self, activation: Activation) -> Option<Arc<dyn Operator>> {
        Options::with_activation(self, activation)
    }

    fn with_activation_last(&self, activation: Activation) -> Option<Arc<dyn Operator>> {
        Options::with_activation_last(self, activation)
    }

    fn with_residual(&self) -> Option<Arc<dyn Operator>> {
        Options::with_residual(self)
    }

    fn adds_bias(&self) -> bool {
        self.adds()[0]
    }

    fn adds_residual(&self) -> bool {
        self.adds()[1]
    }

    fn program(&self) -> Option<&Program> {
        Options::program(self)
    }

    fn linear(&self) -> Option<Linear> {
        Options::linear(self)
    }

    fn like(&self) -> Option<Operand> {
        Options::like(self)
    }

    fn without_elements(&self, arguments: Arguments<'_>) -> Option<WithoutElements> {
        Options::without_elements(self, arguments)
    }

    fn same(&self, other: &dyn Operator) -> bool {
        (other as &dyn Any).downcast_ref::<O>() == Some(self)
    }
}

/// The input and the weights of a node that is a convolution; both have rank 4.
pub(super) fn maps(op: &'static str, arguments: Arguments<'_>) -> Result<[Shape; 2]> {
    let map = |operand: Operand| {
        let dims = arguments.need(op, operand)?;
        if dims.rank() == 4 {
            return Ok(dims.shape());
        }
        let name = operand.name();
        Err(Error::shape(op, format!("{name} of rank {} ({dims})", dims.rank()), format!("{name} of rank 4")))
    };
    Ok([map(Operand::Src)?, map(Operand::Weights)?])
}

/// Whether a node has inputs [`Operand::Bias`] and [`Operand::Residual`].
pub(super) fn extras(arguments: Arguments<'_>) -> [bool; 2] {
    [Operand::Bias, Operand::Residual].map(|operand| arguments.has(operand))
}
