//! A file to a graph.

use super::import::Import;
use super::operators;
use super::schema::Model;
use super::survey;
use super::tensors::Files;
use crate::compute::Prepare;
use crate::error::Result;
use crate::model::budget::Budget;
use crate::model::reason::Reason;
use crate::model::{LoadOptions, Loaded, ModelInfo};
use std::path::Path;

/// The work that any file may cause, whatever its length: the largest masks and tables that are computed of lengths
/// alone, and time to read it that nobody minds. What is held at once may be three times of it.
pub(super) const LEAST_WORK: u64 = 384 << 20;

/// What is wrong with a file that has no network.
pub(super) const NO_GRAPH: &str = "found no graph: this is no ONNX model, or one that is cut short";

/// Reads the network of a file.
pub(super) fn load(
    file: &str,
    bytes: &[u8],
    path: Option<&Path>,
    options: &LoadOptions,
    prepare: Prepare,
) -> Result<Loaded> {
    let fail = |reason: Reason| reason.in_file(file, None);
    let mut budget = Budget::new(bytes.len());
    budget.extend(LEAST_WORK);
    let mut model = Model::read(bytes, &mut budget).map_err(fail)?;
    model.choose_outputs(options).map_err(fail)?;
    let network = model.graph.as_ref().ok_or_else(|| fail(NO_GRAPH.into()))?;
    let files = Files::new(path, &options.files);
    let mut import =
        Import::new(&model, network, files, budget, (operators::HANDLERS, prepare)).map_err(fail)?;
    if let Some(unsupported) = survey::unsupported(&import, network) {
        return Err(fail(unsupported.into()));
    }
    import.set_dequantize(options.dequantize);
    import.inputs(network, options).map_err(fail)?;
    let outputs: Vec<&str> = network.outputs.iter().map(|output| output.name).collect();
    import.nodes(&network.nodes, &outputs).map_err(|(place, reason)| {
        let node = place.and_then(|place| network.nodes.get(place));
        let op = node.map(|node| (node.index, node.op.to_owned()));
        reason.in_file(file, op)
    })?;
    import.outputs(network).map_err(fail)?;
    let info = ModelInfo { transposes: import.transposes, ..import.info };
    Ok(Loaded { graph: import.build.graph, info })
}
