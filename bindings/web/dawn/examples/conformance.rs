//! The conformance table in WebAssembly: the modules of `tests/conformance`, on the WebGPU of whoever loads this.

#![cfg(target_family = "wasm")]

#[path = "../../../../tests/conformance/attention.rs"]
mod attention;
#[expect(dead_code, reason = "its native tests are not built here")]
#[path = "../../../../tests/conformance/cases.rs"]
mod cases;
#[path = "../../../../tests/conformance/composed.rs"]
mod composed;
#[expect(dead_code, reason = "its native tests are not built here")]
#[path = "../../../../tests/conformance/cover.rs"]
mod cover;
#[expect(unused_imports, reason = "its native tests are not built here")]
#[path = "../../../../tests/conformance/cpu.rs"]
mod cpu;
#[path = "../../../../tests/conformance/dynamic.rs"]
mod dynamic;
#[path = "../../../../tests/conformance/edges.rs"]
mod edges;
#[path = "../../../../tests/conformance/elementwise.rs"]
mod elementwise;
#[path = "../../../../tests/conformance/gates.rs"]
mod gates;
#[expect(dead_code, reason = "its native tests are not built here")]
#[path = "../../../../tests/conformance/gpu.rs"]
mod gpu;
#[path = "../../../../tests/conformance/loops.rs"]
mod loops;
#[path = "../../../../tests/conformance/mlps.rs"]
mod mlps;
#[path = "../../../../tests/conformance/moves.rs"]
mod moves;
#[path = "../../../../tests/conformance/packed.rs"]
mod packed;
#[expect(unused_imports, reason = "its native tests are not built here")]
#[path = "../../../../tests/conformance/planted.rs"]
mod planted;
#[path = "../../../../tests/conformance/problem.rs"]
mod problem;
#[path = "../../../../tests/conformance/quantized.rs"]
mod quantized;
#[path = "../../../../tests/conformance/reductions.rs"]
mod reductions;
#[path = "../../../../tests/conformance/rows.rs"]
mod rows;
#[path = "../../../../tests/conformance/squeezes.rs"]
mod squeezes;

use diptych::Error;
use diptych_dawn::{Contexts, error, say_panics};
use diptych_device::device::Device;
use js_sys::Function;
use serde_json::json;
use std::sync::{Arc, OnceLock};
use wasm_bindgen::prelude::*;

/// What is asked for.
static ASKED: OnceLock<String> = OnceLock::new();

fn asked() -> String {
    ASKED.get().cloned().unwrap_or_default()
}

/// Runs on one device.
const RUNS_OF_A_DEVICE: usize = 250;

/// Says what of the table is asked for, in the words of `DIPTYCH_CONFORMANCE`.
#[wasm_bindgen]
pub fn ask(words: String) {
    say_panics();
    ASKED.get_or_init(|| words);
}

/// The ops that have kernels.
#[wasm_bindgen]
pub fn ops() -> Vec<String> {
    let with_kernels = diptych_kernels::ops::all().iter().filter(|entry| !entry.variants().is_empty());
    with_kernels.map(|entry| entry.name.to_owned()).collect()
}

fn shared(context: diptych::Result<diptych::Context>) -> diptych::Result<Arc<dyn Device>> {
    context?.shared_device().ok_or_else(|| Error::Internal("a context without a device".to_owned()))
}

/// Every kernel of the rows of an op, as JSON.
#[wasm_bindgen]
pub async fn rows(op: String, close: Function) -> Result<String, JsValue> {
    let mut contexts = Contexts::new(close);
    let mut device_for =
        async |run: usize| shared(contexts.context(run.is_multiple_of(RUNS_OF_A_DEVICE)).await);
    let tally = rows::every_kernel(&op, None, &mut device_for).await.map_err(error)?;
    Ok(json!({
        "line": tally.to_string(),
        "cases": tally.cases,
        "runs": tally.runs,
        "texts": tally.texts,
        "met": tally.met,
        "missed": tally.missed,
        "failures": tally.failures,
    })
    .to_string())
}

/// Operands that are not numbers or very large: what is wrong.
#[wasm_bindgen]
pub async fn edges(close: Function) -> Result<Vec<String>, JsValue> {
    let device = [shared(Contexts::new(close).context(true).await).map_err(error)?];
    let mut failures = edges::infinity_in_a_group(&device).await;
    failures.extend(edges::lanes_beyond_the_channels(&device).await);
    failures.extend(edges::activations(&device).await);
    failures.extend(edges::large_means(&device).await);
    failures.extend(elementwise::ends(&device).await);
    failures.extend(edges::missing_lanes(&device).await);
    Ok(failures)
}

/// Planted mistakes, as JSON: what was not caught, and how many were.
#[wasm_bindgen]
pub async fn planted(close: Function) -> Result<String, JsValue> {
    let device = shared(Contexts::new(close).context(true).await).map_err(error)?;
    let (failures, caught) = planted::wrong_kernels(&*device, |number| number.is_multiple_of(2)).await;
    Ok(json!({ "failures": failures, "caught": caught }).to_string())
}
