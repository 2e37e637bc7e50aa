//! Rows in halves: what a transformer's block keeps in them, and how far its result is from that in f32.

use crate::machine::{gpus, noise};
use diptych::nn::{Normalize, Reduction};
use diptych::{
    Activation, Bits, Calibration, Context, DType, Dims, Extras, Function, Gemm, Graph, HostTensor,
    Pointwise, Precision, Rewrite, Right, Session, SessionOptions, Shape, Softmax, Step, Value,
};

const TOKENS: usize = 21;
const HEADS: usize = 3;
const EACH: usize = 8;
const WIDTH: usize = HEADS * EACH;

pub(crate) fn tensor(extents: &[usize], seed: u32) -> HostTensor {
    let dims = Dims::new(extents).expect("small");
    noise(Shape::nhwc(1, 1, 1, dims.elements()), seed).reshaped(dims).expect("as many")
}

fn dense(graph: &mut Graph, name: &str, x: Value, to: usize, seed: u32, activation: Activation) -> Value {
    let from = graph.dims(x).expect("a value").extents()[1];
    let bias = Extras::bias(tensor(&[to], seed + 1));
    let options = Gemm { activation, ..Gemm::default() };
    graph.gemm(name, x, Right::Constant(tensor(&[from, to], seed)), bias, options).expect("a product")
}

/// A normalisation; of the root of the mean square if it is not `centred`.
fn norm(graph: &mut Graph, name: &str, x: Value, seed: u32, centred: bool) -> Value {
    let options = Normalize { centred, ..Normalize::default() };
    let [scale, bias] = [seed, seed + 1].map(|seed| Some(tensor(&[WIDTH], seed)));
    graph.normalize(name, x, options, scale, bias).expect("a normalisation")
}

fn sum(graph: &mut Graph, name: &str, a: Value, b: Value) -> Value {
    graph.elementwise(name, Function::Add, &[a.into(), b.into()]).expect("a sum")
}

/// Columns of `x` by heads, in the order that `axes` says.
fn heads(graph: &mut Graph, name: &str, x: Value, axes: &[usize]) -> Value {
    let dims = [TOKENS.into(), HEADS.into(), EACH.into()];
    let apart = graph.reshape(&format!("{name} heads"), x, &dims).expect("a view");
    graph.transpose(&format!("{name} order"), apart, axes).expect("a transpose")
}

/// A block before whose parts a normalisation stands.
fn block(graph: &mut Graph, name: &str, x: Value, seed: u32) -> Value {
    let plain = Activation::None;
    let own = |part: &str| format!("{name} {part}");
    let y = norm(graph, &own("norm"), x, seed, true);
    let [q, k, v] = [("q", [1, 0, 2]), ("k", [1, 2, 0]), ("v", [1, 0, 2])].map(|(part, axes)| {
        let rows = dense(graph, &own(part), y, WIDTH, seed + u32::from(part.as_bytes()[0]), plain);
        heads(graph, &own(part), rows, &axes)
    });
    let mut product = |part: &str, a: Value, b: Value, alpha: f32| {
        let options = Gemm { alpha: Bits(alpha), ..Gemm::default() };
        graph.gemm(&own(part), a, Right::Value(b), Extras::default(), options).expect("a product")
    };
    let scores = product("scores", q, k, 0.35);
    let shares = graph.softmax(&own("shares"), scores, Softmax::default()).expect("a softmax");
    let options = Gemm::default();
    let mixed = graph.gemm(&own("mixed"), shares, Right::Value(v), Extras::default(), options);
    let tokens = graph.transpose(&own("tokens"), mixed.expect("a product"), &[1, 0, 2]).expect("a transpose");
    let rows = graph.reshape(&own("rows"), tokens, &[TOKENS.into(), WIDTH.into()]).expect("a view");
    let out = dense(graph, &own("out"), rows, WIDTH, seed + 7, plain);
    let x = sum(graph, &own("first sum"), out, x);
    let y = norm(graph, &own("second norm"), x, seed + 9, false);
    let wide = dense(graph, &own("wide"), y, 4 * WIDTH, seed + 11, Activation::Gelu);
    let narrow = dense(graph, &own("narrow"), wide, WIDTH, seed + 13, plain);
    sum(graph, &own("second sum"), narrow, x)
}

