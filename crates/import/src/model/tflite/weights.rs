//! Where the weights of a file lie.

use super::schema;
use super::tables::at;
use crate::model::reason::Reason;
use crate::model::spans::{Span, Stored};

/// The constants of floats, and of integers that stand for them.
pub(in crate::model) fn weights(file: &[u8]) -> Result<Vec<Span>, Reason> {
    let model = schema::root(file).map_err(|error| format!("the file is damaged or cut short: {error}"))?;
    let (Some(subgraphs), Some(buffers)) = (model.subgraphs(), model.buffers()) else {
        return Ok(Vec::new());
    };
    let mut spans = Vec::new();
    for tensor in subgraphs.iter().filter_map(|subgraph| subgraph.tensors()).flatten() {
        let scaled =
            tensor.quantization().and_then(|steps| steps.scale()).is_some_and(|scale| !scale.is_empty());
        let stored = match (tensor.element_type(), scaled) {
            (0, _) => Stored::F32,
            (1, _) => Stored::F16,
            (10, _) => Stored::F64,
            (2, true) => Stored::I32,
            (3, true) => Stored::U8,
            (7, true) => Stored::I16,
            (9, true) => Stored::I8,
            (17, true) => return refused!("found weights of four bits, which cannot be replaced"),
            _ => continue,
        };
        let Some(buffer) = at(buffers, tensor.buffer() as usize) else { continue };
        if buffer.size() > 0 {
            return refused!("found weights behind the FlatBuffer, which cannot be replaced");
        }
        spans.extend(buffer.data().and_then(|data| Span::of(file, data.bytes(), stored)));
    }
    Ok(spans)
}
