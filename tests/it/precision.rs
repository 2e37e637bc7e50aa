//! The precision of single nodes: by hand, by bounds, and by calibration.

use crate::machine::{contexts, gpus, noise};
use diptych::nn::AxisRange;
use diptych::{
    Activation, Backend, Calibration, Context, Conv2d, Dims, Extras, Function, Gemm, Graph, HostTensor,
    Padding, Pointwise, Precision, Rewrite, Right, Session, SessionOptions, Shape, Softmax, Value,
};

const IMAGE: Shape = Shape::nhwc(1, 12, 13, 9);

/// A convolution of 3 x 3 to 24 channels.
fn conv2d(graph: &mut Graph, name: &str, x: Value, activation: Activation, scale: f32) -> Value {
    let channels = graph.dims(x).expect("a value").shape().c;
    let weights =
        noise(Shape::nhwc(24, 3, 3, channels), 3).to_f32().iter().map(|w| w * scale).collect::<Vec<_>>();
    let weights = HostTensor::new(Shape::nhwc(24, 3, 3, channels), weights).expect("as many");
    let options = Conv2d { padding: Padding::Same, activation, ..Default::default() };
    graph.conv2d(name, x, weights, Extras::default(), options).expect("a convolution")
}

fn pointwise(graph: &mut Graph, name: &str, x: Value, scale: f32) -> Value {
    let weights = noise(Shape::nhwc(24, 1, 1, 24), 6).to_f32().iter().map(|w| w * scale).collect::<Vec<_>>();
    let weights = HostTensor::new(Shape::nhwc(24, 1, 1, 24), weights).expect("as many");
    graph.pointwise(name, x, weights, Extras::default(), Pointwise::default()).expect("a convolution")
}

fn run(context: &Context, graph: &Graph, options: SessionOptions) -> (Vec<HostTensor>, Session) {
    let mut session = Session::new(context, graph, options).expect("a session");
    let outputs = session.run(&[("x", &noise(IMAGE, 20))]).expect("a run");
    (outputs, session)
}

fn auto() -> SessionOptions {
    SessionOptions { precision: Precision::Auto, ..Default::default() }
}

/// The largest difference relative to the largest magnitude.
fn off(exact: &HostTensor, found: &HostTensor) -> f32 {
    let (exact, found) = (exact.to_f32(), found.to_f32());
    let largest = exact.iter().fold(0.0f32, |most, value| most.max(value.abs()));
    exact.iter().zip(found.iter()).fold(0.0f32, |worst, (exact, found)| {
        let off = (exact - found).abs();
        if off <= worst { worst } else { off }
    }) / largest
}

/// The precision of a node.
fn of(session: &Session, name: &str) -> Precision {
    let step = session.steps().into_iter().find(|step| step.name == name);
    step.unwrap_or_else(|| panic!("no step {name}: {:?}", session.steps())).precision
}

#[test]
fn nodes_by_hand_are_in_f16_between_others_in_f32() {
    let mut graph = Graph::new();
    let x = graph.input("x", IMAGE).expect("an input");
    let first = conv2d(&mut graph, "first", x, Activation::Relu, 1.0);
    let second = conv2d(&mut graph, "second", first, Activation::Relu, 1.0);
    let third = conv2d(&mut graph, "third", second, Activation::None, 1.0);
    // Read as rows and as maps of both storages.
    graph.output(second).expect("an output");
    graph.output(third).expect("an output");
    for context in gpus() {
        let (exact, _) = run(&context, &graph, SessionOptions::default());
        for precision in [Precision::F16Storage, Precision::F32] {
            let session = if precision == Precision::F32 { Precision::F16Storage } else { Precision::F32 };
            let precisions = [("second".to_owned(), precision)].into();
            let options = SessionOptions { precision: session, precisions, ..Default::default() };
            let (found, made) = run(&context, &graph, options);
            assert_eq!(of(&made, "second"), precision, "{}", context.info());
            assert_eq!(of(&made, "first"), session);
            assert_eq!(of(&made, "third"), session);
            let steps = made.steps();
            let directly = |words: &str| steps.iter().filter(|step| step.name.contains(words)).count();
            assert_eq!([directly("f16 to f32"), directly("f32 to f16")], [1, 1], "{steps:?}");
            for (exact, found) in exact.iter().zip(&found) {
                let off = off(exact, found);
                assert!(off < 4e-3, "{}: {off}", context.info());
                assert!(off > 1e-7, "{}: nothing was rounded", context.info());
            }
        }
        let unknown = SessionOptions {
            precisions: [("fourth".to_owned(), Precision::F16)].into(),
            ..Default::default()
        };
        let error = Session::new(&context, &graph, unknown).expect_err("no such node").to_string();
        assert!(error.contains("fourth"), "{error}");
    }
}

