//! ONNX files as trees.

use super::mutate::Format;
use super::tree::Tree;

/// The format.
pub const FORMAT: Format = Format { read, write, words: super::words::onnx };

/// The deepest message.
const DEEPEST: usize = 40;

/// What a field of bytes is, where it is no text and no data.
enum Kind {
    Message(&'static Message),
    /// Numbers of so many bytes; 0 for those of variable length.
    Packed(u8),
}

/// The fields of a message that are no text and no data.
struct Message(&'static [(u32, Kind)]);

use Kind::{Message as Of, Packed};

static MODEL: Message = Message(&[(7, Of(&GRAPH)), (8, Of(&PLAIN)), (14, Of(&PLAIN)), (25, Of(&FUNCTION))]);
static PLAIN: Message = Message(&[]);
static GRAPH: Message = Message(&[
    (1, Of(&NODE)),
    (5, Of(&TENSOR)),
    (11, Of(&VALUE)),
    (12, Of(&VALUE)),
    (13, Of(&VALUE)),
    (15, Of(&SPARSE)),
]);
static NODE: Message = Message(&[(5, Of(&ATTRIBUTE))]);
static ATTRIBUTE: Message = Message(&[
    (5, Of(&TENSOR)),
    (6, Of(&GRAPH)),
    (7, Packed(4)),
    (8, Packed(0)),
    (10, Of(&TENSOR)),
    (11, Of(&GRAPH)),
]);
static TENSOR: Message = Message(&[
    (1, Packed(0)),
    (4, Packed(4)),
    (5, Packed(0)),
    (7, Packed(0)),
    (10, Packed(8)),
    (11, Packed(0)),
    (13, Of(&PLAIN)),
]);
static SPARSE: Message = Message(&[(1, Of(&TENSOR)), (2, Of(&TENSOR)), (3, Packed(0))]);
static VALUE: Message = Message(&[(2, Of(&TYPE))]);
static TYPE: Message = Message(&[(1, Of(&TENSOR_TYPE)), (4, Of(&ELEMENT)), (9, Of(&ELEMENT))]);
static ELEMENT: Message = Message(&[(1, Of(&TYPE))]);
static TENSOR_TYPE: Message = Message(&[(2, Of(&SHAPE))]);
static SHAPE: Message = Message(&[(1, Of(&PLAIN))]);
static FUNCTION: Message = Message(&[(7, Of(&NODE)), (9, Of(&PLAIN)), (11, Of(&ATTRIBUTE))]);

fn read(bytes: &[u8]) -> Option<Tree> {
    message(bytes, &MODEL, 0)
}

fn message(mut bytes: &[u8], kinds: &'static Message, depth: usize) -> Option<Tree> {
    if depth > DEEPEST {
        return None;
    }
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = variable(&mut bytes)?;
        let number = u32::try_from(tag >> 3).ok()?;
        let value = match tag & 7 {
            0 => Tree::Number { value: variable(&mut bytes)?, width: 0 },
            1 => Tree::Number { value: fixed(&mut bytes, 8)?, width: 8 },
            5 => Tree::Number { value: fixed(&mut bytes, 4)?, width: 4 },
            2 => {
                let length = usize::try_from(variable(&mut bytes)?).ok()?;
                let (own, rest) = bytes.split_at_checked(length)?;
                bytes = rest;
                match kinds.0.iter().find(|(known, _)| *known == number) {
                    Some((_, Of(kinds))) => message(own, kinds, depth + 1)?,
                    Some((_, Packed(width))) => numbers(own, *width)?,
                    None => Tree::Bytes(own.to_vec()),
                }
            }
            _ => return None,
        };
        fields.push((number, value));
    }
    Some(Tree::Table(fields))
}

fn numbers(mut bytes: &[u8], width: u8) -> Option<Tree> {
    let mut values = Vec::new();
    while !bytes.is_empty() {
        values.push(if width == 0 { variable(&mut bytes)? } else { fixed(&mut bytes, width.into())? });
    }
    Some(Tree::Numbers { values, width })
}

fn fixed(bytes: &mut &[u8], width: usize) -> Option<u64> {
    let (own, rest) = bytes.split_at_checked(width)?;
    *bytes = rest;
    let mut value = [0; 8];
    value[..width].copy_from_slice(own);
    Some(u64::from_le_bytes(value))
}

fn variable(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// A number of variable length.
fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_of_width(out: &mut Vec<u8>, value: u64, width: u8) {
    match width {
        4 | 8 => out.extend(&value.to_le_bytes()[..width.into()]),
        _ => put(out, value),
    }
}

fn write(tree: &Tree) -> Vec<u8> {
    let mut out = Vec::new();
    match tree {
        Tree::Number { .. } | Tree::Numbers { .. } | Tree::Bytes(_) => value(&mut out, tree),
        Tree::Table(fields) => {
            for (number, field) in fields {
                let wire = match field {
                    Tree::Number { width: 8, .. } => 1,
                    Tree::Number { width: 4, .. } => 5,
                    Tree::Number { .. } => 0,
                    _ => 2,
                };
                put(&mut out, u64::from(*number) << 3 | wire);
                value(&mut out, field);
            }
        }
        Tree::Tables(tables) => tables.iter().for_each(|table| out.extend(write(table))),
    }
    out
}

/// What is behind a field's tag.
fn value(out: &mut Vec<u8>, tree: &Tree) {
    let inner = match tree {
        Tree::Number { value, width } => return put_of_width(out, *value, *width),
        Tree::Numbers { values, width } => {
            let mut inner = Vec::new();
            values.iter().for_each(|value| put_of_width(&mut inner, *value, *width));
            inner
        }
        Tree::Bytes(bytes) => {
            put(out, bytes.len() as u64);
            return out.extend(bytes);
        }
        Tree::Table(_) | Tree::Tables(_) => write(tree),
    };
    put(out, inner.len() as u64);
    out.extend(inner);
}
