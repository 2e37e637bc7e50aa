//! Outputs that are inputs of the next run, as the keys and values that a decoder has seen.

use super::input::RunInput;
use super::ports::unknown;
use super::{Outputs, Session};
use crate::dims::Dims;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::host::HostTensor;
use crate::word;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// An output, and the input of the next run that it is.
#[derive(Debug)]
pub(super) struct CarriedOutput {
    output: String,
    input: String,
    /// What the last run left; none before the first one.
    value: Option<HostTensor>,
}

/// The inputs of a run by their names.
type Inputs<'n, 'a> = Vec<(Cow<'n, str>, RunInput<'a>)>;

/// A tensor of zeros.
fn zeros(dims: Dims, dtype: DType) -> Result<HostTensor> {
    let words = vec![0.0; dims.elements() * dtype.word().words()];
    word::to_tensor(dims, dtype, dtype.word(), &words)
}

impl Session {
    /// From now on an output of each run is an input of the next one. Each pair names the output and the input, as
    /// `present.0.key` and `past_key_values.0.key` of a decoder. The caller need not give such an input; if it does, the
    /// run takes the given tensor.
    ///
    /// In the first run, and in the first one after [`Session::reset`], the input is zeros. An extent that the file leaves
    /// open is then that of an axis of the same name of another input; without one it is 1 for the outermost axis and 0 for
    /// others.
    ///
    /// The session keeps these tensors in the host's memory: on a GPU each run downloads and uploads them. A run can only
    /// begin when the one before is over, so [`Session::submit`] and [`Session::stream`] are refused.
    ///
    /// ```
    /// use diptych::{Backend, Context, Dims, Function, Graph, HostTensor, Session, SessionOptions};
    ///
    /// let mut graph = Graph::new();
    /// let (x, before) = (graph.input("x", Dims::new(&[2])?)?, graph.input("before", Dims::new(&[2])?)?);
    /// let sum = graph.elementwise("sum", Function::Add, &[x.into(), before.into()])?;
    /// graph.output(sum)?;
    /// let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::default())?;
    ///
    /// session.carry(&[("sum", "before")])?;
    /// let x = HostTensor::vector(vec![1.0, 2.0])?.reshaped(Dims::new(&[2])?)?;
    /// session.run(&[("x", &x)])?;
    /// assert_eq!(*session.run(&[("x", &x)])?[0].to_f32(), [2.0, 4.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such output or input, or an input is in two pairs. Nothing is carried then that was not before.
    pub fn carry(&mut self, pairs: &[(&str, &str)]) -> Result<()> {
        let mut carried: Vec<CarriedOutput> = Vec::with_capacity(pairs.len());
        for (output, input) in pairs {
            if !self.outputs().iter().any(|port| port.name == *output) {
                return Err(unknown("output", output, self.outputs()));
            }
            if !self.inputs().iter().any(|port| port.name == *input) {
                return Err(unknown("input", input, self.inputs()));
            }
            if carried.iter().chain(&self.carried).any(|own| own.input == *input) {
                return Err(Error::input(format!("input {input:?}"), "two outputs carried to it", "one"));
            }
            let (output, input) = ((*output).to_owned(), (*input).to_owned());
            carried.push(CarriedOutput { output, input, value: None });
        }
        self.carried.extend(carried);
        Ok(())
    }

    /// The inputs of a run with those that are carried to it.
    pub(super) fn with_carried<'n, 'a>(&self, mut inputs: Inputs<'n, 'a>) -> Result<Inputs<'n, 'a>> {
        let own: Vec<&CarriedOutput> =
            self.carried.iter().filter(|own| inputs.iter().all(|(name, _)| *name != own.input)).collect();
        if own.is_empty() {
            return Ok(inputs);
        }
        let mut known: BTreeMap<&str, usize> = BTreeMap::new();
        for (name, input) in &inputs {
            let port = self.inputs().iter().find(|port| port.name == *name);
            for (open, dims) in port
                .into_iter()
                .zip(input.dims())
                .flat_map(|(port, dims)| port.open.iter().map(move |open| (open, dims)))
            {
                known.extend(dims.extents().get(open.axis).map(|&extent| (open.name.as_str(), extent)));
            }
        }
        let mut more = Vec::with_capacity(own.len());
        for own in own {
            let port = self.inputs().iter().find(|port| port.name == own.input);
            let port = port.ok_or_else(|| Error::Internal(format!("no input {:?}", own.input)))?;
            let tensor = match &own.value {
                Some(value) => value.clone(),
                None => {
                    let mut extents = port.dims.extents().to_vec();
                    for open in &port.open {
                        let default = usize::from(open.axis == 0);
                        if let Some(extent) = extents.get_mut(open.axis) {
                            *extent = known.get(open.name.as_str()).copied().unwrap_or(default);
                        }
                    }
                    zeros(Dims::new(&extents)?, port.dtype)?
                }
            };
            more.push((Cow::Owned(own.input.clone()), RunInput::owned(tensor)));
        }
        inputs.extend(more);
        Ok(inputs)
    }

    /// Keeps what a run left for the next one.
    pub(super) fn keep_carried(&mut self, outputs: &Outputs) -> Result<()> {
        self.fill_caches();
        for index in 0..self.carried.len() {
            let place = outputs.ports().iter().position(|port| port.name == self.carried[index].output);
            let place =
                place.ok_or_else(|| Error::Internal("an output that is carried is gone".to_owned()))?;
            self.carried[index].value = Some(outputs.tensor(place)?);
        }
        Ok(())
    }

    /// Lets go of what is carried.
    pub(super) fn forget_carried(&mut self) {
        self.empty_caches();
        self.carried.iter_mut().for_each(|own| own.value = None);
    }

    /// Refuses runs that do not follow each other.
    pub(super) fn check_not_carrying(&self, what: &str) -> Result<()> {
        match self.carried.is_empty() {
            true => Ok(()),
            false => Err(Error::unsupported(
                what,
                "outputs of each run are inputs of the next one, so a run begins when the one before is over: use Session::run \
                 or Session::run_async",
            )),
        }
    }
}
