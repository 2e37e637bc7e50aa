//! A device that is made of numbers: times with noise, drift and outliers, and planted faults.

use crate::clock::Instant;
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::ops::Choice;
use crate::random::Random;
use crate::tune::bench::{Bench, Check};
use crate::tune::heat::{HOT, Heat};
use crate::tune::repeat::{Repeated, Round};
use std::collections::HashMap;
use std::time::Duration;

/// A planted fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    Unfit,
    NoCompile,
    SlowCompile(Duration),
    Wrong,
    /// In so many of a hundred runs.
    WrongSometimes(u32),
    /// In the first run after the device was left alone.
    WrongAfterIdle,
    /// Behind a run of another kernel.
    WrongAfterOthers,
    /// Always, for other inputs than the first.
    WrongForOthers,
    NoRun,
    /// It runs until this sample, counted from 1, and fails from then on.
    NoRunAfter(u32),
    Slow(Duration),
    /// It does not come to an end, and nothing behind it does.
    Hangs,
}

pub(super) struct Fake {
    pub(super) limits: Limits,
    pub(super) default: Choice,
    pub(super) space: Vec<(&'static str, [u32; 3])>,
    pub(super) grid: [u32; 3],
    /// Seconds of one run.
    pub(super) cost: Box<dyn Fn(&Choice) -> f64>,
    pub(super) faults: HashMap<Choice, Fault>,
    /// Standard deviation of `ln` of a sample.
    pub(super) sigma: f64,
    pub(super) outliers: f64,
    /// The factor that times have gained after `drift_over`.
    pub(super) drift: f64,
    pub(super) drift_over: Duration,
    pub(super) compile: Duration,
    /// Kernels that compile side by side, and when those under way are done.
    pub(super) width: usize,
    pub(super) compiling: HashMap<Choice, Duration>,
    /// Whether candidates take turns within a submission.
    pub(super) interleaves: bool,
    /// How many times longer a run takes while the clock is low, as it is after idling.
    pub(super) cold: Option<fn(&Choice) -> f64>,
    pub(super) heat: Heat,
    /// Whether it warms up when asked to.
    pub(super) warms: bool,
    epoch: Instant,
    pub(super) random: Random,
    pub(super) clock: Duration,
    pub(super) sampled: Vec<Choice>,
    pub(super) prepared: Vec<Choice>,
    pub(super) repeated: Vec<Choice>,
    pub(super) longest_action: Duration,
    pub(super) finished: u32,
    hung: bool,
}

pub(super) fn choice(x: u32, y: u32, z: u32) -> Choice {
    Choice::new("direct", [1, 1, 1], [x, y, z])
}

impl Fake {
    /// Everything takes a millisecond, give or take 3 %, with 3 % of outliers.
    pub(super) fn new(seed: u64) -> Self {
        Fake {
            limits: Limits::webgpu(),
            default: choice(8, 8, 1),
            space: vec![("direct", [1, 1, 1]), ("direct", [2, 1, 1])],
            grid: [256, 64, 4],
            cost: Box::new(|_| 1e-3),
            faults: HashMap::new(),
            sigma: 0.03,
            outliers: 0.03,
            drift: 1.0,
            drift_over: Duration::from_secs(1),
            compile: Duration::from_millis(5),
            width: 0,
            compiling: HashMap::new(),
            interleaves: false,
            cold: None,
            heat: Heat::default(),
            warms: true,
            epoch: Instant::now(),
            random: Random::new(seed.wrapping_mul(7919) + 1),
            clock: Duration::ZERO,
            sampled: Vec::new(),
            prepared: Vec::new(),
            repeated: Vec::new(),
            longest_action: Duration::ZERO,
            finished: 0,
            hung: false,
        }
    }

    pub(super) fn normal(&mut self) -> f64 {
        let (u, v) = (self.random.unit().max(1e-12), self.random.unit());
        (-2.0 * u.ln()).sqrt() * (2.0 * std::f64::consts::PI * v).cos()
    }

    fn pass(&mut self, time: Duration) {
        self.clock += time;
        self.longest_action = self.longest_action.max(time);
    }

    fn worked(&mut self, busy: Duration) {
        self.pass(busy);
        let to = self.epoch + self.clock;
        self.heat.worked(to - busy, to, busy);
    }

    /// How much longer a run takes at the present clock.
    fn clock_factor(&self, choice: &Choice) -> f64 {
        let warm = self.heat.at(self.epoch + self.clock) >= HOT.mul_f64(0.75);
        self.cold.filter(|_| !warm).map_or(1.0, |cold| cold(choice))
    }

    /// Waits for a run of `choice`, and no longer than the limit.
    fn end(&mut self, choice: &Choice) -> Result<()> {
        self.hung |= self.faults.get(choice) == Some(&Fault::Hangs);
        match self.hung {
            true => Err(Error::TimedOut { api: "fake", limit: Duration::from_secs(2) }),
            false => Ok(()),
        }
    }

    /// One run or several, without the cost of submitting them.
    fn launch(&mut self, choice: &Choice, repeats: u32) -> Result<Duration> {
        assert_ne!(self.faults.get(choice), Some(&Fault::Wrong), "a wrong candidate was timed");
        self.sampled.push(*choice);
        self.end(choice)?;
        let runs = |choice: &Choice| self.sampled.iter().filter(|sampled| *sampled == choice).count();
        let mut seconds = (self.cost)(choice) * f64::from(repeats) * self.clock_factor(choice);
        match self.faults.get(choice) {
            Some(Fault::NoRun) => return Err(Self::failure("submit")),
            Some(Fault::NoRunAfter(most)) if runs(choice) > *most as usize => {
                return Err(Self::failure("submit"));
            }
            Some(Fault::Slow(time)) => seconds = time.as_secs_f64() * f64::from(repeats),
            _ => {}
        }
        let noise = self.sigma * self.normal();
        let outlier = if self.random.unit() < self.outliers { 1.3 + 4.0 * self.random.unit() } else { 1.0 };
        let progress = (self.clock.as_secs_f64() / self.drift_over.as_secs_f64()).min(1.0);
        seconds *= noise.exp() * outlier * self.drift.powf(progress);
        let time = Duration::from_secs_f64(seconds);
        self.worked(time);
        Ok(time)
    }

