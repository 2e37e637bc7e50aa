//! The network that is measured: its sessions, its inputs, and what a verdict on it depends on.

use super::FastestOptions;
use crate::context::{Context, devices};
use crate::error::{Error, Result, Setting};
use crate::graph::Graph;
use crate::host::HostTensor;
#[cfg(any(feature = "tflite", feature = "onnx"))]
use crate::model::ModelFile;
use crate::options::{SessionOptions, Tuning};
use crate::parallel;
use crate::session::Session;
use crate::sorted;
use crate::source::Port;
use crate::tune::db::NetworkKey;
use crate::tune::key::DeviceKey;
#[cfg(any(feature = "onnx", feature = "tflite"))]
use diptych_import::model::LoadOptions;
use std::fmt::{self, Write};

/// Made-up values are this many, from 0 to 1: halves hold each of them.
const FRACTIONS: usize = 64;

pub(super) enum Network<'a> {
    Graph(&'a Graph),
    #[cfg(any(feature = "tflite", feature = "onnx"))]
    File(&'a ModelFile),
}

/// Takes text into a hash.
struct Hashed(blake3::Hasher);

impl Write for Hashed {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text.as_bytes());
        Ok(())
    }
}

impl Network<'_> {
    pub(super) fn session(&self, context: &Context, options: &SessionOptions) -> Result<Session> {
        match self {
            Network::Graph(graph) => Session::new(context, graph, options.clone()),
            #[cfg(any(feature = "tflite", feature = "onnx"))]
            Network::File(file) => file.session(context, options.clone()),
        }
    }

    /// Whether a run may do without this input.
    #[cfg_attr(
        not(any(feature = "tflite", feature = "onnx")),
        expect(unused_variables, reason = "all inputs of a graph are alike")
    )]
    fn is_optional(&self, name: &str) -> bool {
        match self {
            Network::Graph(_) => false,
            #[cfg(any(feature = "tflite", feature = "onnx"))]
            Network::File(file) => file.inputs().iter().any(|input| input.name == name && input.is_optional),
        }
    }

    /// Whether runs may give this input other extents, or none.
    #[cfg_attr(
        not(any(feature = "tflite", feature = "onnx")),
        expect(unused_variables, reason = "all inputs of a graph are alike")
    )]
    fn is_open(&self, name: &str, options: &SessionOptions) -> bool {
        match self {
            Network::Graph(_) => !options.open.is_empty(),
            #[cfg(any(feature = "tflite", feature = "onnx"))]
            Network::File(file) => file.inputs().iter().any(|input| {
                input.name == name && (input.is_optional || input.extents.is_none() || !input.open.is_empty())
            }),
        }
    }

    /// What each run is given: what the caller gives, and made-up values.
    pub(super) fn feeds(
        &self,
        session: &Session,
        given: &[(String, HostTensor)],
    ) -> Result<Vec<(String, HostTensor)>> {
        let mut feeds = given.to_vec();
        for port in session.inputs() {
            if !given.iter().any(|(name, _)| *name == port.name) && !self.is_optional(&port.name) {
                feeds.push((port.name.clone(), made_up(port)?));
            }
        }
        Ok(feeds)
    }

    /// What a verdict depends on.
    pub(super) fn key(&self, options: &FastestOptions, candidates: &[String], gpus_only: bool) -> NetworkKey {
        let mut hashed = Hashed(blake3::Hasher::new());
        // A hasher takes all text.
        let _ = self.describe(&mut hashed);
        let _ = describe_options(&options.session, &mut hashed);
        for (name, tensor) in options.inputs.iter().filter(|(name, _)| self.is_open(name, &options.session)) {
            let _ = write!(hashed, "\ninput {name:?} {} {}", tensor.dims(), tensor.dtype());
        }
        let _ = write!(hashed, "\nGPUs only: {gpus_only}");
        let mut device: Vec<DeviceKey> = devices()
            .into_iter()
            .flat_map(|listing| listing.devices.unwrap_or_default())
            .filter(|device| !(device.is_cpu && gpus_only))
            .map(|device| DeviceKey::of(&device))
            .collect();
        sorted::sort(&mut device, Ord::cmp);
        NetworkKey {
            device,
            cpu: format!("{}, {} threads", std::env::consts::ARCH, parallel::threads()),
            candidates: candidates.to_vec(),
            network: hashed.0.finalize().to_hex().to_string(),
            precision: options.session.precision.to_string(),
            crate_version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// What decides how long it runs: operators and extents, or the whole file.
    fn describe(&self, out: &mut Hashed) -> fmt::Result {
        match self {
            Network::Graph(graph) => graph.describe(out),
            #[cfg(any(feature = "tflite", feature = "onnx"))]
            Network::File(file) => {
                let (bytes, options) = file.contents();
                out.0.update(bytes);
                // Heads are not part of the file's bytes.
                write!(out, "\n{:?}", file.outputs())?;
                file.describe_heads(out)?;
                describe_reading(options, out)
            }
        }
    }
}

/// How a file is read, as far as it decides what runs.
#[cfg(any(feature = "tflite", feature = "onnx"))]
fn describe_reading(options: &LoadOptions, out: &mut Hashed) -> fmt::Result {
    let LoadOptions { dimensions, values, inputs, signature, dequantize, outputs, threads: _, files } =
        options;
    write!(out, "\n{dimensions:?} {inputs:?} {signature:?} {dequantize} {outputs:?}")?;
    for (name, tensor) in values {
        write!(out, "\nvalue {name:?} {} {} ", tensor.dims(), tensor.dtype())?;
        out.0.update(tensor.bytes());
    }
    for (name, bytes) in files {
        write!(out, "\nfile {name:?} {} ", bytes.len())?;
        out.0.update(bytes);
    }
    Ok(())
}

/// How a session is to run, as far as it decides how fast.
fn describe_options(options: &SessionOptions, out: &mut Hashed) -> fmt::Result {
    let SessionOptions {
        precision,
        work_group,
        tuning,
        pick,
        precisions,
        calibration,
        choices,
        on_cpu,
        cpu_threads,
        dimensions,
        open,
        seed: _,
        plans: _,
        keep_graph: _,
        without_rewrites,
        dequantize: floats,
        rounded_activations: rounded,
    } = options;
    let tuning = match tuning {
        Tuning::Default => "rule",
        Tuning::Database(_) => "record",
        Tuning::Online { .. } => "online",
    };
    write!(out, "\n{precision:?} {work_group:?} {tuning} {pick:?} {precisions:?} {calibration:?}")?;
    write!(
        out,
        "\n{choices:?} {on_cpu:?} {cpu_threads:?} {dimensions:?} {open:?} {without_rewrites:?} {floats} {rounded}"
    )
}

/// Values for an input that the caller does not give.
fn made_up(port: &Port) -> Result<HostTensor> {
    if let Some(open) = port.open.iter().find(|open| open.axis > 0) {
        let found = format!("an open extent of axis {} ({:?}) and no tensor", open.axis, open.name);
        let wanted = "a tensor of this input, of the extents to measure";
        let error = Error::input(format!("input {:?}", port.name), found, wanted);
        return Err(error.with_setting(Setting::MeasuredInputs));
    }
    let value = |index: usize| match port.dtype.is_float() {
        true => (index * 37 % FRACTIONS) as f32 / FRACTIONS as f32,
        false => 0.0,
    };
    HostTensor::new(port.dims, (0..port.dims.elements()).map(value).collect::<Vec<f32>>())
}

#[cfg(test)]
#[cfg(any(feature = "tflite", feature = "onnx"))]
mod tests {
    use super::*;
    use std::num::NonZeroUsize;
    use std::sync::Arc;

    fn hash(options: &LoadOptions) -> String {
        let mut out = Hashed(blake3::Hasher::new());
        assert!(describe_reading(options, &mut out).is_ok());
        out.0.finalize().to_hex().to_string()
    }

    #[test]
    fn what_is_read_decides_the_key_and_by_how_many_threads_does_not() {
        let with = |name: &str, bytes: &[u8]| LoadOptions {
            files: [(name.to_owned(), Arc::from(bytes))].into(),
            ..Default::default()
        };
        let one = hash(&with("weights", &[1, 2, 3]));
        let threads = NonZeroUsize::new(3);
        assert_eq!(hash(&LoadOptions { threads, ..with("weights", &[1, 2, 3]) }), one);
        for other in [with("weights", &[1, 2, 4]), with("other", &[1, 2, 3]), with("weights", &[1, 2])] {
            assert_ne!(hash(&other), one);
        }
        let value = |value: f32| LoadOptions {
            values: [("x".to_owned(), HostTensor::vector(vec![value]).expect("a tensor"))].into(),
            ..Default::default()
        };
        assert_ne!(hash(&value(1.0)), hash(&value(2.0)));
        // A record's key is that of every start.
        let said = format!("{:?}", with("weights", &[200; 1000]));
        assert!(said.contains("\"weights\": \"1000 bytes\"") && !said.contains("200, 200"), "{said}");
    }
}
