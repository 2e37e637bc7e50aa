//! What single operators are made into.

use super::writer::{Attribute, File, Node, floats, integers, network, nibbles, small};
use super::{computed, refused, run, tensor};
use diptych::LoadOptions;
use diptych::Model;

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
fn a_box_is_chosen_above_the_least_score_alone() {
    let boxes = [0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0, 5.0, 5.0];
    let chosen = |least: f32, scores: &[f32]| {
        let file = File {
            inputs: vec![("x", vec![1, 1, 3])],
            outputs: vec!["y"],
            constants: vec![
                floats("boxes", &[1, 3, 4], &boxes),
                integers("most", &[], &[3]),
                floats("overlap", &[], &[0.5]),
                floats("least", &[], &[least]),
            ],
            nodes: vec![Node::new("NonMaxSuppression", &["boxes", "x", "most", "overlap", "least"], &["y"])],
            ..File::default()
        };
        elements(&file, &[1, 1, 3], scores)[2..].iter().step_by(3).copied().collect::<Vec<_>>()
    };
    assert_eq!(chosen(0.5, &[0.5, 0.25, 0.75]), [2.0, -1.0, -1.0]);
    assert_eq!(chosen(0.0, &[0.0, 0.25, -1.0]), [1.0, -1.0, -1.0]);
}

#[test]
fn sequences_are_turned_around_by_lengths_that_are_computed() {
    let file = File {
        inputs: vec![("x", vec![2])],
        outputs: vec!["y"],
        constants: vec![floats("v", &[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])],
        nodes: vec![
            Node { attributes: vec![Attribute::Int("to", 7)], ..Node::new("Cast", &["x"], &["lengths"]) },
            Node::new("ReverseSequence", &["v", "lengths"], &["y"]),
        ],
        ..File::default()
    };
    assert_eq!(elements(&file, &[2], &[2.0, 3.0]), [3.0, 6.0, 1.0, 4.0, 5.0, 2.0]);
}

#[test]
fn rows_of_indices_count_from_the_end_behind_shared_axes() {
    let file = File {
        inputs: vec![("x", vec![2, 1])],
        outputs: vec!["y"],
        constants: vec![floats("v", &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])],
        nodes: vec![
            Node { attributes: vec![Attribute::Int("to", 7)], ..Node::new("Cast", &["x"], &["index"]) },
            Node {
                attributes: vec![Attribute::Int("batch_dims", 1)],
                ..Node::new("GatherND", &["v", "index"], &["y"])
            },
        ],
        ..File::default()
    };
    assert_eq!(elements(&file, &[2, 1], &[-1.0, 1.0]), [3.0, 5.0]);
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

