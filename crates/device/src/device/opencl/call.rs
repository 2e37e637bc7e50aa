//! Calls into the OpenCL library: codes become errors, handles release what they own, and
//! commands are enqueued without an event unless one is wanted.

use super::cl;
use super::patience::{Hung, Patience};
use crate::error::{Error, Result};
use cl3::types::{cl_event, cl_int, cl_mem, cl_uint};
use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::ptr;

/// The functions of the loaded library.
pub(super) type Runtime = cl3::OpenClRuntime;

/// What a lost device answers: `CL_DEVICE_NOT_AVAILABLE`, that its queue is none any more, and NVIDIA's code after a
/// fault on the device.
const LOST: [cl_int; 3] = [-2, -36, -9999];

/// What a driver answers that has no memory for objects of its own: `CL_MEM_OBJECT_ALLOCATION_FAILURE` and
/// `CL_OUT_OF_HOST_MEMORY`.
const NO_MEMORY: [cl_int; 2] = [-4, -6];

/// `CL_OUT_OF_RESOURCES`: no memory where an object is made. Of commands it is said of a kernel's faults too.
const NO_RESOURCES: cl_int = -5;

/// How often a driver is asked to wait if it fails to.
const ATTEMPTS: usize = 3;

/// The error for a call that returned `code`.
pub(super) fn failure(call: &'static str, code: cl_int) -> Error {
    let message = format!("{} ({code})", cl3::error_codes::error_text(code));
    let api = "OpenCL";
    if LOST.contains(&code) {
        Error::DeviceLost { api, reason: format!("{call}: {message}") }
    } else if is_out_of_memory(call, code) {
        Error::OutOfMemory { api, call, message }
    } else {
        Error::Driver { api, call, message }
    }
}

/// Whether `code` of the function `call` says that there is no memory.
fn is_out_of_memory(call: &str, code: cl_int) -> bool {
    NO_MEMORY.contains(&code) || (code == NO_RESOURCES && call.starts_with("clCreate"))
}

/// `result` of the function `call`, its code as an error.
pub(super) fn check<T>(call: &'static str, result: std::result::Result<T, cl_int>) -> Result<T> {
    result.map_err(|code| failure(call, code))
}

/// `bytes` as the platform counts them.
pub(super) fn size(bytes: u64) -> Result<usize> {
    usize::try_from(bytes).map_err(|_| {
        Error::unsupported(format!("{bytes} bytes"), format!("the host addresses {} bits", usize::BITS))
    })
}

/// A kind of object that OpenCL counts references to.
pub(super) trait Kind {
    /// The function that gives a reference back.
    const RELEASE: &'static str;

    /// Gives one reference back.
    ///
    /// # Safety
    /// `raw` is of this kind, and the reference is the caller's to give.
    unsafe fn release(raw: *mut c_void) -> std::result::Result<(), cl_int>;
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident: $release:path, $name:literal;)*) => {$(
        $(#[$doc])*
        pub(super) enum $kind {}

        impl Kind for $kind {
            const RELEASE: &'static str = $name;

            unsafe fn release(raw: *mut c_void) -> std::result::Result<(), cl_int> {
                // SAFETY: promised by the caller.
                unsafe { $release(raw) }
            }
        }
    )*};
}

kinds! {
    /// A context.
    Context: cl::release_context, "clReleaseContext";
    /// A command queue.
    Queue: cl::release_command_queue, "clReleaseCommandQueue";
    /// A buffer, sub-buffer or image.
    Memory: cl::release_mem_object, "clReleaseMemObject";
    /// A built program.
    Program: cl::release_program, "clReleaseProgram";
    /// A kernel.
    Kernel: cl::release_kernel, "clReleaseKernel";
    /// The completion of one command.
    Event: cl::release_event, "clReleaseEvent";
}

/// One reference to an OpenCL object, given back when dropped.
///
/// opencl3's own handles panic when a release fails, as it does once a device is lost; this one
/// logs it.
pub(super) struct Owned<K: Kind> {
    raw: *mut c_void,
    /// Whether its device has come to no end.
    hung: Hung,
    kind: PhantomData<K>,
}

// SAFETY: OpenCL objects may be used from any thread, and all calls on them but clSetKernelArg are
// thread-safe (OpenCL 1.2, appendix A.2). Kernel arguments are set only before a kernel is shared.
// Test: `two_threads_share_a_device`.
unsafe impl<K: Kind> Send for Owned<K> {}
// SAFETY: as above.
unsafe impl<K: Kind> Sync for Owned<K> {}

