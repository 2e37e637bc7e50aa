//! Problems that between them use every kernel, kind of index and reduction.

use super::index::{Index, Mirror};
use super::nest::{Guard, Nest, Node, Nodes};
use super::{LoopsOp, OP, OperandSet};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Bits;
use crate::error::Result;
use crate::ops::elementwise::Function;
use crate::ops::examples::Numbers;
use crate::ops::op::Op;
use crate::ops::reduce::Reduction;
use std::sync::Arc;

/// A nest along axes of these extents, of which those of `written` are the result's.
fn nest(
    extents: &[usize],
    written: &[usize],
    sources: &[&[usize]],
    nodes: impl FnOnce(&mut Nodes) -> usize,
) -> Result<Nest> {
    let mut made = Nodes::default();
    let value = nodes(&mut made);
    let target: Vec<usize> = written.iter().map(|&axis| extents[axis]).collect();
    let sources = sources.iter().map(|dims| Dims::new(dims)).collect::<Result<_>>()?;
    Nest::new(extents.to_vec(), written.to_vec(), sources, made, value, Dims::new(&target)?)
}

fn at(strides: &[(usize, i64)]) -> Index {
    strides.iter().fold(Index::default(), |sum, &(axis, stride)| sum.plus(&Index::axis(axis), stride))
}

/// A softmax of rows, or of columns, with a factor for each.
fn softmax(columns: bool) -> Result<Nest> {
    let written: &[usize] = if columns { &[1, 0] } else { &[0, 1] };
    nest(&[6, 37], written, &[&[6, 37], &[6]], |nodes| {
        let x = nodes.read(0, at(&[(0, 37), (1, 1)]));
        let factor = nodes.read(1, at(&[(0, 1)]));
        let largest = nodes.reduce(Reduction::Max, x, 0b10);
        let difference = nodes.apply(Function::Sub, &[x, largest]);
        let power = nodes.apply(Function::Exp, &[difference]);
        let sum = nodes.reduce(Reduction::Sum, power, 0b10);
        let share = nodes.apply(Function::Div, &[power, sum]);
        nodes.apply(Function::Mul, &[share, factor])
    })
}

/// A normalisation of columns of a matrix, whose elements a transpose then writes.
fn normalised() -> Result<Nest> {
    nest(&[40, 9], &[1, 0], &[&[40, 9]], |nodes| {
        let x = nodes.read(0, at(&[(0, 9), (1, 1)]));
        let mean = nodes.reduce(Reduction::Mean, x, 1);
        let difference = nodes.apply(Function::Sub, &[x, mean]);
        let square = nodes.apply(Function::Square, &[difference]);
        let variance = nodes.reduce(Reduction::Mean, square, 1);
        let epsilon = nodes.number(0.125);
        let sum = nodes.apply(Function::Add, &[variance, epsilon]);
        let factor = nodes.apply(Function::Rsqrt, &[sum]);
        nodes.apply(Function::Mul, &[difference, factor])
    })
}

/// Elements of two sources side by side, one of them with a border, with a function of both.
fn bordered(columns: usize, rule: Option<Mirror>) -> Result<Nest> {
    let wide = columns as i64;
    let extents = [7, columns + 4];
    nest(&extents, &[0, 1], &[&[5, columns], &[columns + 4]], |nodes| {
        let row = Index::axis(0).plus(&Index::number(-1), 1);
        let column = Index::axis(1).plus(&Index::number(-4), 1);
        let (mut guards, mut place) = (Vec::new(), Vec::new());
        for (index, below) in [(row, 5), (column, wide)] {
            place.push(match rule {
                Some(rule) => index.ruled(rule, below, &extents),
                None => {
                    guards.push(Guard { index: index.clone(), below });
                    index.inside(below, &extents)
                }
            });
        }
        let at_x = place[1].plus(&place[0], wide);
        let x = nodes.add(Node::Read { source: 0, at: at_x, guards: guards.clone(), otherwise: Bits(0.5) });
        let y = nodes.read(1, at(&[(1, 1)]));
        let sum = nodes.apply(Function::Add, &[x, y]);
        let gated = nodes.apply(Function::Sigmoid, &[sum]);
        match rule {
            Some(_) => gated,
            None => nodes.add(Node::Choose { guards, then: gated, otherwise: y }),
        }
    })
}

/// Rows and columns exchanged within blocks, and a function of the places that a reshape gives.
fn reshaped() -> Result<Nest> {
    nest(&[6, 20], &[0, 1], &[&[6, 20], &[15, 8]], |nodes| {
        let extents = [6, 20];
        let flat = at(&[(0, 20), (1, 1)]);
        let (row, column) = (flat.quotient(8, &extents), flat.remainder(8, &extents));
        let turned = column.times(15).plus(&row, 1);
        let x = nodes.read(0, flat);
        let y = nodes.read(1, turned.remainder(120, &extents));
        nodes.apply(Function::Maximum, &[x, y])
    })
}

