//! Clocks: what a run costs the device.
//!
//! | clock | a time is | where |
//! |---|---|---|
//! | GPU timestamps | from the begin to the end of each dispatch's pass | wgpu with `TIMESTAMP_QUERY` |
//! | profiling events | from start to end of each command | OpenCL |
//! | GPU timestamps around batches | from the begin to the end of the whole recording's pass | browsers, whose timestamps are rounded to 0.1 ms |
//! | host | from submission to the end of the wait, of the whole recording | the last resort |
//!
//! **Short kernels are repeated inside one measurement.** A clock that ticks every `r` gives a
//! dispatch of length `t` a time that is off by less than `r`, and right on average, because the
//! dispatch begins anywhere within a tick: the standard error is at most `r / 2`. The sum of `n`
//! dispatches is then off by `r / (2 t sqrt(n))` of itself, and
//! `n = (r / (2 t e))^2` brings that under `e`. The host's clock is read once for all dispatches:
//! there `r` is the cost of a submission and a wait, and `n = r / (t e)`. So is that of a browser's
//! timestamps, with `r` the tick that they are rounded to.
//!
//! **Nothing of the first run counts.** A candidate was checked against the oracle before it is
//! timed: that run was the warm-up of its caches and of the driver.

use super::quirks::Policy;
use super::statistics::median;
use crate::clock::Instant;
use crate::device::{Device, Recording, Wait};
use crate::error::{Error, Result};
use crate::sorted;
use std::fmt;
use std::time::Duration;

/// The clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClockKind {
    /// Timestamp queries around each dispatch.
    GpuTimestamps,
    /// Timestamp queries around all dispatches of a measurement.
    GpuBatches,
    /// OpenCL's profiling events.
    ProfilingEvents,
    /// The host's clock around submission and wait: the last resort.
    Host,
}

impl fmt::Display for ClockKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ClockKind::GpuTimestamps => "GPU timestamps",
            ClockKind::GpuBatches => "GPU timestamps around batches",
            ClockKind::ProfilingEvents => "profiling events",
            ClockKind::Host => "host clock",
        })
    }
}

/// A device's clock, with what its quirks ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clock {
    kind: ClockKind,
    resolution: Duration,
    policy: Policy,
}

/// The relative error that the resolution may cause.
const TARGET_ERROR: f64 = 0.01;

/// What is assumed before anything was measured.
const ASSUMED_TICK: Duration = Duration::from_micros(1);
const ASSUMED_SUBMISSION: Duration = Duration::from_micros(100);

/// What browsers round timestamps to. It cannot be measured: two that differ do so by a multiple of it, which may be any.
const BROWSER_TICK: Duration = Duration::from_micros(100);

/// A measurement by a clock that is read twice lasts at least this many times its resolution, whatever is asked for.
const MIN_RESOLUTIONS: u32 = 40;

/// Runs inside one measurement at most: each needs its own arguments and queries.
const MAX_RUNS: u32 = 512;

/// Runs inside one measurement at most where it has two queries in all.
const MAX_BATCH: u32 = 4096;

impl Clock {
    /// The best clock that `device` has.
    pub fn of(device: &dyn Device, policy: Policy) -> Self {
        let info = device.info();
        let kind = match (info.timestamps, info.api) {
            (true, "OpenCL") => ClockKind::ProfilingEvents,
            (true, "WebGPU") => ClockKind::GpuBatches,
            (true, _) => ClockKind::GpuTimestamps,
            (false, _) => ClockKind::Host,
        };
        Self::with(kind, policy)
    }

    /// A clock of this kind, with an assumed resolution.
    pub fn with(kind: ClockKind, policy: Policy) -> Self {
        let resolution = match kind {
            ClockKind::Host => ASSUMED_SUBMISSION,
            ClockKind::GpuBatches => BROWSER_TICK,
            _ => ASSUMED_TICK,
        };
        Clock { kind, resolution, policy }
    }

