//! Inputs and outputs of the network.

use super::import::Import;
use super::schema::{Described, Extent, Graph as Network};
use crate::dims::Dim;
use crate::host::HostTensor;
use crate::model::LoadOptions;
use crate::model::build::{Kind, Mapped, Operand};
use crate::model::constant::{Constant, Integers, whole};
use crate::model::input_dependence::of_dimension;
use crate::model::reason::Reason;
use std::collections::{BTreeSet, HashMap, HashSet};

/// The most inputs or outputs of a network; adding one to a graph looks at those before it.
const MAX_ENDS: usize = 4096;

/// One number for an input that has one element, or may have one, whatever its rank.
fn as_declared(input: &Described<'_>, tensor: &HostTensor) -> HostTensor {
    let may_be_one = |extent: &Extent<'_>| matches!(extent, Extent::Fixed(1) | Extent::Free(_));
    let ones = input.extents.as_ref().filter(|extents| extents.iter().all(may_be_one));
    let dims = ones.and_then(|ones| crate::model::constant::dims_of(&vec![1; ones.len()]).ok());
    dims.and_then(|dims| tensor.clone().reshaped(dims).ok()).unwrap_or_else(|| tensor.clone())
}

/// The extents of an input as the file has them, those without a name as `?`.
fn declared(input: &Described<'_>) -> String {
    let extents = input.extents.as_deref().unwrap_or_default().iter().map(|extent| match extent {
        Extent::Fixed(extent) => extent.to_string(),
        Extent::Free("") => "?".to_owned(),
        Extent::Free(name) => (*name).to_owned(),
    });
    match extents.collect::<Vec<_>>().join("x") {
        none if none.is_empty() => "one number".to_owned(),
        extents => extents,
    }
}

impl<'a> Import<'a> {
    pub(super) fn inputs(&mut self, network: &'a Network<'a>, options: &LoadOptions) -> Result<(), Reason> {
        for (what, count) in [("inputs", network.inputs.len()), ("outputs", network.outputs.len())] {
            if count > MAX_ENDS + network.initializers.len() {
                return refused!("found {count} {what}, wanted at most {MAX_ENDS}");
            }
        }
        if let Some(name) = &options.signature {
            return refused!(
                "found signature {name:?} wanted, but an ONNX file has one network and no signatures"
            );
        }
        self.initializers(network, options)?;
        let known: HashSet<&str> = network.initializers.iter().map(|tensor| tensor.name).collect();
        let mut wanted = BTreeSet::new();
        let mut extents = HashMap::new();
        let mut given: Vec<&String> = options.values.keys().collect();
        for input in &network.inputs {
            given.retain(|name| *name != input.name);
            let explain = |reason: Reason| reason.behind(format_args!("input {:?}: ", input.name));
            if let Some(tensor) = options.values.get(input.name) {
                self.given_as(input, tensor).map_err(explain)?;
            } else if !known.contains(input.name) || options.inputs.contains(input.name) {
                self.input(input, options, &mut wanted, &mut extents).map_err(explain)?;
            }
        }
        if let Some(name) = given.first() {
            let names: Vec<&str> = network.inputs.iter().map(|input| input.name).collect();
            return refused!("found a value for input {name:?}, wanted one of {names:?}");
        }
        let is_input = |name: &&String| network.inputs.iter().any(|input| input.name == name.as_str());
        if let Some(name) = options.inputs.iter().find(|name| !is_input(name)) {
            let names: Vec<&str> =
                network.inputs.iter().map(|input| input.name).filter(|name| known.contains(name)).collect();
            return refused!(
                "found no input {name:?}, wanted one of those that the file has a value for: {names:?}"
            );
        }
        if let Some(name) = options.dimensions.keys().find(|name| !wanted.contains(*name)) {
            let wanted: Vec<&String> = wanted.iter().filter(|name| !name.contains('.')).collect();
            return refused!("found an extent for dimension {name:?}, wanted one of {wanted:?}");
        }
        Ok(())
    }

    /// The constants of a network, but for those that are given, or inputs of the graph.
    fn initializers(&mut self, network: &'a Network<'a>, options: &LoadOptions) -> Result<(), Reason> {
        let declared: HashSet<&str> = network.inputs.iter().map(|input| input.name).collect();
        for tensor in &network.initializers {
            let replaced = options.inputs.contains(tensor.name) || options.values.contains_key(tensor.name);
            if replaced && declared.contains(tensor.name) {
                continue;
            }
            let (constant, kind) = self
                .files
                .constant(tensor, &mut self.build.budget)
                .map_err(|reason| reason.behind(format_args!("constant {:?}: ", tensor.name)))?;
            self.insert(tensor.name, Operand::Constant(constant, kind))?;
        }
        Ok(())
    }