/// A loop that adds `x` to what is carried while that is less than ten times `x`.
fn loop_file(inputs: &[&'static str]) -> File<'static> {
    let body = network(
        &["turn", "before", "sum"],
        &[Node::new("Add", &["sum", "x"], &["next"]), Node::new("Less", &["next", "bound"], &["again"])],
        &["again", "next"],
    );
    File {
        inputs: vec![("x", vec![1])],
        outputs: vec!["y"],
        constants: vec![floats("ten", &[1], &[10.0]), integers("three", &[], &[3])],
        nodes: vec![
            Node::new("Mul", &["x", "ten"], &["bound"]),
            Node::new("Greater", &["bound", "x"], &["first"]),
            Node { attributes: vec![Attribute::Graph("body", body)], ..Node::new("Loop", inputs, &["y"]) },
        ],
        ..File::default()
    }
}

#[test]
fn loops_go_on_as_long_as_a_computed_condition_says() {
    for (inputs, x, wanted) in [
        (&["", "first", "x"][..], 1.0, 10.0),
        (&["", "first", "x"], -1.0, -1.0),
        // The first turn is taken in any case.
        (&["", "", "x"], 2.0, 20.0),
        (&["", "", "x"], -1.0, -2.0),
        (&["three", "first", "x"], 1.0, 4.0),
        (&["three", "", "x"], 1.0, 4.0),
    ] {
        assert_eq!(elements(&loop_file(inputs), &[1], &[x]), [wanted], "{inputs:?} of {x}");
    }
    let mut file = loop_file(&["", "first", "x"]);
    let growing = network(
        &["turn", "before", "sum"],
        &[
            Node {
                attributes: vec![Attribute::Int("axis", 0)],
                ..Node::new("Concat", &["sum", "x"], &["next"])
            },
            Node::new("Greater", &["x", "bound"], &["again"]),
        ],
        &["again", "next"],
    );
    file.nodes[2].attributes = vec![Attribute::Graph("body", growing)];
    let error = refused(&file.bytes());
    assert!(error.contains("Loop") && error.contains("extents that stay"), "{error}");
}

#[test]
fn what_is_the_same_is_kept_once() {
    let of = |outputs: &[&'static str], sorted: i64| File {
        inputs: vec![("x", vec![6])],
        outputs: outputs.to_vec(),
        nodes: vec![Node {
            attributes: vec![Attribute::Int("sorted", sorted)],
            ..Node::new("Unique", &["x"], &["y", "first", "of", "counts"])
        }],
        ..File::default()
    };
    let x = tensor(&[6], vec![2.0, 1.0, 1.0, 3.0, 4.0, 3.0]);
    let all = ["y", "first", "of", "counts"];
    let lists = |sorted| -> Vec<Vec<f32>> {
        run(&of(&all, sorted), &x).iter().map(|tensor| tensor.to_f32().to_vec()).collect()
    };
    let sorted = [
        vec![1.0, 2.0, 3.0, 4.0, 0.0, 0.0],
        vec![1.0, 0.0, 3.0, 4.0, -1.0, -1.0],
        vec![1.0, 0.0, 0.0, 2.0, 3.0, 2.0],
        vec![2.0, 1.0, 2.0, 1.0, 0.0, 0.0],
    ];
    assert_eq!(lists(1), sorted);
    let as_they_come = [
        vec![2.0, 1.0, 3.0, 4.0, 0.0, 0.0],
        vec![0.0, 1.0, 3.0, 4.0, -1.0, -1.0],
        vec![0.0, 1.0, 1.0, 2.0, 3.0, 2.0],
        vec![1.0, 2.0, 2.0, 1.0, 0.0, 0.0],
    ];
    assert_eq!(lists(0), as_they_come);
    // What would be computed of the elements that are not there is not known.
    let mut read = of(&["z"], 1);
    read.nodes.push(Node::new("ReduceMean", &["y"], &["z"]));
    let error = refused(&read.bytes());
    assert!(error.contains("Unique") && error.contains("wanted a constant"), "{error}");
    // The inverse has as many elements as the input.
    let mut read = of(&["z"], 1);
    read.nodes.push(Node::new("Relu", &["of"], &["z"]));
    assert_eq!(elements(&read, &[6], &x.to_f32()), sorted[2]);
}

#[test]
fn places_of_what_is_not_zero_are_columns() {
    let file = File {
        inputs: vec![("x", vec![2, 2])],
        outputs: vec!["y"],
        nodes: vec![Node::new("NonZero", &["x"], &["y"])],
        ..File::default()
    };
    let found = elements(&file, &[2, 2], &[0.0, 5.0, -1.0, 0.0]);
    assert_eq!(found, [0.0, 1.0, -1.0, -1.0, 1.0, 0.0, -1.0, -1.0]);
}

#[test]
fn regions_have_as_many_samples_as_pixels_where_none_are_asked_for() {
    let file = File {
        inputs: vec![("x", vec![1, 1, 4, 4])],
        outputs: vec!["y"],
        constants: vec![floats("boxes", &[1, 4], &[0.5, 0.5, 4.5, 4.5]), integers("image", &[1], &[0])],
        nodes: vec![Node {
            attributes: vec![Attribute::Int("output_height", 2), Attribute::Int("output_width", 2)],
            ..Node::new("RoiAlign", &["x", "boxes", "image"], &["y"])
        }],
        ..File::default()
    };
    let x: Vec<f32> = (0..16).map(|value| value as f32).collect();
    // Bins of two pixels with two samples each way, half a pixel behind a pixel.
    let along = |bin: f32| -> [f32; 2] { [2.0 * bin + 0.5, 2.0 * bin + 1.5].map(|place| place.min(3.0)) };
    let mean = |bin: f32| along(bin).iter().sum::<f32>() / 2.0;
    let wanted = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]].map(|[y, x]| 4.0 * mean(y) + mean(x));
    assert_eq!(elements(&file, &[1, 1, 4, 4], &x), wanted);
}

