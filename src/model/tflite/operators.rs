//! The operators that the loader reads: one line each, the function that adds it to the graph.

use super::import::{Import, Op};
use super::tensors::Reason;
use super::{convolution, pooling, products, shapes};
use crate::ops::pool::Pooling;

/// Adds an operator to the graph, or works out its constants.
pub(super) type Handler = for<'a> fn(&mut Import<'a>, &Op<'a>) -> Result<(), Reason>;

/// The function of an operator, by its name.
pub(super) fn handler(name: &str) -> Option<Handler> {
    HANDLERS.iter().find(|(known, _)| *known == name).map(|&(_, handler)| handler)
}

#[rustfmt::skip]
const HANDLERS: &[(&str, Handler)] = &[
    ("CONV_2D", convolution::conv2d),
    ("DEPTHWISE_CONV_2D", convolution::depthwise),
    ("MAX_POOL_2D", |i, op| pooling::pool(i, op, Pooling::Max)),
    ("AVERAGE_POOL_2D", |i, op| pooling::pool(i, op, Pooling::Average)),
    ("FULLY_CONNECTED", products::fully_connected),
    ("BATCH_MATMUL", products::batch_matmul),

    ("RESHAPE", shapes::reshape),
    ("SQUEEZE", shapes::squeeze),
    ("EXPAND_DIMS", shapes::expand_dims),
    ("SHAPE", shapes::shape),
    ("RANK", shapes::rank),
    ("FILL", shapes::fill),
    ("RANGE", shapes::range),
    ("DEQUANTIZE", shapes::dequantise),
    ("DENSIFY", shapes::dequantise),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tflite::names;

    #[test]
    fn every_operator_is_one_of_the_schema_and_there_once() {
        for (index, (name, _)) in HANDLERS.iter().enumerate() {
            assert!(names::OPERATORS.contains(name) || name.starts_with("CUSTOM "), "{name}");
            assert!(HANDLERS[..index].iter().all(|(earlier, _)| earlier != name), "{name} twice");
        }
    }
}