    fn failure(call: &'static str) -> Error {
        Error::Driver { api: "fake", call, message: "planted".to_owned() }
    }
}

impl Bench for Fake {
    fn default_choice(&self) -> Result<Choice> {
        Ok(self.default)
    }

    fn space(&self) -> Vec<(&'static str, [u32; 3])> {
        self.space.clone()
    }

    fn grid(&self, _variant: &'static str, _tile: [u32; 3]) -> [u32; 3] {
        self.grid
    }

    fn table(&self, _variant: &'static str, _tile: [u32; 3]) -> [u32; 3] {
        self.default.work_group
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn fits(&self, choice: &Choice) -> Result<()> {
        match self.faults.get(choice) {
            Some(Fault::Unfit) => {
                Err(Error::Reject { kernel: choice.to_string(), reason: "planted".to_owned() })
            }
            _ => Ok(()),
        }
    }

    fn prepare(&mut self, choice: &Choice) -> Result<()> {
        let own = match self.faults.get(choice) {
            Some(Fault::SlowCompile(time)) => *time,
            _ => self.compile,
        };
        let done = self.compiling.remove(choice).unwrap_or(self.clock + own);
        self.pass(done.saturating_sub(self.clock));
        self.prepared.push(*choice);
        match self.faults.get(choice) {
            Some(Fault::NoCompile) => Err(Self::failure("compile")),
            _ => Ok(()),
        }
    }

    fn check(&mut self, choice: &Choice) -> Result<Check> {
        self.pass(Duration::from_millis(1));
        self.end(choice)?;
        if let Some(Fault::Slow(time)) = self.faults.get(choice) {
            self.pass(*time);
        }
        match self.faults.get(choice) {
            Some(Fault::Wrong) => Ok(Check::Wrong { detail: "element 3 is 5, wanted 4".to_owned() }),
            Some(Fault::WrongSometimes(percent)) if self.random.unit() < f64::from(*percent) / 100.0 => {
                Ok(Check::Wrong { detail: "element 3 is 5, wanted 4".to_owned() })
            }
            _ => Ok(Check::Correct),
        }
    }

    fn repeat(&mut self, choice: &Choice, round: &Round) -> Result<Repeated> {
        self.end(choice)?;
        self.repeated.push(*choice);
        let mut found = Repeated::default();
        for group in 0..round.groups {
            for run in 0..round.runs * (group + 1) / round.groups - round.runs * group / round.groups {
                let differs = match self.faults.get(choice) {
                    Some(Fault::WrongSometimes(percent)) => self.random.unit() < f64::from(*percent) / 100.0,
                    Some(Fault::WrongAfterIdle) => run == 0 && !round.pause.is_zero(),
                    Some(Fault::WrongAfterOthers) => round.between,
                    _ => false,
                };
                if differs {
                    found.differed += 1;
                    found.detail.get_or_insert_with(|| "element 3 is 5, wanted 4".to_owned());
                }
            }
        }
        if round.other_inputs && self.faults.get(choice) == Some(&Fault::WrongForOthers) {
            found.wrong = Some("with other inputs: element 3 is 5, wanted 4".to_owned());
        }
        let runs = Duration::from_secs_f64((self.cost)(choice) * f64::from(round.runs));
        self.pass(runs + round.pause * round.groups + self.repeat_cost());
        Ok(found)
    }

    fn repeat_cost(&self) -> Duration {
        Duration::from_micros(200)
    }

    fn sample(&mut self, choice: &Choice, repeats: u32) -> Result<Duration> {
        let time = self.launch(choice, repeats)?;
        self.pass(Duration::from_micros(100));
        Ok(time)
    }

    fn interleaves(&self) -> bool {
        self.interleaves
    }

    fn together(&mut self, choices: &[(Choice, u32)], rounds: usize) -> Result<Vec<Vec<Duration>>> {
        let mut times = vec![Vec::new(); choices.len()];
        for _ in 0..rounds {
            for ((choice, runs), times) in choices.iter().zip(&mut times) {
                times.push(self.launch(choice, *runs)? / *runs);
            }
        }
        self.pass(Duration::from_micros(100));
        Ok(times)
    }

    fn warm_up(&mut self, _choice: &Choice) -> Result<bool> {
        if self.cold.is_none() || !self.warms {
            return Ok(false);
        }
        self.worked(Duration::from_millis(2));
        Ok(self.heat.at(self.epoch + self.clock) < HOT.mul_f64(0.95))
    }

    fn width(&self) -> usize {
        self.width
    }

    fn ahead(&mut self, choices: &[Choice]) {
        for choice in choices {
            if self.compiling.len() < self.width {
                self.compiling.entry(*choice).or_insert(self.clock + self.compile);
            }
        }
    }

    fn repeats(&self, estimate: Duration) -> u32 {
        (Duration::from_millis(1).as_secs_f64() / estimate.as_secs_f64().max(1e-9)).ceil().clamp(1.0, 64.0)
            as u32
    }

    fn now(&self) -> Duration {
        self.clock
    }

    fn finish(&mut self) -> Result<()> {
        self.finished += 1;
        Ok(())
    }
}
