//! Inputs and outputs of the network.

use super::LoadOptions;
use super::constant::{Constant, Integers, whole};
use super::import::Import;
use super::names;
use super::schema::Model;
use super::slots::{Input, Slot};
use super::tensors::{Extent, Steps};
use crate::dims::Dim;
use crate::graph::Value;
use crate::host::HostTensor;
use crate::model::build::Rounding;
use crate::model::check_outputs;
use crate::model::reason::Reason;
use crate::sorted;
use std::collections::HashSet;

/// The name of a leading extent that the file leaves open.
const BATCH: &str = "batch";

/// The most inputs or outputs of a network; adding one to a graph looks at those before it.
pub(super) const MAX_ENDS: usize = 4096;

impl<'a> Import<'a> {
    /// Gives the inputs and outputs the names of the first signature of the network.
    pub(super) fn name_ends(&mut self, model: &Model<'a>) -> Result<(), Reason> {
        let signatures = model.signatures().into_iter().flat_map(|signatures| signatures.iter());
        let Some(signature) =
            signatures.into_iter().find(|signature| signature.subgraph() as usize == self.main)
        else {
            return Ok(());
        };
        for names in [signature.inputs(), signature.outputs()].into_iter().flatten() {
            for entry in names.iter().take(MAX_ENDS) {
                let (tensor, name) = (entry.tensor() as usize, entry.name().unwrap_or(""));
                self.build.budget.spend(name.len() + 8)?;
                if !name.is_empty()
                    && tensor < self.tensors.len()
                    && !self.signature.contains_key(&tensor)
                    && self.build.names.insert(name.to_owned())
                {
                    self.frame.signature.insert(tensor, name.to_owned());
                }
            }
        }
        Ok(())
    }

    pub(super) fn inputs(&mut self, inputs: &[i32], options: &LoadOptions) -> Result<(), Reason> {
        let mut wanted: HashSet<String> = HashSet::new();
        let mut names = Vec::with_capacity(inputs.len());
        for &input in inputs {
            let name = self.input_end(input, options, &mut wanted);
            names.push(name.map_err(|message| format!("input {message}"))?);
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
            let constant =
                constant.map_err(|reason| format!("{}: {reason}", self.tensors.describe(position)))?;
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
                        format!(
                            "{}: found no extent of axis {axis}, which the file leaves open, wanted one \
                             in the load options for dimension {key:?}",
                            self.tensors.describe(position)
                        )
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
        if self.integers
            && !dims.is_empty()
            && let Some(grid) = self.grid(position)?
        {
            let part = self.part_name(&name, "bytes")?;
            let bytes = self.named(&part).bytes_made("", value, grid)?;
            self.frame.bytes.insert(position, bytes);
            self.set(position, Slot::Bytes);
            self.frame.signature.insert(position, format!("{name}/rounded"));
            return Ok(name);
        }
        let value = match self.tensors.steps(position)? {
            Some(steps) => {
                let part = self.part_name(&name, "rounded")?;
                self.rounded(&part, value, steps, Rounding::Even)?
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

    /// Leaves of the graph's outputs those that the options name.
    pub(super) fn choose_outputs(&mut self, options: &LoadOptions) -> Result<(), Reason> {
        let graph = &mut self.build.graph;
        let named = graph.outputs().iter().map(|&output| Ok((output, graph.name(output)?.to_owned())));
        let named: Vec<(Value, String)> = named.collect::<crate::error::Result<_>>()?;
        check_outputs(options, named.iter().map(|(_, name)| name.as_str()))?;
        let chosen = named.into_iter().filter(|(_, name)| options.outputs.contains(name));
        graph.keep_outputs(chosen.map(|(output, _)| output).collect());
        Ok(())
    }

    pub(super) fn output(&mut self, index: i32) -> Result<(), Reason> {
        let position = self.tensors.position(index)?;
        let mut value = match self.resolved(position)? {
            Input::Value(value) => value,
            Input::Constant(_) => {
                let place = self.tensors.describe(position);
                return refused!("{place}: found a constant, wanted a value computed at each run");
            }
        };
        // An input, or what another output is already under its own name.
        let named = self.build.graph.name(value).unwrap_or("").to_owned();
        let other = self.build.graph.inputs().contains(&value) || self.build.graph.outputs().contains(&value);
        let renamed = self.renamed.contains(&position);
        let twice = self.build.graph.outputs().contains(&value);
        if twice || (other || renamed) && named != self.tensors.name(position) {
            let name = self.unique_name(position)?;
            let dims = self.dims(value)?;
            let mut target: Vec<Dim> = dims.extents().iter().map(|&extent| Dim::Fixed(extent)).collect();
            if let Some(leading) = target.first_mut() {
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
