//! Whole networks on the CPU, wgpu and OpenCL, in f32, in f16 storage and in `Auto`: each result against the CPU's in f32,
//! and against what another engine or float64 computed where that is known.
//!
//! The networks are those of the examples, this repository's cases, and those of `$DIPTYCH_SHARED` (default `../shared`),
//! where they are there (`networks.rs`, `examples.rs`). How far results may be apart follows from the number of roundings
//! (`compare.rs`). A test reports all rows that differ, and a network that is refused is one.
//!
//! A library that is not optimised takes minutes for all rows: without `DIPTYCH_NETWORKS=full`, long networks are run on some
//! of them, which [`Effort`] says. `DIPTYCH_NETWORKS=NAME` runs all rows of the networks whose names contain it.
#![cfg(all(feature = "tflite", feature = "onnx", feature = "cpu"))]

mod compare;
mod examples;
mod networks;

#[path = "../posenet/npy.rs"]
mod npy;

use compare::{Wanted, bound};
use diptych::{
    Backend, Calibration, Context, DType, HostTensor, Precision, Rewrite, Session, SessionOptions,
};
use half::f16;
use networks::{Effort, Feeds, Found, Network, Source};
use std::collections::BTreeMap;
use std::path::Path;

/// How a network is run on a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    In(Precision),
    /// `Auto` with a calibration on the network's own samples, which promises [`Calibration::TOLERANCE`].
    Calibrated,
    /// In f32 without composition.
    Apart,
}

const WAYS: [Way; 3] = [Way::In(Precision::F32), Way::In(Precision::F16Storage), Way::In(Precision::Auto)];

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Way::In(precision) => write!(f, "{precision}"),
            Way::Calibrated => f.write_str("auto, calibrated"),
            Way::Apart => f.write_str("f32, not composed"),
        }
    }
}

/// One backend and way of a network.
struct Row {
    backend: Backend,
    way: Way,
    ran: Result<Ran, String>,
}

/// What a session gave.
struct Ran {
    /// Of each sample.
    outputs: Vec<Vec<HostTensor>>,
    steps: usize,
    has_halves: bool,
}

/// The backends of this machine; a missing one is printed, or fails if devices are required. They keep no kernels on disk:
/// that costs PoCL a second compilation of each.
fn contexts() -> Vec<(Backend, Context)> {
    let required = std::env::var("DIPTYCH_REQUIRE_DEVICES").is_ok_and(|value| value == "1");
    let mut found = Vec::new();
    for backend in [Backend::Cpu, Backend::Wgpu, Backend::OpenCl] {
        match Context::builder().backend(backend).without_kernel_cache().open() {
            Ok(context) => found.push((backend, context)),
            Err(error) if required => panic!("{backend} is required: {error}"),
            Err(error) => println!("skipping {backend}: {error}"),
        }
    }
    found
}

fn borrowed(feeds: &Feeds) -> Vec<(&str, &HostTensor)> {
    feeds.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect()
}

fn ran(context: &Context, network: &Network, way: Way) -> Result<Ran, diptych::Error> {
    let samples: Vec<Feeds> = network.samples.iter().map(|sample| sample.feeds.clone()).collect();
    ran_on(context, network, way, &samples)
}

fn ran_on(context: &Context, network: &Network, way: Way, samples: &[Feeds]) -> Result<Ran, diptych::Error> {
    let samples: Vec<_> = samples.iter().map(borrowed).collect();
    let mut session = match (way, &network.source) {
        (Way::In(_) | Way::Apart, source) => {
            let options = match way {
                Way::In(precision) => SessionOptions { precision, ..Default::default() },
                _ => SessionOptions { without_rewrites: [Rewrite::Loops].into(), ..Default::default() },
            };
            match source {
                Source::Graph(graph) => Session::new(context, graph, options)?,
                Source::File(file) => file.session(context, options)?,
            }
        }
        (Way::Calibrated, source) => {
            let graph = match source {
                Source::Graph(graph) => graph.as_ref().clone(),
                Source::File(file) => file.model(&extents(network))?.graph,
            };
            let mut options = SessionOptions { precision: Precision::Auto, ..Default::default() };
            let tolerance = Calibration::TOLERANCE;
            options.calibration = Some(Session::calibrate(context, &graph, &options, &samples, tolerance)?);
            Session::new(context, &graph, options)?
        }
    };
    let outputs = samples.iter().map(|feeds| session.run(feeds)).collect::<Result<_, _>>()?;
    let steps = session.steps();
    let has_halves = steps.iter().any(|step| step.precision != Precision::F32);
    Ok(Ran { outputs, steps: steps.len(), has_halves })
}