impl<K: Kind> Owned<K> {
    /// Takes over one reference to an object of a device that may be `hung`.
    ///
    /// # Safety
    /// `raw` is a live object of this kind, and nobody else gives this reference back.
    pub(super) unsafe fn new(raw: *mut c_void, hung: Hung) -> Self {
        Owned { raw, hung, kind: PhantomData }
    }

    /// What says whether its device has come to no end.
    pub(super) fn hung(&self) -> Hung {
        self.hung
    }

    /// The handle, valid while `self` is.
    pub(super) fn raw(&self) -> *mut c_void {
        self.raw
    }
}

impl<K: Kind> Drop for Owned<K> {
    fn drop(&mut self) {
        // NVIDIA's driver waits for the device where memory is released.
        if self.hung.is_now() {
            return;
        }
        // SAFETY: the reference is ours by `new`'s contract, and given back only here.
        if let Err(code) = unsafe { K::release(self.raw) } {
            tracing::warn!("{}: {}", K::RELEASE, failure(K::RELEASE, code));
        }
    }
}

impl<K: Kind> fmt::Debug for Owned<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:p}", self.raw)
    }
}

/// A queue to enqueue on.
#[derive(Clone, Copy)]
pub(super) struct Lane<'a> {
    pub(super) runtime: &'a Runtime,
    pub(super) queue: &'a Owned<Queue>,
    pub(super) patience: &'a Patience,
}

/// Whether an event for the command is wanted. Events cost time in the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Want {
    Nothing,
    Event,
}

