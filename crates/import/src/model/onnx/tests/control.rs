//! Networks within operators, and weights that many operators share.

use super::refused;
use super::writer::{Attribute, File, Node, floats, integers, network};
use diptych::{LoadOptions, Model};

/// A file of one operator with a network.
fn around(op: &'static str, inputs: &[&'static str], attributes: Vec<Attribute>) -> File<'static> {
    File {
        inputs: vec![("x", vec![3, 2]), ("z", vec![2])],
        outputs: vec!["y"],
        constants: vec![integers("three", &[], &[3]), integers("one", &[], &[1])],
        nodes: vec![Node { attributes, ..Node::new(op, inputs, &["y"]) }],
        ..File::default()
    }
}

/// A body that adds its last input to itself.
fn body(inputs: &[&'static str], outputs: &[&'static str]) -> Vec<u8> {
    let last = inputs.last().copied().unwrap_or("x");
    let nodes: Vec<Node> = outputs.iter().map(|&output| Node::new("Add", &[last, last], &[output])).collect();
    network(inputs, &nodes, outputs)
}

#[test]
fn a_network_within_an_operator_has_as_many_inputs_as_it_is_given() {
    let scan = |inputs: &[&'static str], body: Vec<u8>| {
        around("Scan", inputs, vec![Attribute::Int("num_scan_inputs", 1), Attribute::Graph("body", body)])
    };
    let repeat = |body: Vec<u8>| around("Loop", &["three", "one", "z"], vec![Attribute::Graph("body", body)]);
    let branch = |then: Vec<u8>| {
        let other = Attribute::Graph("else_branch", body(&[], &["b"]));
        around("If", &["one"], vec![Attribute::Graph("then_branch", then), other])
    };
    for (file, words) in [
        (scan(&["z", "x"], body(&["a"], &["b"])), "a network of 1 inputs within the operator, wanted 2"),
        (scan(&["x"], body(&["a", "c"], &["b"])), "a network of 2 inputs within the operator, wanted 1"),
        (scan(&["x"], body(&[], &["b"])), "a network of 0 inputs within the operator, wanted 1"),
        (repeat(body(&["i", "a"], &["go", "b"])), "a network of 2 inputs within the operator, wanted 3"),
        (repeat(body(&["i", "go_in", "a", "c"], &["go", "b"])), "a network of 4 inputs within the operator"),
        (branch(body(&["a"], &["b"])), "a network of 1 inputs within the operator, wanted 0"),
    ] {
        let told = refused(&file.bytes());
        assert!(told.contains(words), "{words}: {told}");
    }
    for file in [scan(&["x"], body(&["a"], &["b"])), branch(body(&[], &["b"]))] {
        assert!(Model::from_bytes(&file.bytes(), &LoadOptions::default()).is_ok());
    }
}

#[test]
fn a_transposed_weight_that_many_products_read_is_one() {
    let mut nodes = Vec::new();
    for (x, y) in [("x", "a"), ("a", "b"), ("b", "y")] {
        nodes.push(Node {
            attributes: vec![Attribute::Int("transB", 1)],
            ..Node::new("Gemm", &[x, "w"], &[y])
        });
    }
    let weight: Vec<f32> = (0..144).map(|at| at as f32 * 0.01).collect();
    let file = File {
        inputs: vec![("x", vec![2, 12])],
        outputs: vec!["y"],
        constants: vec![floats("w", &[12, 12], &weight)],
        nodes,
        ..File::default()
    };
    let model = Model::from_bytes(&file.bytes(), &LoadOptions::default()).expect("a file that is read");
    let places: Vec<*const u8> = model
        .graph
        .all_values()
        .filter_map(|(value, _)| model.graph.tensor(value).expect("a value"))
        .filter(|tensor| tensor.dims().extents() == [12, 12])
        .map(|tensor| tensor.bytes().as_ptr())
        .collect();
    assert!(!places.is_empty() && places.iter().all(|place| *place == places[0]), "{places:?}");
}
