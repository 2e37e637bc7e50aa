//! A file as a network whose extents each run decides: its nodes in order, divided where what follows depends on a value
//! that is computed.
//!
//! A part is made for the extents of what it is given, and for the values of some of it: those that an operator wants to
//! know while the file is read. Where it wants one that the part computes, the part ends before it, and the value is given
//! to the next one. An operator whose results' extents depend on values, as `NonZero`, and one that can only be made of
//! constants, is a part by itself, which the CPU computes at each run.

use super::import::{Import, Trouble, needed};
use super::operators;
use super::schema::{Described, Extent, Graph as Network, Model, captures};
use super::survey;
use super::tensors::Files;
use crate::dims::{Dim, Dims};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::host::HostTensor;
use crate::model::behind;
use crate::model::budget::Budget;
use crate::model::build::{Kind, Mapped, Operand, Wanted};
use crate::model::constant::{Constant, Integers};
use crate::model::kept::Kept;
use crate::model::reason::Reason;
use crate::model::{LoadOptions, ModelInfo};
use crate::session::{Found, Given, OpenAxis, OpenInput, Part, Place, Port, Source};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file whose network is made for the extents of each run.
#[derive(Debug)]
pub(in crate::model) struct OnnxSource {
    file: String,
    bytes: Arc<[u8]>,
    path: Option<PathBuf>,
    options: LoadOptions,
    inputs: Vec<OpenInput>,
    outputs: Vec<Port>,
    kept: Arc<Kept>,
}

/// Where a part begins.
#[derive(Debug, Clone, Default)]
struct At {
    /// The first node.
    begin: usize,
    /// The types of what it is given.
    kinds: BTreeMap<String, Kind>,
    /// What the parts before it know.
    carried: BTreeMap<String, Carried>,
    /// Nodes that those parts have computed along.
    absorbed: HashSet<usize>,
}

/// What a part passes on beside what it computes.
#[derive(Debug, Clone)]
enum Carried {
    Constant(Constant, Kind),
    /// A list of what is given, or known.
    Sequence(Vec<Carried>),
    Given(String),
}

