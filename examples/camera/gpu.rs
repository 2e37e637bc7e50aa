//! The application's own device, textures and pipelines.

use anyhow::Result;
use diptych::{Context, Framing, wgpu};
use image::RgbaImage;
use wgpu::BufferUsages as Usage;
use wgpu::util::DeviceExt as _;

/// The format of all textures but those of a window.
const FORMAT: wgpu::TextureFormat = wgpu::TextureFormat::Rgba8Unorm;

/// A frame's numbers, as the shader reads them.
pub struct Scene([f32; 16]);

impl Scene {
    /// What the camera sees, and how the network's pixels lie on the screen.
    pub fn new(seen: [[f32; 2]; 3], framing: &Framing) -> Self {
        let mut all = [0.0; 16];
        let [[ax, bx, cx], [ay, by, cy]] = framing.matrix();
        let size = framing.source().map(|extent| extent as f32);
        let numbers = seen.into_iter().flatten().chain(size).chain([ax as f32, bx as f32, cx as f32, 0.0]);
        let numbers = numbers.chain([ay as f32, by as f32, cy as f32, 0.0]);
        all.iter_mut().zip(numbers).for_each(|(slot, number)| *slot = number);
        Scene(all)
    }
}

/// A device, and what is drawn on it.
pub struct Application {
    pub adapter: wgpu::Adapter,
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    /// What the camera sees.
    pub camera: wgpu::TextureView,
    pub keypoints: wgpu::Buffer,
    /// What is shown where there is no window.
    pub screen: wgpu::TextureView,
    scene: wgpu::Buffer,
    pipelines: [wgpu::RenderPipeline; 3],
    /// The bind groups of the room and of the camera's picture.
    groups: [wgpu::BindGroup; 2],
    strokes: u32,
}

