//! `cl_khr_command_buffer`: all launches of a recording as one command, where the device offers it.
//!
//! A recording's kernels are put into a command buffer when it is made, each after the one before,
//! and from then on one call enqueues them all. Whatever the driver refuses, the launches are
//! enqueued one by one as without the extension.
//!
//! The extension is provisional. Its functions are looked up by name, since no loader exports them,
//! and called as declared since version 0.9.0 of the extension.

use super::call::{Kernel, Lane, Owned, failure};
use super::launch::Launch;
use super::{Inner, cl, query};
use crate::device::options::DeviceOptions;
use crate::error::Result;
use cl3::error_codes::{CL_INVALID_OPERATION, CL_SUCCESS};
use cl3::types::{cl_command_queue, cl_device_id, cl_event, cl_int, cl_kernel, cl_uint};
use std::ffi::{CStr, c_void};
use std::ptr;

/// What a device says about the extension (`cl_ext.h`).
const CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR: cl_uint = 0x12A9;
const CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR: cl_uint = 0x12AA;
const CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR: u64 = 1 << 2;
const CL_COMMAND_BUFFER_FLAGS_KHR: u64 = 0x1293;
const CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR: u64 = 1 << 0;

const NAME: &str = "cl_khr_command_buffer";

type Handle = *mut c_void;
type Create = unsafe extern "system" fn(cl_uint, *const cl_command_queue, *const u64, *mut cl_int) -> Handle;
type Launched = unsafe extern "system" fn(
    Handle,
    cl_command_queue,
    *const u64,
    cl_kernel,
    cl_uint,
    *const usize,
    *const usize,
    *const usize,
    cl_uint,
    *const cl_uint,
    *mut cl_uint,
    *mut Handle,
) -> cl_int;
type Enqueue = unsafe extern "system" fn(
    cl_uint,
    *mut cl_command_queue,
    Handle,
    cl_uint,
    *const cl_event,
    *mut cl_event,
) -> cl_int;
type One = unsafe extern "system" fn(Handle) -> cl_int;

/// The extension's functions on one platform.
#[derive(Clone, Copy)]
pub(super) struct Functions {
    create: Create,
    kernel: Launched,
    finalize: One,
    enqueue: Enqueue,
    release: One,
    /// Whether a buffer may be enqueued while it is still running.
    simultaneous: bool,
}

impl Functions {
    /// The functions for `device`, if it offers the extension and asks nothing special of a queue.
    pub(super) fn of(
        runtime: &super::Runtime,
        device: &opencl3::device::Device,
        options: &DeviceOptions,
    ) -> Option<Self> {
        if options.command_buffers == Some(false) {
            return None;
        }
        if !query::extensions(device.id()).ok()?.split_whitespace().any(|name| name == NAME) {
            return None;
        }
        let ask = |what| number(device.id(), what);
        if ask(CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR)? != 0 {
            return None;
        }
        let capabilities = ask(CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR)?;
        let platform = query::platform(device.id()).ok()?;
        let find = |name: &CStr| {
            let found = runtime.clGetExtensionFunctionAddressForPlatform(platform, name.as_ptr());
            found.filter(|address| !address.is_null())
        };
        // SAFETY: the platform gave each address under the name of the function that the type
        // declares, and the device lists the extension. Test: `a_command_buffer_is_the_same_run`.
        unsafe {
            Some(Functions {
                create: std::mem::transmute::<Handle, Create>(find(c"clCreateCommandBufferKHR")?),
                kernel: std::mem::transmute::<Handle, Launched>(find(c"clCommandNDRangeKernelKHR")?),
                finalize: std::mem::transmute::<Handle, One>(find(c"clFinalizeCommandBufferKHR")?),
                enqueue: std::mem::transmute::<Handle, Enqueue>(find(c"clEnqueueCommandBufferKHR")?),
                release: std::mem::transmute::<Handle, One>(find(c"clReleaseCommandBufferKHR")?),
                simultaneous: capabilities & CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR != 0,
            })
        }
    }
}

/// A bit field of the device.
fn number(device: cl_device_id, what: cl_uint) -> Option<u64> {
    let bytes = cl::get_device_data(device, what).ok()?;
    <[u8; 8]>::try_from(bytes).ok().map(u64::from_ne_bytes)
}

/// The launches of a recording as one command.
pub(super) struct CommandBuffer {
    raw: Handle,
    functions: Functions,
}

// SAFETY: the commands are recorded before the buffer is shared; what is called on it afterwards,
// enqueueing and releasing, is thread-safe as all of OpenCL but clSetKernelArg is (OpenCL 1.2,
// appendix A.2). Test: `a_command_buffer_is_the_same_run`.
unsafe impl Send for CommandBuffer {}
// SAFETY: as above.
unsafe impl Sync for CommandBuffer {}

impl CommandBuffer {
    /// Records `launches` for the device's queue; nothing, with a line in the log, if the driver
    /// refuses.
    pub(super) fn of(inner: &Inner, launches: &[Launch]) -> Option<Self> {
        let functions = inner.command_buffers?;
        match Self::record(inner, functions, launches) {
            Ok(buffer) => Some(buffer),
            Err(code) => {
                tracing::debug!("no command buffer: {}", failure("cl_khr_command_buffer", code));
                None
            }
        }
    }

