//! Nodes that read or write values of no elements. No unit does: such a value is a constant without elements.

use super::network::Network;
use super::unit::Input;
use crate::dims::Dims;
use crate::dtype::DType;
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::graph::{Graph, Node, Origin, TensorType};
use crate::host::HostTensor;
use crate::ops::operator::{Argument, View, WithoutElements};
use crate::word;

/// A tensor all of whose elements are `number`.
fn all(dims: Dims, dtype: DType, number: f32) -> Result<HostTensor> {
    let numbers = HostTensor::new(dims, vec![number; dims.elements()])?;
    let words = word::of_tensor(&numbers, dtype.word(), dtype, "a value of one number")?;
    word::to_tensor(dims, dtype, dtype.word(), &words)
}

/// The arguments of a unit, and what it reads.
type Read = (Vec<Argument>, Vec<(Operand, Input)>);

impl Network<'_> {
    /// Takes the graph's constants, and makes constants of its values that have no elements.
    ///
    /// # Errors
    /// If a state has none: there is nothing to keep.
    pub(super) fn add_known_values(&mut self) -> Result<()> {
        for state in self.graph.states() {
            let (name, dims) = (self.graph.name(state.value)?, self.graph.dims(state.value)?);
            if dims.elements() == 0 {
                return Err(Error::input(
                    format!("state {name:?}"),
                    dims.to_string(),
                    "at least one element",
                ));
            }
        }
        for (value, info) in self.graph.all_values() {
            let dtype = self.graph.dtype(value).unwrap_or_default();
            let known = match &info.origin {
                Origin::Constant(tensor) => tensor.clone(),
                _ if info.dims.elements() == 0 => word::to_tensor(info.dims, dtype, dtype.word(), &[])?,
                _ => continue,
            };
            self.constants.insert(value, known);
        }
        Ok(())
    }

    /// What a node is computed of: of `arguments`, which `inputs` are but for the one of which only the extents are read, those
    /// that its unit reads. None of a node whose results are known, or show an input.
    pub(super) fn computed_of(
        &mut self,
        node: &Node,
        arguments: Vec<Argument>,
        inputs: Vec<(Operand, Input)>,
    ) -> Result<Option<Read>> {
        let types = node.outputs().iter().map(|&value| self.graph.tensor_type(value));
        let types = types.collect::<Result<Vec<TensorType>>>()?;
        if !types.is_empty() && types.iter().all(|of| of.dims.elements() == 0) {
            return Ok(None);
        }
        if let Some(empty) = types.iter().find(|of| of.dims.elements() == 0) {
            let why = format!("a result of {} beside results that have elements", empty.dims);
            return Err(Error::unsupported(node.operator().name(), why));
        }
        let results: Vec<Dims> = types.iter().map(|of| of.dims).collect();
        let Some(way) = self.graph.without_elements(node.operator(), &arguments, &results)? else {
            return Ok(Some((arguments, inputs)));
        };
        let first = types.first().zip(node.outputs().first());
        let (of, output) = first.ok_or_else(|| Error::Internal("a node without results".to_owned()))?;
        match way {
            WithoutElements::Filled(number) => {
                let filled = Graph::filled(&arguments)?;
                let input = |(operand, input): (Operand, Input)| {
                    let argument = arguments.iter().find(|own| own.operand == operand);
                    let shown = filled.iter().find(|own| own.operand == operand);
                    match argument.zip(shown) {
                        Some((own, filled)) if own.dims != filled.dims => {
                            let tensor = all(filled.dims, filled.dtype, number)?;
                            let value = self.add_constant(tensor.clone());
                            Ok((operand, Input::Constant(tensor, Some(value))))
                        }
                        _ => Ok((operand, input)),
                    }
                };
                let inputs = inputs.into_iter().map(input).collect::<Result<Vec<_>>>()?;
                Ok(Some((filled, inputs)))
            }
            WithoutElements::LeftOut => {
                let left = Graph::left(&arguments);
                let input = |(before, now): &(Operand, Argument)| {
                    let found = inputs.iter().find(|(operand, _)| operand == before);
                    let missing = || Error::Internal(format!("a node without {}", before.name()));
                    Ok((now.operand, found.ok_or_else(missing)?.1.clone()))
                };
                let inputs = left.iter().map(input).collect::<Result<Vec<_>>>()?;
                Ok(Some((left.into_iter().map(|(_, now)| now).collect(), inputs)))
            }
            WithoutElements::Shown(operand) => {
                let shown: Vec<(Operand, Input)> =
                    inputs.into_iter().filter(|(own, _)| *own == operand).collect();
                self.view(node, &shown, View { dims: of.dims, offset: 0 })?;
                Ok(None)
            }
            WithoutElements::Number(number) => {
                self.constants.insert(*output, all(of.dims, of.dtype, number)?);
                Ok(None)
            }
        }
    }
}
