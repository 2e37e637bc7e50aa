//! Inputs, a recording and outputs with one wait.

use super::call::{Event, Owned, Want};
use super::memory::Range;
use super::patience::{Drain, let_go};
use super::readback::{InPinned, Read, parts};
use super::staging::{DeviceBlock, Pinned, Staging, Transfers};
use super::{Inner, awaited, record};
use crate::alloc;
use crate::device::copy::copy;
use crate::device::{Awaited, Pending, Readback, Recording, Slice};
use crate::error::{Error, Result};
use std::sync::Arc;

/// How the end of a run is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Completion {
    /// The last read returns when it is done. Drivers watch closely there, and are slow to report an
    /// event: on an H200 waiting for one took 10 to 140 us longer at the median.
    Read,
    /// The run's last command has an event, which is waited for later.
    Event,
}

/// Enqueues a run; gives the event of its last command, where that is how it ends and it reads
/// anything.
///
/// # Safety
/// The bytes of `writes` and `outputs` stay where they are, and nobody uses the latter, until the
/// event, or the queue where there is none, has completed. That holds for an error as well.
unsafe fn enqueue(
    inner: &Inner,
    writes: &[(Range<'_>, &[u8])],
    recording: &Recording,
    reads: &[Range<'_>],
    outputs: &mut [&mut [u8]],
    end: Completion,
) -> Result<Option<Owned<Event>>> {
    let lane = inner.lane();
    let mut last = None;
    // Held through a read that waits as well: nobody's commands come between those of a run.
    let _order = inner.order.enter()?;
    for (range, bytes) in writes {
        // SAFETY: promised by the caller. Test: `saxpy_runs`.
        unsafe { range.write(lane, bytes, false) }?;
    }
    record::enqueue(inner, recording)?;
    for (index, (range, output)) in reads.iter().zip(outputs).enumerate() {
        // The queue is in order: the last read completes after everything before it.
        let is_last = index + 1 == reads.len();
        let want = if is_last && end == Completion::Event { Want::Event } else { Want::Nothing };
        // SAFETY: promised by the caller.
        last = unsafe { range.read(lane, output, want, is_last && end == Completion::Read) }?;
    }
    lane.flush()?;
    Ok(last)
}

/// The ranges of a run, checked.
#[expect(clippy::type_complexity, reason = "two lists, of what is written and of what is read")]
fn ranges<'a>(
    inner: &Inner,
    writes: &'a [(&Slice, &'a [u8])],
    reads: &'a [&Slice],
) -> Result<(Vec<(Range<'a>, &'a [u8])>, Vec<Range<'a>>)> {
    let to = writes.iter().map(|(slice, bytes)| Ok((Range::for_write(inner, slice, bytes)?, *bytes)));
    let from = reads.iter().map(|slice| Range::new(inner, slice));
    Ok((to.collect::<Result<_>>()?, from.collect::<Result<_>>()?))
}

/// Where each of `ranges` lies in one block that holds them all, each from a whole vec4 on; and the
/// bytes of the block.
fn places(lengths: impl Iterator<Item = usize>) -> (Vec<(usize, usize)>, usize) {
    let mut end = 0;
    let places = lengths.map(|length| {
        let at = end;
        end = (at + length).next_multiple_of(16);
        (at, length)
    });
    (places.collect(), end)
}

/// The parts of a block, to change.
fn parts_mut<'a>(mut block: &'a mut [u8], places: &[(usize, usize)]) -> Vec<&'a mut [u8]> {
    let mut at = 0;
    let mut parts = Vec::with_capacity(places.len());
    for &(from, length) in places {
        let (_, rest) = block.split_at_mut(from - at);
        let (part, rest) = rest.split_at_mut(length);
        parts.push(part);
        (block, at) = (rest, from + length);
    }
    parts
}