#[test]
fn constants_of_four_bits_are_integers() {
    let file = File {
        inputs: vec![("x", vec![1, 2])],
        outputs: vec!["y"],
        constants: vec![
            nibbles("w", &[2, 1], &[0x8F]),
            floats("scale", &[], &[0.5]),
            nibbles("zero", &[], &[1]),
        ],
        nodes: vec![
            Node::new("DequantizeLinear", &["w", "scale", "zero"], &["weights"]),
            Node::new("MatMul", &["x", "weights"], &["y"]),
        ],
        ..File::default()
    };
    // (-1 - 1) / 2 and (-8 - 1) / 2.
    assert_eq!(elements(&file, &[1, 2], &[1.0, 10.0]), [-46.0]);
}

#[test]
fn updates_are_scattered_to_computed_places_in_their_order() {
    let of = |op: &'static str, reduction: Option<&'static str>, updates: &[f32]| File {
        inputs: vec![("x", vec![2, 1])],
        outputs: vec!["y"],
        constants: vec![floats("data", &[3, 1], &[1.0, 2.0, 3.0]), floats("updates", &[2, 1], updates)],
        nodes: vec![Node {
            attributes: reduction.map(|name| Attribute::Text("reduction", name)).into_iter().collect(),
            ..Node::new(op, &["data", "x", "updates"], &["y"])
        }],
        ..File::default()
    };
    for op in ["ScatterElements", "ScatterND"] {
        for (reduction, indices, wanted) in [
            (None, [2.0, 0.0], [20.0, 2.0, 10.0]),
            (None, [1.0, 1.0], [1.0, 20.0, 3.0]),
            (Some("add"), [-1.0, -1.0], [1.0, 2.0, 33.0]),
            (Some("max"), [0.0, 0.0], [20.0, 2.0, 3.0]),
        ] {
            let found = elements(&of(op, reduction, &[10.0, 20.0]), &[2, 1], &indices);
            assert_eq!(found, wanted, "{op} {reduction:?} at {indices:?}");
        }
    }
    let file = of("ScatterND", None, &[10.0, 20.0]);
    let model = Model::from_bytes(&file.bytes(), &LoadOptions::default()).expect("a file that is read");
    let context = diptych::Context::new(diptych::Backend::Cpu).expect("the CPU");
    let mut session = diptych::Session::new(&context, &model.graph, Default::default()).expect("a session");
    let error = session.run(&[("x", &tensor(&[2, 1], vec![0.0, 3.0]))]).expect_err("beyond").to_string();
    assert!(error.contains("axis 3") && error.contains("within the data"), "{error}");
}

/// The last hidden values of both directions of a layer of `steps` steps, with weights of 8 bits or the floats that they
/// stand for.
fn recurrent(steps: usize, packed: bool) -> File<'static> {
    let (features, gates) = (2, 8);
    let bits = |seed: usize| -> Vec<u8> {
        (0..2 * features * gates).map(|at| ((at * 37 + seed * 91) % 256) as u8).collect()
    };
    let (scales, zeros) = ([0.01, 0.02], [100, 140]);
    // Directions, gates and features, of directions, features and gates.
    let stand_for = |bits: &[u8]| -> Vec<f32> {
        let at = |direction: usize, gate: usize, feature: usize| {
            let own = f32::from(bits[gates * (features * direction + feature) + gate]);
            (own - f32::from(zeros[direction])) * scales[direction]
        };
        let rows = (0..2).flat_map(|direction| (0..gates).map(move |gate| (direction, gate)));
        rows.flat_map(|(direction, gate)| (0..features).map(move |k| at(direction, gate, k))).collect()
    };
    let (w, r) = (bits(1), bits(2));
    let (name, shape) = if packed { ("DynamicQuantizeLSTM", [2, 2, 8]) } else { ("LSTM", [2, 8, 2]) };
    let constants = match packed {
        true => vec![
            small("w", &shape, &w),
            small("r", &shape, &r),
            floats("scales", &[2], &scales),
            small("zeros", &[2], &zeros),
        ],
        false => vec![floats("w", &shape, &stand_for(&w)), floats("r", &shape, &stand_for(&r))],
    };
    let scaled = ["x", "w", "r", "", "", "", "", "", "scales", "zeros", "scales", "zeros"];
    File {
        inputs: vec![("x", vec![steps, 1, features])],
        outputs: vec!["y"],
        constants,
        nodes: vec![Node {
            domain: if packed { "com.microsoft" } else { "" },
            attributes: vec![Attribute::Text("direction", "bidirectional"), Attribute::Int("hidden_size", 2)],
            ..Node::new(name, if packed { &scaled } else { &scaled[..3] }, &["", "y"])
        }],
        ..File::default()
    }
}