pub(crate) fn blocks(count: u32) -> Graph {
    let mut graph = Graph::new();
    let mut x = graph.input("x", Dims::new(&[TOKENS, WIDTH]).expect("small")).expect("an input");
    for index in 0..count {
        x = block(&mut graph, &format!("block {index}"), x, 1000 * (index + 1));
    }
    graph.output(x).expect("an output");
    graph
}

fn run(context: &Context, graph: &Graph, precision: Precision) -> (Vec<f32>, Vec<Step>) {
    let options =
        SessionOptions { precision, without_rewrites: [Rewrite::Loops].into(), ..SessionOptions::default() };
    let mut session = Session::new(context, graph, options).expect("a session");
    let inputs = [("x", &tensor(&[TOKENS, WIDTH], 5))];
    // Twice: what the first run leaves behind must not matter.
    session.run(&inputs).expect("a run");
    let found = session.run(&inputs).expect("a run");
    (found[0].to_f32().to_vec(), session.steps())
}

/// The root of the mean square of what differs, relative to that of what is right.
fn off(exact: &[f32], found: &[f32]) -> f64 {
    let square =
        |values: &mut dyn Iterator<Item = f32>| values.map(|x| f64::from(x) * f64::from(x)).sum::<f64>();
    let differing = square(&mut exact.iter().zip(found).map(|(exact, found)| exact - found));
    (differing / square(&mut exact.iter().copied())).sqrt()
}

#[test]
fn a_transformers_blocks_stay_in_rows_of_halves_from_the_first_to_the_last() {
    let graph = blocks(2);
    for context in gpus() {
        let info = context.info();
        let (exact, plain) = run(&context, &graph, Precision::F32);
        let halves = info.device.as_ref().is_some_and(|device| device.limits.native_half);
        let told = |steps: &[Step]| -> Vec<String> {
            steps.iter().map(|step| format!("{} {} {}", step.op, step.precision, step.name)).collect()
        };
        assert!(plain.iter().all(|step| step.op != "convert"), "{info}: {:#?}", told(&plain));
        for precision in [Some(Precision::F16Storage), halves.then_some(Precision::F16)].into_iter().flatten()
        {
            let (found, steps) = run(&context, &graph, precision);
            let converted: Vec<usize> =
                (0..steps.len()).filter(|&index| steps[index].op == "convert").collect();
            // What enters and what leaves.
            assert_eq!(converted, [0, steps.len() - 1], "{info}: {:#?}", told(&steps));
            assert_eq!(steps.len(), plain.len() + 2, "{info}: {:#?}", told(&steps));
            // Sums are in f32 in either.
            let stored = |step: &Step| step.precision == Precision::F16Storage;
            assert!(steps.iter().all(stored), "{info}: {:#?}", told(&steps));
            // Each of some thirty roundings to halves in a row is off by at most 2^-11 of its result.
            let off = off(&exact, &found);
            assert!(off < 30.0 / 2048.0, "{info}: {off}");
            assert!(off > 1.0 / 65536.0, "{info}: nothing was rounded, {off}");
        }
    }
}

/// The precision of the step whose name begins so.
fn of(steps: &[Step], name: &str) -> Precision {
    let found = steps.iter().find(|step| step.name.starts_with(name));
    found.unwrap_or_else(|| panic!("no step {name}: {steps:#?}")).precision
}

/// A product, its rows divided by the root of the sum of their squares, and a product.
fn by_length(rows: usize, width: usize) -> Graph {
    let mut graph = Graph::new();
    let x = graph.input("x", Dims::new(&[rows, width]).expect("small")).expect("an input");
    let y = dense(&mut graph, "first", x, width, 1, Activation::None);
    let square = graph.elementwise("square", Function::Mul, &[y.into(), y.into()]).expect("a square");
    let sum = graph.reduce("sum", square, Reduction::Sum, &[-1], true).expect("a sum");
    let more = graph.elementwise("more", Function::Add, &[sum.into(), 1e-6.into()]).expect("a sum");
    let root = graph.elementwise("root", Function::Rsqrt, &[more.into()]).expect("a root");
    let y = graph.elementwise("scaled", Function::Mul, &[y.into(), root.into()]).expect("a product");
    let y = dense(&mut graph, "last", y, width, 3, Activation::None);
    graph.output(y).expect("an output");
    graph
}

/// Products before and behind exponentials.
fn by_powers(rows: usize, width: usize) -> Graph {
    let mut graph = Graph::new();
    let x = graph.input("x", Dims::new(&[rows, width]).expect("small")).expect("an input");
    let y = dense(&mut graph, "first", x, width, 1, Activation::None);
    let y = graph.elementwise("powers", Function::Exp, &[y.into()]).expect("powers");
    let y = dense(&mut graph, "last", y, width, 3, Activation::None);
    graph.output(y).expect("an output");
    graph
}

