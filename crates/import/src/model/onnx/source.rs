//! A file as a network whose extents each run decides: its nodes in order, divided where what follows depends on a value
//! that is computed.
//!
//! A part is made for the extents of what it is given, and for the values of some of it: those that an operator wants to
//! know while the file is read. Where it wants one that the part computes, the part ends before it, and the value is given
//! to the next one. An operator whose results' extents depend on values, as `NonZero`, and one that can only be made of
//! constants, is a part by itself, which the CPU computes at each run.

use super::division::{At, PartEnd, begin};
use super::import::{Import, Trouble};
use super::operators;
use super::schema::{Described, Extent, Graph as Network, Model};
use super::survey;
use super::tensors::Files;
use crate::compute::Prepare;
use crate::dims::Dims;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::host::HostTensor;
use crate::model::budget::Budget;
use crate::model::build::{Kind, Wanted};
use crate::model::constant_cache::ConstantCache;
use crate::model::input_dependence;
use crate::model::reason::Reason;
use crate::model::{LoadOptions, ModelInfo};
use crate::sorted;
use crate::source::{
    Caching, Filling, GivenInput, GraphSource, OpenAxis, OpenInput, Part, PartResult, PartStart, Port,
};
use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file whose network is made for the extents of each run.
#[derive(Debug)]
pub struct OnnxSource {
    file: String,
    bytes: Arc<[u8]>,
    path: Option<PathBuf>,
    options: LoadOptions,
    inputs: Vec<OpenInput>,
    outputs: Vec<Port>,
    kept: Arc<ConstantCache>,
    prepare: Prepare,
}

/// Why a part cannot go on.
enum Want {
    /// These are to be given by value.
    Values(BTreeSet<String>),
    /// The part ends before this node.
    Before { index: usize, on_host: bool },
    /// There is no way.
    Refused(Option<usize>, Reason),
}

/// The graph of a part.
struct Made {
    graph: Graph,
    /// How many places it adds to each cache.
    adds: usize,
    /// Whether what attends sees them behind all others.
    apart: bool,
}

/// An extent of an input, or an axis that is open.
fn declared(input: &Described<'_>, options: &LoadOptions) -> (Option<Vec<Option<usize>>>, Vec<OpenAxis>) {
    let Some(extents) = &input.extents else { return (None, Vec::new()) };
    let (mut fixed, mut open) = (Vec::with_capacity(extents.len()), Vec::new());
    for (axis, extent) in extents.iter().enumerate() {
        let own = format!("{}.{axis}", input.name);
        let given = options.dimensions.get(&own).copied();
        match extent {
            Extent::Fixed(extent) if *extent > 0 || axis > 0 => fixed.push(Some(*extent)),
            Extent::Fixed(_) | Extent::Free("") => {
                fixed.push(given);
                if given.is_none() {
                    open.push(OpenAxis { axis, name: own });
                }
            }
            Extent::Free(name) => {
                let given = given.or_else(|| options.dimensions.get(*name).copied());
                fixed.push(given);
                if given.is_none() {
                    open.push(OpenAxis { axis, name: (*name).to_owned() });
                }
            }
        }
    }
    (Some(fixed), open)
}

impl OnnxSource {
    /// Of the bytes of a file, which is at a path or in memory.
    ///
    /// # Errors
    /// If it is not a valid file, or needs what is not supported.
    pub fn new(
        file: &str,
        bytes: Arc<[u8]>,
        path: Option<&Path>,
        options: &LoadOptions,
        prepare: Prepare,
    ) -> Result<(Self, ModelInfo)> {
        let mut source = OnnxSource {
            file: file.to_owned(),
            bytes: Arc::clone(&bytes),
            path: path.map(Path::to_owned),
            options: options.clone(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            kept: Arc::default(),
            prepare,
        };
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        let info = source.read(|import, network, options| {
            if let Some(unsupported) = survey::unsupported(import, network) {
                return Err(unsupported.into());
            }
            import.check_options(network, options)?;
            let known: HashSet<&str> = network.initializers.iter().map(|tensor| tensor.name).collect();
            let inputs_left = network.inputs.iter().enumerate();
            let inputs_left = inputs_left.filter(|(_, input)| !options.values.contains_key(input.name));
            for (place, input) in inputs_left {
                if input.kind == 0 {
                    return refused!("input {:?}: found a sequence or a map, wanted a tensor", input.name);
                }
                let kind = Kind::of(input.kind)
                    .map_err(|why| why.behind(format_args!("input {:?}: ", input.name)))?;
                let (extents, open) = declared(input, options);
                let is_optional = known.contains(input.name) && !options.inputs.contains(input.name);
                let name = input.name.to_owned();
                inputs.push(OpenInput { place, name, dtype: kind.dtype(), extents, open, is_optional });
            }
            for output in &network.outputs {
                let (extents, open) = declared(output, &LoadOptions::default());
                let extents: Vec<usize> =
                    extents.iter().flatten().map(|extent| extent.unwrap_or(1)).collect();
                let dims = Dims::new(&extents).unwrap_or(Dims::SCALAR);
                let dtype = Kind::of(output.kind).map_or(DType::F32, Kind::dtype);
                outputs.push(Port { name: output.name.to_owned(), shape: dims.shape(), dims, dtype, open });
            }
            Ok(std::mem::take(&mut import.info))
        })?;
        source.inputs = inputs;
        source.outputs = outputs;
        Ok((source, info))
    }

    /// Does something with the file's network.
    fn read<T>(
        &self,
        work: impl for<'a> FnOnce(&mut Import<'a>, &'a Network<'a>, &LoadOptions) -> Result<T, Reason>,
    ) -> Result<T> {
        let fail = |reason: Reason| reason.in_file(&self.file, None);
        let mut budget = Budget::new(self.bytes.len());
        budget.extend(super::load::LEAST_WORK);
        let mut model = Model::read(&self.bytes, &mut budget).map_err(fail)?;
        model.choose_outputs(&self.options).map_err(fail)?;
        let network = model.graph.as_ref().ok_or_else(|| fail(super::load::NO_GRAPH.into()))?;
        let files = Files::keeping(self.path.as_deref(), &self.options.files, Arc::clone(&self.kept));
        let mut import =
            Import::new(&model, network, files, budget, (operators::HANDLERS, self.prepare)).map_err(fail)?;
        import.open = true;
        import.set_dequantize(self.options.dequantize);
        import.build.kept = Some(Arc::clone(&self.kept));
        import.build.graph.share_derived(self.kept.derived());
        work(&mut import, network, &self.options).map_err(fail)
    }

