//! Frames of a camera, or of a file of raw frames, to keypoints: luma and chroma go to the GPU as they are.

use crate::pose;
use crate::v4l2::Camera;
use anyhow::{Context as _, Result, ensure};
use diptych::{
    Colours, Context, Dims, Fit, Frame, FrameLayout, Frames, Framing, PixelFormat, Session, SessionOptions,
    wgpu,
};
use image::{Rgb, RgbImage};
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What is asked for.
pub struct Options {
    pub source: PathBuf,
    pub size: [u32; 2],
    /// The pixel format, if the source is a file.
    pub format: PixelFormat,
    pub frames: u32,
    pub picture: PathBuf,
}

/// Where frames come from.
enum Source {
    Camera(Camera),
    File(File, FrameLayout),
}

impl Source {
    fn open(options: &Options) -> Result<Self> {
        let Options { source, size, format, .. } = options;
        if source.is_file() {
            let layout = FrameLayout::new(*format, *size)?;
            let bytes = source.metadata()?.len();
            let (name, each) = (source.display(), layout.bytes());
            ensure!(
                bytes >= each,
                "{name} has {bytes} bytes, and one {format} frame of {size:?} pixels {each}"
            );
            return Ok(Source::File(File::open(source)?, layout));
        }
        Ok(Source::Camera(Camera::open(source, *size)?))
    }

    fn layout(&self) -> FrameLayout {
        match self {
            Source::Camera(camera) => camera.layout,
            Source::File(_, layout) => *layout,
        }
    }

    /// The next frame, as [`Camera::next`] gives it.
    fn next(&mut self, with: impl FnOnce(usize, &[u8]) -> Result<()>) -> Result<()> {
        match self {
            Source::Camera(camera) => camera.next(with),
            Source::File(file, layout) => {
                let mut bytes = vec![0; layout.bytes() as usize];
                if file.read_exact(&mut bytes).is_err() {
                    file.seek(SeekFrom::Start(0))?;
                    file.read_exact(&mut bytes)?;
                }
                with(0, &bytes)
            }
        }
    }
}

/// Where the GPU finds a frame.
enum Memory {
    /// The camera's own memory, one buffer for each of its frames.
    Shared(Vec<wgpu::Buffer>),
    /// A buffer that each frame is written to.
    Copied(wgpu::Buffer),
}

impl Memory {
    fn new(context: &Context, device: &wgpu::Device, source: &Source) -> Self {
        let bytes = source.layout().bytes();
        if let Source::Camera(camera) = source {
            let shared = camera.exported().and_then(|files| {
                files.iter().map(|file| Ok(context.dmabuf_buffer(file, bytes)?)).collect::<Result<Vec<_>>>()
            });
            match shared {
                Ok(buffers) => {
                    println!("the GPU reads the camera's memory: {} dma-bufs", buffers.len());
                    return Memory::Shared(buffers);
                }
                Err(error) => println!("each frame is copied to the GPU, since {error:#}"),
            }
        }
        Memory::Copied(device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("frame"),
            size: bytes.next_multiple_of(wgpu::COPY_BUFFER_ALIGNMENT),
            usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        }))
    }

    /// The buffer of a frame, which holds it.
    fn of(&self, queue: &wgpu::Queue, index: usize, bytes: &[u8]) -> Result<&wgpu::Buffer> {
        match self {
            Memory::Shared(buffers) => buffers.get(index).context("a frame in memory that was not exported"),
            Memory::Copied(buffer) => {
                // In whole words, the last of them filled up.
                let bytes = &bytes[..bytes.len().min(buffer.size() as usize)];
                let (words, rest) = bytes.split_at(bytes.len() - bytes.len() % 4);
                queue.write_buffer(buffer, 0, words);
                if !rest.is_empty() {
                    let mut word = [0; 4];
                    word[..rest.len()].copy_from_slice(rest);
                    queue.write_buffer(buffer, words.len() as u64, &word);
                }
                Ok(buffer)
            }
        }
    }
}

