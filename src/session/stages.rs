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
