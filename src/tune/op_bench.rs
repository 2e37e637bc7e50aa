//! A [`Bench`] on a real device.
//!
//! **Caches.** Back-to-back runs of one kernel on one set of buffers would find their inputs in the
//! last-level cache, which in a network they do not: between two runs of a node its weights were
//! evicted by all others. So the operands exist several times and the runs of a sample take turns,
//! until the sets together exceed a cache of 64 MiB (8 MiB on mobile GPUs) or there are 16. An
//! operand set that is that large by itself exists once. Sixteen sets of a tiny problem still fit a
//! cache; there every candidate profits alike.

mod chain;
mod check;
mod images;
mod operands;
mod turns;

use super::ahead::Ahead;
use super::bench::{Bench, Check};
use super::clock::{Clock, ClockKind};
use super::heat::Heat;
use super::problem::{Expectation, operands};
use super::quirks::{Policy, compilers};
use super::work_group::{WorkGroup, table, untuned_in};
use crate::clock::Instant;
use crate::device::{Device, Dispatch, Pipeline, Recording, Resource, family};
use crate::emit::{Element, Operand};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::limits::{Family, Limits};
use crate::ops::{Choice, Launch, Op, OperandInfo, Operands};
use operands::Key;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// The longest that one sample of a short kernel is made to last.
const MAX_SAMPLE_TIME: Duration = Duration::from_millis(5);
/// Operand sets at most.
const MAX_OPERAND_SETS: usize = 16;
/// How long one stretch of keeping the device busy takes.
const BUSY_STRETCH: Duration = Duration::from_millis(2);
/// A kernel this short calibrates the clock.
const MAX_CALIBRATION_TIME: Duration = Duration::from_micros(500);