#[test]
fn a_recurrent_layer_of_8_bits_is_that_of_the_floats_they_stand_for() {
    let x: Vec<f32> = (0..6).map(|at| at as f32 * 0.3 - 0.7).collect();
    let [packed, wanted] = [true, false].map(|packed| elements(&recurrent(3, packed), &[3, 1, 2], &x));
    assert_eq!(packed.len(), 4);
    assert!(wanted.iter().any(|value| value.abs() > 0.1), "{wanted:?}");
    // The weights are the same numbers.
    assert_eq!(packed, wanted);
}

#[test]
fn the_steps_of_a_recurrent_layer_share_its_weights() {
    let constants = |steps: usize| {
        let file = recurrent(steps, false);
        let model = Model::from_bytes(&file.bytes(), &LoadOptions::default()).expect("a file that is read");
        let context = diptych::Context::new(diptych::Backend::Cpu).expect("the CPU");
        let session = diptych::Session::new(&context, &model.graph, diptych::SessionOptions::default());
        session.expect("a session").memory().constants
    };
    assert_eq!(constants(2), constants(20));
}

#[test]
fn sequences_end_where_their_lengths_say() {
    // h = max(0, x + h), of three sequences of up to three steps; forwards, and backwards from each one's end.
    let layer = |lengths: &'static str, direction: &'static str| File {
        inputs: vec![("x", vec![3, 3, 1])],
        outputs: vec!["all", "last"],
        constants: vec![
            floats("w", &[1, 1, 1], &[1.0]),
            integers("known", &[3], &[1, 3, 2]),
            // The same, computed of the input.
            floats("zero", &[1], &[0.0]),
            integers("row", &[1], &[0]),
        ],
        nodes: vec![
            Node::new("Gather", &["x", "row"], &["first"]),
            Node::new("Mul", &["first", "zero"], &["none"]),
            Node::new("Squeeze", &["none"], &["nothing"]),
            Node { attributes: vec![Attribute::Int("to", 1)], ..Node::new("Cast", &["known"], &["floats"]) },
            Node::new("Add", &["nothing", "floats"], &["sum"]),
            Node { attributes: vec![Attribute::Int("to", 6)], ..Node::new("Cast", &["sum"], &["computed"]) },
            Node {
                attributes: vec![
                    Attribute::Int("hidden_size", 1),
                    Attribute::Text("direction", direction),
                    Attribute::Texts("activations", &["Relu"]),
                ],
                ..Node::new("RNN", &["x", "w", "w", "", lengths], &["all", "last"])
            },
        ],
        ..File::default()
    };
    let x: Vec<f32> = (1..=9).map(|at| at as f32).collect();
    // Sequences are columns: 1; 2 5 8; 3 6.
    for (direction, all, last) in [
        ("forward", [1.0, 2.0, 3.0, 0.0, 7.0, 9.0, 0.0, 15.0, 0.0], [1.0, 15.0, 9.0]),
        ("reverse", [1.0, 15.0, 9.0, 0.0, 13.0, 6.0, 0.0, 8.0, 0.0], [1.0, 15.0, 9.0]),
    ] {
        for lengths in ["known", "computed"] {
            let outputs = run(&layer(lengths, direction), &tensor(&[3, 3, 1], x.clone()));
            let found: Vec<_> = outputs.iter().map(|output| output.to_nhwc().into_owned()).collect();
            assert_eq!(found, [all.to_vec(), last.to_vec()], "{direction} {lengths}");
        }
    }
}

#[test]
fn a_number_may_stand_for_an_input_of_one_element() {
    let file = File {
        inputs: vec![("x", vec![2, 1]), ("count", vec![1])],
        outputs: vec!["y"],
        nodes: vec![Node::new("Mul", &["x", "count"], &["y"])],
        open: vec![("count", 0, "batch")],
        ..File::default()
    };
    let number = |extents: &[usize], count: usize| {
        let values = tensor(extents, vec![3.0; count]);
        let options = LoadOptions { values: [("count".to_owned(), values)].into(), ..LoadOptions::default() };
        Model::from_bytes(&file.bytes(), &options).map(|model| model.inputs.len())
    };
    assert_eq!(number(&[], 1).expect("one number"), 1);
    let error = number(&[2, 2], 4).expect_err("four numbers").to_string();
    assert!(error.contains("found a value of 2x2, wanted batch"), "{error}");
}

