//! A model behind HTTP. Requests of several clients become one run of the network ([`diptych::Batch`]).
//!
//! ```text
//! cargo run --release --manifest-path examples/serve/Cargo.toml -- MODEL
//! cargo run --release --manifest-path examples/serve/Cargo.toml -- MODEL --measure
//! ```
//!
//! | request | answer |
//! |---|---|
//! | `GET /` | JSON: inputs, outputs, devices, and how many requests shared a run so far |
//! | `POST /run`, the inputs' elements one behind the other as little-endian f32 in NHWC order | the outputs' elements, likewise |
//! | `GET /live` | 200 while the process answers |
//! | `GET /ready` | 200 while requests are taken; 503 once the server stops, or no device is left |
//! | `GET /metrics` | counters, gauges and latencies for Prometheus |
//!
//! A body of another length is answered by 400 with the reason; a request that finds too many waiting by 503, and one that
//! is not done within `--timeout-ms` by 504: it is withdrawn, unless its run has begun. A body that has not arrived within
//! `--arrival-ms` is answered by 408, and its connection closed, as one is on which no request's head arrives or no more of an
//! answer is taken for so long. On SIGTERM and Ctrl-C `/ready` says so for `--grace-ms`, in which load balancers look
//! elsewhere; then no more connections are taken, and what was taken is answered, which takes `--arrival-ms` and
//! `--timeout-ms` at most. With several `--device` flags the requests are shared among them.
//!
//! `--measure` starts clients of its own beside the server, and prints how many requests a second are answered with
//! batches and one by one, in turns. Others may ask as well, such as oha (`cargo install oha`), here with 792,588 bytes, a
//! picture of the bundled PoseNet, against servers with `--batch 8` and `--batch 1`:
//!
//! ```text
//! head -c 792588 /dev/zero >picture
//! oha -z 20s -c 16 -m POST -D picture http://127.0.0.1:8080/run
//! ```

mod client;
mod connections;
mod measure;
mod metrics;

use anyhow::{Context as _, ensure};
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use clap::Parser;
use connections::Limits;
use diptych::{
    Backend, Batch, BatchOptions, Context, DevicePool, DeviceSelector, HostTensor, LoadOptions, Model, Port,
    Precision, SessionOptions,
};
use metrics::{Metrics, Outcome};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
    /// A device, as a PCI address, a UUID, a number or a part of its name; may be given several times.
    #[arg(long, value_name = "DEVICE", conflicts_with = "backend")]
    device: Vec<DeviceSelector>,
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
    /// How long a request may take once its body is there, in milliseconds.
    #[arg(long, default_value_t = 10_000)]
    timeout_ms: u64,
    /// How long a request's head may take, its body, and a pause in which the client takes no more of the answer, each in
    /// milliseconds.
    #[arg(long, default_value_t = 10_000)]
    arrival_ms: u64,
    /// How long requests are still taken when the server is told to stop, in milliseconds.
    #[arg(long, default_value_t = 0)]
    grace_ms: u64,
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

/// What requests are answered with.
struct Service {
    pool: DevicePool,
    metrics: Metrics,
    stopping: AtomicBool,
    timeout: Duration,
    limits: Limits,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let contexts = match &arguments.device[..] {
        [] => vec![Context::new(arguments.backend)?],
        devices => devices
            .iter()
            .map(|device| Context::builder().device(device.clone()).open())
            .collect::<Result<_, _>>()?,
    };
    for context in &contexts {
        println!("{}", context.info());
    }
    let model = Model::load(&arguments.model, &LoadOptions::default())?;
    if arguments.measure {
        return measure::measure(&arguments, &contexts, &model).await;
    }
    let service = service(&arguments, &contexts, &model, arguments.batch)?;
    let listener = TcpListener::bind(arguments.listen).await.context("listening")?;
    println!("http://{}/ with {}", listener.local_addr()?, described(&service));
    let (told, grace) = (Arc::clone(&service), Duration::from_millis(arguments.grace_ms));
    let stop = async move {
        asked_to_stop().await;
        told.stopping.store(true, Ordering::Relaxed);
        tokio::time::sleep(grace).await;
    };
    let all = connections::serve(listener, router(Arc::clone(&service)), service.limits, stop).await;
    let unanswered =
        if all { "" } else { "; connections were closed whose requests were not answered in time" };
    println!("stopped after {} requests{unanswered}", service.pool.batch().counts().requests);
    Ok(())
}

/// Waits for Ctrl-C or SIGTERM. Without signals the server runs until it is killed.
async fn asked_to_stop() {
    let interrupted = async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    #[cfg(unix)]
    let terminated = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    #[cfg(not(unix))]
    let terminated = std::future::pending::<()>();
    tokio::select! {
        () = interrupted => {}
        () = terminated => {}
    }
}

