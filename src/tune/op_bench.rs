//! A [`Bench`] on a real device.
//!
//! **Caches.** Back-to-back runs of one kernel on one set of buffers would find their inputs in the
//! last-level cache, which in a network they do not: between two runs of a node its weights were
//! evicted by all others. So the operands exist several times and the runs of a sample take turns,
//! until the sets together exceed a cache of 64 MiB (8 MiB on mobile GPUs) or there are 16. An
//! operand set that is that large by itself exists once. Sixteen sets of a tiny problem still fit a
//! cache; there every candidate profits alike.

#[cfg(not(target_family = "wasm"))]
mod chain;
mod check;
mod images;
mod measure;
mod operands;
mod repeat;
mod sums;
mod turns;

#[cfg(not(target_family = "wasm"))]
use super::ahead::Ahead;
use super::bench::{Bench, Check};
use super::clock::{Clock, ClockKind};
use super::heat::Heat;
use super::quirks::Policy;
#[cfg(not(target_family = "wasm"))]
use super::quirks::compilers;
use super::repeat::{Repeated, Round};
use super::work_group::{WorkGroup, table, untuned_in};
use crate::clock::Instant;
use crate::device::{Device, Dispatch, Pipeline, Recording, Resource, Wait};
use crate::emit::{Element, Operand};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::limits::Limits;
use crate::ops::{Choice, Launch, Op, OperandInfo, Purpose};
#[cfg(target_family = "wasm")]
use crate::task::Local;
#[cfg(not(target_family = "wasm"))]
use crate::task::block_on;
use operands::{Inputs, Key};
use repeat::Repeating;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// The longest that one sample of a short kernel is made to last.
const MAX_SAMPLE_TIME: Duration = Duration::from_millis(5);
/// Operand sets at most.
const MAX_OPERAND_SETS: usize = 16;

/// One problem on one device.
#[derive(Debug)]
pub struct OpBench {
    device: Arc<dyn Device>,
    /// The device's, with what was measured of it.
    limits: Limits,
    op: Arc<dyn Op>,
    /// The layout of the feature maps of every candidate.
    layout: Layout,
    inputs: Inputs,
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
    #[cfg(not(target_family = "wasm"))]
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
    /// How long the last check's run took, with what was uploaded and downloaded.
    round_trip: Duration,
    repeating: Repeating,
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
    #[cfg(not(target_family = "wasm"))]
    chains: Option<(usize, [Recording; 2])>,
}

impl OpBench {
    /// Lays out nothing yet, but computes the expected result on the CPU.
    ///
    /// # Errors
    /// If its kernels are not measured ([`Op::obstacle`]).
    pub fn new(device: Arc<dyn Device>, op: Arc<dyn Op>) -> Result<Self> {
        match op.obstacle(Purpose::Tuning) {
            Some(why) => Err(Error::unsupported(format!("tuning {}", op.name()), why)),
            None => Self::checking(device, op),
        }
    }

    /// [`OpBench::new`] for any op: its kernels are compared with what is expected of them, and not with each other.
    ///
    /// # Errors
    /// If the expected result cannot be computed.
    pub fn checking(device: Arc<dyn Device>, op: Arc<dyn Op>) -> Result<Self> {
        let info = device.info();
        let limits = info.limits.clone();
        let policy = Policy::of(limits.faults);
        let inputs = Inputs::new(&*op, 0)?;
        let values: usize = op.operands().iter().map(OperandInfo::elements).sum();
        let bytes = (values * op.precision().storage().bytes()).max(1);
        let cache: usize = if info.limits.family.is_mobile() { 8 << 20 } else { 64 << 20 };
        let clock = Clock::of(&*device, policy);
        #[cfg(not(target_family = "wasm"))]
        #[expect(clippy::disallowed_methods, reason = "a browser does not compile ahead")]
        let width = compilers(info, std::thread::available_parallelism().map_or(1, usize::from));
        #[cfg(target_family = "wasm")]
        let width = 0;
        Ok(OpBench {
            device,
            limits,
            inputs,
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
            #[cfg(not(target_family = "wasm"))]
            ahead: Ahead::default(),
            width,
            heat: Heat::default(),
            wanted_heat: Duration::ZERO,
            warming: false,
            too_many: HashMap::new(),
            turn: 0,
            round_trip: Duration::ZERO,
            repeating: Repeating::default(),
            start: Instant::now(),
        })
    }

    /// Sets the device's limits, as a record knows them ([`Database::known_limits`](crate::tune::db::Database)).
    #[must_use]
    pub(crate) fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the layout of the problem's feature maps. Each layout has candidates, a default and a
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

    /// Leaves the device alone, where the thread may wait: a browser's may not.
    fn rest(wait: Wait, pause: Duration) {
        #[cfg(not(target_family = "wasm"))]
        if wait == Wait::Blocks && !pause.is_zero() {
            #[expect(clippy::disallowed_methods, reason = "a browser does not rest")]
            std::thread::sleep(pause);
        }
        #[cfg(target_family = "wasm")]
        let _ = (wait, pause);
    }

    fn launch(&self, choice: &Choice) -> Result<Launch> {
        self.op.plan(choice, self.limits())
    }

    fn prepared(&self, choice: &Choice) -> Result<&Prepared> {
        let prepared = self.prepared.get(choice);
        prepared.ok_or_else(|| Error::Internal(format!("{choice} runs before it is compiled")))
    }

    /// `runs` dispatches that take turns among the sets, beginning with set `first`.
    fn dispatches(&self, prepared: &Prepared, first: usize, runs: usize) -> Result<Vec<Dispatch>> {
        self.runs(prepared, &prepared.arguments, first, runs)
    }