pub(super) fn run(
    inner: &Arc<Inner>,
    writes: &[(&Slice, &[u8])],
    recording: &Recording,
    reads: &[&Slice],
) -> Result<Box<dyn Readback>> {
    if inner.staging.is_none() && inner.patience.is_limited() {
        // What may still be in flight after the limit must not be borrowed.
        return start(inner, writes, recording, reads)?.wait();
    }
    let (mut to, from) = ranges(inner, writes, reads)?;
    let (up_places, up_bytes) = places(to.iter().map(|(_, bytes)| bytes.len()));
    let (down_places, down_bytes) = places(from.iter().map(Range::len));
    let Some(staging) = &inner.staging else {
        let mut bytes = alloc::zeros(down_bytes, "what a run reads")?;
        // SAFETY: `writes` are borrowed until this function returns.
        unsafe { wait_for(inner, &to, recording, &from, &mut parts_mut(&mut bytes, &down_places)) }?;
        return Ok(Box::new(Read { bytes, places: down_places }));
    };
    let (mut up, mut down) = (staging.pin(inner, up_bytes)?, staging.pin(inner, down_bytes)?);
    for ((_, bytes), part) in to.iter().zip(parts_mut(up.bytes_mut(up_bytes), &up_places)) {
        copy(part, bytes);
    }
    for ((_, bytes), part) in to.iter_mut().zip(parts(up.bytes(up_bytes), &up_places)) {
        *bytes = part;
    }
    let mut outputs = parts_mut(down.bytes_mut(down_bytes), &down_places);
    // SAFETY: `up` lives on. Test: `runs_through_pinned_memory_are_the_same`.
    if let Err(error) = unsafe { wait_for(inner, &to, recording, &from, &mut outputs) } {
        let_go(&[inner.lane()], (up, down));
        return Err(error);
    }
    staging.keep([up], []);
    let device = Arc::clone(inner);
    Ok(Box::new(InPinned { device, block: Some(down), bytes: down_bytes, places: down_places }))
}

