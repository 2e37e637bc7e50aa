//! Kernels with their arguments set, submitted as often as wanted, and timed.

use super::call::{Event, Kernel, Owned, Want, check, failure};
use super::command_buffer::CommandBuffer;
use super::launch::Launch;
use super::memory::{bind, raw_buffer, raw_image};
use super::part::ArgumentMemory;
use super::patience::Drain;
use super::{Inner, cl};
use crate::device::{Dispatch, Recording, Resource, Slice, handle};
use crate::emit::{Access, Binding};
use crate::error::{Error, Result};
use crate::limits::faults::Quirk;
use cl3::event::{CL_PROFILING_COMMAND_END, CL_PROFILING_COMMAND_START};
use cl3::types::cl_mem;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

/// Dispatches, and the device they belong to.
#[derive(Clone)]
pub(crate) struct RawRecording {
    /// First, so that it is released before the kernels in it.
    commands: Option<Arc<CommandBuffer>>,
    launches: Arc<[Launch]>,
    /// Behind the kernels that are given them: setting an argument does not retain it.
    _memory: Arc<Held>,
    device: Arc<Inner>,
}

/// What the kernels were given.
struct Held(Vec<ArgumentMemory>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.drain(..).for_each(ArgumentMemory::release);
    }
}

impl std::fmt::Debug for RawRecording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OpenCL recording of {} dispatches", self.launches.len())
    }
}

pub(super) fn record(inner: &Arc<Inner>, dispatches: &[Dispatch]) -> Result<RawRecording> {
    let mut held = Held(Vec::new());
    let mut launches = Vec::with_capacity(dispatches.len());
    for dispatch in dispatches {
        launches.push(launch(inner, dispatch, &mut held.0)?);
    }
    let commands = CommandBuffer::of(inner, &launches).map(Arc::new);
    Ok(RawRecording {
        commands,
        launches: launches.into(),
        _memory: Arc::new(held),
        device: Arc::clone(inner),
    })
}

fn launch(inner: &Inner, dispatch: &Dispatch, held: &mut Vec<ArgumentMemory>) -> Result<Launch> {
    dispatch.check()?;
    let pipeline = match &dispatch.pipeline.raw {
        handle::RawPipeline::OpenCl(raw) if raw.is_of(inner) => raw,
        _ => return Err(inner.foreign("kernel")),
    };
    check_aliases(inner, dispatch)?;
    let kernel = pipeline.kernel()?;
    let (global, local) = extents(inner, dispatch)?;
    let mut index = 0;
    for resource in &dispatch.resources {
        let object = match resource {
            Resource::Image(image) => raw_image(inner, image)?,
            Resource::Buffer(slice) => bind(inner, slice)?,
        };
        let raw: cl_mem = object.memory().raw();
        set_argument(&kernel, index, size_of::<cl_mem>(), ptr::from_ref(&raw).cast())?;
        held.push(object);
        index += 1;
    }
    for value in &dispatch.params {
        let bytes = value.bytes();
        set_argument(&kernel, index, bytes.len(), bytes.as_ptr().cast())?;
        index += 1;
    }
    for &binding in pipeline.lengths() {
        let length = elements(dispatch, binding)?;
        set_argument(&kernel, index, size_of_val(&length), ptr::from_ref(&length).cast())?;
        index += 1;
    }
    Ok(Launch { kernel, global, local })
}

/// Refuses arguments that share memory of which one is written: kernels assume that none do.
fn check_aliases(inner: &Inner, dispatch: &Dispatch) -> Result<()> {
    let mut earlier: Vec<(&Binding, usize, &Slice)> = Vec::new();
    for (binding, resource) in dispatch.pipeline.interface.bindings.iter().zip(&dispatch.resources) {
        let Resource::Buffer(slice) = resource else { continue };
        let address = raw_buffer(inner, &slice.buffer)?.address();
        let clash = earlier.iter().find(|(other, other_address, other_slice)| {
            *other_address == address
                && slice.offset < other_slice.offset + other_slice.bytes
                && other_slice.offset < slice.offset + slice.bytes
                && (binding.access != Access::Read || other.access != Access::Read)
        });
        if let Some((other, ..)) = clash {
            let names = format!("{} and {}", other.operand.name(), binding.operand.name());
            let reason = format!("{names} overlap in one buffer, and one of them is written");
            return Err(Error::Reject { kernel: dispatch.pipeline.label.clone(), reason });
        }
        earlier.push((binding, address, slice));
    }
    Ok(())
}

/// Whole elements in what a dispatch gives the binding at `index`.
fn elements(dispatch: &Dispatch, index: u32) -> Result<u32> {
    let index = index as usize;
    let (bindings, resources) = (&dispatch.pipeline.interface.bindings, &dispatch.resources);
    match (bindings.get(index), resources.get(index)) {
        (Some(binding), Some(Resource::Buffer(slice))) => {
            let elements = slice.bytes / binding.element.bytes() as u64;
            // What lies beyond an index of 32 bits is not reached.
            Ok(u32::try_from(elements).unwrap_or(u32::MAX))
        }
        _ => Err(Error::Internal(format!("{} has no buffer at {index}", dispatch.pipeline.label))),
    }
}