pub fn run(options: &Options) -> Result<()> {
    let mut source = Source::open(options)?;
    let layout = source.layout();
    let name = match &source {
        Source::Camera(camera) => camera.name.clone(),
        Source::File(..) => options.source.display().to_string(),
    };
    let ([width, height], (matrix, range, _)) = (layout.size(), layout.colour());
    println!("{name}: {width} x {height} pixels of {}, {matrix:?}, {range:?} range", layout.format());

    let context = Context::new(diptych::Backend::Wgpu)?;
    println!("{}", context.info());
    let (device, queue) = context.wgpu().context("a device of wgpu")?;
    let (graph, input, looked_at) = pose::network()?;
    let mut session = Session::new(&context, &graph, SessionOptions::default())?;
    let port = session.outputs().last().context("no keypoints")?;
    let (output, bytes) = (port.name.clone(), 4 * port.dims.elements() as u64);
    let buffer = |usage| {
        device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: bytes,
            usage,
            mapped_at_creation: false,
        })
    };
    let result = buffer(wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC);
    let staging = buffer(wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
    let memory = Memory::new(&context, device, &source);
    let framing = Framing::new(layout.size(), looked_at)?.fit(Fit::Letterbox);

    let (mut times, mut last) = (Vec::new(), (Vec::new(), Vec::new()));
    let count = options.frames.max(1);
    for number in 0..count {
        source.next(|index, bytes| {
            let begin = Instant::now();
            let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            let frames = [(Frame::new(memory.of(queue, index, bytes)?, layout), framing)];
            let frames = Frames::new(&frames, Colours::range(-1.0, 1.0));
            session.encode(&mut encoder, &[(&input, frames)], &[(&output, &result)])?;
            encoder.copy_buffer_to_buffer(&result, 0, &staging, 0, result.size());
            queue.submit([encoder.finish()]);
            // The camera writes this memory again once the frame is given back.
            staging.slice(..).map_async(wgpu::MapMode::Read, |_| {});
            device.poll(wgpu::PollType::wait_indefinitely())?;
            let keypoints: Vec<f32> = bytemuck::pod_collect_to_vec(&staging.slice(..).get_mapped_range()?);
            staging.unmap();
            times.push(begin.elapsed());
            let sure = keypoints.chunks_exact(4).filter(|keypoint| keypoint[2] > 0.5).count();
            if number % 30 == 0 {
                println!("frame {number}: {sure} of {} keypoints, {:.1?}", pose::PARTS, begin.elapsed());
            }
            if number + 1 == count {
                last = (bytes.to_vec(), keypoints);
            }
            Ok(())
        })?;
    }
    let median = median(&mut times);
    println!("{count} frames, {median:.1?} each from a frame in memory to keypoints on the host");
    draw(&layout, &last.0, &last.1, &framing)?
        .save(&options.picture)
        .with_context(|| options.picture.display().to_string())?;
    println!("the last frame is {}", options.picture.display());
    Ok(())
}

/// The middle time; the first frame warms up.
fn median(times: &mut Vec<Duration>) -> Duration {
    if times.len() > 1 {
        times.remove(0);
    }
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// A frame in red, green and blue, with a square for each keypoint that the network was sure of.
fn draw(layout: &FrameLayout, bytes: &[u8], keypoints: &[f32], framing: &Framing) -> Result<RgbImage> {
    let [width, height] = layout.size();
    let frames = [(Frame::new(bytes, *layout), Framing::new([width, height], [width, height])?)];
    let dims = Dims::new(&[1, height as usize, width as usize, 3])?;
    let tensor = Frames::new(&frames, Colours::range(0.0, 255.0)).to_tensor(dims)?;
    let pixels = tensor.to_f32().iter().map(|value| value.round() as u8).collect();
    let mut picture = RgbImage::from_raw(width, height, pixels).context("as many pixels as the frame")?;
    for keypoint in keypoints.chunks_exact(4).filter(|keypoint| keypoint[2] > 0.5) {
        let [x, y] = framing.to_source([f64::from(keypoint[0]), f64::from(keypoint[1])]);
        for (dx, dy) in (-3..=3).flat_map(|dy| (-3..=3).map(move |dx| (dx, dy))) {
            let (x, y) = (x as i64 + dx, y as i64 + dy);
            let place = u32::try_from(x).ok().zip(u32::try_from(y).ok());
            if let Some(pixel) = place.and_then(|(x, y)| picture.get_pixel_mut_checked(x, y)) {
                *pixel = Rgb([255, 220, 30]);
            }
        }
    }
    Ok(picture)
}

/// Whether a file of raw frames is read to its end and from its beginning again.
#[cfg(test)]
#[test]
fn a_file_of_frames_is_read_again_from_its_beginning() {
    let path = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(path.path(), [[1u8; 24], [2; 24]].concat()).expect("two frames");
    let mut options = Options {
        source: path.path().to_owned(),
        size: [4, 4],
        format: PixelFormat::Nv12,
        frames: 1,
        picture: PathBuf::from("none"),
    };
    let mut source = Source::open(&options).expect("a file");
    for wanted in [1, 2, 1] {
        let seen = source.next(|_, bytes| {
            assert!(bytes.iter().all(|byte| *byte == wanted));
            Ok(())
        });
        seen.expect("a frame");
    }
    options.size = [8, 8];
    let error = Source::open(&options).err().expect("too short").to_string();
    assert!(error.contains("48 bytes") && error.contains("96"), "{error}");
}