    /// The clock.
    pub fn kind(&self) -> ClockKind {
        self.kind
    }

    /// The tick, or for the host's clock the cost of a submission and a wait.
    pub fn resolution(&self) -> Duration {
        self.resolution
    }

    /// Finds the resolution from a recording of many equal, short dispatches, and from one of a
    /// single such dispatch.
    ///
    /// # Errors
    /// If the device fails.
    #[cfg(not(target_family = "wasm"))]
    pub fn calibrate(&mut self, device: &dyn Device, many: &Recording, one: &Recording) -> Result<()> {
        crate::task::block_on(self.calibrated(Wait::Blocks, device, many, one))
    }

    /// Finds the resolution in the same way.
    pub(super) async fn calibrated(
        &mut self,
        wait: Wait,
        device: &dyn Device,
        many: &Recording,
        one: &Recording,
    ) -> Result<()> {
        self.resolution = match self.kind {
            ClockKind::GpuTimestamps | ClockKind::ProfilingEvents => {
                let times = wait.time(device, many).await?;
                tick(&times).unwrap_or(ASSUMED_TICK)
            }
            ClockKind::GpuBatches => BROWSER_TICK,
            ClockKind::Host => {
                let mut times = Vec::new();
                for _ in 0..5 {
                    times.push(host_time(wait, device, one).await?.as_secs_f64());
                }
                Duration::from_secs_f64(median(&times).unwrap_or_default()).max(Duration::from_nanos(1))
            }
        };
        Ok(())
    }

    /// Runs inside one measurement for a kernel of about `estimate`, so that the resolution adds
    /// less than 1 %, unless that would take longer than `most`.
    pub fn repeats(&self, estimate: Duration, most: Duration) -> u32 {
        let one = estimate.as_secs_f64().max(1e-9);
        let ticks = self.resolution.as_secs_f64() / one;
        let wanted = match self.kind {
            ClockKind::Host | ClockKind::GpuBatches => ticks / TARGET_ERROR,
            _ => (ticks / (2.0 * TARGET_ERROR)).powi(2),
        };
        // A browser's clocks are so coarse that less would say nothing.
        let most = match self.kind {
            ClockKind::GpuBatches => most.max(MIN_RESOLUTIONS * self.resolution),
            ClockKind::Host if cfg!(target_family = "wasm") => most.max(MIN_RESOLUTIONS * self.resolution),
            _ => most,
        };
        let affordable = (most.as_secs_f64() / one).max(1.0);
        let most = if self.kind == ClockKind::GpuBatches { MAX_BATCH } else { MAX_RUNS };
        let runs = wanted.min(affordable).min(f64::from(most)).ceil().max(1.0);
        self.policy.runs(runs as u32)
    }

    /// Device time of all `runs` dispatches of a recording together.
    ///
    /// # Errors
    /// If the device fails, or no time is believable.
    #[cfg(not(target_family = "wasm"))]
    pub fn measure(&self, device: &dyn Device, recording: &Recording, runs: u32) -> Result<Duration> {
        crate::task::block_on(self.measured(Wait::Blocks, device, recording, runs))
    }

    /// Measures in the same way.
    pub(super) async fn measured(
        &self,
        wait: Wait,
        device: &dyn Device,
        recording: &Recording,
        runs: u32,
    ) -> Result<Duration> {
        match self.kind {
            ClockKind::Host => return host_time(wait, device, recording).await,
            ClockKind::GpuBatches => return device.time_together_async(recording).await,
            ClockKind::GpuTimestamps | ClockKind::ProfilingEvents => {}
        }
        let times = wait.time(device, recording).await?;
        let average = self.policy.average(&times).ok_or_else(|| Error::Driver {
            api: device.info().api,
            call: "time",
            message: format!("none of {} times is believable: {times:?}", times.len()),
        })?;
        Ok(average * runs)
    }
}

