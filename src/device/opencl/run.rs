//! Inputs, a recording and outputs with one wait.

use super::call::{Drain, Event, Owned, Want};
use super::memory::Range;
use super::{Inner, record};
use crate::device::{Pending, Recording, Slice};
use crate::error::Result;
use std::sync::Arc;

/// How the end of a run is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The last read returns when it is done. Drivers watch closely there, and are slow to tell of an
    /// event: on an H200 waiting for one took 10 to 140 us longer at the median.
    Read,
    /// By an event, waited for later.
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
    outputs: &mut [Vec<u8>],
    end: End,
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
        let want = if is_last && end == End::Event { Want::Event } else { Want::Nothing };
        // SAFETY: promised by the caller.
        last = unsafe { range.read(lane, output, want, is_last && end == End::Read) }?;
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

pub(super) fn run(
    inner: &Inner,
    writes: &[(&Slice, &[u8])],
    recording: &Recording,
    reads: &[&Slice],
) -> Result<Vec<Vec<u8>>> {
    let (to, from) = ranges(inner, writes, reads)?;
    let mut outputs: Vec<Vec<u8>> = from.iter().map(Range::host_copy).collect();
    let drain = Drain::new(inner.lane());
    // SAFETY: the bytes are borrowed until this function returns, `outputs` outlast `drain`, and
    // `drain` waits for the commands on every way out but that on which a read has waited.
    unsafe { enqueue(inner, &to, recording, &from, &mut outputs, End::Read) }?;
    if from.is_empty() {
        inner.lane().finish()?;
    }
    drain.done();
    Ok(outputs)
}

/// A run under way, with the memory that the driver copies from and to.
pub(super) struct Started {
    device: Arc<Inner>,
    /// Copies of the inputs, which the driver may still be reading.
    _inputs: Vec<Vec<u8>>,
    outputs: Vec<Vec<u8>>,
    last: Option<Owned<Event>>,
    arrived: bool,
}

impl std::fmt::Debug for Started {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OpenCL run that reads {} buffers", self.outputs.len())
    }
}

pub(super) fn start(
    inner: &Arc<Inner>,
    writes: &[(&Slice, &[u8])],
    recording: &Recording,
    reads: &[&Slice],
) -> Result<Started> {
    let inputs: Vec<Vec<u8>> = writes.iter().map(|(_, bytes)| bytes.to_vec()).collect();
    let mut outputs: Vec<Vec<u8>> = reads.iter().map(|slice| vec![0; slice.bytes as usize]).collect();
    let last = {
        let copied: Vec<(&Slice, &[u8])> =
            writes.iter().zip(&inputs).map(|((slice, _), bytes)| (*slice, bytes.as_slice())).collect();
        let (to, from) = ranges(inner, &copied, reads)?;
        let drain = Drain::new(inner.lane());
        // SAFETY: after an error `drain` waits, and both outlast it. Otherwise `Started` owns them,
        // whose buffers do not move with it, and waits before it lets go of them.
        let last = unsafe { enqueue(inner, &to, recording, &from, &mut outputs, End::Event) }?;
        drain.done();
        last
    };
    Ok(Started { device: Arc::clone(inner), _inputs: inputs, outputs, last, arrived: false })
}

impl Pending for Started {
    fn finish(mut self: Box<Self>) -> Result<Vec<Vec<u8>>> {
        self.device.lane().wait(self.last.as_ref())?;
        self.arrived = true;
        Ok(std::mem::take(&mut self.outputs))
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if !self.arrived
            && let Err(error) = self.device.lane().wait(self.last.as_ref())
        {
            tracing::warn!("{error}");
        }
    }
}
