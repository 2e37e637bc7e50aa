//! Shaders of an application as nodes of a graph, on every backend.

use crate::machine::gpus;
use diptych::{
    Backend, Context, Custom, Database, Dims, Error, Extras, Graph, HostTensor, Picking, Place, Pointwise,
    Scalar, Session, SessionOptions, Shape, Tuning,
};

fn cpu() -> Context {
    Context::new(Backend::Cpu).expect("the CPU")
}

fn numbers(dims: impl Into<Dims>) -> HostTensor {
    let dims = dims.into();
    let values: Vec<f32> = (0..dims.elements()).map(|index| (index * 7 % 23) as f32 - 11.0).collect();
    HostTensor::new(dims, values).expect("numbers")
}

/// Two inputs, two outputs, a uniform, local memory and a helper function.
const BLEND: &str = "
struct Settings { width: u32, rows: u32, share: f32 }
@group(0) @binding(0) var<storage, read> first: array<f32>;
@group(0) @binding(1) var<storage, read> second: array<f32>;
@group(0) @binding(2) var<storage, read_write> mixed: array<f32>;
@group(0) @binding(3) var<storage, read_write> sums: array<f32>;
@group(0) @binding(4) var<uniform> settings: Settings;
var<workgroup> partial: array<f32, 8>;

fn blend(a: f32, b: f32) -> f32 {
    return a * settings.share + b * (1.0 - settings.share);
}

@compute @workgroup_size(8, 1, 1)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    var sum = 0.0;
    for (var x = lane; x < settings.width; x += 8u) {
        let at = id.y * settings.width + x;
        mixed[at] = blend(first[at], second[at]);
        sum += mixed[at];
    }
    partial[lane] = sum;
    workgroupBarrier();
    if lane == 0u {
        for (var i = 1u; i < 8u; i++) { sum += partial[i]; }
        sums[id.y] = sum;
    }
}
";

fn blend() -> Custom {
    let kernel = Custom::new("blend", BLEND).expect("a shader");
    let number = |extent: usize| Scalar::U32(u32::try_from(extent).expect("small"));
    kernel
        .outputs(|inputs| Ok(vec![inputs[0], Dims::new(&inputs[0].extents()[..1])?]))
        .grid(|inputs, _| [8, inputs[0].extents()[0], 1])
        .uniform(move |inputs, _| {
            let [rows, width] = *inputs[0].extents() else { return Vec::new() };
            vec![("share", Scalar::F32(0.25)), ("width", number(width)), ("rows", number(rows))]
        })
}

#[test]
fn a_shader_of_several_inputs_and_outputs_runs_on_both_apis() {
    let dims = Dims::new(&[5, 13]).expect("small");
    let (a, b) = (numbers(dims), numbers(Dims::new(&[5, 13]).expect("small")));
    let b = HostTensor::new(dims, b.to_f32().iter().map(|value| 2.0 - value).collect::<Vec<_>>()).expect("b");
    let mut graph = Graph::new();
    let inputs = [graph.input("a", dims).expect("a"), graph.input("b", dims).expect("b")];
    let outputs = graph.custom("mix", &blend(), &inputs).expect("a node");
    for &output in &outputs {
        graph.output(output).expect("an output");
    }
    let mixed: Vec<f32> =
        a.to_f32().iter().zip(b.to_f32().iter()).map(|(a, b)| a * 0.25 + b * 0.75).collect();
    let sums: Vec<f32> = mixed.chunks(13).map(|row| row.iter().sum()).collect();
    let contexts = gpus();
    for context in contexts {
        let mut session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
        let found = session.run(&[("a", &a), ("b", &b)]).expect("a run");
        assert_eq!(found[0].to_f32(), &mixed[..], "{}", context.info());
        assert_eq!(found[1].to_f32(), &sums[..], "{}", context.info());
        assert_eq!(found[1].dims().extents(), [5]);
    }
    // On the CPU only with a function for it.
    let error = Session::new(&cpu(), &graph, SessionOptions::default()).expect_err("no function");
    assert!(error.to_string().contains("on_cpu"), "{error}");
}