    /// The nodes from a place on, up to `until`.
    fn attempt(
        &self,
        at: &At,
        given: &[GivenInput<'_>],
        by_value: &BTreeSet<String>,
        (until, caching): (Option<usize>, Option<Caching<'_>>),
    ) -> Result<std::result::Result<(Made, PartEnd), Want>> {
        self.read(|import, network, options| {
            begin(import, network, options, at, given, by_value, caching)?;
            let outputs: Vec<&str> = network.outputs.iter().map(|output| output.name).collect();
            let end = until.unwrap_or(network.nodes.len());
            if let Err((index, reason)) =
                import.nodes_between(&network.nodes, &outputs, at.begin..end, &at.absorbed)
            {
                return Ok(Err(want(import, at, given, by_value, (index, reason))));
            }
            let end = match until {
                Some(until) => import.end_before(network, options, until, at, given)?,
                None => import.end_of_network(network, caching)?,
            };
            let caches = &import.build.caches;
            let adds = caches.iter().map(|cache| cache.adds).max().unwrap_or(0);
            let apart = caches.iter().any(|cache| cache.apart);
            if caches.iter().any(|cache| cache.apart != apart) {
                return refused!("found caches whose places an input gives beside others, wanted one kind");
            }
            let graph = std::mem::take(&mut import.build.graph);
            Ok(Ok((Made { graph, adds, apart }, end)))
        })
    }

    /// The network behind a place as one part, where it is one.
    pub(super) fn graph_of(
        &self,
        place: &PartStart,
        given: &[GivenInput<'_>],
        by_value: &BTreeSet<String>,
        caching: Caching<'_>,
    ) -> Result<Option<Graph>> {
        let attempt = self.attempt(self.at(place)?, given, by_value, (None, Some(caching)))?;
        Ok(attempt.ok().map(|(made, _)| made.graph))
    }

    fn at<'p>(&self, place: &'p PartStart) -> Result<&'p At> {
        place.of.downcast_ref().ok_or_else(|| Error::Internal("a place of another file".to_owned()))
    }

    /// An error of a node.
    fn refusal(&self, index: Option<usize>, reason: Reason) -> Result<Error> {
        let named = self.read(|_, network, _| {
            let node = index.and_then(|index| network.nodes.get(index));
            Ok(node.map(|node| (node.index, node.op.to_owned())))
        })?;
        Ok(reason.in_file(&self.file, named))
    }
}

/// What to do where a node is refused.
fn want(
    import: &Import<'_>,
    at: &At,
    given: &[GivenInput<'_>],
    by_value: &BTreeSet<String>,
    (index, reason): Trouble,
) -> Want {
    let Some(index) = index else { return Want::Refused(None, reason) };
    let few = |name: &str, most: usize| {
        given.iter().any(|own| own.name == name && own.dims.elements() <= most) && !by_value.contains(name)
    };
    let wanted = import.build.wanted.get();
    let value = match wanted {
        Wanted::Nothing => return Want::Refused(Some(index), reason),
        Wanted::Host => None,
        Wanted::Value(value) => Some(value),
    };
    if let Some(value) = value {
        let names = input_dependence::inputs(&import.graph, &[value]);
        let is_input = import.graph.inputs().contains(&value);
        let most = if is_input { input_dependence::MOST_BY_VALUE } else { input_dependence::FEW };
        if !names.is_empty() && names.iter().all(|name| few(name, most)) {
            return Want::Values(names);
        }
        if index > at.begin {
            return Want::Before { index, on_host: false };
        }
    }
    Want::Before { index, on_host: true }
}

impl GraphSource for OnnxSource {
    fn inputs(&self) -> &[OpenInput] {
        &self.inputs
    }

    fn outputs(&self) -> Vec<Port> {
        self.outputs.clone()
    }

    fn first(&self) -> PartStart {
        PartStart { on_host: false, form: String::new(), of: Arc::new(At::default()) }
    }

    fn filling(&self, inputs: &[&str]) -> Result<Filling> {
        self.read(|_, network, _| {
            let writes = |name: &&str| {
                network
                    .nodes
                    .iter()
                    .any(|node| node.op == "TensorScatter" && node.inputs.first() == Some(name))
            };
            Ok(if inputs.iter().all(writes) { Filling::Whole } else { Filling::Next })
        })
    }

    fn part(
        &self,
        place: &PartStart,
        given: &[GivenInput<'_>],
        by_value: &BTreeSet<String>,
        caching: Option<Caching<'_>>,
    ) -> Result<Part> {
        match caching {
            Some(caching) if caching.way == Filling::Next => {
                self.part_behind(place, given, by_value, caching)
            }
            caching => self.part_filling(place, given, by_value, caching),
        }
    }

    fn on_host(
        &self,
        place: &PartStart,
        given: &[GivenInput<'_>],
    ) -> Result<(Vec<(String, HostTensor)>, PartStart)> {
        let at = self.at(place)?;
        let every = sorted::set(given.iter().map(|own| own.name.clone().into_owned()));
        let ended = self.read(|import, network, options| {
            import.computes = true;
            begin(import, network, options, at, given, &every, None)?;
            let outputs: Vec<&str> = network.outputs.iter().map(|output| output.name).collect();
            let until = at.begin + 1;
            match import.nodes_between(&network.nodes, &outputs, at.begin..until, &at.absorbed) {
                Err((index, reason)) => Ok(Err((index, reason))),
                Ok(()) => import.end_before(network, options, until, at, given).map(Ok),
            }
        })?;
        let PartEnd { results, at, form } = match ended {
            Ok(end) => end,
            Err((index, reason)) => return Err(self.refusal(index, reason)?),
        };
        let mut tensors = Vec::with_capacity(results.len());
        for (name, found) in results {
            let tensor = match found {
                PartResult::Constant(tensor) => Some(tensor),
                PartResult::Given(own) => {
                    let own =
                        given.iter().find(|given| *given.name == own).map(GivenInput::value).transpose()?;
                    own.flatten().map(std::borrow::Cow::into_owned)
                }
                PartResult::Output(_) => None,
            };
            let missing = || Error::Internal(format!("nothing is known of {name:?}"));
            tensors.push((name.clone(), tensor.ok_or_else(missing)?));
        }
        Ok((tensors, PartStart { on_host: false, form, of: Arc::new(at) }))
    }
}

impl OnnxSource {
    /// [`GraphSource::part`] for one way to fill caches.
    pub(super) fn part_filling(
        &self,
        place: &PartStart,
        given: &[GivenInput<'_>],
        by_value: &BTreeSet<String>,
        caching: Option<Caching<'_>>,
    ) -> Result<Part> {
        let at = self.at(place)?;
        let mut by_value = by_value.clone();
        by_value.retain(|name| given.iter().any(|own| own.name == *name && own.input.is_some()));
        let mut until = None;
        let mut on_host = false;
        loop {
            let want = match self.attempt(at, given, &by_value, (until, caching))? {
                Ok((Made { graph, adds, apart }, PartEnd { results, at, form })) => {
                    let is_last = until.is_none();
                    if let (true, Some(mut caching)) = (is_last, caching) {
                        if caching.way == Filling::Apart && !apart {
                            caching.way = Filling::Next;
                        }
                        self.check_places(&graph, place, given, &by_value, caching)?;
                    }
                    let next = (!is_last).then(|| PartStart { on_host, form, of: Arc::new(at) });
                    let results = match is_last {
                        true => {
                            let named = self.outputs.iter();
                            let named =
                                named.map(|port| (port.name.clone(), results.get(&port.name).cloned()));
                            named.filter_map(|(name, found)| Some((name, found?))).collect()
                        }
                        false => results.into_iter().collect(),
                    };
                    return Ok(Part { graph, by_value, results, next, adds, apart });
                }
                Err(want) => want,
            };
            match want {
                Want::Values(names) if names.iter().all(|name| self.has_value(given, name)) => {
                    by_value.extend(names);
                }
                Want::Values(names) => {
                    // Nothing is given yet: a run will tell.
                    let results = Vec::new();
                    return Ok(Part {
                        graph: Graph::new(),
                        by_value: names,
                        results,
                        next: None,
                        adds: 0,
                        apart: false,
                    });
                }
                Want::Before { index, on_host: host } => {
                    (until, on_host) = (Some(index), host);
                }
                Want::Refused(index, reason) => return Err(self.refusal(index, reason)?),
            }
        }
    }

    fn has_value(&self, given: &[GivenInput<'_>], name: &str) -> bool {
        given.iter().any(|own| own.name == name && own.input.is_some())
    }
}