    /// Puts the value that the options give in the place of an input.
    pub(super) fn given_as(&mut self, input: &'a Described<'a>, tensor: &HostTensor) -> Result<(), Reason> {
        let tensor = &as_declared(input, tensor);
        self.check_shape(input, tensor)?;
        let constant = self.known_value(tensor, Kind::of(input.kind)?)?;
        self.insert(input.name, constant)
    }

    /// Refuses options that name what the network does not have or leave open.
    pub(super) fn check_options(
        &self,
        network: &'a Network<'a>,
        options: &LoadOptions,
    ) -> Result<(), Reason> {
        if let Some(name) = &options.signature {
            return refused!(
                "found signature {name:?} wanted, but an ONNX file has one network and no signatures"
            );
        }
        let names: Vec<&str> = network.inputs.iter().map(|input| input.name).collect();
        let is_input = |name: &&String| names.contains(&name.as_str());
        if let Some(name) = options.values.keys().find(|name| !is_input(name)) {
            return refused!("found a value for input {name:?}, wanted one of {names:?}");
        }
        if let Some(name) = options.inputs.iter().find(|name| !is_input(name)) {
            return refused!("found no input {name:?}, wanted one of {names:?}");
        }
        let (mut wanted, mut open) = (BTreeSet::new(), BTreeSet::new());
        for input in network.inputs.iter().filter(|input| !options.values.contains_key(input.name)) {
            for (axis, extent) in input.extents.iter().flatten().enumerate() {
                let own = format!("{}.{axis}", input.name);
                match (extent, options.dimensions.get(&own)) {
                    (Extent::Fixed(fixed), Some(given)) if *fixed > 0 && given != fixed => {
                        return refused!(
                            "input {:?}: found {given} for axis {axis}, wanted the {fixed} of the file",
                            input.name
                        );
                    }
                    _ => (),
                }
                if let Extent::Free(name) = extent {
                    open.insert((*name).to_owned());
                }
                wanted.insert(own);
            }
        }
        match options.dimensions.keys().find(|name| !wanted.contains(*name) && !open.contains(*name)) {
            Some(name) => refused!("found an extent for dimension {name:?}, wanted one of {open:?}"),
            None => Ok(()),
        }
    }

    pub(super) fn insert(&mut self, name: &'a str, slot: Operand) -> Result<(), Reason> {
        let scope = self.scopes.last_mut().ok_or("found no scope")?;
        match scope.slots.insert(name, slot) {
            None => Ok(()),
            Some(_) => refused!("found {name:?} twice, wanted a name for each tensor"),
        }
    }

    fn check_shape(&self, input: &Described<'_>, tensor: &HostTensor) -> Result<(), Reason> {
        let found = tensor.dims();
        let fits = input.extents.as_ref().is_none_or(|extents| {
            extents.len() == found.rank()
                && extents.iter().zip(found.extents()).all(|(declared, extent)| match declared {
                    Extent::Fixed(declared) => declared == extent,
                    Extent::Free(_) => true,
                })
        });
        match fits {
            true => Ok(()),
            false => refused!("found a value of {found}, wanted {}", declared(input)),
        }
    }

    /// A value that is known while the file is read.
    pub(super) fn known_value(&mut self, tensor: &HostTensor, kind: Kind) -> Result<Operand, Reason> {
        self.budget.extend(64 * tensor.dims().elements() as u64);
        if kind.is_float() {
            return Ok(Operand::Constant(Constant::Floats(tensor.clone()), kind));
        }
        let values =
            whole(tensor).ok_or_else(|| format!("found numbers that are not whole, wanted {kind:?}"))?;
        let integers = Integers::new(tensor.dims().extents().to_vec(), values);
        Ok(Operand::Constant(Constant::Integers(integers), kind))
    }