fn set_argument(
    kernel: &Owned<Kernel>,
    index: u32,
    bytes: usize,
    value: *const std::ffi::c_void,
) -> Result<()> {
    // SAFETY: `value` points to `bytes` live bytes, which are copied, and the kernel is not shared
    // yet. `compile` checked that the kernel's arguments are those of its interface, and
    // `Dispatch::check` that these are of the interface. Test: `saxpy_runs`.
    check("clSetKernelArg", unsafe { cl::set_kernel_arg(kernel.raw(), index, bytes, value) })
}

/// Invocations along x, y and z, and those of one work-group.
fn extents(inner: &Inner, dispatch: &Dispatch) -> Result<([usize; 3], [usize; 3])> {
    let mut global = [0; 3];
    let mut local = [0; 3];
    let sizes = dispatch.groups.into_iter().zip(dispatch.pipeline.work_group);
    for ((groups, work_group), (global, local)) in sizes.zip(global.iter_mut().zip(&mut local)) {
        let invocations = u64::from(groups) * u64::from(work_group);
        let addressable = inner.address_bits >= 64 || invocations >> inner.address_bits == 0;
        match (usize::try_from(invocations), usize::try_from(work_group)) {
            (Ok(invocations), Ok(work_group)) if invocations > 0 && addressable => {
                *global = invocations;
                *local = work_group;
            }
            _ => {
                return Err(Error::input(
                    format!("kernel {}", dispatch.pipeline.label),
                    format!("{:?} work-groups of {:?}", dispatch.groups, dispatch.pipeline.work_group),
                    format!("at least 1, with invocations that {} bits count", inner.address_bits),
                ));
            }
        }
    }
    Ok((global, local))
}

/// A recording that was made for `inner`.
fn raw<'a>(inner: &Inner, recording: &'a Recording) -> Result<&'a RawRecording> {
    match &recording.raw {
        handle::RawRecording::OpenCl(raw) if ptr::eq(Arc::as_ptr(&raw.device), inner) => Ok(raw),
        _ => Err(inner.foreign("recording")),
    }
}

pub(super) fn submit(inner: &Inner, recording: &Recording) -> Result<()> {
    let _order = inner.order.enter()?;
    enqueue(inner, recording)?;
    inner.lane().flush()
}

/// Enqueues a recording, by one call where it may be. To be called with the order held.
pub(super) fn enqueue(inner: &Inner, recording: &Recording) -> Result<()> {
    let lane = inner.lane();
    let raw = raw(inner, recording)?;
    if let Some(commands) = &raw.commands
        && commands.enqueue(lane)?
    {
        return Ok(());
    }
    for launch in raw.launches.iter() {
        launch.enqueue(lane, Want::Nothing)?;
    }
    Ok(())
}

pub(super) fn time(inner: &Inner, recording: &Recording) -> Result<Vec<Duration>> {
    let launches = &raw(inner, recording)?.launches;
    // How many launches may be in flight; see the quirks.
    let period = if inner.info.limits.faults.has(Quirk::UnreliableEvents) {
        1
    } else if inner.info.limits.faults.has(Quirk::WaitEveryEighthEvent) {
        8
    } else {
        usize::MAX
    };
    let _order = inner.order.enter()?;
    // Two queues know nothing of each other, so each waits for the other.
    inner.lane().finish()?;
    inner.with_timing_lane(|lane| {
        let drain = Drain::new(lane);
        let mut events = Vec::with_capacity(launches.len());
        for (index, launch) in launches.iter().enumerate() {
            let event = launch.enqueue(lane, Want::Event)?;
            if (index + 1).is_multiple_of(period) {
                lane.wait(event.as_ref())?;
            }
            events.push(event);
        }
        lane.finish()?;
        drain.done();
        events.iter().map(|event| elapsed(event.as_ref())).collect()
    })
}

/// Time from start to end of a completed command, in the device's nanoseconds.
fn elapsed(event: Option<&Owned<Event>>) -> Result<Duration> {
    const CALL: &str = "clGetEventProfilingInfo";
    let no_clock = |message: String| Error::Driver { api: "OpenCL", call: CALL, message };
    let Some(event) = event else {
        return Err(no_clock("the command has no event".to_owned()));
    };
    let ask = |what| {
        let bytes = cl::get_event_profiling_data(event.raw(), what);
        let bytes = bytes.map_err(|code| failure(CALL, code))?;
        let count = bytes.len();
        <[u8; 8]>::try_from(bytes)
            .map(u64::from_ne_bytes)
            .map_err(|_| no_clock(format!("{count} bytes instead of 8")))
    };
    let (start, end) = (ask(CL_PROFILING_COMMAND_START)?, ask(CL_PROFILING_COMMAND_END)?);
    match end.checked_sub(start) {
        Some(nanoseconds) => Ok(Duration::from_nanos(nanoseconds)),
        None => Err(no_clock(format!("the command started at {start} ns and ended at {end} ns"))),
    }
}
