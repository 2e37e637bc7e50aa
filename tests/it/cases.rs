//! Small models, each of a kind that was wrong or refused once, against what is right, on every backend.
//!
//! `tests/cases` and `$DIPTYCH_SHARED/cases` have `NAME.onnx` or `NAME.tflite`, its inputs as `NAME.in.PORT.npy`
//! (`NAME.in0.npy`: the first one), and its outputs as `NAME.outI.npy`. What is not right yet is listed here with the
//! reason, and a case that is listed must not pass. `DIPTYCH_CASES` runs those alone whose names contain it.
//!
//! What is right in `tests/cases` was computed by ONNX Runtime 1.32, that of `masks_*` and of integers by the reference of
//! onnx 1.23, and integers that wrap, `gqa_norms` and the places behind the last one in `mha_buffer` by numpy.

use crate::machine::everywhere;
use crate::shared_npy;
use diptych::{Context, DType, Dims, HostTensor, LoadOptions, ModelFile, SessionOptions};
use std::path::{Path, PathBuf};

/// What is refused, with the reason. A result that is wrong is none of these.
#[rustfmt::skip]
const REFUSED: &[(&str, &str)] =
    &[("scan_bad_fewer_body_inputs", "an invalid file: the body of the Scan has fewer inputs than it is given")];

/// What runs and is compared with nothing, with the reason.
const UNCOMPARED: &[(&str, &str)] = &[
    (
        "gemm_one_weight_70_times",
        "70 layers of one random matrix: roundings grow to the size of the result, and no two engines agree",
    ),
    ("tfl_gather_negative_run", "an index below 0 computed at the run, for which the format has no answer"),
];

/// What is wrong or refused and being mended: numbers at the edges.
#[rustfmt::skip]
const NUMBERS: &[&str] = &[];

/// What outputs of integers are multiplied by: the goldens are as stored, ours are the numbers that they stand for.
const SCALES: [(&str, f64); 1] = [("keyword_scrambled", 3.051_850_944_757_461_5e-5)];

/// The largest error, relative to an output's largest magnitude.
const TOLERANCE: f64 = 2e-5;

/// Whether a case did not compute what is right, or not at all.
enum Failure {
    Refused(String),
    Wrong(String),
}

fn refused(error: impl ToString) -> Failure {
    Failure::Refused(error.to_string().lines().next().unwrap_or_default().to_owned())
}

/// Numbers as an input of a type: integers of 32 and 64 bits as those of 64.
fn given(dims: Dims, dtype: DType, values: &[f64]) -> diptych::Result<HostTensor> {
    match dtype {
        DType::I64 | DType::I32 | DType::U32 => {
            HostTensor::of(dims, values.iter().map(|&value| value as i64).collect::<Vec<i64>>())
        }
        _ => HostTensor::new(dims, values.iter().map(|&value| value as f32).collect::<Vec<f32>>()),
    }
}

/// The inputs of a case; the first one's name is empty where its file has none.
fn inputs(folder: &Path, case: &str) -> Vec<(String, Vec<usize>, Vec<f64>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder of cases") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let Some(rest) = name.strip_prefix(case).and_then(|rest| rest.strip_suffix(".npy")) else { continue };
        if let Some(port) = rest.strip_prefix(".in.").or(rest.strip_prefix(".in0")) {
            let (shape, values) = shared_npy::read(&path);
            found.push((port.to_owned(), shape, values));
        }
    }
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}

