//! Runs on the caller's memory, without tensors: for bindings to other languages.

use super::device::{self, DeviceFlight};
use super::into::targets;
use super::ports::{every, unknown};
use super::stream::UnderWay;
use super::{Flight, Port, Runner, Session};
use crate::error::{Error, Result};
use std::borrow::Cow;
use std::sync::Arc;

/// A run that was started and is not waited for yet. Made by [`Session::start`].
///
/// It does not borrow the session, which may start others, run, be tuned or be dropped meanwhile. If this is dropped, the
/// run ends and nobody reads its results.
#[derive(Debug)]
#[must_use = "the outputs come from `finish_into`"]
pub struct Started {
    flight: Flight,
    ports: Arc<[Port]>,
    outputs: Option<Arc<[device::Output]>>,
}

impl Session {
    /// [`Session::run_into`] with the inputs in the caller's memory too: each of the session's inputs, by name, with a
    /// slice of as many elements as it has, in the order of its dimensions. Nothing is copied on the way to the device.
    ///
    /// ```
    /// use diptych::{Backend, Context, Extras, Graph, HostTensor, Pointwise, Session, SessionOptions, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 1, 2, 3))?;
    /// let ones = HostTensor::new(Shape::nhwc(1, 1, 1, 3), vec![1.0; 3])?;
    /// let y = graph.pointwise("sum", x, ones, Extras::default(), Pointwise::default())?;
    /// graph.output(y)?;
    /// let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::default())?;
    ///
    /// let (pixels, mut sums) = ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [0.0; 2]);
    /// session.run_slices(&[("x", &pixels)], &mut [("sum", &mut sums)])?;
    /// assert_eq!(sums, [3.0, 12.0]);
    ///
    /// let started = session.start(&[("x", &pixels)])?;
    /// // Work of the caller's, or other runs.
    /// started.finish_into(&mut [("sum", &mut sums)])?;
    /// assert_eq!(sums, [3.0, 12.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an input or an output is missing, unknown, given twice or of another length, or the device fails.
    pub fn run_slices(
        &mut self,
        inputs: &[(&str, &[f32])],
        outputs: &mut [(&str, &mut [f32])],
    ) -> Result<()> {
        let inputs = sources(&self.inputs, inputs)?;
        let mut targets = targets(&self.outputs, outputs)?;
        match &mut self.runner {
            Runner::Device(session) => session.run_into(&inputs, &mut targets),
            Runner::Cpu(session) => session.run_into(&inputs, &mut targets),
        }
    }

    /// [`Session::run_slices`] up to the wait. The inputs are read before this returns. Runs take place in the order in
    /// which they were started; each that is under way has memory of its own for its outputs.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Extras, Graph, HostTensor, Pointwise, Session, SessionOptions, Shape};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let sum = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![1.0, 1.0])?;
    /// # let y = graph.pointwise("sum", x, sum, Extras::default(), Pointwise::default())?;
    /// # graph.output(y)?;
    /// # let context = Context::new(Backend::Cpu)?;
    /// let mut session = Session::new(&context, &graph, SessionOptions::default())?;
    /// let started = session.start(&[("x", &[1.0, 2.0])])?;
    /// let mut sum = [0.0];
    /// started.finish_into(&mut [("sum", &mut sum)])?;
    /// assert_eq!(sum, [3.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an input is missing, unknown, given twice or of another length, or the device fails.
    pub fn start(&mut self, inputs: &[(&str, &[f32])]) -> Result<Started> {
        let inputs = sources(&self.inputs, inputs)?;
        let flight = self.start_arranged(&inputs)?;
        let outputs = match &self.runner {
            Runner::Device(session) => Some(Arc::clone(&session.outputs)),
            Runner::Cpu(_) => None,
        };
        Ok(Started { flight, ports: Arc::clone(&self.outputs), outputs })
    }
}

impl Started {
    /// Waits for the run, and copies its outputs to the caller's memory, as [`Session::run_into`] does.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Extras, Graph, HostTensor, Pointwise, Session, SessionOptions, Shape};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let sum = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![1.0, 1.0])?;
    /// # let y = graph.pointwise("sum", x, sum, Extras::default(), Pointwise::default())?;
    /// # graph.output(y)?;
    /// # let context = Context::new(Backend::Cpu)?;
    /// let mut session = Session::new(&context, &graph, SessionOptions::default())?;
    /// let first = session.start(&[("x", &[1.0, 2.0])])?;
    /// let second = session.start(&[("x", &[3.0, 4.0])])?; // both are under way
    /// let mut sums = [[0.0]; 2];
    /// for (started, sum) in [first, second].into_iter().zip(&mut sums) {
    ///     started.finish_into(&mut [("sum", sum)])?;
    /// }
    /// assert_eq!(sums, [[3.0], [7.0]]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an output is missing, unknown, given twice or of another length, or the device fails.
    pub fn finish_into(self, outputs: &mut [(&str, &mut [f32])]) -> Result<()> {
        let mut targets = targets(&self.ports, outputs)?;
        match (self.flight.0, &self.outputs) {
            (UnderWay::Device(DeviceFlight(run)), Some(outputs)) => device::taken(
                |see| run.finish_and_see(see),
                |read| device::copy_apart(outputs, read, &mut targets),
            ),
            (UnderWay::Cpu(running), _) => {
                for (output, target) in running.wait()?.iter().zip(targets) {
                    target.copy_from_slice(output);
                }
                Ok(())
            }
            (UnderWay::Device(_), None) => Err(Error::Internal("a run on no device".to_owned())),
        }
    }
}

/// The caller's slices in the order of the ports.
fn sources<'a>(ports: &[Port], inputs: &[(&str, &'a [f32])]) -> Result<Vec<Cow<'a, [f32]>>> {
    let mut found = vec![None; ports.len()];
    for (name, source) in inputs {
        let of_name = ports.iter().zip(&mut found).find(|(port, _)| port.name == *name);
        let (port, place) = of_name.ok_or_else(|| unknown("input", name, ports))?;
        let wanted = port.dims.elements();
        if source.len() != wanted {
            return Err(Error::input(
                format!("input {name:?}"),
                format!("a slice of {} elements", source.len()),
                format!("{wanted} for shape {}", port.dims),
            ));
        }
        if place.is_some() {
            return Err(Error::input(format!("input {name:?}"), "two slices", "one"));
        }
        *place = Some(Cow::Borrowed(*source));
    }
    every("input", ports, found)
}