    /// `runs` dispatches with these arguments, whose sets of resources take turns, beginning with set `first`.
    fn runs(
        &self,
        prepared: &Prepared,
        arguments: &[Key],
        first: usize,
        runs: usize,
    ) -> Result<Vec<Dispatch>> {
        let dispatch = |run: usize| -> Result<Dispatch> {
            let resources = arguments.iter().map(|key| {
                let sets = self.resources.get(key);
                let set = sets.and_then(|sets| sets.get(run % sets.len().max(1)));
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
}

impl Bench for OpBench {
    fn default_choice(&self) -> Result<Choice> {
        untuned_in(&*self.op, WorkGroup::Table, self.layout, self.limits())
    }

    fn space(&self) -> Vec<(&'static str, [u32; 3])> {
        let kernels = self.op.kernels();
        let space = kernels.space(self.limits()).into_iter();
        let space = space.filter(|(kernel, _)| kernel.serves(self.layout));
        space.map(|(kernel, tile)| (kernel.name(), tile)).collect()
    }

    fn layout(&self) -> Layout {
        self.layout
    }

    fn grid(&self, variant: &'static str, tile: [u32; 3]) -> [u32; 3] {
        self.op.kernel(variant).map_or([0; 3], |kernel| kernel.grid(tile))
    }

    fn table(&self, variant: &'static str, tile: [u32; 3]) -> [u32; 3] {
        self.op.kernel(variant).map_or([1; 3], |kernel| table(&*kernel, tile, self.limits()))
    }

    fn work_groups(&self, variant: &'static str, tile: [u32; 3]) -> Vec<[u32; 3]> {
        self.op.kernel(variant).map_or(Vec::new(), |kernel| kernel.work_groups(tile))
    }

    fn limits(&self) -> &Limits {
        &self.limits
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

    #[cfg(not(target_family = "wasm"))]
    fn prepare(&mut self, choice: &Choice) -> Result<()> {
        block_on(self.made(Wait::Blocks, choice))
    }

    #[cfg(target_family = "wasm")]
    fn prepare_async<'a>(&'a mut self, choice: &'a Choice) -> Local<'a, Result<()>> {
        Box::pin(self.made(Wait::Awaits, choice))
    }

    #[cfg(not(target_family = "wasm"))]
    fn check(&mut self, choice: &Choice) -> Result<Check> {
        block_on(self.checked(Wait::Blocks, choice))
    }

    #[cfg(target_family = "wasm")]
    fn check_async<'a>(&'a mut self, choice: &'a Choice) -> Local<'a, Result<Check>> {
        Box::pin(self.checked(Wait::Awaits, choice))
    }

    #[cfg(not(target_family = "wasm"))]
    fn repeat(&mut self, choice: &Choice, round: &Round) -> Result<Repeated> {
        block_on(self.repeated(Wait::Blocks, choice, round))
    }

    #[cfg(target_family = "wasm")]
    fn repeat_async<'a>(&'a mut self, choice: &'a Choice, round: &'a Round) -> Local<'a, Result<Repeated>> {
        Box::pin(self.repeated(Wait::Awaits, choice, round))
    }

    fn repeat_cost(&self) -> Duration {
        self.round_trip
    }

    #[cfg(not(target_family = "wasm"))]
    fn sample(&mut self, choice: &Choice, repeats: u32) -> Result<Duration> {
        block_on(self.sampled(Wait::Blocks, choice, repeats))
    }

    #[cfg(target_family = "wasm")]
    fn sample_async<'a>(&'a mut self, choice: &'a Choice, repeats: u32) -> Local<'a, Result<Duration>> {
        Box::pin(self.sampled(Wait::Awaits, choice, repeats))
    }

    fn interleaves(&self) -> bool {
        !matches!(self.clock.kind(), ClockKind::Host | ClockKind::GpuBatches)
            && self.policy == Policy::default()
    }

    #[cfg(not(target_family = "wasm"))]
    fn together(&mut self, choices: &[(Choice, u32)], rounds: usize) -> Result<Vec<Vec<Duration>>> {
        block_on(self.in_turns(Wait::Blocks, choices, rounds))
    }

    #[cfg(target_family = "wasm")]
    fn together_async<'a>(
        &'a mut self,
        choices: &'a [(Choice, u32)],
        rounds: usize,
    ) -> Local<'a, Result<Vec<Vec<Duration>>>> {
        Box::pin(self.in_turns(Wait::Awaits, choices, rounds))
    }

    #[cfg(not(target_family = "wasm"))]
    fn warm_up(&mut self, choice: &Choice) -> Result<bool> {
        block_on(self.warmed(Wait::Blocks, choice))
    }

    #[cfg(target_family = "wasm")]
    fn warm_up_async<'a>(&'a mut self, choice: &'a Choice) -> Local<'a, Result<bool>> {
        Box::pin(self.warmed(Wait::Awaits, choice))
    }

    fn width(&self) -> usize {
        self.width
    }

    #[cfg(not(target_family = "wasm"))]
    fn ahead(&mut self, choices: &[Choice]) {
        for choice in choices {
            if self.ahead.len() >= self.width {
                break;
            }
            if self.ahead.has(choice) || self.prepared.contains_key(choice) {
                continue;
            }
            // What cannot be planned or rendered says so when it is prepared.
            let Ok(launch) = self.launch(choice) else { continue };
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
        #[cfg(not(target_family = "wasm"))]
        self.ahead.drain();
        self.busy = None;
        self.prepared.clear();
        self.packed.clear();
        self.resources.clear();
        self.repeating = Repeating::default();
        #[cfg(not(target_family = "wasm"))]
        self.device.wait()?;
        Ok(())
    }
}