/// The extents of the first sample, by the names that a loader gives to axes.
fn extents(network: &Network) -> BTreeMap<String, usize> {
    let Source::File(file) = &network.source else { return BTreeMap::new() };
    let mut found = BTreeMap::new();
    for input in file.inputs() {
        let feeds = network.samples.iter().flat_map(|sample| &sample.feeds);
        let Some((_, tensor)) = feeds.into_iter().find(|(name, _)| *name == input.name) else { continue };
        for open in input.open {
            if let Some(&extent) = tensor.dims().extents().get(open.axis) {
                found.insert(open.name, extent);
            }
        }
    }
    found
}

/// Whether `Auto` of a network can be calibrated on a device: a calibration is for devices that gain by halves, and for graphs,
/// in which no extent is 0 and nothing waits for values of a run.
fn can_be_calibrated(context: &Context, network: &Network) -> bool {
    let device = context.info().device.as_ref();
    device.is_some_and(|device| device.limits.native_half || device.limits.matrix_unit.is_some())
        && match &network.source {
            Source::File(file) => file.model(&extents(network)).is_ok(),
            Source::Graph(_) => true,
        }
}

/// The ways in which a network is run on a backend; `place` is its place among the others.
fn ways(context: &Context, network: &Network, place: usize, is_full: bool) -> Vec<Way> {
    let backend = context.info().backend;
    let is_case = network.name.contains("cases/");
    match network.effort {
        _ if is_full && can_be_calibrated(context, network) => [&WAYS[..], &[Way::Calibrated]].concat(),
        _ if is_full => WAYS.to_vec(),
        Effort::Full => Vec::new(),
        // A CPU computes the same in every precision, which small networks show.
        Effort::Every if backend == Backend::Cpu && !is_case => WAYS[..1].to_vec(),
        Effort::Every if is_case && can_be_calibrated(context, network) => {
            [&WAYS[..], &[Way::Calibrated]].concat()
        }
        Effort::Every => WAYS.to_vec(),
        Effort::Turns if backend == Backend::Cpu => WAYS[..1].to_vec(),
        Effort::Turns => {
            let own = [(Backend::Wgpu, 1), (Backend::OpenCl, 0), (Backend::Wgpu, 2), (Backend::OpenCl, 1)];
            let (own, way) = own[place % own.len()];
            if backend == own { vec![WAYS[way]] } else { Vec::new() }
        }
        Effort::Halves => {
            let own = [Backend::Wgpu, Backend::OpenCl][place % 2];
            if backend == own { WAYS[1..].to_vec() } else { Vec::new() }
        }
    }
}

/// The rows of one network: the backends side by side.
fn rows(contexts: &[(Backend, Context)], network: &Network, place: usize, is_full: bool) -> Vec<Row> {
    let of = |(backend, context): &(Backend, Context)| -> Vec<Row> {
        let first = |error: diptych::Error| error.to_string().lines().next().unwrap_or_default().to_owned();
        let ways = ways(context, network, place, is_full);
        let row = |way| Row { backend: *backend, way, ran: ran(context, network, way).map_err(first) };
        ways.into_iter().map(row).collect()
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = contexts.iter().map(|one| scope.spawn(move || of(one))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a backend's rows")).collect()
    })
}

