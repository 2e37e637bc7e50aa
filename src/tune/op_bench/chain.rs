//! What a run costs where each waits for the one before.
//!
//! The time between two timestamps around a dispatch has the writing of the timestamps in it, and the
//! emptying of a device that nothing else keeps busy: on an NVIDIA H200 a kernel of a thousand
//! multiplications takes 5.3 us that way through Vulkan and 5.4 us through OpenCL. In a network there
//! are no timestamps between the nodes, and the next may be prepared while one runs; but it waits. There
//! the same kernel takes 3.4 and 4.5 us.

use super::OpBench;
use crate::device::{Recording, Wait};
use crate::error::Result;
use crate::ops::Choice;
use crate::tune::clock::host_time;
use std::time::Duration;

/// How much longer the long chain is than the short one.
const LENGTH_RATIO: usize = 3;

impl OpBench {
    /// The time of one run in a chain of runs that wait for each other, as the nodes of a network do: that
    /// of a chain of `3 runs` less that of one of `runs`, on the host's clock, so that submission and wait
    /// cancel. All write the same destination, by which they wait, and read the same operands, which may
    /// stay in the caches. Where the host takes longer to launch a kernel than the device to run it, this
    /// is the host's time.
    ///
    /// # Errors
    /// If `choice` was not prepared, or does not run.
    pub fn chained(&mut self, choice: &Choice, runs: u32) -> Result<Duration> {
        let runs = runs.max(1) as usize;
        let prepared = self.prepared(choice)?;
        let kept = prepared.chains.as_ref().filter(|(kept, _)| *kept == runs);
        let [short, long] = match kept {
            Some((_, chains)) => chains.clone(),
            None => [self.chain(choice, runs)?, self.chain(choice, LENGTH_RATIO * runs)?],
        };
        let time = |chain| crate::task::block_on(host_time(Wait::Blocks, &*self.device, chain));
        let [less, more] = [time(&short)?, time(&long)?];
        if let Some(prepared) = self.prepared.get_mut(choice) {
            prepared.chains = Some((runs, [short, long]));
        }
        Ok(more.saturating_sub(less).div_f64(((LENGTH_RATIO - 1) * runs) as f64))
    }

    fn chain(&self, choice: &Choice, runs: usize) -> Result<Recording> {
        let one = self.dispatches(self.prepared(choice)?, 0, 1)?;
        self.device.record(&std::iter::repeat_n(one, runs).flatten().collect::<Vec<_>>())
    }
}
