//! What an op's problems are made with, for tests, tables and a command line.

use super::op::Op;
use crate::dtype::Precision;
use crate::emit::{Activation, Bits};
use crate::error::{Error, Result};
use std::sync::Arc;

/// Makes an op's example problems in a precision.
pub type Examples = fn(Precision) -> Result<Vec<Box<dyn Op>>>;

/// Makes an op of extents, a kernel's name and a precision.
pub type OfNumbers = fn(&[usize], Option<&str>, Precision) -> Result<Arc<dyn Op>>;

/// An op by its extents alone, as a command line or a table of benchmarks has it.
#[derive(Debug, Clone, Copy)]
pub struct Numbers {
    /// What the extents are.
    pub names: &'static str,
    /// A usual problem.
    pub usual: &'static [usize],
    /// The op of as many extents as there are names. Convolutions have SAME padding, a bias and ReLU6,
    /// products are plain. A kernel, if it is named, may say which way round the op is.
    pub op: OfNumbers,
}

impl Numbers {
    /// The error of another count of extents.
    pub(super) fn refuse<T>(op: &'static str, names: &str, found: &[usize]) -> Result<T> {
        Err(Error::input(format!("extents of {op}"), format!("{} numbers", found.len()), names))
    }
}

/// Every activation, with one slope for the leaky one.
pub const ACTIVATIONS: [Activation; 12] = [
    Activation::None,
    Activation::Relu,
    Activation::Relu6,
    Activation::LeakyRelu(Bits(0.125)),
    Activation::PRelu,
    Activation::Sigmoid,
    Activation::Tanh,
    Activation::HardSwish,
    Activation::HardSigmoid,
    Activation::Silu,
    Activation::Gelu,
    Activation::GeluTanh,
];
