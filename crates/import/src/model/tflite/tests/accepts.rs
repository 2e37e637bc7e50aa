//! What the loader makes of valid files.

use super::writer::{FileSpec, OptionsSpec, VALID, Window, code};
use crate::dims::Dims;
use crate::dtype::DType;
use crate::emit::{Activation, Bits, Operand};
use crate::graph::{Graph, Node};
use crate::host::HostTensor;
use crate::ops::conv2d::Conv2d;
use crate::ops::depthwise::Depthwise;
use crate::ops::operator::Operator;
use crate::ops::pointwise::Pointwise;
use crate::shape::{Padding, Shape};
use diptych::tflite::from_bytes;
use diptych::{Backend, Context, Rewrite, Session, SessionOptions};
use diptych::{LoadOptions, Model};
use std::any::Any;

fn load(file: &FileSpec) -> Graph {
    from_bytes(&file.bytes()).expect("a valid file")
}

/// The only node of the graph.
fn only(graph: &Graph) -> &Node {
    assert_eq!(graph.nodes().len(), 1);
    &graph.nodes()[0]
}

/// The operator of a node, which is a `T`.
fn options_of<T: Operator + Copy>(node: &Node) -> T {
    let operator = node.operator();
    *(operator as &dyn Any).downcast_ref().unwrap_or_else(|| panic!("found {operator:?}"))
}

fn activation(node: &Node) -> Activation {
    match node.operator().name() {
        "conv2d" => options_of::<Conv2d>(node).activation,
        "depthwise" => options_of::<Depthwise>(node).activation,
        _ => options_of::<Pointwise>(node).activation,
    }
}

/// The constant that is `operand` of a node.
fn constant<'g>(graph: &'g Graph, node: &Node, operand: Operand) -> Option<&'g HostTensor> {
    let (_, value) = node.inputs().iter().find(|(own, _)| *own == operand)?;
    graph.tensor(*value).expect("a value of the graph")
}

/// `image` of `input` -> one convolution with weights of `weights` -> `output`.
fn convolution(
    input: [i32; 4],
    weights: [i32; 4],
    output: [i32; 4],
    operator: &str,
    options: OptionsSpec,
) -> FileSpec {
    let mut file = FileSpec::with_input("image", &input);
    let weights = file.constant("weights", &weights);
    let out = file.map("out", &output);
    file.op(code(operator), &[0, weights, -1], &[out], options);
    file.outputs.push(out);
    file
}

#[test]
fn a_convolution_keeps_names_shapes_and_constants() {
    let graph = load(&FileSpec::stem());
    let node = only(&graph);
    assert_eq!(node.name(), "stem");
    let options = options_of::<Conv2d>(node);
    assert_eq!((options.stride, options.padding, options.groups), ([2, 2], Padding::Same, 1));
    let (input, output) = (graph.inputs()[0], graph.outputs()[0]);
    assert_eq!(
        (graph.name(input).ok(), graph.shape(input).ok()),
        (Some("image"), Some(Shape::nhwc(1, 8, 8, 3)))
    );
    assert_eq!(
        (graph.name(output).ok(), graph.shape(output).ok()),
        (Some("stem"), Some(Shape::nhwc(1, 4, 4, 4)))
    );
    let weights = constant(&graph, node, Operand::Weights).expect("weights");
    assert_eq!(weights.shape(), Shape::nhwc(4, 3, 3, 3));
    assert_eq!(weights.to_f32()[..3], [0.0, 0.25, 0.5]);
    let bias = constant(&graph, node, Operand::Bias).expect("a bias");
    assert_eq!((bias.shape(), &*bias.to_f32()), (Shape::nhwc(1, 1, 1, 4), &[0.0, 0.25, 0.5, 0.75][..]));
}

