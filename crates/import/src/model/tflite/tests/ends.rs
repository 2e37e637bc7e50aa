//! Inputs that are given while the file is read, signatures, and files as other writers lay them out.

use super::super::options;
use super::layers::variable;
use super::operators::{fields, none};
use super::writer::{Field, FileSpec, NetworkSpec, OpSpec, Scales, TensorSpec, code};
use crate::host::HostTensor;
use crate::model::tflite::names::element;
use Field::Int;
use diptych::ModelFile;
use diptych::Session;
use diptych::SessionOptions;
use diptych::{Backend, Context};
use diptych::{LoadOptions, Model};

fn tensor(extents: &[usize], values: Vec<f32>) -> HostTensor {
    HostTensor::new(crate::dims::Dims::new(extents).expect("small"), values).expect("as many")
}

fn given(name: &str, tensor: HostTensor) -> LoadOptions {
    LoadOptions { values: [(name.to_owned(), tensor)].into(), ..Default::default() }
}

fn told(file: &FileSpec, options: &LoadOptions) -> String {
    Model::from_bytes(&file.bytes(), options).expect_err("refused").to_string()
}

/// The outputs for these inputs.
fn run(file: &FileSpec, options: &LoadOptions, feeds: &[(&str, &HostTensor)]) -> Vec<HostTensor> {
    let model = Model::from_bytes(&file.bytes(), options).expect("a file that is read");
    let session = Session::on_cpu(&model.graph).expect("a session");
    session.compute(feeds).expect("a run")
}

/// `y` is `x` in the extents that a second input has.
pub(super) fn reshaped() -> FileSpec {
    let mut file = FileSpec::with_input("x", &[2, 6]);
    let extents = file.map("extents", &[2]);
    file.tensors[extents as usize].element_type = element::INT32;
    let y = file.map("y", &[-1, -1]);
    file.op(code("RESHAPE"), &[0, extents], &[y], none());
    file.inputs.push(extents);
    file.outputs = vec![y];
    file
}

#[test]
fn an_input_that_decides_a_shape_is_given_while_the_file_is_read() {
    let file = reshaped();
    let told_without = told(&file, &LoadOptions::default());
    for words in ["wanted a constant", "\"extents\"", "(LoadOptions::values)"] {
        assert!(told_without.contains(words), "{words}: {told_without}");
    }
    let x = tensor(&[2, 6], (0..12).map(|value| value as f32).collect());
    let options = given("extents", tensor(&[2], vec![4.0, 3.0]));
    let found = run(&file, &options, &[("x", &x)]);
    assert_eq!(found[0].dims().extents(), [4, 3]);
    assert_eq!(found[0].to_f32(), x.to_f32());
    for (name, value, words) in [
        ("extent", vec![4.0, 3.0], "wanted one of [\"x\", \"extents\"]"),
        ("extents", vec![4.0, 2.5], "not whole"),
        ("extents", vec![4.0, 3.0, 1.0], "found a value of 3, wanted 2"),
    ] {
        let told = told(&file, &given(name, tensor(&[value.len()], value)));
        assert!(told.contains(words), "{words}: {told}");
    }
    let options = LoadOptions { inputs: ["weights".to_owned()].into(), ..Default::default() };
    assert!(told(&file, &options).contains("\"weights\""));
}

