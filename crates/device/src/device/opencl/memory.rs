//! Buffers and images, copies, mapping.

use super::call::{Event, Lane, Memory as MemoryObject, Owned, Want, check, failure, size};
use super::part::{ArgumentMemory, BufferMemory};
use super::patience::{Drain, let_go};
use super::{Inner, cl, order};
use crate::device::{Buffer, Image, Memory, Slice, handle};
use crate::dtype::DType;
use crate::error::{Error, Result};
use cl3::memory::{
    CL_BUFFER_CREATE_TYPE_REGION, CL_FLOAT, CL_HALF_FLOAT, CL_MAP_READ, CL_MAP_WRITE, CL_MEM_ALLOC_HOST_PTR,
    CL_MEM_OBJECT_IMAGE2D, CL_MEM_READ_WRITE, CL_RGBA, cl_buffer_region, cl_image_desc, cl_image_format,
    cl_mem, cl_mem_flags,
};
use std::ffi::c_void;
use std::fmt;
use std::ptr;
use std::sync::Arc;

/// A buffer, and the device it belongs to.
#[derive(Clone)]
pub(crate) struct RawBuffer {
    memory: Arc<BufferMemory>,
    host_visible: bool,
    /// What parts of it are made with.
    part_flags: cl_mem_flags,
    device: Arc<Inner>,
}

/// An image, and the device it belongs to.
#[derive(Clone)]
pub(crate) struct RawImage {
    memory: Arc<Owned<MemoryObject>>,
    device: Arc<Inner>,
}

impl RawBuffer {
    /// An application's buffer, whose parts allow what it does.
    pub(super) fn lent(memory: Owned<MemoryObject>, device: &Arc<Inner>) -> Self {
        let memory = Arc::new(BufferMemory::new(memory));
        RawBuffer { memory, host_visible: false, part_flags: 0, device: Arc::clone(device) }
    }

    /// Tells buffers apart while they live.
    pub(in crate::device) fn address(&self) -> usize {
        self.memory.memory().raw() as usize
    }
}

impl RawImage {
    /// An application's image.
    pub(super) fn lent(memory: Owned<MemoryObject>, device: &Arc<Inner>) -> Self {
        RawImage { memory: Arc::new(memory), device: Arc::clone(device) }
    }

    /// Tells images apart while they live.
    pub(in crate::device) fn address(&self) -> usize {
        self.memory.raw() as usize
    }
}

impl fmt::Debug for RawBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenCL buffer {:?}", self.memory)
    }
}

impl fmt::Debug for RawImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenCL image {:?}", self.memory)
    }
}

/// Allocates a buffer; returns its size, `bytes` rounded up to 16, with it.
pub(super) fn alloc(inner: &Arc<Inner>, bytes: u64, memory: Memory) -> Result<(RawBuffer, u64)> {
    let limit = inner.info.limits.max_binding;
    let rounded = match bytes.checked_next_multiple_of(16) {
        Some(rounded) if bytes > 0 && rounded <= limit => rounded,
        _ => {
            let wanted = format!("1 to {limit} bytes, the largest buffer of {}", inner.info);
            return Err(Error::input("buffer", format!("{bytes} bytes"), wanted));
        }
    };
    let host_visible = memory == Memory::HostVisible;
    let flags = CL_MEM_READ_WRITE | if host_visible { CL_MEM_ALLOC_HOST_PTR } else { 0 };
    // SAFETY: the context is live and no host memory is handed over.
    let raw = unsafe { cl::create_buffer(inner.context.raw(), flags, size(rounded)?, ptr::null_mut()) };
    let memory = own(inner, check("clCreateBuffer", raw)?);
    // What another process left there is not for this one.
    inner.lane().clear(&memory, size(rounded)?)?;
    let (memory, device) = (Arc::new(BufferMemory::new(memory)), Arc::clone(inner));
    Ok((RawBuffer { memory, host_visible, part_flags: CL_MEM_READ_WRITE, device }, rounded))
}

/// Allocates an RGBA image.
pub(super) fn alloc_image(inner: &Arc<Inner>, width: usize, height: usize, dtype: DType) -> Result<RawImage> {
    let Some([max_width, max_height]) = inner.info.limits.max_image else {
        return Err(Error::unsupported("an image", format!("{} has no images", inner.info)));
    };
    let fits = |extent: usize, max: u32| extent > 0 && extent <= usize::try_from(max).unwrap_or(usize::MAX);
    if !fits(width, max_width) || !fits(height, max_height) {
        return Err(Error::input(
            "image",
            format!("{width} x {height} pixels"),
            format!("1 x 1 to {max_width} x {max_height}, the largest image of {}", inner.info),
        ));
    }
    let channel = match dtype {
        DType::F16 => CL_HALF_FLOAT,
        _ => CL_FLOAT,
    };
    let format = cl_image_format { image_channel_order: CL_RGBA, image_channel_data_type: channel };
    let shape = cl_image_desc {
        image_type: CL_MEM_OBJECT_IMAGE2D,
        image_width: width,
        image_height: height,
        image_depth: 0,
        image_array_size: 0,
        image_row_pitch: 0,
        image_slice_pitch: 0,
        num_mip_levels: 0,
        num_samples: 0,
        buffer: ptr::null_mut(),
    };
    // SAFETY: the context is live, format and shape are complete and live during the call, and no
    // host memory is handed over. Test: `images_are_written_and_read`.
    let raw =
        unsafe { cl::create_image(inner.context.raw(), CL_MEM_READ_WRITE, &format, &shape, ptr::null_mut()) };
    Ok(RawImage { memory: Arc::new(own(inner, check("clCreateImage", raw)?)), device: Arc::clone(inner) })
}

