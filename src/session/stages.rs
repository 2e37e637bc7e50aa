//! A run with a wait after each of its stages, to measure them apart.

use super::{Runner, Session};
use crate::clock::Instant;
use crate::error::Result;
use crate::host::HostTensor;
use std::time::Duration;

/// How long the stages of one run took, on the host's clock, each with its wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StageTimes {
    /// The inputs' way to the device; nothing on the CPU backend.
    pub upload: Duration,
    /// The network itself.
    pub network: Duration,
    /// The outputs' way back; nothing on the CPU backend.
    pub download: Duration,
}

impl Session {
    /// [`Session::run`], with the times of its stages. It waits after each of them, so it takes
    /// longer than a run, which submits all at once and waits once.
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
    /// let input = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![1.0, 2.0])?;
    /// let (outputs, times) = session.run_in_stages(&[("x", &input)])?;
    /// println!("{:?} up, {:?} in the network, {:?} down", times.upload, times.network, times.download);
    /// # assert_eq!(*outputs[0].to_f32(), [3.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Session::run`].
    pub fn run_in_stages(&mut self, inputs: &[(&str, &HostTensor)]) -> Result<(Vec<HostTensor>, StageTimes)> {
        let inputs = self.arrange(inputs)?;
        let (outputs, times) = match &mut self.runner {
            Runner::Device(session) => session.run_in_stages(&inputs)?,
            Runner::Cpu(session) => {
                let start = Instant::now();
                let outputs = session.run(&inputs)?;
                (outputs, StageTimes { network: start.elapsed(), ..Default::default() })
            }
        };
        Ok((self.wrap(outputs)?, times))
    }
}