#[test]
fn what_halves_would_not_hold_is_in_f32_and_so_is_what_saves_less_than_conversions() {
    let options = SessionOptions {
        precision: Precision::F16Storage,
        without_rewrites: [Rewrite::Loops, Rewrite::ProductRows, Rewrite::Epilogues, Rewrite::Prologues]
            .into(),
        ..SessionOptions::default()
    };
    for context in gpus() {
        let info = context.info();
        let steps =
            |graph: &Graph| Session::new(&context, graph, options.clone()).expect("a session").steps();
        let converted = |steps: &[Step]| steps.iter().filter(|step| step.op == "convert").count();
        let large = steps(&by_powers(1024, 512));
        for (name, precision) in
            [("first", Precision::F16Storage), ("powers", Precision::F32), ("last", Precision::F16Storage)]
        {
            assert_eq!(of(&large, name), precision, "{info}: {name} of {large:#?}");
        }
        assert_eq!(converted(&large), 4, "{info}: {large:#?}");
        let small = steps(&by_powers(8, 8));
        assert!(small.iter().all(|step| step.precision == Precision::F32), "{info}: {small:#?}");
        assert_eq!(converted(&small), 0, "{info}: {small:#?}");
        // Squares are written in f32, and their sum is: nothing between the ends is converted.
        let norm = steps(&by_length(8, 8));
        assert_eq!(of(&norm, "sum"), Precision::F32, "{info}: {norm:#?}");
        assert_eq!(of(&norm, "scaled"), Precision::F16Storage, "{info}: {norm:#?}");
        assert_eq!(converted(&norm), 2, "{info}: {norm:#?}");
    }
}

#[test]
fn squares_beyond_halves_are_those_of_f32() {
    let graph = by_length(9, 24);
    let input = tensor(&[9, 24], 5);
    let large: Vec<f32> = input.to_f32().iter().map(|value| 2000.0 * value).collect();
    let large = HostTensor::new(Shape::matrix(1, 9, 24), large).expect("as many");
    let large = large.reshaped(input.dims()).expect("as many");
    for context in gpus() {
        let run = |precision| {
            let options = SessionOptions { precision, ..SessionOptions::default() };
            let mut session = Session::new(&context, &graph, options).expect("a session");
            session.run(&[("x", &large)]).expect("a run")[0].to_f32().to_vec()
        };
        let off = off(&run(Precision::F32), &run(Precision::F16Storage));
        assert!(off < 10.0 / 2048.0, "{}: {off}", context.info());
    }
}

/// Moves, parts that begin where no binding may, and lines along other axes, of odd extents.
fn moves() -> Graph {
    let mut graph = Graph::new();
    let x = graph.input("x", Dims::new(&[TOKENS, WIDTH]).expect("small")).expect("an input");
    let a = dense(&mut graph, "a", x, 7, 1, Activation::None);
    let b = dense(&mut graph, "b", x, 7, 3, Activation::Tanh);
    let part = graph.slice("part", a, 0, 3..14).expect("a part");
    let joined = graph.concat("joined", &[part, b, a], 0).expect("joined");
    let beside = graph.concat("beside", &[a, b], 1).expect("beside");
    let options = Softmax { axis: 0, ..Softmax::default() };
    let shares = graph.softmax("shares", joined, options).expect("a softmax");
    let turned = graph.transpose("turned", shares, &[1, 0]).expect("a transpose");
    let most = graph.reduce("most", turned, Reduction::Max, &[1], true).expect("a maximum");
    let scaled = graph.elementwise("scaled", Function::Mul, &[turned.into(), most.into()]).expect("scaled");
    let options = Gemm { transpose_b: true, ..Gemm::default() };
    let back = graph.transpose("back", scaled, &[1, 0]).expect("a transpose");
    let square = graph.gemm("square", back, Right::Value(joined), Extras::default(), options);
    graph.output(square.expect("a product")).expect("an output");
    graph.output(beside).expect("an output");
    // What leaves as rows of f32 is read as rows of halves too.
    graph.output(part).expect("an output");
    graph
}

