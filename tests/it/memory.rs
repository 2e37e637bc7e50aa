//! What a session's memory is said to be, what it is when there is none, and that it is free once the session is gone.

use crate::machine::{everywhere, gpus, noise};
use diptych::{
    Backend, Context, Dim, Dims, Extras, Function, Gemm, Graph, HostTensor, Pointwise, Right, Session,
    SessionOptions, Shape, Term,
};
use std::process::Command;

/// Tells a test that another one started it.
const CHILD: &str = "DIPTYCH_TEST_MEMORY";

/// A product with 256 KiB of weights, and nodes around it.
fn network() -> Graph {
    let mut graph = Graph::new();
    let x = graph.input("x", Shape::nhwc(1, 1, 3, 256)).expect("an input");
    let weights = noise(Shape::nhwc(256, 1, 1, 256), 1);
    let mixed =
        graph.pointwise("mixed", x, weights, Extras::default(), Pointwise::default()).expect("a node");
    let rows = graph.reshape("rows", mixed, &[Dim::from(3), Dim::from(256)]).expect("a view");
    let matrix = noise(Shape::nhwc(1, 1, 256, 256), 2)
        .reshaped(Dims::new(&[256, 256]).expect("two"))
        .expect("as many");
    let product = graph.gemm("product", rows, Right::Constant(matrix), Extras::default(), Gemm::default());
    let product = product.expect("a product");
    let last = graph.elementwise("last", Function::Sqrt, &[Term::Value(product)]).expect("a node");
    graph.output(last).expect("an output");
    graph
}

#[test]
fn the_memory_of_a_session_is_known_before_there_is_one() {
    let graph = network();
    for context in everywhere() {
        for on_cpu in [vec![], vec!["product".to_owned()]] {
            let on_device = on_cpu.is_empty();
            let options = SessionOptions { on_cpu: on_cpu.into_iter().collect(), ..Default::default() };
            let planned = Session::plan_memory(&context, &graph, &options).expect("a plan");
            let session = Session::new(&context, &graph, options).expect("a session");
            assert_eq!(planned, session.memory(), "{}", context.info());
            // Weights of both kinds are constants, and no values.
            let constants = if on_device { 2 * 4 * 256 * 256 } else { 4 * 256 * 256 };
            assert!(planned.constants >= constants, "{}: {planned:?}", context.info());
            assert!(planned.constants < constants + 8192 || !on_device, "{}: {planned:?}", context.info());
            assert!(planned.planned < 64 << 10, "{}: {planned:?}", context.info());
            let downloads =
                if on_device || session.steps().iter().all(|step| step.op != "download") { 0 } else { 3072 };
            assert_eq!(planned.downloads, downloads, "{}", context.info());
        }
        let text =
            Session::plan_memory(&context, &graph, &SessionOptions::default()).expect("a plan").to_string();
        assert!(text.starts_with("0.5 MB of constants, 0.0 MB"), "{text}");
    }
    let empty = Session::plan_memory(
        &Context::new(Backend::Cpu).expect("the CPU"),
        &Graph::new(),
        &Default::default(),
    );
    assert!(empty.expect_err("no outputs").to_string().contains("no outputs"));
}

/// 96 bytes of ONNX that stand for 2^29 elements: a table of their places would take 8 GB beside their 2 GB.
#[cfg(all(unix, feature = "onnx"))]
fn tile() -> Graph {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tile_of_2_to_29.onnx");
    diptych::onnx::load(file).expect("a network")
}

