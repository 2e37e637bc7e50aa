//! Kernels that take too long, or do not end.

use crate::machine::opened;
use diptych::{Backend, Context, Custom, Error, Graph, HostTensor, Session, SessionOptions, Shape};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_millis(250);

/// Set in a process that meets a kernel which does not end: the backend.
const CHILD: &str = "DIPTYCH_TIME_LIMIT_CHILD";

/// Each value takes this many steps, and does not end.
const FOR_EVER: f32 = 1.1e9;

/// Values, so many that they take long where a loop ends after 65,535 rounds, as in lavapipe.
const VALUES: usize = 1 << 18;

/// `nodes` one behind the other, of `x[0]` steps for each value.
fn network(nodes: usize) -> Graph {
    let steps = "
        @group(0) @binding(0) var<storage, read> x: array<f32>;
        @group(0) @binding(1) var<storage, read_write> y: array<f32>;
        @compute @workgroup_size(64)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) {
            let steps = u32(x[0]);
            var state = id.x + 1u;
            for (var step = 0u; step < steps || steps > 1000000000u; step += 1u) {
                state ^= state << 13u;
                state ^= state >> 17u;
                state ^= state << 5u;
            }
            if id.x < arrayLength(&y) {
                y[id.x] = select(f32(state >> 8u), x[0], id.x == 0u);
            }
        }";
    let steps = Custom::new("steps", steps).expect("a shader");
    let mut graph = Graph::new();
    let mut value = graph.input("x", Shape::nhwc(1, 1, 1, VALUES)).expect("an input");
    for node in 0..nodes {
        value = graph.custom(&format!("steps {node}"), &steps, &[value]).expect("a node")[0];
    }
    graph.output(value).expect("an output");
    graph
}

fn of(steps: f32) -> HostTensor {
    HostTensor::new(Shape::nhwc(1, 1, 1, VALUES), vec![steps; VALUES]).expect("a tensor")
}

fn result(session: &mut Session, steps: f32) -> diptych::Result<Vec<f32>> {
    Ok(session.run(&[("x", &of(steps))])?[0].to_f32().to_vec())
}

fn limited(backend: Backend) -> Option<Context> {
    opened(Context::builder().backend(backend).time_limit(LIMIT))
}

#[track_caller]
fn given_up<T: std::fmt::Debug>(outcome: diptych::Result<T>, start: Instant) {
    let waited = start.elapsed();
    let error = outcome.expect_err("a run that takes too long");
    assert!(matches!(error.without_node(), Error::TimedOut { limit: LIMIT, .. }), "{error:?}");
    assert!(error.to_string().contains("did not finish within 250ms"), "{error}");
    assert!(waited >= LIMIT, "{waited:?}");
    assert!(!error.is_device_lost());
}

/// Steps that take some ten limits, and the result of a few.
fn slow_steps(session: &mut Session) -> (f32, Vec<f32>) {
    let few = until_it_runs(session, Instant::now());
    let mut steps = 16.0;
    loop {
        let start = Instant::now();
        let outcome = result(session, steps);
        let taken = start.elapsed();
        if outcome.is_err() || taken > LIMIT / 4 {
            return (steps * 40.0, few);
        }
        steps *= 2.0;
    }
}

/// The result of a few steps: what comes behind a slow run is given up as well until that ends. A driver may compile in a
/// first run.
fn until_it_runs(session: &mut Session, start: Instant) -> Vec<f32> {
    loop {
        match result(session, 3.0) {
            Ok(found) => return found,
            Err(error) => assert!(matches!(error.without_node(), Error::TimedOut { .. }), "{error}"),
        }
        assert!(start.elapsed() < Duration::from_secs(120), "it does not end");
        std::thread::sleep(LIMIT);
    }
}

fn too_long(backend: Backend) {
    let Some(context) = limited(backend) else { return };
    let mut session = Session::new(&context, &network(1), SessionOptions::default()).expect("a session");
    let (slow, few) = slow_steps(&mut session);
    for awaited in [false, true] {
        let start = Instant::now();
        let outcome = match awaited {
            false => session.run(&[("x", &of(slow))]),
            true => pollster::block_on(session.run_async(&[("x", &of(slow))])),
        };
        given_up(outcome, start);
        assert_eq!(until_it_runs(&mut session, start), few);
        println!("{}: it ran again after {:.1?}", context.info(), start.elapsed());
    }
    // Nothing of it is left in the way of another device.
    let start = Instant::now();
    given_up(result(&mut session, slow), start);
    drop((session, context));
    let context = limited(backend).expect("a device");
    let mut session = Session::new(&context, &network(1), SessionOptions::default()).expect("a session");
    assert_eq!(until_it_runs(&mut session, start), few);
}

#[cfg(feature = "wgpu")]
#[test]
fn a_run_that_takes_too_long_is_given_up_on_wgpu() {
    too_long(Backend::Wgpu);
}

#[cfg(feature = "opencl")]
#[test]
fn a_run_that_takes_too_long_is_given_up_on_opencl() {
    too_long(Backend::OpenCl);
}

#[test]
#[ignore = "run by the tests below, in a process of its own"]
fn child() {
    let backend = std::env::var(CHILD).expect("a backend");
    let Some(context) = limited(backend.parse().expect("a backend")) else { return };
    // Several, where each ends after all.
    let nodes = if context.info().backend == Backend::Wgpu { 24 } else { 1 };
    let mut session = Session::new(&context, &network(nodes), SessionOptions::default()).expect("a session");
    until_it_runs(&mut session, Instant::now());
    let start = Instant::now();
    given_up(result(&mut session, FOR_EVER), start);
    drop((session, context));
    println!("let go after {:.1?}", start.elapsed());
}

/// Ends the process by force: NVIDIA's drivers wait for the kernel where a process ends by itself.
fn never_ends(backend: Backend) {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "time_limit::child", "--include-ignored", "--nocapture"])
        .env(CHILD, backend.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process");
    let (tell, told) = std::sync::mpsc::channel();
    let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| tell.send(line)));
    let (start, mut said) = (Instant::now(), Vec::new());
    let let_go = loop {
        match told.recv_timeout(Duration::from_secs(20).saturating_sub(start.elapsed())) {
            Ok(line) => said.push(line),
            Err(_) => break false,
        }
        if said.iter().any(|line| line.contains("let go after") || line.starts_with("skipping")) {
            break true;
        }
    };
    child.kill().expect("a process");
    let status = child.wait().expect("a process");
    assert!(let_go, "{status} after {:.1?}: {said:#?}", start.elapsed());
    println!("{backend}: {said:#?}");
}

#[cfg(feature = "wgpu")]
#[test]
fn a_kernel_that_never_ends_holds_nothing_up_on_wgpu() {
    never_ends(Backend::Wgpu);
}

#[cfg(feature = "opencl")]
#[test]
fn a_kernel_that_never_ends_holds_nothing_up_on_opencl() {
    never_ends(Backend::OpenCl);
}