#[test]
fn a_shader_between_other_nodes_reads_rows_and_has_a_function_for_the_cpu() {
    let scale = "
        @group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
        @group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>;
        @compute @workgroup_size(64)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) {
            if id.x < arrayLength(&x) { y[id.x] = 3.0 * x[id.x]; }
        }";
    let scale = Custom::new("scale", scale).expect("a shader").on_cpu(|inputs, outputs| {
        for (y, x) in outputs[0].iter_mut().zip(inputs[0]) {
            *y = 3.0 * x;
        }
    });
    let mut graph = Graph::new();
    let x = graph.input("x", Shape::nhwc(1, 3, 5, 4)).expect("an input");
    let one = |rows: usize, columns: usize| {
        let at = |index: usize| if index / columns == index % columns { 1.0 } else { 0.0 };
        HostTensor::new(Shape::nhwc(rows, 1, 1, columns), (0..rows * columns).map(at).collect::<Vec<f32>>())
    };
    let same = |rows, columns| one(rows, columns).expect("weights");
    let a = graph.pointwise("a", x, same(4, 4), Extras::default(), Pointwise::default()).expect("1x1");
    let b = graph.custom("b", &scale, &[a]).expect("a node")[0];
    let c = graph.pointwise("c", b, same(4, 4), Extras::default(), Pointwise::default()).expect("1x1");
    graph.output(c).expect("an output");
    let x = numbers(Shape::nhwc(1, 3, 5, 4));
    let wanted: Vec<f32> = x.to_f32().iter().map(|x| 3.0 * x).collect();
    for context in gpus().into_iter().chain([cpu()]) {
        let mut session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
        for _ in 0..2 {
            let found = session.run(&[("x", &x)]).expect("a run");
            assert_eq!(found[0].to_f32(), &wanted[..], "{}", context.info());
        }
    }
    // 15 values are no whole vec4s.
    let odd = graph.input("odd", Shape::nhwc(1, 1, 3, 5)).expect("an input");
    let error = graph.custom("odd", &scale, &[odd]).expect_err("15 values").to_string();
    assert!(error.contains("15 elements") && error.contains("4 values"), "{error}");
}

#[test]
fn an_index_beyond_its_array_reaches_nothing_else() {
    // Reads and writes far beyond its buffers, and what it shares.
    let stray = "
        @group(0) @binding(0) var<storage, read> x: array<f32>;
        @group(0) @binding(1) var<storage, read_write> y: array<f32>;
        var<workgroup> shared_values: array<f32, 4>;
        @compute @workgroup_size(4)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) {
            var own = array<f32, 3>(1.0, 2.0, 3.0);
            let far = id.x * 100000000u + 1000u;
            own[far] = 4.0;
            shared_values[far] = own[far + 1u];
            workgroupBarrier();
            y[far] = x[far] + shared_values[far];
            y[id.x] = 5.0;
        }";
    let stray = Custom::new("stray", stray).expect("a shader");
    let mut graph = Graph::new();
    let x = graph.input("x", Shape::nhwc(1, 1, 2, 4)).expect("an input");
    let y = graph.custom("stray", &stray, &[x]).expect("a node")[0];
    let same = numbers(Shape::nhwc(4, 1, 1, 4));
    let z = graph.pointwise("z", x, same.clone(), Extras::default(), Pointwise::default()).expect("1x1");
    graph.output(y).expect("an output");
    graph.output(z).expect("an output");
    graph.output(x).expect("an output");
    let x = numbers(Shape::nhwc(1, 1, 2, 4));
    let transposed = |o: usize, i: usize| same.to_f32()[4 * o + i];
    let wanted: Vec<f32> = x
        .to_f32()
        .chunks(4)
        .flat_map(|row| (0..4).map(|o| (0..4).map(|i| row[i] * transposed(o, i)).sum()).collect::<Vec<f32>>())
        .collect();
    for context in gpus() {
        let mut session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
        for _ in 0..3 {
            let found = session.run(&[("x", &x)]).expect("a run");
            assert_eq!(found[1].to_f32(), &wanted[..], "{}", context.info());
            assert_eq!(found[2].to_f32(), x.to_f32(), "{}", context.info());
            // What lies beyond is left out, or lands within the array that it was meant for.
            assert!(found[0].to_f32()[..7].iter().all(|&value| value == 5.0), "{:?}", found[0].to_f32());
        }
    }
}

