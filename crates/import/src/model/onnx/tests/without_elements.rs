//! Tensors without elements, made while a file is read and in a run. What is right is as numpy and ONNX Runtime have it.

use super::computed;
use super::writer::{Attribute, File, Node, floats, integers, small};
use crate::host::HostTensor;
use diptych::{Backend, Context, LoadOptions, Model, ModelFile, Session, SessionOptions};

/// What a node writes.
struct Case {
    node: Node,
    /// The extents of the result, and its elements.
    wanted: (Vec<usize>, Vec<f32>),
}

fn case(op: &'static str, inputs: &[&'static str], wanted: (&[usize], &[f32])) -> Case {
    with(op, inputs, Vec::new(), wanted)
}

fn with(
    op: &'static str,
    inputs: &[&'static str],
    attributes: Vec<Attribute>,
    (extents, values): (&[usize], &[f32]),
) -> Case {
    let node = Node { attributes, ..Node::new(op, inputs, &["y"]) };
    Case { node, wanted: (extents.to_vec(), values.to_vec()) }
}

/// Numbers that are known, by name. `none` has extents 0 and 3, `rows` 2 and 3.
fn constants() -> Vec<Vec<u8>> {
    vec![
        floats("none", &[0, 3], &[]),
        floats("features", &[2, 0], &[]),
        floats("rows", &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        floats("row", &[3], &[10.0, 20.0, 30.0]),
        floats("cube", &[4, 0, 3], &[]),
        floats("maps", &[0, 2, 4, 4], &[]),
        floats("weights", &[3, 2, 1, 1], &[1.0; 6]),
        floats("ones", &[3], &[1.0; 3]),
        floats("fill", &[], &[7.0]),
        floats("values", &[2], &[0.0, 1.0]),
        floats("infinite", &[2, 2], &[0.0; 4]),
        integers("ids", &[0], &[]),
        integers("pairs", &[0, 1], &[]),
        integers("places", &[0, 3], &[]),
        integers("zero", &[1], &[0]),
        integers("one", &[1], &[1]),
        integers("two", &[1], &[2]),
        integers("both", &[2], &[0, 1]),
        integers("to_rest", &[2], &[-1, 3]),
        integers("to_0", &[3], &[3, 0, 7]),
        integers("copied", &[2], &[0, 3]),
        integers("repeats", &[2], &[2, 0]),
        integers("pads", &[4], &[1, 0, 1, 1]),
        integers("spread", &[3], &[4, 0, 3]),
        integers("sizes", &[2], &[0, 2]),
        integers("doubled", &[4], &[0, 2, 8, 8]),
        integers("five", &[], &[5]),
        small("no", &[2], &[0, 0]),
        small("bytes", &[0, 3], &[]),
        small("other", &[3, 2], &[1, 2, 3, 4, 5, 6]),
    ]
}

fn cases() -> Vec<Case> {
    let axis = |axis| vec![Attribute::Int("axis", axis)];
    let kept = |kept| vec![Attribute::Int("keepdims", kept)];
    let rows = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let nothing: &[f32] = &[];
    vec![
        // Moves.
        case("Reshape", &["none", "to_rest"], (&[0, 3], nothing)),
        case("Reshape", &["none", "copied"], (&[0, 3], nothing)),
        with("Reshape", &["none", "to_0"], vec![Attribute::Int("allowzero", 1)], (&[3, 0, 7], nothing)),
        with("Flatten", &["cube"], axis(1), (&[4, 0], nothing)),
        case("Transpose", &["none"], (&[3, 0], nothing)),
        case("Unsqueeze", &["none", "one"], (&[0, 1, 3], nothing)),
        with("Concat", &["none", "rows", "none"], axis(0), (&[2, 3], &rows)),
        with("Concat", &["none", "none"], axis(1), (&[0, 6], nothing)),
        case("Slice", &["rows", "one", "one", "zero"], (&[0, 3], nothing)),
        case("Slice", &["none", "zero", "one", "one"], (&[0, 1], nothing)),
        case("Tile", &["rows", "repeats"], (&[4, 0], nothing)),
        case("Expand", &["none", "spread"], (&[4, 0, 3], nothing)),
        case("Pad", &["none", "pads", "fill"], (&[2, 4], &[7.0; 8])),
        with("Gather", &["rows", "ids"], axis(1), (&[2, 0], nothing)),
        case("GatherND", &["rows", "pairs"], (&[0, 3], nothing)),
        with("GatherElements", &["rows", "places"], axis(0), (&[0, 3], nothing)),
        with("ScatterElements", &["rows", "places", "none"], axis(0), (&[2, 3], &rows)),
        case("ScatterND", &["rows", "pairs", "none"], (&[2, 3], &rows)),
        with("Compress", &["rows", "no"], axis(0), (&[0, 3], nothing)),
        case("Compress", &["rows", "no"], (&[0], nothing)),
        with("DepthToSpace", &["maps"], vec![Attribute::Int("blocksize", 1)], (&[0, 2, 4, 4], nothing)),
        case("Resize", &["maps", "", "", "doubled"], (&[0, 2, 8, 8], nothing)),
        case("ConstantOfShape", &["sizes"], (&[0, 2], nothing)),
        case("Identity", &["none"], (&[0, 3], nothing)),
        case("Range", &["five", "five", "five"], (&[0], nothing)),
        // Functions of each element.
        case("Add", &["none", "row"], (&[0, 3], nothing)),
        case("Mul", &["cube", "none"], (&[4, 0, 3], nothing)),
        case("Relu", &["none"], (&[0, 3], nothing)),
        case("Erf", &["none"], (&[0, 3], nothing)),
        case("Equal", &["none", "row"], (&[0, 3], nothing)),
        with("Cast", &["none"], vec![Attribute::Int("to", 7)], (&[0, 3], nothing)),
        case("Clip", &["none"], (&[0, 3], nothing)),
        with("OneHot", &["ids", "five", "values"], axis(-1), (&[0, 5], nothing)),
        case("IsNaN", &["none"], (&[0, 3], nothing)),
        // Along axes.
        with("Softmax", &["none"], axis(0), (&[0, 3], nothing)),
        with("LogSoftmax", &["cube"], axis(-1), (&[4, 0, 3], nothing)),
        case("LayerNormalization", &["none", "ones"], (&[0, 3], nothing)),
        case("CumSum", &["none", "zero"], (&[0, 3], nothing)),
        with("ArgMax", &["none"], axis(1), (&[0, 1], nothing)),
        case("TopK", &["none", "two"], (&[0, 2], nothing)),
        case("TopK", &["rows", "zero"], (&[2, 0], nothing)),
        case("ReduceSum", &["none", "zero"], (&[1, 3], &[0.0; 3])),
        case("ReduceSum", &["none", "one"], (&[0, 1], nothing)),
        case("ReduceProd", &["none", "zero"], (&[1, 3], &[1.0; 3])),
        case("ReduceMean", &["none", "zero"], (&[1, 3], &[f32::NAN; 3])),
        case("ReduceMax", &["none", "zero"], (&[1, 3], &[f32::NEG_INFINITY; 3])),
        with("ReduceMin", &["cube", "both"], kept(0), (&[3], &[f32::INFINITY; 3])),
        case("ReduceSumSquare", &["none", "zero"], (&[1, 3], &[0.0; 3])),
        case("ReduceL2", &["none", "zero"], (&[1, 3], &[0.0; 3])),
        // Products.
        case("MatMul", &["features", "none"], (&[2, 3], &[0.0; 6])),
        case("MatMul", &["none", "row"], (&[0], nothing)),
        case("MatMul", &["cube", "weights_3x5"], (&[4, 0, 5], nothing)),
        case("Gemm", &["features", "none", "row"], (&[2, 3], &[10.0, 20.0, 30.0, 10.0, 20.0, 30.0])),
        with(
            "Gemm",
            &["features", "none", "row"],
            vec![Attribute::Float("beta", 0.5)],
            (&[2, 3], &[5.0, 10.0, 15.0, 5.0, 10.0, 15.0]),
        ),
        case("Gemm", &["features", "none"], (&[2, 3], &[0.0; 6])),
        with(
            "Einsum",
            &["features", "none"],
            vec![Attribute::Text("equation", "ij,jk->ik")],
            (&[2, 3], &[0.0; 6]),
        ),
        with("Einsum", &["none"], vec![Attribute::Text("equation", "ij->j")], (&[3], &[0.0; 3])),
        case("MatMulInteger", &["bytes", "other"], (&[0, 2], nothing)),
        // Windows.
        case("Conv", &["maps", "weights"], (&[0, 3, 4, 4], nothing)),
        with("MaxPool", &["maps"], vec![Attribute::Ints("kernel_shape", &[2, 2])], (&[0, 2, 3, 3], nothing)),
        case("GlobalAveragePool", &["maps"], (&[0, 2, 1, 1], nothing)),
        case("Shape", &["cube"], (&[3], &[4.0, 0.0, 3.0])),
        case("Size", &["cube"], (&[], &[0.0])),
        case("NonZero", &["none"], (&[2, 0], nothing)),
        case("NonZero", &["infinite"], (&[2, 0], nothing)),
    ]
}

fn difference(case: &Case, found: &HostTensor) -> Option<String> {
    let (extents, values) = &case.wanted;
    let elements: Vec<f32> = match found.to_i64() {
        Some(integers) => integers.iter().map(|&integer| integer as f32).collect(),
        None => found.to_f32().into_owned(),
    };
    let alike = |(a, b): (&f32, &f32)| a == b || a.is_nan() && b.is_nan();
    let same = found.dims().extents() == extents && elements.iter().zip(values).all(alike);
    let (op, inputs) = (case.node.op, &case.node.inputs);
    (!same)
        .then(|| format!("{op} of {inputs:?}: found {found:?} {elements:?}, wanted {extents:?} {values:?}"))
}

#[test]
fn operators_of_nothing_write_what_numpy_does() {
    let mut failures = Vec::new();
    for case in cases() {
        let mut constants = constants();
        constants.push(floats("weights_3x5", &[3, 5], &[0.5; 15]));
        let more: &[&'static str] = match case.node.op {
            "TopK" => &["y", "indices"],
            _ => &["y"],
        };
        let node = Node {
            outputs: more.to_vec(),
            attributes: case.node.attributes.clone(),
            ..Node::new(case.node.op, &case.node.inputs, &[])
        };
        let file = File { outputs: vec!["y"], constants, nodes: vec![node], ..File::default() };
        match Model::from_bytes(&file.bytes(), &LoadOptions::default()) {
            Ok(_) => failures.extend(difference(&case, &computed(&file)[0])),
            Err(error) => failures.push(format!("{} of {:?}: {error}", case.node.op, case.node.inputs)),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// What a run computes is cut to nothing, and goes on.
#[test]
fn values_that_are_cut_to_nothing_are_read_as_any_others() {
    let file = File {
        inputs: vec![("x", vec![2, 3])],
        outputs: vec!["nothing", "joined", "sum", "product", "biased"],
        constants: constants(),
        nodes: vec![
            Node::new("Exp", &["x"], &["powers"]),
            Node::new("Slice", &["powers", "two", "two", "zero"], &["nothing"]),
            Node {
                attributes: vec![Attribute::Int("axis", 0)],
                ..Node::new("Concat", &["nothing", "x"], &["joined"])
            },
            Node {
                attributes: vec![Attribute::Int("keepdims", 0)],
                ..Node::new("ReduceSum", &["nothing", "zero"], &["sum"])
            },
            Node::new("Transpose", &["nothing"], &["turned"]),
            Node::new("MatMul", &["turned", "nothing"], &["product"]),
            Node::new("Gemm", &["turned", "nothing", "sum"], &["plain"]),
            Node::new("Add", &["plain", "x_row"], &["biased"]),
            Node {
                attributes: vec![Attribute::Int("keepdims", 0)],
                ..Node::new("ReduceMean", &["x", "zero"], &["x_row_late"])
            },
        ],
        ..File::default()
    };
    let mut file = file;
    // The mean is read by the sum.
    let mean = file.nodes.pop().expect("the mean");
    let at = file.nodes.len() - 1;
    file.nodes.insert(at, Node { outputs: vec!["x_row"], ..mean });
    let x = [1.0, 2.0, 3.0, 5.0, 6.0, 7.0];
    let outputs = super::run(&file, &super::tensor(&[2, 3], x.to_vec()));
    let found: Vec<(Vec<usize>, Vec<f32>)> =
        outputs.iter().map(|own| (own.dims().extents().to_vec(), own.to_f32().into_owned())).collect();
    let row = [3.0, 4.0, 5.0];
    let wanted = [
        (vec![0, 3], vec![]),
        (vec![2, 3], x.to_vec()),
        (vec![3], vec![0.0; 3]),
        (vec![3, 3], vec![0.0; 9]),
        (vec![3, 3], [row, row, row].concat()),
    ];
    assert_eq!(found, wanted);
}

#[test]
fn inputs_of_a_session_may_have_no_elements() {
    let file = File {
        inputs: vec![("x", vec![1, 3])],
        open: vec![("x", 0, "rows")],
        outputs: vec!["y", "sum"],
        constants: constants(),
        nodes: vec![
            Node::new("Add", &["x", "row"], &["y"]),
            Node {
                attributes: vec![Attribute::Int("keepdims", 0)],
                ..Node::new("ReduceSum", &["y", "zero"], &["sum"])
            },
        ],
    };
    let file = ModelFile::from_bytes(file.bytes(), &LoadOptions::default()).expect("a file");
    let context = Context::new(Backend::Cpu).expect("the CPU");
    let mut session: Session = file.session(&context, SessionOptions::default()).expect("a session");
    for rows in [0, 2, 0] {
        let x = super::tensor(&[rows, 3], vec![1.0; 3 * rows]);
        let outputs = session.run(&[("x", &x)]).expect("a run");
        assert_eq!(outputs[0].dims().extents(), [rows, 3]);
        let sum = [11.0, 21.0, 31.0].map(|number| number * rows as f32);
        assert_eq!(*outputs[1].to_f32(), sum);
    }
}
