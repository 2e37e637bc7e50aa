//! What is known of bytes in a network: which values stand for them, and which operators made floats of them.

use crate::graph::Value;
use crate::model::build::{ByteWeights, Bytes, Windows};
use crate::ops::elementwise::Function;
use std::collections::HashMap;

/// What made a value of floats.
#[derive(Debug, Clone)]
pub(super) enum Origin {
    /// Bytes stand for it.
    Bytes(Bytes),
    /// A convolution, and whether it is a depthwise one.
    Convolution(Bytes, ByteWeights, bool, Windows),
    /// Rows times a matrix.
    Product(Bytes, ByteWeights),
    /// A sum or a product.
    Combined([Bytes; 2], Function),
    /// The largest of windows.
    Largest(Bytes, Windows),
    /// The mean over height and width.
    Mean(Bytes),
    /// Values one behind the other along a stored axis.
    Joined(Vec<Bytes>, usize),
    /// A function of each number.
    Function(Bytes, fn(f32) -> f32),
    /// The same with a slope below 0.
    Leaky(Bytes, f32),
}

/// A value of floats with what made it.
#[derive(Debug, Clone)]
pub(super) struct Made {
    pub(super) origin: Origin,
    /// The bounds behind it.
    pub(super) after: Option<Function>,
    /// The order in which its axes are stored.
    pub(super) order: Vec<usize>,
}

/// A constant of integers with what they stand for.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) values: Vec<i64>,
    pub(super) extents: Vec<usize>,
    pub(super) scales: Vec<f32>,
}

/// What is known of bytes in a network.
#[derive(Debug, Default)]
pub(super) struct Quantised<'a> {
    /// Values of integers, as bytes.
    pub(super) bytes: HashMap<Value, Bytes>,
    pub(super) made: HashMap<Value, Made>,
    pub(super) known: HashMap<&'a str, Known>,
}
