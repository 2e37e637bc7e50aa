//! What a frame costs beside its dispatches: counted by the crate, and seen from outside.

use crate::app::{App as _, Format, WgpuApp};
use crate::machine::noise;
use crate::pictures::texels;
use diptych::WgpuCalls;
use diptych::{
    Activation, Colours, Conv2d, Extras, Fit, Framing, Graph, Padding, Pictures, Session, SessionOptions,
    Shape, wgpu,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A picture's features, and one number for each of their maps.
fn networks() -> [Graph; 2] {
    let convolution = |input: Shape, output: usize, name: &str| {
        let mut graph = Graph::new();
        let x = graph.input("x", input).expect("an input");
        let weights = noise(Shape::nhwc(output, 3, 3, input.c), 7);
        let options = Conv2d { padding: Padding::Same, activation: Activation::Relu, ..Default::default() };
        let y = graph.conv2d(name, x, weights, Extras::default(), options).expect("conv2d");
        graph.output(y).expect("an output");
        graph
    };
    [
        convolution(Shape::nhwc(1, 24, 32, 3), 8, "features"),
        convolution(Shape::nhwc(1, 24, 32, 8), 2, "scores"),
    ]
}

#[test]
fn a_frame_is_the_applications_one_submission() {
    if crate::machine::contexts(&[diptych::Backend::Wgpu]).is_empty() {
        return;
    }
    let app = WgpuApp::new();
    let mut sessions = networks()
        .map(|graph| Session::new(app.context(), &graph, SessionOptions::default()).expect("a session"));
    let calls = || app.context().wgpu_calls().expect("a context on wgpu");
    let storage = |bytes: usize| app.buffer(wgpu::BufferUsages::STORAGE, &vec![0; bytes]);
    let (features, scores) = (storage(4 * 24 * 32 * 8), storage(4 * 24 * 32 * 2));
    let views = [1, 2].map(|seed| app.texture(Format::Rgba, [64, 64], &texels([64, 64], seed)));
    let framing = Framing::new([64, 64], [32, 24]).expect("a framing").fit(Fit::Letterbox);
    let [first, second] = &mut sessions;
    let mut frame = |view: &wgpu::TextureView, encoder: &mut wgpu::CommandEncoder| {
        let pictures = [(view, framing)];
        let pictures = Pictures::new(&pictures, Colours::range(-1.0, 1.0));
        first.encode(encoder, &[("x", pictures)], &[("features", &features)]).expect("the first");
        second.encode(encoder, &[("x", &features)], &[("scores", &scores)]).expect("the second");
    };
    // The first time, recordings are made: their parameters are written, which takes part in the application's next
    // submission.
    let before = calls();
    for view in &views {
        let mut encoder = app.encoder();
        frame(view, &mut encoder);
        app.queue.submit([encoder.finish()]);
    }
    let made = calls();
    assert_eq!(
        (made.submits, made.polls, made.maps),
        (before.submits, before.polls, before.maps),
        "{made:?}"
    );
    assert!(made.copies > before.copies, "the parameters of recordings are written: {made:?}");
    // wgpu calls back only where somebody polls or submits.
    let reported = Arc::new(AtomicBool::new(false));
    let done = Arc::clone(&reported);
    app.queue.on_submitted_work_done(move || done.store(true, Ordering::SeqCst));
    std::thread::sleep(Duration::from_millis(300));
    for index in 0..20 {
        let mut encoder = app.encoder();
        frame(&views[index % 2], &mut encoder);
        assert!(!reported.load(Ordering::SeqCst), "frame {index} polled or submitted");
        drop(encoder.finish());
    }
    assert_eq!(calls(), made, "twenty frames");
    app.queue.submit([]);
    app.device.poll(wgpu::PollType::wait_indefinitely()).expect("a poll");
    assert!(reported.load(Ordering::SeqCst), "a submission and a poll do report");
    // A run of the session's own is counted.
    let input = noise(Shape::nhwc(1, 24, 32, 8), 3);
    second.run(&[("x", &input)]).expect("a run");
    let WgpuCalls { submits, polls, maps, copies } = calls();
    assert_eq!(submits, made.submits + 1);
    assert!(polls > made.polls && maps > made.maps && copies > made.copies);
}

#[test]
fn every_call_is_counted() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/device/src/device/wgpu");
    let calls = [
        ("queue.submit(", "counters.submit()"),
        (".map_async(", "counters.map()"),
        ("copy_buffer_to_buffer(", "counters.copy()"),
        ("queue.write_buffer(", "counters.copy()"),
        ("inner.waiter.wait(done", "counters.poll()"),
        ("poll(&self.inner.device", "counters.poll()"),
    ];
    let mut found = [0; 6];
    for entry in std::fs::read_dir(folder).expect("the sources") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("a source");
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        for (index, line) in lines.iter().enumerate() {
            for ((call, counter), found) in calls.iter().zip(&mut found) {
                if line.contains(call) {
                    *found += 1;
                    let before = &lines[index.saturating_sub(2)..index];
                    let counted = before.iter().any(|line| line.contains(counter));
                    assert!(counted, "{}: {line} without {counter}", path.display());
                }
            }
        }
    }
    assert!(found.iter().all(|&found| found > 0), "{found:?}: a call has another name");
}
