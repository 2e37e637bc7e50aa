//! What a device does, in OpenCL.

use super::{OpenClDevice, RawPipeline, compile, examine, joined, memory, record, run};
use crate::device::{
    Buffer, CompilerReport, Device, DeviceInfo, Dispatch, Image, Memory, Pending, Pipeline, Readback,
    Recording, Slice, handle,
};
use crate::dtype::DType;
use crate::emit::{Dialect, KernelSource};
use crate::error::Result;
use crate::task::{Awaited, offload};
use std::time::Duration;

impl Device for OpenClDevice {
    fn info(&self) -> &DeviceInfo {
        &self.inner.info
    }

    fn alloc(&self, bytes: u64, memory: Memory) -> Result<Buffer> {
        let (raw, bytes) = memory::alloc(&self.inner, bytes, memory)?;
        Ok(Buffer { raw: handle::RawBuffer::OpenCl(raw), bytes })
    }

    fn alloc_image(&self, width: usize, height: usize, dtype: DType) -> Result<Image> {
        let raw = memory::alloc_image(&self.inner, width, height, dtype)?;
        Ok(Image {
            raw: handle::RawImage::OpenCl(raw),
            extent: [width, height],
            channels: handle::Channels::new(4),
        })
    }

    fn write(&self, slice: &Slice, bytes: &[u8]) -> Result<()> {
        memory::write(&self.inner, slice, bytes)
    }

    fn read(&self, slice: &Slice) -> Result<Vec<u8>> {
        memory::read(&self.inner, slice)
    }

    fn map(&self, buffer: &Buffer, access: &mut dyn FnMut(&mut [u8])) -> Result<()> {
        memory::map(&self.inner, buffer, access)
    }

    fn compile(&self, source: &KernelSource) -> Result<Pipeline> {
        Ok(pipeline(source, compile::compile_foreign(&self.inner, source)?))
    }

    unsafe fn compile_unchecked(&self, source: &KernelSource) -> Result<Pipeline> {
        let raw = match source.dialect {
            Dialect::Wgsl if self.inner.checked_kernels => compile::compile_checked(&self.inner, source)?,
            _ => compile::compile(&self.inner, source, &[])?,
        };
        Ok(pipeline(source, raw))
    }

    unsafe fn compile_together(&self, sources: &[&KernelSource]) {
        if joined::pays(&self.inner) && !self.inner.checked_kernels {
            joined::compile(&self.inner, sources);
        }
    }

    fn examine(&self, source: &KernelSource) -> Result<CompilerReport> {
        examine::examine(&self.inner, source)
    }

    fn record(&self, dispatches: &[Dispatch]) -> Result<Recording> {
        Ok(Recording {
            raw: handle::RawRecording::OpenCl(record::record(&self.inner, dispatches)?),
            labels: dispatches.iter().map(|dispatch| dispatch.pipeline.label.clone()).collect(),
        })
    }

    fn submit(&self, recording: &Recording) -> Result<()> {
        record::submit(&self.inner, recording)
    }

    fn wait(&self) -> Result<()> {
        self.inner.lane().finish()
    }

    fn run_in_place(
        &self,
        writes: &[(&Slice, &[u8])],
        recording: &Recording,
        reads: &[&Slice],
    ) -> Result<Box<dyn Readback>> {
        run::run(&self.inner, writes, recording, reads)
    }

    fn start(
        &self,
        writes: &[(&Slice, &[u8])],
        recording: &Recording,
        reads: &[&Slice],
    ) -> Result<Box<dyn Pending>> {
        run::start(&self.inner, writes, recording, reads).map(|started| started as Box<dyn Pending>)
    }

    fn time(&self, recording: &Recording) -> Result<Vec<Duration>> {
        record::time(&self.inner, recording)
    }

    fn read_async<'a>(&'a self, slice: &'a Slice) -> Awaited<'a, Result<Vec<u8>>> {
        let (device, slice) = (self.clone(), slice.clone());
        Box::pin(async move { offload(move || device.read(&slice))?.await })
    }

    fn wait_async(&self) -> Awaited<'_, Result<()>> {
        let device = self.clone();
        Box::pin(async move { offload(move || device.wait())?.await })
    }

    fn time_async<'a>(&'a self, recording: &'a Recording) -> Awaited<'a, Result<Vec<Duration>>> {
        let (device, recording) = (self.clone(), recording.clone());
        Box::pin(async move { offload(move || device.time(&recording))?.await })
    }
}

fn pipeline(source: &KernelSource, raw: RawPipeline) -> Pipeline {
    Pipeline {
        raw: handle::RawPipeline::OpenCl(raw),
        label: source.label.clone(),
        interface: source.interface.clone(),
        work_group: source.work_group,
    }
}