#[test]
fn height_and_width_are_not_mixed_up() {
    let window = Window { padding: VALID, stride: [3, 2], dilation: [1, 4], activation: 0 };
    // Height: (20 - 2) / 3 + 1; width: (20 - 9) / 2 + 1.
    let (input, weights, output) = ([1, 20, 20, 4], [6, 2, 3, 4], [1, 7, 6, 6]);
    let graph = load(&convolution(input, weights, output, "CONV_2D", OptionsSpec::Conv2d(window)));
    let options = options_of::<Conv2d>(only(&graph));
    assert_eq!((options.stride, options.dilation, options.padding), ([3, 2], [1, 4], Padding::Valid));
    assert!(constant(&graph, only(&graph), Operand::Bias).is_none());

    let (weights, output) = ([1, 2, 3, 8], [1, 7, 6, 8]);
    let depthwise = OptionsSpec::Depthwise(window, 2);
    let graph = load(&convolution(input, weights, output, "DEPTHWISE_CONV_2D", depthwise));
    let options = options_of::<Depthwise>(only(&graph));
    assert_eq!((options.stride, options.dilation, options.padding), ([3, 2], [1, 4], Padding::Valid));
}

#[test]
fn one_tap_of_stride_1_is_pointwise() {
    let one = OptionsSpec::Conv2d(Window { dilation: [2, 2], activation: 3, ..Default::default() });
    let graph = load(&convolution([1, 5, 5, 6], [7, 1, 1, 6], [1, 5, 5, 7], "CONV_2D", one));
    assert_eq!(only(&graph).operator().name(), "pointwise");
    assert_eq!(activation(only(&graph)), Activation::Relu6);
    let two = OptionsSpec::Conv2d(Window { stride: [2, 2], ..Default::default() });
    let graph = load(&convolution([1, 5, 5, 6], [7, 1, 1, 6], [1, 3, 3, 7], "CONV_2D", two));
    assert_eq!(only(&graph).operator().name(), "conv2d");
}

#[test]
fn groups_follow_from_the_weights() {
    let options = OptionsSpec::Conv2d(Window::default());
    let graph = load(&convolution([1, 5, 5, 6], [4, 1, 1, 3], [1, 5, 5, 4], "CONV_2D", options));
    let options = options_of::<Conv2d>(only(&graph));
    assert_eq!(options.groups, 2);
}

#[test]
fn fused_activations_are_read() {
    for (code, wanted) in
        [(0, Activation::None), (1, Activation::Relu), (3, Activation::Relu6), (4, Activation::Tanh)]
    {
        let window = Window { activation: code, ..Default::default() };
        for (op, weights, options) in [
            ("CONV_2D", [2, 3, 3, 2], OptionsSpec::Conv2d(window)),
            ("DEPTHWISE_CONV_2D", [1, 3, 3, 2], OptionsSpec::Depthwise(window, 1)),
        ] {
            let graph = load(&convolution([1, 4, 4, 2], weights, [1, 4, 4, 2], op, options));
            assert_eq!(activation(only(&graph)), wanted, "code {code} of operator {op}");
        }
    }
}

#[test]
fn an_activation_after_a_convolution_is_fused() {
    for (code, options, wanted) in [
        (code("RELU"), OptionsSpec::None, Activation::Relu),
        (code("RELU6"), OptionsSpec::None, Activation::Relu6),
        (code("TANH"), OptionsSpec::None, Activation::Tanh),
        (code("LOGISTIC"), OptionsSpec::None, Activation::Sigmoid),
        (code("HARD_SWISH"), OptionsSpec::None, Activation::HardSwish),
        (code("LEAKY_RELU"), OptionsSpec::LeakyRelu(0.125), Activation::LeakyRelu(Bits(0.125))),
    ] {
        let mut file = FileSpec::stem();
        let after = file.map("activated", &[1, 4, 4, 4]);
        file.op(code, &[3], &[after], options);
        file.outputs = vec![after];
        let graph = load(&file);
        assert_eq!(graph.nodes().len(), 2, "the loader leaves it as it is");
        let x = &graph.inputs()[0];
        let (name, dims) = (graph.name(*x).expect("a name"), graph.dims(*x).expect("dimensions"));
        let numbers: Vec<f32> = (0..dims.elements()).map(|at| (at % 7) as f32 - 3.0).collect();
        let numbers = HostTensor::new(dims, numbers).expect("as many");
        let run = |options: SessionOptions| {
            let context = Context::new(Backend::Cpu).expect("the CPU");
            let mut session = Session::new(&context, &graph, options).expect("a session");
            let ops: Vec<&str> = session.steps().iter().map(|step| step.op).collect();
            (ops, session.run(&[(name, &numbers)]).expect("a run").remove(0))
        };
        let (ops, fused) = run(SessionOptions::default());
        assert_eq!(ops, ["conv2d"], "{wanted:?}");
        let apart = SessionOptions { without_rewrites: Rewrite::ALL.into(), ..SessionOptions::default() };
        let (ops, apart) = run(apart);
        assert_eq!(ops.len(), 2, "{wanted:?}: {ops:?}");
        for (fused, apart) in fused.to_f32().iter().zip(apart.to_f32().iter()) {
            assert!((fused - apart).abs() < 1e-5, "{wanted:?}: {fused} and {apart}");
        }
    }
}