#[test]
fn auto_is_in_f16_where_an_op_bounds_what_it_writes() {
    let mut graph = Graph::new();
    let x = graph.input("x", IMAGE).expect("an input");
    let bounded = conv2d(&mut graph, "bounded", x, Activation::Relu6, 1.0);
    let small = conv2d(&mut graph, "small", bounded, Activation::Relu, 1.0);
    let large = conv2d(&mut graph, "large", small, Activation::None, 1e4);
    let again = conv2d(&mut graph, "again", large, Activation::Relu6, 1e-4);
    let softmax = graph.softmax("softmax", again, Softmax::default()).expect("a softmax");
    graph.output(softmax).expect("an output");
    for context in gpus() {
        let (exact, _) = run(&context, &graph, SessionOptions::default());
        let (found, session) = run(&context, &graph, auto());
        let off = off(&exact[0], &found[0]);
        assert!(off < 1e-2, "{}: {off}", context.info());
        for name in ["large", "again", "softmax"] {
            assert_eq!(of(&session, name), Precision::F32, "{name} on {}", context.info());
        }
        // So small a network would not gain what the conversions cost; alone it has none.
        let mut alone = Graph::new();
        let x = alone.input("x", IMAGE).expect("an input");
        let y = conv2d(&mut alone, "bounded", x, Activation::Relu6, 1.0);
        alone.output(y).expect("an output");
        let (_, session) = run(&context, &alone, auto());
        let info = context.info().device.clone().expect("a device");
        let gains = info.limits.native_half || info.limits.matrix_unit.is_some();
        let wanted = if gains { Precision::F16Storage } else { Precision::F32 };
        assert_eq!(of(&session, "bounded"), wanted, "{}", context.info());
        let source = &session.steps()[0].source;
        println!("{}: {source}", context.info());
    }
}

/// A network whose middle is far beyond 65504.
fn overflowing() -> Graph {
    let mut graph = Graph::new();
    let x = graph.input("x", IMAGE).expect("an input");
    let first = conv2d(&mut graph, "first", x, Activation::Relu, 1.0);
    let large = pointwise(&mut graph, "large", first, 1e6);
    let small = pointwise(&mut graph, "small", large, 1e-6);
    let last = conv2d(&mut graph, "last", small, Activation::None, 1.0);
    graph.output(last).expect("an output");
    graph
}

#[test]
fn a_calibration_keeps_in_f32_what_halves_do_not_hold() {
    let graph = overflowing();
    let input = noise(IMAGE, 20);
    let samples = [vec![("x", &input)]];
    for context in contexts(&[Backend::Cpu, Backend::OpenCl, Backend::Wgpu]) {
        let found = Session::calibrate(&context, &graph, &auto(), &samples, Calibration::TOLERANCE);
        let limits = context.info().device.as_ref().map(|info| info.limits.clone());
        if !limits.is_some_and(|limits| limits.native_half || limits.matrix_unit.is_some()) {
            let error = found.expect_err("no halves").to_string();
            assert!(error.contains("halves"), "{error}");
            continue;
        }
        let found = found.expect("a calibration");
        println!("{}: {found}", context.info());
        let kept: Vec<&str> = found.kept().map(|node| node.name.as_str()).collect();
        assert_eq!(kept, ["large", "small"], "what writes, and what reads, more than 65504");
        assert!(found.kept().all(|node| node.kept.as_ref().is_some_and(|why| why.contains("65504"))));
        assert!(found.outputs()[0].error <= Calibration::TOLERANCE);

        let text = found.to_json().expect("JSON");
        let again = Calibration::from_json(&text).expect("the same");
        assert_eq!(again, found);
        let (exact, _) = run(&context, &graph, SessionOptions::default());
        let (rounded, _) =
            run(&context, &graph, SessionOptions { precision: Precision::F16Storage, ..auto() });
        assert!(rounded[0].to_f32().iter().any(|value| !value.is_finite()), "f16 overflows");
        let (calibrated, session) =
            run(&context, &graph, SessionOptions { calibration: Some(again), ..auto() });
        let off = off(&exact[0], &calibrated[0]);
        assert!(off <= Calibration::TOLERANCE, "{off}");
        assert_eq!(of(&session, "large"), Precision::F32);

        let mut other = Graph::new();
        let x = other.input("x", IMAGE).expect("an input");
        let y = conv2d(&mut other, "elsewhere", x, Activation::Relu, 1.0);
        other.output(y).expect("an output");
        let options = SessionOptions { calibration: Some(found), ..auto() };
        let error = Session::new(&context, &other, options).expect_err("another network").to_string();
        assert!(error.contains("elsewhere"), "{error}");
    }
}

