//! What Prometheus asks for.

use crate::Service;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What became of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    Invalid,
    Refused,
    TimedOut,
    /// Its body did not arrive in time.
    TooSlow,
    Failed,
    DeviceLost,
    /// Its client went away before.
    Abandoned,
}

impl Outcome {
    fn name(self) -> &'static str {
        match self {
            Outcome::Done => "done",
            Outcome::Invalid => "invalid",
            Outcome::Refused => "refused",
            Outcome::TimedOut => "timed_out",
            Outcome::TooSlow => "too_slow",
            Outcome::Failed => "failed",
            Outcome::DeviceLost => "device_lost",
            Outcome::Abandoned => "abandoned",
        }
    }
}

type Labels = Vec<(&'static str, String)>;

/// The server's own counts; those of the devices are asked for when they are wanted.
pub(crate) struct Metrics {
    requests: Family<Labels, Counter>,
    latency: Histogram,
    lost: AtomicBool,
}

impl Default for Metrics {
    fn default() -> Self {
        Metrics {
            requests: Family::default(),
            // From 0.25 ms to 8 s.
            latency: Histogram::new(exponential_buckets(0.000_25, 2.0, 16)),
            lost: AtomicBool::new(false),
        }
    }
}

/// A request that is counted when it ends, also if its client does not wait for that.
pub(crate) struct Counted<'a> {
    metrics: &'a Metrics,
    begun: Instant,
    pub(crate) outcome: Outcome,
}

impl Counted<'_> {
    /// Counts its time from now on: its body is there.
    pub(crate) fn arrived(&mut self) {
        self.begun = Instant::now();
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.metrics.answered(self.outcome, self.begun.elapsed());
    }
}

impl Metrics {
    /// Counts a request that begins now.
    pub(crate) fn begin(&self) -> Counted<'_> {
        Counted { metrics: self, begun: Instant::now(), outcome: Outcome::Abandoned }
    }

    fn answered(&self, outcome: Outcome, time: Duration) {
        self.requests.get_or_create(&vec![("outcome", outcome.name().to_owned())]).inc();
        match outcome {
            Outcome::Done => {
                self.latency.observe(time.as_secs_f64());
                self.lost.store(false, Ordering::Relaxed);
            }
            Outcome::DeviceLost => self.lost.store(true, Ordering::Relaxed),
            _ => {}
        }
    }

    /// Whether the last run that ended did so because a device was lost.
    pub(crate) fn lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    fn text(&self, service: &Service) -> Result<String, std::fmt::Error> {
        let mut registry = Registry::with_prefix("diptych");
        registry.register("requests", "Requests by what became of them", self.requests.clone());
        registry.register("latency_seconds", "From a request's body to its answer", self.latency.clone());
        let counts = service.pool.batch().counts();
        let waiting: Gauge = Gauge::default();
        waiting.set(i64::try_from(counts.waiting).unwrap_or(i64::MAX));
        registry.register("waiting", "Requests that wait for a run", waiting);
        let runs = Family::<Labels, Counter>::default();
        for (runs_of, size) in counts.runs.iter().zip(1..) {
            runs.get_or_create(&vec![("requests", format!("{size}"))]).inc_by(*runs_of);
        }
        registry.register("runs", "Runs by how many requests shared them", runs);
        let (answered, time) =
            (Family::<Labels, Counter>::default(), Family::<Labels, Gauge<f64, AtomicU64>>::default());
        let in_order = Family::<Labels, Gauge>::default();
        for (place, device) in service.pool.devices().into_iter().enumerate() {
            let name = device.context.device.map_or_else(|| "CPU".to_owned(), |device| device.name);
            let labels = vec![
                ("place", place.to_string()),
                ("backend", device.context.backend.to_string()),
                ("device", name),
            ];
            answered.get_or_create(&labels).inc_by(device.requests);
            in_order.get_or_create(&labels).set(i64::from(device.error.is_none()));
            if let Some(of_late) = device.time {
                time.get_or_create(&labels).set(of_late.as_secs_f64());
            }
        }
        registry.register("device_requests", "Requests that a device has answered", answered);
        registry.register("device_request_seconds", "Time of a request on a device, of late", time);
        registry.register("device_up", "Whether a device takes requests", in_order);
        let mut text = String::new();
        encode(&mut text, &registry)?;
        Ok(text)
    }
}

pub(crate) async fn page(State(service): State<Arc<Service>>) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    match service.metrics.text(&service) {
        Ok(text) => ([(header::CONTENT_TYPE, kind)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}
