//! A bench that notes in the journal what it is about to run, and refuses what the record excludes.

use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::limits::Limits;
use crate::ops::{Choice, Op};
use crate::tune::db::{Database, Verdict};
use crate::tune::journal::{Journal, Phase, Trial};
use crate::tune::key::{DeviceKey, Key, ProblemKey, SourceHash};
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
    fn journalled<T>(
        &mut self,
        phase: Phase,
        choice: &Choice,
        work: impl FnOnce(&mut dyn Bench) -> Result<T>,
    ) -> Result<T> {
        let trial = match self.journal {
            Some(journal) => Some(journal.begin(phase, &self.keys.of(choice))?),
            None => None,
        };
        let result = work(self.bench);
        if let Some(trial) = trial {
            trial.finish()?;
        }
        result
    }
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

    fn prepare(&mut self, choice: &Choice) -> Result<()> {
        let begun = self.keys.ahead.borrow_mut().remove(choice);
        match begun {
            Some(trial) => {
                let result = self.bench.prepare(choice);
                trial.finish()?;
                result
            }
            None => self.journalled(Phase::Compile, choice, |bench| bench.prepare(choice)),
        }
    }

    fn check(&mut self, choice: &Choice) -> Result<Check> {
        self.journalled(Phase::Run, choice, |bench| bench.check(choice))
    }

    fn sample(&mut self, choice: &Choice, repeats: u32) -> Result<Duration> {
        self.bench.sample(choice, repeats)
    }

    fn interleaves(&self) -> bool {
        self.bench.interleaves()
    }

    fn together(&mut self, choices: &[(Choice, u32)], rounds: usize) -> Result<Vec<Vec<Duration>>> {
        self.bench.together(choices, rounds)
    }

    fn warm_up(&mut self, choice: &Choice) -> Result<bool> {
        self.bench.warm_up(choice)
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
