//! What the tuner needs of a device for one problem. A fake device with a fake clock can stand in.

use super::repeat::{Repeated, Round};
use crate::error::Result;
use crate::layout::Layout;
use crate::limits::Limits;
use crate::ops::Choice;
#[cfg(not(target_family = "wasm"))]
use std::future::ready;
use std::time::Duration;

pub(crate) use crate::task::Local;

/// What a candidate's output was worth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    /// Every element is within the tolerance.
    Correct,
    /// At least one element is not.
    Wrong {
        /// The first such element, and how many there are.
        detail: String,
    },
}

/// One problem on one device.
///
/// The tuner calls [`Bench::prepare`], [`Bench::check`] and [`Bench::sample`] in this order for each
/// candidate, and `sample` again later; never `sample` for one that is not [`Check::Correct`]. A
/// wrapper that writes down what is about to run, before it runs, wraps these three.
///
/// What waits for the device is awaited on `wasm32`; elsewhere it blocks, and its awaited form is ready at once.
pub trait Bench {
    /// What an untuned session runs. The tuner keeps it unless another is significantly faster.
    ///
    /// # Errors
    /// If no kernel serves the problem.
    fn default_choice(&self) -> Result<Choice>;

    /// Every (variant, tile) that the op offers.
    fn space(&self) -> Vec<(&'static str, [u32; 3])>;

    /// The layout of the candidates' feature maps.
    fn layout(&self) -> Layout {
        Layout::C4
    }

    /// The grid of a variant and tile, in invocations.
    fn grid(&self, variant: &'static str, tile: [u32; 3]) -> [u32; 3];

    /// The table's work-group for a variant and tile.
    fn table(&self, variant: &'static str, tile: [u32; 3]) -> [u32; 3];

    /// The work-groups that the variant is made for; empty if any may serve it.
    fn work_groups(&self, _variant: &'static str, _tile: [u32; 3]) -> Vec<[u32; 3]> {
        Vec::new()
    }

    /// What the device allows.
    fn limits(&self) -> &Limits;

    /// Whether `choice` can run.
    ///
    /// # Errors
    /// The broken constraint.
    fn fits(&self, choice: &Choice) -> Result<()>;

    /// Compiles `choice`.
    ///
    /// # Errors
    /// If it does not compile.
    #[cfg(not(target_family = "wasm"))]
    fn prepare(&mut self, choice: &Choice) -> Result<()>;

    /// Runs `choice` once on a destination full of NaN and compares the outcome with the expected
    /// one.
    ///
    /// # Errors
    /// If it does not run.
    #[cfg(not(target_family = "wasm"))]
    fn check(&mut self, choice: &Choice) -> Result<Check>;

    /// Runs a choice that passed [`Bench::check`] in the way of `round`, and compares each output with the one that passed,
    /// to the bit.
    ///
    /// # Errors
    /// If it does not run.
    #[cfg(not(target_family = "wasm"))]
    fn repeat(&mut self, choice: &Choice, round: &Round) -> Result<Repeated>;

    /// What a round of [`Bench::repeat`] of the choice that was checked last is likely to take, beside the runs and pauses.
    fn repeat_cost(&self) -> Duration {
        Duration::ZERO
    }

    /// Device time of `repeats` runs back to back, together.
    ///
    /// # Errors
    /// If it does not run.
    #[cfg(not(target_family = "wasm"))]
    fn sample(&mut self, choice: &Choice, repeats: u32) -> Result<Duration>;

    /// Whether [`Bench::together`] takes turns within one submission. Then a candidate is timed
    /// beside the anchor, and whatever the clock does is in both times.
    fn interleaves(&self) -> bool {
        false
    }

    /// Device times of one run of each of `choices`, in turns: for each choice one time per round,
    /// the average over as many runs as are asked for with it. Nothing that comes before the first
    /// round counts.
    ///
    /// # Errors
    /// If one of them does not run; the error does not say which.
    #[cfg(not(target_family = "wasm"))]
    fn together(&mut self, choices: &[(Choice, u32)], rounds: usize) -> Result<Vec<Vec<Duration>>> {
        let mut times = vec![Vec::with_capacity(rounds); choices.len()];
        for _ in 0..rounds {
            for ((choice, runs), times) in choices.iter().zip(&mut times) {
                let runs = (*runs).max(1);
                times.push(self.sample(choice, runs)? / runs);
            }
        }
        Ok(times)
    }

    /// Keeps the device busy with `choice` for a moment, if it may have lowered its clock; whether
    /// it is to be called again before anything is timed.
    ///
    /// # Errors
    /// If `choice` does not run.
    #[cfg(not(target_family = "wasm"))]
    fn warm_up(&mut self, _choice: &Choice) -> Result<bool> {
        Ok(false)
    }

    /// Compiles `choice`, awaited.
    ///
    /// # Errors
    /// If it does not compile.
    #[cfg(not(target_family = "wasm"))]
    fn prepare_async<'a>(&'a mut self, choice: &'a Choice) -> Local<'a, Result<()>> {
        Box::pin(ready(self.prepare(choice)))
    }

    /// Compiles `choice`, awaited.
    ///
    /// # Errors
    /// If it does not compile.
    #[cfg(target_family = "wasm")]
    fn prepare_async<'a>(&'a mut self, choice: &'a Choice) -> Local<'a, Result<()>>;

    /// Compares what `choice` computes with what is expected, awaited.
    ///
    /// # Errors
    /// If it does not run.
    #[cfg(not(target_family = "wasm"))]
    fn check_async<'a>(&'a mut self, choice: &'a Choice) -> Local<'a, Result<Check>> {
        Box::pin(ready(self.check(choice)))
    }

    /// Compares what `choice` computes with what is expected, awaited.
    ///
    /// # Errors
    /// If it does not run.
    #[cfg(target_family = "wasm")]
    fn check_async<'a>(&'a mut self, choice: &'a Choice) -> Local<'a, Result<Check>>;

    /// [`Bench::repeat`], awaited.
    ///
    /// # Errors
    /// If it does not run.
    #[cfg(not(target_family = "wasm"))]
    fn repeat_async<'a>(&'a mut self, choice: &'a Choice, round: &'a Round) -> Local<'a, Result<Repeated>> {
        Box::pin(ready(self.repeat(choice, round)))
    }

    /// [`Bench::repeat`], awaited. A browser gives no pause.
    ///
    /// # Errors
    /// If it does not run.
    #[cfg(target_family = "wasm")]
    fn repeat_async<'a>(&'a mut self, choice: &'a Choice, round: &'a Round) -> Local<'a, Result<Repeated>>;

