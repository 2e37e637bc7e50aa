//! Candidates made ready and timed, on a device that is blocked for or awaited.

use super::{OpBench, Prepared};
use crate::clock::Instant;
use crate::device::Wait;
use crate::error::{Error, Result};
use crate::ops::Choice;
use std::time::Duration;

/// How long one stretch of keeping the device busy takes.
const BUSY_STRETCH: Duration = Duration::from_millis(2);
/// A kernel this short calibrates the clock.
const MAX_CALIBRATION_TIME: Duration = Duration::from_micros(500);

impl OpBench {
    /// Finds the clock's resolution with a kernel that was found correct.
    async fn calibrate(&mut self, wait: Wait, choice: &Choice) -> Result<()> {
        let prepared = self.prepared(choice)?;
        let one = self.record(prepared, 0, 1)?;
        let begin = Instant::now();
        self.device.submit(&one)?;
        wait.wait(&*self.device).await?;
        // A long kernel needs no fine clock, and 32 of it would take their time.
        if begin.elapsed() > 20 * MAX_CALIBRATION_TIME {
            return Ok(());
        }
        let many = self.record(prepared, 0, 32)?;
        self.clock.calibrated(wait, &*self.device, &many, &one).await
    }

    /// Compiles a candidate and gives it its arguments.
    pub(super) async fn made(&mut self, wait: Wait, choice: &Choice) -> Result<()> {
        let launch = self.launch(choice)?;
        let pipeline = self.compile(wait, choice, &launch).await.inspect_err(|error| {
            if let Error::Reject { .. } = error {
                let invocations = choice.work_group.iter().product::<u32>();
                let refused = self.too_many.entry((choice.variant, choice.tile)).or_insert(invocations);
                *refused = invocations.min(*refused);
            }
        })?;
        let bindings = &launch.spec.interface.bindings;
        let mut arguments = Vec::with_capacity(bindings.len());
        for binding in bindings {
            arguments.push(self.resources(wait, None, choice, binding).await?);
        }
        let prepared = Prepared {
            pipeline,
            launch,
            arguments,
            recording: None,
            #[cfg(not(target_family = "wasm"))]
            chains: None,
        };
        self.prepared.insert(*choice, prepared);
        self.repeating.worst = 0.0;
        Ok(())
    }

    /// Device time of `repeats` runs together.
    pub(super) async fn sampled(&mut self, wait: Wait, choice: &Choice, repeats: u32) -> Result<Duration> {
        if !self.calibrated {
            let outcome = self.calibrate(wait, choice).await;
            // Also if it failed; but not if it was dropped midway.
            self.calibrated = true;
            outcome?;
        }
        let runs = self.policy.runs(repeats.max(1));
        let prepared = self.prepared(choice)?;
        let kept = prepared.recording.as_ref().filter(|(kept, _)| *kept == runs && runs > 1);
        let recording = match kept {
            Some((_, recording)) => recording.clone(),
            None => self.record(prepared, self.turn, runs)?,
        };
        self.turn = (self.turn + runs as usize) % self.sets;
        let from = Instant::now();
        let time = self.clock.measured(wait, &*self.device, &recording, runs).await?;
        self.heat.worked(from, Instant::now(), time);
        if let Some(prepared) = self.prepared.get_mut(choice) {
            prepared.recording = Some((runs, recording));
        }
        Ok(time / runs * repeats.max(1))
    }

    /// Device times of choices that take turns.
    pub(super) async fn in_turns(
        &mut self,
        wait: Wait,
        choices: &[(Choice, u32)],
        rounds: usize,
    ) -> Result<Vec<Vec<Duration>>> {
        let (recording, owners) = self.record_turns(choices, rounds)?;
        let from = Instant::now();
        let times = wait.time(&*self.device, &recording).await?;
        self.heat.worked(from, Instant::now(), times.iter().sum());
        let mut sums = vec![Vec::with_capacity(rounds); choices.len()];
        for (owner, time) in owners.into_iter().zip(times) {
            if let Some(own) = sums.get_mut(owner) {
                own.push(time);
            }
        }
        Ok(sums
            .into_iter()
            .zip(choices)
            .map(|(times, (_, runs))| {
                let runs = (*runs).max(1);
                times.chunks(runs as usize).map(|chunk| chunk.iter().sum::<Duration>() / runs).collect()
            })
            .collect())
    }

    /// Keeps the device busy for a moment.
    pub(super) async fn warmed(&mut self, wait: Wait, choice: &Choice) -> Result<bool> {
        if self.wanted_heat.is_zero() {
            return Ok(false);
        }
        if self.busy.is_none() {
            let prepared = self.prepared(choice)?;
            let one = self.record(prepared, 0, 1)?;
            let from = Instant::now();
            self.device.submit(&one)?;
            wait.wait(&*self.device).await?;
            let once = from.elapsed();
            let runs = BUSY_STRETCH.as_secs_f64() / once.as_secs_f64().max(1e-6);
            // A short one is mostly the cost of submitting it.
            let runs = if once < BUSY_STRETCH / 4 { 8.0 * runs } else { runs };
            self.busy = Some(self.record(prepared, 0, runs.clamp(1.0, 256.0) as u32)?);
        }
        let Some(recording) = &self.busy else { return Ok(false) };
        let from = Instant::now();
        // Once begun it is finished; a device that cooled down a little is left alone.
        let enough = if self.warming { self.wanted_heat } else { self.wanted_heat / 2 };
        self.warming = self.heat.at(from) < enough;
        if !self.warming {
            return Ok(false);
        }
        self.device.submit(recording)?;
        wait.wait(&*self.device).await?;
        let to = Instant::now();
        self.heat.worked(from, to, to - from);
        self.warming = self.heat.at(to) < self.wanted_heat;
        Ok(self.warming)
    }
}
