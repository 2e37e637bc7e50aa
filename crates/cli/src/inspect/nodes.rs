//! A model's nodes, as they are reported.

use anyhow::Result;
use diptych::{Graph, Node, Precision, Value};

/// A node of the graph.
pub(super) struct NodeRow {
    pub(super) name: String,
    pub(super) op: &'static str,
    pub(super) output: String,
    pub(super) flops: u64,
    /// The values it reads that are no constants, and those that it writes.
    pub(super) reads: Vec<Value>,
    pub(super) writes: Vec<Value>,
    /// Its constants: the operand, and what it holds.
    pub(super) constants: Vec<(&'static str, String)>,
    /// The options of its operator.
    pub(super) options: Vec<(String, String)>,
}

/// The nodes in the graph's order.
pub(super) fn nodes(graph: &Graph) -> Result<Vec<NodeRow>> {
    graph.nodes().iter().map(|node| row(graph, node)).collect()
}

fn row(graph: &Graph, node: &Node) -> Result<NodeRow> {
    let dims = node.outputs().iter().map(|&value| Ok(graph.dims(value)?.to_string()));
    let (mut reads, mut constants) = (Vec::new(), Vec::new());
    for &(operand, value) in node.inputs() {
        match graph.tensor(value)? {
            None => reads.push(value),
            Some(tensor) => {
                constants.push((operand.name(), format!("{} {}", tensor.dims(), tensor.dtype())));
            }
        }
    }
    Ok(NodeRow {
        name: node.name().to_owned(),
        op: node.operator().name(),
        output: dims.collect::<Result<Vec<_>>>()?.join(", "),
        flops: graph.op(node, Precision::F32)?.map_or(0, |op| op.flops()),
        reads,
        writes: node.outputs().to_vec(),
        constants,
        options: options(&format!("{:?}", node.operator())),
    })
}

/// The longest text of an option: that of a kernel may have pages.
const LONGEST: usize = 300;

/// The fields of a structure from its text for debugging: `Pool { size: [2, 2], exact: true }` has `size` and `exact`.
fn options(text: &str) -> Vec<(String, String)> {
    let Some((_, fields)) = text.split_once(" { ") else { return Vec::new() };
    let fields = fields.strip_suffix('}').unwrap_or(fields).trim_end();
    let (mut depth, mut quoted, mut escaped, mut start) = (0usize, false, false, 0);
    let mut parts = Vec::new();
    for (at, letter) in fields.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&fields[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&fields[start..]);
    let field = |part: &str| {
        let (name, value) = part.trim().split_once(": ")?;
        let value = match value.chars().count() > LONGEST {
            true => value.chars().take(LONGEST).chain("..".chars()).collect(),
            false => value.to_owned(),
        };
        Some((name.to_owned(), value))
    };
    parts.into_iter().filter_map(field).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_the_fields_of_a_structure() {
        let found = options(
            "Conv { stride: [2, 1], border: Some(Border { top: 1, left: 0 }), text: \"a, } \\\" b\", last: Same }",
        );
        let wanted = [
            ("stride", "[2, 1]"),
            ("border", "Some(Border { top: 1, left: 0 })"),
            ("text", "\"a, } \\\" b\""),
            ("last", "Same"),
        ];
        assert_eq!(found, wanted.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert!(options("Softmax").is_empty());
        let long = options(&format!("Custom {{ text: \"{}\" }}", "x".repeat(1000)));
        assert_eq!(long[0].1.chars().count(), LONGEST + 2);
    }
}
