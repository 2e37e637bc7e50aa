//! `flat`: an element of the result per invocation, or four where the last axis has whole vec4s, in lines.

use super::index::Index;
use super::nest::{Nest, Node, NodeId, elements_in};
use super::text::{Stored, Text, is_whole};
use super::written::Written;
use super::{LoopsOp, result_operand, rows};
use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::emit::{Access, Binding, Body, Element};
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::rows::{line_width, lines};
use crate::ops::spec::{Params, binding, unsigned};
use std::sync::Arc;

/// Its name.
pub(super) const NAME: &str = "flat";

#[derive(Debug)]
pub(super) struct Flat;

/// The axis along which an invocation has four elements, if it has.
pub(super) fn lanes(nest: &Nest) -> Option<usize> {
    let &axis = nest.written.last()?;
    has_lanes(nest, axis).then_some(axis)
}

/// Whether an invocation may have four elements along `axis`: one of the nodes reads them in one piece, or they are the bytes of
/// a word, and integers are the same for all four.
pub(super) fn has_lanes(nest: &Nest, axis: usize) -> bool {
    let reads_whole =
        |node: &Node| node.source().is_some_and(|source| is_whole_read(nest, source, node, axis));
    let (depends, types) = (nest.dependences(), nest.node_types());
    let pays = nest.nodes.iter().any(reads_whole) || nest.values().any(|value| types[value] == DType::U8);
    if !nest.extents[axis].is_multiple_of(4) || !pays {
        return false;
    }
    let along = |id: NodeId| depends[id] & (1 << axis) != 0;
    let finds_integer =
        |node: &Node| matches!(node, Node::Reduce { of, place: Some(_), .. } if types[*of] != DType::F32);
    let scalar = |(id, node): (NodeId, &Node)| {
        let of_integers =
            matches!(types[id], DType::I32 | DType::U32) || matches!(node, Node::ApplyIntegers { .. });
        let by = match node {
            Node::Gather { at, guards, by, .. } => {
                let guarded = guards.iter().any(|guard| guard.index.axes() & (1 << axis) != 0);
                guarded || !matches!(at.stride(axis), Some(0 | 1)) || by.iter().any(|own| along(own.index))
            }
            _ => false,
        };
        by || of_integers && along(id) || finds_integer(node)
    };
    let is_number = |value: NodeId| matches!(types[value], DType::F32 | DType::U8);
    !nest.nodes.iter().enumerate().any(scalar) && nest.values().all(is_number)
}

/// Whether four places along `axis` are four elements of a source one behind the other.
fn is_whole_read(nest: &Nest, source: usize, node: &Node, axis: usize) -> bool {
    let at_whole = match node {
        Node::Read { at, .. } => is_whole(at, axis),
        Node::Gather { at, by, .. } => {
            is_whole(at, axis) && by.iter().all(|own| own.stride.is_multiple_of(4))
        }
        _ => false,
    };
    let (dims, dtype) = (nest.sources.get(source).copied(), nest.types.get(source).copied());
    at_whole && dims.zip(dtype).is_some_and(|(dims, dtype)| elements_in(dims, dtype).is_multiple_of(4))
}

/// How each source is bound: in vec4s where all of its reads that depend on the lane are whole ones.
pub(super) fn sources(op: &LoopsOp, lanes: Option<usize>) -> Vec<Stored> {
    let nest = &*op.stored;
    let wide = |source: usize| {
        let Some(axis) = lanes else { return false };
        let reads = nest.nodes.iter().filter(|node| node.source() == Some(source));
        let (mut some, mut all) = (false, true);
        for node in reads {
            let (Node::Read { at, guards, .. } | Node::Gather { at, guards, .. }) = node else { continue };
            let whole = is_whole_read(nest, source, node, axis)
                && guards.iter().all(|guard| guard.index.axes() & (1 << axis) == 0);
            some |= whole;
            // A node that says where gives one element.
            let one = at.axes() & (1 << axis) == 0 && matches!(node, Node::Read { .. });
            all &= whole || one;
        }
        some && all && matches!(nest.types.get(source), Some(DType::F32 | DType::U8))
    };
    let stored = |source| Stored {
        operand: op.source(source),
        dtype: op.stored_source(source),
        is_wide: wide(source),
        name: op.source(source).name(),
    };
    (0..nest.sources.len()).map(stored).collect()
}

pub(super) const fn element(stored: Stored) -> Element {
    // A word has four bytes.
    if matches!(stored.dtype, DType::U8) {
        return Element::Scalar(DType::U32);
    }
    if stored.is_wide { Element::Vec4(stored.dtype) } else { Element::Scalar(stored.dtype) }
}

impl Nest {
    /// Whether four places along `axis` are a word of each result of bytes.
    pub(super) fn has_words_along(&self, axis: usize) -> bool {
        let bytes = |(order, _): &(usize, _)| self.result_type(*order) == DType::U8;
        self.results().enumerate().filter(bytes).all(|(_, (at, _))| is_whole(&at, axis))
    }

    /// Whether an invocation has all bytes of each word that it writes.
    pub(super) fn has_words_of_bytes(&self) -> bool {
        if !self.nodes.iter().any(|node| matches!(node, Node::Byte(_))) {
            return true;
        }
        let lanes = if self.reduces() { rows::lanes_of(self) } else { lanes(self) };
        lanes.is_some_and(|axis| self.has_words_along(axis))
    }
}

