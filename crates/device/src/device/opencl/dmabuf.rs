//! Memory of a camera or a decoder as a buffer: dma-bufs of Linux, by `cl_khr_external_memory_dma_buf`.

use super::adopt::check_library;
use super::call::{self, failure};
use super::{OpenClDevice, cl, query};
use crate::device::dmabuf::{WHAT, check, lengths};
use crate::error::{Error, Result};
use cl3::error_codes::CL_SUCCESS;
use cl3::memory::CL_MEM_READ_WRITE;
use cl3::types::{cl_command_queue, cl_event, cl_int, cl_mem, cl_uint};
use opencl3::memory::{Buffer, ClMem as _};
use std::ffi::c_void;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::ptr;

const NAME: &str = "cl_khr_external_memory_dma_buf";
/// `cl_ext.h`.
const CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR: u64 = 0x2067;

/// `clEnqueueAcquireExternalMemObjectsKHR`, which no loader exports.
type Acquire = unsafe extern "system" fn(
    cl_command_queue,
    cl_uint,
    *const cl_mem,
    cl_uint,
    *const cl_event,
    *mut cl_event,
) -> cl_int;

impl OpenClDevice {
    /// A buffer of the first `bytes` bytes of a dma-buf, in whole words, which the device's queue has acquired.
    pub fn import_buffer(&self, fd: BorrowedFd<'_>, bytes: u64) -> Result<Buffer<u8>> {
        let inner = &self.inner;
        check(fd)?;
        let (size, _) = lengths(fd, bytes)?;
        // The buffer is released through opencl3.
        check_library(WHAT)?;
        let listed = query::extensions(inner.id.id()).unwrap_or_default();
        let acquire = || {
            let platform = query::platform(inner.id.id()).ok()?;
            let name = c"clEnqueueAcquireExternalMemObjectsKHR".as_ptr();
            let found = inner.runtime.clGetExtensionFunctionAddressForPlatform(platform, name);
            found.filter(|address| !address.is_null())
        };
        let acquire = match listed.split_whitespace().any(|name| name == NAME) {
            true => acquire(),
            false => None,
        };
        let acquire =
            acquire.ok_or_else(|| Error::unsupported(WHAT, format!("{} has no {NAME}", inner.info)))?;
        // SAFETY: the device lists the extension, and gave this address under the function's name.
        let acquire = unsafe { std::mem::transmute::<*mut c_void, Acquire>(acquire) };
        let file = u64::try_from(fd.as_raw_fd());
        let file = file.map_err(|_| Error::input(WHAT, "no file descriptor", "one of a dma-buf"))?;
        let properties = [CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR, file, 0];
        // SAFETY: the context is live, the properties end in 0, and the file is open; the handle owns what is made. No driver
        // here has the extension, so that no test runs this.
        let buffer = unsafe {
            let raw = cl::create_buffer_with_properties(
                inner.context.raw(),
                properties.as_ptr(),
                CL_MEM_READ_WRITE,
                call::size(size)?,
                ptr::null_mut(),
            );
            Buffer::<u8>::new(call::check("clCreateBufferWithProperties", raw)?)
        };
        let objects = [buffer.get()];
        let _order = inner.order.enter()?;
        // SAFETY: the queue and the buffer are of the same context, and nothing is waited for.
        let code =
            unsafe { acquire(inner.queue.raw(), 1, objects.as_ptr(), 0, ptr::null(), ptr::null_mut()) };
        match code {
            CL_SUCCESS => Ok(buffer),
            code => Err(failure("clEnqueueAcquireExternalMemObjectsKHR", code)),
        }
    }
}
