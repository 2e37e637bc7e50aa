//! A device that says it has no clock, so that what times it takes the host's.

use diptych_device::device::{
    Buffer, Device, DeviceInfo, Dispatch, Image, Memory, Pending, Pipeline, Recording, Slice,
};
use diptych_emit::emit::KernelSource;
use diptych::{DType, Result};
use std::sync::Arc;
use std::time::Duration;

/// A device without timestamps.
#[derive(Debug)]
pub(crate) struct HostClock {
    device: Arc<dyn Device>,
    info: DeviceInfo,
}

impl HostClock {
    pub(crate) fn new(device: Arc<dyn Device>) -> Self {
        let info = DeviceInfo { timestamps: false, ..device.info().clone() };
        HostClock { device, info }
    }
}

impl Device for HostClock {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn alloc(&self, bytes: u64, memory: Memory) -> Result<Buffer> {
        self.device.alloc(bytes, memory)
    }

    fn alloc_image(&self, width: usize, height: usize, dtype: DType) -> Result<Image> {
        self.device.alloc_image(width, height, dtype)
    }

    fn write(&self, slice: &Slice, bytes: &[u8]) -> Result<()> {
        self.device.write(slice, bytes)
    }

    fn read(&self, slice: &Slice) -> Result<Vec<u8>> {
        self.device.read(slice)
    }

    fn map(&self, buffer: &Buffer, access: &mut dyn FnMut(&mut [u8])) -> Result<()> {
        self.device.map(buffer, access)
    }

    fn compile(&self, source: &KernelSource) -> Result<Pipeline> {
        self.device.compile(source)
    }

    unsafe fn compile_unchecked(&self, source: &KernelSource) -> Result<Pipeline> {
        // SAFETY: promised by the caller.
        unsafe { self.device.compile_unchecked(source) }
    }

    fn record(&self, dispatches: &[Dispatch]) -> Result<Recording> {
        self.device.record(dispatches)
    }

    fn submit(&self, recording: &Recording) -> Result<()> {
        self.device.submit(recording)
    }

    fn wait(&self) -> Result<()> {
        self.device.wait()
    }

    fn run(
        &self,
        writes: &[(&Slice, &[u8])],
        recording: &Recording,
        reads: &[&Slice],
    ) -> Result<Vec<Vec<u8>>> {
        self.device.run(writes, recording, reads)
    }

    fn start(
        &self,
        writes: &[(&Slice, &[u8])],
        recording: &Recording,
        reads: &[&Slice],
    ) -> Result<Box<dyn Pending>> {
        self.device.start(writes, recording, reads)
    }

    fn time(&self, recording: &Recording) -> Result<Vec<Duration>> {
        self.device.time(recording)
    }
}
