//! Many pictures to one animation, with the rate of each stage while it goes on.

use crate::draw;
use crate::model::{self, Network};
use crate::options::Options;
use crate::picture::{LARGEST, Picture};
use crate::progress::Stages;
use crate::report::{milliseconds, table};
use anyhow::{Context as _, Result, bail, ensure};
use image::codecs::gif::{GifDecoder, GifEncoder, Repeat};
use image::{AnimationDecoder, Delay, DynamicImage, Frame, ImageDecoder, RgbImage};
use std::fs::File;
use std::io::{BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// From a frame to a frame of the animation.
pub const STAGES: [&str; 8] = ["decode", "resize", "upload", "network", "download", "pose", "draw", "encode"];

/// Colours are chosen from every n-th pixel: 1 is the best, 30 the quickest.
const GIF_SPEED: i32 = 10;

/// A picture and how long it is shown.
type Shown = (Picture, Delay);

/// Frames, as they are read.
type Frames = Box<dyn Iterator<Item = Result<Shown>>>;

/// Makes the animation: the text to tell.
pub fn film(options: &Options, source: &Path, model: &Path, network: &mut Network) -> Result<String> {
    let (count, frames) = frames(source, options.fps)?;
    let output = options.output();
    let name = output.display();
    let file = File::create(&output).with_context(|| format!("cannot write {name}"))?;
    let mut file = BufWriter::new(file);
    let stages = Stages::new(&STAGES, count);
    let (mut times, mut size) = (Vec::new(), None);
    {
        let mut gif = GifEncoder::new_with_speed(&mut file, GIF_SPEED);
        gif.set_repeat(Repeat::Infinite).with_context(|| format!("cannot write {name}"))?;
        let mut clock = Instant::now();
        for frame in frames {
            let mut lap = || std::mem::replace(&mut clock, Instant::now()).elapsed();
            let (picture, delay) = frame?;
            let dimensions = picture.pixels.dimensions();
            let (width, height) = *size.get_or_insert(dimensions);
            ensure!(
                dimensions == (width, height),
                "{}: frame {} is {}x{}, wanted {width}x{height} like the first",
                source.display(),
                times.len() + 1,
                dimensions.0,
                dimensions.1
            );
            let decode = lap();
            let input = network.model.input(&picture)?;
            let resize = lap();
            let (heads, run) = network.run_in_stages(&input)?;
            lap();
            let poses = model::poses(&heads, &network.model, &picture, options.several())?;
            let pose = lap();
            let drawn = draw::draw(&picture.pixels, &poses, options.min_score)?;
            let draw = lap();
            let rgba = DynamicImage::ImageRgb8(drawn).into_rgba8();
            let frame = Frame::from_parts(rgba, 0, 0, delay);
            gif.encode_frame(frame).with_context(|| format!("cannot write {name}"))?;
            let row = [decode, resize, run.upload, run.network, run.download, pose, draw, lap()];
            times.push(row);
            stages.show(&row);
        }
    }
    stages.clear();
    ensure!(!times.is_empty(), "{}: found no frames", source.display());
    file.flush().with_context(|| format!("cannot write {name}"))?;
    Ok(told(&times, model, network, &output))
}

/// The frames of a folder, by name, or of an animated GIF, and how many they are where that is known.
fn frames(source: &Path, fps: f32) -> Result<(Option<u64>, Frames)> {
    let name = source.display().to_string();
    if source.is_dir() {
        let paths = pictures(source)?;
        ensure!(!paths.is_empty(), "{name}: found no pictures (jpg, png, bmp)");
        let delay = Delay::from_numer_denom_ms((1000.0 / fps).round() as u32, 1);
        let count = paths.len() as u64;
        let frames = paths.into_iter().map(move |path| Ok((Picture::open(&path)?, delay)));
        return Ok((Some(count), Box::new(frames)));
    }
    let file = File::open(source).with_context(|| format!("cannot read the frames {name}"))?;
    let wrong = format!("{name} is neither a folder of pictures nor a GIF");
    let decoder = GifDecoder::new(BufReader::new(file)).context(wrong)?;
    let bytes = decoder.total_bytes();
    ensure!(bytes <= LARGEST, "{name} is {bytes} bytes a frame when unpacked, wanted at most {LARGEST}");
    let frames = decoder.into_frames().enumerate().map(move |(index, frame)| {
        let frame = frame.with_context(|| format!("{name}: frame {}", index + 1))?;
        let delay = frame.delay();
        let pixels: RgbImage = DynamicImage::ImageRgba8(frame.into_buffer()).into_rgb8();
        Ok((Picture { pixels }, delay))
    });
    Ok((None, Box::new(frames)))
}

/// The pictures of a folder in the order of their names.
fn pictures(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("{}", folder.display()))? {
        let path = entry.with_context(|| format!("{}", folder.display()))?.path();
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or("").to_ascii_lowercase();
        if ["jpg", "jpeg", "png", "bmp"].contains(&ending.as_str()) {
            found.push(path);
        }
    }
    found.sort();
    if found.len() > u16::MAX.into() {
        bail!("{}: found {} pictures, wanted at most {}", folder.display(), found.len(), u16::MAX);
    }
    Ok(found)
}

