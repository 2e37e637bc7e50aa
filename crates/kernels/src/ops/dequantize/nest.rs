//! Conversions of bytes to numbers as nests of loops.

use super::DequantizeOp;
use crate::dtype::DType;
use crate::ops::bytes::LANES;
use crate::ops::elementwise::Function;
use crate::ops::loops::{Index, Nest, Nodes};

impl DequantizeOp {
    /// What it computes, as a nest.
    pub(super) fn as_nest(&self) -> Option<Nest> {
        let channels = self.options.channels;
        let extents = vec![self.target.elements() / channels.max(1), channels];
        let at = Index::axis(1).plus(&Index::axis(0), channels.next_multiple_of(LANES) as i64);
        let mut nodes = Nodes::default();
        let byte = nodes.read(0, at);
        let [zero, scale] = [self.options.zero.into(), self.options.scale.0].map(|own| nodes.number(own));
        let steps = nodes.apply(Function::Sub, &[byte, zero]);
        let value = nodes.apply(Function::Mul, &[steps, scale]);
        Nest::of_words(extents, vec![0, 1], vec![(self.source, DType::U8)], nodes, value, self.target).ok()
    }
}
