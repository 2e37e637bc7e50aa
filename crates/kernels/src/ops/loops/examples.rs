//! Problems that between them use every kernel, kind of index and reduction.

use super::index::{Index, Mirror};
use super::nest::{GatherAxis, Guard, Nest, Node, Nodes, element};
use super::scalars::{FLOATS, WHOLE};
use super::{InParts, LoopsOp, OP, OperandSet, ReadFrom, SourceAt, Sources};
use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::emit::Bits;
use crate::error::{Error, Result};
use crate::ops::elementwise::Function;
use crate::ops::examples::Numbers;
use crate::ops::integer::IntegerFunction;
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

/// Rows of a source where integers say, which follow from floats or from other integers, along one or two axes, and as wide
/// as vec4s if `wide`.
fn gathered(wide: bool, floats: bool) -> Result<Nest> {
    let (columns, word) = (if wide { 8 } else { 5 }, DType::I32);
    let extents = vec![6, columns];
    let mut nodes = Nodes::default();
    let x = nodes.read(1, at(&[(0, 1)]));
    let (index, source) = if floats {
        let four = nodes.number(4.0);
        let scaled = nodes.apply(Function::Mul, &[x, four]);
        let floor = nodes.apply(Function::Floor, &[scaled]);
        let (function, arguments) = (IntegerFunction::Convert, vec![floor]);
        let index = nodes.add(Node::ApplyIntegers { function, arguments, word: DType::F32, result: word });
        (index, DType::F32)
    } else {
        let three = nodes.add(Node::Integer { value: 3, word });
        let function = IntegerFunction::FloorMod;
        (nodes.add(Node::ApplyIntegers { function, arguments: vec![x, three], word, result: word }), word)
    };
    let row = GatherAxis { index, extent: 3, stride: 4 * columns };
    let mut by = vec![row];
    if !floats {
        by.push(GatherAxis { index: x, extent: 4, stride: columns });
    }
    let element = nodes.add(Node::Gather { source: 0, at: at(&[(1, 1)]), guards: Vec::new(), by });
    let function = IntegerFunction::Convert;
    let whole = nodes.add(Node::ApplyIntegers { function, arguments: vec![index], word, result: DType::F32 });
    let value = nodes.apply(Function::Add, &[element, whole]);
    let sources = vec![(Dims::new(&[3, 4, columns])?, DType::F32), (Dims::new(&[6])?, source)];
    Nest::of_words(extents, vec![0, 1], sources, nodes, value, Dims::new(&[6, columns])?)
}

/// Products of elements with the remainders of their places along the last axis, where `by` divides it; the sum of each row
/// if `reduced`.
fn weighted(columns: usize, by: i64, reduced: bool) -> Result<Nest> {
    let written: &[usize] = if reduced { &[0] } else { &[0, 1] };
    nest(&[6, columns], written, &[&[6, columns]], |nodes| {
        let x = nodes.read(0, at(&[(0, columns as i64), (1, 1)]));
        let rest = Index::axis(1).plus(&Index::axis(0), 1).remainder(by, &[6, columns]);
        let place = nodes.add(Node::Place(rest));
        let product = nodes.apply(Function::Mul, &[x, place]);
        if reduced { nodes.reduce(Reduction::Sum, product, 0b10) } else { product }
    })
}

/// Integers in another order with a border, and a function of them.
fn bordered_integers(word: DType) -> Result<Nest> {
    let mut nodes = Nodes::default();
    let row = Index::axis(1).plus(&Index::number(-1), 1);
    let guards = vec![Guard { index: row.clone(), below: 5 }];
    let at_x = row.inside(5, &[4, 7]).times(4).plus(&Index::axis(0), 1);
    let x = nodes.add(Node::Read { source: 0, at: at_x, guards: guards.clone(), otherwise: Bits(3.0) });
    let y = nodes.read(1, at(&[(0, 7), (1, 1)]));
    let function = IntegerFunction::Mul;
    let product = nodes.add(Node::ApplyIntegers { function, arguments: vec![x, y], word, result: word });
    let value = nodes.add(Node::Choose { guards, then: product, otherwise: y });
    let sources = vec![(Dims::new(&[5, 4])?, word), (Dims::new(&[4, 7])?, word)];
    Nest::of_words(vec![4, 7], vec![0, 1], sources, nodes, value, Dims::new(&[4, 7])?)
}

/// The squares of what the nest writes, in another order, beside what it writes.
fn kept(nest: &Nest) -> Result<Nest> {
    let rows = nest.target.shape();
    let (rows, columns) = (nest.target.elements() / rows.c, rows.c);
    let reader = self::nest(&[columns, rows], &[0, 1], &[&[rows, columns]], |nodes| {
        let x = nodes.read(0, at(&[(0, 1), (1, columns as i64)]));
        nodes.apply(Function::Square, &[x])
    })?;
    let all = nest.sources.clone();
    let writer: Vec<SourceAt> = (0..all.len()).map(SourceAt::whole).collect();
    let sources = Sources { all: &all, reader: &[ReadFrom::Written(0)], writer: &writer, keeps: true };
    reader.after(nest, &sources)
}

/// A nest beside another one like it, of other sources.
fn twice(nest: &Nest) -> Result<Nest> {
    let all: Vec<Dims> = nest.sources.iter().chain(&nest.sources).copied().collect();
    let from: Vec<SourceAt> = (nest.sources.len()..all.len()).map(SourceAt::whole).collect();
    nest.beside(nest, &all, &from)
}