/// Enqueues a run and waits for it.
///
/// # Safety
/// The bytes of `writes` stay where they are until this function returns.
unsafe fn wait_for(
    inner: &Inner,
    writes: &[(Range<'_>, &[u8])],
    recording: &Recording,
    reads: &[Range<'_>],
    outputs: &mut [&mut [u8]],
) -> Result<()> {
    let drain = Drain::new(inner.lane());
    let end = if inner.patience.is_limited() { Completion::Event } else { Completion::Read };
    // SAFETY: what is written is the caller's promise; both it and what is read outlast `drain`, which
    // waits for the commands on every way out but that on which a read has waited. Where it gives up, all of it is
    // `run`'s, which lets go of it with `let_go`.
    let last = unsafe { enqueue(inner, writes, recording, reads, outputs, end) }?;
    if reads.is_empty() || end == Completion::Event {
        inner.lane().wait(last.as_ref())?;
    }
    drain.done();
    Ok(())
}

/// A run under way and the event that ends it.
pub(super) trait Running: Pending {
    /// The event of its last command; none if it reads nothing.
    fn last(&self) -> Option<&Owned<Event>>;
}

/// A run under way, with the memory that the driver copies from and to.
pub(super) struct Started {
    device: Arc<Inner>,
    /// Copies of the inputs, which the driver may still be reading.
    inputs: Vec<Vec<u8>>,
    outputs: Vec<u8>,
    places: Vec<(usize, usize)>,
    last: Option<Owned<Event>>,
    arrived: bool,
}

impl std::fmt::Debug for Started {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OpenCL run that reads {} buffers", self.places.len())
    }
}

pub(super) fn start(
    inner: &Arc<Inner>,
    writes: &[(&Slice, &[u8])],
    recording: &Recording,
    reads: &[&Slice],
) -> Result<Box<dyn Running>> {
    if let Some(staging) = &inner.staging {
        return Ok(Box::new(start_staged(inner, staging, writes, recording, reads)?));
    }
    let copy = |(_, bytes): &(&Slice, &[u8])| alloc::copied(bytes, "a run's inputs");
    let inputs = writes.iter().map(copy).collect::<Result<Vec<Vec<u8>>>>()?;
    let copied: Vec<(&Slice, &[u8])> =
        writes.iter().zip(&inputs).map(|((slice, _), bytes)| (*slice, bytes.as_slice())).collect();
    let (to, from) = ranges(inner, &copied, reads)?;
    let (places, bytes) = places(from.iter().map(Range::len));
    let mut outputs = alloc::zeros(bytes, "what a run reads")?;
    let last = {
        let (to, from) = (to, from);
        let drain = Drain::new(inner.lane());
        let mut parts = parts_mut(&mut outputs, &places);
        // SAFETY: after an error `drain` waits, and both outlast it. Otherwise `Started` owns them,
        // whose buffers do not move with it, and waits before it lets go of them.
        let last = unsafe { enqueue(inner, &to, recording, &from, &mut parts, Completion::Event) };
        if last.is_ok() {
            drain.done();
        }
        last
    };
    let last = match last {
        Ok(last) => last,
        Err(error) => {
            let_go(&[inner.lane()], (inputs, outputs));
            return Err(error);
        }
    };
    let device = Arc::clone(inner);
    Ok(Box::new(Started { device, inputs, outputs, places, last, arrived: false }))
}

impl Pending for Started {
    fn wait(mut self: Box<Self>) -> Result<Box<dyn Readback>> {
        self.device.lane().wait(self.last.as_ref())?;
        self.arrived = true;
        let (bytes, places) = (std::mem::take(&mut self.outputs), std::mem::take(&mut self.places));
        Ok(Box::new(Read { bytes, places }))
    }

    fn arrive(self: Box<Self>) -> Awaited<'static, Result<Box<dyn Readback>>> {
        Box::pin(awaited::arrived(Arc::clone(&self.device), self))
    }
}

impl Running for Started {
    fn last(&self) -> Option<&Owned<Event>> {
        self.last.as_ref()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if self.arrived {
            return;
        }
        let ended = self.last.as_ref().map(|last| self.device.patience.wait_again(last));
        if ended.is_none_or(|ended| ended.is_err()) {
            let memory = (std::mem::take(&mut self.inputs), std::mem::take(&mut self.outputs));
            let_go(&[self.device.lane()], memory);
        }
    }
}

/// A run under way whose copies overlap with the work on other runs.
///
/// Its inputs go to pinned memory, from there to a block of device memory by a queue of their own, and
/// from that to their places in the queue of all work; its outputs take the same way back. The blocks
/// are this run's alone, so that the inputs of the next run do not wait for this one.
struct Staged {
    device: Arc<Inner>,
    transfers: Arc<Transfers>,
    /// Up and down.
    pinned: Option<[Pinned; 2]>,
    blocks: Option<[DeviceBlock; 2]>,
    places: Vec<(usize, usize)>,
    bytes: usize,
    computed: Option<Owned<Event>>,
}

impl std::fmt::Debug for Staged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OpenCL run that reads {} buffers", self.places.len())
    }
}

