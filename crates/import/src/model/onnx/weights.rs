//! Where the weights of a file lie.
//!
//! Source: `onnx.proto`, IR version 13.

use super::wire::{Fields, Wire};
use crate::model::build::Kind;
use crate::model::reason::Reason;
use crate::model::spans::{FEWEST, Span, Stored};

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

/// The deepest message: three of them for each graph within a graph.
const MAX_DEPTH: usize = 48;

/// The constants of floats, and of bytes, that have at least [`FEWEST`] elements.
pub(in crate::model) fn weights(file: &[u8]) -> Result<Vec<Span>, Reason> {
    let mut spans = Vec::new();
    let mut open = vec![(Message::Model, file, 0)];
    while let Some((message, bytes, depth)) = open.pop() {
        if depth > MAX_DEPTH {
            return refused!("found messages more than {MAX_DEPTH} deep, wanted fewer");
        }
        if let Message::Tensor = message {
            tensor(file, bytes, &mut spans)?;
            continue;
        }
        let mut fields = Fields::new(bytes);
        while let Some((number, value)) = fields.next()? {
            match (message.field(number), message, number) {
                (Some(field), ..) => open.push((field, value.bytes()?, depth + 1)),
                (None, Message::Graph, 15) => {
                    return refused!("found a sparse constant, whose weights cannot be replaced");
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
        _ => refused!("found {elements} {what}, which cannot be replaced"),
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
        return refused!("found weights in another file, wanted them in the model's own");
    }
    refuse_many(single, "numbers that are stored one by one")?;
    for (part, own) in parts {
        spans.extend(Span::of(file, part, own.unwrap_or(stored)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::with_random_weights;

    /// A field of bytes, of fewer than 128 in number and length.
    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, bytes.len() as u8], bytes].concat()
    }

    /// A file with one constant of these fields; ONNX begins with the version.
    fn file(tensor: &[u8]) -> Vec<u8> {
        [vec![8, 8], field(7, &field(5, tensor))].concat()
    }

    #[test]
    fn weights_are_found_where_they_lie() {
        let floats: Vec<u8> = (0..9).flat_map(|value| (value as f32).to_le_bytes()).collect();
        let kind = |code: u8| vec![2 << 3, code];
        for (tensor, stored) in [
            ([kind(1), field(9, &floats)].concat(), Stored::F32),
            ([kind(1), field(4, &floats)].concat(), Stored::F32),
            ([kind(11), field(10, &floats)].concat(), Stored::F64),
            ([kind(10), field(9, &floats)].concat(), Stored::F16),
            ([kind(3), field(9, &floats)].concat(), Stored::I8),
        ] {
            let file = file(&tensor);
            let bytes = file.len() - floats.len()..file.len();
            assert_eq!(weights(&file), Ok(vec![Span { bytes: bytes.clone(), stored }]), "{stored:?}");
            // The same file but for the weights.
            let other = with_random_weights(&file, 1).expect("other weights");
            assert_eq!(other[..bytes.start], file[..bytes.start]);
            if stored == Stored::F32 {
                let values: Vec<f32> =
                    other[bytes].as_chunks().0.iter().map(|&it| f32::from_le_bytes(it)).collect();
                let mean = values.iter().sum::<f32>() / 9.0;
                assert!((mean - 4.0).abs() < 3.0 && values.iter().all(|value| *value >= 0.0), "{values:?}");
                assert!(values.iter().enumerate().all(|(index, &value)| value != index as f32), "{values:?}");
            }
        }
        // Integers are shapes and indices.
        assert_eq!(weights(&file(&[kind(7), field(9, &floats[..32])].concat())), Ok(Vec::new()));
    }

    #[test]
    fn what_cannot_be_replaced_is_refused() {
        let one: Vec<u8> = [vec![4 << 3 | 5], vec![0; 4]].concat();
        let nested = |depth: usize| {
            // A graph of a node of an attribute of a graph.
            (0..depth).fold(Vec::new(), |inner, _| field(1, &field(5, &field(6, &inner))))
        };
        for (file, words) in [
            (file(&[vec![2 << 3, 1], one.repeat(8)].concat()), "stored one by one"),
            (file(&[vec![2 << 3, 1], vec![14 << 3, 1]].concat()), "in another file"),
            ([vec![8, 8], field(7, &field(15, &[]))].concat(), "a sparse constant"),
            ([vec![8, 8], field(7, &nested(17))].concat(), "more than 48 deep"),
        ] {
            let error = with_random_weights(&file, 0).expect_err(words);
            assert!(error.to_string().contains(words), "{words}: {error}");
        }
    }
}