/// Sums of elements, of more places and with more numbers beyond a border than a kernel has scalars; the largest of each row
/// if `reduced`.
fn many_numbers(reduced: bool) -> Result<Nest> {
    let written: &[usize] = if reduced { &[0] } else { &[0, 1] };
    let reads = (WHOLE.len() / 2).max(FLOATS.len()) + 4;
    let wide = 16 * reads + 1000 + reads;
    nest(&[3, 16], written, &[&[3, wide]], |nodes| {
        let elements = (2..reads + 2).map(|step| {
            let at = at(&[(0, wide as i64), (1, step as i64)]).plus(&Index::number(900 + step as i64), 1);
            let guards = vec![Guard { index: Index::axis(1), below: 12 }];
            // Halves hold these.
            let otherwise = Bits(step as f32 / 64.0 - 0.25);
            nodes.add(Node::Read { source: 0, at, guards, otherwise })
        });
        let elements: Vec<usize> = elements.collect();
        let sum =
            elements.into_iter().reduce(|sum, x| nodes.apply(Function::Add, &[sum, x])).unwrap_or_default();
        if reduced { nodes.reduce(Reduction::Max, sum, 0b10) } else { sum }
    })
}

/// Few long rows in two: the means and the largest of parts of the rows, and what is made of these.
fn long_rows(precision: Precision) -> Result<Vec<LoopsOp>> {
    let mut all = Vec::new();
    for (extents, over, in_maps) in
        [(&[1, 98, 96, 6][..], 0b110, true), (&[1, 98, 96, 4], 0b110, false), (&[2, 9600], 0b10, false)]
    {
        let written: Vec<usize> = (0..extents.len()).collect();
        let nest = nest(extents, &written, &[extents], |nodes| {
            let x = nodes.read(0, element(extents));
            let mean = nodes.reduce(Reduction::Mean, x, over);
            let largest = nodes.reduce(Reduction::Max, x, over);
            let middle = nodes.apply(Function::Maximum, &[x, mean]);
            nodes.apply(Function::Sub, &[middle, largest])
        })?;
        let Some(InParts { parts, whole }) = nest.in_parts() else {
            return Err(Error::unsupported(OP, "rows without parts"));
        };
        let own = |results| match in_maps {
            true => OperandSet { sources: 1, results },
            false => OperandSet::NONE,
        };
        // What the parts give stays in f32.
        let first = OperandSet { sources: 1, results: 0 };
        all.push(LoopsOp::new(Arc::new(parts), first, own(0), precision)?);
        all.push(LoopsOp::new(Arc::new(whole), OperandSet { results: 1, ..first }, own(1), precision)?);
    }
    Ok(all)
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
    nests.extend([many_numbers(false)?, many_numbers(true)?]);
    nests.extend([
        weighted(8, 3, false)?,
        weighted(7, 3, false)?,
        weighted(40, 50, true)?,
        weighted(9, 2, true)?,
    ]);
    // Numbers that halves do not hold stay in f32 beside others.
    let (apart, none) = (OperandSet { sources: 0b10, results: 0 }, OperandSet::NONE);
    let mut all = vec![LoopsOp::new(Arc::new(softmax(false)?), apart, none, precision)?];
    for nest in nests {
        all.push(LoopsOp::new(Arc::new(nest), OperandSet::ALL, none, precision)?);
    }
    // Maps of whole slices and others, read, written, or both, also where a row is reduced.
    for channels in [8, 5] {
        for (sources, results) in [(0b01, 1), (0b01, 0), (0b00, 1), (0b10, 1)] {
            let maps = OperandSet { sources, results };
            for nest in [normalised_maps(channels)?, turned_maps(channels)?] {
                all.push(LoopsOp::new(Arc::new(nest), OperandSet::ALL, maps, precision)?);
            }
        }
    }
    // Several results: what lies between, and nests beside each other; also in slices.
    let (turned, softmax) = (normalised()?, softmax(false)?);
    let between = reduced(Reduction::Max, false)?;
    for (nest, maps) in [
        (kept(&turned_maps(8)?)?, OperandSet { sources: 0b01, results: 0b10 }),
        (kept(&turned_maps(8)?)?, OperandSet::NONE),
        (kept(&turned_maps(5)?)?, OperandSet { sources: 0b01, results: 0b01 }),
        (kept(&normalised_maps(8)?)?, OperandSet::NONE),
        (kept(&normalised_maps(8)?)?, OperandSet { sources: 0b10, results: 0b11 }),
        (twice(&turned)?, none),
        (twice(&softmax)?, none),
        (twice(&between)?, none),
        (twice(&turned_maps(8)?)?, OperandSet { sources: 0b1010, results: 0b11 }),
    ] {
        all.push(LoopsOp::new(Arc::new(nest), OperandSet::ALL, maps, precision)?);
    }
    all.extend(long_rows(precision)?);
    all.extend(super::examples_of_bytes::examples(precision)?);
    for nest in [
        gathered(true, true)?,
        gathered(true, false)?,
        gathered(false, true)?,
        gathered(false, false)?,
        bordered_integers(DType::I32)?,
        bordered_integers(DType::U32)?,
    ] {
        // What indices are made of stays in f32.
        let halves = OperandSet { sources: 0b01, results: 0 };
        all.push(LoopsOp::new(Arc::new(nest), halves, none, precision)?);
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
