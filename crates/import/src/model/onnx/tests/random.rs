//! Operators that draw: what is refused, with the reason, and what is a dropout in inference.

use super::writer::{Attribute, File, Node, floats, integers};
use super::{refused, run, tensor};

fn file(op: &'static str, inputs: &[&'static str], attributes: Vec<Attribute>) -> File<'static> {
    File {
        inputs: vec![("x", vec![2, 3])],
        outputs: vec!["y"],
        constants: vec![
            floats("half", &[], &[0.5]),
            floats("much", &[], &[1.5]),
            integers("true", &[], &[1]),
            integers("false", &[], &[0]),
        ],
        nodes: vec![
            Node { attributes, ..Node::new(op, inputs, &["drawn"]) },
            Node::new("Identity", &["drawn"], &["y"]),
        ],
        ..File::default()
    }
}

#[test]
fn what_cannot_be_drawn_is_refused() {
    use Attribute::{Float, Int};
    let x: &[&'static str] = &["x"];
    for (file, wanted) in [
        (file("RandomNormal", &[], vec![]), "found no shape"),
        (file("RandomNormalLike", x, vec![Int("dtype", 7)]), "random numbers of I64, wanted floats"),
        (file("RandomUniformLike", x, vec![Float("low", 2.0)]), "uniform numbers from 2 to 1"),
        (file("RandomNormalLike", x, vec![Float("scale", -1.0)]), "deviation -1"),
        (file("Multinomial", x, vec![Int("sample_size", 0)]), "sample size of 0"),
        (file("Multinomial", x, vec![Int("dtype", 1)]), "classes of F32, wanted I32 or I64"),
        (file("Dropout", &["x", "much", "true"], vec![]), "a ratio of 1.5, wanted one from 0 to 1"),
    ] {
        let found = refused(&file.bytes());
        assert!(found.contains(wanted), "{found}, not {wanted}");
    }
    let mut of_three = file("Multinomial", x, vec![]);
    of_three.inputs = vec![("x", vec![2, 3, 4])];
    assert!(refused(&of_three.bytes()).contains("wanted rows and columns"));
}

#[test]
fn a_dropout_in_inference_changes_nothing() {
    let x = tensor(&[2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    for inputs in [&["x"][..], &["x", "half"], &["x", "half", "false"], &["x", "", "false"]] {
        assert_eq!(run(&file("Dropout", inputs, vec![]), &x)[0], x, "{inputs:?}");
    }
    let dropped = run(&file("Dropout", &["x", "half", "true"], vec![]), &x).remove(0);
    assert!(dropped.to_f32().iter().zip(x.to_f32().iter()).all(|(y, x)| *y == 0.0 || *y == 2.0 * x));
}
