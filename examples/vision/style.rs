//! The numbers that stand for a style: read from a picture by a network, from a file, or made at random.

use crate::fit::{self, Border, Fit, Part, Wanted, Window, range};
use crate::options::Options;
use crate::reader::picture_size;
use anyhow::{Context as _, Result, bail, ensure};
use diptych::tflite::{LoadOptions, Model};
use diptych::{Context, HostTensor, Session, SessionOptions};
use diptych_decode::picture::Picture;
use std::path::Path;

/// The network that reads a picture's style.
const READER: &str = "style_predict_f16_256.tflite";

/// The `count` numbers that say which style to paint in: read from the file that the options name (JSON, or a picture whose
/// style is read), or else random ones.
pub fn numbers(options: &Options, context: &Context, count: usize) -> Result<Vec<f32>> {
    let Some(path) = &options.style else { return Ok(random(options.seed, count)) };
    let numbers = match path.extension() {
        Some(ending) if ending.eq_ignore_ascii_case("json") => listed(path)?,
        _ => predicted(options, context, path)?,
    };
    let found = numbers.len();
    ensure!(found == count, "--style {}: found {found} numbers, wanted {count}", path.display());
    Ok(numbers)
}

/// Numbers from -1 to 1, the same for the same seed. Those of real styles are of this size.
fn random(seed: u64, count: usize) -> Vec<f32> {
    // Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014 (SplitMix64).
    let number = |index: u64| {
        let mut z = index.wrapping_add(seed << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f32 / (1u32 << 23) as f32 - 1.0
    };
    (1..=count as u64).map(number).collect()
}

/// A list of numbers, or an object that has one as `style`.
fn listed(path: &Path) -> Result<Vec<f32>> {
    let name = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
    let value: serde_json::Value =
        serde_json::from_str(&text).with_context(|| format!("{name} is not JSON"))?;
    let list = value.get("style").unwrap_or(&value);
    let numbers: Option<Vec<f32>> = list
        .as_array()
        .and_then(|list| list.iter().map(|number| number.as_f64().map(|number| number as f32)).collect());
    numbers.with_context(|| format!("{name}: wanted a list of numbers, or an object with one as \"style\""))
}

/// What a network reads from a picture: its middle, 0 to 1, as Magenta's example has it.
fn predicted(options: &Options, context: &Context, path: &Path) -> Result<Vec<f32>> {
    let file = options.style_model.clone().unwrap_or_else(|| options.models().join(READER));
    let name = file.display();
    ensure!(
        file.exists(),
        "--style {}: a picture's style is read by a network, and {name} is not there; --style-model names one, \
         and a .json file of numbers needs none",
        path.display()
    );
    let model = Model::load(&file, &LoadOptions::default())?;
    let ([input], [_]) = (&model.inputs[..], &model.outputs[..]) else {
        bail!(
            "{name}: found {} inputs and {} outputs, wanted one each",
            model.inputs.len(),
            model.outputs.len()
        );
    };
    let size = picture_size(input)
        .with_context(|| format!("{name}: found an input {}, wanted 1xHxWx3, a picture", input.dims))?;
    let wanted = Wanted {
        size,
        fit: Fit::Middle,
        border: Border::Nearest,
        smooth: true,
        normalise: range(0.0, 1.0),
        bgr: false,
    };
    let picture = Picture::open(path)?.pixels;
    let window = Window::of(Part::whole(&picture), size, wanted.fit);
    let tensor = HostTensor::new(input.dims, fit::input(&picture, &window, &wanted)?)?;
    let mut session = Session::new(context, &model.graph, SessionOptions::default())?;
    let outputs = session.run(&[(input.name.as_str(), &tensor)])?;
    Ok(outputs.first().context("the run returned nothing")?.to_nhwc().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_styles_follow_from_the_seed() {
        assert_eq!(random(3, 100), random(3, 100));
        assert_ne!(random(3, 100), random(4, 100));
        assert!(random(3, 100).iter().all(|number| (-1.0..1.0).contains(number)));
        let mean = random(3, 1000).iter().sum::<f32>() / 1000.0;
        assert!(mean.abs() < 0.1, "{mean}");
    }

    #[test]
    fn styles_are_lists_or_results() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("style.json");
        let of = |text: &str| {
            std::fs::write(&path, text).expect("written");
            listed(&path).map_err(|error| format!("{error:#}"))
        };
        assert_eq!(of("[0.5, -1, 2e-1]"), Ok(vec![0.5, -1.0, 0.2]));
        assert_eq!(of("{\"style\": [1], \"task\": \"style\"}"), Ok(vec![1.0]));
        for wrong in ["[1, \"a\"]", "{\"other\": [1]}", "1", "no JSON"] {
            assert!(of(wrong).expect_err(wrong).contains("style.json"), "{wrong}");
        }
    }
}
