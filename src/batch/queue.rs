//! Requests that wait for their run, and the devices that take them.

use super::BatchCounts;
use super::members::{Member, Members, Standing};
use super::slot::{Request, Slot, ended};
use crate::clock::Instant;
use crate::error::{Error, Result};
use crate::host::HostTensor;
use crate::sync::{Condvar, Mutex, MutexGuard, lock};
use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The requests of a run that failed on a device, for another one.
#[derive(Debug)]
struct Again {
    requests: Vec<Request>,
    failed_on: usize,
    error: Arc<Error>,
}

#[derive(Debug)]
struct State {
    /// The requests that wait for a run, in the order of their arrival; those beyond the first `max_waiting` are held back.
    requests: VecDeque<Request>,
    again: VecDeque<Again>,
    /// Which device runs again what failed on which.
    retries: Vec<(usize, usize)>,
    members: Members,
    counts: BatchCounts,
    closed: bool,
    /// Threads that may still use their device.
    threads: usize,
    /// Who awaits that there are none.
    waker: Option<Waker>,
}

/// The requests of a service.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    /// The runs' sizes, the smallest first.
    sizes: Vec<usize>,
    max_batch: usize,
    max_waiting: usize,
    max_delay: Duration,
}

/// The requests of a run, and where they have failed before.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) requests: Vec<Request>,
    failed: Option<(usize, Arc<Error>)>,
}

/// What a device is to do next.
#[derive(Debug)]
pub(super) enum Next {
    Run(Run),
    /// Not enough requests.
    NotYet,
    /// There will be no more.
    End,
}

