//! A device that is kept busy, while kernels are compiled and by candidates that take turns.

use super::OpBench;
#[cfg(not(target_family = "wasm"))]
use crate::clock::Instant;
#[cfg(not(target_family = "wasm"))]
use crate::device::compile_planned;
use crate::device::{Pipeline, Recording, Wait, compile_planned_async};
#[cfg(not(target_family = "wasm"))]
use crate::error::Error;
use crate::error::Result;
use crate::ops::{Choice, Launch};
use crate::tune::Bench as _;
use crate::tune::heat::Heat;
use std::time::Duration;

impl OpBench {
    /// Keeps the device busy before it is timed, until it was for `wanted` of late: `heat` is what
    /// an earlier bench on the same device left. Does nothing on drivers that run on the CPU.
    #[must_use]
    pub fn with_heat(mut self, heat: Heat, wanted: Duration) -> Self {
        self.heat = heat;
        self.wanted_heat = if self.device.info().is_cpu { Duration::ZERO } else { wanted };
        self
    }

    /// How busy the device was of late.
    pub fn heat(&self) -> Heat {
        self.heat
    }

    /// Compiles what `launch` needs.
    pub(super) async fn compile(&mut self, wait: Wait, choice: &Choice, launch: &Launch) -> Result<Pipeline> {
        match wait {
            #[cfg(not(target_family = "wasm"))]
            Wait::Blocks => self.compile_busily(choice, launch),
            Wait::Awaits => {
                // It names what is compiled ahead.
                let _ = choice;
                let source = launch.spec.render_written(self.limits().dialect)?;
                compile_planned_async(&*self.device, &source).await
            }
        }
    }

    /// Compiles what `launch` needs, keeping the device busy meanwhile.
    #[cfg(not(target_family = "wasm"))]
    fn compile_busily(&mut self, choice: &Choice, launch: &Launch) -> Result<Pipeline> {
        let keep_busy = self.busy.clone();
        if !self.ahead.has(choice) {
            let source = launch.spec.render_written(self.limits().dialect)?;
            // Without something to do meanwhile a thread would be for nothing.
            if keep_busy.is_none() || self.ahead.start(&self.device, *choice, source.clone()).is_err() {
                return compile_planned(&*self.device, &source);
            }
        }
        let (device, heat) = (&self.device, &mut self.heat);
        let meanwhile = || {
            let Some(recording) = &keep_busy else { return };
            let from = Instant::now();
            // Whoever needs the device next learns of its failure.
            if device.submit(recording).and_then(|()| device.wait()).is_ok() {
                let to = Instant::now();
                heat.worked(from, to, to - from);
            }
        };
        let compiled = self.ahead.take(choice, meanwhile);
        compiled.unwrap_or_else(|| Err(Error::Internal(format!("{choice} was not compiled"))))
    }

    /// One recording in which the choices take turns, round by round, each `runs` times in a row.
    /// A round that does not count comes first, and every other round goes backwards.
    pub(super) fn record_turns(
        &mut self,
        choices: &[(Choice, u32)],
        rounds: usize,
    ) -> Result<(Recording, Vec<usize>)> {
        let (mut dispatches, mut owners) = (Vec::new(), Vec::new());
        for round in 0..=rounds {
            let forwards = round % 2 == 0;
            for place in 0..choices.len() {
                let index = if forwards { place } else { choices.len() - 1 - place };
                let Some((choice, runs)) = choices.get(index) else { continue };
                let runs = if round == 0 { 1 } else { (*runs).max(1) as usize };
                dispatches.extend(self.dispatches(self.prepared(choice)?, self.turn, runs)?);
                owners.extend(std::iter::repeat_n(if round == 0 { usize::MAX } else { index }, runs));
                self.turn = (self.turn + runs) % self.sets;
            }
        }
        Ok((self.device.record(&dispatches)?, owners))
    }
}