    fn record(inner: &Inner, functions: Functions, launches: &[Launch]) -> std::result::Result<Self, cl_int> {
        let queue = inner.queue.raw();
        let properties = [CL_COMMAND_BUFFER_FLAGS_KHR, CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR, 0];
        let properties = if functions.simultaneous { properties.as_ptr() } else { ptr::null() };
        let mut code = CL_SUCCESS;
        // SAFETY: the queue is live, and the list of properties ends with a zero.
        let raw = unsafe { (functions.create)(1, &raw const queue, properties, &raw mut code) };
        if code != CL_SUCCESS || raw.is_null() {
            return Err(code);
        }
        let buffer = CommandBuffer { raw, functions };
        let mut before: Option<cl_uint> = None;
        for launch in launches {
            let (kernel, global, local): (&Owned<Kernel>, _, _) = launch.parts();
            let mut point: cl_uint = 0;
            let (count, list) = before.as_ref().map_or((0, ptr::null()), |before| (1, ptr::from_ref(before)));
            // SAFETY: the buffer is being recorded; the kernel's arguments are set, to objects that
            // the recording keeps; the extents are three each, and the point to wait for is of
            // this buffer. All are read during the call.
            let code = unsafe {
                (functions.kernel)(
                    raw,
                    ptr::null_mut(),
                    ptr::null(),
                    kernel.raw(),
                    3,
                    ptr::null(),
                    global.as_ptr(),
                    local.as_ptr(),
                    count,
                    list,
                    &raw mut point,
                    ptr::null_mut(),
                )
            };
            if code != CL_SUCCESS {
                return Err(code);
            }
            before = Some(point);
        }
        // SAFETY: the buffer is live and being recorded.
        match unsafe { (functions.finalize)(raw) } {
            CL_SUCCESS => Ok(buffer),
            code => Err(code),
        }
    }

    /// Enqueues all of it. False if the driver does not take it now, as when it is still running
    /// and may not run twice at once: then nothing was enqueued.
    ///
    /// # Errors
    /// If the driver fails otherwise.
    pub(super) fn enqueue(&self, lane: Lane<'_>) -> Result<bool> {
        let mut queue = lane.queue.raw();
        // SAFETY: the buffer is finalized, was recorded for this queue, and its kernels' arguments
        // live as long as the recording that holds it; from here on the driver keeps them.
        let code =
            unsafe { (self.functions.enqueue)(1, &raw mut queue, self.raw, 0, ptr::null(), ptr::null_mut()) };
        match code {
            CL_SUCCESS => Ok(true),
            CL_INVALID_OPERATION => Ok(false),
            code => Err(failure("clEnqueueCommandBufferKHR", code)),
        }
    }
}

impl Drop for CommandBuffer {
    fn drop(&mut self) {
        // SAFETY: the reference was ours since `record`, and is given back only here; OpenCL keeps
        // what is still running.
        let code = unsafe { (self.functions.release)(self.raw) };
        if code != CL_SUCCESS {
            tracing::warn!("{}", failure("clReleaseCommandBufferKHR", code));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::device::opencl::OpenClDevice;
    use crate::device::{Device, Dispatch, Memory};
    use crate::dtype::DType;
    use crate::emit::{Access, Binding, Dialect, Element, Interface, KernelSource, Operand, Param};
    use crate::emit::{ParamType, Scalar};
    use std::sync::Arc;

    /// `dst = factor * dst + 1`: the order of two of them shows.
    fn kernel() -> KernelSource {
        KernelSource {
            label: "advance".to_owned(),
            entry: "advance".to_owned(),
            dialect: Dialect::OpenClC,
            text: "__kernel __attribute__((reqd_work_group_size(16, 1, 1)))
                void advance(__global float* dst, const float factor) {
                    const uint i = get_global_id(0);
                    dst[i] = factor * dst[i] + 1.0f;
                }"
            .to_owned(),
            interface: Interface {
                bindings: vec![Binding::new(Operand::Dst, Element::Scalar(DType::F32), Access::ReadWrite)],
                params: vec![Param { name: "factor", ty: ParamType::F32 }],
            },
            work_group: [16, 1, 1],
        }
    }

    /// What a recording of several steps makes of 0 to 63: run once, then submitted three times in
    /// a row without a wait, then started twice.
    fn results(device: &OpenClDevice) -> Vec<Vec<u8>> {
        let buffer = device.alloc(256, Memory::Device).expect("a buffer");
        // SAFETY: every invocation has an element of each buffer.
        let pipeline = unsafe { device.compile_unchecked(&kernel()) }.expect("a kernel");
        let dispatches: Vec<Dispatch> = [0.5, 2.0, -1.0, 0.25, 3.0]
            .into_iter()
            .map(|factor| Dispatch {
                pipeline: pipeline.clone(),
                resources: vec![(&buffer).into()],
                params: vec![Scalar::F32(factor)],
                groups: [4, 1, 1],
            })
            .collect();
        let recording = device.record(&dispatches).expect("a recording");
        let values: Vec<f32> = (0..64).map(|value| value as f32).collect();
        let bytes: Vec<u8> = bytemuck::cast_slice(&values).to_vec();
        let whole = buffer.whole();
        let mut results = device.run(&[(&whole, &bytes)], &recording, &[&whole]).expect("a run");
        for _ in 0..3 {
            device.submit(&recording).expect("a submission");
        }
        results.push(device.read(&whole).expect("a read"));
        let started: Vec<_> = (0..2)
            .map(|_| device.start(&[(&whole, &bytes)], &recording, &[&whole]).expect("a start"))
            .collect();
        drop((recording, dispatches));
        results.extend(started.into_iter().flat_map(|started| started.finish().expect("a run")));
        results
    }

    #[test]
    fn a_command_buffer_is_the_same_run() {
        let Ok(mut device) = OpenClDevice::open(None) else {
            println!("skipped: no OpenCL device");
            return;
        };
        if device.inner.command_buffers.is_none() {
            println!("skipped: {} has no cl_khr_command_buffer", device.info());
            return;
        }
        let found = results(&device);
        let inner = Arc::get_mut(&mut device.inner).expect("nothing else holds the device");
        inner.command_buffers = None;
        assert_eq!(found, results(&device));
    }
}
