//! Extents that a model's file leaves open: what is reported is that of some.

use anyhow::Result;
use diptych::{Error, Model, ModelFile, Setting};
use std::collections::BTreeMap;

/// Extents that are tried, in this order: a network that halves a map five times wants 32 at least.
const TRIED: [usize; 4] = [1, 32, 224, 512];

/// An extent that each run decides.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OpenExtent {
    pub(super) name: String,
    /// What is reported is for this extent.
    pub(super) shown: usize,
    /// The inputs' axes of this extent, in words.
    pub(super) axes: String,
}

/// The network, where the file and the flags leave an extent open for one that it can be read with.
pub(super) fn model(file: &ModelFile) -> Result<(Model, Vec<OpenExtent>)> {
    let model = match file.model(&BTreeMap::new()) {
        Ok(model) => model,
        Err(error) if wants_extent(&error) => tried(file).ok_or(error)?,
        Err(error) => return Err(error.into()),
    };
    let mut open: Vec<OpenExtent> = Vec::new();
    for input in file.inputs() {
        let Some(port) = model.inputs.iter().find(|port| port.name == input.name) else { continue };
        for own in &input.open {
            let axis = format!("axis {} of {:?}", own.axis, input.name);
            let Some(&shown) = port.dims.extents().get(own.axis) else { continue };
            match open.iter_mut().find(|open| open.name == own.name) {
                Some(open) => open.axes = format!("{}, {axis}", open.axes),
                None => open.push(OpenExtent { name: own.name.clone(), shown, axes: axis }),
            }
        }
    }
    Ok((model, open))
}

fn wants_extent(error: &Error) -> bool {
    matches!(error, Error::Hinted { hint, .. } if matches!(hint.setting(), Setting::Dimension(_)))
}

/// The network with the first of the extents that it can be read with; the outermost ones are 1 where nobody says.
fn tried(file: &ModelFile) -> Option<Model> {
    let inputs = file.inputs();
    let inner = || inputs.iter().flat_map(|input| &input.open).filter(|open| open.axis > 0);
    TRIED
        .iter()
        .find_map(|&extent| file.model(&inner().map(|open| (open.name.clone(), extent)).collect()).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use diptych::LoadOptions;

    #[test]
    fn open_extents_are_named_with_what_is_shown() {
        let file =
            ModelFile::load("../../tests/cases/open_sentence.onnx", &LoadOptions::default()).expect("a file");
        let (model, open) = super::model(&file).expect("a network");
        assert!(!model.graph.nodes().is_empty());
        let time = open.iter().find(|open| open.name == "time").expect("an open extent");
        assert!(time.shown == 1 && time.axes.contains("axis 1 of \"ids\""), "{time:?}");
        let fixed = LoadOptions { dimensions: [("time".to_owned(), 7)].into(), ..Default::default() };
        let file = ModelFile::load("../../tests/cases/open_sentence.onnx", &fixed).expect("a file");
        let (_, open) = super::model(&file).expect("a network");
        assert!(open.iter().all(|open| open.name != "time"), "{open:?}");
    }
}
