//! Applications that own a device: their buffers, and a session's runs between their own work.

use crate::frames::{Shown, Way};
use diptych::opencl3::command_queue::CommandQueue;
use diptych::opencl3::memory::{
    Buffer, CL_BGRA, CL_HALF_FLOAT, CL_MEM_OBJECT_IMAGE2D, CL_MEM_READ_ONLY, CL_MEM_READ_WRITE,
    CL_MEM_WRITE_ONLY, CL_RGBA, CL_UNORM_INT8, ClMem, Image,
};
use diptych::opencl3::types::CL_BLOCKING;
use diptych::wgpu;
use diptych::{
    Backend, BufferBinding, Colours, Context, DType, Framing, HostTensor, Layout, Pictures, Result, Session,
    Shape,
};
use std::ptr;

/// What is written around outputs, and must stay.
const CANARY: u8 = 0xa5;

/// A buffer for a port, before it is made.
#[derive(Debug, Clone)]
pub(super) struct Lent {
    pub(super) name: String,
    shape: Shape,
    form: (Layout, DType),
    offset: u64,
    shorter: u64,
    bound: bool,
}

impl Lent {
    pub(super) fn new(name: &str, shape: Shape, form: (Layout, DType)) -> Self {
        Lent { name: name.to_owned(), shape, form, offset: 0, shorter: 0, bound: true }
    }

    pub(super) fn at(self, offset: u64) -> Self {
        Lent { offset, ..self }
    }

    /// Says fewer bytes than there are.
    pub(super) fn shorter(self, shorter: u64) -> Self {
        Lent { shorter, ..self }
    }

    /// Whether it may be bound, and not copied; else the other way around.
    pub(super) fn bound(self, bound: bool) -> Self {
        Lent { bound, ..self }
    }

    fn elements(&self) -> usize {
        let (layout, dtype) = self.form;
        let elements = layout.elements(&self.shape);
        if dtype == DType::F16 { elements.next_multiple_of(4) } else { elements }
    }

    fn bytes(&self) -> u64 {
        (self.elements() * self.form.1.bytes()) as u64
    }

    /// With room before and behind.
    fn size(&self) -> u64 {
        (self.offset + self.bytes() + 32).next_multiple_of(8)
    }

    fn binding<B>(&self, buffer: B) -> BufferBinding<B> {
        let (layout, dtype) = self.form;
        let bytes = self.bytes() - self.shorter;
        BufferBinding::new(buffer).offset(self.offset).bytes(bytes).layout(layout).dtype(dtype)
    }

    /// Where element `index` of the rows lies.
    fn place(&self, index: usize) -> usize {
        let Shape { h, w, c, .. } = self.shape;
        let (row, channel) = (index / c, index % c);
        self.form.0.index(&self.shape, row / (w * h), row / w % h, row % w, channel)
    }

    /// The whole buffer with these values in it.
    fn contents(&self, values: Option<&HostTensor>) -> Vec<u8> {
        let mut all = vec![CANARY; self.size() as usize];
        let Some(values) = values else { return all };
        let step = self.form.1.bytes();
        let own = &mut all[self.offset as usize..(self.offset + self.bytes()) as usize];
        own.fill(0);
        for (index, &value) in values.to_f32().iter().enumerate() {
            let at = self.place(index) * step;
            match self.form.1 {
                DType::F16 => own[at..at + 2].copy_from_slice(&half(value).to_le_bytes()),
                _ => own[at..at + 4].copy_from_slice(&value.to_le_bytes()),
            }
        }
        all
    }

    /// The rows in a buffer, of which nothing else was written.
    fn values(&self, all: &[u8]) -> Vec<f32> {
        let (from, to) = (self.offset as usize, (self.offset + self.bytes()) as usize);
        let kept = all[..from].iter().chain(&all[to..]).all(|&byte| byte == CANARY);
        assert!(kept, "{self:?}: bytes around it were written");
        let own = &all[from..to];
        let number = |place: usize| match self.form.1 {
            DType::F16 => whole(u16::from_le_bytes([own[2 * place], own[2 * place + 1]])),
            _ => f32::from_le_bytes([
                own[4 * place],
                own[4 * place + 1],
                own[4 * place + 2],
                own[4 * place + 3],
            ]),
        };
        let places: Vec<usize> = (0..self.shape.elements()).map(|index| self.place(index)).collect();
        if self.form.0 == Layout::C4 {
            let spare = (0..self.elements()).filter(|place| !places.contains(place));
            spare.for_each(|place| assert_eq!(number(place), 0.0, "{self:?}: lane {place}"));
        }
        places.into_iter().map(number).collect()
    }
}