fn start_staged(
    inner: &Arc<Inner>,
    staging: &Staging,
    writes: &[(&Slice, &[u8])],
    recording: &Recording,
    reads: &[&Slice],
) -> Result<Staged> {
    let (to, from) = ranges(inner, writes, reads)?;
    let (up_places, up_bytes) = places(to.iter().map(|(_, bytes)| bytes.len()));
    let (down_places, down_bytes) = places(from.iter().map(Range::len));
    let transfers = staging.transfers(inner)?;
    let mut up = staging.pin(inner, up_bytes)?;
    let down = staging.pin(inner, down_bytes)?;
    let blocks = [staging.device_block(inner, up_bytes)?, staging.device_block(inner, down_bytes)?];
    for ((_, bytes), part) in to.iter().zip(parts_mut(up.bytes_mut(up_bytes), &up_places)) {
        copy(part, bytes);
    }
    let (lane, up_lane) = (inner.lane(), transfers.up(inner));
    let enqueue = || {
        // Which are dropped before the blocks, in the other order.
        let (drain, up_drain) = (Drain::new(lane), Drain::new(up_lane));
        let _order = inner.order.enter()?;
        if up_bytes > 0 {
            let block = blocks[0].memory.raw();
            // SAFETY: `up` is not used again before the run has ended: `up_drain` waits after an error,
            // and `Staged` before it lets go of it. Test: `runs_through_pinned_memory_are_the_same`.
            let uploaded = unsafe { up_lane.write(block, 0, up.bytes(up_bytes), Want::Event, false) }?;
            up_lane.flush()?;
            if let Some(uploaded) = &uploaded {
                lane.await_event(uploaded)?;
            }
            for ((range, bytes), (at, _)) in to.iter().zip(&up_places) {
                if !bytes.is_empty() {
                    lane.copy((block, *at), range.place(), bytes.len(), Want::Nothing)?;
                }
            }
        }
        record::enqueue(inner, recording)?;
        let mut computed = None;
        for (range, (at, length)) in from.iter().zip(&down_places) {
            let block = (blocks[1].memory.raw(), *at);
            computed = lane.copy(range.place(), block, *length, Want::Event)?;
        }
        lane.flush()?;
        drain.done();
        up_drain.done();
        Ok(computed)
    };
    let computed = match enqueue() {
        Ok(computed) => computed,
        Err(error) => {
            let_go(&[lane, up_lane], (up, down, blocks));
            return Err(error);
        }
    };
    Ok(Staged {
        device: Arc::clone(inner),
        transfers,
        pinned: Some([up, down]),
        blocks: Some(blocks),
        places: down_places,
        bytes: down_bytes,
        computed,
    })
}

impl Pending for Staged {
    fn wait(mut self: Box<Self>) -> Result<Box<dyn Readback>> {
        let (transfers, device) = (Arc::clone(&self.transfers), Arc::clone(&self.device));
        let down_lane = transfers.down(&device);
        let (Some(computed), Some([_, down]), Some([_, block])) =
            (&self.computed, &mut self.pinned, &self.blocks)
        else {
            // Nothing is read: the end of all work is this run's as well.
            device.lane().finish()?;
            return Ok(Box::new(Vec::<Vec<u8>>::new()));
        };
        if device.patience.is_limited() {
            device.patience.wait(computed)?;
        }
        down_lane.await_event(computed)?;
        // SAFETY: the read waits; if it fails, the block is dropped behind it in `drop`.
        unsafe { down_lane.read(block.memory.raw(), 0, down.bytes_mut(self.bytes), Want::Nothing, true) }?;
        let (Some(staging), Some([up, down]), Some(blocks)) =
            (&device.staging, self.pinned.take(), self.blocks.take())
        else {
            return Err(Error::Internal("a run without the memory that it began with".to_owned()));
        };
        staging.keep([up], blocks);
        let (bytes, places) = (self.bytes, std::mem::take(&mut self.places));
        Ok(Box::new(InPinned { device: Arc::clone(&device), block: Some(down), bytes, places }))
    }

    fn arrive(self: Box<Self>) -> Awaited<'static, Result<Box<dyn Readback>>> {
        Box::pin(awaited::arrived(Arc::clone(&self.device), self))
    }
}

impl Running for Staged {
    /// What is left after it is a copy to the host.
    fn last(&self) -> Option<&Owned<Event>> {
        self.computed.as_ref()
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if self.pinned.is_none() {
            return;
        }
        // Not waited for, or not with success: what the device may still be copying must outlast it.
        let lanes = [self.transfers.up(&self.device), self.device.lane(), self.transfers.down(&self.device)];
        let_go(&lanes, (self.pinned.take(), self.blocks.take()));
    }
}
