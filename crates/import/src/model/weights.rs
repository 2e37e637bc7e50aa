//! Models whose weights are put in the place of others, so that a file can be shown without what was learned.

use super::MAX_FILE_BYTES;
use super::reason::Reason;
use super::spans::{FEWEST, Span, Stored};
use crate::error::Result;
use crate::random::Random;
use crate::sorted;
use half::{bf16, f16};

/// A random number of mean 0 and deviation 1: the sum of twelve uniform numbers, which has no long tails.
fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
}

/// Puts random numbers in the place of a constant's, of the same mean and deviation as its finite ones; none is negative
/// where none was.
fn replace<const N: usize>(
    bytes: &mut [u8],
    random: &mut Random,
    read: impl Fn([u8; N]) -> f64,
    write: impl Fn(f64) -> [u8; N],
) {
    let (elements, _) = bytes.as_chunks_mut::<N>();
    if elements.len() < FEWEST {
        return;
    }
    let finite = || elements.iter().map(|&element| read(element)).filter(|value| value.is_finite());
    let count = finite().count().max(1) as f64;
    let mean = finite().sum::<f64>() / count;
    let deviation = (finite().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt();
    let signed = finite().any(|value| value < 0.0);
    for element in elements {
        let value = mean + deviation * normal(random);
        *element = write(if signed { value } else { value.abs() });
    }
}

fn replace_stored(bytes: &mut [u8], stored: Stored, random: &mut Random) {
    // Casts from floats keep to the range of the integer.
    match stored {
        Stored::F32 => {
            replace(bytes, random, |it| f32::from_le_bytes(it).into(), |it| (it as f32).to_le_bytes())
        }
        Stored::F64 => replace(bytes, random, f64::from_le_bytes, f64::to_le_bytes),
        Stored::F16 => {
            replace(bytes, random, |it| f16::from_le_bytes(it).into(), |it| f16::from_f64(it).to_le_bytes())
        }
        Stored::Bf16 => {
            replace(bytes, random, |it| bf16::from_le_bytes(it).into(), |it| bf16::from_f64(it).to_le_bytes())
        }
        Stored::I8 => {
            replace(bytes, random, |it| i8::from_le_bytes(it).into(), |it| (it.round() as i8).to_le_bytes())
        }
        Stored::U8 => replace(bytes, random, |[it]| it.into(), |it| [it.round() as u8]),
        Stored::I16 => {
            replace(bytes, random, |it| i16::from_le_bytes(it).into(), |it| (it.round() as i16).to_le_bytes())
        }
        Stored::I32 => {
            replace(bytes, random, |it| i32::from_le_bytes(it).into(), |it| (it.round() as i32).to_le_bytes())
        }
    }
}

/// A TensorFlow Lite or an ONNX file with other weights: each constant of at least 8 floats, or of bytes that stand for
/// them, has random numbers of the same mean and deviation instead, the same for the same `seed`. Names, shapes,
/// options and constants of integers stay; so do means and deviations, but for rounding.
///
/// ```
/// use diptych::{LoadOptions, Model, with_random_weights};
///
/// let file = std::fs::read("examples/posenet/data/posenet_figures.tflite")?;
/// let shared = with_random_weights(&file, 1)?;
/// let model = Model::from_bytes(&shared, &LoadOptions::default())?;
/// assert_eq!(model.inputs[0].dims.extents()[3], 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`Error::Model`](crate::error::Error::Model) if the file is none of these, or has weights in other files or stored in a way that they are not
/// found in.
pub fn with_random_weights(file: &[u8], seed: u64) -> Result<Vec<u8>> {
    let failed = |reason: Reason| reason.in_file("model", None);
    if file.len() as u64 > MAX_FILE_BYTES {
        return refused!("found {} bytes, wanted at most {MAX_FILE_BYTES}", file.len()).map_err(failed);
    }
    let spans = if super::is_onnx(file) {
        #[cfg(feature = "onnx")]
        let spans = super::onnx::weights(file);
        #[cfg(not(feature = "onnx"))]
        let spans = refused!("found an ONNX file, which this build of the crate does not read");
        spans
    } else {
        #[cfg(feature = "tflite")]
        let spans = super::tflite::weights(file);
        #[cfg(not(feature = "tflite"))]
        let spans = refused!("found no ONNX file, which alone this build of the crate reads");
        spans
    };
    let mut spans = spans.map_err(failed)?;
    // Constants may share bytes.
    sorted::sort_by_key(&mut spans, |span| (span.bytes.start, span.bytes.end, span.stored));
    spans.dedup_by_key(|span| span.bytes.clone());
    let mut changed = file.to_vec();
    let mut random = Random::new(seed);
    for Span { bytes, stored } in spans {
        if let Some(part) = changed.get_mut(bytes) {
            replace_stored(part, stored, &mut random);
        }
    }
    Ok(changed)
}