#[test]
fn a_calibration_keeps_nodes_until_the_outputs_are_within_the_tolerance() {
    // Two large values that nearly cancel: halves keep eleven bits of each.
    let mut graph = Graph::new();
    let x = graph.input("x", IMAGE).expect("an input");
    let common = conv2d(&mut graph, "common", x, Activation::Relu, 8.0);
    let one = pointwise(&mut graph, "one", common, 1.0);
    let other = pointwise(&mut graph, "other", common, -0.99);
    let sum = graph.elementwise("sum", diptych::Function::Add, &[one.into(), other.into()]).expect("a sum");
    graph.output(sum).expect("an output");
    let input = noise(IMAGE, 20);
    let samples = [vec![("x", &input)]];
    for context in contexts(&[Backend::Wgpu]) {
        if !context.info().device.as_ref().is_some_and(|info| info.limits.native_half) {
            continue;
        }
        let (exact, _) = run(&context, &graph, SessionOptions::default());
        let kept = |tolerance: f32| {
            let found =
                Session::calibrate(&context, &graph, &auto(), &samples, tolerance).expect("a calibration");
            let count = found.kept().count();
            println!("{found}");
            let (rounded, _) = run(&context, &graph, SessionOptions { calibration: Some(found), ..auto() });
            let off = off(&exact[0], &rounded[0]);
            assert!(off <= tolerance, "{off} with {tolerance}");
            count
        };
        let (strict, loose) = (kept(1e-4), kept(0.5));
        assert_eq!(loose, 0);
        assert!(strict > 0);
        for (tolerance, samples) in [(0.0, &samples[..]), (f32::NAN, &samples[..]), (0.1, &[])] {
            assert!(Session::calibrate(&context, &graph, &auto(), samples, tolerance).is_err());
        }
    }
}

#[test]
fn what_is_no_calibration_is_refused() {
    for text in ["", "{}", "[1]", r#"{"format": 2, "tolerance": 0.1, "nodes": [], "outputs": []}"#] {
        let error = Calibration::from_json(text).expect_err(text).to_string();
        assert!(error.contains("calibration"), "{error}");
    }
    assert!(Calibration::load("/nowhere/at/all.json").is_err());
}

