//! What single operators are made into.

use super::writer::{Attribute, File, Node, floats, integers, small};
use super::{Model, refused, run, tensor};
use crate::model::LoadOptions;

fn elements(file: &File<'_>, extents: &[usize], values: &[f32]) -> Vec<f32> {
    let outputs = run(file, &tensor(extents, values.to_vec()));
    outputs.first().expect("an output").to_nhwc().into_owned()
}

#[test]
fn operators_of_constants_are_computed_while_the_file_is_read() {
    let file = File {
        inputs: vec![("x", vec![1, 1, 2])],
        outputs: vec!["y"],
        constants: vec![floats("v", &[1, 1, 2], &[3.0, 4.0]), integers("axes", &[1], &[2])],
        nodes: vec![
            Node::new("ReduceL2", &["v", "axes"], &["length"]),
            Node::new("Div", &["v", "length"], &["w"]),
            Node::new("Softmax", &["w"], &["shares"]),
            Node {
                attributes: vec![Attribute::Int("axis", 2)],
                ..Node::new("ArgMax", &["shares"], &["place"])
            },
            Node::new("Squeeze", &["place"], &["number"]),
            Node::new("Unsqueeze", &["w", "number"], &["weights"]),
            Node::new("Squeeze", &["weights", "number"], &["factors"]),
            Node::new("Mul", &["x", "factors"], &["y"]),
        ],
        ..File::default()
    };
    let model = Model::from_bytes(&file.bytes(), &LoadOptions::default()).expect("a file that is read");
    assert_eq!(model.graph.nodes().len(), 1);
    let found = elements(&file, &[1, 1, 2], &[10.0, 100.0]);
    assert!((found[0] - 6.0).abs() < 1e-5 && (found[1] - 80.0).abs() < 1e-4, "{found:?}");
}

#[test]
fn integers_less_their_zero_points_do_not_wrap() {
    let file = File {
        inputs: vec![("x", vec![1, 2])],
        outputs: vec!["y"],
        constants: vec![small("w", &[2, 1], &[1, 200]), small("zero", &[], &[100]), small("none", &[], &[0])],
        nodes: vec![Node::new("MatMulInteger", &["x", "w", "none", "zero"], &["y"])],
        ..File::default()
    };
    assert_eq!(elements(&file, &[1, 2], &[2.0, 1.0]), [-98.0]);
}

#[test]
fn rows_of_boxes_that_are_not_chosen_are_minus_one() {
    // The second box is the first one; the third lies apart.
    let boxes = [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0];
    let file = File {
        inputs: vec![("x", vec![1, 2, 3])],
        outputs: vec!["y"],
        constants: vec![
            floats("boxes", &[1, 3, 4], &boxes),
            integers("most", &[], &[3]),
            floats("overlap", &[], &[0.5]),
            floats("least", &[], &[0.2]),
        ],
        nodes: vec![Node::new("NonMaxSuppression", &["boxes", "x", "most", "overlap", "least"], &["y"])],
        ..File::default()
    };
    let found = elements(&file, &[1, 2, 3], &[0.5, 0.9, 0.1, 0.3, 0.1, 0.8]);
    let chosen = [0.0, 0.0, 1.0, 0.0, 1.0, 2.0, 0.0, 1.0, 0.0];
    assert_eq!(found[..9], chosen);
    assert_eq!(found[9..], [-1.0; 9]);
}

#[test]
fn sequences_are_lists_that_the_loader_keeps() {
    let mut file = File {
        inputs: vec![("x", vec![3, 2])],
        outputs: vec!["y"],
        constants: vec![
            integers("sizes", &[2], &[1, 2]),
            integers("last", &[], &[-1]),
            integers("end", &[], &[2]),
        ],
        nodes: vec![
            Node::new("SplitToSequence", &["x", "sizes"], &["parts"]),
            Node::new("SequenceAt", &["parts", "last"], &["rows"]),
            Node::new("SequenceInsert", &["parts", "rows"], &["more"]),
            Node::new("SequenceErase", &["more", "last"], &["again"]),
            Node::new("SequenceInsert", &["again", "rows", "last"], &["three"]),
            Node {
                attributes: vec![Attribute::Int("axis", 0)],
                ..Node::new("ConcatFromSequence", &["three"], &["y"])
            },
        ],
        ..File::default()
    };
    let found = elements(&file, &[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(found, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 3.0, 4.0, 5.0, 6.0]);
    file.nodes[1].inputs[1] = "end";
    assert!(refused(&file.bytes()).contains("position 2 in a sequence of 2"));
    file.nodes.truncate(1);
    file.nodes.push(Node::new("Relu", &["parts"], &["y"]));
    assert!(refused(&file.bytes()).contains("wanted a tensor"));
}

#[test]
fn weights_of_four_bits_are_unpacked() {
    // A column of 17 rows in blocks of 16: the low half of a byte comes first, and 8 is zero.
    let mut packed = [0x88u8; 16];
    (packed[0], packed[8]) = (0x9a, 0x87);
    let file = File {
        inputs: vec![("x", vec![1, 17])],
        outputs: vec!["y"],
        constants: vec![small("w", &[1, 2, 8], &packed), floats("scales", &[2], &[0.5, 2.0])],
        nodes: vec![Node {
            domain: "com.microsoft",
            attributes: vec![
                Attribute::Int("K", 17),
                Attribute::Int("N", 1),
                Attribute::Int("bits", 4),
                Attribute::Int("block_size", 16),
            ],
            ..Node::new("MatMulNBits", &["x", "w", "scales"], &["y"])
        }],
        ..File::default()
    };
    let x: Vec<f32> = (0..17).map(|at| [10.0, 100.0].get(at).copied().unwrap_or(1.0)).collect();
    // (10 - 8) / 2 * 10 + (9 - 8) / 2 * 100 + (7 - 8) * 2
    assert_eq!(elements(&file, &[1, 17], &x), [10.0 + 50.0 - 2.0]);
}