impl Lane<'_> {
    /// Runs `enqueue` with a place for the event, if one is wanted.
    fn enqueue(
        self,
        call: &'static str,
        want: Want,
        enqueue: impl FnOnce(&Runtime, *mut c_void, *mut cl_event) -> Option<cl_int>,
    ) -> Result<Option<Owned<Event>>> {
        let mut event: cl_event = ptr::null_mut();
        let place = if want == Want::Event { &raw mut event } else { ptr::null_mut() };
        match enqueue(self.runtime, self.queue.raw(), place) {
            Some(cl3::error_codes::CL_SUCCESS) => {}
            Some(code) => return Err(failure(call, code)),
            None => return Err(failure(call, cl3::error_codes::DLOPEN_FUNCTION_NOT_AVAILABLE)),
        }
        // SAFETY: a successful call stored an event whose reference is ours.
        Ok((!event.is_null()).then(|| unsafe { Owned::new(event, self.queue.hung()) }))
    }

    /// Enqueues one kernel.
    ///
    /// # Safety
    /// All the kernel's arguments are set to live objects of the queue's context.
    pub(super) unsafe fn kernel(
        self,
        kernel: &Owned<Kernel>,
        global: [usize; 3],
        local: [usize; 3],
        want: Want,
    ) -> Result<Option<Owned<Event>>> {
        self.enqueue("clEnqueueNDRangeKernel", want, |runtime, queue, event| {
            runtime.clEnqueueNDRangeKernel(
                queue,
                kernel.raw(),
                3,
                ptr::null(),
                global.as_ptr(),
                local.as_ptr(),
                0,
                ptr::null(),
                event,
            )
        })
    }

    /// Enqueues a copy from `bytes` to `memory`; returns once it is done if `blocking`.
    ///
    /// # Safety
    /// Unless `blocking`, `bytes` stay as they are until the command has completed. The range lies
    /// within `memory`.
    pub(super) unsafe fn write(
        self,
        memory: cl_mem,
        offset: usize,
        bytes: &[u8],
        want: Want,
        blocking: bool,
    ) -> Result<Option<Owned<Event>>> {
        if blocking {
            self.settle()?;
        }
        self.enqueue("clEnqueueWriteBuffer", want, |runtime, queue, event| {
            runtime.clEnqueueWriteBuffer(
                queue,
                memory,
                cl_uint::from(blocking),
                offset,
                bytes.len(),
                bytes.as_ptr().cast(),
                0,
                ptr::null(),
                event,
            )
        })
    }

    /// Enqueues the filling of the first `bytes` bytes of `memory`, whole words, with zeros.
    pub(super) fn clear(self, memory: &Owned<Memory>, bytes: usize) -> Result<()> {
        let zero = 0u32;
        self.enqueue("clEnqueueFillBuffer", Want::Nothing, |runtime, queue, event| {
            runtime.clEnqueueFillBuffer(
                queue,
                memory.raw(),
                ptr::from_ref(&zero).cast(),
                size_of_val(&zero),
                0,
                bytes,
                0,
                ptr::null(),
                event,
            )
        })
        .map(|_| ())
    }

    /// Enqueues a copy of `bytes` bytes from a place in a buffer to one in another.
    pub(super) fn copy(
        self,
        from: (cl_mem, usize),
        to: (cl_mem, usize),
        bytes: usize,
        want: Want,
    ) -> Result<Option<Owned<Event>>> {
        self.enqueue("clEnqueueCopyBuffer", want, |runtime, queue, event| {
            runtime.clEnqueueCopyBuffer(queue, from.0, to.0, from.1, to.1, bytes, 0, ptr::null(), event)
        })
    }

    /// Waits until `after` has completed, in this queue and not on the host: what is enqueued from now
    /// on comes behind it.
    pub(super) fn await_event(self, after: &Owned<Event>) -> Result<()> {
        let after = [after.raw()];
        self.enqueue("clEnqueueBarrierWithWaitList", Want::Nothing, |runtime, queue, event| {
            runtime.clEnqueueBarrierWithWaitList(queue, 1, after.as_ptr(), event)
        })
        .map(|_| ())
    }

    /// Enqueues a copy from `memory` to `bytes`; returns once it is done if `blocking`.
    ///
    /// # Safety
    /// Unless `blocking`, nobody uses `bytes` until the command has completed. The range lies
    /// within `memory`.
    pub(super) unsafe fn read(
        self,
        memory: cl_mem,
        offset: usize,
        bytes: &mut [u8],
        want: Want,
        blocking: bool,
    ) -> Result<Option<Owned<Event>>> {
        if blocking {
            self.settle()?;
        }
        self.enqueue("clEnqueueReadBuffer", want, |runtime, queue, event| {
            runtime.clEnqueueReadBuffer(
                queue,
                memory,
                cl_uint::from(blocking),
                offset,
                bytes.len(),
                bytes.as_mut_ptr().cast(),
                0,
                ptr::null(),
                event,
            )
        })
    }

    /// The completion of all that was enqueued, handed to the device.
    pub(super) fn marker(self) -> Result<Owned<Event>> {
        const CALL: &str = "clEnqueueMarkerWithWaitList";
        let marker = self.enqueue(CALL, Want::Event, |runtime, queue, event| {
            runtime.clEnqueueMarkerWithWaitList(queue, 0, ptr::null(), event)
        })?;
        self.flush()?;
        marker.ok_or_else(|| failure(CALL, cl3::error_codes::CL_INVALID_EVENT))
    }

    /// Hands what was enqueued to the device.
    pub(super) fn flush(self) -> Result<()> {
        check("clFlush", cl::flush(self.queue.raw()))
    }

    /// Waits for all that was enqueued.
    pub(super) fn finish(self) -> Result<()> {
        self.settle()?;
        check("clFinish", cl::finish(self.queue.raw()))
    }

    /// Where waits have a limit, waits within it for all that was enqueued: before a call that blocks without one.
    pub(super) fn settle(self) -> Result<()> {
        if self.patience.is_limited() { self.patience.wait(&self.marker()?) } else { Ok(()) }
    }

    /// Waits for everything that was enqueued, before memory is freed that the device may still copy from or to, and
    /// gives whether it does so no more. A driver that is short of memory for a moment is asked again; a device that is
    /// lost copies no more.
    #[must_use]
    pub(super) fn drain(self) -> bool {
        let limited = self.patience.is_limited();
        let settled = || if limited { self.patience.wait_again(&self.marker()?) } else { Ok(()) };
        for _ in 0..ATTEMPTS {
            match settled().and_then(|()| check("clFinish", cl::finish(self.queue.raw()))) {
                Ok(()) => return true,
                Err(error) => {
                    tracing::warn!("{error}");
                    match error {
                        Error::DeviceLost { .. } => return true,
                        Error::TimedOut { .. } => return false,
                        _ => {}
                    }
                }
            }
        }
        false
    }

    /// Waits until `event`, or all that was enqueued where there is none, has completed.
    pub(super) fn wait(self, event: Option<&Owned<Event>>) -> Result<()> {
        match event {
            Some(event) => self.patience.wait(event),
            None => self.finish(),
        }
    }
}

/// Waits until `event` has completed.
pub(super) fn wait_for(event: &Owned<Event>) -> Result<()> {
    check("clWaitForEvents", cl::wait_for_event(event.raw()))
}

impl Owned<Event> {
    /// Another reference to the same event.
    pub(super) fn retained(&self) -> Result<Self> {
        // SAFETY: the event is live; the reference that is taken is given back by the new handle. Test:
        // `a_run_can_be_awaited`.
        unsafe {
            check("clRetainEvent", cl::retain_event(self.raw))?;
            Ok(Owned::new(self.raw, self.hung))
        }
    }
}
