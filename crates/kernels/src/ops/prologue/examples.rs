//! Nests before an op.

use super::PrologueOp;
use crate::dims::Dims;
use crate::emit::{Bits, Operand};
use crate::error::Result;
use crate::ops::elementwise::Function;
use crate::ops::loops::{Guard, Index, LoopsOp, Nest, Node, Nodes, OperandSet, element};
use crate::ops::op::Op;
use crate::ops::operands::OperandInfo;
use std::sync::Arc;

/// `op` with its input `operand`, rows, given by nests: a gated sum of elements in the same places, a gate that lies beside what it
/// multiplies, and a concatenation of which one part is transposed.
pub(crate) fn before(op: &Arc<dyn Op>, operand: Operand) -> Result<Vec<Box<dyn Op>>> {
    let Some(info) = op.operands().into_iter().find(|info: &OperandInfo| info.operand == operand) else {
        return Ok(Vec::new());
    };
    let shape = info.shape;
    let extents = vec![shape.n, shape.h, shape.w, shape.c];
    let dims = Dims::new(&extents)?;
    let axes: Vec<usize> = (0..4).collect();
    let at = element(&extents);
    let mut nests = Vec::new();

    let mut nodes = Nodes::default();
    let [x, y] = [0, 1].map(|source| nodes.read(source, at.clone()));
    let factor = nodes.number(0.75);
    let gate = nodes.apply(Function::Sigmoid, &[x]);
    let gated = nodes.apply(Function::Mul, &[x, gate]);
    let scaled = nodes.apply(Function::Mul, &[y, factor]);
    let sum = nodes.apply(Function::Add, &[gated, scaled]);
    nests.push(Nest::new(extents.clone(), axes.clone(), vec![dims; 2], nodes, sum, dims)?);

    // Halves of rows that are twice as long.
    let wide = Dims::new(&[shape.n, shape.h, shape.w, 2 * shape.c])?;
    let mut nodes = Nodes::default();
    let row = |part: usize| {
        let rest = element(&[shape.n, shape.h, shape.w]).times(2 * shape.c as i64);
        rest.plus(&Index::axis(3), 1).plus(&Index::number((part * shape.c) as i64), 1)
    };
    let [x, y] = [0, 1].map(|part| nodes.read(0, row(part)));
    let gate = nodes.apply(Function::Gelu, &[x]);
    let product = nodes.apply(Function::Mul, &[gate, y]);
    nests.push(Nest::new(extents.clone(), axes.clone(), vec![wide], nodes, product, dims)?);

    // The first channels of a matrix that lies the other way, the others of one as it is.
    let (first, area) = (4, shape.w);
    let other = Dims::new(&[shape.n * shape.h, first, area])?;
    let mut nodes = Nodes::default();
    let outer = Index::axis(0).times(shape.h as i64).plus(&Index::axis(1), 1);
    let turned = outer
        .times((first * area) as i64)
        .plus(&Index::axis(3).inside(first as i64, &extents), area as i64)
        .plus(&Index::axis(2), 1);
    let is_first = Guard { index: Index::axis(3), below: first as i64 };
    let turned =
        nodes.add(Node::Read { source: 0, at: turned, guards: vec![is_first.clone()], otherwise: Bits(0.0) });
    let own = nodes.read(1, at);
    let chosen = nodes.add(Node::Choose { guards: vec![is_first], then: turned, otherwise: own });
    nests.push(Nest::new(extents, axes, vec![other, dims], nodes, chosen, dims)?);
    let mut all: Vec<Box<dyn Op>> = Vec::with_capacity(nests.len());
    for nest in nests {
        let nest = LoopsOp::new(Arc::new(nest), OperandSet::ALL, OperandSet::NONE, op.precision())?;
        all.push(Box::new(PrologueOp::new(Arc::clone(op), operand, nest)?));
    }
    Ok(all)
}