/// One problem on one device.
#[derive(Debug)]
pub struct OpBench {
    device: Arc<dyn Device>,
    op: Arc<dyn Op>,
    /// Of the feature maps of every candidate.
    layout: Layout,
    operands: Operands<'static>,
    expected: Expectation,
    /// Of kernels that sum other terms than the op's own, by variant.
    variants: HashMap<&'static str, Option<Expectation>>,
    clock: Clock,
    calibrated: bool,
    policy: Policy,
    sets: usize,
    resources: HashMap<Key, Vec<Resource>>,
    /// The constants' keys, by what decides their layout.
    packed: HashMap<(&'static str, [u32; 3], Operand, Element), Key>,
    prepared: HashMap<Choice, Prepared>,
    /// What keeps the device busy.
    busy: Option<Recording>,
    ahead: Ahead,
    /// Kernels to compile ahead at most.
    width: usize,
    heat: Heat,
    /// The heat to reach before anything is timed.
    wanted_heat: Duration,
    /// Whether it is being warmed up.
    warming: bool,
    /// The fewest invocations that a (variant, tile) was refused with once it was compiled.
    too_many: HashMap<(&'static str, [u32; 3]), u32>,
    turn: usize,
    start: Instant,
}

#[derive(Debug)]
struct Prepared {
    pipeline: Pipeline,
    launch: Launch,
    arguments: Vec<Key>,
    /// The last recording and its number of runs.
    recording: Option<(u32, Recording)>,
    /// The last chains, and the number of runs of the short one.
    chains: Option<(usize, [Recording; 2])>,
}

impl OpBench {
    /// Lays out nothing yet, but computes the expected result on the CPU.
    ///
    /// # Errors
    /// If its kernels are not measured ([`Op::untunable`]).
    pub fn new(device: Arc<dyn Device>, op: Arc<dyn Op>) -> Result<Self> {
        if let Some(why) = op.untunable() {
            return Err(Error::unsupported(format!("tuning {}", op.name()), why));
        }
        let info = device.info();
        let policy = Policy::of(&family::facts(info.limits.family, &info.name));
        let operands = operands(&*op);
        let expected = Expectation::new(&*op, &operands)?;
        let values: usize = op.operands().iter().map(OperandInfo::elements).sum();
        let bytes = (values * op.precision().storage().bytes()).max(1);
        let cache: usize = match info.limits.family {
            Family::Adreno(_) | Family::Mali(_) | Family::PowerVr => 8 << 20,
            _ => 64 << 20,
        };
        let clock = Clock::of(&*device, policy);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let width = compilers(info, cores);
        Ok(OpBench {
            device,
            operands,
            expected,
            variants: HashMap::new(),
            clock,
            calibrated: false,
            policy,
            sets: cache.div_ceil(bytes).clamp(1, MAX_OPERAND_SETS),
            op,
            layout: Layout::C4,
            resources: HashMap::new(),
            packed: HashMap::new(),
            prepared: HashMap::new(),
            busy: None,
            ahead: Ahead::default(),
            width,
            heat: Heat::default(),
            wanted_heat: Duration::ZERO,
            warming: false,
            too_many: HashMap::new(),
            turn: 0,
            start: Instant::now(),
        })
    }

    /// The same problem with feature maps in `layout`. Each layout has candidates, a default and a
    /// verdict of its own: what a change of layout costs depends on the network around the node.
    #[must_use]
    pub fn in_layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// The clock, calibrated once the first candidate was sampled.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    fn prepared(&self, choice: &Choice) -> Result<&Prepared> {
        let prepared = self.prepared.get(choice);
        prepared.ok_or_else(|| Error::Internal(format!("{choice} runs before it is compiled")))
    }

    /// `runs` dispatches that take turns among the sets, beginning with set `first`.
    fn dispatches(&self, prepared: &Prepared, first: usize, runs: usize) -> Result<Vec<Dispatch>> {
        let dispatch = |run: usize| -> Result<Dispatch> {
            let resources = prepared.arguments.iter().map(|key| {
                let set = self.resources.get(key).and_then(|sets| sets.get(run % self.sets));
                set.cloned().ok_or_else(|| Error::Internal(format!("no {}", key.operand.name())))
            });
            Ok(Dispatch {
                pipeline: prepared.pipeline.clone(),
                resources: resources.collect::<Result<_>>()?,
                params: prepared.launch.params.clone(),
                groups: prepared.launch.groups(),
            })
        };
        (first..first + runs).map(dispatch).collect()
    }

    fn record(&self, prepared: &Prepared, first: usize, runs: u32) -> Result<Recording> {
        self.device.record(&self.dispatches(prepared, first, runs as usize)?)
    }

    /// Finds the clock's resolution with a kernel that was found correct.
    fn calibrate(&mut self, choice: &Choice) -> Result<()> {
        self.calibrated = true;
        let prepared = self.prepared(choice)?;
        let one = self.record(prepared, 0, 1)?;
        let begin = Instant::now();
        self.device.submit(&one)?;
        self.device.wait()?;
        // A long kernel needs no fine clock, and 32 of it would take their time.
        if begin.elapsed() > 20 * MAX_CALIBRATION_TIME {
            return Ok(());
        }
        let many = self.record(prepared, 0, 32)?;
        self.clock.calibrate(&*self.device, &many, &one)
    }
}

impl Bench for OpBench {
    fn default_choice(&self) -> Result<Choice> {
        untuned_in(&*self.op, WorkGroup::Table, self.layout, self.limits())
    }

    fn space(&self) -> Vec<(&'static str, [u32; 3])> {
        let op = &self.op;
        let mut space = op.space(self.limits());
        space.retain(|(variant, _)| op.layouts(variant).contains(&self.layout));
        space
    }

    fn layout(&self) -> Layout {
        self.layout
    }

    fn grid(&self, variant: &'static str, tile: [u32; 3]) -> [u32; 3] {
        self.op.grid(variant, tile)
    }

    fn table(&self, variant: &'static str, tile: [u32; 3]) -> [u32; 3] {
        table(&*self.op, variant, tile, self.limits())
    }

    fn work_groups(&self, variant: &'static str, tile: [u32; 3]) -> Vec<[u32; 3]> {
        self.op.work_groups(variant, tile)
    }

    fn limits(&self) -> &Limits {
        &self.device.info().limits
    }

