//! Films: the frames of a folder or of an animated GIF, and an animation made of drawn frames.

use crate::tables::{milliseconds, table};
use anyhow::{Context as _, Result, bail, ensure};
use comfy_table::Table;
use diptych_decode::picture::{LARGEST, Picture};
use image::codecs::gif::{GifDecoder, GifEncoder, Repeat};
use image::{AnimationDecoder, Delay, DynamicImage, Frame, ImageDecoder, ImageFormat, RgbImage};
use std::fs::File;
use std::io::{BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Colours are chosen from every n-th pixel: 1 is the best, 30 the quickest.
const GIF_SPEED: i32 = 10;

/// A picture and how long it is shown.
pub type Shown = (Picture, Delay);

/// Frames, as they are read.
pub type Frames = Box<dyn Iterator<Item = Result<Shown>>>;

/// The frames of a folder, by name, or of an animated GIF, and how many they are where that is known.
pub fn frames(source: &Path, fps: f32) -> Result<(Option<u64>, Frames)> {
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

/// Takes the next drawn frame.
pub type Add<'a> = &'a mut dyn FnMut(RgbImage, Delay) -> Result<()>;

/// Writes the frames that `draw` adds: to a folder as numbered PNGs if `path` is one or has no ending, else as
/// an animated GIF.
pub fn animate(path: &Path, draw: impl FnOnce(Add<'_>) -> Result<()>) -> Result<()> {
    let name = path.display();
    let mut size = None;
    let mut same = |frame: &RgbImage, number: usize| {
        let found = frame.dimensions();
        let (width, height) = *size.get_or_insert(found);
        let (w, h) = found;
        ensure!(
            found == (width, height),
            "frame {number} is {w}x{h}, wanted {width}x{height} like the first"
        );
        Ok(())
    };
    let mut number = 0;
    if path.is_dir() || path.extension().is_none() {
        std::fs::create_dir_all(path).with_context(|| format!("cannot make the folder {name}"))?;
        draw(&mut |frame, _| {
            number += 1;
            same(&frame, number)?;
            let file = path.join(format!("{number:05}.png"));
            frame
                .save_with_format(&file, ImageFormat::Png)
                .with_context(|| format!("cannot write {}", file.display()))
        })?;
    } else {
        let file = File::create(path).with_context(|| format!("cannot write {name}"))?;
        let mut file = BufWriter::new(file);
        {
            let mut gif = GifEncoder::new_with_speed(&mut file, GIF_SPEED);
            gif.set_repeat(Repeat::Infinite).with_context(|| format!("cannot write {name}"))?;
            draw(&mut |frame, delay| {
                number += 1;
                same(&frame, number)?;
                let rgba = DynamicImage::ImageRgb8(frame).into_rgba8();
                gif.encode_frame(Frame::from_parts(rgba, 0, 0, delay))
                    .with_context(|| format!("cannot write {name}"))
            })?;
        }
        file.flush().with_context(|| format!("cannot write {name}"))?;
    }
    ensure!(number > 0, "{name}: there were no frames to write");
    Ok(())
}

/// The middle time of each stage of a frame and of all together, the first frame left out where there are
/// others: it warms up.
pub fn medians<T: AsRef<[Duration]>>(times: &[T]) -> Vec<Duration> {
    let steady = if times.len() > 1 { &times[1..] } else { times };
    let median = |of: &dyn Fn(&[Duration]) -> Duration| {
        let mut all: Vec<Duration> = steady.iter().map(|times| of(times.as_ref())).collect();
        all.sort();
        all.get(all.len() / 2).copied().unwrap_or_default()
    };
    let stages = times.first().map_or(0, |times| times.as_ref().len());
    let mut middle: Vec<Duration> = (0..stages).map(|index| median(&|times| times[index])).collect();
    middle.push(median(&|times| times.iter().sum()));
    middle
}

/// The times of [`medians`] and their rates: a line for each stage, and one for all.
pub fn rates(stages: &[&str], medians: &[Duration]) -> Table {
    let row = |(name, time): (&str, &Duration)| {
        let fps = 1.0 / time.as_secs_f64().max(1e-9);
        vec![name.to_owned(), format!("{:.3}", milliseconds(*time)), format!("{fps:.1}")]
    };
    let names = stages.iter().copied().chain(["all"]);
    table(&["stage", "ms", "fps"], &[1, 2], names.zip(medians).map(row))
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

    #[test]
    fn an_animation_is_a_gif_or_numbered_pictures_of_one_size() {
        let folder = tempfile::tempdir().expect("a folder");
        let delay = Delay::from_numer_denom_ms(40, 1);
        let frame = |width: u32| RgbImage::from_pixel(width, 2, image::Rgb([width as u8 * 20; 3]));
        for (name, read) in [("film.gif", "film.gif"), ("film", "film")] {
            let path = folder.path().join(name);
            animate(&path, |add| (0..3).try_for_each(|_| add(frame(4), delay))).expect("written");
            let (_, read) = frames(&folder.path().join(read), 25.0).expect("frames");
            let read: Vec<Shown> = read.collect::<Result<_>>().expect("readable");
            assert_eq!(read.len(), 3, "{name}");
            assert_eq!(read[2].0.pixels.get_pixel(3, 1)[0], 80, "{name}");
        }
        assert!(folder.path().join("film/00003.png").is_file());
        let path = folder.path().join("wrong.gif");
        let other = animate(&path, |add| [4, 5].into_iter().try_for_each(|width| add(frame(width), delay)));
        assert!(format!("{:#}", other.expect_err("two sizes")).contains("frame 2 is 5x2, wanted 4x2"));
        assert!(animate(&path, |_| Ok(())).is_err(), "no frames");
    }

    #[test]
    fn medians_leave_out_the_first_frame() {
        let ms = |values: [u64; 2]| values.map(Duration::from_millis);
        let middle = medians(&[ms([90, 90]), ms([1, 4]), ms([2, 5]), ms([3, 9])]);
        assert_eq!(middle, [2, 5, 7].map(Duration::from_millis));
        assert_eq!(medians(&[ms([90, 10])])[2], Duration::from_millis(100));
        let text = rates(&["draw", "encode"], &middle).to_string();
        assert!(text.contains("500.0") && text.contains("all"), "{text}");
    }
}
