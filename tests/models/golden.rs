//! Models of other people on a backend, against outputs of the engine that they were made for.

use crate::npy;
use diptych::{Backend, Context, HostTensor};
use std::path::Path;

/// The largest error of an output, relative to its largest magnitude.
const TOLERANCE: f64 = 1e-3;

/// The context, if it is there; a missing device fails where devices are required.
pub fn context(backend: Backend) -> Option<Context> {
    match Context::new(backend) {
        Ok(context) => Some(context),
        Err(error) if std::env::var("DIPTYCH_REQUIRE_DEVICES").is_ok_and(|value| value == "1") => {
            panic!("{backend} is required: {error}")
        }
        Err(error) => {
            println!("skipping {backend}: {error}");
            None
        }
    }
}

/// The tensor of a file, its elements as floats.
pub fn tensor(path: &Path) -> Result<HostTensor, String> {
    let (shape, values) = npy::read(path);
    let values: Vec<f32> = values.into_iter().map(|value| value as f32).collect();
    let dims = diptych::Dims::new(&shape).map_err(|error| error.to_string())?;
    HostTensor::new(dims, values).map_err(|error| error.to_string())
}

/// The largest error of an output relative to its golden's largest magnitude, of which `least` is the smallest that
/// counts.
pub fn error(output: &HostTensor, golden: &Path, least: f64) -> Result<f64, String> {
    let (shape, wanted) = npy::read(golden);
    if shape != output.dims().extents() {
        return Err(format!("{}: found {}, wanted {shape:?}", golden.display(), output.dims()));
    }
    let largest = wanted.iter().fold(0.0f64, |largest, value| largest.max(value.abs()));
    let found = output.to_nhwc();
    let off = found.iter().zip(&wanted).map(|(&found, &wanted)| (f64::from(found) - wanted).abs());
    // A NaN must not pass for a small difference.
    let worst = off.fold(0.0, |worst, off| if off <= worst { worst } else { off });
    Ok(worst / largest.max(least / TOLERANCE))
}

/// The errors as text, or which output is too far off.
pub fn within(errors: &[f64]) -> Result<String, String> {
    match errors.iter().position(|error| error.is_nan() || *error > TOLERANCE) {
        Some(index) => Err(format!("output {index} is {} off", errors[index])),
        None => Ok(errors.iter().map(|error| format!("{error:.1e}")).collect::<Vec<_>>().join(" ")),
    }
}

/// Checks every model of those that there are and that `DIPTYCH_MODELS` asks for by a part of their names; reports
/// all that fail. The backends take turns, as every kernel has its own tests on each; `DIPTYCH_CONFORMANCE=full` runs
/// each model on all.
pub fn every_model<T>(
    backend: Backend,
    folder: &Path,
    ending: &str,
    models: impl IntoIterator<Item = (&'static str, T)>,
    check: impl Fn(&Context, &Path, &str, T) -> Result<(), String>,
) {
    let Some(context) = context(backend) else { return };
    let only = std::env::var("DIPTYCH_MODELS").unwrap_or_default();
    let every = !only.is_empty() || std::env::var("DIPTYCH_CONFORMANCE").is_ok_and(|asked| asked == "full");
    let turn = match backend {
        Backend::Wgpu => 1,
        Backend::OpenCl => 2,
        _ => 0,
    };
    let mut failures = Vec::new();
    for (index, (name, own)) in models.into_iter().enumerate() {
        let path = folder.join(format!("{name}.{ending}"));
        let its_turn = every || index % 3 == turn;
        if !path.exists() {
            println!("skipped: {} is not there", path.display());
        } else if name.contains(&only)
            && its_turn
            && let Err(error) = check(&context, folder, name, own)
        {
            println!("FAILED {name}: {error}");
            failures.push(format!("{name}: {error}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// A folder of the shared files, if it is there.
pub fn folder(part: &str) -> Option<std::path::PathBuf> {
    let root =
        std::env::var_os("DIPTYCH_SHARED").map_or_else(|| "../shared".into(), std::path::PathBuf::from);
    let folder = root.join(part);
    if folder.is_dir() {
        return Some(folder);
    }
    crate::absent::say(&folder);
    None
}