/// A value that is a half, as one.
fn half(value: f32) -> u16 {
    let bits = value.to_bits();
    let (sign, exponent, mantissa) = (bits >> 31, (bits >> 23 & 255) as i32 - 127, bits & 0x7f_ffff);
    if value == 0.0 {
        return (sign << 15) as u16;
    }
    assert!((-14..16).contains(&exponent) && mantissa & 0x1fff == 0, "{value} is no half");
    (sign << 15 | ((exponent + 15) as u32) << 10 | mantissa >> 13) as u16
}

fn whole(half: u16) -> f32 {
    let (exponent, mantissa) = (i32::from(half >> 10 & 31), f32::from(half & 1023) / 1024.0);
    let magnitude =
        if exponent == 0 { mantissa * 2f32.powi(-14) } else { (1.0 + mantissa) * 2f32.powi(exponent - 15) };
    if half >> 15 == 1 { -magnitude } else { magnitude }
}

/// The format of a picture's texels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Rgba,
    Bgra,
    Srgb,
    Half,
}

impl Format {
    /// A picture's bytes.
    fn bytes(self, texels: &[[u8; 4]]) -> Vec<u8> {
        let texel = |&[r, g, b, a]: &[u8; 4]| match self {
            Format::Rgba | Format::Srgb => vec![r, g, b, a],
            Format::Bgra => vec![b, g, r, a],
            Format::Half => {
                let halves = [r, g, b, a].map(|value| nearest_half(f32::from(value) / 255.0).to_le_bytes());
                halves.concat()
            }
        };
        texels.iter().flat_map(texel).collect()
    }
}

/// A half near a value in 0 to 1.
fn nearest_half(value: f32) -> u16 {
    let cut = f32::from_bits(value.to_bits() & !0x1fff);
    if cut < 6.2e-5 { 0 } else { half(cut) }
}

pub(super) trait App {
    /// Whether it has pictures in this format.
    fn has(&self, format: Format) -> bool;
    /// Runs on pictures, one for each place of the batch; the only output's rows.
    fn show(
        &self,
        session: &mut Session,
        format: Format,
        size: [u32; 2],
        pictures: &[Vec<[u8; 4]>],
        framings: &[Framing],
        colours: Colours,
    ) -> Result<Vec<f32>>;
    /// Runs on frames, one for each place of the batch; the only output's rows.
    fn frames(&self, session: &mut Session, shown: &Shown<'_>, way: Way) -> Result<Vec<f32>>;
    fn name(&self) -> &'static str;
    fn context(&self) -> &Context;
    /// Runs with these buffers; the outputs' rows.
    fn try_run(
        &self,
        session: &mut Session,
        inputs: &[(Lent, &HostTensor)],
        outputs: &[Lent],
    ) -> Result<Vec<Vec<f32>>>;
    /// The first session's only output is the second's only input.
    fn chain(&self, sessions: [&mut Session; 2], input: &HostTensor) -> Vec<f32>;
    /// Inputs `x` and `other` and outputs `sum` and `b` in one buffer; the outputs' rows.
    fn arena(&self, session: &mut Session, inputs: [&HostTensor; 2], overlap: bool) -> [Vec<f32>; 2];
    /// Buffers of the device that exist, if it is known.
    fn live(&self) -> Option<usize>;

    fn run(&self, session: &mut Session, inputs: &[(Lent, &HostTensor)], outputs: &[Lent]) -> Vec<Vec<f32>> {
        self.try_run(session, inputs, outputs).unwrap_or_else(|error| panic!("{}: {error}", self.name()))
    }
}

/// The applications that this machine can run.
pub(super) fn apps() -> Vec<Box<dyn App>> {
    let mut apps: Vec<Box<dyn App>> = Vec::new();
    for context in crate::machine::gpus() {
        match context.info().backend {
            Backend::Wgpu => apps.push(Box::new(WgpuApp::new())),
            _ => apps.push(Box::new(ClApp::new())),
        }
    }
    apps
}

/// The parts of a buffer for `x`, `other`, `sum` and `b`.
fn places(overlap: bool) -> [Lent; 4] {
    let rows = (Layout::Nhwc, DType::F32);
    let lent = |name, channels, at| Lent::new(name, Shape::nhwc(1, 5, 7, channels), rows).at(at);
    let [sum, b] = if overlap { [256, 2048] } else { [4096, 5120] };
    [lent("x", 3, 0), lent("other", 6, 1024), lent("sum", 6, sum), lent("b", 5, b)]
}

/// An application on wgpu.
pub(super) struct WgpuApp {
    pub(super) device: wgpu::Device,
    pub(super) queue: wgpu::Queue,
    instance: wgpu::Instance,
    context: Context,
}

impl WgpuApp {
    /// With a device that was opened otherwise.
    pub(super) fn of(
        instance: wgpu::Instance,
        context: Context,
        device: wgpu::Device,
        queue: wgpu::Queue,
    ) -> Self {
        WgpuApp { device, queue, instance, context }
    }