/// `y` is twice `x` or `-x`, of other extents, as a number says.
fn by_rate() -> FileSpec {
    let mut file = FileSpec::with_input("x", &[2, 3]);
    let rate = file.map("sr", &[]);
    file.tensors[rate as usize].element_type = element::INT32;
    let wanted = file.integers("wanted", &[], &[16_000]);
    let (same, y) = (file.map("same", &[]), file.map("y", &[-1, -1]));
    file.tensors[same as usize].element_type = element::BOOL;
    file.op(code("EQUAL"), &[rate, wanted], &[same], none());
    let both = fields(options::IfOptions::TAG, &[(0, Int(1)), (1, Int(2))]);
    file.op(code("IF"), &[same, 0], &[y], both);
    file.inputs.push(rate);
    file.outputs = vec![y];
    let end = |name: &str, shape: &[i32]| TensorSpec {
        name: Some(name.to_owned()),
        shape: shape.to_vec(),
        ..Default::default()
    };
    let call = |name: &str, inputs: &[i32]| OpSpec {
        code: code(name),
        inputs: inputs.to_vec(),
        outputs: vec![1],
        options: if name == "ADD" { fields(options::AddOptions::TAG, &[]) } else { none() },
        ..Default::default()
    };
    let twice = vec![end("x", &[2, 3]), end("y", &[2, 3])];
    file.called.push(NetworkSpec {
        tensors: twice,
        ops: vec![call("ADD", &[0, 0])],
        inputs: vec![0],
        outputs: vec![1],
    });
    let turned = vec![end("x", &[2, 3]), end("y", &[3, 2])];
    let mut turn = call("TRANSPOSE", &[0, 2]);
    turn.options = none();
    let mut order = end("order", &[2]);
    file.integers("order", &[2], &[1, 0]);
    order.buffer = file.buffers.len() as u32 - 1;
    order.element_type = element::INT32;
    let tensors = [turned, vec![order]].concat();
    file.called.push(NetworkSpec { tensors, ops: vec![turn], inputs: vec![0], outputs: vec![1] });
    file
}