#[test]
fn float16_constants_are_read_directly_and_through_dequantize() {
    for through_dequantize in [false, true] {
        let mut file = FileSpec::with_input("image", &[1, 4, 4, 2]);
        let mut weights = file.half_constant("w16", &[3, 1, 1, 2]);
        let mut bias = file.half_constant("b16", &[3]);
        if through_dequantize {
            for (constant, shape) in [(&mut weights, &[3, 1, 1, 2][..]), (&mut bias, &[3])] {
                let widened = file.map("widened", shape);
                file.op(code("DEQUANTIZE"), &[*constant], &[widened], OptionsSpec::None);
                *constant = widened;
            }
        }
        let out = file.map("out", &[1, 4, 4, 3]);
        file.op(code("CONV_2D"), &[0, weights, bias], &[out], OptionsSpec::Conv2d(Window::default()));
        file.outputs.push(out);
        let graph = load(&file);
        let weights = constant(&graph, only(&graph), Operand::Weights).expect("weights");
        assert_eq!(weights.dtype(), DType::F16, "halves stay halves");
        assert_eq!(&*weights.to_f32(), &[0.0, 0.25, 0.5, 0.75, 1.0, 1.25]);
        let bias = constant(&graph, only(&graph), Operand::Bias).expect("a bias");
        assert_eq!((bias.dtype(), &*bias.to_f32()), (DType::F32, &[0.0, 0.25, 0.5][..]));
    }
}

#[test]
fn constants_may_lie_behind_the_flatbuffer() {
    let mut file = FileSpec::stem();
    let data = file.buffers[1].data.take().expect("weights");
    let first = 16_384;
    file.buffers[1].outside = Some([first, data.len() as u64]);
    let mut bytes = file.bytes();
    assert!(bytes.len() < first as usize);
    bytes.resize(first as usize, 0);
    bytes.extend(&data);
    let load = |bytes: &[u8]| Model::from_bytes(bytes, &LoadOptions::default());
    let graph = load(&bytes).expect("a model").graph;
    let weights = constant(&graph, only(&graph), Operand::Weights).expect("weights");
    let wanted: Vec<f32> = data.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
    assert_eq!(*weights.to_f32(), wanted);
    bytes.pop();
    let error = load(&bytes).expect_err("a byte is missing").to_string();
    assert!(error.contains("wanted one within its"), "{error}");
}

#[test]
fn a_multiplier_of_0_is_taken_from_the_shapes() {
    let options = OptionsSpec::Depthwise(Window::default(), 0);
    let (weights, output) = ([1, 3, 3, 6], [1, 4, 4, 6]);
    let graph = load(&convolution([1, 4, 4, 2], weights, output, "DEPTHWISE_CONV_2D", options));
    assert_eq!(graph.shape(graph.outputs()[0]).ok(), Some(Shape::nhwc(1, 4, 4, 6)));
}

#[test]
fn names_are_made_unique_and_outputs_keep_their_order() {
    let mut file = FileSpec::with_input("same", &[1, 4, 4, 2]);
    let weights = file.constant("w", &[2, 1, 1, 2]);
    let first = file.map("same", &[1, 4, 4, 2]);
    let second = file.map("", &[1, 4, 4, 2]);
    for output in [first, second] {
        file.op(code("CONV_2D"), &[0, weights], &[output], OptionsSpec::Conv2d(Window::default()));
    }
    file.outputs = vec![second, first];
    let graph = load(&file);
    let names: Vec<_> = graph.nodes().iter().map(Node::name).collect();
    assert_eq!(names, ["same#2", "tensor_3"]);
    let outputs: Vec<_> = graph.outputs().iter().map(|&value| graph.name(value).expect("a name")).collect();
    assert_eq!(outputs, ["tensor_3", "same#2"]);
}

