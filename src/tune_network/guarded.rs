//! A bench that notes in the journal what it is about to run, and refuses what the record excludes.

use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::limits::Limits;
use crate::ops::{Choice, Op};
use crate::task::Local;
use crate::tune::db::{Database, Verdict};
use crate::tune::journal::{Journal, Phase, Trial};
use crate::tune::key::{DeviceKey, Key, ProblemKey, SourceHash};
use crate::tune::repeat::{Repeated, Round};
use crate::tune::{Bench, Check};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Keys of one problem's candidates.
#[derive(Debug)]
pub(super) struct Keys {
    device: DeviceKey,
    problem: ProblemKey,
    op: Arc<dyn Op>,
    limits: Limits,
    known: RefCell<HashMap<Choice, Key>>,
    /// One candidate at a time, so that the next crash has one cause: a [suspect] is on record.
    ///
    /// [suspect]: crate::tune::db::Verdict::Suspect
    alone: bool,
    /// What is being compiled ahead of need, written down.
    ahead: RefCell<HashMap<Choice, Trial>>,
}

impl Keys {
    pub(super) fn new(
        device: DeviceKey,
        problem: ProblemKey,
        op: Arc<dyn Op>,
        limits: Limits,
        database: &Database,
    ) -> Self {
        let alone = database.tried(&device, &problem).any(|row| row.verdict == Verdict::Suspect);
        Keys { device, problem, op, limits, known: RefCell::default(), alone, ahead: RefCell::default() }
    }

    /// The key of `choice`: rendered once, to hash the kernel's text.
    pub(super) fn of(&self, choice: &Choice) -> Key {
        let mut known = self.known.borrow_mut();
        let key = known.entry(*choice).or_insert_with(|| {
            let source = SourceHash::of_kernel(&*self.op, choice, &self.limits).ok();
            Key::new(&self.device, &self.problem, *choice, source)
        });
        key.clone()
    }
}

/// `bench`, with every candidate journalled before it is compiled or first run.
pub(super) struct Guarded<'b> {
    pub(super) bench: &'b mut dyn Bench,
    pub(super) keys: &'b Keys,
    pub(super) journal: Option<&'b Journal>,
    pub(super) database: &'b Mutex<Database>,
}

impl Guarded<'_> {
    /// Notes that `choice` is about to be compiled or run.
    fn begun(&self, phase: Phase, choice: &Choice) -> Result<Option<Trial>> {
        self.journal.map(|journal| journal.begin(phase, &self.keys.of(choice))).transpose()
    }

    fn compiling(&self, choice: &Choice) -> Result<Option<Trial>> {
        match self.keys.ahead.borrow_mut().remove(choice) {
            Some(trial) => Ok(Some(trial)),
            None => self.begun(Phase::Compile, choice),
        }
    }
}

/// `result`, once the journal has noted that it is there.
fn ended<T>(trial: Option<Trial>, result: Result<T>) -> Result<T> {
    trial.map_or(Ok(()), Trial::finish)?;
    result
}

