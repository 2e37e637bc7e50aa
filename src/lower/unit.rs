//! The units of a network: what runs as one step.

use super::step::TOGETHER;
use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::graph::{Graph, Node, Value};
use crate::host::HostTensor;
use crate::ops::operator::{Argument, Lowered, Operator};
use crate::ops::{Op, Operands, Role};
use crate::sorted;
use std::sync::Arc;

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
    /// The unit of a node with kernels.
    pub(super) fn lowered(node: &Node, arguments: Vec<Argument>, inputs: Vec<(Operand, Input)>) -> Self {
        Unit {
            name: node.name().to_owned(),
            compute: Compute::Node { operator: Arc::clone(&node.operator), arguments },
            inputs,
            outputs: node.outputs().to_vec(),
            precision: None,
            host: None,
        }
    }

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

    /// The unit with another operator of the same inputs and outputs, if it is one node.
    pub(super) fn with_operator(&self, operator: Arc<dyn Operator>) -> Unit {
        let compute = match &self.compute {
            Compute::Node { arguments, .. } => Compute::Node { operator, arguments: arguments.clone() },
            other => other.clone(),
        };
        Unit { compute, ..self.clone() }
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