#[test]
fn codes_of_old_writers_are_read() {
    let mut file = FileSpec::stem();
    file.ops[0].old_writer = true;
    assert_eq!(only(&load(&file)).name(), "stem");
}

#[test]
fn constants_of_one_buffer_are_read_once() {
    let mut file = FileSpec::with_input("image", &[1, 4, 4, 2]);
    let weights = file.constant("w", &[2, 1, 1, 2]);
    let mut x = 0;
    for layer in 0..3 {
        let out = file.map(&format!("layer{layer}"), &[1, 4, 4, 2]);
        file.op(code("CONV_2D"), &[x, weights], &[out], OptionsSpec::Conv2d(Window::default()));
        x = out;
    }
    file.outputs.push(x);
    let graph = load(&file);
    let bytes = |node: &Node| constant(&graph, node, Operand::Weights).expect("weights").bytes().as_ptr();
    assert!(graph.nodes().iter().all(|node| bytes(node) == bytes(&graph.nodes()[0])));
}

#[test]
fn inputs_and_outputs_have_the_names_of_the_signature() {
    let mut file = FileSpec::stem();
    file.signature = Some([vec![("picture", 0)], vec![("features", 3)]]);
    file.description = Some("a stem");
    let model = Model::from_bytes(&file.bytes(), &LoadOptions::default()).expect("a valid file");
    assert_eq!((model.inputs[0].name.as_str(), model.outputs[0].name.as_str()), ("picture", "features"));
    assert_eq!(model.outputs[0].dims, Shape::nhwc(1, 4, 4, 4).into());
    assert_eq!(model.info.description, "a stem");
}

#[test]
fn shapes_are_inferred_and_not_believed() {
    let mut file = FileSpec::stem();
    file.tensors[3].shape = vec![1, 5, 9, 1];
    let graph = load(&file);
    assert_eq!(graph.shape(graph.outputs()[0]).ok(), Some(Shape::nhwc(1, 4, 4, 4)));
}

#[test]
fn open_extents_are_given_by_name() {
    let mut file = FileSpec::stem();
    file.tensors[0].shape = vec![1, 1, 1, 3];
    file.tensors[0].signature = Some(vec![-1, -1, -1, 3]);
    let dimensions = [("batch", 2), ("image.1", 8), ("image.2", 12)];
    let options = LoadOptions {
        dimensions: dimensions.map(|(name, extent)| (name.to_owned(), extent)).into(),
        ..Default::default()
    };
    let model = Model::from_bytes(&file.bytes(), &options).expect("every extent is given");
    assert_eq!(model.outputs[0].dims, Shape::nhwc(2, 4, 6, 4).into());
    let five = model.graph.with_dimensions(&[("batch", 5)]).expect("another batch");
    assert_eq!(five.shape(five.outputs()[0]).ok(), Some(Shape::nhwc(5, 4, 6, 4)));
}

#[test]
fn networks_behind_the_first_are_left_out() {
    let mut file = FileSpec::stem();
    file.networks = 3;
    assert_eq!(load(&file).nodes().len(), 1);
}

#[test]
fn a_view_may_be_an_output_beside_what_it_shows() {
    let mut file = FileSpec::stem();
    let same = file.map("same", &[1, 4, 4, 4]);
    file.op(code("DEQUANTIZE"), &[3], &[same], OptionsSpec::None);
    file.outputs = vec![3, same];
    let graph = load(&file);
    let names: Vec<_> = graph.outputs().iter().map(|&value| graph.name(value).expect("a name")).collect();
    assert_eq!(names, ["stem", "same"]);
}