#[test]
fn parts_and_moves_of_odd_extents_are_what_they_are_in_f32() {
    let graph = moves();
    for context in gpus() {
        let info = context.info();
        let run = |precision| {
            let options = SessionOptions {
                precision,
                without_rewrites: [Rewrite::Loops].into(),
                ..SessionOptions::default()
            };
            let mut session = Session::new(&context, &graph, options).expect("a session");
            session.run(&[("x", &tensor(&[TOKENS, WIDTH], 5))]).expect("a run");
            let found = session.run(&[("x", &tensor(&[TOKENS, WIDTH], 5))]).expect("a run");
            (found.iter().map(|found| found.to_f32().to_vec()).collect::<Vec<_>>(), session.steps())
        };
        let ((exact, _), (found, steps)) = (run(Precision::F32), run(Precision::F16Storage));
        for name in ["shares", "turned", "most", "square"] {
            assert_eq!(of(&steps, name), Precision::F16Storage, "{info}: {steps:#?}");
        }
        for (exact, found) in exact.iter().zip(&found) {
            let off = off(exact, found);
            assert!(off < 10.0 / 2048.0, "{info}: {off}");
            assert!(off > 1.0 / 65536.0, "{info}: nothing was rounded, {off}");
        }
    }
}

/// A normalisation, which bounds what a product sums, and the product.
fn bounded(rows: usize) -> Graph {
    const WIDTH: usize = 512;
    let mut graph = Graph::new();
    let x = graph.input("x", Dims::new(&[rows, WIDTH]).expect("small")).expect("an input");
    let options = Normalize { axes: vec![-1], epsilon: Bits(1e-5), ..Normalize::default() };
    let y = graph.normalize("norm", x, options, None, None).expect("a normalisation");
    let y = dense(&mut graph, "dense", y, WIDTH, 1, Activation::None);
    graph.output(y).expect("an output");
    graph
}

/// A device without instructions for halves gains nothing by them.
pub(crate) fn gains_by_halves(context: &Context) -> bool {
    let limits = context.info().device.as_ref().map(|device| &device.limits);
    limits.is_some_and(|limits| limits.native_half || limits.matrix_unit.is_some())
}

#[test]
fn products_are_in_halves_by_themselves_where_that_saves_more_than_conversions() {
    let options = SessionOptions { precision: Precision::Auto, ..SessionOptions::default() };
    for context in gpus() {
        let info = context.info();
        if !gains_by_halves(&context) {
            continue;
        }
        let steps =
            |rows| Session::new(&context, &bounded(rows), options.clone()).expect("a session").steps();
        let (small, large) = (steps(16), steps(2048));
        for name in ["norm", "dense"] {
            assert_eq!(of(&small, name), Precision::F32, "{info}: {small:#?}");
            assert_eq!(of(&large, name), Precision::F16Storage, "{info}: {large:#?}");
        }
        assert_eq!([small.len(), large.len()], [2, 4], "{info}: {large:#?}");
    }
}

#[test]
fn whole_numbers_that_halves_do_not_hold_stay_what_they_are() {
    let mut graph = Graph::new();
    let x = graph.typed_input("x", DType::I16, &[3.into(), 5.into()]).expect("an input");
    let y = graph.transpose("turned", x, &[1, 0]).expect("a transpose");
    let y = graph.concat("joined", &[y, y], 1).expect("joined");
    graph.output(y).expect("an output");
    let numbers: Vec<i16> = (0..15).map(|index| 32_767 - 1234 * index).collect();
    let input = HostTensor::of(Dims::new(&[3, 5]).expect("small"), numbers.clone()).expect("as many");
    let options = SessionOptions { precision: Precision::F16Storage, ..SessionOptions::default() };
    for context in gpus() {
        let mut session = Session::new(&context, &graph, options.clone()).expect("a session");
        let found = session.run(&[("x", &input)]).expect("a run");
        let found = found[0].to_f32().to_vec();
        for (index, found) in found.iter().enumerate() {
            let (row, column) = (index / 6, index % 3);
            assert_eq!(*found, f32::from(numbers[5 * column + row]), "{}: {index}", context.info());
        }
    }
}