pub(super) async fn host_time(wait: Wait, device: &dyn Device, recording: &Recording) -> Result<Duration> {
    wait.wait(device).await?;
    let start = Instant::now();
    device.submit(recording)?;
    wait.wait(device).await?;
    Ok(start.elapsed())
}

/// The smallest step between different times: a clock's tick, if the times are of equal kernels.
fn tick(times: &[Duration]) -> Option<Duration> {
    let mut sorted = times.to_vec();
    sorted::sort(&mut sorted, Ord::cmp);
    sorted.windows(2).filter_map(|pair| pair[1].checked_sub(pair[0])).filter(|step| !step.is_zero()).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn clock(kind: ClockKind, resolution_ns: u64) -> Clock {
        let mut clock = Clock::with(kind, Policy::default());
        clock.resolution = Duration::from_nanos(resolution_ns);
        clock
    }

    #[test]
    fn the_tick_is_the_smallest_step() {
        let times = [3072u64, 2048, 2048, 5120, 3072].map(Duration::from_nanos);
        assert_eq!(tick(&times), Some(Duration::from_nanos(1024)));
        assert_eq!(tick(&times[..1]), None);
        assert_eq!(tick(&[times[1], times[2]]), None);
    }

    #[test]
    fn short_kernels_repeat_and_long_ones_do_not() {
        let most = Duration::from_millis(20);
        let events = clock(ClockKind::ProfilingEvents, 1000);
        assert_eq!(events.repeats(Duration::from_millis(1), most), 1);
        assert_eq!(events.repeats(Duration::from_micros(10), most), 25);
        assert_eq!(events.repeats(Duration::from_nanos(100), most), MAX_RUNS);
        let host = clock(ClockKind::Host, 100_000);
        assert_eq!(host.repeats(Duration::from_micros(100), most), 100);
        // No measurement outlasts its limit by more than a run.
        assert_eq!(host.repeats(Duration::from_micros(100), Duration::from_millis(1)), 10);
        assert_eq!(host.repeats(Duration::from_secs(1), Duration::from_millis(1)), 1);
    }

    #[test]
    fn enough_repeats_hide_the_tick() {
        let mut random = Random::new(5);
        for (tick, length) in [(1000.0f64, 7300.0f64), (1000.0, 2100.0), (52.0, 1234.0)] {
            let clock = clock(ClockKind::GpuTimestamps, tick as u64);
            let runs = clock.repeats(Duration::from_nanos(length as u64), Duration::from_secs(1));
            let mut errors = Vec::new();
            for _ in 0..200 {
                let sum: f64 = (0..runs)
                    .map(|_| {
                        let start = random.unit() * tick;
                        ((start + length) / tick).floor() * tick
                    })
                    .sum();
                errors.push((sum / (f64::from(runs) * length) - 1.0).powi(2));
            }
            let error = (errors.iter().sum::<f64>() / errors.len() as f64).sqrt();
            assert!(error < 0.011, "tick {tick}, length {length}, {runs} runs: {error}");
        }
    }

    /// A browser rounds both readings of the clock down.
    #[test]
    fn enough_runs_in_a_batch_hide_a_browsers_tick() {
        let mut random = Random::new(7);
        let clock = Clock::with(ClockKind::GpuBatches, Policy::default());
        let tick = clock.resolution().as_nanos() as f64;
        for length in [1_700.0f64, 7_300.0, 51_000.0, 333_000.0, 20_000_000.0] {
            let runs = clock.repeats(Duration::from_nanos(length as u64), Duration::from_millis(5));
            let mut errors = Vec::new();
            for _ in 0..200 {
                let (begin, all) = (random.unit() * tick, f64::from(runs) * length);
                let measured = ((begin + all) / tick).floor() * tick;
                errors.push((measured / all - 1.0).powi(2));
            }
            let error = (errors.iter().sum::<f64>() / errors.len() as f64).sqrt();
            assert!(error < 0.015, "length {length}, {runs} runs: {error}");
        }
    }
}
