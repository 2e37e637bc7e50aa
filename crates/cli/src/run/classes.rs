//! The classes that an output says are most likely: its largest numbers, and their names where these are known.

use super::number::Number;
use anyhow::{Context as _, Result, ensure};
use diptych::{HostTensor, ModelInfo};
use std::path::{Path, PathBuf};

/// How many classes are shown where their names are known and the flag does not say.
const MOST_LIKELY: usize = 5;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Show this many of the largest numbers of each output that is a list of classes, with their names where these are
    /// known; 0 shows none [default: 5 if the names are known].
    #[arg(long, value_name = "COUNT")]
    pub(crate) top: Option<usize>,

    /// The names of the classes, a line each [default: those in the model's file, if it has them].
    #[arg(long, value_name = "FILE")]
    pub(crate) labels: Option<PathBuf>,
}

/// A class: its index, its number, and its name if that is known.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Class {
    pub(super) index: usize,
    pub(super) value: Number,
    pub(super) name: Option<String>,
}

/// The number of classes of an output with a list of them for each image: the extents between the first and the last are 1.
fn classes(output: &HostTensor) -> Option<usize> {
    let dims = output.dims();
    let (&last, before) = dims.extents().split_last()?;
    let lists = before.get(1..).unwrap_or_default().iter().all(|&extent| extent == 1);
    (lists && last > 1).then_some(last)
}

/// The largest numbers of each list, the largest first; of equal ones the first. What is no number is left out.
fn largest(output: &HostTensor, count: usize, names: &[String]) -> Vec<Vec<Class>> {
    let Some(classes) = classes(output) else { return Vec::new() };
    let best = |list: &[Number]| {
        let mut order: Vec<usize> = (0..list.len()).filter(|&index| !list[index].is_nan()).collect();
        order.sort_by(|&one, &other| list[other].order(list[one]).then(one.cmp(&other)));
        order.truncate(count);
        let class = |index: usize| Class { index, value: list[index], name: names.get(index).cloned() };
        order.into_iter().map(class).collect()
    };
    Number::all(output).chunks(classes).map(best).collect()
}

/// Names of classes from a file, a line each.
fn names(path: &Path) -> Result<Vec<String>> {
    let bytes = diptych_base::file::read(path, 1 << 24).with_context(|| path.display().to_string())?;
    let text =
        String::from_utf8(bytes).with_context(|| format!("{}: wanted text in UTF-8", path.display()))?;
    Ok(text.lines().map(|line| line.trim().to_owned()).collect())
}

/// For each output its most likely classes, a list for each image. None of an output that is no list of classes.
pub(super) fn most_likely(
    arguments: &Arguments,
    info: &ModelInfo,
    outputs: &[HostTensor],
) -> Result<Vec<Vec<Vec<Class>>>> {
    let known = match &arguments.labels {
        Some(path) => names(path)?,
        // Which of several outputs metadata describe does not follow from their order.
        None if outputs.len() == 1 => {
            info.outputs.first().map(|info| info.labels.clone()).unwrap_or_default()
        }
        None => Vec::new(),
    };
    let count = arguments.top.unwrap_or(if known.is_empty() { 0 } else { MOST_LIKELY });
    if count == 0 {
        return Ok(vec![Vec::new(); outputs.len()]);
    }
    let sizes: Vec<usize> = outputs.iter().filter_map(classes).collect();
    let asked = arguments.top.is_some() || arguments.labels.is_some();
    ensure!(
        !sizes.is_empty() || !asked,
        "--top and --labels are for a list of classes, and the model has no output of dimensions 1xCLASSES"
    );
    if let Some(path) = &arguments.labels {
        ensure!(
            sizes.contains(&known.len()),
            "{}: found {} lines, wanted one for each class, as many as an output has: {sizes:?}",
            path.display(),
            known.len()
        );
    }
    let of = |output: &HostTensor| {
        let named = if classes(output) == Some(known.len()) { &known[..] } else { &[] };
        largest(output, count, named)
    };
    Ok(outputs.iter().map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use diptych::{Dims, Shape};

    fn list(extents: &[usize], values: &[f32]) -> HostTensor {
        HostTensor::new(Dims::new(extents).expect("small"), values.to_vec()).expect("a tensor")
    }

    #[test]
    fn the_largest_come_first_for_each_image_and_equal_ones_in_their_order() {
        let output = list(&[2, 1, 1, 4], &[0.1, 0.5, f32::NAN, 0.5, -1.0, f32::INFINITY, 2.0, 3.0]);
        let names = ["a", "b", "c", "d"].map(str::to_owned);
        let found = largest(&output, 2, &names);
        let class = |index, value, name: &str| Class {
            index,
            value: Number::Float(value),
            name: Some(name.to_owned()),
        };
        let wanted = [
            vec![class(1, 0.5, "b"), class(3, 0.5, "d")],
            vec![class(1, f32::INFINITY, "b"), class(3, 3.0, "d")],
        ];
        assert_eq!(found, wanted);
        assert_eq!(largest(&output, 9, &[])[0].len(), 3, "the third is no number");
    }

    #[test]
    fn a_map_is_no_list_of_classes() {
        for (extents, wanted) in [
            (&[1, 1001][..], Some(1001)),
            (&[10], Some(10)),
            (&[4, 1, 1, 7], Some(7)),
            (&[1, 5, 5, 17], None),
            (&[1], None),
        ] {
            let output = list(extents, &vec![0.0; extents.iter().product()]);
            assert_eq!(classes(&output), wanted, "{extents:?}");
        }
        assert!(
            largest(&HostTensor::new(Shape::nhwc(1, 2, 2, 3), vec![0.0; 12]).expect("a map"), 5, &[])
                .is_empty()
        );
    }
}
