//! The extents of inputs that a model's file leaves open: those of the given tensors.

use super::inputs::{InputFile, Port};
use crate::npy;
use anyhow::{Context as _, Result, bail};
use diptych::{Dims, FileInput, TensorType};
use std::collections::BTreeMap;

/// The inputs that a run is given: all that the model needs, and those that it can do without and that flags name.
pub(super) fn wanted(inputs: Vec<FileInput>, named: impl Fn(&str) -> bool) -> Vec<FileInput> {
    inputs.into_iter().filter(|input| !input.is_optional || named(&input.name)).collect()
}

/// The extents of a file's tensor as the input has them: leading ones may be missing, or be there in vain.
fn aligned(shape: Vec<usize>, rank: usize) -> Option<Vec<usize>> {
    let missing = rank.saturating_sub(shape.len());
    let more = shape.len().saturating_sub(rank);
    let in_vain = shape.iter().take(more).all(|&extent| extent == 1);
    in_vain.then(|| std::iter::repeat_n(1, missing).chain(shape.into_iter().skip(more)).collect())
}

/// The inputs with their extents in this run.
pub(super) fn ports(inputs: &[FileInput], sources: &[Option<InputFile<'_>>]) -> Result<Vec<Port>> {
    let mut shapes = Vec::with_capacity(inputs.len());
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    for (input, source) in inputs.iter().zip(sources) {
        let shape = match source {
            Some(InputFile::Tensor(path)) if !input.open.is_empty() || input.extents.is_none() => {
                let shape = npy::shape(path).with_context(|| format!("input {:?}", input.name))?;
                match &input.extents {
                    Some(extents) => aligned(shape, extents.len()),
                    None => Some(shape),
                }
            }
            _ => None,
        };
        for open in &input.open {
            let own = shape.as_ref().and_then(|shape: &Vec<usize>| shape.get(open.axis).copied());
            known.extend(own.map(|extent| (open.name.as_str(), extent)));
        }
        shapes.push(shape);
    }
    let mut ports = Vec::with_capacity(inputs.len());
    for (input, shape) in inputs.iter().zip(shapes) {
        let extents = match (&input.extents, shape) {
            (None, Some(shape)) => shape,
            (None, None) => bail!(
                "input {:?}: the model's file does not say its dimensions, wanted --input {}=FILE",
                input.name,
                input.name
            ),
            (Some(extents), shape) => {
                let mut all = Vec::with_capacity(extents.len());
                for (axis, extent) in extents.iter().enumerate() {
                    let own = shape.as_ref().and_then(|shape| shape.get(axis).copied());
                    let name = input.open.iter().find(|open| open.axis == axis).map(|open| &*open.name);
                    let other = name.and_then(|name| known.get(name).copied());
                    let default = (axis == 0).then_some(1);
                    let extent = extent.or(own).or(other).or(default).with_context(|| {
                        format!(
                            "input {:?}: the model's file leaves open the extent of axis {axis}, wanted --dimension \
                             {}=EXTENT, or a tensor that has it (--input {}=FILE)",
                            input.name,
                            name.unwrap_or("?"),
                            input.name
                        )
                    })?;
                    all.push(extent);
                }
                all
            }
        };
        let of = TensorType { dtype: input.dtype, dims: Dims::new(&extents)? };
        ports.push(Port { name: input.name.clone(), of });
    }
    Ok(ports)
}

#[cfg(test)]
mod tests {
    use super::*;
    use diptych::{LoadOptions, ModelFile};
    use std::path::Path;

    #[test]
    fn extents_are_those_of_tensors_and_of_axes_of_the_same_name() {
        assert_eq!(aligned(vec![3, 4], 3), Some(vec![1, 3, 4]));
        assert_eq!(aligned(vec![1, 3, 4], 2), Some(vec![3, 4]));
        assert_eq!(aligned(vec![2, 3, 4], 2), None);
        let file = ModelFile::load("../../tests/cases/open_sentence.onnx", &LoadOptions::default());
        let inputs = wanted(file.expect("a file").inputs(), |_| false);
        let ids = Path::new("../../tests/cases/open_sentence.in.ids.npy");
        let ports = ports(&inputs, &[Some(InputFile::Tensor(ids)), None]).expect("extents");
        let dims: Vec<String> = ports.iter().map(|port| port.of.dims.to_string()).collect();
        assert_eq!(dims, ["2x7", "2x7"]);
        let error = super::ports(&inputs, &[None, None]).expect_err("an open extent").to_string();
        for word in ["\"ids\"", "axis 1", "--dimension time=EXTENT", "--input ids=FILE"] {
            assert!(error.contains(word), "no {word} in: {error}");
        }
    }
}