fn run(context: &Context, folder: &Path, case: &str, path: &Path) -> Result<(), Failure> {
    let file = ModelFile::load(path, &LoadOptions::default()).map_err(refused)?;
    let mut session = file.session(context, SessionOptions::default()).map_err(refused)?;
    let mut feeds = Vec::new();
    for (index, (port, shape, values)) in inputs(folder, case).into_iter().enumerate() {
        let declared = file.inputs();
        let own = declared.iter().find(|own| own.name == port).unwrap_or(&declared[index]);
        let dims = Dims::new(&shape).map_err(refused)?;
        feeds.push((own.name.clone(), given(dims, own.dtype, &values).map_err(refused)?));
    }
    let feeds: Vec<(&str, &HostTensor)> =
        feeds.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let outputs = session.run(&feeds).map_err(refused)?;
    if UNCOMPARED.iter().any(|(name, _)| *name == case) {
        return Ok(());
    }
    let scale = SCALES.iter().find(|(of, _)| *of == case).map_or(1.0, |(_, scale)| *scale);
    for (index, output) in outputs.iter().enumerate() {
        let (shape, wanted) = shared_npy::read(&folder.join(format!("{case}.out{index}.npy")));
        if output.dims().extents() != shape {
            let found = output.dims();
            return Err(Failure::Wrong(format!("output {index}: found {found}, wanted {shape:?}")));
        }
        let finite = wanted.iter().filter(|value| value.is_finite());
        let largest = finite.fold(0.0f64, |most, value| most.max(value.abs())) * scale;
        let found: Vec<f64> = match output.to_i64() {
            Some(integers) => integers.iter().map(|&integer| integer as f64).collect(),
            None => output.to_nhwc().iter().map(|&number| f64::from(number)).collect(),
        };
        for (at, (found, wanted)) in found.into_iter().zip(&wanted).enumerate() {
            let wanted = wanted * scale;
            let same = found == wanted || found.is_nan() && wanted.is_nan();
            let near = wanted.is_finite() && (found - wanted).abs() <= TOLERANCE * largest;
            if !same && !near {
                return Err(Failure::Wrong(format!(
                    "output {index}: found {found} at {at}, wanted {wanted}"
                )));
            }
        }
    }
    Ok(())
}

/// What is wrong with how a case went on the backends: `None` if it is as the lists say.
fn verdict(case: &str, failures: &[(String, Failure)], is_complete: bool) -> Option<String> {
    let wrong = failures.iter().find(|(_, failure)| matches!(failure, Failure::Wrong(_)));
    let first = wrong.or(failures.first()).map(|(backend, failure)| match failure {
        Failure::Refused(message) => format!("{backend} refuses it: {message}"),
        Failure::Wrong(message) => format!("{backend}: {message}"),
    });
    let is_mended = NUMBERS.contains(&case);
    let reason = REFUSED.iter().find(|(name, _)| *name == case).map(|(_, reason)| *reason);
    match (first, reason) {
        (Some(what), Some(_)) if wrong.is_some() => Some(format!("{case} is listed as refused, and {what}")),
        (Some(what), Some(reason)) => {
            println!("{case}: {what} ({reason})");
            None
        }
        (None, Some(reason)) if is_complete => Some(format!("{case} passes, and is listed: {reason}")),
        (Some(what), None) if is_mended => {
            println!("{case}: {what}");
            None
        }
        (None, None) if is_mended && is_complete => Some(format!("{case} passes, and is listed")),
        (Some(what), None) => Some(format!("{case}: {what}")),
        (None, _) => None,
    }
}

#[test]
fn every_case_is_right_or_listed() {
    let root = std::env::var_os("DIPTYCH_SHARED").map_or_else(|| "../shared".into(), PathBuf::from);
    every_case(&root.join("cases"));
}

#[test]
fn every_case_of_the_project_is_right() {
    every_case(Path::new("tests/cases"));
}

/// Files of `$DIPTYCH_SHARED/cases/hostile`: what `x` is, and `y` for it. Where `y` is empty the file must be refused, before
/// anything as large as its input is made.
const HOSTILE: &[(&str, &[f64], &[f64])] = &[
    ("cast_i8", &[-1.0, -2.0, 5.0, -128.0], &[4_294_967_295.0, 4_294_967_294.0, 5.0, 4_294_967_168.0]),
    ("fmod_i8", &[0.0], &[-2.0, -2.0, 0.0, 0.0]),
    ("pow_half", &[0.0, -0.0, f64::NEG_INFINITY, f64::INFINITY], &[0.0, 0.0, f64::INFINITY, f64::INFINITY]),
    (
        "pow_minus_half",
        &[0.0, -0.0, f64::NEG_INFINITY, f64::INFINITY],
        &[f64::INFINITY, f64::INFINITY, 0.0, 0.0],
    ),
    ("wide", &[], &[]),
];