    pub(super) fn new() -> Self {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
        let adapter = pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default()));
        let adapter = adapter.expect("an adapter");
        let (required_features, required_limits) = Context::wgpu_requirements(&adapter);
        let descriptor = wgpu::DeviceDescriptor { required_features, required_limits, ..Default::default() };
        let (device, queue) = pollster::block_on(adapter.request_device(&descriptor)).expect("a device");
        let context = Context::from_wgpu(&adapter, device.clone(), queue.clone()).expect("a context");
        WgpuApp { device, queue, instance, context }
    }

    pub(super) fn buffer(&self, usage: wgpu::BufferUsages, contents: &[u8]) -> wgpu::Buffer {
        let descriptor = wgpu::BufferDescriptor {
            label: None,
            size: contents.len() as u64,
            usage,
            mapped_at_creation: true,
        };
        let buffer = self.device.create_buffer(&descriptor);
        buffer.slice(..).get_mapped_range_mut().expect("mapped").copy_from_slice(contents);
        buffer.unmap();
        buffer
    }

    /// Submits, and reads buffers.
    pub(super) fn finish(&self, mut encoder: wgpu::CommandEncoder, read: &[&wgpu::Buffer]) -> Vec<Vec<u8>> {
        let staging: Vec<wgpu::Buffer> = read
            .iter()
            .map(|buffer| {
                let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
                let staging = self.buffer(usage, &vec![0; buffer.size() as usize]);
                encoder.copy_buffer_to_buffer(buffer, 0, &staging, 0, buffer.size());
                staging
            })
            .collect();
        self.queue.submit([encoder.finish()]);
        staging.iter().for_each(|buffer| buffer.slice(..).map_async(wgpu::MapMode::Read, |_| {}));
        self.device.poll(wgpu::PollType::wait_indefinitely()).expect("a poll");
        staging.iter().map(|buffer| buffer.slice(..).get_mapped_range().expect("mapped").to_vec()).collect()
    }

    pub(super) fn encoder(&self) -> wgpu::CommandEncoder {
        self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default())
    }
}

impl WgpuApp {
    pub(super) fn texture(&self, format: Format, size: [u32; 2], texels: &[[u8; 4]]) -> wgpu::TextureView {
        let (format, bytes) = match format {
            Format::Rgba => (wgpu::TextureFormat::Rgba8Unorm, 4),
            Format::Bgra => (wgpu::TextureFormat::Bgra8Unorm, 4),
            Format::Srgb => (wgpu::TextureFormat::Rgba8UnormSrgb, 4),
            Format::Half => (wgpu::TextureFormat::Rgba16Float, 8),
        };
        let extent = wgpu::Extent3d { width: size[0], height: size[1], depth_or_array_layers: 1 };
        let texture = self.device.create_texture(&wgpu::TextureDescriptor {
            label: None,
            size: extent,
            mip_level_count: 1,
            sample_count: 1,
            dimension: wgpu::TextureDimension::D2,
            format,
            usage: wgpu::TextureUsages::TEXTURE_BINDING | wgpu::TextureUsages::COPY_DST,
            view_formats: &[],
        });
        let rows = wgpu::TexelCopyBufferLayout {
            offset: 0,
            bytes_per_row: Some(bytes * size[0]),
            rows_per_image: None,
        };
        let format = match format {
            wgpu::TextureFormat::Rgba8Unorm => Format::Rgba,
            wgpu::TextureFormat::Bgra8Unorm => Format::Bgra,
            wgpu::TextureFormat::Rgba16Float => Format::Half,
            _ => Format::Srgb,
        };
        self.queue.write_texture(texture.as_image_copy(), &format.bytes(texels), rows, extent);
        texture.create_view(&wgpu::TextureViewDescriptor::default())
    }
}