#[test]
fn an_index_beyond_its_array_is_the_last_on_both_apis() {
    let text = "
        @group(0) @binding(0) var<storage, read> x: array<f32>;
        @group(0) @binding(1) var<storage, read> v: array<vec4<f32>>;
        @group(0) @binding(2) var<storage, read_write> y: array<f32>;
        @group(0) @binding(3) var<storage, read_write> last: array<f32>;
        fn behind(at: u32) -> f32 { return x[at + 4u]; }
        @compute @workgroup_size(8)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) {
            let below = i32(id.x) - 3;
            let all = &x;
            y[4u * id.x] = behind(id.x);
            y[4u * id.x + 1u] = x[below];
            y[4u * id.x + 2u] = v[id.x][id.x % 4u] + v[u32(v[7].x)].y;
            y[4u * id.x + 3u] = (*all)[1000];
            if id.x == 5u { last[id.x] = 7.0; }
        }";
    let kernel = Custom::new("beyond", text).expect("a shader");
    let dims = |extent: usize| Dims::new(&[extent]).expect("small");
    let kernel = kernel.outputs(move |_| Ok(vec![dims(32), dims(3)])).grid(|_, _| [8, 1, 1]);
    let mut graph = Graph::new();
    let inputs = [graph.input("x", dims(6)).expect("x"), graph.input("v", dims(12)).expect("v")];
    for output in graph.custom("y", &kernel, &inputs).expect("a node") {
        graph.output(output).expect("an output");
    }
    let (x, v) = (numbers(dims(6)), numbers(dims(12)));
    let of = |tensor: &HostTensor, at: usize| tensor.to_f32()[at.min(tensor.dims().elements() - 1)];
    let lanes = |at: usize, lane: usize| of(&v, 4 * at.min(2) + lane);
    let wanted: Vec<f32> = (0..8)
        .flat_map(|id: usize| {
            let other = lanes(if lanes(7, 0) < 0.0 { 0 } else { lanes(7, 0) as usize }, 1);
            let below = if id < 3 { usize::MAX } else { id - 3 };
            [of(&x, id + 4), of(&x, below), lanes(id, id % 4) + other, of(&x, 1000)]
        })
        .collect();
    for context in gpus() {
        let mut session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
        let found = session.run(&[("x", &x), ("v", &v)]).expect("a run");
        assert_eq!(found[0].to_f32(), &wanted[..], "{}", context.info());
        assert_eq!(found[1].to_f32()[2], 7.0, "{}", context.info());
    }
}

#[test]
fn a_shader_that_does_not_fit_is_refused_with_reasons() {
    let refused = |text: &str| Custom::new("mine", text).expect_err("refused").to_string();
    let syntax = refused("@compute @workgroup_size(1) fn main() { let x = ; }");
    assert!(syntax.contains("mine") && syntax.contains("   1 | "), "the numbered source: {syntax}");
    let buffers = "@group(0) @binding(0) var<storage, read> x: array<f32>;
        @group(0) @binding(1) var<storage, read_write> y: array<f32>;\n";
    let main = "@compute @workgroup_size(1) fn main() { y[0] = x[0]; }";
    assert!(refused(buffers).contains("entry points"));
    let two = format!("{buffers}{main} @compute @workgroup_size(1) fn other() {{}}");
    assert!(refused(&two).contains("other"));
    let gap = "@group(0) @binding(0) var<storage, read> x: array<f32>;
        @group(0) @binding(2) var<storage, read_write> y: array<f32>;\n";
    assert!(refused(&format!("{gap}{main}")).contains("wanted group 0 binding 1"));
    let whole = "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(1) fn main() { y[0] = 1u; }";
    assert!(refused(whole).contains("array<f32>"));
    let none = "@group(0) @binding(0) var<storage, read> x: array<f32>;
        @compute @workgroup_size(1) fn main() { }";
    assert!(refused(none).contains("read_write"));

    let kernel = Custom::new("mine", &format!("{buffers}{main}")).expect("a shader");
    let mut graph = Graph::new();
    let x = graph.input("x", Shape::nhwc(1, 1, 1, 4)).expect("an input");
    let error = graph.custom("node", &kernel, &[x, x]).expect_err("two inputs").to_string();
    assert!(error.contains("2 inputs") && error.contains("1, as"), "{error}");
    let uniform = kernel.clone().uniform(|_, _| vec![("width", Scalar::U32(4))]);
    let error = graph.custom("node", &uniform, &[x]).expect_err("no uniform").to_string();
    assert!(error.contains("width: u32"), "{error}");
    let endless = kernel.clone().grid(|_, _| [usize::MAX, 1, 1]);
    let error = graph.custom("node", &endless, &[x]).expect_err("no such grid");
    assert!(matches!(error.without_node(), Error::Input { .. }), "{error:?}");
    let empty = kernel.clone().grid(|_, _| [0, 1, 1]);
    let error = graph.custom("node", &empty, &[x]).expect_err("no invocation").to_string();
    assert!(
        error.contains("a grid of [0, 1, 1]") && error.contains("an invocation along each axis"),
        "{error}"
    );
    let many = kernel.outputs(|inputs| Ok(vec![inputs[0]; 3]));
    assert!(graph.custom("node", &many, &[x]).expect_err("three").to_string().contains("3 outputs"));
    assert!(graph.nodes().is_empty(), "nothing was added");
}