#[test]
fn a_calibrated_product_is_as_close_as_was_asked_for() {
    const ROWS: usize = 1100;
    let graph = bounded(ROWS);
    let input = tensor(&[ROWS, 512], 5);
    let samples = [vec![("x", &input)]];
    for context in gpus().iter().filter(|context| gains_by_halves(context)) {
        let info = context.info();
        let asked = SessionOptions { precision: Precision::Auto, ..SessionOptions::default() };
        let tolerance = Calibration::TOLERANCE;
        let calibration = Session::calibrate(context, &graph, &asked, &samples, tolerance);
        let calibration = Some(calibration.expect("a calibration"));
        let found = |options| {
            let mut session = Session::new(context, &graph, options).expect("a session");
            let found = session.run(&samples[0]).expect("a run");
            (found[0].to_f32().to_vec(), session.steps())
        };
        let (exact, _) = found(SessionOptions::default());
        let (found, steps) = found(SessionOptions { calibration, ..asked });
        assert_eq!(of(&steps, "dense"), Precision::F16Storage, "{info}: {steps:#?}");
        let off = off(&exact, &found);
        assert!(off <= f64::from(tolerance) && off > 0.0, "{info}: {off}");
    }
}

#[test]
fn constants_of_half_rows_take_half_the_memory() {
    let graph = bounded(16);
    for context in gpus() {
        let constants = |precision| {
            let options = SessionOptions { precision, ..SessionOptions::default() };
            Session::new(&context, &graph, options).expect("a session").memory().constants
        };
        let [wide, narrow] = [Precision::F32, Precision::F16Storage].map(constants);
        let right = 512 * 512;
        assert!(wide >= 4 * right && narrow >= 2 * right, "{}: {wide} {narrow}", context.info());
        assert_eq!(wide - narrow, 2 * right, "{}: {wide} {narrow}", context.info());
    }
}

#[test]
fn lines_that_a_mask_covers_are_numbers() {
    const KEYS: usize = 24;
    let by = |counts: &dyn Fn(usize) -> bool| {
        let values: Vec<f32> =
            (0..TOKENS * KEYS).map(|index| if counts(index) { 0.0 } else { f32::MIN }).collect();
        let values = HostTensor::new(Shape::matrix(1, TOKENS, KEYS), values).expect("as many");
        values.reshaped(Dims::new(&[TOKENS, KEYS]).expect("small")).expect("as many")
    };
    // Every third line is hidden altogether by what is given, another third by a constant, and a part of the last.
    let given = by(&|index| !(index / KEYS).is_multiple_of(3));
    let constant = by(&|index| (index / KEYS) % 3 != 1 && index % 5 != 0);
    let mut graph = Graph::new();
    let x = graph.input("x", Dims::new(&[TOKENS, WIDTH]).expect("small")).expect("an input");
    let mask = graph.input("mask", Dims::new(&[TOKENS, KEYS]).expect("small")).expect("an input");
    let constant = graph.constant("constant", constant);
    let scores = dense(&mut graph, "scores", x, KEYS, 1, Activation::None);
    let masks =
        graph.elementwise("masks", Function::Minimum, &[mask.into(), constant.into()]).expect("masks");
    let masked = sum(&mut graph, "masked", scores, masks);
    let shares = graph.softmax("shares", masked, Softmax::default()).expect("a softmax");
    let y = dense(&mut graph, "y", shares, WIDTH, 3, Activation::None);
    graph.output(y).expect("an output");
    let input = tensor(&[TOKENS, WIDTH], 5);
    for context in gpus() {
        let info = context.info();
        let run = |precision| {
            let options = SessionOptions { precision, ..SessionOptions::default() };
            let mut session = Session::new(&context, &graph, options).expect("a session");
            let found = session.run(&[("x", &input), ("mask", &given)]).expect("a run");
            (found[0].to_f32().to_vec(), session.steps())
        };
        let ((exact, _), (found, steps)) = (run(Precision::F32), run(Precision::F16Storage));
        // Alone, or as a part of the product before.
        let shares = steps.iter().find(|step| step.name.ends_with("shares"));
        let stored = shares.map(|step| step.precision);
        assert_eq!(stored, Some(Precision::F16Storage), "{info}: {steps:#?}");
        assert!(found.iter().all(|value| value.is_finite()), "{info}: {found:?}");
        // Of a line without keys the largest half hides less than the largest f32: its shares are of some keys or others.
        let with_keys = |values: &[f32]| -> Vec<f32> {
            values.chunks(WIDTH).skip(2).step_by(3).flatten().copied().collect()
        };
        let off = off(&with_keys(&exact), &with_keys(&found));
        assert!(off < 10.0 / 2048.0, "{info}: {off}");
    }
}