#[cfg(all(unix, feature = "onnx"))]
#[test]
#[ignore = "started by `where_memory_ends_is_an_error_that_says_what_was_wanted`"]
fn tiling_child() {
    let Ok(_) = std::env::var(CHILD) else { return };
    let context = Context::new(Backend::Cpu).expect("the CPU");
    let mut session = Session::new(&context, &tile(), SessionOptions::default()).expect("a session");
    let port = session.inputs()[0].clone();
    let input = HostTensor::new(port.dims, vec![0.5; 2]).expect("two elements");
    let error = session.run(&[(&port.name, &input)]).expect_err("there is no memory for it");
    assert!(matches!(error, diptych::Error::OutOfMemory { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains(&format!("wanted {} bytes for the values of a run", (4u64 << 29) + 64)), "{text}");
    println!("refused: {text}");
}

#[cfg(all(unix, feature = "onnx"))]
#[test]
fn where_memory_ends_is_an_error_that_says_what_was_wanted() {
    let context = Context::new(Backend::Cpu).expect("the CPU");
    let memory = Session::plan_memory(&context, &tile(), &SessionOptions::default()).expect("a plan");
    assert_eq!((memory.planned, memory.constants), (4 << 29, 0));
    // In a process of 1 GiB of addresses the session is made, for a move keeps no table of its elements, and the run is
    // refused.
    let text = child(
        "memory::tiling_child",
        Command::new("sh").args(["-c", "ulimit -v 1048576; exec \"$0\" \"$@\""]),
    );
    assert!(text.contains("refused: "), "{text}");
}

#[test]
fn every_element_of_a_repeated_vector_is_in_its_place() {
    let mut graph = Graph::new();
    let x = graph.input("x", Dims::new(&[7]).expect("one")).expect("an input");
    let tiled = graph.tile("tiled", x, &[3001]).expect("a node");
    graph.output(tiled).expect("an output");
    let input = noise(Shape::nhwc(1, 1, 1, 7), 3).reshaped(Dims::new(&[7]).expect("one")).expect("as many");
    let wanted: Vec<f32> = input.to_f32().iter().copied().cycle().take(7 * 3001).collect();
    for context in everywhere() {
        let mut session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
        let outputs = session.run(&[("x", &input)]).expect("a run");
        assert!(*outputs[0].to_f32() == wanted, "{}", context.info());
    }
}

/// Bytes of this process's memory.
#[cfg(target_os = "linux")]
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("the memory");
    1024 * line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("a number")
}

/// Makes and drops sessions that never ran, with 16 MiB of weights each.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "started by `dropped_sessions_leave_nothing`"]
fn dropping_child() {
    let Ok(_) = std::env::var(CHILD) else { return };
    let mut graph = Graph::new();
    let x = graph.input("x", Shape::nhwc(1, 1, 1, 2048)).expect("an input");
    let weights = HostTensor::new(Shape::nhwc(2048, 1, 1, 2048), vec![0.5; 2048 * 2048]).expect("weights");
    let y = graph.pointwise("y", x, weights, Extras::default(), Pointwise::default()).expect("a node");
    graph.output(y).expect("an output");
    for context in gpus() {
        let session = || Session::new(&context, &graph, SessionOptions::default()).expect("a session");
        // What the driver and the threads keep.
        drop([session(), session()]);
        std::thread::sleep(std::time::Duration::from_secs(1));
        let before = resident();
        let sessions: Vec<Session> = (0..20).map(|_| session()).collect();
        let held = resident() - before;
        drop(sessions);
        assert!(held > 160 << 20, "{}: {held} bytes are held", context.info());
        // Nobody polls; the device's own thread takes a moment.
        let left = || resident().saturating_sub(before) > 32 << 20;
        let rounds = (0..100).take_while(|_| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            left()
        });
        let rounds = rounds.count();
        println!("{}: {held} bytes are held, and freed within {} ms", context.info(), 50 * (rounds + 1));
        assert!(rounds < 100, "{}: {} bytes are left", context.info(), resident() - before);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn dropped_sessions_leave_nothing() {
    // The system's allocator gives every large piece of memory back at once, instead of keeping some for those that
    // come next: what is left is what the sessions left.
    let mut command = Command::new("env");
    command.arg("MALLOC_MMAP_THRESHOLD_=131072");
    println!("{}", child("memory::dropping_child", &mut command));
}

/// What a test of this program says, which `command` starts.
fn child(test: &str, command: &mut Command) -> String {
    let output = command
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", test, "--nocapture", "--include-ignored"])
        .env(CHILD, "1")
        .env("RAYON_NUM_THREADS", "2")
        .output()
        .expect("a child");
    let text =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(output.status.success(), "{test}: {}: {text}", output.status);
    text
}