/// What a part ends with.
struct End {
    results: BTreeMap<String, Found>,
    at: At,
    form: String,
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
    pub(in crate::model) fn new(
        file: &str,
        bytes: Arc<[u8]>,
        path: Option<&Path>,
        options: &LoadOptions,
    ) -> Result<(Self, ModelInfo)> {
        let mut source = OnnxSource {
            file: file.to_owned(),
            bytes: Arc::clone(&bytes),
            path: path.map(Path::to_owned),
            options: options.clone(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            kept: Arc::default(),
        };
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        let info = source.read(|import, network, options| {
            if let Some(unsupported) = survey::unsupported(import, network) {
                return Err(unsupported.into());
            }
            import.check_options(network, options)?;
            let known: HashSet<&str> = network.initializers.iter().map(|tensor| tensor.name).collect();
            for input in network.inputs.iter().filter(|input| !options.values.contains_key(input.name)) {
                if input.kind == 0 {
                    return refused!("input {:?}: found a sequence or a map, wanted a tensor", input.name);
                }
                let kind = Kind::of(input.kind).map_err(|why| format!("input {:?}: {why}", input.name))?;
                let (extents, open) = declared(input, options);
                let is_optional = known.contains(input.name) && !options.inputs.contains(input.name);
                let name = input.name.to_owned();
                inputs.push(OpenInput { name, dtype: kind.dtype(), extents, open, is_optional });
            }
            for output in &network.outputs {
                let (extents, open) = declared(output, &LoadOptions::default());
                let extents: Vec<usize> =
                    extents.iter().flatten().map(|extent| extent.unwrap_or(1)).collect();
                let dims = Dims::new_or_empty(&extents).unwrap_or(Dims::SCALAR);
                let dtype = Kind::of(output.kind).map_or(DType::F32, Kind::dtype);
                outputs.push(Port { name: output.name.to_owned(), shape: dims.shape(), dims, dtype, open });
            }
            let (name, description) = (network.name.to_owned(), import.description.to_owned());
            Ok(ModelInfo { name, description, ..ModelInfo::default() })
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
        let fail =
            |reason: Reason| Error::Model { file: self.file.clone(), op: None, message: reason.into() };
        let mut budget = Budget::new(self.bytes.len());
        budget.extend(super::load::LEAST_WORK);
        let model = Model::read(&self.bytes, &mut budget).map_err(fail)?;
        let network = model.graph.as_ref().ok_or_else(|| fail(super::load::NO_GRAPH.into()))?;
        let files = Files::keeping(self.path.as_deref(), Arc::clone(&self.kept));
        let mut import = Import::new(&model, network, files, budget, operators::handler).map_err(fail)?;
        import.open = true;
        import.build.kept = Some(Arc::clone(&self.kept));
        work(&mut import, network, &self.options).map_err(fail)
    }

    /// The nodes from a place on, up to `until`.
    fn attempt(
        &self,
        at: &At,
        given: &[Given<'_>],
        by_value: &BTreeSet<String>,
        until: Option<usize>,
    ) -> Result<std::result::Result<(Graph, End), Want>> {
        self.read(|import, network, options| {
            begin(import, network, options, at, given, by_value)?;
            let outputs: Vec<&str> = network.outputs.iter().map(|output| output.name).collect();
            let end = until.unwrap_or(network.nodes.len());
            if let Err((index, reason)) =
                import.nodes_between(&network.nodes, &outputs, at.begin..end, &at.absorbed)
            {
                return Ok(Err(want(import, at, given, by_value, (index, reason))));
            }
            let end = match until {
                Some(until) => import.end_before(network, options, until, at, given)?,
                None => import.end_of_network(network)?,
            };
            Ok(Ok((std::mem::take(&mut import.build.graph), end)))
        })
    }

    fn at<'p>(&self, place: &'p Place) -> Result<&'p At> {
        place.of.downcast_ref().ok_or_else(|| Error::Internal("a place of another file".to_owned()))
    }

    /// An error of a node.
    fn refusal(&self, index: Option<usize>, reason: Reason) -> Result<Error> {
        let named = self.read(|_, network, _| {
            let node = index.and_then(|index| network.nodes.get(index));
            Ok(node.map(|node| (node.index, node.op.to_owned())))
        })?;
        Ok(Error::Model { file: self.file.clone(), op: named, message: reason.into() })
    }
}

/// Puts in its place what a part begins with.
fn begin<'a>(
    import: &mut Import<'a>,
    network: &'a Network<'a>,
    options: &LoadOptions,
    at: &At,
    given: &[Given<'_>],
    by_value: &BTreeSet<String>,
) -> Result<(), Reason> {
    let names: HashSet<&str> = given.iter().map(|own| &*own.name).collect();
    for tensor in network.initializers.iter().filter(|tensor| !names.contains(tensor.name)) {
        if options.values.contains_key(tensor.name) {
            continue;
        }
        let constant = import.files.constant(tensor, &mut import.build.budget);
        let (constant, kind) = constant.map_err(|why| format!("constant {:?}: {why}", tensor.name))?;
        import.insert(tensor.name, Operand::Constant(constant, kind))?;
    }
    for input in &network.inputs {
        if let Some(tensor) = options.values.get(input.name) {
            import.given_as(input, tensor).map_err(|why| format!("input {:?}: {why}", input.name))?;
        }
    }
    // Names of the file live as long as it; those of parts are found in it.
    let mut values = BTreeMap::new();
    for own in given {
        let declared = network.inputs.iter().find(|input| input.name == own.name).filter(|_| at.begin == 0);
        let kind = match (declared, at.kinds.get(&*own.name)) {
            (_, Some(&kind)) => kind,
            (Some(input), None) => Kind::of(input.kind)?,
            (None, None) => return refused!("found {:?} given, wanted an input", own.name),
        };
        let extents = own.dims.extents().to_vec();
        let operand = match own.dims.elements() {
            0 => Operand::Constant(Constant::Integers(Integers::new(extents, Vec::new())), kind),
            _ if by_value.contains(&*own.name) => {
                let value = own.value()?;
                let value = value.ok_or_else(|| format!("found no value of {:?}", own.name))?;
                import.known_value(&value, kind).map_err(|why| format!("input {:?}: {why}", own.name))?
            }
            _ => {
                let dims: Vec<Dim> = extents.iter().map(|&extent| Dim::Fixed(extent)).collect();
                let value = import.graph.typed_input(&own.name, kind.dtype(), &dims)?;
                import.names.insert(own.name.clone().into_owned());
                Operand::Value(Mapped::plain(value, extents.len(), kind))
            }
        };
        values.insert(own.name.clone().into_owned(), operand);
    }
    let mut known: BTreeMap<&str, &'a str> = BTreeMap::new();
    for name in every_name(network) {
        known.insert(name, name);
    }
    let mut carried = BTreeMap::new();
    for (name, own) in &at.carried {
        carried.insert(name.clone(), import.taken_up(own, &values)?);
    }
    for (name, operand) in values.into_iter().chain(carried) {
        if let Some(name) = known.get(name.as_str()) {
            import.insert(name, operand)?;
        }
    }
    Ok(())
}

/// The names of a network's tensors.
fn every_name<'a>(network: &'a Network<'a>) -> impl Iterator<Item = &'a str> {
    let inputs = network.inputs.iter().map(|input| input.name);
    let written = network.nodes.iter().flat_map(|node| node.outputs.iter().copied());
    inputs.chain(written).filter(|name| !name.is_empty())
}

/// What to do where a node is refused.
fn want(
    import: &Import<'_>,
    at: &At,
    given: &[Given<'_>],
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
        let names = behind::inputs(&import.graph, &[value]);
        let is_input = import.graph.inputs().contains(&value);
        let most = if is_input { behind::MOST_BY_VALUE } else { behind::FEW };
        if !names.is_empty() && names.iter().all(|name| few(name, most)) {
            return Want::Values(names);
        }
        if index > at.begin {
            return Want::Before { index, on_host: false };
        }
    }
    Want::Before { index, on_host: true }
}

impl<'a> Import<'a> {
    /// An operand that an earlier part has passed on.
    fn taken_up(&mut self, own: &Carried, values: &BTreeMap<String, Operand>) -> Result<Operand, Reason> {
        Ok(match own {
            Carried::Constant(constant, kind) => Operand::Constant(constant.clone(), *kind),
            Carried::Given(name) => {
                values.get(name).cloned().ok_or_else(|| format!("found no {name:?} given"))?
            }
            Carried::Sequence(list) => {
                let tensors =
                    list.iter().map(|own| self.taken_up(own, values)).collect::<Result<Vec<_>, _>>()?;
                let number = Integers::new(Vec::new(), vec![self.sequences.len() as i64]);
                self.sequences.push(tensors);
                Operand::Constant(Constant::Integers(number), Kind::Sequence)
            }
        })
    }

    /// Where a value is found behind a part: an input of the part, a constant of its graph, or an output.
    fn found(&mut self, name: &str, mapped: Mapped) -> Result<Found, Reason> {
        self.current = name.to_owned();
        let dtype = mapped.kind.dtype();
        let mapped = self.typed(mapped)?;
        if mapped.is_plain() && self.graph.inputs().contains(&mapped.value) {
            let own = self.graph.tensor_type(mapped.value)?.dtype;
            if own == dtype {
                return Ok(Found::Given(self.graph.name(mapped.value)?.to_owned()));
            }
        }
        let mut value = self.logical(&mapped)?;
        if let Some(tensor) = self.graph.tensor(value)? {
            return Ok(Found::Constant(of_type(tensor, dtype)?));
        }
        let other_type = self.graph.tensor_type(value)?.dtype != dtype;
        let is_output = self.graph.outputs().contains(&value);
        if self.graph.inputs().contains(&value) || is_output && other_type {
            let same: Vec<Dim> =
                self.graph.dims(value)?.extents().iter().map(|&extent| extent.into()).collect();
            value = self.add("result", |graph, name| graph.reshape(name, value, &same))?;
        }
        if !self.graph.outputs().contains(&value) {
            self.graph.output(value)?;
            self.graph.retype(value, dtype)?;
        }
        let place = self.graph.outputs().iter().position(|&output| output == value);
        place.map(Found::Output).ok_or_else(|| "found no output".into())
    }

    /// What the nodes from `until` on read of what was computed.
    fn end_before(
        &mut self,
        network: &'a Network<'a>,
        options: &LoadOptions,
        until: usize,
        at: &At,
        given: &[Given<'_>],
    ) -> Result<End, Reason> {
        let outputs: Vec<&str> = network.outputs.iter().map(|output| output.name).collect();
        let absorbed = self.scopes.last().map(|scope| scope.absorbed.clone()).unwrap_or_default();
        let wanted = needed(&network.nodes, &outputs);
        let mut read: BTreeSet<&str> = outputs.iter().copied().collect();
        for (index, node) in network.nodes.iter().enumerate().skip(until) {
            if wanted.get(index) != Some(&true) || absorbed.contains(&index) {
                continue;
            }
            read.extend(node.inputs.iter().copied());
            let mut captured = Vec::new();
            captures(node, &mut captured);
            read.extend(captured);
        }
        let files: HashSet<&str> = network.initializers.iter().map(|tensor| tensor.name).collect();
        let given_names: HashSet<&str> = given.iter().map(|own| &*own.name).collect();
        let mut end = End {
            results: BTreeMap::new(),
            at: At { begin: until, absorbed, ..At::default() },
            form: String::new(),
        };
        for name in read {
            let slot = self.scopes.last().and_then(|scope| scope.slots.get(name).cloned());
            let Some(slot) = slot else { continue };
            let is_given = given_names.contains(name);
            if !is_given && (files.contains(name) || options.values.contains_key(name)) {
                continue;
            }
            let carried = at.carried.get(name).filter(|_| self.computes && !self.written.contains(&name));
            if let Some(carried) = carried {
                kept(carried, at, &mut end);
                end.at.carried.insert(name.to_owned(), carried.clone());
                continue;
            }
            if is_given && !at.carried.contains_key(name) {
                end.at.kinds.insert(name.to_owned(), slot.kind());
                end.results.insert(name.to_owned(), Found::Given(name.to_owned()));
                continue;
            }
            let carried = self.passed_on(name, slot, &mut end)?;
            if !matches!(&carried, Carried::Given(own) if own == name) {
                end.at.carried.insert(name.to_owned(), carried);
            }
        }
        Ok(end)
    }

    /// How an operand is passed on to the next part.
    fn passed_on(&mut self, name: &str, slot: Operand, end: &mut End) -> Result<Carried, Reason> {
        Ok(match slot {
            Operand::Constant(Constant::Integers(number), Kind::Sequence) => {
                let place = number.values.first().and_then(|&number| usize::try_from(number).ok());
                let list = place.and_then(|place| self.sequences.get(place)).cloned().unwrap_or_default();
                end.form += &format!("{name}:{} ", list.len());
                let mut all = Vec::with_capacity(list.len());
                for (index, own) in list.into_iter().enumerate() {
                    all.push(self.passed_on(&format!("{name}[{index}]"), own, end)?);
                }
                Carried::Sequence(all)
            }
            Operand::Constant(constant, kind) => match self.computes && !kind.is_handle() {
                false => Carried::Constant(constant, kind),
                true => {
                    let tensor = tensor_of(&constant, kind)?;
                    end.at.kinds.insert(name.to_owned(), kind);
                    end.results.insert(name.to_owned(), Found::Constant(tensor));
                    Carried::Given(name.to_owned())
                }
            },
            Operand::Value(mapped) => {
                let kind = mapped.kind;
                let found = match self.computes {
                    false => self.found(name, mapped)?,
                    true => {
                        let constant = self.known(Operand::Value(mapped))?;
                        Found::Constant(tensor_of(&constant, kind)?)
                    }
                };
                end.at.kinds.insert(name.to_owned(), kind);
                end.results.insert(name.to_owned(), found);
                Carried::Given(name.to_owned())
            }
        })
    }

    /// The network's outputs.
    fn end_of_network(&mut self, network: &'a Network<'a>) -> Result<End, Reason> {
        if network.outputs.is_empty() {
            return refused!("found no outputs, wanted at least one");
        }
        let mut end = End { results: BTreeMap::new(), at: At::default(), form: String::new() };
        for output in &network.outputs {
            let slot = self.find(output.name);
            let found = slot.and_then(|slot| match slot {
                Operand::Constant(_, kind) if kind.is_handle() => {
                    refused!("found a sequence or nothing, wanted a tensor")
                }
                Operand::Constant(constant, kind) => Ok(Found::Constant(tensor_of(&constant, kind)?)),
                Operand::Value(mapped) => self.found(output.name, mapped),
            });
            let found = found.map_err(|why| format!("output {:?}: {why}", output.name))?;
            end.results.insert(output.name.to_owned(), found);
        }
        Ok(end)
    }
}

/// Passes on what `carried` is given by name.
fn kept(carried: &Carried, at: &At, end: &mut End) {
    match carried {
        Carried::Constant(..) => (),
        Carried::Given(name) => {
            end.at.kinds.extend(at.kinds.get(name).map(|&kind| (name.clone(), kind)));
            end.results.insert(name.clone(), Found::Given(name.clone()));
        }
        Carried::Sequence(list) => list.iter().for_each(|own| kept(own, at, end)),
    }
}

/// A tensor of floats as another type of floats.
fn of_type(tensor: &HostTensor, dtype: DType) -> Result<HostTensor, Reason> {
    if tensor.dtype() == dtype {
        return Ok(tensor.clone());
    }
    let words = crate::word::of_tensor(tensor, dtype.word(), dtype, "a constant")?;
    crate::word::to_tensor(tensor.dims(), dtype, dtype.word(), &words).map_err(Reason::from)
}

/// A constant as a tensor of its type.
fn tensor_of(constant: &Constant, kind: Kind) -> Result<HostTensor, Reason> {
    let dims = Dims::new_or_empty(&constant.extents())?;
    match constant {
        Constant::Floats(tensor) => of_type(tensor, kind.dtype()),
        Constant::Integers(Integers { values, .. }) if kind.is_float() => {
            let numbers: Vec<f32> = values.iter().map(|&value| value as f32).collect();
            of_type(&HostTensor::new(dims, numbers)?, kind.dtype())
        }
        Constant::Integers(Integers { values, .. }) => {
            let dtype = kind.dtype();
            let words = crate::word::of_integers(dtype.word(), values.iter().copied());
            crate::word::to_tensor(dims, dtype, dtype.word(), &words).map_err(Reason::from)
        }
    }
}

impl Source for OnnxSource {
    fn inputs(&self) -> &[OpenInput] {
        &self.inputs
    }

    fn outputs(&self) -> Vec<Port> {
        self.outputs.clone()
    }

    fn first(&self) -> Place {
        Place { on_host: false, form: String::new(), of: Arc::new(At::default()) }
    }

    fn part(&self, place: &Place, given: &[Given<'_>], by_value: &BTreeSet<String>) -> Result<Part> {
        let at = self.at(place)?;
        let mut by_value = by_value.clone();
        by_value.retain(|name| given.iter().any(|own| own.name == *name && own.input.is_some()));
        let mut until = None;
        let mut on_host = false;
        loop {
            let want = match self.attempt(at, given, &by_value, until)? {
                Ok((graph, End { results, at, form })) => {
                    let is_last = until.is_none();
                    let next = (!is_last).then(|| Place { on_host, form, of: Arc::new(at) });
                    let results = match is_last {
                        true => {
                            let named = self.outputs.iter();
                            let named =
                                named.map(|port| (port.name.clone(), results.get(&port.name).cloned()));
                            named.filter_map(|(name, found)| Some((name, found?))).collect()
                        }
                        false => results.into_iter().collect(),
                    };
                    return Ok(Part { graph, by_value, results, next });
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
                    return Ok(Part { graph: Graph::new(), by_value: names, results, next: None });
                }
                Want::Before { index, on_host: host } => {
                    (until, on_host) = (Some(index), host);
                }
                Want::Refused(index, reason) => return Err(self.refusal(index, reason)?),
            }
        }
    }

    fn on_host(&self, place: &Place, given: &[Given<'_>]) -> Result<(Vec<(String, HostTensor)>, Place)> {
        let at = self.at(place)?;
        let every: BTreeSet<String> = given.iter().map(|own| own.name.clone().into_owned()).collect();
        let ended = self.read(|import, network, options| {
            import.computes = true;
            begin(import, network, options, at, given, &every)?;
            let outputs: Vec<&str> = network.outputs.iter().map(|output| output.name).collect();
            let until = at.begin + 1;
            match import.nodes_between(&network.nodes, &outputs, at.begin..until, &at.absorbed) {
                Err((index, reason)) => Ok(Err((index, reason))),
                Ok(()) => import.end_before(network, options, until, at, given).map(Ok),
            }
        })?;
        let End { results, at, form } = match ended {
            Ok(end) => end,
            Err((index, reason)) => return Err(self.refusal(index, reason)?),
        };
        let mut tensors = Vec::with_capacity(results.len());
        for (name, found) in results {
            let tensor = match found {
                Found::Constant(tensor) => Some(tensor),
                Found::Given(own) => {
                    let own = given.iter().find(|given| *given.name == own).map(Given::value).transpose()?;
                    own.flatten().map(std::borrow::Cow::into_owned)
                }
                Found::Output(_) => None,
            };
            let missing = || Error::Internal(format!("nothing is known of {name:?}"));
            tensors.push((name.clone(), tensor.ok_or_else(missing)?));
        }
        Ok((tensors, Place { on_host: false, form, of: Arc::new(at) }))
    }
}

impl OnnxSource {
    fn has_value(&self, given: &[Given<'_>], name: &str) -> bool {
        given.iter().any(|own| own.name == name && own.input.is_some())
    }
}
