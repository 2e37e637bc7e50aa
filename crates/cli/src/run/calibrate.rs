//! The calibration of `diptych run --precision auto`: read from a file, or made and written.

use super::inputs::{self, Input, Pixels, Port};
use crate::output::say;
use anyhow::{Result, ensure};
use clap::builder::{OsStringValueParser, TypedValueParser};
use diptych::{Calibration, Context, Graph, HostTensor, Session, SessionOptions};
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Find the nodes that lose accuracy in f16, for `--precision auto`, by running the model on this run's
    /// inputs; or, given files, once with each of them as an input, the others as in this run.
    #[arg(
        long,
        value_name = "[NAME=]FILE",
        num_args = 0..=1,
        require_equals = true,
        value_parser = OsStringValueParser::new().try_map(Input::parse)
    )]
    pub(crate) calibrate: Option<Vec<Input>>,

    /// The error that `--calibrate` allows an output, relative to its largest magnitude.
    #[arg(long, default_value_t = Calibration::TOLERANCE)]
    pub(crate) tolerance: f32,

    /// A file: `--calibrate` writes its findings there, `--precision auto` without it reads them.
    #[arg(long, value_name = "FILE")]
    pub(crate) calibration: Option<PathBuf>,
}

impl Arguments {
    /// Whether a calibration is made or read.
    pub(super) fn is_asked(&self) -> bool {
        self.calibrate.is_some() || self.calibration.is_some()
    }

    /// The calibration for a session with `options`, if one is asked for. The run's inputs are `tensors`.
    pub(super) fn calibration(
        &self,
        (context, graph): (&Context, &Graph),
        options: &SessionOptions,
        (ports, tensors): (&[Port], &[HostTensor]),
        range: Option<Pixels>,
    ) -> Result<Option<Calibration>> {
        let auto = options.precision == diptych::Precision::Auto;
        ensure!(auto || !self.is_asked(), "--calibrate and --calibration are for --precision auto");
        let Some(files) = &self.calibrate else {
            return Ok(self.calibration.as_ref().map(Calibration::load).transpose()?);
        };
        let mut samples: Vec<Vec<HostTensor>> = Vec::new();
        for file in files {
            let names: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
            let sources = inputs::bind(&names, std::slice::from_ref(file), &[])?;
            let read = inputs::read(ports, &sources, (range, &BTreeMap::new()), 0)?.into_iter();
            let own = read.zip(&sources).zip(tensors);
            samples.push(
                own.map(|((read, source), own)| source.as_ref().map_or(own.clone(), |_| read)).collect(),
            );
        }
        if samples.is_empty() {
            samples.push(tensors.to_vec());
        }
        let named = |tensors: &Vec<HostTensor>| {
            ports.iter().map(|port| port.name.clone()).zip(tensors.clone()).collect()
        };
        let named: Vec<Vec<(String, HostTensor)>> = samples.iter().map(named).collect();
        let feeds: Vec<Vec<(&str, &HostTensor)>> = named
            .iter()
            .map(|sample| sample.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect())
            .collect();
        let found = Session::calibrate(context, graph, options, &feeds, self.tolerance)?;
        say(found.to_string().trim_end());
        if let Some(file) = &self.calibration {
            found.save(file)?;
        }
        Ok(Some(found))
    }
}
