//! The units of a network: what runs as one step.

use super::def_use::Uses;
use super::step::TOGETHER;
use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::graph::{Graph, Node, TensorType, Value};
use crate::host::HostTensor;
use crate::ops::operator::{Argument, Lowered, Operator};
use crate::ops::{Op, Operands, Purpose, Role};
use crate::sorted;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// What an operand of a unit is given.
#[derive(Debug, Clone)]
pub(crate) enum Input {
    /// A value that is given or computed at each run.
    Value(Value),
    /// A tensor that does not change from run to run, with the value of the graph that it is, if it is one.
    Constant(HostTensor, Option<Value>),
}

impl Input {
    /// The value, if it is one of a run.
    pub(crate) fn value(&self) -> Option<Value> {
        match self {
            Input::Value(value) => Some(*value),
            Input::Constant(..) => None,
        }
    }
}

/// How the op of a unit is made.
#[derive(Debug, Clone)]
enum Compute {
    /// A node's.
    Node { operator: Arc<dyn Operator>, arguments: Vec<Argument> },
    /// Several units' results, one behind the other along the channels, each from a multiple of so many on.
    Stack { parts: Vec<Unit>, multiple: usize },
}

/// What runs as one step: a node, or several stacked ones.
#[derive(Debug, Clone)]
pub(crate) struct Unit {
    /// The name of its node, or of its nodes.
    pub(crate) name: String,
    compute: Compute,
    /// What it reads.
    pub(crate) inputs: Vec<(Operand, Input)>,
    /// What it writes: a value for each of the op's outputs, or of a stack each part's value.
    pub(crate) outputs: Vec<Value>,
    /// What it computes in, if that is not what is asked for.
    pub(crate) precision: Option<Assigned>,
    /// Why the CPU computes it in a program of a device, if it does.
    pub(crate) host: Option<String>,
}

/// The precision of a unit of its own.
#[derive(Debug, Clone)]
pub(crate) struct Assigned {
    pub(crate) precision: Precision,
    /// Why.
    pub(crate) why: String,
}

impl Unit {
    /// A stack of `parts`, which read one input; each begins at a channel that is a multiple of `multiple`.
    pub(super) fn stacked(parts: Vec<Unit>, inputs: Vec<(Operand, Input)>, multiple: usize) -> Unit {
        let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
        Unit {
            name: names.join(TOGETHER),
            inputs,
            outputs: parts.iter().flat_map(|part| part.outputs.iter().copied()).collect(),
            compute: Compute::Stack { parts, multiple },
            precision: None,
            host: None,
        }
    }

    /// What it computes, if it is one node.
    pub(super) fn operator(&self) -> Option<&dyn Operator> {
        match &self.compute {
            Compute::Node { operator, .. } => Some(&**operator),
            _ => None,
        }
    }

    /// What the unit computes, if it is one node, shared so that another unit can be made of it.
    pub(super) fn shared_operator(&self) -> Option<Arc<dyn Operator>> {
        match &self.compute {
            Compute::Node { operator, .. } => Some(Arc::clone(operator)),
            _ => None,
        }
    }

    /// One node: its inputs with their dimensions.
    pub(super) fn of_node(
        name: String,
        operator: Arc<dyn Operator>,
        inputs: Vec<(Operand, Input, Dims)>,
        outputs: Vec<Value>,
    ) -> Unit {
        let argument = |(operand, input, dims): &(Operand, Input, Dims)| {
            // What a pass made is of f32; a value of the graph has its own type (`Unit::op`).
            let Input::Constant(tensor, _) = input else {
                return Argument { operand: *operand, dims: *dims, dtype: DType::F32 };
            };
            Argument { operand: *operand, dims: *dims, dtype: tensor.dtype() }
        };
        Unit {
            name,
            compute: Compute::Node { operator, arguments: inputs.iter().map(argument).collect() },
            inputs: inputs.into_iter().map(|(operand, input, _)| (operand, input)).collect(),
            outputs,
            precision: None,
            host: None,
        }
    }