    fn input(
        &mut self,
        input: &'a Described<'a>,
        options: &LoadOptions,
        wanted: &mut BTreeSet<String>,
        named: &mut HashMap<&'a str, usize>,
    ) -> Result<(), Reason> {
        let kind = match input.kind {
            0 => return refused!("found a sequence or a map, wanted a tensor"),
            code => Kind::of(code)?,
        };
        let extents = input.extents.as_ref().ok_or("found no shape, wanted its extents in the file")?;
        // What has no elements is known; but some files have 0 for a batch that is open.
        let none = |(axis, extent): (usize, &Extent<'_>)| {
            *extent == Extent::Fixed(0) && (axis > 0 || extents.len() == 1)
        };
        if extents.iter().enumerate().any(none) {
            let fixed: Vec<usize> = extents
                .iter()
                .map(|extent| match extent {
                    Extent::Fixed(fixed) => *fixed,
                    Extent::Free(_) => 1,
                })
                .collect();
            crate::model::constant::elements_of(&fixed)?;
            let dims: Vec<Dim> = fixed.iter().map(|&extent| Dim::Fixed(extent)).collect();
            self.graph.typed_input(input.name, kind.dtype(), &dims)?;
            self.names.insert(input.name.to_owned());
            let empty = Constant::Integers(Integers::new(fixed, Vec::new()));
            return self.insert(input.name, Operand::Constant(empty, kind));
        }
        let mut dims = Vec::with_capacity(extents.len());
        for (axis, extent) in extents.iter().enumerate() {
            let own = format!("{}.{axis}", input.name);
            let given = options.dimensions.get(&own).copied();
            let free = match extent {
                Extent::Fixed(0) => "",
                Extent::Fixed(fixed) if given.is_none_or(|given| given == *fixed) => {
                    wanted.insert(own);
                    dims.push(Dim::Fixed(*fixed));
                    continue;
                }
                Extent::Fixed(fixed) => {
                    return refused!("found {given:?} for axis {axis}, wanted the {fixed} of the file");
                }
                Extent::Free(name) => *name,
            };
            let by_name = (!free.is_empty()).then(|| options.dimensions.get(free).copied()).flatten();
            let same = named.get(free).copied();
            let default = (axis == 0).then_some(1);
            let extent = given.or(by_name).or(same).or(default).ok_or_else(|| {
                let key = if free.is_empty() { &own } else { free };
                let reason =
                    format!("found no extent of axis {axis}, which the file leaves open, wanted one");
                Reason::from(reason).hinted(Some(of_dimension(key)))
            })?;
            if !free.is_empty() {
                named.insert(free, extent);
                wanted.insert(free.to_owned());
            }
            wanted.insert(own);
            dims.push(Dim::Fixed(extent));
        }
        let value = self.graph.typed_input(input.name, kind.dtype(), &dims)?;
        self.names.insert(input.name.to_owned());
        self.insert(input.name, Operand::Value(Mapped::plain(value, dims.len(), kind)))
    }

    /// Marks the outputs, each in the order of its axes and under its name.
    pub(super) fn outputs(&mut self, network: &'a Network<'a>) -> Result<(), Reason> {
        if network.outputs.is_empty() {
            return refused!("found no outputs, wanted at least one");
        }
        for output in &network.outputs {
            let name = output.name;
            self.output(name).map_err(|reason| reason.behind(format_args!("output {name:?}: ")))?;
        }
        Ok(())
    }

    fn output(&mut self, name: &'a str) -> Result<(), Reason> {
        self.current = name.to_owned();
        let slot = self.find(name)?;
        let mapped = self.mapped_slot(slot, Some(name))?;
        let mapped = self.typed(mapped)?;
        let own = mapped.value;
        let mut value = self.logical(&mapped)?;
        let is_constant = self.graph.tensor(value)?.is_some();
        let other =
            self.graph.inputs().contains(&value) || self.graph.outputs().contains(&value) || is_constant;
        if other {
            // What another output is already, or what no node writes.
            let target: Vec<Dim> =
                self.graph.dims(value)?.extents().iter().map(|&extent| extent.into()).collect();
            let free = if self.names.contains(name) {
                self.unique(&format!("{name}/output"))?
            } else {
                name.to_owned()
            };
            value = match is_constant {
                true if mapped.kind.is_wide() => {
                    let terms = [value.into(), 0.into()];
                    self.graph.elementwise(&free, crate::ops::elementwise::Function::Add, &terms)
                }
                true => {
                    let terms = [value.into(), 1.0.into()];
                    self.graph.elementwise(&free, crate::ops::elementwise::Function::Mul, &terms)
                }
                false => self.graph.reshape(&free, value, &target),
            }?;
        }
        if self.graph.name(value)? != name {
            if own != value
                && self.graph.name(own).is_ok_and(|own| own == name)
                && !self.graph.inputs().contains(&own)
            {
                self.graph.rename(own, &format!("{name}/stored"))?;
            }
            self.graph.rename(value, name)?;
        }
        self.graph.retype(value, mapped.kind.dtype())?;
        self.graph.output(value).map_err(Reason::from)
    }
}
