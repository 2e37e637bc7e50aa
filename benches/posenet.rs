//! A network, host to host and on the device, on every backend: `cargo bench --features criterion --bench posenet`.
//!
//! The model is `$DIPTYCH_SHARED/posenet/posenet_mobilenet_v1_100_257x257_f32.tflite`, by default
//! beside the checkout; without it nothing is measured. Its outputs are checked by
//! `diptych bench --suite posenet` and by `tests/posenet.rs`.

mod backends;

use anyhow::Result;
use diptych::{Graph, HostTensor, Precision, Session, SessionOptions, tflite};
use std::path::PathBuf;
use std::time::{Duration, Instant};

fn model() -> Option<PathBuf> {
    let shared = std::env::var_os("DIPTYCH_SHARED").map_or_else(|| PathBuf::from("../shared"), PathBuf::from);
    let path = shared.join("posenet/posenet_mobilenet_v1_100_257x257_f32.tflite");
    path.is_file().then_some(path)
}

fn sessions(graph: &Graph) -> Result<Vec<(String, Session)>> {
    let precisions = [Precision::F32, Precision::F16Storage];
    let each = backends::contexts()
        .into_iter()
        .flat_map(|context| precisions.map(|precision| (context.clone(), precision)))
        // The CPU computes in f32.
        .filter(|(context, precision)| context.device().is_some() || *precision == Precision::F32);
    each.map(|(context, precision)| {
        let options = SessionOptions { precision, ..Default::default() };
        Ok((format!("{precision} on {}", context.info().backend), Session::new(&context, graph, options)?))
    })
    .collect()
}

fn main() -> Result<()> {
    let Some(path) = model() else {
        eprintln!("skipping: no PoseNet in $DIPTYCH_SHARED");
        return Ok(());
    };
    let graph = tflite::load(path)?;
    let mut criterion = backends::criterion();
    let mut group = criterion.benchmark_group("posenet");
    for (name, mut session) in sessions(&graph)? {
        let port = session.inputs()[0].clone();
        let picture = HostTensor::new(port.shape, vec![0.5; port.shape.elements()])?;
        let feeds = [(port.name.as_str(), &picture)];
        session.run(&feeds)?;
        group.bench_function(format!("{name}, host to host"), |bencher| {
            bencher.iter_custom(|runs| {
                let start = Instant::now();
                for _ in 0..runs {
                    session.run(&feeds).expect("it ran before");
                }
                start.elapsed()
            });
        });
        group.bench_function(format!("{name}, sum of the nodes"), |bencher| {
            bencher.iter_custom(|runs| -> Duration {
                (0..runs).map(|_| session.profile(&feeds).expect("it ran before").total()).sum()
            });
        });
    }
    group.finish();
    criterion.final_summary();
    Ok(())
}