    /// Device time of `repeats` runs back to back, together, awaited.
    ///
    /// # Errors
    /// If it does not run.
    #[cfg(not(target_family = "wasm"))]
    fn sample_async<'a>(&'a mut self, choice: &'a Choice, repeats: u32) -> Local<'a, Result<Duration>> {
        Box::pin(ready(self.sample(choice, repeats)))
    }

    /// Device time of `repeats` runs back to back, together, awaited.
    ///
    /// # Errors
    /// If it does not run.
    #[cfg(target_family = "wasm")]
    fn sample_async<'a>(&'a mut self, choice: &'a Choice, repeats: u32) -> Local<'a, Result<Duration>>;

    /// Device times of one run of each of `choices`, in turns, awaited.
    ///
    /// # Errors
    /// If one of them does not run; the error does not say which.
    #[cfg(not(target_family = "wasm"))]
    fn together_async<'a>(
        &'a mut self,
        choices: &'a [(Choice, u32)],
        rounds: usize,
    ) -> Local<'a, Result<Vec<Vec<Duration>>>> {
        Box::pin(ready(self.together(choices, rounds)))
    }

    /// Device times of one run of each of `choices`, in turns, awaited.
    ///
    /// # Errors
    /// If one of them does not run; the error does not say which.
    #[cfg(target_family = "wasm")]
    fn together_async<'a>(
        &'a mut self,
        choices: &'a [(Choice, u32)],
        rounds: usize,
    ) -> Local<'a, Result<Vec<Vec<Duration>>>>;

    /// Keeps the device busy with `choice` for a moment, awaited.
    ///
    /// # Errors
    /// If `choice` does not run.
    #[cfg(not(target_family = "wasm"))]
    fn warm_up_async<'a>(&'a mut self, choice: &'a Choice) -> Local<'a, Result<bool>> {
        Box::pin(ready(self.warm_up(choice)))
    }

    /// Keeps the device busy with `choice` for a moment, awaited.
    ///
    /// # Errors
    /// If `choice` does not run.
    #[cfg(target_family = "wasm")]
    fn warm_up_async<'a>(&'a mut self, choice: &'a Choice) -> Local<'a, Result<bool>>;

    /// How many candidates it is worth to name ahead of need; 0 if [`Bench::ahead`] does nothing.
    fn width(&self) -> usize {
        0
    }

    /// These will be prepared soon, in this order: they may be compiled meanwhile.
    fn ahead(&mut self, _choices: &[Choice]) {}

    /// Runs inside one sample of a kernel that takes about `estimate`, so that the clock's
    /// resolution does not matter.
    fn repeats(&self, estimate: Duration) -> u32;

    /// The time that budgets are counted in, from any fixed moment on.
    fn now(&self) -> Duration;

    /// `choice` will not be sampled again.
    fn release(&mut self, _choice: &Choice) {}

    /// Tuning is over: what only served it may go.
    ///
    /// # Errors
    /// If the driver fails.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}
