//! The network that the options name, and a session that runs it.

use crate::model::{FIGURES, Model};
use crate::options::Options;
use crate::{progress, tuning};
use anyhow::Result;
use diptych::{
    Backend, Context, Graph, HostTensor, LoadOptions, Session, SessionOptions, StageTimes, Tuning, tflite,
};
use diptych_decode::posenet::Heads;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What the default network is called in reports.
pub const FIGURES_NAME: &str = "examples/posenet/data/posenet_figures.tflite";

/// The network that the options name, and its name.
pub fn graph(options: &Options) -> Result<(PathBuf, Graph)> {
    match &options.model {
        Some(path) => {
            let model = diptych::Model::load(path, &LoadOptions::default())?;
            Ok((path.clone(), model.graph))
        }
        None => Ok((FIGURES_NAME.into(), tflite::from_bytes(FIGURES)?)),
    }
}

/// A PoseNet on a device.
#[derive(Debug)]
pub struct Network {
    pub model: Model,
    pub session: Session,
    /// The device and why it was chosen.
    pub device: String,
    /// How long it took to find the device and to make the network ready for it.
    pub prepared: Duration,
}

impl Network {
    /// Makes the network ready on a backend.
    pub fn new(options: &Options, backend: Backend, model: &Model, graph: &Graph) -> Result<Self> {
        let start = Instant::now();
        let context = Context::new(backend)?;
        let opened = start.elapsed();
        let tuning = tuning::tuning(options, &context, graph)?;
        let by_record = !matches!(tuning, Tuning::Default);
        let start = Instant::now();
        let session = progress::spinner("preparing the network", || {
            Session::new(&context, graph, SessionOptions { tuning, ..Default::default() })
        })?;
        let prepared = opened + start.elapsed();
        if by_record {
            eprintln!("posenet: {}", tuning::describe(&session));
        }
        Ok(Network { model: model.clone(), session, device: context.info().to_string(), prepared })
    }

    /// Runs the network: the heads, and the time from host to host.
    pub fn run(&mut self, input: &HostTensor) -> Result<(Heads<'static>, Duration)> {
        let start = Instant::now();
        let outputs = self.session.run(&[(self.model.input.name.as_str(), input)])?;
        let time = start.elapsed();
        Ok((self.model.heads(&outputs)?, time))
    }

    /// Runs the network with a wait after each stage: the heads, and the time of each stage.
    pub fn run_in_stages(&mut self, input: &HostTensor) -> Result<(Heads<'static>, StageTimes)> {
        let (outputs, times) = self.session.run_in_stages(&[(self.model.input.name.as_str(), input)])?;
        Ok((self.model.heads(&outputs)?, times))
    }

    /// The time of each step on the device.
    pub fn profile(&mut self, input: &HostTensor) -> Result<diptych::Profile> {
        Ok(self.session.profile(&[(self.model.input.name.as_str(), input)])?)
    }
}