/// The bindings of sources and results bound so.
pub(super) fn bindings(sources: &[Stored], results: &[Stored]) -> Vec<Binding> {
    let bound = |access: Access| move |&own: &Stored| binding(own.operand, element(own), access);
    sources.iter().map(bound(Access::Read)).chain(results.iter().map(bound(Access::Write))).collect()
}

/// How each result is bound: in vec4s where the four elements of an invocation lie behind each other.
pub(super) fn results(op: &LoopsOp, lanes: Option<usize>) -> Vec<Stored> {
    let wide = |place: usize, (at, target): (Index, Dims)| {
        let elements = elements_in(target, op.stored.result_type(place));
        lanes.is_some_and(|axis| is_whole(&at, axis)) && elements.is_multiple_of(4)
    };
    let stored = |(place, own)| Stored {
        operand: result_operand(place),
        dtype: op.stored_result(place),
        is_wide: wide(place, own),
        name: result_operand(place).name(),
    };
    op.stored.results().enumerate().map(stored).collect()
}

/// Writes what the results are at these places; `first` is where that of the first one is, if it has a name.
pub(super) fn store(text: &mut Text<'_>, results: &[Stored], lanes: Option<usize>, first: Option<&str>) {
    let nest = text.nest;
    for (place, ((&stored, value), (at, _))) in
        results.iter().zip(nest.values()).zip(nest.results()).enumerate()
    {
        let (name, value) = (stored.name, text.value(value));
        match lanes {
            Some(_) if stored.is_wide => {
                let at = match first.filter(|_| place == 0) {
                    Some(first) => first.to_owned(),
                    None => format!("{} / 4u", text.index(&at)),
                };
                let value = match stored.dtype {
                    DType::F16 if text.native_half => format!("vec4<f16>({value})"),
                    DType::F16 => format!("pack_half4({value})"),
                    DType::U8 => format!("pack4xU8(vec4<u32>({value}))"),
                    _ => value,
                };
                text.line(&format!("{name}[{at}] = {value};"));
            }
            // Four elements, each where it belongs.
            Some(axis) if at.axes() & (1 << axis) != 0 => {
                for lane in 0..4 {
                    let at = text.index(&at.shifted(axis, lane));
                    text.line(&format!("{name}[{at}] = {};", one(stored, &format!("{value}[{lane}]"))));
                }
            }
            _ => {
                let named = first.filter(|_| place == 0 && lanes.is_none());
                let at = named.map_or_else(|| text.index(&at), str::to_owned);
                let value = if lanes.is_some() { format!("{value}[0]") } else { value };
                text.line(&format!("{name}[{at}] = {};", one(stored, &value)));
            }
        }
    }
}

/// Elements of an invocation.
fn width(op: &LoopsOp) -> usize {
    if lanes(&op.stored).is_some() { 4 } else { 1 }
}

/// What invocations have: elements, or fours of them.
fn elements(op: &LoopsOp) -> usize {
    elements_in(op.stored.target, op.stored.result_type(0)) / width(op)
}

/// One element as it is stored.
fn one(stored: Stored, value: &str) -> String {
    if stored.dtype == DType::F16 { format!("f16({value})") } else { value.to_owned() }
}

fn text(op: &LoopsOp) -> Arc<Written> {
    op.text.of(1, || written(op))
}

fn written(op: &LoopsOp) -> Written {
    let (nest, lanes) = (&*op.stored, lanes(&op.stored));
    let sources = sources(op, lanes);
    let mut text = Text::new(nest, lanes, &sources);
    text.places(&nest.written.clone(), "i");
    store(&mut text, &results(op, lanes), lanes, Some("i"));
    text.written()
}

/// Whether a kernel takes all scalars that the text names.
pub(super) fn has_scalars_for_all(op: &LoopsOp) -> bool {
    text(op).has_all
}

impl Kernel<LoopsOp> for Flat {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl(NAME, crate::emit::text!("../../../shaders/loops/flat.wgsl"))
            .in_rows()
            .with_ordinary(Ordinary::Size([64, 1, 1]))
    }

    fn offers(&self, op: &LoopsOp, _limits: &Limits) -> Vec<Offer> {
        if op.stored.reduces() { Vec::new() } else { offers(0, [[1, 1, 1]]) }
    }

    fn grid(&self, op: &LoopsOp, _tile: [u32; 3]) -> [u32; 3] {
        lines(elements(op))
    }

    fn precision(&self, op: &LoopsOp) -> Option<Precision> {
        Some(op.precision_of_rows())
    }

    fn bindings(&self, op: &LoopsOp, _choice: &Choice) -> Vec<Binding> {
        let lanes = lanes(&op.stored);
        bindings(&sources(op, lanes), &results(op, lanes))
    }

    fn params(&self, op: &LoopsOp, _choice: &Choice) -> Params {
        let mut params = vec![("elements", unsigned(elements(op)))];
        params.extend_from_slice(&text(op).params);
        params
    }

    fn body(&self, op: &LoopsOp, _choice: &Choice) -> Body {
        text(op).body.clone()
    }

    fn constants(&self, op: &LoopsOp, _choice: &Choice, _limits: &Limits) -> Constants {
        vec![line_width(), ("WIDE", crate::emit::Value::U32(u32::from(width(op) == 4)))]
    }
}