fn own(inner: &Inner, raw: cl_mem) -> Owned<MemoryObject> {
    // SAFETY: called on what a successful clCreate... returned, whose only reference this is.
    unsafe { Owned::new(raw, inner.context.hung()) }
}

/// The memory behind `buffer`.
pub(super) fn raw_buffer<'a>(inner: &Inner, buffer: &'a Buffer) -> Result<&'a RawBuffer> {
    match &buffer.raw {
        handle::RawBuffer::OpenCl(raw) if ptr::eq(Arc::as_ptr(&raw.device), inner) => Ok(raw),
        _ => Err(inner.foreign("buffer")),
    }
}

/// The memory behind `image`.
pub(super) fn raw_image(inner: &Inner, image: &Image) -> Result<ArgumentMemory> {
    match &image.raw {
        handle::RawImage::OpenCl(raw) if ptr::eq(Arc::as_ptr(&raw.device), inner) => {
            Ok(ArgumentMemory::Image(Arc::clone(&raw.memory)))
        }
        _ => Err(inner.foreign("image")),
    }
}

/// What a kernel is given for `slice`: the buffer itself, or a sub-buffer of it.
pub(super) fn bind(inner: &Inner, slice: &Slice) -> Result<ArgumentMemory> {
    let raw = raw_buffer(inner, &slice.buffer)?;
    if slice.offset == 0 && slice.bytes == slice.buffer.bytes {
        return Ok(ArgumentMemory::Whole(Arc::clone(&raw.memory)));
    }
    let alignment = inner.info.limits.binding_alignment;
    if !slice.offset.is_multiple_of(alignment) {
        return Err(Error::input(
            "buffer slice",
            format!("offset {}", slice.offset),
            format!("a multiple of {alignment}, the alignment of {}", inner.info),
        ));
    }
    let region = cl_buffer_region { origin: size(slice.offset)?, size: size(slice.bytes)? };
    raw.memory.part((slice.offset, slice.bytes), || {
        // SAFETY: the region lies within the buffer (`Buffer::slice`) and is live during the call.
        // Test: `a_sub_range_is_bound`.
        let part = unsafe {
            cl::create_sub_buffer(
                raw.memory.memory().raw(),
                raw.part_flags,
                CL_BUFFER_CREATE_TYPE_REGION,
                ptr::from_ref(&region).cast::<c_void>(),
            )
        };
        Ok(own(inner, check("clCreateSubBuffer", part)?))
    })
}

/// A slice as copy commands take it.
pub(super) struct Range<'a> {
    memory: &'a Owned<MemoryObject>,
    offset: usize,
    bytes: usize,
}

impl<'a> Range<'a> {
    pub(super) fn new(inner: &Inner, slice: &'a Slice) -> Result<Self> {
        let memory = raw_buffer(inner, &slice.buffer)?.memory.memory();
        Ok(Range { memory, offset: size(slice.offset)?, bytes: size(slice.bytes)? })
    }

    /// The range that `bytes` are written to, at the start of `slice`.
    pub(super) fn for_write(inner: &Inner, slice: &'a Slice, bytes: &[u8]) -> Result<Self> {
        let range = Range::new(inner, slice)?;
        if bytes.len() > range.bytes {
            let found = format!("{} bytes", bytes.len());
            return Err(Error::input("buffer slice", found, format!("at most {}", range.bytes)));
        }
        Ok(range)
    }

    /// Its buffer and where it begins in it.
    pub(super) fn place(&self) -> (cl_mem, usize) {
        (self.memory.raw(), self.offset)
    }

    pub(super) fn len(&self) -> usize {
        self.bytes
    }

    /// Memory to read it into.
    pub(super) fn host_copy(&self) -> Vec<u8> {
        vec![0; self.bytes]
    }

    /// Enqueues a copy of `bytes` to it.
    ///
    /// # Safety
    /// Unless `blocking`, `bytes` stay as they are until the command has completed.
    pub(super) unsafe fn write(&self, lane: Lane<'_>, bytes: &[u8], blocking: bool) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: the bytes are the caller's promise; `for_write` checked that they fit.
        unsafe { lane.write(self.memory.raw(), self.offset, bytes, Want::Nothing, blocking) }.map(|_| ())
    }

