//! Host memory that the device copies from and to by itself, and device memory for copies that overlap
//! with other work.
//!
//! From memory that it did not allocate, a driver copies through memory of its own, on the calling
//! thread: 6.3 MB took 0.40 ms on an H200 and the 1 MB back 0.24 ms. From what `CL_MEM_ALLOC_HOST_PTR`
//! gave and is mapped, the device copies at the speed of the bus while the host goes on.
//!
//! Devices that share the host's memory gain nothing, and an application's queue is all that may be used
//! of it: there copies are left to the driver.

use super::call::{Lane, Memory, Owned, Queue, check, failure};
use super::{Inner, cl, lock, new_queue, query};
use crate::device::options::DeviceOptions;
use crate::error::Result;
use cl3::memory::{CL_MAP_READ, CL_MAP_WRITE, CL_MEM_ALLOC_HOST_PTR, CL_MEM_READ_WRITE};
use std::ptr::{self, NonNull};
use std::sync::Mutex;

/// Idle blocks kept of each kind, and the size above which none is.
const MAX_KEPT: usize = 4;
const MAX_KEPT_BYTES: usize = 64 << 20;

/// Smallest block: one size serves most small inputs and outputs.
const MIN_BLOCK_BYTES: usize = 64 << 10;

/// What is kept for the copies of runs.
#[derive(Default)]
pub(super) struct Staging {
    pinned: Mutex<Vec<Pinned>>,
    blocks: Mutex<Vec<DeviceBlock>>,
    transfers: Mutex<Option<std::sync::Arc<Transfers>>>,
}

/// Queues for copies to the device and back.
pub(super) struct Transfers {
    pub(super) up: Owned<Queue>,
    pub(super) down: Owned<Queue>,
}

impl Staging {
    /// The staging of a device; `None` if copies do not go through pinned memory. By default they do where the device has memory
    /// of its own.
    pub(super) fn of(
        device: &opencl3::device::Device,
        own_queue: bool,
        options: &DeviceOptions,
    ) -> Option<Self> {
        let wanted = options.pinned_copies.unwrap_or_else(|| query::own_memory(device.id()));
        (wanted && own_queue).then(Staging::default)
    }

    /// An idle block of pinned memory of at least `bytes` bytes, or a new one.
    pub(super) fn pin(&self, inner: &Inner, bytes: usize) -> Result<Pinned> {
        match taken(&self.pinned, |block| block.length >= bytes) {
            Some(block) => Ok(block),
            None => Pinned::new(inner, rounded(bytes)),
        }
    }

    /// An idle block of device memory of at least `bytes` bytes, or a new one.
    pub(super) fn device_block(&self, inner: &Inner, bytes: usize) -> Result<DeviceBlock> {
        match taken(&self.blocks, |block| block.length >= bytes) {
            Some(block) => Ok(block),
            None => Ok(DeviceBlock { memory: allocate(inner, 0, rounded(bytes))?, length: rounded(bytes) }),
        }
    }

    /// Keeps blocks that no command uses any more.
    pub(super) fn keep(
        &self,
        pinned: impl IntoIterator<Item = Pinned>,
        blocks: impl IntoIterator<Item = DeviceBlock>,
    ) {
        for block in pinned {
            kept(&self.pinned, block.length, block);
        }
        for block in blocks {
            kept(&self.blocks, block.length, block);
        }
    }

    /// The queues for copies, made when first needed.
    pub(super) fn transfers(&self, inner: &Inner) -> Result<std::sync::Arc<Transfers>> {
        let mut transfers = lock(&self.transfers);
        if let Some(known) = transfers.as_ref() {
            return Ok(known.clone());
        }
        let queue = || new_queue(&inner.context, inner.id.id(), 0);
        Ok(transfers.insert(std::sync::Arc::new(Transfers { up: queue()?, down: queue()? })).clone())
    }
}

fn rounded(bytes: usize) -> usize {
    bytes
        .checked_next_power_of_two()
        .filter(|&rounded| rounded <= MAX_KEPT_BYTES)
        .unwrap_or(bytes)
        .max(MIN_BLOCK_BYTES)
}

fn taken<T>(idle: &Mutex<Vec<T>>, fits: impl Fn(&T) -> bool) -> Option<T> {
    let mut idle = lock(idle);
    let at = idle.iter().position(fits)?;
    Some(idle.swap_remove(at))
}

