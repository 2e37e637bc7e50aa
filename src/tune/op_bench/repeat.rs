//! Runs of a candidate that must store the bits of the one that was right.
//!
//! Each run is three dispatches: the destination is given what it held before the first run, the candidate runs, and what
//! it has stored is summed up where it lies ([`super::sums`]). One submission has a run for each set of operands at
//! most, so that a result that differs can still be read.

use super::OpBench;
use super::operands::{Inputs, Key, decode};
use super::sums::{self, Sums};
use crate::device::{Dispatch, Resource, Slice, Wait};
use crate::dtype::DType;
use crate::emit::Access;
use crate::error::{Error, Result};
use crate::ops::{Choice, Role};
use crate::tune::bench::Check;
use crate::tune::repeat::{Repeated, Round};
use std::collections::HashMap;
use std::time::Duration;

/// Runs with other inputs, all of them wrong, that tell a wrong kernel from a flaky one.
const ATTEMPTS: u32 = 4;

/// What repeated runs need.
#[derive(Debug, Default)]
pub(super) struct Repeating {
    /// Whether it was found out which way outputs are summed up.
    begun: bool,
    /// How the device sums up; if it cannot, what is stored is read.
    sums: Option<Sums>,
    /// Inputs beside those that candidates are timed with.
    other: Option<Inputs>,
    /// The checksums of outputs that were right: with the inputs of the timed runs and with the others.
    right: HashMap<(Choice, bool), Vec<u32>>,
    /// The largest error of an output that was wrong, over its bound: of the candidate that was made ready last.
    pub(super) worst: f64,
    /// What destinations hold before a run, by the candidates' keys of them.
    before: HashMap<Key, Slice>,
}

impl Repeating {
    /// Forgets what a candidate has stored.
    pub(super) fn forget(&mut self, choice: &Choice) {
        for other in [false, true] {
            self.right.remove(&(*choice, other));
        }
    }

    /// Notes what a candidate has stored, which was right.
    pub(super) fn was_right(&mut self, choice: Choice, other: bool, stored: &[u8]) {
        self.right.insert((choice, other), sums::sums(stored));
    }
}

/// One submission of a round: a run with each of some sets of operands.
struct Part<'a> {
    choice: &'a Choice,
    arguments: &'a [Key],
    /// Whether these are the other inputs.
    other: bool,
    sets: usize,
    /// What runs before each run.
    between: Option<Choice>,
    /// What destinations hold before a run, and the type of their elements.
    before: Slice,
    dtype: DType,
}

/// What puts into a destination what it held before, what makes a buffer of it, and that buffer.
struct Around {
    restore: Vec<Dispatch>,
    fetch: Vec<Dispatch>,
    stored: Slice,
}

impl OpBench {
    /// A round of runs of a candidate that was found right.
    pub(super) async fn repeated(&mut self, wait: Wait, choice: &Choice, round: &Round) -> Result<Repeated> {
        if !self.repeating.begun {
            let room = u32::try_from(self.sets).unwrap_or(1);
            self.repeating.sums = Sums::on(wait, &*self.device, room).await?;
            self.repeating.begun = true;
        }
        let mut found = Repeated::default();
        let other = round.other_inputs && self.op.operands().iter().any(|info| info.role == Role::Input);
        let arguments = match other {
            true => self.with_other_inputs(wait, choice, &mut found).await?,
            false => self.prepared(choice)?.arguments.clone(),
        };
        if found.wrong.is_some() {
            return Ok(found);
        }
        let (before, dtype) = self.before(choice, &arguments)?;
        let between = if round.between { self.another(choice) } else { None };
        let mut sums = self.repeating.sums.take();
        let groups = round.groups.clamp(1, round.runs.max(1));
        let mut outcome = Ok(());
        for group in 0..groups {
            let mut left = round.runs * (group + 1) / groups - round.runs * group / groups;
            let mut pause = round.pause;
            while left > 0 && outcome.is_ok() {
                let sets = (left as usize).min(self.sets.max(1));
                let before = before.clone();
                let part = Part { choice, arguments: &arguments, other, sets, between, before, dtype };
                outcome = self.part(wait, &part, pause, sums.as_mut(), &mut found).await;
                left = left.saturating_sub(u32::try_from(sets).unwrap_or(u32::MAX));
                pause = Duration::ZERO;
            }
        }
        self.repeating.sums = sums;
        outcome.map(|()| found)
    }

    /// The arguments of a candidate with other inputs. The first run with them is compared with what is expected; one that
    /// is wrong is tried again, to tell a kernel that is always wrong from one that sometimes is.
    async fn with_other_inputs(
        &mut self,
        wait: Wait,
        choice: &Choice,
        found: &mut Repeated,
    ) -> Result<Vec<Key>> {
        let mut other = match self.repeating.other.take() {
            Some(other) => other,
            None => Inputs::new(&*self.op, 1)?,
        };
        let arguments = self.first_with(wait, &mut other, choice, found).await;
        self.repeating.other = Some(other);
        arguments
    }

    async fn first_with(
        &mut self,
        wait: Wait,
        other: &mut Inputs,
        choice: &Choice,
        found: &mut Repeated,
    ) -> Result<Vec<Key>> {
        other.expect(&*self.op, choice.variant)?;
        let bindings = self.prepared(choice)?.launch.spec.interface.bindings.clone();
        let mut arguments = Vec::with_capacity(bindings.len());
        for binding in &bindings {
            arguments.push(self.resources(wait, Some(&*other), choice, binding).await?);
        }
        if self.repeating.right.contains_key(&(*choice, true)) {
            return Ok(arguments);
        }
        for attempt in 0..ATTEMPTS {
            let compared = self.compared(wait, other, choice, &arguments).await?;
            match compared.check {
                Check::Correct => {
                    self.repeating.was_right(*choice, true, &compared.stored);
                    break;
                }
                Check::Wrong { detail } if attempt + 1 < ATTEMPTS => {
                    found.differed += 1;
                    found.detail.get_or_insert(format!("with other inputs: {detail}"));
                }
                Check::Wrong { detail } => found.wrong = Some(format!("with other inputs: {detail}")),
            }
        }
        Ok(arguments)
    }

