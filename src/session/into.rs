//! A run whose outputs go to the caller's memory.

use super::ports::{every, unknown};
use super::{Port, Runner, Session};
use crate::error::{Error, Result};
use crate::host::HostTensor;

impl Session {
    /// [`Session::run`] with the outputs in the caller's memory: each of the session's outputs, by name,
    /// with a slice of as many elements as it has. They are copied once, from where the device shows them.
    ///
    /// ```
    /// use diptych::{Backend, Context, Extras, Graph, HostTensor, Pointwise, Session, SessionOptions, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 1, 2, 3))?;
    /// let ones = HostTensor::new(Shape::nhwc(1, 1, 1, 3), vec![1.0; 3])?;
    /// let y = graph.pointwise("sum", x, ones, Extras::default(), Pointwise::default())?;
    /// graph.output(y)?;
    ///
    /// let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::default())?;
    /// let mut sums = vec![0.0; session.outputs()[0].shape.elements()];
    /// for frame in 0..3 {
    ///     let pixels: Vec<f32> = (0..6).map(|index| (index + frame) as f32).collect();
    ///     let image = HostTensor::new(Shape::nhwc(1, 1, 2, 3), pixels)?;
    ///     session.run_into(&[("x", &image)], &mut [("sum", &mut sums)])?;
    ///     assert_eq!(sums, [(3 + 3 * frame) as f32, (12 + 3 * frame) as f32]);
    /// }
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Session::run`]; also if an output is missing, unknown, given twice or of another length.
    /// Then nothing is written.
    pub fn run_into(
        &mut self,
        inputs: &[(&str, &HostTensor)],
        outputs: &mut [(&str, &mut [f32])],
    ) -> Result<()> {
        let inputs = self.arrange(inputs)?;
        let mut targets = targets(&self.outputs, outputs)?;
        match &mut self.runner {
            Runner::Device(session) => session.run_into(&inputs, &mut targets),
            Runner::Cpu(session) => session.run_into(&inputs, &mut targets),
        }
    }
}

/// The caller's slices in the order of the ports. Of outputs that share a name, the first is the first
/// given.
pub(super) fn targets<'a>(
    ports: &[Port],
    outputs: &'a mut [(&str, &mut [f32])],
) -> Result<Vec<&'a mut [f32]>> {
    let mut found: Vec<Option<&mut [f32]>> = ports.iter().map(|_| None).collect();
    for (name, target) in outputs {
        let mut named = ports.iter().zip(&mut found).filter(|(port, _)| port.name == *name).peekable();
        if named.peek().is_none() {
            return Err(unknown("output", name, ports));
        }
        let Some((port, place)) = named.find(|(_, place)| place.is_none()) else {
            return Err(Error::input(format!("output {name:?}"), "two slices", "one"));
        };
        let wanted = port.shape.elements();
        if target.len() != wanted {
            return Err(Error::input(
                format!("output {name:?}"),
                format!("a slice of {} elements", target.len()),
                format!("{wanted} for shape {}", port.dims),
            ));
        }
        *place = Some(target);
    }
    every("output", ports, found)
}