    /// One node, whose inputs have these dimensions and types.
    pub(super) fn of_arguments(
        name: String,
        operator: Arc<dyn Operator>,
        (inputs, arguments): (Vec<(Operand, Input)>, Vec<Argument>),
        outputs: Vec<Value>,
    ) -> Unit {
        let compute = Compute::Node { operator, arguments };
        Unit { name, compute, inputs, outputs, precision: None, host: None }
    }

    /// The inputs of a node with their dimensions; none of what is more than a node.
    pub(super) fn given(&self) -> Vec<(Operand, Input, Dims)> {
        let Compute::Node { arguments, .. } = &self.compute else { return Vec::new() };
        let dims = |operand: Operand| arguments.iter().find(|argument| argument.operand == operand);
        let given = self.inputs.iter();
        given.filter_map(|(operand, input)| Some((*operand, input.clone(), dims(*operand)?.dims))).collect()
    }

    /// The unit with another operator, which reads `value` of `dims` as `operand`; `None` if it is no single node with that operand.
    pub(super) fn instead(
        &self,
        operator: Arc<dyn Operator>,
        (operand, value, dims): (Operand, Value, Dims),
    ) -> Option<Unit> {
        let Compute::Node { arguments, .. } = &self.compute else { return None };
        let (mut arguments, mut inputs) = (arguments.clone(), self.inputs.clone());
        arguments.iter_mut().find(|argument| argument.operand == operand)?.dims = dims;
        inputs.iter_mut().find(|(own, _)| *own == operand)?.1 = Input::Value(value);
        Some(Unit { compute: Compute::Node { operator, arguments }, inputs, ..self.clone() })
    }

    /// Its op with its concrete shapes.
    pub(crate) fn op(&self, graph: &Graph, precision: Precision) -> Result<Arc<dyn Op>> {
        self.op_of(graph, self.precision.as_ref().map_or(precision, |own| own.precision))
    }

    /// The op of the unit with its concrete shapes, in `precision` and not in the unit's own.
    pub(super) fn op_of(&self, graph: &Graph, precision: Precision) -> Result<Arc<dyn Op>> {
        let broken = || Error::Internal(format!("{:?} cannot be one in {precision}", self.name));
        match &self.compute {
            Compute::Node { operator, arguments } => {
                let typed = |argument: &Argument| {
                    let value = self.input(argument.operand).ok().and_then(Input::value);
                    let dtype = value.and_then(|value| graph.dtype(value)).unwrap_or(argument.dtype);
                    Argument { dtype, ..*argument }
                };
                let arguments: Vec<Argument> = arguments.iter().map(typed).collect();
                match graph.lower(&**operator, &arguments, precision)? {
                    Lowered::Op(op) => Ok(op),
                    Lowered::View(_) => Err(Error::Internal(format!("a view, {:?}, as a step", self.name))),
                }
            }
            Compute::Stack { parts, multiple } => {
                let ops = parts.iter().map(|part| part.op(graph, precision)).collect::<Result<Vec<_>>>()?;
                let ops: Vec<&dyn Op> = ops.iter().map(|op| &**op).collect();
                ops.first().and_then(|first| first.stack(&ops, *multiple)).ok_or_else(broken)
            }
        }
    }

    /// The parts of a stack, in the order of its outputs; none of another unit.
    pub(crate) fn parts(&self) -> &[Unit] {
        match &self.compute {
            Compute::Stack { parts, .. } => parts,
            _ => &[],
        }
    }

    /// The multiple of channels that each part of a stack begins at: 1 where the parts lie side by side.
    pub(crate) fn multiple(&self) -> usize {
        match &self.compute {
            Compute::Stack { multiple, .. } => *multiple,
            _ => 1,
        }
    }