/// The largest error of a row, or what is wrong with it: with each output of each sample, from what is right where that is
/// known, and from the CPU in f32.
fn compared(network: &Network, way: Way, ran: &Ran, reference: Option<&Ran>) -> Result<f64, String> {
    let bound = match way {
        Way::Calibrated => f64::from(Calibration::TOLERANCE) + bound(&network.name, ran.steps, false),
        Way::In(_) | Way::Apart => bound(&network.name, ran.steps, ran.has_halves),
    };
    let (mut wrong, mut worst) = (Vec::new(), 0.0f64);
    for (place, (sample, outputs)) in network.samples.iter().zip(&ran.outputs).enumerate() {
        if !sample.goldens.is_empty() && sample.goldens.len() != outputs.len() {
            wrong.push(format!("found {} outputs, wanted {}", outputs.len(), sample.goldens.len()));
        }
        for (at, output) in outputs.iter().enumerate() {
            let golden = sample.goldens.get(at).map(|wanted| wanted.compare(output, bound, !ran.has_halves));
            let other = reference.and_then(|reference| reference.outputs.get(place)?.get(at)).map(Wanted::of);
            let other = other.map(|wanted| wanted.compare(output, bound, !ran.has_halves));
            for (what, compared) in [("right", golden), ("the CPU's in f32", other)] {
                match compared.transpose() {
                    Ok(off) => worst = worst.max(off.unwrap_or_default()),
                    Err(error) => {
                        wrong.push(format!("{}output {at}, from what is {what}: {error}", sample.title()));
                        // A result that is wrong differs from others too.
                        break;
                    }
                }
            }
        }
    }
    if wrong.is_empty() { Ok(worst) } else { Err(wrong.join("; ")) }
}

/// Whether halves cannot have a network's results: rounding its inputs alone changes those of the CPU in f32 by more than the
/// bound.
fn is_beyond_halves(contexts: &[(Backend, Context)], network: &Network, steps: usize) -> bool {
    let Some((_, cpu)) = contexts.iter().find(|(backend, _)| *backend == Backend::Cpu) else { return false };
    let rounded = |tensor: &HostTensor| -> HostTensor {
        if tensor.dtype() != DType::F32 {
            return tensor.clone();
        }
        let values: Vec<f32> = tensor.to_nhwc().iter().map(|&value| f16::from_f32(value).to_f32()).collect();
        HostTensor::new(tensor.dims(), values).expect("as many values")
    };
    let of = |round: bool| {
        let feeds = |feeds: &Feeds| -> Feeds {
            let one = |(name, tensor): &(String, HostTensor)| {
                (name.clone(), if round { rounded(tensor) } else { tensor.clone() })
            };
            feeds.iter().map(one).collect()
        };
        let samples: Vec<Feeds> = network.samples.iter().map(|sample| feeds(&sample.feeds)).collect();
        ran_on(cpu, network, Way::In(Precision::F32), &samples)
    };
    let (Ok(exact), Ok(rounded)) = (of(false), of(true)) else { return false };
    let bound = bound(&network.name, steps, true);
    let pairs = exact.outputs.iter().flatten().zip(rounded.outputs.iter().flatten());
    pairs.into_iter().any(|(exact, rounded)| Wanted::of(exact).compare(rounded, bound, false).is_err())
}

/// Rows that run and cannot be compared, with the reason: of any way, or of one.
const UNCOMPARED: [(&str, Option<Way>, &str); 2] = [
    (
        "shared/cases/gemm_one_weight_70_times",
        None,
        "70 layers of one random matrix: roundings grow to the size of the result, and no two engines agree",
    ),
    (
        "shared/cases/instance_map",
        Some(Way::In(Precision::Auto)),
        "its inputs are 2^18, and Auto without a calibration takes inputs to be 256 at most",
    ),
];

