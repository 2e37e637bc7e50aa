//! The functions of the OpenCL library that was found, as `cl3` has them under the same names.
//!
//! `cl3` loads a library of one name, or of a path in an environment variable. A library is part of a process whose
//! environment other threads may read, so it is left as it is: these functions call what [`super::loader`] has opened.

use super::call::Runtime;
use super::loader;
use cl3::error_codes::{
    CL_DEVICE_NOT_FOUND, CL_INVALID_VALUE, CL_SUCCESS, DLOPEN_FUNCTION_NOT_AVAILABLE,
    DLOPEN_RUNTIME_LOAD_FAILED,
};
use cl3::types::{
    cl_bool, cl_command_queue, cl_context, cl_device_id, cl_event, cl_int, cl_kernel, cl_mem, cl_platform_id,
    cl_program, cl_uint,
};
use std::ffi::{CStr, c_void};
use std::ptr;

/// What a function gives, or its code.
type Answer<T> = std::result::Result<T, cl_int>;

fn runtime() -> Answer<&'static Runtime> {
    loader::loaded().map(|loaded| loaded.runtime).ok_or(DLOPEN_RUNTIME_LOAD_FAILED)
}

/// Whether a call succeeded, which the library may not have.
fn done(code: Option<cl_int>) -> Answer<()> {
    match code {
        Some(CL_SUCCESS) => Ok(()),
        Some(code) => Err(code),
        None => Err(DLOPEN_FUNCTION_NOT_AVAILABLE),
    }
}

/// What a call makes that stores its code.
fn made<T>(make: impl FnOnce(&Runtime, *mut cl_int) -> Option<T>) -> Answer<T> {
    let mut code = CL_INVALID_VALUE;
    let made = make(runtime()?, &raw mut code).ok_or(DLOPEN_FUNCTION_NOT_AVAILABLE)?;
    done(Some(code)).map(|()| made)
}

/// The bytes of an answer, whose length is asked for first.
fn data(ask: impl Fn(&Runtime, usize, *mut c_void, *mut usize) -> Option<cl_int>) -> Answer<Vec<u8>> {
    let runtime = runtime()?;
    let mut length = 0;
    done(ask(runtime, 0, ptr::null_mut(), &raw mut length))?;
    let mut bytes = vec![0; length];
    if length > 0 {
        done(ask(runtime, length, bytes.as_mut_ptr().cast(), ptr::null_mut()))?;
    }
    Ok(bytes)
}

/// Handles, whose number is asked for first.
fn handles(
    ask: impl Fn(&Runtime, cl_uint, *mut *mut c_void, *mut cl_uint) -> Option<cl_int>,
) -> Answer<Vec<*mut c_void>> {
    let runtime = runtime()?;
    let mut count = 0;
    done(ask(runtime, 0, ptr::null_mut(), &raw mut count))?;
    let mut handles = vec![ptr::null_mut(); count as usize];
    if count > 0 {
        done(ask(runtime, count, handles.as_mut_ptr(), ptr::null_mut()))?;
    }
    Ok(handles)
}

macro_rules! queries {
    ($($name:ident: $function:ident($($handle:ident: $ty:ty),+);)*) => {$(
        /// The bytes of an answer.
        pub(super) fn $name($($handle: $ty,)+ what: cl_uint) -> Answer<Vec<u8>> {
            data(|runtime, length, bytes, written| runtime.$function($($handle,)+ what, length, bytes, written))
        }
    )*};
}

queries! {
    get_platform_data: clGetPlatformInfo(platform: cl_platform_id);
    get_device_data: clGetDeviceInfo(device: cl_device_id);
    get_command_queue_data: clGetCommandQueueInfo(queue: cl_command_queue);
    get_mem_object_data: clGetMemObjectInfo(memory: cl_mem);
    get_image_data: clGetImageInfo(image: cl_mem);
    get_program_data: clGetProgramInfo(program: cl_program);
    get_program_build_data: clGetProgramBuildInfo(program: cl_program, device: cl_device_id);
    get_kernel_data: clGetKernelInfo(kernel: cl_kernel);
    get_kernel_arg_data: clGetKernelArgInfo(kernel: cl_kernel, index: cl_uint);
    get_kernel_work_group_data: clGetKernelWorkGroupInfo(kernel: cl_kernel, device: cl_device_id);
    get_event_data: clGetEventInfo(event: cl_event);
    get_event_profiling_data: clGetEventProfilingInfo(event: cl_event);
}

