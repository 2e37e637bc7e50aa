//! The units of a graph, and what of it needs none.

use super::alias::{Alias, Aliases};
use super::def_use::Uses;
use super::unit::{Input, Unit};
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::graph::{Graph, Node, TensorType, Value};
use crate::host::HostTensor;
use crate::ops::operator::{Lowered, View};
use crate::ops::quantization::Linear;
use crate::ops::{Op, Purpose, Role};
use crate::sorted;
use crate::word;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// The units of a graph in order of execution, and what needs none.
#[derive(Debug)]
pub(crate) struct Network<'a> {
    pub(crate) graph: &'a Graph,
    units: Vec<Unit>,
    /// Who writes and reads what, once that is asked for; none after the units changed.
    uses: OnceLock<Uses>,
    aliases: Aliases,
    /// Constants of the graph, and what nodes make of them alone.
    pub(super) constants: HashMap<Value, HostTensor>,
    /// The types of values that the graph has not (`network_values`).
    pub(super) own: Vec<TensorType>,
    /// Whether units may change states instead of computing what they become (`states`).
    pub(super) changes_states: bool,
    /// Whether each state is stored as halves (`states`); empty where none is.
    pub(super) half_states: Vec<bool>,
}

impl<'a> Network<'a> {
    /// One unit for each node of `graph` that has kernels.
    pub(crate) fn of(graph: &'a Graph) -> Result<Self> {
        let (units, uses, own) = (Vec::new(), OnceLock::new(), Vec::new());
        let (aliases, constants) = (Aliases::default(), HashMap::new());
        let (changes_states, half_states) = (true, Vec::new());
        let mut network =
            Network { graph, units, uses, aliases, constants, own, changes_states, half_states };
        network.add_known_values()?;
        for node in graph.nodes() {
            network.add(node).map_err(|error| error.at_node(node.name()))?;
        }
        Ok(network)
    }

    pub(crate) fn units(&self) -> &[Unit] {
        &self.units
    }

    /// The units, to change what they neither read nor write.
    pub(super) fn units_mut(&mut self) -> &mut [Unit] {
        &mut self.units
    }

    pub(super) fn take_units(&mut self) -> Vec<Unit> {
        self.uses = OnceLock::new();
        std::mem::take(&mut self.units)
    }

    pub(super) fn set_units(&mut self, units: Vec<Unit>) {
        self.uses = OnceLock::new();
        self.units = units;
    }

    /// Puts `unit` in the place of unit `reader`, and nothing in that of unit `first`.
    pub(super) fn merge(&mut self, first: usize, reader: usize, unit: Unit) {
        let mut uses = self.uses.take().unwrap_or_else(|| self.found_uses());
        for place in [first, reader] {
            uses.remove(&self.aliases, place, &self.units[place]);
        }
        uses.add(&self.aliases, reader, &unit);
        self.units[reader] = unit;
        self.units[first] = Unit::stacked(Vec::new(), Vec::new(), 1);
        self.uses = OnceLock::from(uses);
    }

    /// Puts `unit` in the place of unit `place`.
    pub(super) fn replace(&mut self, place: usize, unit: Unit) {
        let mut uses = self.uses.take().unwrap_or_else(|| self.found_uses());
        uses.remove(&self.aliases, place, &self.units[place]);
        uses.add(&self.aliases, place, &unit);
        self.units[place] = unit;
        self.uses = OnceLock::from(uses);
    }

    /// Takes out what [`Network::merge`] left of units.
    pub(super) fn close_gaps(&mut self) {
        if self.units.iter().any(|unit| unit.outputs.is_empty()) {
            self.uses = OnceLock::new();
            self.units.retain(|unit| !unit.outputs.is_empty());
        }
    }

    fn uses(&self) -> &Uses {
        self.uses.get_or_init(|| self.found_uses())
    }

    fn found_uses(&self) -> Uses {
        Uses::of(self.graph, &self.units, &self.aliases)
    }

    /// The unit that writes `value`.
    pub(crate) fn writer(&self, value: Value) -> Option<usize> {
        self.uses().writer(value)
    }

    fn add(&mut self, node: &Node) -> Result<()> {
        let arguments = self.graph.arguments(node.inputs())?;
        let input = |&(operand, value): &(Operand, Value)| {
            let constant = self.constants.get(&value).cloned();
            (operand, constant.map_or(Input::Value(value), |tensor| Input::Constant(tensor, Some(value))))
        };
        let read = node.inputs().iter().filter(|(operand, _)| node.operator().like() != Some(*operand));
        let inputs: Vec<(Operand, Input)> = read.map(input).collect();
        let Some((arguments, inputs)) = self.computed_of(node, arguments, inputs)? else { return Ok(()) };
        match self.graph.lower(node.operator(), &arguments, Precision::F32)? {
            Lowered::View(view) => self.view(node, &inputs, view),
            Lowered::Op(op) => {
                if inputs.iter().all(|(_, input)| input.value().is_none())
                    && op.obstacle(Purpose::Cpu).is_none()
                {
                    return self.fold(node, &*op, &inputs);
                }
                self.units.push(Unit::lowered(node, arguments, inputs));
                Ok(())
            }
        }
    }

