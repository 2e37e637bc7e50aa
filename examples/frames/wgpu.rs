//! The frames on wgpu.

use crate::source::{Source, converted};
use crate::{Bench, Way, pose, shown};
use anyhow::{Context as _, Result};
use diptych::wgpu::{self, BufferUsages as Usage, TextureFormat, util::DeviceExt as _};
use diptych::{
    Backend, Colours, Context, Flight, Frame, Frames, Framing, Pictures, PixelFormat, Session, SessionOptions,
};

pub struct OnWgpu {
    context: Context,
    session: Session,
    input: String,
    output: String,
    source: Source,
    framing: Framing,
    colours: Colours,
    rgba: wgpu::TextureView,
    planes: [wgpu::TextureView; 2],
    buffers: [wgpu::Buffer; 3],
    result: wgpu::Buffer,
    converted: Vec<u8>,
    flight: Option<Flight>,
    submitted: Vec<f32>,
}

pub fn open(source: &Source) -> Result<OnWgpu> {
    let context = Context::new(Backend::Wgpu)?;
    let (graph, input, looked_at) = pose::network()?;
    let session = Session::new(&context, &graph, SessionOptions::default())?;
    let port = session.outputs().last().context("no keypoints")?;
    let (output, bytes) = (port.name.clone(), 4 * port.dims.elements());
    let (framing, colours) = shown(source, looked_at)?;
    let (device, queue) = context.wgpu().context("a device of wgpu")?;
    let texture = |format, [width, height]: [u32; 2], contents: &[u8]| {
        let size = wgpu::Extent3d { width, height, depth_or_array_layers: 1 };
        let descriptor = wgpu::TextureDescriptor {
            label: None,
            size,
            mip_level_count: 1,
            sample_count: 1,
            dimension: wgpu::TextureDimension::D2,
            format,
            usage: wgpu::TextureUsages::TEXTURE_BINDING | wgpu::TextureUsages::COPY_DST,
            view_formats: &[],
        };
        let order = wgpu::util::TextureDataOrder::LayerMajor;
        let texture = device.create_texture_with_data(queue, &descriptor, order, contents);
        texture.create_view(&wgpu::TextureViewDescriptor::default())
    };
    let buffer = |contents: &[u8], usage| {
        device.create_buffer_init(&wgpu::util::BufferInitDescriptor { label: None, contents, usage })
    };
    let (size, half) = (source.size, source.size.map(|extent| extent / 2));
    let (luma, chroma) = source.nv12.split_at((size[0] * size[1]) as usize);
    let planes =
        [texture(TextureFormat::R8Unorm, size, luma), texture(TextureFormat::Rg8Unorm, half, chroma)];
    let held = [&source.rgba, &source.nv12, &source.yuyv];
    let buffers = held.map(|bytes| buffer(bytes, Usage::STORAGE | Usage::COPY_DST));
    let rgba = texture(TextureFormat::Rgba8Unorm, size, &source.rgba);
    let result = buffer(&vec![0; bytes], Usage::STORAGE | Usage::COPY_SRC);
    let (source, converted) = (source.clone(), vec![0; source.rgba.len()]);
    let (flight, submitted) = (None, Vec::new());
    Ok(OnWgpu {
        context,
        session,
        input,
        output,
        source,
        framing,
        colours,
        rgba,
        planes,
        buffers,
        result,
        converted,
        flight,
        submitted,
    })
}

impl OnWgpu {
    fn device(&self) -> Result<(wgpu::Device, wgpu::Queue)> {
        let (device, queue) = self.context.wgpu().context("a device of wgpu")?;
        Ok((device.clone(), queue.clone()))
    }

    fn upload(&self, queue: &wgpu::Queue, rgba: &[u8]) {
        let [width, height] = self.source.size;
        let rows =
            wgpu::TexelCopyBufferLayout { offset: 0, bytes_per_row: Some(4 * width), rows_per_image: None };
        let size = wgpu::Extent3d { width, height, depth_or_array_layers: 1 };
        queue.write_texture(self.rgba.texture().as_image_copy(), rgba, rows, size);
    }
}

impl Bench for OnWgpu {
    fn name(&self) -> String {
        self.context.info().to_string()
    }

    fn frame(&mut self, way: Way) -> Result<()> {
        let (device, queue) = self.device()?;
        if way == Way::Nv12Bytes {
            let layout = self.source.layout(PixelFormat::Nv12)?;
            let frames = [(Frame::new(&self.source.nv12[..], layout), self.framing)];
            let frames = Frames::new(&frames, self.colours);
            self.flight = Some(self.session.submit(&[(&self.input, frames)])?);
            return Ok(());
        }
        match way {
            Way::RgbaTextureFromHost => self.upload(&queue, &self.source.rgba),
            Way::Nv12BufferFromHost => queue.write_buffer(&self.buffers[1], 0, &self.source.nv12),
            Way::Nv12Converted => {
                converted(&self.source.nv12, self.source.size, &mut self.converted);
                self.upload(&queue, &self.converted);
            }
            _ => {}
        }
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let outputs = [(&*self.output, &self.result)];
        let buffer = match way {
            Way::RgbaBuffer => Some((PixelFormat::Rgba8, &self.buffers[0])),
            Way::Nv12Buffer | Way::Nv12BufferFromHost => Some((PixelFormat::Nv12, &self.buffers[1])),
            Way::YuyvBuffer => Some((PixelFormat::Yuyv, &self.buffers[2])),
            _ => None,
        };
        if let Some((format, buffer)) = buffer {
            let frames = [(Frame::new(buffer, self.source.layout(format)?), self.framing)];
            let frames = Frames::new(&frames, self.colours);
            self.session.encode(&mut encoder, &[(&self.input, frames)], &outputs)?;
        } else if way == Way::Nv12Textures {
            let [luma, chroma] = &self.planes;
            let layout = self.source.layout(PixelFormat::Nv12)?;
            let frames = [(Frame::of_planes(&[luma, chroma], layout)?, self.framing)];
            let frames = Frames::new(&frames, self.colours);
            self.session.encode(&mut encoder, &[(&self.input, frames)], &outputs)?;
        } else {
            let pictures = [(&self.rgba, self.framing)];
            let pictures = Pictures::new(&pictures, self.colours);
            self.session.encode(&mut encoder, &[(&self.input, pictures)], &outputs)?;
        }
        queue.submit([encoder.finish()]);
        Ok(())
    }

    fn wait(&mut self) -> Result<()> {
        if let Some(flight) = self.flight.take() {
            let outputs = flight.wait()?;
            self.submitted = outputs.get(outputs.len() - 1)?.to_vec();
        }
        self.device()?.0.poll(wgpu::PollType::wait_indefinitely())?;
        Ok(())
    }

    fn keypoints(&mut self) -> Result<Vec<f32>> {
        if !self.submitted.is_empty() {
            return Ok(std::mem::take(&mut self.submitted));
        }
        let (device, queue) = self.device()?;
        let size = self.result.size();
        let usage = Usage::MAP_READ | Usage::COPY_DST;
        let staging = device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size,
            usage,
            mapped_at_creation: false,
        });
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.copy_buffer_to_buffer(&self.result, 0, &staging, 0, size);
        queue.submit([encoder.finish()]);
        staging.slice(..).map_async(wgpu::MapMode::Read, |_| {});
        device.poll(wgpu::PollType::wait_indefinitely())?;
        Ok(bytemuck::pod_collect_to_vec(&staging.slice(..).get_mapped_range()?))
    }
}