/// The model's sessions, for so many requests at once.
fn service(
    arguments: &Arguments,
    contexts: &[Context],
    model: &Model,
    most: usize,
) -> anyhow::Result<Arc<Service>> {
    let precision = if arguments.half { Precision::F16Storage } else { Precision::F32 };
    let options = BatchOptions {
        max_batch: most,
        max_delay: if most == 1 { Duration::ZERO } else { Duration::from_micros(arguments.delay_us) },
        max_waiting: arguments.waiting,
        session: SessionOptions { precision, ..SessionOptions::default() },
        ..BatchOptions::default()
    };
    Ok(Arc::new(Service {
        pool: DevicePool::new(contexts, &model.graph, options)?,
        metrics: Metrics::default(),
        stopping: AtomicBool::new(false),
        timeout: Duration::from_millis(arguments.timeout_ms),
        limits: Limits {
            arrival: Duration::from_millis(arguments.arrival_ms),
            // The last request may have begun to arrive; its answer is a matter of moments.
            ending: Duration::from_millis(
                arguments.arrival_ms.saturating_add(arguments.timeout_ms).saturating_add(1000),
            ),
        },
    }))
}

fn router(service: Arc<Service>) -> Router {
    let inputs = service.pool.batch().inputs();
    let bytes: usize = inputs.iter().map(|port| 4 * port.dims.elements()).sum();
    Router::new()
        .route("/", get(describe))
        .route("/run", post(run))
        .route("/live", get(|| async { "live\n" }))
        .route("/ready", get(ready))
        .route("/metrics", get(metrics::page))
        // One byte more is told what is wrong with it.
        .layer(DefaultBodyLimit::max(bytes + 1))
        .with_state(service)
}

fn ports(ports: &[Port]) -> Vec<Value> {
    ports.iter().map(|port| json!({ "name": port.name, "dimensions": port.dims.extents() })).collect()
}

async fn describe(State(service): State<Arc<Service>>) -> Json<Value> {
    Json(described(&service))
}

fn described(service: &Service) -> Value {
    let batch = service.pool.batch();
    let counts = batch.counts();
    let devices = service.pool.devices();
    let names: Vec<String> = devices.iter().map(|device| device.context.to_string()).collect();
    json!({
        "inputs": ports(batch.inputs()),
        "outputs": ports(batch.outputs()),
        "devices": names,
        "requests": counts.requests,
        "runs_by_requests": counts.runs,
    })
}

async fn ready(State(service): State<Arc<Service>>) -> Refusal {
    if service.stopping.load(Ordering::Relaxed) {
        return (StatusCode::SERVICE_UNAVAILABLE, "the server stops\n".to_owned());
    }
    let lost = service.metrics.lost();
    // The last device is not taken out: it is not known to be whole before it runs.
    if service.pool.devices().iter().filter(|device| device.error.is_none()).count() <= 1 && lost {
        return (StatusCode::SERVICE_UNAVAILABLE, "the last device is lost\n".to_owned());
    }
    (StatusCode::OK, "ready\n".to_owned())
}

type Refusal = (StatusCode, String);

async fn run(State(service): State<Arc<Service>>, request: Request) -> Result<Vec<u8>, Response> {
    let mut counted = service.metrics.begin();
    let body = match connections::body(request, service.limits.arrival).await {
        Ok(body) => body,
        Err(answer) => {
            let is_late = answer.status() == StatusCode::REQUEST_TIMEOUT;
            counted.outcome = if is_late { Outcome::TooSlow } else { Outcome::Invalid };
            return Err(answer);
        }
    };
    counted.arrived();
    let (outcome, answer) = answer(&service, &body).await;
    counted.outcome = outcome;
    answer.map_err(|refusal| refusal.into_response())
}

async fn answer(service: &Service, body: &[u8]) -> (Outcome, Result<Vec<u8>, Refusal>) {
    let batch = service.pool.batch();
    let refused = |status, outcome, text: String| (outcome, Err((status, format!("{text}\n"))));
    let inputs = match inputs(batch, body) {
        Ok(inputs) => inputs,
        Err(error) => return refused(StatusCode::BAD_REQUEST, Outcome::Invalid, format!("{error:#}")),
    };
    let failed = |error: diptych::Error| {
        let outcome = if error.is_device_lost() { Outcome::DeviceLost } else { Outcome::Failed };
        refused(StatusCode::INTERNAL_SERVER_ERROR, outcome, error.to_string())
    };
    let ticket = match batch.try_submit(inputs) {
        Ok(Some(ticket)) => ticket,
        Ok(None) => {
            let text = "too many requests wait".to_owned();
            return refused(StatusCode::SERVICE_UNAVAILABLE, Outcome::Refused, text);
        }
        Err(error) => return failed(error),
    };
    let outputs = match tokio::time::timeout(service.timeout, ticket).await {
        Ok(Ok(outputs)) => outputs,
        Ok(Err(error)) => return failed(error),
        Err(_) => {
            let text = format!("not done within {:?}", service.timeout);
            return refused(StatusCode::GATEWAY_TIMEOUT, Outcome::TimedOut, text);
        }
    };
    let elements = outputs.iter().flat_map(|output| output.to_f32().to_vec());
    (Outcome::Done, Ok(elements.flat_map(f32::to_le_bytes).collect()))
}

/// The inputs that a body holds.
fn inputs(batch: &Batch, body: &[u8]) -> anyhow::Result<Vec<(String, HostTensor)>> {
    let wanted: usize = batch.inputs().iter().map(|port| 4 * port.dims.elements()).sum();
    ensure!(
        body.len() == wanted,
        "found {} bytes, wanted {wanted}: {}",
        body.len(),
        Value::from(ports(batch.inputs()))
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