    pub(super) fn view(&mut self, node: &Node, inputs: &[(Operand, Input)], view: View) -> Result<()> {
        let (Some((_, input)), &[output]) = (inputs.first(), node.outputs()) else {
            return Err(Error::Internal("a view without an input and an output".to_owned()));
        };
        match input {
            Input::Value(value) => self.aliases.insert(output, *value, view.offset),
            Input::Constant(tensor, _) => {
                let dtype = tensor.dtype();
                let (words, each) = (tensor.words()?, dtype.word().words());
                let shown = words.get(each * view.offset..each * (view.offset + view.dims.elements()));
                let shown = shown.ok_or_else(|| Error::Internal(format!("a view beyond {tensor:?}")))?;
                let tensor = word::to_tensor(view.dims, dtype, dtype.word(), shown)?;
                self.constants.insert(output, tensor);
            }
        }
        Ok(())
    }

    /// Has `value` show the elements of `of` from `offset` on.
    pub(super) fn view_of(&mut self, value: Value, of: Value, offset: usize) {
        self.aliases.insert(value, of, offset);
    }

    /// Computes a node of constants on the CPU, once.
    fn fold(&mut self, node: &Node, op: &dyn Op, inputs: &[(Operand, Input)]) -> Result<()> {
        let constant = |(operand, input): &(Operand, Input)| match input {
            Input::Constant(tensor, _) => Some((*operand, tensor.clone())),
            Input::Value(_) => None,
        };
        let tensors: Vec<(Operand, HostTensor)> = inputs.iter().filter_map(constant).collect();
        let infos = op.operands();
        let role = |operand: Operand| infos.iter().find(|info| info.operand == operand).map(|info| info.role);
        let of = |wanted: Role| tensors.iter().filter(move |(operand, _)| role(*operand) == Some(wanted));
        let constants = of(Role::Constant).map(|(operand, tensor)| Ok((*operand, tensor.words()?)));
        let constants = sorted::map(constants.collect::<Result<Vec<_>>>()?);
        let kernel = op.cpu(&constants)?;
        let words = |(operand, tensor): &(Operand, HostTensor)| Ok((*operand, tensor.clone().into_words()?));
        let given = of(Role::Input).map(words).collect::<Result<Vec<(Operand, Arc<[f32]>)>>>()?;
        let given: Vec<(Operand, &[f32])> =
            given.iter().map(|(operand, values)| (*operand, &**values)).collect();
        let mut written: Vec<(Operand, Vec<f32>)> =
            crate::ops::outputs(op).map(|info| (info.operand, vec![0.0; info.words()])).collect();
        let mut slots: Vec<(Operand, &mut [f32])> =
            written.iter_mut().map(|(operand, values)| (*operand, values.as_mut_slice())).collect();
        kernel.run(&given, &mut slots)?;
        for (&value, (_, words)) in node.outputs().iter().zip(written) {
            let TensorType { dtype, dims } = self.graph.tensor_type(value)?;
            let tensor = word::to_tensor(dims, dtype, dtype.word(), &words)?;
            let tensor = match node.operator.linear() {
                Some(Linear::Dequantize(own)) => tensor.with_scales(vec![own.scale.0], 0),
                _ => tensor,
            };
            self.constants.insert(value, tensor);
        }
        Ok(())
    }

    /// Has `value`, which no unit writes any more, show the elements of `of`, as does all that showed its own.
    pub(super) fn show(&mut self, value: Value, of: Value) {
        let of = self.aliases.show(value, of);
        if let Some(uses) = self.uses.get_mut() {
            uses.show(value, of);
        }
    }

    /// Notes that `of` holds the elements of `value` from `begin` on, which no unit writes any more: views of these show `of` from now
    /// on.
    pub(super) fn show_part(&mut self, value: Value, of: Value, begin: usize) {
        self.uses = OnceLock::new();
        self.aliases.show_part(value, of, begin);
    }

    /// Where the elements of `value` are.
    pub(crate) fn resolve(&self, value: Value) -> Alias {
        self.aliases.resolve(value)
    }

    /// The elements of `value`, if they are the same at each run.
    pub(crate) fn constant(&self, value: Value) -> Option<&HostTensor> {
        self.constants.get(&value)
    }

    /// The units that read `value` or something that shows elements of it.
    pub(crate) fn readers(&self, value: Value) -> impl Iterator<Item = usize> + '_ {
        self.uses().readers(value).iter().copied()
    }

    /// Whether `value`, or something that shows elements of it, is an output of the graph or a state's next
    /// value.
    pub(crate) fn leaves(&self, value: Value) -> bool {
        self.uses().leaves(value)
    }
}