/// Networks that others trained, whose calibrations keep a few nodes.
#[cfg(feature = "tflite")]
#[test]
fn a_calibrated_network_computes_in_f16_what_it_may() {
    let root =
        std::env::var_os("DIPTYCH_SHARED").map_or_else(|| "../shared".into(), std::path::PathBuf::from);
    for name in ["mobilenet_v1_0.25_224_keras_f32", "selfie_segmentation", "gender_lite"] {
        let path = root.join("models").join(format!("{name}.tflite"));
        if !path.exists() {
            println!("skipped: {} is not there", path.display());
            continue;
        }
        let graph = diptych::tflite::load(&path).expect("a network");
        let input = graph.inputs()[0];
        let shape = graph.dims(input).expect("a value").shape();
        let image =
            HostTensor::new(shape, noise(shape, 7).to_f32().iter().map(|v| v + 0.5).collect::<Vec<_>>());
        let (port, image) = (graph.name(input).expect("a name").to_owned(), image.expect("as many"));
        let samples = [vec![(port.as_str(), &image)]];
        for context in gpus() {
            let limits = context.info().device.as_ref().map(|info| info.limits.clone());
            if !limits.is_some_and(|limits| limits.native_half || limits.matrix_unit.is_some()) {
                continue;
            }
            let tolerance = Calibration::TOLERANCE;
            let found =
                Session::calibrate(&context, &graph, &auto(), &samples, tolerance).expect("a calibration");
            let mut exact = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
            let options = SessionOptions { calibration: Some(found.clone()), ..auto() };
            let mut session = Session::new(&context, &graph, options).expect("a session");
            let outputs = exact
                .run(&samples[0])
                .expect("a run")
                .into_iter()
                .zip(session.run(&samples[0]).expect("a run"));
            for (exact, rounded) in outputs {
                let off = off(&exact, &rounded);
                assert!(off <= tolerance, "{name}: {off}");
            }
            let steps = session.steps();
            let halves = steps.iter().filter(|step| step.precision != Precision::F32).count();
            println!("{name}: {halves} of {} steps in f16, {} nodes kept", steps.len(), found.kept().count());
            // In noise there is no person: all results are below a millionth, which few halves hold to a hundredth.
            let told = name != "selfie_segmentation";
            assert!(!told || halves > 0, "{name}: nothing is in f16: {found}");
        }
    }
}

/// Linear attention: `q (k^T v) / q (k^T 1)`, whose sums over all keys are beyond halves and whose quotient is not.
#[test]
fn sums_that_are_divided_by_sums_stay_in_f32_among_halves() {
    const KEYS: usize = 512;
    let dims = |extents: [usize; 2]| Dims::new(&extents).expect("small");
    let mut graph = Graph::new();
    let [q, k, v] = [("q", [64, 16]), ("k", [16, KEYS]), ("v", [KEYS, 17])]
        .map(|(name, extents)| graph.input(name, dims(extents)).expect("an input"));
    let mut product = |name: &str, a: Value, b: Value| {
        graph.gemm(name, a, Right::Value(b), Extras::default(), Gemm::default()).expect("a product")
    };
    let kv = product("kv", k, v);
    let all = product("all", q, kv);
    let mut columns = |name: &str, begin: isize, end: isize| {
        let ranges = [AxisRange::ALL, AxisRange::new(begin, end)];
        graph.strided_slice(name, all, &ranges).expect("columns")
    };
    let (sums, weights) = (columns("sums", 0, 16), columns("weights", 16, 17));
    let more = graph.elementwise("more", Function::Add, &[weights.into(), 1e-15.into()]).expect("a sum");
    let y = graph.elementwise("y", Function::Div, &[sums.into(), more.into()]).expect("a quotient");
    let halved = graph.elementwise("halved", Function::Mul, &[y.into(), q.into()]).expect("a product");
    graph.output(halved).expect("an output");
    // Keys and weights of 0 to 8.
    let positive = |extents: [usize; 2], seed: u32| {
        let noise = noise(Shape::nhwc(1, 1, extents[0], extents[1]), seed);
        let values: Vec<f32> = noise.to_f32().iter().map(|x| 8.0 * (x + 0.5)).collect();
        HostTensor::new(dims(extents), values).expect("as many")
    };
    let given =
        [("q", positive([64, 16], 1)), ("k", positive([16, KEYS], 2)), ("v", positive([KEYS, 17], 3))];
    let given = given.each_ref().map(|(name, tensor)| (*name, tensor));
    for context in gpus() {
        let run = |precision: Precision| {
            let options = SessionOptions { precision, ..Default::default() };
            let mut session = Session::new(&context, &graph, options).expect("a session");
            (session.run(&given).expect("a run").remove(0), session)
        };
        let ((exact, _), (found, session)) = (run(Precision::F32), run(Precision::F16Storage));
        assert!(off(&exact, &found) < 4.0 / 1024.0, "off by {} on {}", off(&exact, &found), context.info());
        assert_eq!(of(&session, "weights + more + sums + y + halved"), Precision::F32);
        let without_rewrites = [Rewrite::Loops].into();
        let options =
            SessionOptions { precision: Precision::F16Storage, without_rewrites, ..Default::default() };
        let session = Session::new(&context, &graph, options).expect("a session");
        for name in ["kv", "all", "sums", "weights"] {
            assert_eq!(of(&session, name), Precision::F32, "{name}");
        }
    }
}
