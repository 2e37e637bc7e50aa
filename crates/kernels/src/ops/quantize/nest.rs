//! Conversions to bytes as nests of loops.

use super::QuantizeOp;
use crate::dtype::DType;
use crate::emit::Bits;
use crate::ops::bytes::LANES;
use crate::ops::elementwise::Function;
use crate::ops::loops::{Guard, Index, Nest, Node, Nodes};

impl QuantizeOp {
    /// What it computes, as a nest. Behind the channels of a row it has the byte of 0.
    pub(super) fn as_nest(&self) -> Option<Nest> {
        let channels = self.channels();
        let extents = vec![self.source.elements() / channels.max(1), channels.next_multiple_of(LANES)];
        let mut guards = Vec::new();
        if extents[1] != channels {
            guards.push(Guard { index: Index::axis(1), below: channels as i64 });
        }
        let channel = Index::axis(1).inside(channels as i64, &extents);
        let at = channel.plus(&Index::axis(0), channels as i64);
        let mut nodes = Nodes::default();
        let x = nodes.add(Node::Read { source: 0, at, guards, otherwise: Bits(0.0) });
        let factor = nodes.number(self.factor.0);
        let steps = nodes.apply(Function::Mul, &[x, factor]);
        let [low, high] = self.range.steps().map(|end| nodes.number(end as f32));
        let steps = nodes.apply(Function::Clamp, &[steps, low, high]);
        let steps = nodes.apply(Function::Round, &[steps]);
        let zero = nodes.number(self.range.zero.into());
        let byte = nodes.apply(Function::Add, &[steps, zero]);
        let value = nodes.add(Node::Byte(byte));
        let sources = vec![(self.source, DType::F32)];
        Nest::of_words(extents, vec![0, 1], sources, nodes, value, self.target).ok()
    }
}
