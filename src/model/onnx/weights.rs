//! Where the weights of a file lie.
//!
//! Source: `onnx.proto`, IR version 13.

use super::kind::Kind;
use super::wire::{Fields, Wire};
use crate::model::budget::Reason;
use crate::model::weights::{FEWEST, Span, Stored};

/// What a message is, as far as it leads to constants.
#[derive(Debug, Clone, Copy)]
enum Message {
    Model,
    Function,
    Graph,
    Node,
    Attribute,
    Tensor,
}

impl Message {
    /// What field `number` is, if it leads to constants.
    const fn field(self, number: u32) -> Option<Message> {
        Some(match (self, number) {
            (Message::Model, 7) | (Message::Attribute, 6 | 11) => Message::Graph,
            (Message::Model, 25) => Message::Function,
            (Message::Function, 7) | (Message::Graph, 1) => Message::Node,
            (Message::Function, 11) | (Message::Node, 5) => Message::Attribute,
            (Message::Graph, 5) | (Message::Attribute, 5 | 10) => Message::Tensor,
            _ => return None,
        })
    }
}

/// The constants of floats, and of bytes, that have at least [`FEWEST`] elements.
pub(in crate::model) fn weights(file: &[u8]) -> Result<Vec<Span>, Reason> {
    let mut spans = Vec::new();
    // The file is not deeper than it is long.
    let mut open = vec![(Message::Model, file)];
    while let Some((message, bytes)) = open.pop() {
        if let Message::Tensor = message {
            tensor(file, bytes, &mut spans)?;
            continue;
        }
        let mut fields = Fields::new(bytes);
        while let Some((number, value)) = fields.next()? {
            match (message.field(number), message, number) {
                (Some(field), ..) => open.push((field, value.bytes()?)),
                (None, Message::Graph, 15) => {
                    return Err("found a sparse constant, whose weights cannot be replaced".to_owned());
                }
                (None, Message::Attribute, 7) => {
                    let floats = value.bytes().map_or(1, |bytes| bytes.len() / 4);
                    refuse_many(floats, "numbers in an attribute")?;
                }
                _ => (),
            }
        }
    }
    Ok(spans)
}

fn refuse_many(elements: usize, what: &str) -> Result<(), Reason> {
    match elements {
        0..FEWEST => Ok(()),
        _ => Err(format!("found {elements} {what}, which cannot be replaced")),
    }
}

fn tensor(file: &[u8], bytes: &[u8], spans: &mut Vec<Span>) -> Result<(), Reason> {
    let (mut kind, mut parts, mut single, mut elsewhere) = (0, Vec::new(), 0, false);
    let mut fields = Fields::new(bytes);
    while let Some((number, value)) = fields.next()? {
        match (number, value) {
            (2, value) => kind = value.integer()?,
            (4, Wire::Bytes(part)) => parts.push((part, Some(Stored::F32))),
            (10, Wire::Bytes(part)) => parts.push((part, Some(Stored::F64))),
            (9, value) => parts.push((value.bytes()?, None)),
            (4 | 10, _) => single += 1,
            (14, value) => elsewhere |= value.integer()? == 1,
            _ => (),
        }
    }
    let stored = match Kind::of(kind).ok() {
        Some(Kind::F32) => Stored::F32,
        Some(Kind::F64) => Stored::F64,
        Some(Kind::F16) => Stored::F16,
        Some(Kind::Bf16) => Stored::Bf16,
        Some(Kind::I8) => Stored::I8,
        Some(Kind::U8) => Stored::U8,
        _ => return Ok(()),
    };
    if elsewhere {
        return Err("found weights in another file, wanted them in the model's own".to_owned());
    }
    refuse_many(single, "numbers that are stored one by one")?;
    for (part, own) in parts {
        spans.extend(Span::of(file, part, own.unwrap_or(stored)));
    }
    Ok(())
}
