//! Frames a second from a camera's NV12 or YUYV to PoseNet's keypoints, beside the same picture in red, green and blue: on wgpu and
//! on OpenCL, from memory of the device and from memory of the host.
//!
//!     cargo run --release --example frames -- [--backend wgpu|opencl] [--size 1920x1080] [--frames 64] [--rounds 9]
//!
//! The ways take turns within each round, and the table has the medians of the rounds. The program needs no file.

#[path = "../camera/pose.rs"]
#[expect(dead_code, reason = "nothing is drawn here")]
mod pose;

mod opencl;
mod source;
mod wgpu;

use anyhow::{Context as _, Result, bail, ensure};
use diptych::{Colours, Fit, Framing};
use source::Source;
use std::time::{Duration, Instant};

/// What a frame lies in, and how it reaches the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    RgbaTexture,
    RgbaBuffer,
    Nv12Textures,
    Nv12Buffer,
    YuyvBuffer,
    RgbaTextureFromHost,
    Nv12BufferFromHost,
    Nv12Bytes,
    Nv12Converted,
}

const WAYS: [(Way, &str); 9] = [
    (Way::RgbaTexture, "on the device: RGBA in a texture"),
    (Way::RgbaBuffer, "on the device: RGBA in a buffer"),
    (Way::Nv12Textures, "on the device: NV12 in two textures"),
    (Way::Nv12Buffer, "on the device: NV12 in a buffer"),
    (Way::YuyvBuffer, "on the device: YUYV in a buffer"),
    (Way::RgbaTextureFromHost, "from the host: RGBA to a texture"),
    (Way::Nv12BufferFromHost, "from the host: NV12 to a buffer"),
    (Way::Nv12Bytes, "from the host: NV12 by Session::submit"),
    (Way::Nv12Converted, "from the host: NV12 to RGBA by the CPU (one thread), and that to a texture"),
];

/// Frames that are enqueued before the host waits.
const UNDER_WAY: u32 = 8;

/// A device with the network and one frame in every form.
trait Bench {
    fn name(&self) -> String;
    /// Enqueues one frame.
    fn frame(&mut self, way: Way) -> Result<()>;
    /// Waits for all frames.
    fn wait(&mut self) -> Result<()>;
    /// Keypoints of the last frame.
    fn keypoints(&mut self) -> Result<Vec<f32>>;
}

/// What is shown of the frame, and as what.
fn shown(source: &Source, looked_at: [u32; 2]) -> Result<(Framing, Colours)> {
    Ok((Framing::new(source.size, looked_at)?.fit(Fit::Letterbox), Colours::range(-1.0, 1.0)))
}

/// The time of a frame, of `frames` in a row.
fn time(bench: &mut dyn Bench, way: Way, frames: u32) -> Result<Duration> {
    let start = Instant::now();
    for number in 1..=frames {
        bench.frame(way)?;
        if number % UNDER_WAY == 0 {
            bench.wait()?;
        }
    }
    bench.wait()?;
    Ok(start.elapsed() / frames.max(1))
}

fn measure(bench: &mut dyn Bench, frames: u32, rounds: usize) -> Result<()> {
    println!("\n{}", bench.name());
    // Each way once: kernels are compiled, and the keypoints are the same.
    let mut first: Option<Vec<f32>> = None;
    for (way, name) in WAYS {
        bench.frame(way)?;
        bench.wait()?;
        let found = bench.keypoints()?;
        let wanted = first.get_or_insert_with(|| found.clone());
        let pairs = wanted.chunks_exact(4).zip(found.chunks_exact(4)).filter(|(wanted, _)| wanted[2] > 0.5);
        let off = pairs.map(|(a, b)| (a[0] - b[0]).abs().max((a[1] - b[1]).abs())).fold(0.0, f32::max);
        ensure!(off < 4.0, "{name}: a keypoint is {off:.1} pixels off");
    }
    let mut times = vec![Vec::new(); WAYS.len()];
    for _ in 0..rounds.max(1) {
        for (times, (way, _)) in times.iter_mut().zip(WAYS) {
            times.push(time(bench, way, frames)?);
        }
    }
    let medians: Vec<Duration> = times
        .iter_mut()
        .map(|times| {
            times.sort();
            times[times.len() / 2]
        })
        .collect();
    println!("| frames | ms | frames a second | of RGBA's |\n|---|---|---|---|");
    for (index, ((_, name), median)) in WAYS.iter().zip(&medians).enumerate() {
        let base = medians[if index < 5 { 0 } else { 5 }].as_secs_f64();
        let seconds = median.as_secs_f64();
        println!("| {name} | {:.3} | {:.0} | {:.2} |", seconds * 1e3, 1.0 / seconds, base / seconds);
    }
    Ok(())
}

fn main() -> Result<()> {
    let (mut backend, mut size, mut frames, mut rounds) = (None, [1920, 1080], 64, 9);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let value = arguments.next().with_context(|| format!("{argument} without a value"))?;
        match argument.as_str() {
            "--backend" => backend = Some(value),
            "--size" => {
                let (width, height) = value.split_once('x').context("--size: wanted WIDTHxHEIGHT")?;
                size = [width.parse().context("--size")?, height.parse().context("--size")?];
            }
            "--frames" => frames = value.parse().context("--frames")?,
            "--rounds" => rounds = value.parse().context("--rounds")?,
            other => bail!("{other}: wanted --backend, --size, --frames or --rounds"),
        }
    }
    let source = Source::new(size)?;
    println!("{} x {} pixels, {frames} frames a round, medians of {rounds} rounds", size[0], size[1]);
    let mut measured = 0;
    for name in ["wgpu", "opencl"].iter().filter(|name| backend.as_deref().is_none_or(|only| only == **name))
    {
        let bench: Result<Box<dyn Bench>> = match *name {
            "wgpu" => wgpu::open(&source).map(|bench| Box::new(bench) as _),
            _ => opencl::open(&source).map(|bench| Box::new(bench) as _),
        };
        match bench {
            Ok(mut bench) => {
                measure(&mut *bench, frames, rounds)?;
                measured += 1;
            }
            Err(error) if backend.is_none() => println!("\n{name}: {error:#}"),
            Err(error) => return Err(error),
        }
    }
    ensure!(measured > 0, "no device was measured");
    Ok(())
}