/// A reduction of each pixel's channels, or of each channel's pixels, and what is made of it.
fn reduced(reduction: Reduction, pixels: bool) -> Result<Nest> {
    let (row, over) = if pixels { (1, 0b01) } else { (0, 0b10) };
    nest(&[50, 24], &[row], &[&[50, 24]], |nodes| {
        let x = nodes.read(0, at(&[(0, 24), (1, 1)]));
        let all = nodes.reduce(reduction, x, over);
        nodes.apply(Function::Neg, &[all])
    })
}

/// Two maps of these channels: each pixel of the one without its mean, and with that of the other's neighbour.
fn normalised_maps(channels: usize) -> Result<Nest> {
    let shape = [2, 3, 4, channels];
    let wide = channels as i64;
    nest(&[24, channels], &[0, 1], &[&shape, &shape], |nodes| {
        let x = nodes.read(0, at(&[(0, wide), (1, 1)]));
        let mean = nodes.reduce(Reduction::Mean, x, 0b10);
        let difference = nodes.apply(Function::Sub, &[x, mean]);
        let next = Index::axis(0).plus(&Index::number(1), 1).remainder(24, &[24, channels]);
        let y = nodes.read(1, next.times(wide).plus(&Index::axis(1), 1));
        nodes.apply(Function::Add, &[difference, y])
    })
}

/// Two maps of these channels, of which the one has its channels in reverse before its pixels.
fn turned_maps(channels: usize) -> Result<Nest> {
    let shape = [2, 3, 4, channels];
    let wide = channels as i64;
    nest(&[2, 12, channels], &[0, 1, 2], &[&[2, channels, 3, 4], &shape], |nodes| {
        let reverse = Index::number(wide - 1).plus(&Index::axis(2), -1);
        let x = nodes.read(0, at(&[(0, 12 * wide), (1, 1)]).plus(&reverse, 12));
        let y = nodes.read(1, at(&[(0, 12 * wide), (1, wide), (2, 1)]));
        nodes.apply(Function::Sub, &[x, y])
    })
}

/// The examples in `precision`.
pub(crate) fn examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let mut nests = vec![softmax(false)?, softmax(true)?, normalised()?, reshaped()?];
    for columns in [8, 7] {
        nests.push(bordered(columns, None)?);
        for rule in [Mirror::Edge, Mirror::Reflect, Mirror::Symmetric] {
            nests.push(bordered(columns, Some(rule))?);
        }
    }
    for reduction in Reduction::ALL {
        // A product of fifty elements below 1 underflows in halves.
        for pixels in if reduction == Reduction::Product { &[false][..] } else { &[false, true] } {
            nests.push(reduced(reduction, *pixels)?);
        }
    }
    // Numbers that halves do not hold stay in f32 beside others.
    let (apart, none) = (OperandSet { sources: 0b10, result: false }, OperandSet::NONE);
    let mut all = vec![LoopsOp::new(Arc::new(softmax(false)?), apart, none, precision)?];
    for nest in nests {
        all.push(LoopsOp::new(Arc::new(nest), OperandSet::ALL, none, precision)?);
    }
    // Maps of whole slices and others, read, written, or both, also where a row is reduced.
    for channels in [8, 5] {
        for maps in [(0b01, true), (0b01, false), (0b00, true), (0b10, true)] {
            let maps = OperandSet { sources: maps.0, result: maps.1 };
            for nest in [normalised_maps(channels)?, turned_maps(channels)?] {
                all.push(LoopsOp::new(Arc::new(nest), OperandSet::ALL, maps, precision)?);
            }
        }
    }
    Ok(all.into_iter().map(|op| Box::new(op) as Box<dyn Op>).collect())
}

const NAMES: &str = "rows,columns";

/// A softmax of rows.
pub(crate) const NUMBERS: Numbers = Numbers { names: NAMES, usual: &[197, 768], op: of };

fn of(extents: &[usize], kernel: Option<&str>, precision: Precision) -> Result<Arc<dyn Op>> {
    let &[rows, columns] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    let wide = columns as i64;
    let nest = nest(&[rows, columns], &[0, 1], &[&[rows, columns]], |nodes| {
        let x = nodes.read(0, at(&[(0, wide), (1, 1)]));
        if kernel == Some("flat") {
            return nodes.apply(Function::Gelu, &[x]);
        }
        let largest = nodes.reduce(Reduction::Max, x, 0b10);
        let difference = nodes.apply(Function::Sub, &[x, largest]);
        let power = nodes.apply(Function::Exp, &[difference]);
        let sum = nodes.reduce(Reduction::Sum, power, 0b10);
        nodes.apply(Function::Div, &[power, sum])
    })?;
    Ok(Arc::new(LoopsOp::new(Arc::new(nest), OperandSet::ALL, OperandSet::NONE, precision)?))
}