#[test]
fn a_number_that_decides_a_branch_is_named_where_it_would_help() {
    let file = by_rate();
    let told = told(&file, &LoadOptions::default());
    assert!(
        told.contains("(LoadOptions::values)") && told.contains("\"sr\"") && told.contains("one shape"),
        "{told}"
    );
    let x = tensor(&[2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let found = run(&file, &given("sr", tensor(&[], vec![16_000.0])), &[("x", &x)]);
    assert_eq!(*found[0].to_f32(), [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
    let found = run(&file, &given("sr", tensor(&[], vec![8_000.0])), &[("x", &x)]);
    assert_eq!(*found[0].to_f32(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
}

/// Two networks: `y` is `-x`, and by the signature `double` of other names it is twice that.
fn signed() -> FileSpec {
    let mut file = FileSpec::with_input("x", &[2]);
    let y = file.map("y", &[2]);
    file.op(code("NEG"), &[0], &[y], none());
    file.outputs = vec![y];
    file.signature = Some([vec![("a", 0)], vec![("b", 1)]]);
    let end = |name: &str| TensorSpec { name: Some(name.to_owned()), shape: vec![2], ..Default::default() };
    let twice = OpSpec {
        code: code("ADD"),
        inputs: vec![0, 0],
        outputs: vec![1],
        options: fields(options::AddOptions::TAG, &[]),
        ..Default::default()
    };
    let tensors = vec![end("x"), end("y")];
    file.called.push(NetworkSpec { tensors, ops: vec![twice], inputs: vec![0], outputs: vec![1] });
    file.signatures.push(("double", 1, [vec![("c", 0)], vec![("d", 1)]]));
    file
}

#[test]
fn the_network_of_a_signature_is_read() {
    let file = signed();
    let x = tensor(&[2], vec![3.0, -4.0]);
    let first = LoadOptions::default();
    assert_eq!(*run(&file, &first, &[("a", &x)])[0].to_f32(), [-3.0, 4.0]);
    let other = LoadOptions { signature: Some("double".to_owned()), ..Default::default() };
    assert_eq!(*run(&file, &other, &[("c", &x)])[0].to_f32(), [6.0, -8.0]);
    let model = Model::from_bytes(&file.bytes(), &other).expect("a file that is read");
    assert_eq!((model.inputs[0].name.as_str(), model.outputs[0].name.as_str()), ("c", "d"));
    let none = LoadOptions { signature: Some("triple".to_owned()), ..Default::default() };
    let told = told(&file, &none);
    assert!(told.contains("\"triple\"") && told.contains("\"double\""), "{told}");
}

/// The names of the outputs that a file has for these options, as it is described and as it is read.
fn output_names(file: &FileSpec, outputs: &[&str]) -> [Vec<String>; 2] {
    let outputs = outputs.iter().map(|name| (*name).to_owned()).collect();
    let options = LoadOptions { outputs, ..Default::default() };
    let model = Model::from_bytes(&file.bytes(), &options).expect("a file that is read");
    let described = ModelFile::from_bytes(file.bytes(), &options).expect("a file that is described");
    [
        described.outputs().into_iter().map(|port| port.name).collect(),
        model.outputs.into_iter().map(|port| port.name).collect(),
    ]
}

/// An operator that is not supported.
const UNIQUE: i32 = 103;

/// `y` is `-x`; `z`, of it, is what nothing here computes, and `c` is a constant.
fn with_others() -> FileSpec {
    let mut file = FileSpec::with_input("x", &[2]);
    let [y, z, w] = ["y", "z", "w"].map(|name| file.map(name, &[2]));
    let constant = file.constant("c", &[2]);
    file.op(code("NEG"), &[0], &[y], none());
    file.op(UNIQUE, &[y], &[z], none());
    file.op(code("NEG"), &[y], &[w], none());
    file.outputs = vec![z, w, constant, y];
    file
}

#[test]
fn what_other_outputs_alone_need_is_neither_read_nor_computed() {
    let file = with_others();
    let x = tensor(&[2], vec![3.0, -4.0]);
    let chosen = |names: &[&str]| LoadOptions {
        outputs: names.iter().map(|name| (*name).to_owned()).collect(),
        ..Default::default()
    };
    let found = run(&file, &chosen(&["y", "w"]), &[("x", &x)]);
    // In the order of the file.
    assert_eq!(
        found.iter().map(|found| found.to_f32().to_vec()).collect::<Vec<_>>(),
        [vec![3.0, -4.0], vec![-3.0, 4.0]]
    );
    assert_eq!(output_names(&file, &["y", "w"]), [["w", "y"], ["w", "y"]]);
    let options = chosen(&["y"]);
    let model = Model::from_bytes(&file.bytes(), &options).expect("a file that is read");
    assert_eq!(model.graph.nodes().len(), 1, "what `w` needs is not there");
    for names in [&[][..], &["z"], &["z", "y"]] {
        let told = told(&file, &chosen(names));
        assert!(told.contains("UNIQUE"), "{names:?}: {told}");
        let error = ModelFile::from_bytes(file.bytes(), &chosen(names)).expect_err("refused").to_string();
        assert!(error.contains("UNIQUE"), "{names:?}: {error}");
    }
    // What is kept between runs is written all the same.
    let file = variable();
    let kept = Model::from_bytes(&file.bytes(), &chosen(&["before"])).expect("a file that is read");
    let context = Context::new(Backend::Cpu).expect("the CPU");
    let mut session = Session::new(&context, &kept.graph, SessionOptions::default()).expect("a session");
    let x = tensor(&[1, 3], vec![1.0; 3]);
    for wanted in [[1.0, 2.0, 3.0], [2.0, 3.0, 4.0], [3.0, 4.0, 5.0]] {
        let found = session.run(&[("x", &x)]).expect("a run");
        assert_eq!((found.len(), &*found[0].to_f32()), (1, &wanted[..]));
    }
}

#[test]
fn an_output_that_cannot_be_chosen_says_why() {
    let file = with_others();
    let chosen = |name: &str| LoadOptions { outputs: [name.to_owned()].into(), ..Default::default() };
    let constant = told(&file, &chosen("c"));
    assert!(constant.contains("found a constant"), "{constant}");
    let other = told(&file, &chosen("v"));
    assert!(other.contains("found no output \"v\", wanted one of [\"z\", \"w\", \"c\", \"y\"]"), "{other}");
}

#[test]
fn an_output_has_one_name_wherever_it_is_asked_for() {
    // An intermediate tensor has the name of the output, and the input is an output too.
    let mut file = FileSpec::with_input("x", &[2]);
    let [between, y] = ["y", "y"].map(|name| file.map(name, &[2]));
    file.op(code("NEG"), &[0], &[between], none());
    file.op(code("NEG"), &[between], &[y], none());
    file.outputs = vec![y, 0];
    let [described, read] = output_names(&file, &[]);
    assert_eq!(described, read);
    assert_eq!(read[0], "y");
    for (place, name) in read.iter().enumerate() {
        let chosen = output_names(&file, &[name]);
        assert_eq!(chosen, [[name.clone()], [name.clone()]], "output {place}");
    }
    let x = tensor(&[2], vec![3.0, -4.0]);
    let found = run(&file, &LoadOptions::default(), &[("x", &x)]);
    assert!(found.iter().all(|found| *found.to_f32() == [3.0, -4.0]));
    let open = ModelFile::from_bytes(file.bytes(), &LoadOptions::default()).expect("a file");
    let context = Context::new(Backend::Cpu).expect("the CPU");
    let mut session = open.session(&context, SessionOptions::default()).expect("a session");
    assert_eq!(session.run(&[("x", &x)]).expect("a run").len(), 2);
    // By a signature both have names of their own.
    file.signature = Some([vec![("a", 0)], vec![("b", 2), ("c", 0)]]);
    assert_eq!(output_names(&file, &[]), [["b", "c"], ["b", "c"]]);
    assert_eq!(output_names(&file, &["c"]), [["c"], ["c"]]);
}

/// Floats to integers and back; zero points lie at multiples of four bytes.
fn loose() -> FileSpec {
    let mut file = FileSpec::with_input("x", &[4]);
    let (whole, y) = (file.map("whole", &[4]), file.map("y", &[4]));
    let spec = &mut file.tensors[whole as usize];
    spec.element_type = element::INT16;
    spec.quantised = Some(Scales(vec![0.25], vec![23_117], 0));
    spec.loose = true;
    file.op(code("QUANTIZE"), &[0], &[whole], none());
    file.op(code("DEQUANTIZE"), &[whole], &[y], none());
    file.outputs = vec![y];
    file
}

#[test]
fn numbers_of_eight_bytes_need_not_be_aligned() {
    let x = tensor(&[4], vec![0.3, -1.0, 1e6, 2.125]);
    let zero = 23_117i64.to_le_bytes();
    let mut unaligned = 0;
    for description in ["", "a", "to be moved by these", "and by more than these bytes"] {
        let file = FileSpec { description: Some(description), ..loose() };
        let bytes = file.bytes();
        let at = bytes.windows(8).position(|part| part == zero).expect("the zero point");
        unaligned += usize::from(!at.is_multiple_of(8));
        let found = run(&file, &LoadOptions::default(), &[("x", &x)]);
        assert_eq!(*found[0].to_f32(), [0.25, -1.0, 2412.5, 2.0], "{description:?}");
    }
    assert!(unaligned > 0, "all zero points are aligned");
}

#[test]
fn casts_and_sums_of_small_integers_are_those_of_their_types() {
    let mut file = FileSpec::with_input("x", &[6]);
    let mut whole = |name: &str, kind: i8, operator: &str, inputs: &[i32]| {
        let whole = file.map(name, &[6]);
        file.tensors[whole as usize].element_type = kind;
        let options = match operator {
            "ADD" => fields(options::AddOptions::TAG, &[]),
            "MUL" => fields(options::MulOptions::TAG, &[]),
            _ => none(),
        };
        file.op(code(operator), inputs, &[whole], options);
        whole
    };
    let unsigned = whole("u16", element::UINT16, "CAST", &[0]);
    let byte = whole("i8", element::INT8, "CAST", &[0]);
    let outputs = vec![
        unsigned,
        byte,
        whole("u8", element::UINT8, "CAST", &[0]),
        whole("i16", element::INT16, "CAST", &[0]),
        whole("u8 of u16", element::UINT8, "CAST", &[unsigned]),
        whole("i8 of u16", element::INT8, "CAST", &[unsigned]),
        whole("sum", element::INT8, "ADD", &[byte, byte]),
        whole("product", element::UINT16, "MUL", &[unsigned, unsigned]),
    ];
    file.outputs = outputs;
    let values = [300.9f32, -1.5, 127.0, 128.0, 40_000.0, -70_000.0];
    let found = run(&file, &LoadOptions::default(), &[("x", &tensor(&[6], values.to_vec()))]);
    let of = |number: fn(f32) -> f32| values.map(number).to_vec();
    let wanted = [
        // Of floats the nearest integer that there is.
        of(|value| f32::from(value as u16)),
        of(|value| f32::from(value as i8)),
        of(|value| f32::from(value as u8)),
        of(|value| f32::from(value as i16)),
        // Of integers the lower bits.
        of(|value| f32::from(value as u16 as u8)),
        of(|value| f32::from(value as u16 as i8)),
        of(|value| f32::from((value as i8).wrapping_add(value as i8))),
        of(|value| f32::from((value as u16).wrapping_mul(value as u16))),
    ];
    for (output, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        assert_eq!(*found.to_f32(), wanted, "output {output}");
    }
}
