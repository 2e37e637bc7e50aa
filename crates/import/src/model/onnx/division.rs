//! Where a network is divided: what a part begins with, and what it passes on to the next one.

use super::import::{Import, Scope, needed};
use super::schema::{Graph as Network, captures};
use crate::dims::{Dim, Dims};
use crate::dtype::DType;
use crate::error::Result;
use crate::host::HostTensor;
use crate::model::LoadOptions;
use crate::model::build::{Kind, Mapped, Operand};
use crate::model::constant::{Constant, Integers};
use crate::model::reason::Reason;
use crate::sorted;
use crate::source::{Caching, GivenInput, PLACES, PartResult};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Where a part begins.
#[derive(Debug, Clone, Default)]
pub(super) struct At {
    /// The first node.
    pub(super) begin: usize,
    /// The types of what it is given.
    pub(super) kinds: BTreeMap<String, Kind>,
    /// What the parts before it know.
    pub(super) carried: BTreeMap<String, Carried>,
    /// Nodes that those parts have computed along.
    pub(super) absorbed: HashSet<usize>,
}

/// What a part passes on beside what it computes.
#[derive(Debug, Clone)]
pub(super) enum Carried {
    Constant(Constant, Kind),
    /// A list of what is given, or known.
    Sequence(Vec<Carried>),
    Given(String),
}

/// What a part ends with.
pub(super) struct PartEnd {
    pub(super) results: BTreeMap<String, PartResult>,
    pub(super) at: At,
    pub(super) form: String,
}

