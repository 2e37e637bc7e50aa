//! Inputs and outputs of the network.

use super::LoadOptions;
use super::constant::{Constant, Integers, whole};
use super::frame::OutputName;
use super::import::Import;
use super::names;
use super::schema::{Model, OperatorCode};
use super::slots::{Input, Slot};
use super::tensors::{Extent, Steps};
use crate::dims::Dim;
use crate::host::HostTensor;
use crate::model::check_outputs;
use crate::model::input_dependence::of_dimension;
use crate::model::reason::Reason;
use crate::ops::quantization::Rounding;
use crate::sorted;
use std::collections::{HashMap, HashSet};

/// The name of a leading extent that the file leaves open.
const BATCH: &str = "batch";

/// The most inputs or outputs of a network; adding one to a graph looks at those before it.
pub(super) const MAX_ENDS: usize = 4096;

impl<'a> Import<'a> {
    /// Gives the inputs and outputs their names before anything of the network takes one: those of the first signature of the
    /// network, or else of the tensors.
    pub(super) fn name_ends(
        &mut self,
        model: &Model<'a>,
        inputs: &[i32],
        outputs: &[i32],
    ) -> Result<(), Reason> {
        let mut second = self.signature_names(model)?;
        let mut named = HashSet::new();
        for &input in inputs {
            // One that is not there is refused where it is read, as an output is.
            if let Ok(position) = self.tensors.position(input)
                && named.insert(position)
            {
                let name = self.unique_name(position)?;
                self.frame.signature.insert(position, name);
            }
        }
        for &output in outputs {
            let Ok(position) = self.tensors.position(output) else {
                self.ends.push(OutputName { name: String::new(), again: false });
                continue;
            };
            let again = !named.insert(position);
            let first = if again { self.frame.signature.remove(&position) } else { None };
            let name = match again.then(|| second.remove(&position)).flatten() {
                Some(name) => name,
                None => self.unique_name(position)?,
            };
            let kept = first.unwrap_or_else(|| name.clone());
            self.frame.signature.insert(position, kept);
            self.ends.push(OutputName { name, again });
        }
        Ok(())
    }

    /// The names of the first signature of the network. The result are second names of tensors that are inputs and outputs.
    fn signature_names(&mut self, model: &Model<'a>) -> Result<HashMap<usize, String>, Reason> {
        let mut second = HashMap::new();
        let signatures = model.signatures().into_iter().flat_map(|signatures| signatures.iter());
        let Some(signature) =
            signatures.into_iter().find(|signature| signature.subgraph() as usize == self.main)
        else {
            return Ok(second);
        };
        for names in [signature.inputs(), signature.outputs()].into_iter().flatten() {
            for entry in names.iter().take(MAX_ENDS) {
                let (tensor, name) = (entry.tensor() as usize, entry.name().unwrap_or(""));
                self.build.budget.spend(name.len() + 8)?;
                if !name.is_empty() && tensor < self.tensors.len() && self.build.names.insert(name.to_owned())
                {
                    let names = match self.signature.contains_key(&tensor) {
                        true => &mut second,
                        false => &mut self.frame.signature,
                    };
                    names.entry(tensor).or_insert_with(|| name.to_owned());
                }
            }
        }
        Ok(second)
    }