#[test]
fn a_transposed_convolution_with_a_bias_is_mediapipes() {
    let mut file = FileSpec::with_input("image", &[1, 5, 4, 2]);
    let (weights, bias) = (file.constant("w", &[3, 3, 2, 2]), file.constant("b", &[3]));
    let out = file.map("out", &[]);
    file.op(code("CUSTOM"), &[0, weights, bias], &[out], OptionsSpec::None);
    let op = file.ops.last_mut().expect("an operator");
    op.custom = Some("Convolution2DTransposeBias".to_owned());
    // SAME, strides of 2 along width and 3 along height.
    op.custom_options = Some([1i32, 2, 3].into_iter().flat_map(i32::to_le_bytes).collect());
    file.outputs.push(out);
    let graph = load(&file);
    // 3 (5 - 1) + 3 - max(3 - 4 % 3 - 1, 0) and 2 (4 - 1) + 2 - max(2 - 3 % 2 - 1, 0).
    assert_eq!(graph.shape(graph.outputs()[0]).ok(), Some(Shape::nhwc(1, 14, 8, 3)));
    assert_eq!(only(&graph).operator().name(), "transposed_conv2d");
}

/// The elements of the only output, of inputs that are what constants of a file are.
fn computed(file: &FileSpec, inputs: &[(&str, &[usize])]) -> Vec<f32> {
    let graph = load(file);
    let session = Session::on_cpu(&graph).expect("a session");
    let counted = |dims: &[usize]| {
        let dims = Dims::new(dims).expect("extents");
        HostTensor::new(dims, (0..dims.elements()).map(|at| at as f32 * 0.25).collect::<Vec<_>>())
    };
    let tensors: Vec<HostTensor> = inputs.iter().map(|(_, dims)| counted(dims).expect("a tensor")).collect();
    let feeds: Vec<(&str, &HostTensor)> =
        inputs.iter().zip(&tensors).map(|((name, _), tensor)| (*name, tensor)).collect();
    session.compute(&feeds).expect("a run")[0].to_f32().into_owned()
}

#[test]
fn weights_and_biases_may_be_computed() {
    let window = Window { stride: [2, 1], activation: 1, ..Default::default() };
    for (name, weights, options) in [
        ("CONV_2D", [4, 3, 2, 2], OptionsSpec::Conv2d(window)),
        ("CONV_2D", [4, 3, 2, 1], OptionsSpec::Conv2d(window)),
        ("DEPTHWISE_CONV_2D", [1, 3, 2, 4], OptionsSpec::Depthwise(window, 2)),
    ] {
        let file = |are_inputs: [bool; 2]| {
            let mut file = FileSpec::with_input("image", &[1, 5, 4, 2]);
            let mut operand = |name: &str, shape: &[i32], is_input: bool| match is_input {
                false => file.constant(name, shape),
                true => {
                    let own = file.map(name, shape);
                    file.inputs.push(own);
                    own
                }
            };
            let weights = operand("weights", &weights, are_inputs[0]);
            let bias = operand("bias", &[4], are_inputs[1]);
            let out = file.map("out", &[1, 3, 4, 4]);
            file.op(code(name), &[0, weights, bias], &[out], options.clone());
            file.outputs.push(out);
            file
        };
        let image: (&str, &[usize]) = ("image", &[1, 5, 4, 2]);
        let extents = weights.map(|extent| extent as usize);
        let wanted = computed(&file([false, false]), &[image]);
        assert_eq!(computed(&file([true, false]), &[image, ("weights", &extents)]), wanted, "{name}");
        assert_eq!(computed(&file([false, true]), &[image, ("bias", &[4])]), wanted, "{name}");
        let all = [image, ("weights", &extents), ("bias", &[4])];
        assert_eq!(computed(&file([true, true]), &all), wanted, "{name}");
    }
}

#[test]
fn what_lies_around_may_be_computed() {
    let file = |is_input: bool| {
        let mut file = FileSpec::with_input("x", &[2, 3]);
        let pads = file.integers("pads", &[2, 2], &[1, 0, 0, 2]);
        let fill = if is_input { file.map("fill", &[1]) } else { file.constant("fill", &[1]) };
        if is_input {
            file.inputs.push(fill);
        }
        let out = file.map("out", &[3, 5]);
        file.op(code("PADV2"), &[0, pads, fill], &[out], OptionsSpec::None);
        file.outputs.push(out);
        file
    };
    let wanted = computed(&file(false), &[("x", &[2, 3])]);
    assert_eq!(wanted.len(), 15);
    assert_eq!(computed(&file(true), &[("x", &[2, 3]), ("fill", &[1])]), wanted);
}
