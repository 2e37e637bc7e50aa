//! PoseNet on the GPU: from a texture to keypoints, one submission a frame and the one wait for its result.

use crate::frames::{Frame, Frames};
use crate::pose;
use anyhow::{Context as _, Result, ensure};
use diptych::{Colours, Context, Fit, Framing, Pictures, Session, SessionOptions, wgpu};
use std::path::PathBuf;

/// The session, and what a frame is read from and written to.
pub struct Poses {
    context: Context,
    session: Session,
    frames: Frames,
    /// The network's input, and width and height of what it looks at.
    input: String,
    looked_at: [u32; 2],
    output: String,
    keypoints: wgpu::Buffer,
    /// Where the host reads them.
    read: wgpu::Buffer,
}

impl Poses {
    /// Opens the GPU, and prepares the network for it. Compiled kernels are kept in `cache`.
    pub fn new(cache: PathBuf) -> Result<Self> {
        let (adapter, frames) = Frames::open()?;
        let (device, queue) = (frames.device.clone(), frames.queue.clone());
        let context = Context::builder().kernel_cache(cache).from_wgpu(&adapter, device, queue)?;
        let (graph, input, looked_at) = pose::network()?;
        let session = Session::new(&context, &graph, SessionOptions::default())?;
        let output = session.outputs().last().context("no keypoints")?.name.clone();
        let buffer = |usage| {
            let size = 4 * 4 * pose::PARTS as u64;
            let wanted = wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false };
            frames.device.create_buffer(&wanted)
        };
        let keypoints = buffer(wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC);
        let read = buffer(wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
        Ok(Poses { context, session, frames, input, looked_at, output, keypoints, read })
    }

    /// The device, and whether it takes hardware buffers.
    pub fn info(&self) -> String {
        let shares = match self.frames.lacks() {
            None => "hardware buffers are read where they lie".to_owned(),
            Some(lacks) => format!("no hardware buffers: {lacks}"),
        };
        format!("{}; {shares}", self.context.info())
    }

    /// x, y and score of each part, in pixels of the frame; `degrees` is what a camera's frame has to be turned by, clockwise,
    /// to be upright: 0, 90, 180 or 270.
    pub fn find(&mut self, frame: Frame<'_>, degrees: i32) -> Result<Vec<f32>> {
        ensure!(
            [0, 90, 180, 270].contains(&degrees),
            "a turn of {degrees} degrees, wanted 0, 90, 180 or 270"
        );
        let Poses { session, frames, keypoints, read, .. } = self;
        let texture = frames.texture(frame)?;
        let (view, size) = (texture.view(), texture.size());
        // What the upright picture has on its right lies at this angle in the frame.
        let framing = upright(size, self.looked_at, degrees)?;
        let mut encoder = frames.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let pictures = [(view, framing)];
        let pictures = Pictures::new(&pictures, Colours::range(-1.0, 1.0));
        session.encode(&mut encoder, &[(&self.input, pictures)], &[(&self.output, &*keypoints)])?;
        encoder.copy_buffer_to_buffer(keypoints, 0, read, 0, read.size());
        frames.submit(&texture, encoder.finish())?;

        let slice = read.slice(..);
        let (sender, mapped) = std::sync::mpsc::channel();
        slice.map_async(wgpu::MapMode::Read, move |result| drop(sender.send(result)));
        frames.device.poll(wgpu::PollType::wait_indefinitely())?;
        mapped.recv().context("the device did not answer")??;
        let found = slice.get_mapped_range()?;
        let numbers = found.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
        let numbers: Vec<f32> = numbers.collect();
        drop(found);
        read.unmap();
        let places = numbers.chunks_exact(4).flat_map(|keypoint| {
            let [x, y] = framing.to_source([f64::from(keypoint[0]), f64::from(keypoint[1])]);
            [x as f32, y as f32, keypoint[2]]
        });
        Ok(places.collect())
    }
}

/// All of a frame, upright, with borders where it does not fit.
fn upright(size: [u32; 2], looked_at: [u32; 2], degrees: i32) -> diptych::Result<Framing> {
    let framing = Framing::new(size, looked_at)?;
    let [width, height] = size.map(f64::from);
    // Turned by a quarter, the crop is as wide as the frame is high.
    let framing = match degrees % 180 {
        0 => framing,
        _ => framing.crop([width / 2.0, height / 2.0], [height, width])?,
    };
    Ok(framing.rotate(-f64::from(degrees).to_radians())?.fit(Fit::Letterbox))
}
