//! ONNX's own tests of single operators, written by `scripts/onnx-node-tests` to `$DIPTYCH_ONNX_TESTS`.
//!
//! `not_passed.txt` lists those that do not pass, with the reason, as `NAME: REASON`, or `BACKEND NAME: REASON` where it
//! is one backend alone; a test that is not listed must pass, and one that is must not. All inputs are given at the run.
//!
//! `DIPTYCH_ONNX` runs those alone whose names contain it.

use crate::golden::{context, tensor};
use crate::npy;
use diptych::{Backend, Context, HostTensor, LoadOptions, ModelFile, SessionOptions};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const NOT_PASSED: &str = include_str!("not_passed.txt");

/// What f32 may round, relative to an output's largest magnitude, beside the test's own tolerance.
const ROUNDING: f64 = 2e-6;

fn folder() -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("DIPTYCH_ONNX_TESTS").map(PathBuf::from) else {
        println!("skipped: DIPTYCH_ONNX_TESTS names no folder that scripts/onnx-node-tests wrote");
        return None;
    };
    if folder.is_dir() {
        return Some(folder);
    }
    println!("skipped: {} is not there", folder.display());
    None
}

fn numbered(test: &Path, kind: &str) -> Vec<PathBuf> {
    (0..).map(|index| test.join(format!("{index}.{kind}.npy"))).take_while(|path| path.exists()).collect()
}

/// A tensor as f32, or as integers where f32 does not hold them.
fn exact(path: &Path) -> Result<HostTensor, String> {
    let tensor = tensor(path)?;
    let (_, values) = npy::read(path);
    let holds = |value: &f64| value.is_nan() || f64::from(*value as f32) == *value;
    let whole = |value: &f64| value.trunc() == *value && value.abs() < 9.3e18;
    if values.iter().all(holds) || !values.iter().all(whole) {
        return Ok(tensor);
    }
    let values: Vec<i64> = values.iter().map(|&value| value as i64).collect();
    HostTensor::of(tensor.dims(), values).map_err(|error| error.to_string())
}

/// Why it does not pass.
fn run(context: &Context, test: &Path) -> Result<(), String> {
    let names = std::fs::read_to_string(test.join("inputs.txt")).map_err(|error| error.to_string())?;
    let inputs = numbered(test, "input");
    let tensors = names.lines().zip(&inputs).map(|(name, path)| Ok((name.to_owned(), exact(path)?)));
    let tensors: Vec<(String, HostTensor)> = tensors.collect::<Result<_, String>>()?;
    let bytes = std::fs::read(test.join("model.onnx")).map_err(|error| error.to_string())?;
    let file = ModelFile::from_bytes(bytes, &LoadOptions::default()).map_err(|error| error.to_string())?;
    let mut session = file.session(context, SessionOptions::default()).map_err(|error| error.to_string())?;
    let feeds: Vec<(&str, &HostTensor)> =
        tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let found = session.run(&feeds).map_err(|error| error.to_string())?;
    let text = std::fs::read_to_string(test.join("tolerance.txt")).map_err(|error| error.to_string())?;
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    let [relative, absolute] = numbers[..] else { return Err(format!("found tolerances {text:?}")) };
    let wanted = numbered(test, "output");
    if found.len() != wanted.len() {
        return Err(format!("found {} outputs, wanted {}", found.len(), wanted.len()));
    }
    for (index, (found, path)) in found.iter().zip(&wanted).enumerate() {
        let (shape, wanted) = npy::read(path);
        if found.dims().extents() != shape {
            return Err(format!("output {index}: found {}, wanted {shape:?}", found.dims()));
        }
        let largest =
            wanted.iter().filter(|value| value.is_finite()).fold(0.0f64, |most, value| most.max(value.abs()));
        let found: Vec<f64> = match found.to_i64() {
            Some(integers) => integers.iter().map(|&integer| integer as f64).collect(),
            None => found.to_nhwc().iter().map(|&number| f64::from(number)).collect(),
        };
        for (at, (found, &wanted)) in found.into_iter().zip(&wanted).enumerate() {
            let same = found == wanted || found.is_nan() && wanted.is_nan();
            let allowed = absolute + relative * wanted.abs() + ROUNDING * largest;
            if !same
                && ((found - wanted).abs() > allowed || (found - wanted).is_nan() || wanted.is_infinite())
            {
                return Err(format!("output {index}: found {found} at {at}, wanted {wanted}"));
            }
        }
    }
    Ok(())
}

fn every_test(backend: Backend) {
    let Some(folder) = folder() else { return };
    let Some(context) = context(backend) else { return };
    let only = std::env::var("DIPTYCH_ONNX").unwrap_or_default();
    let own = format!("{backend} ");
    let listed: BTreeMap<&str, &str> = NOT_PASSED
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split_once(": ").expect("NAME: REASON"))
        .filter_map(|(name, reason)| match name.contains(' ') {
            false => Some((name, reason)),
            true => name.strip_prefix(&own).map(|name| (name, reason)),
        })
        .collect();
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains(&only) && folder.join(name).join("model.onnx").exists())
        .collect();
    names.sort();
    let (mut passed, mut failed, mut wrong) = (0, 0, Vec::new());
    for name in &names {
        match run(&context, &folder.join(name)) {
            Ok(()) => {
                passed += 1;
                if listed.contains_key(name.as_str()) {
                    wrong.push(format!("{name}: passes, but is listed"));
                }
            }
            Err(reason) => {
                failed += 1;
                let reason = reason.lines().next().unwrap_or("").to_owned();
                println!("not passed {name}: {reason}");
                if !listed.contains_key(name.as_str()) {
                    wrong.push(format!("{name}: {reason}"));
                }
            }
        }
    }
    println!("{backend}: {passed} passed, {failed} not");
    assert!(wrong.is_empty(), "{} not as listed:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn node_tests_on_the_cpu() {
    every_test(Backend::Cpu);
}

#[cfg(feature = "wgpu")]
#[test]
fn node_tests_on_wgpu() {
    every_test(Backend::Wgpu);
}

#[cfg(feature = "opencl")]
#[test]
fn node_tests_on_opencl() {
    every_test(Backend::OpenCl);
}
