//! Pictures of drawn people, made from the one that is bundled, in a Parquet file.

use anyhow::{Context as _, Result};
use datafusion::arrow::array::{ArrayRef, BinaryArray, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;
use image::codecs::jpeg::JpegEncoder;
use image::imageops::{FilterType, crop_imm, flip_horizontal_in_place, resize};
use image::{ImageFormat, RgbImage};
use std::fs::File;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Drawn by `examples/posenet/train/figures.py`.
const PEOPLE: &[u8] = include_bytes!("../../../../../examples/posenet/data/people.png");

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The file to write, with the columns `id` and `image`.
    file: PathBuf,
    /// How many pictures.
    #[arg(long, default_value_t = 256)]
    count: u32,
    /// One in so many cannot be read: null, empty, text, or cut off. Unless said, all can.
    #[arg(long)]
    bad: Option<u32>,
    /// Pictures of a row group, the least that a task reads.
    #[arg(long, default_value_t = 16)]
    group: usize,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    write(&arguments.file, arguments.count, arguments.bad, arguments.group)
}

/// Writes `count` pictures.
pub fn write(path: &Path, count: u32, bad: Option<u32>, group: usize) -> Result<()> {
    let people = people()?;
    let schema = Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("image", DataType::Binary, true),
    ]);
    let schema = Arc::new(schema);
    let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group.max(1))).build();
    let mut writer = ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties))?;
    for first in (0..count).step_by(group.max(1)) {
        let ids = first..count.min(first.saturating_add(u32::try_from(group.max(1))?));
        let images = ids.clone().map(|id| match bad {
            Some(bad) if bad > 0 && id % bad == bad - 1 => unreadable(&people, id / bad),
            _ => picture(&people, id).map(Some),
        });
        let images = images.collect::<Result<Vec<Option<Vec<u8>>>>>()?;
        let images: BinaryArray = images.iter().map(Option::as_deref).collect();
        let ids = Int64Array::from_iter_values(ids.map(i64::from));
        let columns: Vec<ArrayRef> = vec![Arc::new(ids), Arc::new(images)];
        writer.write(&RecordBatch::try_new(Arc::clone(&schema), columns)?)?;
    }
    writer.close()?;
    Ok(())
}

/// The picture that the others are made from.
pub fn people() -> Result<RgbImage> {
    Ok(image::load_from_memory(PEOPLE).context("the bundled picture")?.into_rgb8())
}

/// The picture of a number: a part of the bundled one, mirrored, lighter or darker, in another size, as PNG or JPEG.
pub fn picture(people: &RgbImage, id: u32) -> Result<Vec<u8>> {
    // A number of 32 bits that differs much from that of the next picture.
    let mixed = id.wrapping_add(1).wrapping_mul(0x9E37_79B1);
    let part = |shift: u32, of: u32| (mixed >> shift) % of;
    let (width, height) = people.dimensions();
    let (w, h) = (width * 3 / 4 + part(0, width / 4), height * 4 / 5 + part(8, height / 5));
    let (x, y) = (part(4, width - w), part(12, height - h));
    let mut pixels = crop_imm(people, x, y, w, h).to_image();
    if part(16, 2) == 1 {
        flip_horizontal_in_place(&mut pixels);
    }
    let light = 0.8 + 0.05 * part(18, 8) as f32;
    for value in pixels.iter_mut() {
        *value = (f32::from(*value) * light).min(255.0) as u8;
    }
    let size = 60 + part(22, 40);
    let pixels = resize(&pixels, w * size / 100, h * size / 100, FilterType::Triangle);
    let mut encoded = Vec::new();
    if id.is_multiple_of(2) {
        pixels.write_to(&mut Cursor::new(&mut encoded), ImageFormat::Png)?;
    } else {
        pixels.write_with_encoder(JpegEncoder::new_with_quality(&mut encoded, 90))?;
    }
    Ok(encoded)
}

/// What is no picture, in one of four ways.
fn unreadable(people: &RgbImage, id: u32) -> Result<Option<Vec<u8>>> {
    Ok(match id % 4 {
        0 => None,
        1 => Some(Vec::new()),
        2 => Some(b"a text".to_vec()),
        _ => {
            // A PNG; the decoder of JPEG is content with half a picture.
            let mut cut = picture(people, 2 * id)?;
            cut.truncate(cut.len() / 2);
            Some(cut)
        }
    })
}