impl Bench for Guarded<'_> {
    fn default_choice(&self) -> Result<Choice> {
        self.bench.default_choice()
    }

    fn space(&self) -> Vec<(&'static str, [u32; 3])> {
        self.bench.space()
    }

    fn layout(&self) -> Layout {
        self.bench.layout()
    }

    fn grid(&self, variant: &'static str, tile: [u32; 3]) -> [u32; 3] {
        self.bench.grid(variant, tile)
    }

    fn table(&self, variant: &'static str, tile: [u32; 3]) -> [u32; 3] {
        self.bench.table(variant, tile)
    }

    fn work_groups(&self, variant: &'static str, tile: [u32; 3]) -> Vec<[u32; 3]> {
        self.bench.work_groups(variant, tile)
    }

    fn limits(&self) -> &Limits {
        self.bench.limits()
    }

    fn fits(&self, choice: &Choice) -> Result<()> {
        self.bench.fits(choice)?;
        let database = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        match database.get(&self.keys.of(choice)) {
            Some(row) if row.verdict.bars() => Err(Error::Reject {
                kernel: format!("{} {choice}", self.keys.op.name()),
                reason: format!("on record as {}", row.verdict),
            }),
            _ => Ok(()),
        }
    }

    fn interleaves(&self) -> bool {
        self.bench.interleaves()
    }

    #[cfg(not(target_family = "wasm"))]
    fn prepare(&mut self, choice: &Choice) -> Result<()> {
        let trial = self.compiling(choice)?;
        ended(trial, self.bench.prepare(choice))
    }

    #[cfg(not(target_family = "wasm"))]
    fn check(&mut self, choice: &Choice) -> Result<Check> {
        let trial = self.begun(Phase::Run, choice)?;
        ended(trial, self.bench.check(choice))
    }

    #[cfg(not(target_family = "wasm"))]
    fn repeat(&mut self, choice: &Choice, round: &Round) -> Result<Repeated> {
        self.bench.repeat(choice, round)
    }

    fn repeat_cost(&self) -> Duration {
        self.bench.repeat_cost()
    }

    #[cfg(not(target_family = "wasm"))]
    fn sample(&mut self, choice: &Choice, repeats: u32) -> Result<Duration> {
        self.bench.sample(choice, repeats)
    }

    #[cfg(not(target_family = "wasm"))]
    fn together(&mut self, choices: &[(Choice, u32)], rounds: usize) -> Result<Vec<Vec<Duration>>> {
        self.bench.together(choices, rounds)
    }

    #[cfg(not(target_family = "wasm"))]
    fn warm_up(&mut self, choice: &Choice) -> Result<bool> {
        self.bench.warm_up(choice)
    }

    fn prepare_async<'a>(&'a mut self, choice: &'a Choice) -> Local<'a, Result<()>> {
        Box::pin(async move {
            let trial = self.compiling(choice)?;
            ended(trial, self.bench.prepare_async(choice).await)
        })
    }

    fn check_async<'a>(&'a mut self, choice: &'a Choice) -> Local<'a, Result<Check>> {
        Box::pin(async move {
            let trial = self.begun(Phase::Run, choice)?;
            ended(trial, self.bench.check_async(choice).await)
        })
    }

    fn repeat_async<'a>(&'a mut self, choice: &'a Choice, round: &'a Round) -> Local<'a, Result<Repeated>> {
        self.bench.repeat_async(choice, round)
    }

    fn sample_async<'a>(&'a mut self, choice: &'a Choice, repeats: u32) -> Local<'a, Result<Duration>> {
        self.bench.sample_async(choice, repeats)
    }

    fn together_async<'a>(
        &'a mut self,
        choices: &'a [(Choice, u32)],
        rounds: usize,
    ) -> Local<'a, Result<Vec<Vec<Duration>>>> {
        self.bench.together_async(choices, rounds)
    }

    fn warm_up_async<'a>(&'a mut self, choice: &'a Choice) -> Local<'a, Result<bool>> {
        self.bench.warm_up_async(choice)
    }

    fn width(&self) -> usize {
        if self.keys.alone { 0 } else { self.bench.width() }
    }

    /// If the process dies meanwhile, all of them are suspects: it is not known which did it.
    fn ahead(&mut self, choices: &[Choice]) {
        if self.keys.alone {
            return;
        }
        let mut begun = self.keys.ahead.borrow_mut();
        let mut named = Vec::with_capacity(choices.len());
        for choice in choices {
            if let Some(journal) = self.journal
                && !begun.contains_key(choice)
            {
                // What cannot be written down is not tried ahead; preparing it reports the error.
                let Ok(trial) = journal.begin(Phase::Compile, &self.keys.of(choice)) else { break };
                begun.insert(*choice, trial);
            }
            named.push(*choice);
        }
        self.bench.ahead(&named);
    }

    fn repeats(&self, estimate: Duration) -> u32 {
        self.bench.repeats(estimate)
    }

    fn now(&self) -> Duration {
        self.bench.now()
    }

    fn release(&mut self, choice: &Choice) {
        self.bench.release(choice);
    }

    fn finish(&mut self) -> Result<()> {
        let finished = self.bench.finish();
        // Nothing is being compiled any more.
        self.keys.ahead.borrow_mut().clear();
        finished
    }
}