#[test]
fn a_constant_of_half_rows_is_itself_where_a_map_is_in_f32() {
    let dims = Dims::new(&[1, 1, 6, 8]).expect("small");
    let mut graph = Graph::new();
    let x = graph.input("x", dims).expect("an input");
    let constant = graph.constant("constant", tensor(dims.extents(), 9));
    let right = Right::Constant(HostTensor::matrix(1, 8, 8, tensor(&[64], 1).to_f32().to_vec()).expect("64"));
    let rows = graph.gemm("rows", x, right, Extras::default(), Gemm::default()).expect("a product");
    let rows = sum(&mut graph, "rows sum", rows, constant);
    graph.output(rows).expect("an output");
    let weights = noise(Shape::nhwc(8, 1, 1, 8), 3);
    let map = graph.pointwise("map", x, weights, Extras::default(), Pointwise::default()).expect("1x1");
    let map = sum(&mut graph, "map sum", map, constant);
    graph.output(map).expect("an output");
    let input = tensor(dims.extents(), 5);
    for context in gpus() {
        let run = |options| {
            let mut session = Session::new(&context, &graph, options).expect("a session");
            let found = session.run(&[("x", &input)]).expect("a run");
            (found.iter().map(|found| found.to_f32().to_vec()).collect::<Vec<_>>(), session.steps())
        };
        let (exact, _) = run(SessionOptions::default());
        let precisions = ["rows", "rows sum"].map(|name| (name.to_owned(), Precision::F16Storage)).into();
        let (found, steps) = run(SessionOptions { precisions, ..SessionOptions::default() });
        assert_eq!(of(&steps, "rows"), Precision::F16Storage, "{}: {steps:#?}", context.info());
        assert_eq!(exact[1], found[1], "{}: {steps:#?}", context.info());
        assert_ne!(exact[0], found[0], "{}: {steps:#?}", context.info());
    }
}

/// Without half arithmetic WGSL has no single halves in buffers, so that rows are of f32; also where maps are asked for, which
/// these ops do not have for rows of two axes.
#[cfg(feature = "wgpu")]
#[test]
fn rows_are_of_f32_on_a_device_without_half_arithmetic() {
    use diptych::{Layout, Picking, Place, wgpu};
    let descriptor = wgpu::InstanceDescriptor::new_without_display_handle_from_env();
    let instance = wgpu::Instance::new(descriptor);
    let Ok(adapter) = pollster::block_on(instance.request_adapter(&Default::default())) else { return };
    let (features, required_limits) = Context::wgpu_requirements(&adapter);
    let required_features = features - wgpu::Features::SHADER_F16;
    let descriptor = wgpu::DeviceDescriptor { required_features, required_limits, ..Default::default() };
    let (device, queue) = pollster::block_on(adapter.request_device(&descriptor)).expect("a device");
    let context = Context::from_wgpu(&adapter, device, queue).expect("a context");
    assert!(!context.device().expect("a device").info().limits.native_half);
    let mut graph = Graph::new();
    let x = graph.input("x", Dims::new(&[TOKENS, WIDTH]).expect("small")).expect("an input");
    let y = block(&mut graph, "block", x, 1000);
    graph.output(y).expect("an output");
    let mean = graph.reduce("mean", y, Reduction::Mean, &[1], true).expect("a mean");
    graph.output(mean).expect("an output");
    let (exact, _) = run(&context, &graph, Precision::F32);
    let maps = Picking::Preference(vec![Place { layout: Some(Layout::C4), ..Place::default() }]);
    let by_node = graph.nodes().iter().map(|node| (node.name().to_owned(), Precision::F16Storage)).collect();
    let halves = Precision::F16Storage;
    for options in [
        SessionOptions { precision: halves, ..SessionOptions::default() },
        SessionOptions { precision: halves, pick: maps.clone(), ..SessionOptions::default() },
        SessionOptions { precisions: by_node, pick: maps, ..SessionOptions::default() },
    ] {
        let mut session = Session::new(&context, &graph, options).expect("a session");
        let steps = session.steps();
        let rows = ["norm", "shares", "mean"];
        let found = steps.iter().filter(|step| rows.iter().any(|name| step.name.ends_with(name)));
        let found: Vec<_> = found.map(|step| (&step.name, step.precision)).collect();
        assert!(found.len() >= 3 && found.iter().all(|(_, own)| *own == Precision::F32), "{found:?}");
        let outputs = session.run(&[("x", &tensor(&[TOKENS, WIDTH], 5))]).expect("a run");
        assert!(off(&exact, &outputs[0].to_f32()) < 30.0 / 2048.0);
    }
}