    /// Enqueues a copy of it to `bytes`; returns once it is done if `blocking`.
    ///
    /// # Safety
    /// `bytes` are as many as the range has, and unless `blocking` nobody uses them until the
    /// command has completed.
    pub(super) unsafe fn read(
        &self,
        lane: Lane<'_>,
        bytes: &mut [u8],
        want: Want,
        blocking: bool,
    ) -> Result<Option<Owned<Event>>> {
        // SAFETY: promised by the caller.
        unsafe { lane.read(self.memory.raw(), self.offset, bytes, want, blocking) }
    }
}

pub(super) fn write(inner: &Inner, slice: &Slice, bytes: &[u8]) -> Result<()> {
    let range = Range::for_write(inner, slice, bytes)?;
    let _order = inner.order.enter()?;
    // SAFETY: a blocking write has taken the bytes when it returns (OpenCL 1.2, 5.2.2).
    unsafe { range.write(inner.lane(), bytes, true) }
}

pub(super) fn read(inner: &Inner, slice: &Slice) -> Result<Vec<u8>> {
    let range = Range::new(inner, slice)?;
    let mut bytes = range.host_copy();
    let lane = inner.lane();
    // Other threads may enqueue while this one waits: the lock ends with the block.
    let drain = Drain::new(lane);
    let event = {
        let _order = inner.order.enter()?;
        // SAFETY: `drain` outlasts every way out of this function and waits for the command, and
        // `bytes` outlast `drain`. Test: `saxpy_runs`.
        unsafe { range.read(lane, &mut bytes, Want::Event, false) }?
    };
    if let Err(error) = lane.wait(event.as_ref()) {
        let_go(&[lane], bytes);
        return Err(error);
    }
    drain.done();
    Ok(bytes)
}

/// Gives a mapped buffer back to the device, at the latest when dropped, as when the closure
/// panics.
struct Mapped<'a> {
    lane: Lane<'a>,
    memory: &'a Owned<MemoryObject>,
    bytes: Option<*mut c_void>,
    _order: order::Mapping<'a>,
}

impl Mapped<'_> {
    fn unmap(&mut self) -> Result<()> {
        let Some(bytes) = self.bytes.take() else { return Ok(()) };
        let (queue, memory) = (self.lane.queue.raw(), self.memory.raw());
        // SAFETY: `bytes` is what mapping this buffer on this queue returned, and was taken so
        // that it is given back once.
        let event = unsafe { cl::enqueue_unmap_mem_object(queue, memory, bytes) };
        // SAFETY: the call made the event, and this is its only reference.
        drop(unsafe { Owned::<Event>::new(check("clEnqueueUnmapMemObject", event)?, self.memory.hung()) });
        self.lane.flush()
    }
}

impl Drop for Mapped<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.unmap() {
            tracing::warn!("{error}");
        }
    }
}

pub(super) fn map(inner: &Inner, buffer: &Buffer, access: &mut dyn FnMut(&mut [u8])) -> Result<()> {
    let raw = raw_buffer(inner, buffer)?;
    if !raw.host_visible {
        return Err(Error::unsupported("mapping the buffer", "it was not allocated as Memory::HostVisible"));
    }
    let length = size(buffer.bytes)?;
    let order = inner.order.enter_mapping()?;
    let lane = inner.lane();
    lane.settle()?;
    let mut code = cl3::error_codes::CL_SUCCESS;
    let bytes = lane.runtime.clEnqueueMapBuffer(
        lane.queue.raw(),
        raw.memory.memory().raw(),
        cl3::memory::CL_TRUE,
        CL_MAP_READ | CL_MAP_WRITE,
        0,
        length,
        0,
        ptr::null(),
        ptr::null_mut(),
        &raw mut code,
    );
    let bytes = match bytes {
        Some(bytes) if code == cl3::error_codes::CL_SUCCESS && !bytes.is_null() => bytes,
        Some(_) => return Err(failure("clEnqueueMapBuffer", code)),
        None => return Err(failure("clEnqueueMapBuffer", cl3::error_codes::DLOPEN_FUNCTION_NOT_AVAILABLE)),
    };
    let mut mapped = Mapped { lane, memory: raw.memory.memory(), bytes: Some(bytes), _order: order };
    // SAFETY: a blocking map returns `length` bytes that are the host's alone until they are given
    // back: this device enqueues nothing meanwhile, because `order` is held. They hold whatever the
    // driver put there, which is a value for a `u8`. Test: `host_visible_memory_is_mapped`.
    access(unsafe { std::slice::from_raw_parts_mut(bytes.cast::<u8>(), length) });
    mapped.unmap()
}
