//! The frames on OpenCL.

use crate::source::{Source, converted};
use crate::{Bench, Way, pose, shown};
use anyhow::{Context as _, Result};
use diptych::opencl3::command_queue::CommandQueue;
use diptych::opencl3::context::Context as ClContext;
use diptych::opencl3::device::{CL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_GPU, Device, get_all_devices};
use diptych::opencl3::memory::{
    Buffer, CL_MEM_OBJECT_IMAGE2D, CL_MEM_READ_ONLY, CL_MEM_READ_WRITE, CL_R, CL_RG, CL_RGBA, CL_UNORM_INT8,
    Image,
};
use diptych::opencl3::types::{CL_BLOCKING, CL_NON_BLOCKING, cl_image_desc, cl_image_format};
use diptych::{
    Colours, Context, Flight, Frame, Frames, Framing, Pictures, PixelFormat, Session, SessionOptions,
};
use std::ptr;

pub struct OnOpenCl {
    context: Context,
    queue: CommandQueue,
    session: Session,
    input: String,
    output: String,
    source: Source,
    framing: Framing,
    colours: Colours,
    rgba: Image,
    /// None where the driver has no images of one or two channels.
    planes: Option<[Image; 2]>,
    buffers: [Buffer<u8>; 3],
    result: Buffer<u8>,
    converted: Vec<u8>,
    flight: Option<Flight>,
    submitted: Vec<f32>,
    bytes: usize,
    _cl: ClContext,
}

fn image(
    cl: &ClContext,
    queue: &CommandQueue,
    order: u32,
    [width, height]: [u32; 2],
    contents: &[u8],
) -> Result<Image> {
    let format = cl_image_format { image_channel_order: order, image_channel_data_type: CL_UNORM_INT8 };
    let shape = cl_image_desc {
        image_type: CL_MEM_OBJECT_IMAGE2D,
        image_width: width as usize,
        image_height: height as usize,
        image_depth: 0,
        image_array_size: 0,
        image_row_pitch: 0,
        image_slice_pitch: 0,
        num_mip_levels: 0,
        num_samples: 0,
        buffer: ptr::null_mut(),
    };
    // SAFETY: no host memory is handed over.
    let mut image = unsafe { Image::create(cl, CL_MEM_READ_ONLY, &format, &shape, ptr::null_mut()) }?;
    write(queue, &mut image, [width, height], contents)?;
    Ok(image)
}

/// Writes a whole image, and waits.
fn write(queue: &CommandQueue, image: &mut Image, [width, height]: [u32; 2], contents: &[u8]) -> Result<()> {
    let (origin, region) = ([0, 0, 0], [width as usize, height as usize, 1]);
    let from = contents.as_ptr().cast_mut().cast();
    // SAFETY: the write waits, and the pixels are as many as the region has.
    unsafe {
        let (origin, region) = (origin.as_ptr(), region.as_ptr());
        queue.enqueue_write_image(image, CL_BLOCKING, origin, region, 0, 0, from, &[])
    }?;
    Ok(())
}

pub fn open(source: &Source) -> Result<OnOpenCl> {
    Context::load_opencl()?;
    let gpus = get_all_devices(CL_DEVICE_TYPE_GPU).unwrap_or_default();
    let id = gpus.first().copied().or(get_all_devices(CL_DEVICE_TYPE_ALL)?.first().copied());
    let device = Device::new(id.context("no OpenCL device")?);
    let cl = ClContext::from_device(&device)?;
    let queue = CommandQueue::create_default(&cl, 0)?;
    let context = Context::from_opencl(&cl, &device, &queue)?;
    let (graph, input, looked_at) = pose::network()?;
    let session = Session::new(&context, &graph, SessionOptions::default())?;
    let port = session.outputs().last().context("no keypoints")?;
    let (output, bytes) = (port.name.clone(), 4 * port.dims.elements());
    let (framing, colours) = shown(source, looked_at)?;
    let buffer = |flags, contents: &[u8]| -> Result<Buffer<u8>> {
        // SAFETY: no host memory is handed over, and the write waits.
        unsafe {
            let mut buffer = Buffer::create(&cl, flags, contents.len(), ptr::null_mut())?;
            queue.enqueue_write_buffer(&mut buffer, CL_BLOCKING, 0, contents, &[])?;
            Ok(buffer)
        }
    };
    let (size, half) = (source.size, source.size.map(|extent| extent / 2));
    let (luma, chroma) = source.nv12.split_at((size[0] * size[1]) as usize);
    let planes = image(&cl, &queue, CL_R, size, luma)
        .and_then(|luma| Ok([luma, image(&cl, &queue, CL_RG, half, chroma)?]))
        .inspect_err(|error| println!("no images for two planes, so their row is of the buffer: {error}"))
        .ok();
    let rgba = image(&cl, &queue, CL_RGBA, size, &source.rgba)?;
    let result = buffer(CL_MEM_READ_WRITE, &vec![0; bytes])?;
    let [first, second, third] =
        [&source.rgba, &source.nv12, &source.yuyv].map(|bytes| buffer(CL_MEM_READ_ONLY, bytes));
    let buffers = [first?, second?, third?];
    let (source, converted) = (source.clone(), vec![0; source.rgba.len()]);
    let (flight, submitted) = (None, Vec::new());
    Ok(OnOpenCl {
        context,
        queue,
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
        bytes,
        _cl: cl,
    })
}