impl Application {
    /// A camera of `size` pixels in front of `room`, on a device that can show what it sees in `window`, if there is one.
    pub fn new(
        instance: &wgpu::Instance,
        window: Option<&wgpu::Surface<'_>>,
        size: [u32; 2],
        room: &RgbaImage,
        limbs: &[[u32; 2]],
        parts: usize,
    ) -> Result<Self> {
        let options = wgpu::RequestAdapterOptions { compatible_surface: window, ..Default::default() };
        let adapter = pollster::block_on(instance.request_adapter(&options))?;
        let formats = window.map(|window| window.get_capabilities(&adapter).formats).unwrap_or_default();
        // One whose numbers are those that are drawn, or what there is.
        let plain = formats.iter().find(|format| !format.is_srgb());
        let shown = *plain.or(formats.first()).unwrap_or(&FORMAT);
        let (required_features, required_limits) = Context::wgpu_requirements(&adapter);
        let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
            label: Some("the application's device"),
            required_features,
            required_limits,
            ..Default::default()
        }))?;
        let texture = |size: [u32; 2], format, usage| {
            device.create_texture(&wgpu::TextureDescriptor {
                label: None,
                size: wgpu::Extent3d { width: size[0], height: size[1], depth_or_array_layers: 1 },
                mip_level_count: 1,
                sample_count: 1,
                dimension: wgpu::TextureDimension::D2,
                format,
                usage,
                view_formats: &[],
            })
        };
        let view = |texture: &wgpu::Texture| texture.create_view(&wgpu::TextureViewDescriptor::default());
        let drawn = wgpu::TextureUsages::RENDER_ATTACHMENT;
        let bound = wgpu::TextureUsages::TEXTURE_BINDING;
        let room_texture = texture(room.dimensions().into(), FORMAT, bound | wgpu::TextureUsages::COPY_DST);
        let rows = wgpu::TexelCopyBufferLayout {
            offset: 0,
            bytes_per_row: Some(4 * room.width()),
            rows_per_image: None,
        };
        queue.write_texture(room_texture.as_image_copy(), room, rows, room_texture.size());
        let camera = view(&texture(size, FORMAT, drawn | bound));
        let screen = view(&texture(size, shown, drawn | wgpu::TextureUsages::COPY_SRC));
        let buffer = |label, contents: &[u8], usage| {
            device.create_buffer_init(&wgpu::util::BufferInitDescriptor {
                label: Some(label),
                contents,
                usage,
            })
        };
        let scene = buffer("scene", &[0; 64], Usage::UNIFORM | Usage::COPY_DST);
        // `COPY_SRC` is for the look at the end.
        let keypoints = buffer("keypoints", &vec![0; 16 * parts], Usage::STORAGE | Usage::COPY_SRC);
        let limb_buffer = buffer("limbs", bytemuck::cast_slice(limbs), Usage::STORAGE);

        let module = device.create_shader_module(wgpu::include_wgsl!("scene.wgsl"));
        let layout = layout(&device);
        let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let pipeline = |vertex, fragment, topology, format: wgpu::TextureFormat| {
            device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
                label: Some(fragment),
                layout: Some(&pipeline_layout),
                vertex: wgpu::VertexState {
                    module: &module,
                    entry_point: Some(vertex),
                    compilation_options: wgpu::PipelineCompilationOptions::default(),
                    buffers: &[],
                },
                primitive: wgpu::PrimitiveState { topology, ..Default::default() },
                depth_stencil: None,
                multisample: wgpu::MultisampleState::default(),
                fragment: Some(wgpu::FragmentState {
                    module: &module,
                    entry_point: Some(fragment),
                    compilation_options: wgpu::PipelineCompilationOptions::default(),
                    targets: &[Some(format.into())],
                }),
                multiview_mask: None,
                cache: None,
            })
        };
        let pipelines = [
            pipeline("everywhere", "seen", wgpu::PrimitiveTopology::TriangleList, FORMAT),
            pipeline("everywhere", "shown", wgpu::PrimitiveTopology::TriangleList, shown),
            pipeline("stroke", "inked", wgpu::PrimitiveTopology::TriangleStrip, shown),
        ];
        let linear = device.create_sampler(&wgpu::SamplerDescriptor {
            mag_filter: wgpu::FilterMode::Linear,
            min_filter: wgpu::FilterMode::Linear,
            ..Default::default()
        });
        let group = |picture: &wgpu::TextureView| {
            let entry = |binding, resource| wgpu::BindGroupEntry { binding, resource };
            device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: None,
                layout: &layout,
                entries: &[
                    entry(0, scene.as_entire_binding()),
                    entry(1, wgpu::BindingResource::TextureView(picture)),
                    entry(2, wgpu::BindingResource::Sampler(&linear)),
                    entry(3, keypoints.as_entire_binding()),
                    entry(4, limb_buffer.as_entire_binding()),
                ],
            })
        };
        let groups = [group(&view(&room_texture)), group(&camera)];
        let strokes = (limbs.len() + parts) as u32;
        Ok(Application {
            adapter,
            device,
            queue,
            camera,
            keypoints,
            screen,
            scene,
            pipelines,
            groups,
            strokes,
        })
    }

    pub fn encoder(&self) -> wgpu::CommandEncoder {
        self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default())
    }

    /// Draws what the camera sees.
    pub fn draw_camera(&self, encoder: &mut wgpu::CommandEncoder, scene: &Scene) {
        self.queue.write_buffer(&self.scene, 0, bytemuck::cast_slice(&scene.0));
        let mut pass = pass(encoder, &self.camera);
        pass.set_pipeline(&self.pipelines[0]);
        pass.set_bind_group(0, &self.groups[0], &[]);
        pass.draw(0..3, 0..1);
    }

    /// Draws the camera's picture, and the skeleton that the keypoints are, into the upper left of `screen`.
    pub fn draw_screen(&self, encoder: &mut wgpu::CommandEncoder, screen: &wgpu::TextureView) {
        let mut pass = pass(encoder, screen);
        let camera = self.camera.texture();
        pass.set_viewport(0.0, 0.0, camera.width() as f32, camera.height() as f32, 0.0, 1.0);
        pass.set_bind_group(0, &self.groups[1], &[]);
        pass.set_pipeline(&self.pipelines[1]);
        pass.draw(0..3, 0..1);
        pass.set_pipeline(&self.pipelines[2]);
        pass.draw(0..4, 0..self.strokes);
    }

    /// Copies by `copy` into a buffer of so many bytes, and reads it.
    fn fetch(
        &self,
        bytes: u64,
        copy: impl FnOnce(&mut wgpu::CommandEncoder, &wgpu::Buffer),
    ) -> Result<Vec<u8>> {
        let usage = Usage::MAP_READ | Usage::COPY_DST;
        let descriptor =
            wgpu::BufferDescriptor { label: None, size: bytes, usage, mapped_at_creation: false };
        let staging = self.device.create_buffer(&descriptor);
        let mut encoder = self.encoder();
        copy(&mut encoder, &staging);
        self.queue.submit([encoder.finish()]);
        staging.slice(..).map_async(wgpu::MapMode::Read, |_| {});
        self.device.poll(wgpu::PollType::wait_indefinitely())?;
        Ok(staging.slice(..).get_mapped_range()?.to_vec())
    }

    /// The numbers in a buffer.
    pub fn read(&self, buffer: &wgpu::Buffer) -> Result<Vec<f32>> {
        let size = buffer.size();
        let bytes =
            self.fetch(size, |encoder, staging| encoder.copy_buffer_to_buffer(buffer, 0, staging, 0, size))?;
        Ok(bytemuck::pod_collect_to_vec(&bytes))
    }

    /// The pixels of a texture of four bytes each.
    pub fn pixels(&self, texture: &wgpu::Texture) -> Result<Vec<u8>> {
        let (size, row) = (texture.size(), 4 * texture.width() as usize);
        let stride = row.next_multiple_of(wgpu::COPY_BYTES_PER_ROW_ALIGNMENT as usize);
        let layout = wgpu::TexelCopyBufferLayout {
            offset: 0,
            bytes_per_row: Some(u32::try_from(stride)?),
            rows_per_image: None,
        };
        let bytes = self.fetch(stride as u64 * u64::from(size.height), |encoder, staging| {
            let target = wgpu::TexelCopyBufferInfo { buffer: staging, layout };
            encoder.copy_texture_to_buffer(texture.as_image_copy(), target, size);
        })?;
        Ok(bytes.chunks(stride).flat_map(|line| &line[..row]).copied().collect())
    }
}