fn kept<T>(idle: &Mutex<Vec<T>>, length: usize, block: T) {
    let mut idle = lock(idle);
    if length > MAX_KEPT_BYTES {
        return;
    }
    if idle.len() >= MAX_KEPT {
        idle.remove(0);
    }
    idle.push(block);
}

fn allocate(inner: &Inner, flags: u64, bytes: usize) -> Result<Owned<Memory>> {
    let flags = CL_MEM_READ_WRITE | flags;
    // SAFETY: the context is live and no host memory is handed over.
    let raw = unsafe { cl::create_buffer(inner.context.raw(), flags, bytes, ptr::null_mut()) };
    // SAFETY: the call made the buffer, and this is its only reference.
    Ok(unsafe { Owned::new(check("clCreateBuffer", raw)?, inner.context.hung()) })
}

/// A block of device memory that the commands of one run copy through.
pub(super) struct DeviceBlock {
    pub(super) memory: Owned<Memory>,
    length: usize,
}

/// A block of host memory that the device reaches, mapped for as long as it lives.
pub(super) struct Pinned {
    bytes: NonNull<u8>,
    length: usize,
    memory: Owned<Memory>,
    queue: Owned<Queue>,
}

// SAFETY: the memory is this block's alone, and OpenCL's objects may be used from any thread.
unsafe impl Send for Pinned {}

impl Pinned {
    fn new(inner: &Inner, length: usize) -> Result<Self> {
        let memory = allocate(inner, CL_MEM_ALLOC_HOST_PTR, length)?;
        inner.lane().settle()?;
        // SAFETY: the device's queue is live, and `Owned` gives this reference to it back.
        let queue = unsafe {
            check("clRetainCommandQueue", cl::retain_command_queue(inner.queue.raw()))?;
            Owned::<Queue>::new(inner.queue.raw(), inner.queue.hung())
        };
        let mut code = cl3::error_codes::CL_SUCCESS;
        let bytes = inner.runtime.clEnqueueMapBuffer(
            queue.raw(),
            memory.raw(),
            cl3::memory::CL_TRUE,
            CL_MAP_READ | CL_MAP_WRITE,
            0,
            length,
            0,
            ptr::null(),
            ptr::null_mut(),
            &raw mut code,
        );
        let bytes = bytes.and_then(|bytes| NonNull::new(bytes.cast::<u8>()));
        match bytes.filter(|_| code == cl3::error_codes::CL_SUCCESS) {
            Some(bytes) => {
                // SAFETY: a blocking map gave `length` bytes that are the host's until they are unmapped.
                unsafe { ptr::write_bytes(bytes.as_ptr(), 0, length) };
                Ok(Pinned { bytes, length, memory, queue })
            }
            None => Err(failure("clEnqueueMapBuffer", code)),
        }
    }

    /// Its first `length` bytes, of at most as many as it has.
    pub(super) fn bytes(&self, length: usize) -> &[u8] {
        // SAFETY: the mapping has `self.length` bytes, written when it was made, and lives as long as
        // `self`; that no command writes to them is what `Lane::read` has its callers promise.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr(), length.min(self.length)) }
    }

    /// The first `length` bytes of the mapping, or all if there are fewer, to be written.
    pub(super) fn bytes_mut(&mut self, length: usize) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.bytes.as_ptr(), length.min(self.length)) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: the bytes are what mapping this buffer on this queue gave, and are given back once.
        let event = unsafe {
            cl::enqueue_unmap_mem_object(self.queue.raw(), self.memory.raw(), self.bytes.as_ptr().cast())
        };
        match check("clEnqueueUnmapMemObject", event) {
            // SAFETY: the call made the event, and this is its only reference.
            Ok(event) => drop(unsafe { Owned::<super::call::Event>::new(event, self.memory.hung()) }),
            Err(error) => tracing::warn!("{error}"),
        }
    }
}

impl Transfers {
    /// The queue to the device.
    pub(super) fn up<'a>(&'a self, inner: &'a Inner) -> Lane<'a> {
        Lane { runtime: inner.runtime, queue: &self.up, patience: &inner.patience }
    }

    /// The queue to the host.
    pub(super) fn down<'a>(&'a self, inner: &'a Inner) -> Lane<'a> {
        Lane { runtime: inner.runtime, queue: &self.down, patience: &inner.patience }
    }
}