impl Bench for OnOpenCl {
    fn name(&self) -> String {
        self.context.info().to_string()
    }

    fn frame(&mut self, way: Way) -> Result<()> {
        let layout = |format| self.source.layout(format);
        if way == Way::Nv12Bytes {
            let frames = [(Frame::new(&self.source.nv12[..], layout(PixelFormat::Nv12)?), self.framing)];
            let frames = Frames::new(&frames, self.colours);
            self.flight = Some(self.session.submit(&[(&self.input, frames)])?);
            return Ok(());
        }
        match way {
            Way::RgbaTextureFromHost => {
                write(&self.queue, &mut self.rgba, self.source.size, &self.source.rgba)?
            }
            // SAFETY: the bytes live as long as the queue, and do not change.
            Way::Nv12BufferFromHost => unsafe {
                let (buffer, bytes) = (&mut self.buffers[1], &self.source.nv12);
                self.queue.enqueue_write_buffer(buffer, CL_NON_BLOCKING, 0, bytes, &[])?;
            },
            Way::Nv12Converted => {
                converted(&self.source.nv12, self.source.size, &mut self.converted);
                write(&self.queue, &mut self.rgba, self.source.size, &self.converted)?;
            }
            _ => {}
        }
        let outputs = [(&*self.output, &self.result)];
        let buffer = match way {
            Way::RgbaBuffer => Some((PixelFormat::Rgba8, &self.buffers[0])),
            Way::Nv12Buffer | Way::Nv12BufferFromHost => Some((PixelFormat::Nv12, &self.buffers[1])),
            Way::Nv12Textures if self.planes.is_none() => Some((PixelFormat::Nv12, &self.buffers[1])),
            Way::YuyvBuffer => Some((PixelFormat::Yuyv, &self.buffers[2])),
            _ => None,
        };
        if let Some((format, buffer)) = buffer {
            let frames = [(Frame::new(buffer, self.source.layout(format)?), self.framing)];
            let frames = Frames::new(&frames, self.colours);
            self.session.enqueue(&[(&self.input, frames)], &outputs)?;
        } else if let (Way::Nv12Textures, Some([luma, chroma])) = (way, &self.planes) {
            let layout = self.source.layout(PixelFormat::Nv12)?;
            let frames = [(Frame::of_planes(&[luma, chroma], layout)?, self.framing)];
            let frames = Frames::new(&frames, self.colours);
            self.session.enqueue(&[(&self.input, frames)], &outputs)?;
        } else {
            let pictures = [(&self.rgba, self.framing)];
            let pictures = Pictures::new(&pictures, self.colours);
            self.session.enqueue(&[(&self.input, pictures)], &outputs)?;
        }
        self.queue.flush()?;
        Ok(())
    }

    fn wait(&mut self) -> Result<()> {
        if let Some(flight) = self.flight.take() {
            let outputs = flight.wait()?;
            self.submitted = outputs.get(outputs.len() - 1)?.to_vec();
        }
        self.queue.finish()?;
        Ok(())
    }

    fn keypoints(&mut self) -> Result<Vec<f32>> {
        if !self.submitted.is_empty() {
            return Ok(std::mem::take(&mut self.submitted));
        }
        let mut bytes = vec![0; self.bytes];
        // SAFETY: the read waits.
        unsafe { self.queue.enqueue_read_buffer(&self.result, CL_BLOCKING, 0, &mut bytes, &[]) }?;
        Ok(bytemuck::pod_collect_to_vec(&bytes))
    }
}
