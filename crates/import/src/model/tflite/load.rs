//! A verified file to a graph.

use super::ends::MAX_ENDS;
use super::frame::Frame;
use super::import::Import;
use super::operators;
use super::schema::{Model, SubGraph};
use super::survey;
use super::tables::at;
use super::tensors::{Budget, Steps, indices};
use super::{LoadOptions, Loaded};
use crate::compute::Prepare;
use crate::error::{Error, Result};
use crate::model::build::Builder;
use crate::model::constant_cache::ConstantCache;
use crate::model::reason::Reason;
use crate::model::{ModelInfo, Quantised};
use crate::source::{OpenInput, Port};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Reads the first network of a file, or that of a signature.
pub(super) fn load(
    file: &str,
    model: &Model<'_>,
    bytes: &[u8],
    options: &LoadOptions,
    prepare: Prepare,
) -> Result<Loaded> {
    load_or_want(file, model, bytes, (options, None), prepare).map_err(|failed| failed.error)
}

/// Why a file was refused, and which inputs' values would have helped.
pub(super) struct Failed {
    pub(super) error: Error,
    pub(super) wanted: BTreeSet<String>,
}

/// [`load`], which says what would help. A file that is read several times keeps its constants.
pub(super) fn load_or_want(
    file: &str,
    model: &Model<'_>,
    bytes: &[u8],
    (options, kept): (&LoadOptions, Option<&Arc<ConstantCache>>),
    prepare: Prepare,
) -> std::result::Result<Loaded, Failed> {
    let error = |op, reason: Reason| reason.in_file(file, op);
    let fail = |reason: Reason| Failed { error: error(None, reason), wanted: BTreeSet::new() };
    let mut budget = Budget::new(bytes.len());
    let main = main(model, options).map_err(fail)?;
    let info = ModelInfo::read(model, main, bytes, &mut budget).map_err(fail)?;
    let (mut import, inputs, outputs) =
        start((model, bytes), (main, !options.dequantize), budget, prepare).map_err(fail)?;
    import.build.kept = kept.cloned();
    let chosen = import.chosen(options, &outputs).map_err(fail)?;
    if let Some(unsupported) = survey::unsupported(&mut import, &inputs).map_err(fail)? {
        return Err(fail(unsupported.into()));
    }
    import.inputs(&inputs, options).map_err(fail)?;
    import
        .run()
        .map_err(|(op, reason)| Failed { error: error(op, reason), wanted: import.wanted_inputs() })?;
    import.update_variables().map_err(fail)?;
    for (place, &output) in outputs.iter().enumerate().filter(|(place, _)| chosen.contains(place)) {
        import.output(output, place).map_err(|reason| fail(reason.behind("output ")))?;
    }
    Ok(Loaded { graph: import.build.graph, info })
}

/// The inputs and outputs of a file's network.
pub(super) fn describe(
    file: &str,
    model: &Model<'_>,
    bytes: &[u8],
    options: &LoadOptions,
    prepare: Prepare,
) -> Result<(Vec<OpenInput>, Vec<Port>, ModelInfo)> {
    let fail = |reason: Reason| reason.in_file(file, None);
    let main = main(model, options).map_err(fail)?;
    let mut budget = Budget::new(bytes.len());
    let mut info = ModelInfo::read(model, main, bytes, &mut budget).map_err(fail)?;
    let (mut import, inputs, outputs) =
        start((model, bytes), (main, !options.dequantize), budget, prepare).map_err(fail)?;
    let chosen = import.chosen(options, &outputs).map_err(fail)?;
    if let Some(unsupported) = survey::unsupported(&mut import, &inputs).map_err(fail)? {
        return Err(fail(unsupported.into()));
    }
    let steps = |&input: &i32| import.tensors.steps(import.tensors.position(input)?);
    let steps: Vec<Option<Steps>> = inputs.iter().map(steps).collect::<Result<_, _>>().map_err(fail)?;
    let (inputs, outputs) = import.ends_of(&inputs, (&outputs, &chosen), options).map_err(fail)?;
    for input in &inputs {
        if let Some(Some(Steps { scale, zero, .. })) = steps.get(input.place) {
            info.quantised.insert(input.name.clone(), Quantised { scale: *scale, zero: *zero });
        }
    }
    Ok((inputs, outputs, info))
}

type Started<'a> = (Import<'a>, Vec<i32>, Vec<i32>);

/// The network that the options ask for, by index.
fn main(model: &Model<'_>, options: &LoadOptions) -> Result<usize, Reason> {
    let Some(wanted) = &options.signature else { return Ok(0) };
    let signatures = || model.signatures().into_iter().flat_map(|signatures| signatures.iter());
    match signatures().find(|signature| signature.key() == Some(wanted)) {
        Some(signature) => Ok(signature.subgraph() as usize),
        None => {
            let names: Vec<&str> = signatures().filter_map(|signature| signature.key()).take(16).collect();
            refused!("found no signature {wanted:?}, wanted one of {names:?}")
        }
    }
}

fn start<'a>(
    (model, file): (&Model<'a>, &'a [u8]),
    (main, integers): (usize, bool),
    budget: Budget,
    prepare: Prepare,
) -> Result<Started<'a>, Reason> {
    let networks = model.subgraphs();
    let count = networks.map_or(0, |networks| networks.len());
    let network: SubGraph<'a> = networks
        .and_then(|networks| at(networks, main))
        .ok_or_else(|| format!("found {count} subgraphs, wanted at least {}", main.saturating_add(1)))?;
    network.tensors().ok_or("found no tensors, wanted at least an input and an output")?;
    let operators = network.operators().filter(|operators| !operators.is_empty());
    operators.ok_or("found no operators, wanted at least one")?;
    let codes = model.operator_codes().ok_or("found operators, but no operator codes")?;
    let mut budget = budget;
    let inputs = ends("inputs", network.inputs(), &mut budget)?;
    let outputs = ends("outputs", network.outputs(), &mut budget)?;
    let frame = Frame::new(network, (model, file), [inputs.clone(), outputs.clone()], &mut budget)?;
    let mut import = Import {
        model: *model,
        file,
        build: Builder::new(budget, 0, prepare),
        codes,
        handlers: operators::handler,
        main,
        frame: Box::new(frame),
        frames: HashMap::new(),
        calls: 0,
        depth: 0,
        variables: Vec::new(),
        assigned: None,
        imaginary: HashMap::new(),
        starting: false,
        integers,
        ends: Vec::new(),
    };
    if !integers {
        import.build.graph.dequantize_operators();
    }
    import.name_ends(model, &inputs, &outputs)?;
    Ok((import, inputs, outputs))
}

fn ends(
    what: &str,
    vector: Option<flatbuffers::Vector<'_, i32>>,
    budget: &mut Budget,
) -> Result<Vec<i32>, Reason> {
    match vector.map_or(0, |vector| vector.len()) {
        0 => refused!("found no {what}, wanted at least one"),
        count if count > MAX_ENDS => refused!("found {count} {what}, wanted at most {MAX_ENDS}"),
        _ => indices(vector, budget),
    }
}