#[test]
fn hostile_files_are_right_or_refused() {
    let root = std::env::var_os("DIPTYCH_SHARED").map_or_else(|| "../shared".into(), PathBuf::from);
    let folder = root.join("cases/hostile");
    if !folder.is_dir() {
        crate::absent::say(&folder);
        return;
    }
    let mut wrong = Vec::new();
    for context in everywhere() {
        for (name, x, wanted) in HOSTILE {
            let found = hostile(&context, &folder.join(format!("{name}.onnx")), x);
            let is_right = match &found {
                Ok(found) => !wanted.is_empty() && found == wanted,
                Err(_) => wanted.is_empty(),
            };
            if !is_right {
                wrong.push(format!("{}: {name}: found {found:?}, wanted {wanted:?}", context.info().backend));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The numbers of the first output for an input of these.
fn hostile(context: &Context, path: &Path, x: &[f64]) -> diptych::Result<Vec<f64>> {
    let file = ModelFile::load(path, &LoadOptions::default())?;
    let mut session = file.session(context, SessionOptions::default())?;
    let declared = file.inputs();
    let x = given(Dims::new(&[x.len()])?, declared[0].dtype, x)?;
    let outputs = session.run(&[(declared[0].name.as_str(), &x)])?;
    let found = outputs.first().expect("an output");
    Ok(match found.to_i64() {
        Some(integers) => integers.iter().map(|&integer| integer as f64).collect(),
        None => found.to_nhwc().iter().map(|&number| f64::from(number)).collect(),
    })
}

/// The names of the ONNX files of a folder, if there is one.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let paths = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("an entry").path());
    let models = paths.filter(|path| path.extension().is_some_and(|ending| ending == "onnx"));
    let mut names: Vec<String> =
        models.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The inputs of a run, by name.
pub(crate) type Feeds = Vec<(String, HostTensor)>;

/// The network of an ONNX case for the extents of its inputs, and these.
pub(crate) fn graph(folder: &Path, case: &str) -> diptych::Result<(diptych::Graph, Feeds)> {
    let path = folder.join(format!("{case}.onnx"));
    let file = ModelFile::load(&path, &LoadOptions::default())?;
    let mut options = LoadOptions::default();
    let mut feeds = Vec::new();
    for (index, (port, shape, values)) in inputs(folder, case).into_iter().enumerate() {
        let declared = file.inputs();
        let own = declared.iter().find(|own| own.name == port).unwrap_or(&declared[index]);
        for open in &own.open {
            options.dimensions.extend([(format!("{}.{}", own.name, open.axis), shape[open.axis])]);
        }
        feeds.push((own.name.clone(), given(Dims::new(&shape)?, own.dtype, &values)?));
    }
    Ok((diptych::Model::load(&path, &options)?.graph, feeds))
}

fn every_case(folder: &Path) {
    if !folder.is_dir() {
        crate::absent::say(folder);
        return;
    }
    let contexts = everywhere();
    let only = std::env::var("DIPTYCH_CASES").unwrap_or_default();
    let mut models: Vec<(String, PathBuf)> = std::fs::read_dir(folder)
        .expect("a folder of cases")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "onnx" || ending == "tflite"))
        .map(|path| (path.file_stem().expect("a name").to_string_lossy().into_owned(), path))
        // Decoders, whose runs `caches` makes and compares.
        .filter(|(name, _)| name.contains(&only) && !name.starts_with("chunks_"))
        .collect();
    models.sort();
    let mut wrong = Vec::new();
    for (case, path) in &models {
        let mut failures = Vec::new();
        for context in &contexts {
            if let Err(failure) = run(context, folder, case, path) {
                failures.push((context.info().backend.to_string(), failure));
            }
        }
        wrong.extend(verdict(case, &failures, contexts.len() == 3));
    }
    println!("{} cases on {} backends", models.len(), contexts.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