/// Puts in its place what a part begins with.
pub(super) fn begin<'a>(
    import: &mut Import<'a>,
    network: &'a Network<'a>,
    options: &LoadOptions,
    at: &At,
    given: &[GivenInput<'_>],
    by_value: &BTreeSet<String>,
    caching: Option<Caching<'_>>,
) -> Result<(), Reason> {
    let names: HashSet<&str> = given.iter().map(|own| &*own.name).collect();
    for tensor in network.initializers.iter().filter(|tensor| !names.contains(tensor.name)) {
        if options.values.contains_key(tensor.name) {
            continue;
        }
        let constant = import.files.constant(tensor, &mut import.build.budget);
        let (constant, kind) =
            constant.map_err(|why| why.behind(format_args!("constant {:?}: ", tensor.name)))?;
        import.insert(tensor.name, Operand::Constant(constant, kind))?;
    }
    for input in &network.inputs {
        if let Some(tensor) = options.values.get(input.name) {
            import
                .given_as(input, tensor)
                .map_err(|why| why.behind(format_args!("input {:?}: ", input.name)))?;
        }
    }
    // Names of the file live as long as it; those of parts are found in it.
    let mut values = BTreeMap::new();
    for own in given {
        let declared = network.inputs.iter().find(|input| input.name == own.name).filter(|_| at.begin == 0);
        let kind = match (declared, at.kinds.get(&*own.name)) {
            (_, Some(&kind)) => kind,
            (Some(input), None) => Kind::of(input.kind)?,
            // It was made with the first cache.
            (None, None) if caching.is_some() && own.name == PLACES => continue,
            (None, None) => return refused!("found {:?} given, wanted an input", own.name),
        };
        let extents = own.dims.extents().to_vec();
        let is_cache = |caching: &Caching<'_>| caching.pairs.iter().any(|(_, input)| *input == own.name);
        let operand = match own.dims.elements() {
            _ if caching.as_ref().is_some_and(is_cache) => {
                import.cache(&own.name, own.dims, kind, caching)?
            }
            0 => Operand::Constant(Constant::Integers(Integers::new(extents, Vec::new())), kind),
            _ if by_value.contains(&*own.name) => {
                let value = own.value()?;
                let value = value.ok_or_else(|| format!("found no value of {:?}", own.name))?;
                import
                    .known_value(&value, kind)
                    .map_err(|why| why.behind(format_args!("input {:?}: ", own.name)))?
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
    fn found(&mut self, name: &str, mapped: Mapped) -> Result<PartResult, Reason> {
        self.current = name.to_owned();
        let dtype = mapped.kind.dtype();
        let mapped = self.typed(mapped)?;
        if mapped.is_plain() && self.graph.inputs().contains(&mapped.value) {
            let own = self.graph.tensor_type(mapped.value)?.dtype;
            if own == dtype {
                return Ok(PartResult::Given(self.graph.name(mapped.value)?.to_owned()));
            }
        }
        let mut value = self.logical(&mapped)?;
        if let Some(tensor) = self.graph.tensor(value)? {
            return Ok(PartResult::Constant(of_type(tensor, dtype)?));
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
        place.map(PartResult::Output).ok_or_else(|| "found no output".into())
    }

    /// What the nodes from `until` on read of what was computed.
    pub(super) fn end_before(
        &mut self,
        network: &'a Network<'a>,
        options: &LoadOptions,
        until: usize,
        at: &At,
        given: &[GivenInput<'_>],
    ) -> Result<PartEnd, Reason> {
        let outputs: Vec<&str> = network.outputs.iter().map(|output| output.name).collect();
        let absorbed = self.scopes.last().map(|scope| scope.absorbed.clone()).unwrap_or_default();
        let wanted = needed(&network.nodes, &outputs);
        let mut read = sorted::set(outputs.iter().copied());
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
        let mut end = PartEnd {
            results: BTreeMap::new(),
            at: At { begin: until, absorbed, ..At::default() },
            form: String::new(),
        };
        for name in read {
            let own = |scope: &Scope<'_>| scope.slots.contains_key(name) || scope.unread.contains_key(name);
            if !self.scopes.last().is_some_and(own) {
                continue;
            }
            let slot = self.find(name)?;
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
                end.results.insert(name.to_owned(), PartResult::Given(name.to_owned()));
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
    fn passed_on(&mut self, name: &str, slot: Operand, end: &mut PartEnd) -> Result<Carried, Reason> {
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
            Operand::Constant(nothing, kind) if kind.is_handle() => {
                end.form += &format!("{name}: nothing ");
                Carried::Constant(nothing, kind)
            }
            Operand::Constant(constant, kind) if !self.computes => Carried::Constant(constant, kind),
            Operand::Constant(constant, kind) => {
                let tensor = tensor_of(&constant, kind)?;
                end.at.kinds.insert(name.to_owned(), kind);
                end.results.insert(name.to_owned(), PartResult::Constant(tensor));
                Carried::Given(name.to_owned())
            }
            Operand::Value(mapped) => {
                let kind = mapped.kind;
                let found = match self.computes {
                    false => self.found(name, mapped)?,
                    true => {
                        let constant = self.known(Operand::Value(mapped))?;
                        PartResult::Constant(tensor_of(&constant, kind)?)
                    }
                };
                end.at.kinds.insert(name.to_owned(), kind);
                end.results.insert(name.to_owned(), found);
                Carried::Given(name.to_owned())
            }
        })
    }

    /// The network's outputs.
    pub(super) fn end_of_network(
        &mut self,
        network: &'a Network<'a>,
        caching: Option<Caching<'_>>,
    ) -> Result<PartEnd, Reason> {
        if network.outputs.is_empty() {
            return refused!("found no outputs, wanted at least one");
        }
        let mut end = PartEnd { results: BTreeMap::new(), at: At::default(), form: String::new() };
        let caching = caching.as_ref();
        for output in &network.outputs {
            let slot = self.find(output.name);
            let of = |(own, _): &&(String, String)| own == output.name;
            let pair = caching.and_then(|caching| Some((caching, caching.pairs.iter().find(of)?)));
            if let Some((caching, (_, input))) = pair {
                let kept = slot.and_then(|slot| self.keep_cache(input, slot, caching));
                kept.map_err(|why| why.behind(format_args!("output {:?}: ", output.name)))?;
                continue;
            }
            let found = slot.and_then(|slot| match slot {
                Operand::Constant(_, kind) if kind.is_handle() => {
                    refused!("found a sequence or nothing, wanted a tensor")
                }
                Operand::Constant(constant, kind) => Ok(PartResult::Constant(tensor_of(&constant, kind)?)),
                Operand::Value(mapped) => self.found(output.name, mapped),
            });
            let found = found.map_err(|why| why.behind(format_args!("output {:?}: ", output.name)))?;
            end.results.insert(output.name.to_owned(), found);
        }
        Ok(end)
    }
}

/// Passes on what `carried` is given by name.
fn kept(carried: &Carried, at: &At, end: &mut PartEnd) {
    match carried {
        Carried::Constant(..) => (),
        Carried::Given(name) => {
            end.at.kinds.extend(at.kinds.get(name).map(|&kind| (name.clone(), kind)));
            end.results.insert(name.clone(), PartResult::Given(name.clone()));
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
    let dims = Dims::new(&constant.extents())?;
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