    /// The values of a run that it reads.
    pub(crate) fn reads(&self) -> impl Iterator<Item = Value> + '_ {
        self.inputs.iter().filter_map(|(_, input)| input.value())
    }

    /// What `operand` is given.
    pub(crate) fn input(&self, operand: Operand) -> Result<&Input> {
        let found = self.inputs.iter().find(|(own, _)| *own == operand).map(|(_, input)| input);
        found.ok_or_else(|| Error::Internal(format!("{:?} has no {}", self.name, operand.name())))
    }

    /// The elements of its constants of role [`Role::Constant`], which its kernel is made with.
    ///
    /// # Errors
    /// If there is no memory for their words.
    pub(crate) fn constants(&self, op: &dyn Op) -> Result<Operands<'_>> {
        let infos = op.operands();
        let packed = |operand: Operand| {
            infos.iter().any(|info| info.operand == operand && info.role == Role::Constant)
        };
        let constants = self.inputs.iter().filter_map(|(operand, input)| match input {
            Input::Constant(tensor, _) if packed(*operand) => {
                Some(tensor.words().map(|words| (*operand, words)))
            }
            _ => None,
        });
        Ok(sorted::map(constants.collect::<Result<Vec<_>>>()?))
    }
}

/// A value that shows elements of another one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Alias {
    /// The value that holds the elements: no alias itself.
    pub(crate) of: Value,
    /// Its first element there.
    pub(crate) offset: usize,
}

/// The units of a graph in order of execution, and what needs none.
#[derive(Debug)]
pub(crate) struct Network<'a> {
    pub(crate) graph: &'a Graph,
    units: Vec<Unit>,
    /// Who writes and reads what, once that is asked for; none after the units changed.
    uses: OnceLock<Uses>,
    pub(super) aliases: HashMap<Value, Alias>,
    /// Constants of the graph, and what nodes make of them alone.
    pub(super) constants: HashMap<Value, HostTensor>,
    /// The types of values that the graph has not (`network_values`).
    pub(super) own: Vec<TensorType>,
    /// Whether units may change states instead of computing what they become (`states`).
    pub(super) changes_states: bool,
}

impl<'a> Network<'a> {
    /// One unit for each node of `graph` that has kernels.
    pub(crate) fn of(graph: &'a Graph) -> Result<Self> {
        let (units, uses, own) = (Vec::new(), OnceLock::new(), Vec::new());
        let (aliases, constants) = (HashMap::new(), HashMap::new());
        let mut network = Network { graph, units, uses, aliases, constants, own, changes_states: true };
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
        let mut uses = self.uses.take().unwrap_or_else(|| Uses::of(self));
        for place in [first, reader] {
            uses.remove(self, place, &self.units[place]);
        }
        uses.add(self, reader, &unit);
        self.units[reader] = unit;
        self.units[first] = Unit::stacked(Vec::new(), Vec::new(), 1);
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
        self.uses.get_or_init(|| Uses::of(self))
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
                self.units.push(Unit {
                    name: node.name().to_owned(),
                    compute: Compute::Node { operator: Arc::clone(&node.operator), arguments },
                    inputs,
                    outputs: node.outputs().to_vec(),
                    precision: None,
                    host: None,
                });
                Ok(())
            }
        }
    }

    /// Has `value`, which no unit writes any more, show the elements of `of`, as does all that showed its own.
    pub(super) fn show(&mut self, value: Value, of: Value) {
        let Alias { of, offset } = self.resolve(of);
        let shown = self.aliases.values_mut().filter(|alias| alias.of == value);
        shown.for_each(|alias| *alias = Alias { of, offset: offset + alias.offset });
        self.aliases.insert(value, Alias { of, offset });
        if let Some(uses) = self.uses.get_mut() {
            uses.show(value, of);
        }
    }

    /// Where the elements of `value` are.
    pub(crate) fn resolve(&self, value: Value) -> Alias {
        self.aliases.get(&value).copied().unwrap_or(Alias { of: value, offset: 0 })
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