#[cfg(test)]
mod tests {
    use super::Staging;
    use crate::device::opencl::OpenClDevice;
    use crate::device::{Device, Dispatch, Memory};
    use crate::dtype::DType;
    use crate::emit::{Access, Binding, Dialect, Element, Interface, KernelSource, Operand};
    use std::sync::Arc;

    /// More than a piece, and no whole number of them.
    const COUNT: usize = (5 << 19) / 4 + 16;

    /// `dst = 2 * dst + src`.
    fn kernel() -> KernelSource {
        let binding = |operand, access| Binding::new(operand, Element::Scalar(DType::F32), access);
        KernelSource {
            label: "blend".to_owned(),
            entry: "blend".to_owned(),
            dialect: Dialect::OpenClC,
            text: "__kernel __attribute__((reqd_work_group_size(16, 1, 1)))
                void blend(__global const float* src, __global float* dst) {
                    const uint i = get_global_id(0);
                    dst[i] = 2.0f * dst[i] + src[i];
                }"
            .to_owned(),
            interface: Interface {
                bindings: vec![binding(Operand::Src, Access::Read), binding(Operand::Dst, Access::ReadWrite)],
                params: vec![],
            },
            work_group: [16, 1, 1],
        }
    }

    /// What comes of runs that wait, of several under way with other inputs each, one of which is not
    /// waited for, and of runs that write or read nothing.
    fn results(device: &OpenClDevice) -> Vec<Vec<u8>> {
        let alloc = || device.alloc(4 * COUNT as u64, Memory::Device).expect("a buffer");
        let (src, dst) = (alloc(), alloc());
        // SAFETY: every invocation has an element of each buffer.
        let pipeline = unsafe { device.compile_unchecked(&kernel()) }.expect("a kernel");
        let dispatch = Dispatch {
            pipeline,
            resources: vec![(&src).into(), (&dst).into()],
            params: vec![],
            groups: [COUNT as u32 / 16, 1, 1],
        };
        let recording = device.record(&[dispatch.clone(), dispatch]).expect("a recording");
        let input = |seed: usize| -> Vec<u8> {
            let values: Vec<f32> = (0..COUNT).map(|at| ((at * 7 + seed * 131) % 1009) as f32).collect();
            bytemuck::cast_slice(&values).to_vec()
        };
        let (from, to) = (src.whole(), dst.whole());
        let part = dst.slice(16, 8).expect("a part");
        let mut results = Vec::new();
        for seed in 0..2 {
            let writes = [(&from, &input(seed)[..]), (&to, &input(seed + 10)[..])];
            results.extend(device.run(&writes, &recording, &[&to, &part]).expect("a run"));
        }
        let mut started: Vec<_> = (2..6)
            .map(|seed| {
                let writes = [(&from, &input(seed)[..])];
                device.start(&writes, &recording, &[&part, &to]).expect("a start")
            })
            .collect();
        drop(started.remove(1));
        results.extend(started.into_iter().flat_map(|started| started.finish().expect("a run")));
        assert!(device.run(&[(&to, &input(9)[..])], &recording, &[]).expect("a run").is_empty());
        let empty = device.start(&[], &recording, &[]).expect("a start");
        assert!(empty.finish().expect("a run").is_empty());
        results.extend(device.start(&[], &recording, &[&to]).expect("a start").finish().expect("a run"));
        results.push(device.read(&to).expect("a read"));
        results
    }

    #[test]
    fn runs_through_pinned_memory_are_the_same() {
        let Ok(mut device) = OpenClDevice::open(None) else {
            println!("skipped: no OpenCL device");
            return;
        };
        let mut with = |staging: Option<Staging>| {
            Arc::get_mut(&mut device.inner).expect("nothing else holds the device").staging = staging;
            results(&device)
        };
        let (left_to_the_driver, staged) = (with(None), with(Some(Staging::default())));
        assert!(left_to_the_driver == staged);
        let first: Vec<f32> = bytemuck::pod_collect_to_vec(&staged[0]);
        let wanted = |at: usize| 4.0 * ((at * 7 + 1310) % 1009) as f32 + 3.0 * ((at * 7) % 1009) as f32;
        assert!((0..COUNT).all(|at| first[at] == wanted(at)), "two steps of the first run");
    }
}