impl App for WgpuApp {
    fn has(&self, _format: Format) -> bool {
        true
    }

    fn show(
        &self,
        session: &mut Session,
        format: Format,
        size: [u32; 2],
        pictures: &[Vec<[u8; 4]>],
        framings: &[Framing],
        colours: Colours,
    ) -> Result<Vec<f32>> {
        use wgpu::BufferUsages as Usage;
        let views: Vec<wgpu::TextureView> =
            pictures.iter().map(|texels| self.texture(format, size, texels)).collect();
        let pictures: Vec<(&wgpu::TextureView, Framing)> =
            views.iter().zip(framings.iter().copied()).collect();
        let bytes = 4 * session.outputs()[0].shape.elements();
        let result = self.buffer(Usage::STORAGE | Usage::COPY_SRC, &vec![0; bytes]);
        let mut encoder = self.encoder();
        session.encode(&mut encoder, &[("x", Pictures::new(&pictures, colours))], &[("y", &result)])?;
        Ok(bytemuck::pod_collect_to_vec(&self.finish(encoder, &[&result])[0]))
    }

    fn frames(&self, session: &mut Session, shown: &Shown<'_>, way: Way) -> Result<Vec<f32>> {
        self.show_frames(session, shown, way)
    }

    fn name(&self) -> &'static str {
        "wgpu"
    }

    fn context(&self) -> &Context {
        &self.context
    }

    fn try_run(
        &self,
        session: &mut Session,
        inputs: &[(Lent, &HostTensor)],
        outputs: &[Lent],
    ) -> Result<Vec<Vec<f32>>> {
        use wgpu::BufferUsages as Usage;
        // What may be bound may not be copied, so that a copy is an error.
        let source = |lent: &Lent| if lent.bound { Usage::STORAGE } else { Usage::COPY_SRC };
        let target =
            |lent: &Lent| Usage::COPY_SRC | if lent.bound { Usage::STORAGE } else { Usage::COPY_DST };
        let sources: Vec<wgpu::Buffer> = inputs
            .iter()
            .map(|(lent, values)| self.buffer(source(lent), &lent.contents(Some(values))))
            .collect();
        let targets: Vec<wgpu::Buffer> =
            outputs.iter().map(|lent| self.buffer(target(lent), &lent.contents(None))).collect();
        let given =
            inputs.iter().zip(&sources).map(|((lent, _), buffer)| (lent.name.as_str(), lent.binding(buffer)));
        let taken =
            outputs.iter().zip(&targets).map(|(lent, buffer)| (lent.name.as_str(), lent.binding(buffer)));
        let (given, taken): (Vec<_>, Vec<_>) = (given.collect(), taken.collect());
        let mut encoder = self.encoder();
        session.encode(&mut encoder, &given, &taken)?;
        let read = self.finish(encoder, &targets.iter().collect::<Vec<_>>());
        Ok(outputs.iter().zip(&read).map(|(lent, all)| lent.values(all)).collect())
    }

    fn chain(&self, [first, second]: [&mut Session; 2], input: &HostTensor) -> Vec<f32> {
        use wgpu::BufferUsages as Usage;
        let x = self.buffer(Usage::STORAGE, bytemuck::cast_slice(&input.to_f32()));
        let between = self.buffer(Usage::STORAGE, &[0; 24]);
        let result = self.buffer(Usage::STORAGE | Usage::COPY_SRC, &[0; 24]);
        let mut encoder = self.encoder();
        first.encode(&mut encoder, &[("x", &x)], &[("next", &between)]).expect("the first");
        second.encode(&mut encoder, &[("y", &between)], &[("square", &result)]).expect("the second");
        bytemuck::pod_collect_to_vec(&self.finish(encoder, &[&result])[0])
    }

    fn arena(&self, session: &mut Session, inputs: [&HostTensor; 2], overlap: bool) -> [Vec<f32>; 2] {
        use wgpu::BufferUsages as Usage;
        let parts = places(overlap);
        let mut contents = vec![0; 8192];
        for (lent, values) in parts.iter().zip(inputs) {
            let own = lent.contents(Some(values));
            let range = lent.offset as usize..(lent.offset + lent.bytes()) as usize;
            contents[range.clone()].copy_from_slice(&own[range]);
        }
        let buffer = self.buffer(Usage::STORAGE | Usage::COPY_SRC | Usage::COPY_DST, &contents);
        let mut encoder = self.encoder();
        let ports: Vec<_> = parts.iter().map(|lent| (lent.name.as_str(), lent.binding(&buffer))).collect();
        session.encode(&mut encoder, &ports[..2], &ports[2..]).expect("an encoded run");
        let all = self.finish(encoder, &[&buffer]).remove(0);
        [2, 3].map(|index| {
            let range = parts[index].offset as usize..(parts[index].offset + parts[index].bytes()) as usize;
            bytemuck::pod_collect_to_vec(&all[range])
        })
    }

    fn live(&self) -> Option<usize> {
        self.device.poll(wgpu::PollType::wait_indefinitely()).expect("a poll");
        Some(self.instance.generate_report()?.hub_report().buffers.num_allocated)
    }
}