/// Why a row that ran is not compared, if it is not.
fn uncompared(network: &Network, way: Way) -> Option<&'static str> {
    let mut found =
        UNCOMPARED.iter().filter(|(name, of, _)| *name == network.name && of.is_none_or(|of| of == way));
    found.next().map(|(.., reason)| *reason)
}

/// What is wrong with the rows of a network.
fn judged(contexts: &[(Backend, Context)], network: &Network, rows: &[Row]) -> Vec<String> {
    // What is composed is compared with what is not.
    let cpu = contexts.iter().find(|(backend, _)| *backend == Backend::Cpu);
    let apart = cpu.and_then(|(_, cpu)| ran(cpu, network, Way::Apart).ok());
    let right = apart.as_ref().filter(|ran| compared(network, Way::Apart, ran, None).is_ok());
    // A file of which nobody knows what is right may be one that is refused, everywhere.
    let is_known = network.samples.iter().any(|sample| !sample.goldens.is_empty());
    let may_be_refused =
        network.name.contains("cases/") && !is_known && rows.iter().all(|row| row.ran.is_err());
    let (mut wrong, mut told) = (Vec::new(), Vec::new());
    for row in rows {
        let Row { backend, way, .. } = row;
        let compared = match &row.ran {
            Ok(ran) => compared(network, *way, ran, right),
            Err(_) if may_be_refused => Ok(f64::NAN),
            Err(error) => Err(format!("refused: {error}")),
        };
        let reason = row.ran.as_ref().ok().and_then(|_| uncompared(network, *way));
        match compared {
            _ if reason.is_some() => {
                told.push(format!("{backend} {way} is not compared ({})", reason.unwrap_or_default()));
            }
            Ok(off) => told.push(format!("{backend} {way} {off:.1e}")),
            Err(_)
                if *way == Way::In(Precision::F16Storage)
                    && let Ok(ran) = &row.ran
                    && ran.has_halves
                    && is_beyond_halves(contexts, network, ran.steps) =>
            {
                told.push(format!("{backend} {way} is beyond halves"));
            }
            Err(error) => {
                told.push(format!("{backend} {way} wrong"));
                wrong.push(format!("{} on {backend} in {way}: {error}", network.name));
            }
        }
    }
    println!("{}: {}", network.name, told.join(", "));
    wrong
}

/// Runs every network, and fails with all rows that are wrong.
fn every(networks: Vec<(String, Found)>) {
    let contexts = contexts();
    let asked = std::env::var("DIPTYCH_NETWORKS").unwrap_or_default();
    let only = if asked == "full" { "" } else { asked.as_str() };
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (place, (name, network)) in networks.into_iter().enumerate() {
        if !name.contains(only) {
            continue;
        }
        let network = match network {
            Ok(network) => network,
            Err(error) => {
                wrong.push(format!("{name} cannot be read: {error}"));
                continue;
            }
        };
        let rows = rows(&contexts, &network, place, !asked.is_empty());
        if rows.is_empty() {
            println!("skipped: {name} takes long, DIPTYCH_NETWORKS=full runs it");
            continue;
        }
        count += rows.len();
        wrong.extend(judged(&contexts, &network, &rows));
    }
    println!("{count} rows");
    assert!(wrong.is_empty(), "{} of {count} rows are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn networks_of_the_examples() {
    every(examples::all());
}

#[test]
fn cases_of_the_project() {
    every(networks::cases(Path::new("tests/cases"), "cases", Effort::Halves));
}

#[test]
fn shared_cases() {
    let Some(folder) = networks::shared("cases") else { return };
    every(networks::cases(&folder, "shared/cases", Effort::Every));
}

#[test]
fn shared_models_of_tensorflow_lite() {
    let Some(folder) = networks::shared("models") else { return };
    every(networks::tflite(&folder));
}

#[test]
fn shared_models_of_onnx() {
    let Some(folder) = networks::shared("models/onnx") else { return };
    every(networks::onnx(&folder));
}

#[test]
fn shared_posenets() {
    let Some(folder) = networks::shared("posenet") else { return };
    every(networks::posenets(&folder));
}