#[test]
fn the_first_nan_is_the_largest_and_the_smallest() {
    for op in ["ArgMax", "ArgMin"] {
        for (last, wanted) in [(0, 1.0), (1, 3.0)] {
            let file = File {
                inputs: vec![("x", vec![1, 5])],
                outputs: vec!["y"],
                nodes: vec![Node {
                    attributes: vec![Attribute::Int("axis", 1), Attribute::Int("select_last_index", last)],
                    ..Node::new(op, &["x"], &["y"])
                }],
                ..File::default()
            };
            let found = elements(&file, &[1, 5], &[1.0, f32::NAN, 7.0, f32::NAN, -3.0]);
            assert_eq!(found, [wanted], "{op} {last}");
        }
    }
}

#[test]
fn casts_of_constants_are_those_of_a_run() {
    let values = [-1.0, 3e9, 2.75, -2.75];
    for to in [6, 12, 7, 9] {
        let cast = |from, into| Node {
            attributes: vec![Attribute::Int("to", to)],
            ..Node::new("Cast", &[from], &[into])
        };
        let file = File {
            inputs: vec![("x", vec![4])],
            outputs: vec!["a", "b"],
            constants: vec![floats("v", &[4], &values)],
            nodes: vec![cast("v", "a"), cast("x", "b")],
            ..File::default()
        };
        let found = run(&file, &tensor(&[4], values.to_vec()));
        assert_eq!(found[0].to_nhwc(), found[1].to_nhwc(), "to type {to}");
    }
}

#[test]
fn integers_have_powers_of_floats() {
    let to = |number, from, into| Node {
        attributes: vec![Attribute::Int("to", number)],
        ..Node::new("Cast", &[from], &[into])
    };
    let file = File {
        inputs: vec![("x", vec![3])],
        outputs: vec!["known", "computed", "whole"],
        constants: vec![floats("half", &[], &[0.5]), floats("two", &[], &[2.0]), floats("zero", &[], &[0.0])],
        nodes: vec![
            to(6, "x", "base"),
            Node::new("Pow", &["base", "half"], &["known"]),
            Node::new("Mul", &["x", "zero"], &["zeros"]),
            Node::new("Add", &["zeros", "half"], &["halves"]),
            Node::new("Pow", &["base", "halves"], &["computed"]),
            Node::new("Pow", &["base", "two"], &["whole"]),
        ],
        ..File::default()
    };
    let found = run(&file, &tensor(&[3], vec![10.0, 9.0, 2.0]));
    let found: Vec<_> = found.iter().map(|own| own.to_i64().expect("integers").into_owned()).collect();
    assert_eq!(found, [vec![3, 3, 1], vec![3, 3, 1], vec![100, 81, 4]]);
}

#[test]
fn windows_over_no_pictures_and_layers_without_features_are_computed() {
    let pool = File {
        outputs: vec!["y"],
        constants: vec![floats("none", &[0, 3, 0, 4], &[])],
        nodes: vec![Node {
            attributes: vec![
                Attribute::Ints("kernel_shape", &[2, 2]),
                Attribute::Ints("strides", &[2, 2]),
                Attribute::Ints("pads", &[1, 1, 1, 1]),
            ],
            ..Node::new("MaxPool", &["none"], &["y"])
        }],
        ..File::default()
    };
    let layer = File {
        outputs: vec!["last"],
        constants: vec![
            floats("none", &[3, 1, 0], &[]),
            floats("w", &[1, 2, 0], &[]),
            floats("r", &[1, 2, 2], &[0.0; 4]),
            floats("b", &[1, 4], &[1.0; 4]),
        ],
        nodes: vec![Node {
            attributes: vec![Attribute::Int("hidden_size", 2)],
            ..Node::new("RNN", &["none", "w", "r", "b"], &["", "last"])
        }],
        ..File::default()
    };
    let pooled = computed(&pool);
    assert_eq!(pooled[0].dims().extents(), [0, 3, 1, 3]);
    // Each of three steps is the tangent of its two biases.
    let last = computed(&layer);
    assert_eq!(last[0].dims().extents(), [1, 1, 2]);
    assert!(last[0].to_f32().iter().all(|value| (value - 2f32.tanh()).abs() < 1e-6), "{last:?}");
}