macro_rules! commands {
    ($($(#[$doc:meta])* $name:ident: $function:ident($($argument:ident: $ty:ty),+);)*) => {$(
        $(#[$doc])*
        pub(super) fn $name($($argument: $ty),+) -> Answer<()> {
            done(runtime()?.$function($($argument),+))
        }
    )*};
}

commands! {
    /// Hands what was enqueued to the device.
    flush: clFlush(queue: cl_command_queue);
    /// Waits for what was enqueued.
    finish: clFinish(queue: cl_command_queue);
}

macro_rules! references {
    ($($name:ident: $function:ident;)*) => {$(
        /// Takes a reference, or gives it back.
        ///
        /// # Safety
        /// `raw` is a live object of the function's kind; a reference that is given back is the caller's.
        pub(super) unsafe fn $name(raw: *mut c_void) -> Answer<()> {
            done(runtime()?.$function(raw))
        }
    )*};
}

references! {
    retain_context: clRetainContext;
    release_context: clReleaseContext;
    retain_command_queue: clRetainCommandQueue;
    release_command_queue: clReleaseCommandQueue;
    retain_mem_object: clRetainMemObject;
    release_mem_object: clReleaseMemObject;
    release_program: clReleaseProgram;
    release_kernel: clReleaseKernel;
    retain_event: clRetainEvent;
    release_event: clReleaseEvent;
}

pub(super) fn get_platform_ids() -> Answer<Vec<cl_platform_id>> {
    handles(|runtime, count, handles, found| runtime.clGetPlatformIDs(count, handles, found))
}

/// The devices of a platform, of which there may be none.
pub(super) fn get_device_ids(platform: cl_platform_id, kind: u64) -> Answer<Vec<cl_device_id>> {
    match handles(|runtime, count, handles, found| {
        runtime.clGetDeviceIDs(platform, kind, count, handles, found)
    }) {
        Err(CL_DEVICE_NOT_FOUND) => Ok(Vec::new()),
        answer => answer,
    }
}

pub(super) fn create_context(device: cl_device_id) -> Answer<cl_context> {
    made(|runtime, code| {
        runtime.clCreateContext(ptr::null(), 1, &raw const device, None, ptr::null_mut(), code)
    })
}

/// # Safety
/// The device is of the context.
pub(super) unsafe fn create_command_queue(
    context: cl_context,
    device: cl_device_id,
    properties: u64,
) -> Answer<cl_command_queue> {
    made(|runtime, code| runtime.clCreateCommandQueue(context, device, properties, code))
}

/// # Safety
/// The context is live, and `host` is null or as large as the flags want it.
pub(super) unsafe fn create_buffer(
    context: cl_context,
    flags: u64,
    bytes: usize,
    host: *mut c_void,
) -> Answer<cl_mem> {
    made(|runtime, code| runtime.clCreateBuffer(context, flags, bytes, host, code))
}

/// # Safety
/// What [`create_buffer`] asks for, and the properties end in 0.
pub(super) unsafe fn create_buffer_with_properties(
    context: cl_context,
    properties: *const u64,
    flags: u64,
    bytes: usize,
    host: *mut c_void,
) -> Answer<cl_mem> {
    made(|runtime, code| runtime.clCreateBufferWithProperties(context, properties, flags, bytes, host, code))
}

/// # Safety
/// The buffer is live, and `info` is what `kind` wants.
pub(super) unsafe fn create_sub_buffer(
    buffer: cl_mem,
    flags: u64,
    kind: cl_uint,
    info: *const c_void,
) -> Answer<cl_mem> {
    made(|runtime, code| runtime.clCreateSubBuffer(buffer, flags, kind, info, code))
}

/// # Safety
/// What [`create_buffer`] asks for; format and shape are live and complete.
pub(super) unsafe fn create_image(
    context: cl_context,
    flags: u64,
    format: *const cl3::memory::cl_image_format,
    shape: *const cl3::memory::cl_image_desc,
    host: *mut c_void,
) -> Answer<cl_mem> {
    made(|runtime, code| runtime.clCreateImage(context, flags, format, shape, host, code))
}

pub(super) fn create_program_with_source(context: cl_context, text: &str) -> Answer<cl_program> {
    let (begin, length) = (text.as_ptr().cast(), text.len());
    made(|runtime, code| {
        runtime.clCreateProgramWithSource(context, 1, &raw const begin, &raw const length, code)
    })
}

/// # Safety
/// The binary is one for this device.
pub(super) unsafe fn create_program_with_binary(
    context: cl_context,
    device: cl_device_id,
    binary: &[u8],
) -> Answer<cl_program> {
    let (begin, length, mut own) = (binary.as_ptr(), binary.len(), CL_SUCCESS);
    made(|runtime, code| {
        let (device, length, own) = (&raw const device, &raw const length, &raw mut own);
        runtime.clCreateProgramWithBinary(context, 1, device, length, &raw const begin, own, code)
    })
}

pub(super) fn build_program(program: cl_program, device: cl_device_id, options: &CStr) -> Answer<()> {
    done(runtime()?.clBuildProgram(program, 1, &raw const device, options.as_ptr(), None, ptr::null_mut()))
}

/// What the driver made of a program of one device.
pub(super) fn get_program_binary(program: cl_program) -> Answer<Vec<u8>> {
    use cl3::program::{CL_PROGRAM_BINARIES, CL_PROGRAM_BINARY_SIZES};
    let lengths = get_program_data(program, CL_PROGRAM_BINARY_SIZES)?;
    let [length] = *lengths.as_chunks().0 else { return Ok(Vec::new()) };
    let mut binary = vec![0u8; usize::from_ne_bytes(length)];
    let mut begin = binary.as_mut_ptr();
    let (begins, size) = ((&raw mut begin).cast(), size_of_val(&begin));
    done(runtime()?.clGetProgramInfo(program, CL_PROGRAM_BINARIES, size, begins, ptr::null_mut()))?;
    Ok(binary)
}

pub(super) fn create_kernel(program: cl_program, entry: &CStr) -> Answer<cl_kernel> {
    made(|runtime, code| runtime.clCreateKernel(program, entry.as_ptr(), code))
}

/// # Safety
/// `value` points to `bytes` bytes of what the argument is, or is null for local memory.
pub(super) unsafe fn set_kernel_arg(
    kernel: cl_kernel,
    index: cl_uint,
    bytes: usize,
    value: *const c_void,
) -> Answer<()> {
    done(runtime()?.clSetKernelArg(kernel, index, bytes, value))
}

pub(super) fn wait_for_event(event: cl_event) -> Answer<()> {
    done(runtime()?.clWaitForEvents(1, &raw const event))
}

/// # Safety
/// `mapped` is what mapping the object on this queue gave, and is given back once.
pub(super) unsafe fn enqueue_unmap_mem_object(
    queue: cl_command_queue,
    memory: cl_mem,
    mapped: *mut c_void,
) -> Answer<cl_event> {
    let mut event = ptr::null_mut();
    done(runtime()?.clEnqueueUnmapMemObject(queue, memory, mapped, 0, ptr::null(), &raw mut event))?;
    Ok(event)
}

/// A number of 32 or 64 bits, as the library gives it.
pub(super) fn number(bytes: &[u8]) -> Option<u64> {
    match bytes.len() {
        4 => bytes.try_into().ok().map(|bytes| u64::from(cl_bool::from_ne_bytes(bytes))),
        8 => bytes.try_into().ok().map(u64::from_ne_bytes),
        _ => None,
    }
}
