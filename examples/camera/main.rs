//! A camera's picture to a skeleton on the screen, and nothing of it on the host: the application draws a moving
//! picture into a texture, Diptych records PoseNet and the decoding of its keypoints into the same command encoder, and
//! the application draws the skeleton from the buffer of keypoints. One submission a frame, the application's.
//!
//!     cargo run --release --example camera [-- FRAMES [PICTURE]]
//!
//! The screen is a texture, so that it runs where there is no window; the last frame is written as a PNG.
//! `examples/camera_window` shows the same in a window.
//!
//! With a device of Video4Linux the frames are that camera's, in NV12 or YUYV, and the GPU reads them where the driver put them
//! if it can (dma-buf); with a file they are raw frames, one behind the other:
//!
//!     cargo run --release --example camera -- --device /dev/video0 [--size 1280x720] [FRAMES [PICTURE]]
//!     cargo run --release --example camera -- --device film.yuv --size 1280x720 --format NV12 [FRAMES [PICTURE]]

mod gpu;
#[cfg(target_os = "linux")]
mod live;
mod pose;
#[cfg(target_os = "linux")]
mod v4l2;

use anyhow::{Context as _, Result, bail};
use diptych::{Colours, Context, Fit, Framing, Pictures, PixelFormat, Session, SessionOptions, wgpu};
use gpu::{Application, Scene};
use image::RgbaImage;
use std::path::PathBuf;
use std::time::Instant;

/// Width and height of the camera's picture, upright like a telephone's.
const CAMERA: [u32; 2] = [390, 600];

fn main() -> Result<()> {
    let (mut device, mut size, mut format) = (None, [640, 480], PixelFormat::Nv12);
    let (mut arguments, mut plain) = (std::env::args().skip(1), Vec::new());
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().with_context(|| format!("{argument} without a value"));
        match argument.as_str() {
            "--device" => device = Some(PathBuf::from(value()?)),
            "--size" => size = extent(&value()?)?,
            "--format" => format = value()?.parse()?,
            other if other.starts_with('-') => bail!("{other}: wanted --device, --size or --format"),
            _ => plain.push(argument),
        }
    }
    let mut plain = plain.into_iter();
    let frames: u32 = plain.next().map_or(Ok(60), |count| count.parse()).context("the number of frames")?;
    let target = plain.next().map_or_else(|| PathBuf::from("camera.png"), PathBuf::from);
    if let Some(source) = device {
        return live(source, size, format, frames, target);
    }
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let room = root.join("examples/posenet/data/people.png");
    let room = image::open(&room).with_context(|| room.display().to_string())?.to_rgba8();

    let application =
        Application::new(&wgpu::Instance::default(), None, CAMERA, &room, &pose::LIMBS, pose::PARTS)?;
    let context =
        Context::from_wgpu(&application.adapter, application.device.clone(), application.queue.clone())?;
    println!("{}", context.info());
    let (graph, input, looked_at) = pose::network()?;
    let mut session = Session::new(&context, &graph, SessionOptions::default())?;
    let output = session.outputs().last().context("no keypoints")?.name.clone();

    let framing = Framing::new(CAMERA, looked_at)?.fit(Fit::Letterbox);
    let (start, mut warm) = (Instant::now(), None);
    for frame in 0..frames.max(1) {
        let mut encoder = application.encoder();
        application.draw_camera(&mut encoder, &Scene::new(pose::camera(frame, CAMERA), &framing));
        let pictures = [(&application.camera, framing)];
        let pictures = Pictures::new(&pictures, Colours::range(-1.0, 1.0));
        session.encode(&mut encoder, &[(&input, pictures)], &[(&output, &application.keypoints)])?;
        application.draw_screen(&mut encoder, &application.screen);
        application.queue.submit([encoder.finish()]);
        if frame == 0 {
            application.device.poll(wgpu::PollType::wait_indefinitely())?;
            warm = Some((Instant::now(), context.wgpu_calls()));
        }
    }
    application.device.poll(wgpu::PollType::wait_indefinitely())?;
    if let Some((begin, calls)) = warm.filter(|_| frames > 1) {
        let each = begin.elapsed() / (frames - 1);
        println!("the first frame took {:.1?}, each of the others {each:.1?}", begin - start);
        anyhow::ensure!(context.wgpu_calls() == calls, "a frame cost more than its dispatches: {calls:?}");
        println!("of the library: no submission, no poll, no mapping and no copy in {} frames", frames - 1);
    }

    // The film is over: now the host looks.
    let pixels = application.pixels(application.screen.texture())?;
    let [width, height] = CAMERA;
    let picture = RgbaImage::from_raw(width, height, pixels).context("as many pixels as the screen")?;
    picture.save(&target).with_context(|| target.display().to_string())?;
    println!("the last frame is {}", target.display());
    pose::check(&application.read(&application.keypoints)?)
}

/// Such as `1280x720`.
fn extent(text: &str) -> Result<[u32; 2]> {
    let wrong = || format!("{text:?} as a size: wanted WIDTHxHEIGHT");
    let (width, height) = text.split_once('x').with_context(wrong)?;
    Ok([width.parse().with_context(wrong)?, height.parse().with_context(wrong)?])
}

#[cfg(target_os = "linux")]
fn live(source: PathBuf, size: [u32; 2], format: PixelFormat, frames: u32, picture: PathBuf) -> Result<()> {
    live::run(&live::Options { source, size, format, frames, picture })
}

#[cfg(not(target_os = "linux"))]
fn live(source: PathBuf, _: [u32; 2], _: PixelFormat, _: u32, _: PathBuf) -> Result<()> {
    bail!("{}: this example reads cameras of Video4Linux, which is Linux's", source.display())
}