/// An application on OpenCL.
pub(super) struct ClApp {
    pub(super) context: diptych::opencl3::context::Context,
    pub(super) queue: CommandQueue,
    own: Context,
}

impl ClApp {
    pub(super) fn new() -> Self {
        use diptych::opencl3::context::Context as ClContext;
        use diptych::opencl3::device::{CL_DEVICE_TYPE_ALL, Device, get_all_devices};
        Context::load_opencl().expect("the library");
        let device = Device::new(get_all_devices(CL_DEVICE_TYPE_ALL).expect("devices")[0]);
        let context = ClContext::from_device(&device).expect("a context");
        let queue = CommandQueue::create_default(&context, 0).expect("a queue");
        let own = Context::from_opencl(&context, &device, &queue).expect("a context");
        ClApp { context, queue, own }
    }

    pub(super) fn buffer(&self, flags: u64, contents: &[u8]) -> Buffer<u8> {
        // SAFETY: no host memory is handed over.
        let buffer = unsafe { Buffer::create(&self.context, flags, contents.len(), ptr::null_mut()) };
        let mut buffer = buffer.expect("a buffer");
        // SAFETY: the write waits.
        unsafe { self.queue.enqueue_write_buffer(&mut buffer, CL_BLOCKING, 0, contents, &[]) }
            .expect("a write");
        buffer
    }

    /// Waits, and reads a buffer.
    pub(super) fn read(&self, buffer: &Buffer<u8>) -> Vec<u8> {
        let mut all = vec![0; buffer.size().expect("a size")];
        // SAFETY: the read waits.
        unsafe { self.queue.enqueue_read_buffer(buffer, CL_BLOCKING, 0, &mut all, &[]) }.expect("a read");
        all
    }
}

impl ClApp {
    pub(super) fn image(&self, format: Format, size: [u32; 2], texels: &[[u8; 4]]) -> Image {
        use diptych::opencl3::types::{cl_image_desc, cl_image_format};
        let (order, kind) = match format {
            Format::Bgra => (CL_BGRA, CL_UNORM_INT8),
            Format::Half => (CL_RGBA, CL_HALF_FLOAT),
            _ => (CL_RGBA, CL_UNORM_INT8),
        };
        let format_of = cl_image_format { image_channel_order: order, image_channel_data_type: kind };
        let [width, height] = size.map(|extent| extent as usize);
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
        // SAFETY: no host memory is handed over.
        let image =
            unsafe { Image::create(&self.context, CL_MEM_READ_ONLY, &format_of, &shape, ptr::null_mut()) };
        let mut image = image.expect("an image");
        let mut bytes = format.bytes(texels);
        let (origin, region) = ([0, 0, 0], [width, height, 1]);
        let from = bytes.as_mut_ptr().cast();
        // SAFETY: the write waits, and the bytes are those of the region.
        let written = unsafe {
            self.queue.enqueue_write_image(
                &mut image,
                CL_BLOCKING,
                origin.as_ptr(),
                region.as_ptr(),
                0,
                0,
                from,
                &[],
            )
        };
        written.expect("a write");
        image
    }
}