impl Queue {
    /// A queue for so many devices, whose runs are of these sizes, the smallest first.
    pub(super) fn new(devices: usize, sizes: Vec<usize>, max_waiting: usize, max_delay: Duration) -> Self {
        let max_batch = sizes.last().copied().unwrap_or(1);
        let state = State {
            requests: VecDeque::new(),
            again: VecDeque::new(),
            retries: Vec::new(),
            members: Members::new(devices),
            counts: BatchCounts { runs: vec![0; max_batch], ..BatchCounts::default() },
            closed: false,
            threads: 0,
            waker: None,
        };
        Queue { state: Mutex::new(state), changed: Condvar::new(), sizes, max_batch, max_waiting, max_delay }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(super) fn counts(&self) -> BatchCounts {
        let state = self.lock();
        BatchCounts { waiting: state.requests.len(), ..state.counts.clone() }
    }

    pub(super) fn members(&self) -> Vec<Member> {
        self.lock().members.all().to_vec()
    }

    /// A request behind the others; none, if it would be held back and `may_wait` is not set.
    pub(super) fn append(&self, inputs: Vec<HostTensor>, may_wait: bool) -> Result<Option<Arc<Slot>>> {
        let mut state = self.lock();
        if state.closed {
            return Err(ended());
        }
        if state.requests.len() >= self.max_waiting && !may_wait {
            return Ok(None);
        }
        let request = Request::new(inputs, state.requests.len() < self.max_waiting);
        let slot = Arc::clone(&request.slot);
        state.requests.push_back(request);
        drop(state);
        self.changed.notify_all();
        Ok(Some(slot))
    }

    /// Takes back a request whose run has not begun.
    pub(super) fn withdraw(&self, slot: &Arc<Slot>) {
        let mut state = self.lock();
        let place = state.requests.iter().position(|request| Arc::ptr_eq(&request.slot, slot));
        let withdrawn = place.and_then(|place| state.requests.remove(place));
        if withdrawn.is_some() {
            self.admit(state);
        }
    }

    /// Takes those who are held back, where there is room. Tasks are woken without the queue's lock.
    fn admit(&self, state: MutexGuard<'_, State>) {
        let requests = state.requests.iter().take(self.max_waiting);
        let slots: Vec<Arc<Slot>> = requests.map(|request| Arc::clone(&request.slot)).collect();
        drop(state);
        for slot in slots {
            slot.admit();
        }
    }

    /// The next run of a device: what another one failed on; a full batch, or what has come when the first has waited
    /// long enough, of which it takes its share. Not yet, if that takes a wait and nobody `may_wait`.
    #[expect(clippy::disallowed_methods, reason = "a thread of the batch waits for requests")]
    pub(super) fn next(&self, member: usize, may_wait: bool) -> Next {
        let mut state = self.lock();
        loop {
            let Some((out, suspect)) = state.members.get(member).map(|own| (own.is_out(), own.is_suspect()))
            else {
                return Next::End;
            };
            if out {
                return Next::End;
            }
            if let Some(place) = state.again.iter().position(|again| again.failed_on != member)
                && let Some(again) = state.again.remove(place)
            {
                state.members.begins(member, again.requests.len());
                state.retries.push((member, again.failed_on));
                return Next::Run(Run {
                    requests: again.requests,
                    failed: Some((again.failed_on, again.error)),
                });
            }
            let left = match state.requests.front().filter(|_| !suspect) {
                Some(first) => {
                    let left = self.max_delay.saturating_sub(first.arrived.elapsed());
                    if state.requests.len() < self.max_batch && !left.is_zero() && !state.closed {
                        Some(left)
                    } else {
                        let mut count = state.members.share(member, state.requests.len(), self.max_batch);
                        // A run with places to spare takes a slow device as long as a full one.
                        if state.members.is_slow(member)
                            && let Some(full) = self.sizes.iter().rfind(|&&size| size <= count)
                        {
                            count = *full;
                        }
                        if count > 0 {
                            return self.take(state, member, count);
                        }
                        None
                    }
                }
                None => None,
            };
            let all_is_done = state.requests.is_empty() && state.again.is_empty();
            if state.closed && all_is_done && !state.members.others_run(member) {
                return Next::End;
            }
            if !may_wait {
                return Next::NotYet;
            }
            state = match left {
                Some(left) => {
                    let waited = self.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn take(&self, mut state: MutexGuard<'_, State>, member: usize, count: usize) -> Next {
        let requests: Vec<Request> = state.requests.drain(..count).collect();
        state.members.begins(member, count);
        self.admit(state);
        Next::Run(Run { requests, failed: None })
    }

    /// A run is over, and its requests can be answered.
    pub(super) fn succeeded(&self, member: usize, run: Run, begun: Instant) -> Vec<Request> {
        let mut state = self.lock();
        state.members.ends(member, run.requests.len());
        state.retried(member, &run);
        state.members.answered(member, run.requests.len(), begun);
        state.count(run.requests.len());
        let mut lost = Vec::new();
        // What failed there did not here: it is that device's fault.
        if let Some((failed_on, error)) = run.failed
            && state.members.get(failed_on).is_some_and(Member::is_suspect)
        {
            lost = state.leaves(failed_on, error);
        }
        self.over(state, lost);
        run.requests
    }

    /// A run has failed: another device tries it, if there is one and none has.
    pub(super) fn failed(&self, member: usize, run: Run, error: Error) {
        let (lost, panicked, error) = (error.is_device_lost(), error.is_panic(), Arc::new(error));
        let mut state = self.lock();
        state.members.ends(member, run.requests.len());
        state.retried(member, &run);
        let others = state.members.has_others(member);
        let mut over = Vec::new();
        match run.failed {
            // A function of the application that panics does so on any device.
            None if !others || panicked => over.push((run.requests, error)),
            None if lost => {
                for request in run.requests.into_iter().rev() {
                    state.requests.push_front(request);
                }
                over = state.leaves(member, error);
            }
            None => {
                state.again.push_back(Again {
                    requests: run.requests,
                    failed_on: member,
                    error: Arc::clone(&error),
                });
                if let Some(own) = state.members.get_mut(member).filter(|own| !own.is_out()) {
                    own.standing = Standing::Suspect;
                }
            }
            Some((failed_on, first)) if lost && others => {
                state.again.push_front(Again { requests: run.requests, failed_on, error: first });
                over = state.leaves(member, error);
            }
            // It fails everywhere: it is the requests' fault.
            Some((failed_on, _)) => {
                state.clears(failed_on);
                over.push((run.requests, error));
            }
        }
        self.over(state, over);
    }

    /// Answers requests with errors, without the queue's lock, and wakes the devices.
    fn over(&self, mut state: MutexGuard<'_, State>, over: Vec<(Vec<Request>, Arc<Error>)>) {
        for (requests, _) in &over {
            state.count(requests.len());
        }
        drop(state);
        self.changed.notify_all();
        for (requests, error) in over {
            let of = requests.len();
            for request in requests {
                request.answer(Err(Error::Shared { of, source: Arc::clone(&error) }));
            }
        }
    }

    /// No more requests come; those that are there are answered.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// The thread of a device has ended. With the last one, nobody answers what is left.
    pub(super) fn ended(&self, member: usize) {
        let mut state = self.lock();
        state.members.has_ended(member);
        // What it ran again nobody will: those whose fault it may have been serve on.
        let (its_own, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut state.retries).into_iter().partition(|(by, _)| *by == member);
        state.retries = others;
        for (_, failed_on) in its_own {
            state.clears(failed_on);
        }
        let over = match state.members.get(member).is_some_and(Member::is_out) {
            true => Vec::new(),
            false => state.leaves(member, Arc::new(ended())),
        };
        let mut left = VecDeque::new();
        if state.members.all().iter().all(Member::is_out) {
            state.closed = true;
            left = std::mem::take(&mut state.requests);
        }
        self.over(state, over);
        drop(left);
    }

    /// A thread is started that will use a device.
    pub(super) fn started(&self) {
        self.lock().threads += 1;
    }

    /// Such a thread uses it no more.
    pub(super) fn gone(&self) {
        let mut state = self.lock();
        state.threads = state.threads.saturating_sub(1);
        let waker = if state.threads == 0 { state.waker.take() } else { None };
        drop(state);
        if let Some(waker) = waker {
            crate::task::wake(waker);
        }
    }

    /// Ready when no thread uses a device.
    pub(super) fn poll_gone(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.threads == 0 {
            return Poll::Ready(());
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl State {
    /// A run is over that may have been another device's before.
    fn retried(&mut self, member: usize, run: &Run) {
        let Some((failed_on, _)) = &run.failed else { return };
        if let Some(place) = self.retries.iter().position(|retry| *retry == (member, *failed_on)) {
            self.retries.swap_remove(place);
        }
    }

    fn count(&mut self, requests: usize) {
        self.counts.requests += requests as u64;
        if let Some(runs) = requests.checked_sub(1).and_then(|index| self.counts.runs.get_mut(index)) {
            *runs += 1;
        }
    }

    /// A suspect is not to blame.
    fn clears(&mut self, member: usize) {
        if let Some(member) = self.members.get_mut(member).filter(|member| member.is_suspect()) {
            member.standing = Standing::Good;
        }
    }

    /// Takes a device out, and what no other device is left to try again.
    fn leaves(&mut self, member: usize, error: Arc<Error>) -> Vec<(Vec<Request>, Arc<Error>)> {
        if let Some(member) = self.members.get_mut(member) {
            member.standing = Standing::Out(error);
        }
        let (left, kept) = std::mem::take(&mut self.again)
            .into_iter()
            .partition::<VecDeque<Again>, _>(|again| !self.members.has_others(again.failed_on));
        self.again = kept;
        let mut over = Vec::new();
        for again in left {
            self.clears(again.failed_on);
            over.push((again.requests, again.error));
        }
        over
    }
}

#[cfg(test)]
mod tests;