    /// The places of the outputs that the options choose, in the order of the file. What the others alone need is not read.
    pub(super) fn chosen(&mut self, options: &LoadOptions, outputs: &[i32]) -> Result<Vec<usize>, Reason> {
        if options.outputs.is_empty() {
            return Ok((0..outputs.len()).collect());
        }
        check_outputs(options, self.ends.iter().map(|end| end.name.as_str()))?;
        let is_chosen =
            |&place: &usize| self.ends.get(place).is_some_and(|end| options.outputs.contains(&end.name));
        let chosen: Vec<usize> = (0..outputs.len()).filter(is_chosen).collect();
        let mut wanted: HashSet<i32> =
            chosen.iter().filter_map(|&place| outputs.get(place)).copied().collect();
        let is_variable = |code: OperatorCode<'_>| {
            let code = code.builtin_code().max(i32::from(code.deprecated_builtin_code()));
            names::operator(code) == "VAR_HANDLE"
        };
        let has_variables = self.codes.iter().any(is_variable);
        for index in (0..self.operator_count()).rev() {
            let op = self.op(index)?;
            // One without outputs writes a variable, and so may the networks that one calls.
            let table = &op.table;
            let calls =
                table.while_loop().is_some() || table.branch().is_some() || table.composite().is_some();
            let writes = op.outputs.is_empty() || calls && has_variables;
            if writes || op.outputs.iter().any(|output| wanted.contains(output)) {
                wanted.extend(op.inputs);
            } else {
                self.frame.unneeded.insert(index);
            }
        }
        Ok(chosen)
    }

    pub(super) fn inputs(&mut self, inputs: &[i32], options: &LoadOptions) -> Result<(), Reason> {
        let mut wanted: HashSet<String> = HashSet::new();
        let mut names = Vec::with_capacity(inputs.len());
        for &input in inputs {
            let name = self.input_end(input, options, &mut wanted);
            names.push(name.map_err(|reason| reason.behind("input "))?);
        }
        let given = options.values.keys().map(|name| ("a value", name));
        let given = given.chain(options.inputs.iter().map(|name| ("no value", name)));
        if let Some((what, name)) = given.into_iter().find(|(_, name)| !names.contains(name)) {
            return refused!("found {what} for input {name:?}, wanted one of {names:?}");
        }
        if let Some(name) = options.dimensions.keys().find(|name| !wanted.contains(*name)) {
            let mut wanted: Vec<_> = wanted.into_iter().collect();
            sorted::sort(&mut wanted, Ord::cmp);
            return refused!("found an extent for dimension {name:?}, wanted one of {wanted:?}");
        }
        Ok(())
    }

    /// Makes a tensor an input of the graph, or what is given for it. The result is its name.
    fn input_end(
        &mut self,
        index: i32,
        options: &LoadOptions,
        wanted: &mut HashSet<String>,
    ) -> Result<String, Reason> {
        let position = self.tensors.position(index)?;
        if self.tensors.data(position)?.is_some() {
            return refused!("{}: found a constant, wanted none", self.tensors.describe(position));
        }
        self.check_unwritten(position)?;
        let name = self.unique_name(position)?;
        if let Some(tensor) = options.values.get(&name) {
            let constant = self.given(position, tensor);
            let constant = constant
                .map_err(|reason| reason.behind(format_args!("{}: ", self.tensors.describe(position))))?;
            self.set(position, Slot::Constant(constant));
            return Ok(name);
        }
        let mut dims = Vec::new();
        for (axis, extent) in self.tensors.declared(position)?.into_iter().enumerate() {
            dims.push(match (axis, extent) {
                (_, Extent::Fixed(extent)) => Dim::Fixed(extent),
                (0, Extent::Free(_)) if options.dimensions.contains_key(&format!("{name}.0")) => {
                    let key = format!("{name}.0");
                    let extent = options.dimensions.get(&key).copied().unwrap_or(1);
                    wanted.insert(key);
                    Dim::Fixed(extent)
                }
                (0, Extent::Free(extent)) => {
                    wanted.insert(BATCH.to_owned());
                    if !self.build.graph.dimensions().contains_key(BATCH) {
                        let extent = options.dimensions.get(BATCH).copied().unwrap_or(extent.max(1));
                        self.build.graph.dimension(BATCH, extent)?;
                    }
                    Dim::Named(BATCH.to_owned())
                }
                (_, Extent::Free(extent)) => {
                    let key = format!("{name}.{axis}");
                    let given = options.dimensions.get(&key).copied();
                    let extent = given.or((extent > 1).then_some(extent)).ok_or_else(|| {
                        let reason =
                            format!("found no extent of axis {axis}, which the file leaves open, wanted one");
                        let reason = Reason::from(reason)
                            .behind(format_args!("{}: ", self.tensors.describe(position)));
                        reason.hinted(Some(of_dimension(&key)))
                    })?;
                    wanted.insert(key);
                    Dim::Fixed(extent)
                }
            });
        }
        let dtype = self.kind_at(position)?.dtype();
        let value = self
            .build
            .graph
            .typed_input(&name, dtype, &dims)
            .map_err(|error| format!("{}: {error}", self.tensors.describe(position)))?;
        let value = match self.tensors.steps(position)? {
            Some(steps) => {
                let part = self.part_name(&name, "rounded")?;
                self.rounded(&part, value, steps, Rounding::EvenOfReciprocal)?
            }
            None => value,
        };
        self.set(position, Slot::Value(value));
        Ok(name)
    }

    /// What is given for an input, as a constant of its type.
    fn given(&mut self, position: usize, tensor: &HostTensor) -> Result<Constant, Reason> {
        let (found, declared) = (tensor.dims(), self.tensors.declared(position)?);
        let fits = declared.len() == found.rank()
            && declared.iter().zip(found.extents()).all(|(extent, own)| match extent {
                Extent::Fixed(extent) => extent == own,
                Extent::Free(_) => true,
            });
        if !fits {
            let extents = declared.iter().map(|extent| match extent {
                Extent::Fixed(extent) => extent.to_string(),
                Extent::Free(_) => "?".to_owned(),
            });
            let wanted = if declared.is_empty() {
                "one number".to_owned()
            } else {
                extents.collect::<Vec<_>>().join("x")
            };
            return refused!("found a value of {found}, wanted {wanted}");
        }
        self.build.budget.grow(found.elements().saturating_mul(64));
        let values = tensor.to_nhwc();
        if let Some(Steps { scale, range: [low, high], .. }) = self.tensors.steps(position)? {
            let stepped = |&value: &f32| {
                (value * (1.0 / scale)).round_ties_even().clamp(low as f32, high as f32) * scale
            };
            return Ok(Constant::Floats(HostTensor::new(
                found,
                values.iter().map(stepped).collect::<Vec<_>>(),
            )?));
        }
        let kind = self.tensors.tensor(position)?.element_type();
        if names::is_float(kind) {
            return Ok(Constant::Floats(HostTensor::new(found, values.into_owned())?));
        }
        let kind = names::element_type(kind);
        let whole =
            whole(tensor).ok_or_else(|| format!("found numbers that are not whole, wanted {kind}"))?;
        Ok(Constant::Integers(Integers::new(found.extents().to_vec(), whole)))
    }

    /// Makes the tensor of an output one of the graph.
    pub(super) fn output(&mut self, index: i32, place: usize) -> Result<(), Reason> {
        let position = self.tensors.position(index)?;
        let OutputName { name, again } = self.ends.get(place).cloned().unwrap_or_default();
        let mut value = match self.resolved(position)? {
            Input::Value(value) => value,
            // What operators write whose inputs have no elements is known.
            Input::Constant(constant) if matches!(self.slots.get(position), Some(Slot::Constant(_))) => {
                let kind = self.kind_at(position)?;
                let tensor = self.build.tensor(&constant, kind)?;
                self.build.graph.constant(&name, tensor)
            }
            Input::Constant(_) => {
                let place = self.tensors.describe(position);
                return refused!("{place}: found a constant, wanted a value computed at each run");
            }
        };
        let named = self.build.graph.name(value).unwrap_or("").to_owned();
        // Nothing was computed under the output's own name: it is an input, another output, or what is passed on.
        let passed_on = again || self.frame.signature.remove(&position).is_some();
        let twice = self.build.graph.outputs().contains(&value) || self.build.graph.inputs().contains(&value);
        if named != name && (passed_on || twice) {
            let name = if passed_on { name } else { self.unique_name(position)? };
            let dims = self.dims(value)?;
            let mut target: Vec<Dim> = dims.extents().iter().map(|&extent| Dim::Fixed(extent)).collect();
            if let Some(leading) = target.first_mut().filter(|_| dims.elements() > 0) {
                *leading = Dim::Rest;
            }
            value = self.build.graph.reshape(&name, value, &target)?;
        }
        let dtype = self.kind_at(position)?.dtype();
        let own = self.build.graph.tensor_type(value)?.dtype;
        if own.word() != dtype.word() {
            // Integers that an operator computed of floats.
            let name = self.build.graph.name(value)?.to_owned();
            self.build.graph.rename(value, &format!("{name}/floats"))?;
            value = self.build.graph.cast(&name, value, dtype)?;
        }
        self.build.graph.retype(value, dtype)?;
        self.build.graph.output(value).map_err(Reason::from)
    }
}