impl App for ClApp {
    fn has(&self, format: Format) -> bool {
        format != Format::Srgb
    }

    fn show(
        &self,
        session: &mut Session,
        format: Format,
        size: [u32; 2],
        pictures: &[Vec<[u8; 4]>],
        framings: &[Framing],
        colours: Colours,
    ) -> Result<Vec<f32>> {
        let images: Vec<Image> = pictures.iter().map(|texels| self.image(format, size, texels)).collect();
        let pictures: Vec<(&Image, Framing)> = images.iter().zip(framings.iter().copied()).collect();
        let bytes = 4 * session.outputs()[0].shape.elements();
        let result = self.buffer(CL_MEM_READ_WRITE, &vec![0; bytes]);
        session.enqueue(&[("x", Pictures::new(&pictures, colours))], &[("y", &result)])?;
        Ok(bytemuck::pod_collect_to_vec(&self.read(&result)))
    }

    fn frames(&self, session: &mut Session, shown: &Shown<'_>, way: Way) -> Result<Vec<f32>> {
        self.show_frames(session, shown, way)
    }

    fn name(&self) -> &'static str {
        "OpenCL"
    }

    fn context(&self) -> &Context {
        &self.own
    }

    fn try_run(
        &self,
        session: &mut Session,
        inputs: &[(Lent, &HostTensor)],
        outputs: &[Lent],
    ) -> Result<Vec<Vec<f32>>> {
        let source = |lent: &Lent| if lent.bound { CL_MEM_READ_ONLY } else { CL_MEM_WRITE_ONLY };
        let target = |lent: &Lent| if lent.bound { CL_MEM_READ_WRITE } else { CL_MEM_WRITE_ONLY };
        let sources: Vec<Buffer<u8>> = inputs
            .iter()
            .map(|(lent, values)| self.buffer(source(lent), &lent.contents(Some(values))))
            .collect();
        let targets: Vec<Buffer<u8>> =
            outputs.iter().map(|lent| self.buffer(target(lent), &lent.contents(None))).collect();
        let given =
            inputs.iter().zip(&sources).map(|((lent, _), buffer)| (lent.name.as_str(), lent.binding(buffer)));
        let taken =
            outputs.iter().zip(&targets).map(|(lent, buffer)| (lent.name.as_str(), lent.binding(buffer)));
        let (given, taken): (Vec<_>, Vec<_>) = (given.collect(), taken.collect());
        session.enqueue(&given, &taken)?;
        // The session holds on to what its recordings are given.
        drop(sources);
        Ok(outputs.iter().zip(&targets).map(|(lent, buffer)| lent.values(&self.read(buffer))).collect())
    }

    fn chain(&self, [first, second]: [&mut Session; 2], input: &HostTensor) -> Vec<f32> {
        let x = self.buffer(CL_MEM_READ_ONLY, bytemuck::cast_slice(&input.to_f32()));
        let [between, result] = [0, 1].map(|_| self.buffer(CL_MEM_READ_WRITE, &[0; 24]));
        first.enqueue(&[("x", &x)], &[("next", &between)]).expect("the first");
        second.enqueue(&[("y", &between)], &[("square", &result)]).expect("the second");
        bytemuck::pod_collect_to_vec(&self.read(&result))
    }

    fn arena(&self, session: &mut Session, inputs: [&HostTensor; 2], overlap: bool) -> [Vec<f32>; 2] {
        let parts = places(overlap);
        let mut contents = vec![0; 8192];
        for (lent, values) in parts.iter().zip(inputs) {
            let own = lent.contents(Some(values));
            let range = lent.offset as usize..(lent.offset + lent.bytes()) as usize;
            contents[range.clone()].copy_from_slice(&own[range]);
        }
        let buffer = self.buffer(CL_MEM_READ_WRITE, &contents);
        let ports: Vec<_> = parts.iter().map(|lent| (lent.name.as_str(), lent.binding(&buffer))).collect();
        session.enqueue(&ports[..2], &ports[2..]).expect("an enqueued run");
        let all = self.read(&buffer);
        [2, 3].map(|index| {
            let range = parts[index].offset as usize..(parts[index].offset + parts[index].bytes()) as usize;
            bytemuck::pod_collect_to_vec(&all[range])
        })
    }

    fn live(&self) -> Option<usize> {
        None
    }
}
