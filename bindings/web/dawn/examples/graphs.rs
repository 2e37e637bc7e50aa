//! Random graphs in WebAssembly: the modules of `tests/graphs`, on the WebGPU of whoever loads this.

#![cfg(target_family = "wasm")]

#[path = "../../../../tests/graphs/carry.rs"]
mod carry;
#[path = "../../../../tests/graphs/draw.rs"]
mod draw;
#[path = "../../../../tests/graphs/fault.rs"]
mod fault;
#[path = "../../../../tests/graphs/generate.rs"]
mod generate;
#[path = "../../../../tests/graphs/motifs.rs"]
mod motifs;
#[path = "../../../../tests/graphs/oracle.rs"]
mod oracle;
#[path = "../../../../tests/graphs/print.rs"]
mod print;
#[path = "../../../../tests/graphs/random.rs"]
mod random;
#[path = "../../../../tests/graphs/recipe.rs"]
mod recipe;
#[expect(dead_code, reason = "its native tests are not built here")]
#[path = "../../../../tests/graphs/run.rs"]
mod run;
#[expect(dead_code, reason = "its native tests are not built here")]
#[path = "../../../../tests/graphs/session.rs"]
mod session;
#[path = "../../../../tests/graphs/shrink.rs"]
mod shrink;
#[path = "../../../../tests/graphs/ways.rs"]
mod ways;

use diptych::Backend;
use diptych_dawn::{Contexts, error, say, say_panics};
use js_sys::Function;
use serde_json::json;
use std::collections::BTreeMap;
use wasm_bindgen::prelude::*;
use web_time::Instant;

/// A graph has some kernels.
const GRAPHS_OF_A_DEVICE: usize = 60;

/// Runs graphs `first..first + count` until the time is over: what became of them, as JSON. `tell` is called with the number
/// of each graph before it is drawn.
#[wasm_bindgen]
pub async fn graphs(
    first: usize,
    count: usize,
    seconds: usize,
    close: Function,
    tell: Function,
) -> Result<String, JsValue> {
    say_panics();
    let mut contexts = Contexts::new(close);
    let mut contexts_for = async |graphs: usize| {
        // What is thrown there is the caller's own affair.
        let _ = tell.call1(&JsValue::NULL, &JsValue::from_f64((first + graphs) as f64));
        let context = contexts.context(graphs.is_multiple_of(GRAPHS_OF_A_DEVICE)).await?;
        Ok(vec![(Backend::Wgpu, context)])
    };
    let report = session::run(first, count, seconds, &mut contexts_for).await.map_err(error)?;
    let counts = &report.counts;
    Ok(json!({
        "graphs": report.graphs,
        "failures": report.failures,
        "runs": report.runs,
        "ops": counts.ops,
        "kernels": counts.kernels,
        "elements": [counts.elements, counts.compared, counts.sharply],
        "seconds": counts.times.iter().map(|(what, time)| (*what, time.as_secs_f64())).collect::<BTreeMap<_, _>>(),
    })
    .to_string())
}

/// Plants a fault in a kernel, which must be found: what is wrong if it is not.
#[wasm_bindgen]
pub async fn planted(close: Function) -> Result<Option<String>, JsValue> {
    say_panics();
    let context = Contexts::new(close).context(true).await.map_err(error)?;
    Ok(fault::on_device(&context, Backend::Wgpu).await.err())
}