fn pass<'e>(encoder: &'e mut wgpu::CommandEncoder, target: &wgpu::TextureView) -> wgpu::RenderPass<'e> {
    encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
        color_attachments: &[Some(wgpu::RenderPassColorAttachment {
            view: target,
            depth_slice: None,
            resolve_target: None,
            ops: wgpu::Operations::default(),
        })],
        ..Default::default()
    })
}

/// What all pipelines are given.
fn layout(device: &wgpu::Device) -> wgpu::BindGroupLayout {
    let both = wgpu::ShaderStages::VERTEX_FRAGMENT;
    let entry = |binding, ty| wgpu::BindGroupLayoutEntry { binding, visibility: both, ty, count: None };
    let buffer = |ty| wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None };
    let storage = wgpu::BufferBindingType::Storage { read_only: true };
    let picture = wgpu::BindingType::Texture {
        sample_type: wgpu::TextureSampleType::Float { filterable: true },
        view_dimension: wgpu::TextureViewDimension::D2,
        multisampled: false,
    };
    device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: None,
        entries: &[
            entry(0, buffer(wgpu::BufferBindingType::Uniform)),
            entry(1, picture),
            entry(2, wgpu::BindingType::Sampler(wgpu::SamplerBindingType::Filtering)),
            entry(3, buffer(storage)),
            entry(4, buffer(storage)),
        ],
    })
}