#[test]
fn a_tuned_or_picked_session_runs_a_shader_as_it_is() {
    let copy = "
        @group(0) @binding(0) var<storage, read> x: array<f32>;
        @group(0) @binding(1) var<storage, read_write> y: array<f32>;
        @compute @workgroup_size(32)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) {
            if id.x < arrayLength(&x) { y[id.x] = x[id.x] + 1.0; }
        }";
    let copy = Custom::new("add one", copy).expect("a shader");
    let mut graph = Graph::new();
    let x = graph.input("x", Shape::nhwc(1, 2, 2, 4)).expect("an input");
    let weights = HostTensor::new(Shape::nhwc(4, 1, 1, 4), vec![1.0; 16]).expect("weights");
    let sums = graph.pointwise("sums", x, weights, Extras::default(), Pointwise::default()).expect("1x1");
    let y = graph.custom("one more", &copy, &[sums]).expect("a node")[0];
    graph.output(y).expect("an output");
    let x = numbers(Shape::nhwc(1, 2, 2, 4));
    let wanted: Vec<f32> =
        x.to_f32().chunks(4).flat_map(|pixel| [pixel.iter().sum::<f32>() + 1.0; 4]).collect();
    let database = || std::sync::Arc::new(std::sync::Mutex::new(Database::in_memory()));
    let budget = std::time::Duration::from_millis(200);
    let online = Tuning::Online { database: database(), budget };
    let options = [
        SessionOptions { tuning: online, ..Default::default() },
        SessionOptions { pick: Picking::Preference(vec![Place::default()]), ..Default::default() },
    ];
    for context in gpus() {
        for options in &options {
            let mut session = Session::new(&context, &graph, options.clone()).expect("a session");
            let found = session.run(&[("x", &x)]).expect("a run");
            assert_eq!(found[0].to_f32(), &wanted[..], "{}", context.info());
        }
    }
}

#[test]
fn kernels_of_one_name_and_the_same_constants_keep_their_functions() {
    let text = "
        @group(0) @binding(0) var<storage, read> x: array<f32>;
        @group(0) @binding(1) var<storage, read> w: array<f32>;
        @group(0) @binding(2) var<storage, read_write> y: array<f32>;
        @compute @workgroup_size(64)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) { y[id.x] = x[id.x] + w[id.x]; }";
    let times = |factor: f32| {
        Custom::new("times", text).expect("a shader").on_cpu(move |inputs, outputs| {
            let values = inputs[0].iter().zip(inputs[1]).map(|(x, w)| factor * (x + w));
            outputs[0].iter_mut().zip(values).for_each(|(y, value)| *y = value);
        })
    };
    let mut graph = Graph::new();
    let shape = Shape::nhwc(1, 8, 16, 16);
    let x = graph.input("x", shape).expect("an input");
    let w = graph.constant("w", numbers(shape));
    for (name, factor) in [("a", 2.0), ("b", 3.0)] {
        let y = graph.custom(name, &times(factor), &[x, w]).expect("a node")[0];
        graph.output(y).expect("an output");
    }
    let mut session = Session::new(&cpu(), &graph, SessionOptions::default()).expect("a session");
    let x = numbers(shape);
    let found = session.run(&[("x", &x)]).expect("a run");
    for (found, factor) in found.iter().zip([2.0, 3.0]) {
        let wanted: Vec<f32> = x.to_f32().iter().map(|x| factor * 2.0 * x).collect();
        assert_eq!(found.to_f32(), &wanted[..]);
    }
}