    fn fits(&self, choice: &Choice) -> Result<()> {
        self.op.fits(choice, self.limits())?;
        // Registers do not depend on the work-group: what was too much for one is for a larger one.
        let invocations = choice.work_group.iter().product::<u32>();
        match self.too_many.get(&(choice.variant, choice.tile)) {
            Some(&refused) if invocations >= refused => Err(Error::Reject {
                kernel: format!("{} {choice}", self.op.name()),
                reason: format!(
                    "its work-group has {invocations} invocations, as compiled it cannot have {refused}"
                ),
            }),
            _ => Ok(()),
        }
    }

    fn prepare(&mut self, choice: &Choice) -> Result<()> {
        let launch = self.op.plan(choice, self.limits())?;
        let pipeline = self.compile(choice, &launch).inspect_err(|error| {
            if let Error::Reject { .. } = error {
                let invocations = choice.work_group.iter().product::<u32>();
                let refused = self.too_many.entry((choice.variant, choice.tile)).or_insert(invocations);
                *refused = invocations.min(*refused);
            }
        })?;
        let bindings = &launch.spec.interface.bindings;
        let arguments =
            bindings.iter().map(|binding| self.resources(choice, binding)).collect::<Result<_>>()?;
        self.prepared
            .insert(*choice, Prepared { pipeline, launch, arguments, recording: None, chains: None });
        Ok(())
    }

    fn check(&mut self, choice: &Choice) -> Result<Check> {
        self.checked(choice)
    }

    fn sample(&mut self, choice: &Choice, repeats: u32) -> Result<Duration> {
        if !self.calibrated {
            self.calibrate(choice)?;
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
        let time = self.clock.measure(&*self.device, &recording, runs)?;
        self.heat.worked(from, Instant::now(), time);
        if let Some(prepared) = self.prepared.get_mut(choice) {
            prepared.recording = Some((runs, recording));
        }
        Ok(time / runs * repeats.max(1))
    }

    fn interleaves(&self) -> bool {
        self.clock.kind() != ClockKind::Host && self.policy == Policy::default()
    }

    fn together(&mut self, choices: &[(Choice, u32)], rounds: usize) -> Result<Vec<Vec<Duration>>> {
        let (recording, owners) = self.record_turns(choices, rounds)?;
        let from = Instant::now();
        let times = self.device.time(&recording)?;
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

    fn warm_up(&mut self, choice: &Choice) -> Result<bool> {
        if self.wanted_heat.is_zero() {
            return Ok(false);
        }
        if self.busy.is_none() {
            let prepared = self.prepared(choice)?;
            let one = self.record(prepared, 0, 1)?;
            let from = Instant::now();
            self.device.submit(&one)?;
            self.device.wait()?;
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
        self.device.wait()?;
        let to = Instant::now();
        self.heat.worked(from, to, to - from);
        self.warming = self.heat.at(to) < self.wanted_heat;
        Ok(self.warming)
    }

    fn width(&self) -> usize {
        self.width
    }

    fn ahead(&mut self, choices: &[Choice]) {
        for choice in choices {
            if self.ahead.len() >= self.width {
                break;
            }
            if self.ahead.has(choice) || self.prepared.contains_key(choice) {
                continue;
            }
            // What cannot be planned or rendered says so when it is prepared.
            let Ok(launch) = self.op.plan(choice, self.limits()) else { continue };
            let Ok(source) = launch.spec.render_written(self.limits().dialect) else { continue };
            if self.ahead.start(&self.device, *choice, source).is_err() {
                break;
            }
        }
    }

    fn repeats(&self, estimate: Duration) -> u32 {
        self.clock.repeats(estimate, MAX_SAMPLE_TIME)
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn release(&mut self, choice: &Choice) {
        self.prepared.remove(choice);
    }

    /// Drops every trial kernel and its recordings, as Mali's drivers ask for
    /// ([`Policy::recreate`]): a session makes kernels of its own.
    fn finish(&mut self) -> Result<()> {
        self.ahead.drain();
        self.busy = None;
        self.prepared.clear();
        self.packed.clear();
        self.resources.clear();
        self.device.wait()
    }
}