    /// What the destinations of a candidate hold before a run, on the device.
    fn before(&mut self, choice: &Choice, arguments: &[Key]) -> Result<(Slice, DType)> {
        let key = arguments.iter().find(|key| key.access != Access::Read);
        let key = key.ok_or_else(|| Error::Internal("a kernel without a destination".to_owned()))?;
        if let Some(kept) = self.repeating.before.get(key) {
            return Ok((kept.clone(), key.dtype));
        }
        let values = self.stored(&self.inputs, choice, &self.destination(choice)?)?;
        let slice = match self.buffer(&values, key.dtype)? {
            Resource::Buffer(slice) => slice,
            Resource::Image(_) => return Err(Error::Internal("a buffer that is an image".to_owned())),
        };
        self.repeating.before.insert(key.clone(), slice.clone());
        Ok((slice, key.dtype))
    }

    /// Another candidate that is ready.
    fn another(&self, choice: &Choice) -> Option<Choice> {
        let others = self.prepared.keys().filter(|other| *other != choice);
        others.min_by_key(|other| (other.variant, other.tile, other.work_group)).copied()
    }

    /// What comes before and behind a run that writes the destination of `set`. Without kernels that sum up, buffers are
    /// written by the host.
    async fn around(&self, part: &Part<'_>, set: usize, sums: Option<&Sums>) -> Result<Around> {
        let target = self.target(part.arguments, set)?.0;
        match target {
            Resource::Buffer(stored) => {
                let restore = sums.map(|sums| sums.restore(&part.before, &stored)).transpose()?;
                Ok(Around { restore: restore.into_iter().collect(), fetch: Vec::new(), stored })
            }
            image @ Resource::Image(_) => {
                let (fill, fetch, stored) = self.around_image(&part.before, image).await?;
                Ok(Around { restore: vec![fill], fetch: vec![fetch], stored })
            }
        }
    }

    /// One submission behind a pause, and what came of it.
    async fn part(
        &mut self,
        wait: Wait,
        part: &Part<'_>,
        pause: Duration,
        mut sums: Option<&mut Sums>,
        found: &mut Repeated,
    ) -> Result<()> {
        let (mut dispatches, mut stored) = (Vec::new(), Vec::new());
        for set in 0..part.sets {
            let around = self.around(part, set, sums.as_deref()).await?;
            if sums.is_none() && around.fetch.is_empty() {
                let before = wait.read(&*self.device, &part.before).await?;
                self.device.write(&around.stored, &before)?;
            }
            if let Some(other) = &part.between {
                let other = self.prepared(other)?;
                dispatches.extend(self.runs(other, &other.arguments, set, 1)?);
            }
            // The first run is the first thing behind the pause.
            if set == 0 && part.between.is_none() && !around.restore.is_empty() {
                self.device.submit(&self.device.record(&around.restore)?)?;
            } else {
                dispatches.extend(around.restore);
            }
            dispatches.extend(self.runs(self.prepared(part.choice)?, part.arguments, set, 1)?);
            dispatches.extend(around.fetch);
            if let Some(sums) = &mut sums {
                let index = u32::try_from(set).unwrap_or(u32::MAX);
                dispatches.extend(sums.sum(&*self.device, &around.stored, index)?);
            }
            stored.push(around.stored);
        }
        let recording = self.device.record(&dispatches)?;
        if !pause.is_zero() {
            wait.wait(&*self.device).await?;
            Self::rest(wait, pause);
        }
        let sums_of_runs: Vec<Vec<u32>> = match &sums {
            Some(own) => {
                let results = own.result(u32::try_from(part.sets).unwrap_or(1))?;
                let read = wait.run(&*self.device, &[], &recording, &[&results]).await?;
                let bytes = read.first().map_or(&[][..], Vec::as_slice);
                bytes.chunks(sums::BYTES as usize).map(bytemuck::pod_collect_to_vec).collect()
            }
            None => {
                let reads: Vec<&Slice> = stored.iter().collect();
                let read = wait.run(&*self.device, &[], &recording, &reads).await?;
                read.iter().map(|bytes| sums::sums(bytes)).collect()
            }
        };
        for (set, stored) in stored.iter().enumerate() {
            let right = self.repeating.right.get(&(*part.choice, part.other));
            if right.is_none() || sums_of_runs.get(set) != right {
                self.differs(wait, part, stored, found).await?;
            }
        }
        Ok(())
    }

    /// Looks at an output that is not the one that was right.
    async fn differs(
        &mut self,
        wait: Wait,
        part: &Part<'_>,
        stored: &Slice,
        found: &mut Repeated,
    ) -> Result<()> {
        found.differed += 1;
        let read = decode(&wait.read(&*self.device, stored).await?, part.dtype);
        let inputs = if part.other { self.repeating.other.as_ref() } else { Some(&self.inputs) };
        let Some(inputs) = inputs else { return Ok(()) };
        let (expected, form) = (inputs.expected(part.choice), self.form(part.choice)?);
        let ratio = expected.ratio(form, &read);
        found.detail.get_or_insert_with(|| match expected.compare(form, &read) {
            Check::Wrong { detail } => detail,
            Check::Correct => format!("other bits, {ratio:.3} of the bound"),
        });
        self.repeating.worst = self.repeating.worst.max(ratio);
        Ok(())
    }
}
