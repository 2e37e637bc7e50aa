//! A model behind HTTP. Requests of several clients become one run of the network ([`diptych::Batch`]).
//!
//! ```text
//! cargo run --release --manifest-path examples/serve/Cargo.toml -- MODEL
//! cargo run --release --manifest-path examples/serve/Cargo.toml -- MODEL --measure
//! ```
//!
//! | request | answer |
//! |---|---|
//! | `GET /` | JSON: inputs, outputs, and how many requests shared a run so far |
//! | `POST /run`, the inputs' elements one behind the other as little-endian f32 in NHWC order | the outputs' elements, likewise |
//!
//! A body of another length is answered by 400 with the reason; a request that finds too many waiting by 503.
//! `--measure` starts clients of its own beside the server, and prints how many requests a second are answered with
//! batches and one by one, in turns.

mod client;
mod measure;

use anyhow::{Context as _, ensure};
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use clap::Parser;
use diptych::{
    Backend, Batch, BatchOptions, Context, HostTensor, LoadOptions, Model, Port, Precision, SessionOptions,
};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// Serves a model over HTTP.
#[derive(Parser)]
struct Arguments {
    /// A TensorFlow Lite or ONNX file.
    model: PathBuf,
    /// auto, wgpu, opencl or cpu.
    #[arg(long, default_value = "auto")]
    backend: Backend,
    /// Stores feature maps and weights as halves.
    #[arg(long)]
    half: bool,
    /// Requests of one run at most.
    #[arg(long, default_value_t = 8)]
    batch: usize,
    /// How long a request waits for others at most, in microseconds.
    #[arg(long, default_value_t = 100)]
    delay_us: u64,
    /// Requests at most that wait.
    #[arg(long, default_value_t = 64)]
    waiting: usize,
    /// Where to listen.
    #[arg(long, default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Measures the throughput instead, on a port of its own.
    #[arg(long)]
    measure: bool,
    /// Clients of the measurement, each with one request at a time.
    #[arg(long, default_value_t = 8)]
    clients: usize,
    /// Seconds of each round of the measurement.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Rounds of each kind.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let context = Context::new(arguments.backend)?;
    println!("{}", context.info());
    let model = Model::load(&arguments.model, &LoadOptions::default())?;
    if arguments.measure {
        return measure::measure(&arguments, &context, &model).await;
    }
    let batch = service(&arguments, &context, &model, arguments.batch)?;
    let listener = TcpListener::bind(arguments.listen).await.context("listening")?;
    println!("http://{}/ with {}", listener.local_addr()?, described(&batch));
    let stop = async {
        // Without signals it runs until it is killed.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    axum::serve(listener, router(batch)).with_graceful_shutdown(stop).await?;
    Ok(())
}

/// The model's sessions, for so many requests at once.
fn service(
    arguments: &Arguments,
    context: &Context,
    model: &Model,
    most: usize,
) -> anyhow::Result<Arc<Batch>> {
    let precision = if arguments.half { Precision::F16Storage } else { Precision::F32 };
    let options = BatchOptions {
        max_batch: most,
        max_delay: if most == 1 { Duration::ZERO } else { Duration::from_micros(arguments.delay_us) },
        max_waiting: arguments.waiting,
        session: SessionOptions { precision, ..SessionOptions::default() },
        ..BatchOptions::default()
    };
    Ok(Arc::new(Batch::new(context, &model.graph, options)?))
}

fn router(batch: Arc<Batch>) -> Router {
    let bytes: usize = batch.inputs().iter().map(|port| 4 * port.dims.elements()).sum();
    Router::new()
        .route("/", get(describe))
        .route("/run", post(run))
        // One byte more is told what is wrong with it.
        .layer(DefaultBodyLimit::max(bytes + 1))
        .with_state(batch)
}

fn ports(ports: &[Port]) -> Vec<Value> {
    ports.iter().map(|port| json!({ "name": port.name, "dimensions": port.dims.extents() })).collect()
}

async fn describe(State(batch): State<Arc<Batch>>) -> Json<Value> {
    Json(described(&batch))
}

fn described(batch: &Batch) -> Value {
    let counts = batch.counts();
    json!({
        "inputs": ports(batch.inputs()),
        "outputs": ports(batch.outputs()),
        "requests": counts.requests,
        "runs_by_requests": counts.runs,
    })
}

type Refusal = (StatusCode, String);

async fn run(State(batch): State<Arc<Batch>>, body: Bytes) -> Result<Vec<u8>, Refusal> {
    let inputs = inputs(&batch, &body).map_err(|error| (StatusCode::BAD_REQUEST, format!("{error:#}\n")))?;
    let failed = |error: diptych::Error| (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n"));
    let Some(ticket) = batch.try_submit(inputs).map_err(failed)? else {
        return Err((StatusCode::SERVICE_UNAVAILABLE, "too many requests wait\n".to_owned()));
    };
    let outputs = ticket.await.map_err(failed)?;
    let elements = outputs.iter().flat_map(|output| output.to_f32().to_vec());
    Ok(elements.flat_map(f32::to_le_bytes).collect())
}

/// The inputs that a body holds.
fn inputs(batch: &Batch, body: &[u8]) -> anyhow::Result<Vec<(String, HostTensor)>> {
    let wanted: usize = batch.inputs().iter().map(|port| 4 * port.dims.elements()).sum();
    ensure!(
        body.len() == wanted,
        "found {} bytes, wanted {wanted}: {}",
        body.len(),
        described(batch)["inputs"]
    );
    let mut left = body;
    let mut inputs = Vec::new();
    for port in batch.inputs() {
        let (own, rest) = left.split_at(4 * port.dims.elements());
        left = rest;
        let elements: Vec<f32> = own.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        inputs.push((port.name.clone(), HostTensor::new(port.dims, elements)?));
    }
    Ok(inputs)
}
