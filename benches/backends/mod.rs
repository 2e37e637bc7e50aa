//! The backends of this machine, and how criterion measures them.

use criterion::Criterion;
use diptych::{Backend, Context};
use std::time::Duration;

/// Every backend that opens; the others are named.
pub fn contexts() -> Vec<Context> {
    let mut contexts = Vec::new();
    for backend in [Backend::Wgpu, Backend::OpenCl, Backend::Cpu] {
        match Context::new(backend) {
            Ok(context) => contexts.push(context),
            Err(error) => eprintln!("skipping {backend}: {error}"),
        }
    }
    contexts
}

/// Short measurements: the report of `diptych bench` is the thorough one.
pub fn criterion() -> Criterion {
    let short = Criterion::default().sample_size(10).warm_up_time(Duration::from_millis(200));
    short.measurement_time(Duration::from_millis(800)).configure_from_args()
}