/// A number that runs, doubled; a panic where it is negative.
fn panicking() -> Graph {
    let run = |inputs: &[&[f32]], outputs: &mut [&mut [f32]]| {
        assert!(inputs[0][0] >= 0.0, "told to panic");
        for (to, from) in outputs[0].iter_mut().zip(inputs[0]) {
            *to = 2.0 * from;
        }
        Ok(())
    };
    let kernel = Custom::host("brittle", |inputs| Ok(inputs.to_vec()), run);
    let mut graph = Graph::new();
    let x = graph.input("x", Shape::nhwc(1, 1, 1, 4)).expect("an input");
    let y = graph.custom("node", &kernel, &[x]).expect("a node");
    graph.output(y[0]).expect("an output");
    graph
}

#[test]
fn a_panic_of_a_function_is_an_error_and_the_session_goes_on() {
    let is_told = |error: &Error| {
        assert!(error.is_panic() && error.node() == Some("node"), "{error}");
        assert!(
            error.to_string().contains("the function on the CPU of kernel \"brittle\" panicked"),
            "{error}"
        );
        assert!(error.to_string().contains("told to panic"), "{error}");
    };
    let of = |value: f32| HostTensor::new(Shape::nhwc(1, 1, 1, 4), vec![value; 4]).expect("four numbers");
    for context in gpus().into_iter().chain([cpu()]) {
        let mut session = Session::new(&context, &panicking(), SessionOptions::default()).expect("a session");
        let is_two = |outputs: Vec<HostTensor>| assert_eq!(outputs[0].to_f32()[..], [2.0; 4]);
        for _ in 0..2 {
            is_told(&session.run(&[("x", &of(-1.0))]).expect_err("a panic"));
            is_two(session.run(&[("x", &of(1.0))]).expect("a run"));
        }
        is_told(&pollster::block_on(session.run_async(&[("x", &of(-1.0))])).expect_err("a panic"));
        is_two(pollster::block_on(session.run_async(&[("x", &of(1.0))])).expect("a run"));
        let frames = [1.0, -1.0, 1.0, -1.0, 1.0].map(|value| [("x", of(value))]);
        let mut ended = 0;
        for (place, outputs) in session.stream(frames).enumerate() {
            match outputs {
                Ok(outputs) => is_two(outputs),
                Err(error) => is_told(&error),
            }
            ended = place + 1;
        }
        assert_eq!(ended, 5);
        is_two(session.run(&[("x", &of(1.0))]).expect("a run"));
        assert!(session.profile(&[("x", &of(1.0))]).is_ok());
    }
}

#[test]
fn a_panic_of_a_function_of_extents_is_the_error_of_its_node() {
    let mut graph = Graph::new();
    let x = graph.input("x", Shape::nhwc(1, 1, 1, 4)).expect("an input");
    let text = "@group(0) @binding(0) var<storage, read> x: array<f32>;
        @group(0) @binding(1) var<storage, read_write> y: array<f32>;
        @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) { y[i] = x[i]; }";
    let plain = || Custom::new("plain", text).expect("a shader");
    for (kernel, which) in [
        (plain().outputs(|inputs| Ok(vec![inputs[7]])), "outputs"),
        (plain().grid(|inputs, _| [inputs[7].elements(), 1, 1]), "grid"),
        (plain().uniform(|inputs, _| vec![("n", Scalar::U32(inputs[7].elements() as u32))]), "uniform"),
        (Custom::host("plain", |inputs| Ok(vec![inputs[7]]), |_, _| Ok(())), "outputs"),
    ] {
        let error = graph.custom("node", &kernel, &[x]).expect_err("a panic");
        assert!(error.is_panic() && error.node() == Some("node"), "{error}");
        assert!(error.to_string().contains(&format!("Custom::{which} of kernel \"plain\"")), "{error}");
        assert!(error.to_string().contains("index out of bounds"), "{error}");
    }
}