/// The middle time of each stage, the first frame left out where there are others: it warms up.
fn told(times: &[[Duration; STAGES.len()]], model: &Path, network: &Network, output: &Path) -> String {
    let steady = if times.len() > 1 { &times[1..] } else { times };
    let median = |of: &dyn Fn(&[Duration; STAGES.len()]) -> Duration| {
        let mut all: Vec<Duration> = steady.iter().map(of).collect();
        all.sort();
        all.get(all.len() / 2).copied().unwrap_or_default()
    };
    let row = |name: &str, time: Duration| {
        let fps = 1.0 / time.as_secs_f64().max(1e-9);
        vec![name.to_owned(), format!("{:.3}", milliseconds(time)), format!("{fps:.1}")]
    };
    let mut rows = Vec::new();
    for (index, name) in STAGES.iter().enumerate() {
        rows.push(row(name, median(&|times| times[index])));
    }
    rows.push(row("all", median(&|times| times.iter().sum())));
    format!(
        "model    {}\ndevice   {}\n\n{}\n\nframes   {}\ndrawing  {}\n",
        model.display(),
        network.device,
        table(&["stage", "ms", "fps"], &[1, 2], rows.into_iter()),
        times.len(),
        output.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_read_by_name_and_a_gif_frame_by_frame() {
        let folder = tempfile::tempdir().expect("a folder");
        for (index, name) in ["b.png", "a.png", "c.txt"].iter().enumerate() {
            let pixels = RgbImage::from_pixel(4, 2, image::Rgb([index as u8 * 90; 3]));
            let path = folder.path().join(name);
            pixels.save_with_format(path, image::ImageFormat::Png).expect("a picture");
        }
        let (count, read) = frames(folder.path(), 10.0).expect("two pictures");
        let read: Vec<Shown> = read.collect::<Result<_>>().expect("readable");
        assert_eq!((count, read.len()), (Some(2), 2));
        assert_eq!(read[0].0.pixels.get_pixel(0, 0)[0], 90, "a.png first");
        assert_eq!(read[0].1.numer_denom_ms(), (100, 1));

        let path = folder.path().join("film.gif");
        let mut gif = GifEncoder::new(File::create(&path).expect("a file"));
        for (picture, delay) in &read {
            let rgba = DynamicImage::ImageRgb8(picture.pixels.clone()).into_rgba8();
            gif.encode_frame(Frame::from_parts(rgba, 0, 0, *delay)).expect("a frame");
        }
        drop(gif);
        let (_, again) = frames(&path, 25.0).expect("a GIF");
        let again: Vec<Shown> = again.collect::<Result<_>>().expect("readable");
        assert_eq!(again.len(), 2);
        assert_eq!(again[0].1.numer_denom_ms(), (100, 1), "its own rate");
        assert_eq!(again[0].0.pixels.get_pixel(3, 1)[0], 90);
    }

    #[test]
    fn what_holds_no_frames_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let told = |path: &Path| format!("{:#}", frames(path, 10.0).err().expect("no frames"));
        assert!(told(folder.path()).contains("found no pictures"));
        assert!(told(&folder.path().join("nothing")).contains("nothing"));
        let text = folder.path().join("text.gif");
        std::fs::write(&text, "no GIF").expect("a file");
        assert!(told(&text).contains("neither a folder"), "{}", told(&text));
    }
}
