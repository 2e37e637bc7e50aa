//! A verified file to a graph, operator by operator.

use super::names::{self, builtin};
use super::schema::{Model, Operator, OperatorCode, SubGraph, Tables, at};
use super::tensors::{Budget, Reason, Tensors, indices};
use crate::emit::{Activation, Bits};
use crate::error::{Error, Result};
use crate::graph::{Graph, Value};
use std::collections::HashSet;

/// The most inputs or outputs of a network; adding one to a graph looks at those before it.
const MAX_ENDS: usize = 4096;

const SUPPORTED: &str = "CONV_2D, DEPTHWISE_CONV_2D, DEQUANTIZE of float16 constants, and RELU, RELU6, TANH, \
     LOGISTIC, LEAKY_RELU and HARD_SWISH directly after a convolution";

/// What a tensor of the file stands for so far.
#[derive(Clone, Copy)]
enum Slot {
    /// No operator has written it; it may be a constant of the file.
    Untouched,
    /// A value of the graph.
    Value(Value),
    /// The widened float16 constant at this position.
    Widened(usize),
    /// The sum of a convolution whose activation was fused; nothing else reads it.
    Fused,
}

/// Who reads a tensor.
#[derive(Clone, Copy, Default)]
struct Readers {
    count: usize,
    last: usize,
}

/// A graph in the making.
pub(super) struct Import<'a> {
    pub(super) tensors: Tensors<'a>,
    pub(super) budget: Budget,
    pub(super) graph: Graph,
    operators: Tables<'a, Operator<'a>>,
    codes: Tables<'a, OperatorCode<'a>>,
    slots: Vec<Slot>,
    readers: Vec<Readers>,
    names: HashSet<String>,
    fused: HashSet<usize>,
}

/// An operator with its tensors.
pub(super) struct Op<'a> {
    pub(super) index: usize,
    pub(super) code: i32,
    pub(super) table: Operator<'a>,
    pub(super) inputs: Vec<i32>,
    pub(super) outputs: Vec<i32>,
}

/// Reads the only network of a file of `file_bytes` bytes.
pub(super) fn import(file: &str, model: &Model<'_>, file_bytes: usize) -> Result<Graph> {
    let fail = |message: Reason| Error::Model { file: file.to_owned(), op: None, message };
    let budget = Budget::new(file_bytes);
    let (mut import, outputs) = start(model, budget).map_err(fail)?;
    for index in 0..import.operators.len() {
        if import.fused.contains(&index) {
            continue;
        }
        import.operator(index).map_err(|message| {
            let name = at(import.operators, index)
                .and_then(|operator| import.code(&operator).ok())
                .map_or_else(|| "unknown".to_owned(), |(_, name)| name);
            Error::Model { file: file.to_owned(), op: Some((index, name)), message }
        })?;
    }
    for output in outputs {
        import.output(output).map_err(|message| fail(format!("output {message}")))?;
    }
    Ok(import.graph)
}

fn start<'a>(model: &Model<'a>, budget: Budget) -> Result<(Import<'a>, Vec<i32>), Reason> {
    let networks = model.subgraphs();
    let count = networks.map_or(0, |networks| networks.len());
    let network: SubGraph<'a> = networks
        .filter(|_| count == 1)
        .and_then(|networks| at(networks, 0))
        .ok_or_else(|| format!("found {count} subgraphs, wanted 1"))?;
    let tensors = network.tensors().ok_or("found no tensors, wanted at least an input and an output")?;
    let operators = network.operators().filter(|operators| !operators.is_empty());
    let operators = operators.ok_or("found no operators, wanted at least one")?;
    let codes = model.operator_codes().ok_or("found operators, but no operator codes")?;
    let mut import = Import {
        tensors: Tensors::new(tensors, model.buffers()),
        budget,
        graph: Graph::new(),
        operators,
        codes,
        slots: vec![Slot::Untouched; tensors.len()],
        readers: vec![Readers::default(); tensors.len()],
        names: HashSet::new(),
        fused: HashSet::new(),
    };
    let inputs = import.ends("inputs", network.inputs())?;
    let outputs = import.ends("outputs", network.outputs())?;
    for input in inputs {
        import.input(input).map_err(|message| format!("input {message}"))?;
    }
    import.count_readers(&outputs)?;
    Ok((import, outputs))
}

impl<'a> Import<'a> {
    fn ends(&mut self, what: &str, vector: Option<flatbuffers::Vector<'a, i32>>) -> Result<Vec<i32>, Reason> {
        match vector.map_or(0, |vector| vector.len()) {
            0 => Err(format!("found no {what}, wanted at least one")),
            count if count > MAX_ENDS => Err(format!("found {count} {what}, wanted at most {MAX_ENDS}")),
            _ => indices(vector, &mut self.budget),
        }
    }

    fn input(&mut self, index: i32) -> Result<(), Reason> {
        let position = self.tensors.position(index)?;
        let shape = self.tensors.feature_map(position)?;
        if self.tensors.data(position)?.is_some() {
            return Err(format!("{}: found a constant, wanted none", self.tensors.describe(position)));
        }
        self.check_unwritten(position)?;
        let name = self.unique_name(position)?;
        let value = self.graph.input(&name, shape).map_err(|error| error.to_string())?;
        self.set(position, Slot::Value(value));
        Ok(())
    }

    fn output(&mut self, index: i32) -> Result<(), Reason> {
        let value = self.value(index)?;
        self.graph.output(value).map_err(|error| error.to_string())
    }

    fn count_readers(&mut self, outputs: &[i32]) -> Result<(), Reason> {
        let operators = self.operators;
        for (index, operator) in operators.iter().enumerate() {
            for tensor in indices(operator.inputs(), &mut self.budget)? {
                self.count_reader(tensor, index);
            }
        }
        for &tensor in outputs {
            self.count_reader(tensor, usize::MAX);
        }
        Ok(())
    }

    /// Indices out of range are refused where they are used.
    fn count_reader(&mut self, tensor: i32, reader: usize) {
        if let Some(readers) = usize::try_from(tensor).ok().and_then(|tensor| self.readers.get_mut(tensor)) {
            *readers = Readers { count: readers.count + 1, last: reader };
        }
    }

    fn operator(&mut self, index: usize) -> Result<(), Reason> {
        let op = self.op(index)?;
        match op.code {
            builtin::CONV_2D | builtin::DEPTHWISE_CONV_2D => self.convolution(&op),
            builtin::DEQUANTIZE => self.widen(&op),
            builtin::RELU
            | builtin::RELU6
            | builtin::TANH
            | builtin::LOGISTIC
            | builtin::LEAKY_RELU
            | builtin::HARD_SWISH => Err("is supported only directly after a convolution without a fused \
                 activation, whose output nothing else reads"
                .to_owned()),
            _ => Err(format!("this operator is not supported; supported are {SUPPORTED}")),
        }
    }

    fn op(&mut self, index: usize) -> Result<Op<'a>, Reason> {
        let table = at(self.operators, index)
            .ok_or_else(|| format!("found operator {index} of {}", self.operators.len()))?;
        let (code, _) = self.code(&table)?;
        let inputs = indices(table.inputs(), &mut self.budget)?;
        let outputs = indices(table.outputs(), &mut self.budget)?;
        Ok(Op { index, code, table, inputs, outputs })
    }

    /// The code of an operator and its name for messages.
    fn code(&self, operator: &Operator<'a>) -> Result<(i32, String), Reason> {
        let index = operator.opcode_index();
        let entry = at(self.codes, index as usize).ok_or_else(|| {
            format!("found operator code index {index}, wanted one below {}", self.codes.len())
        })?;
        // Writers of before the second field filled only the first, later ones both.
        let code = entry.builtin_code().max(i32::from(entry.deprecated_builtin_code()));
        let name = match (code, entry.custom_code()) {
            (builtin::CUSTOM, Some(custom)) => format!("CUSTOM {custom:?}"),
            _ => names::operator(code),
        };
        Ok((code, name))
    }

    fn widen(&mut self, op: &Op<'a>) -> Result<(), Reason> {
        let (&[from], &[to]) = (&op.inputs[..], &op.outputs[..]) else {
            return Err(format!(
                "found {} inputs and {} outputs, wanted one of each",
                op.inputs.len(),
                op.outputs.len()
            ));
        };
        let (from, to) = (self.tensors.position(from)?, self.tensors.position(to)?);
        self.tensors.check_widening(from, to)?;
        self.check_unwritten(to)?;
        self.set(to, Slot::Widened(from));
        Ok(())
    }

    /// The value that an operator reads at this tensor index.
    pub(super) fn value(&self, index: i32) -> Result<Value, Reason> {
        let position = self.tensors.position(index)?;
        let reason = match self.slot(position) {
            Slot::Value(value) => return Ok(value),
            Slot::Untouched if self.tensors.data(position)?.is_some() => "found a constant",
            Slot::Untouched => "is not written by an operator before this one",
            Slot::Widened(_) => "found a constant",
            Slot::Fused => "was fused into the activation after it",
        };
        Err(format!(
            "{}: {reason}, wanted an input or an output of an operator",
            self.tensors.describe(position)
        ))
    }

    /// Where the bytes of the constant at this tensor index are.
    pub(super) fn constant(&self, index: i32) -> Result<usize, Reason> {
        let position = self.tensors.position(index)?;
        match self.slot(position) {
            Slot::Untouched => Ok(position),
            Slot::Widened(source) => Ok(source),
            Slot::Value(_) | Slot::Fused => Err(format!(
                "{}: found a value computed or given at each run, wanted a constant",
                self.tensors.describe(position)
            )),
        }
    }

    /// The activation after the convolution that writes the tensor at `position`, and what that
    /// activation writes, if nothing else reads the convolution's own output.
    pub(super) fn following_activation(
        &mut self,
        position: usize,
    ) -> Result<Option<(Activation, usize)>, Reason> {
        let Some(&Readers { count: 1, last }) = self.readers.get(position) else { return Ok(None) };
        if last >= self.operators.len() {
            return Ok(None);
        }
        let op = self.op(last)?;
        let activation = match op.code {
            builtin::RELU => Activation::Relu,
            builtin::RELU6 => Activation::Relu6,
            builtin::TANH => Activation::Tanh,
            builtin::LOGISTIC => Activation::Sigmoid,
            builtin::HARD_SWISH => Activation::HardSwish,
            builtin::LEAKY_RELU => match op.table.leaky_relu() {
                Some(options) if options.alpha().is_finite() => Activation::LeakyRelu(Bits(options.alpha())),
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        let (&[_], &[output]) = (&op.inputs[..], &op.outputs[..]) else { return Ok(None) };
        self.fused.insert(op.index);
        self.set(position, Slot::Fused);
        Ok(Some((activation, self.tensors.position(output)?)))
    }

    /// Refuses a tensor that an operator or the caller writes already, or that is a constant.
    pub(super) fn check_unwritten(&self, position: usize) -> Result<(), Reason> {
        let found = match self.slot(position) {
            Slot::Untouched if self.tensors.data(position)?.is_some() => "is a constant",
            Slot::Untouched => return Ok(()),
            Slot::Value(_) | Slot::Widened(_) | Slot::Fused => "is written already",
        };
        Err(format!("{}: {found}, wanted a tensor that is written once", self.tensors.describe(position)))
    }

    /// Notes that the tensor at `position` is this value.
    pub(super) fn written(&mut self, position: usize, value: Value) {
        self.set(position, Slot::Value(value));
    }

    /// The tensor's name, made unique in the graph.
    pub(super) fn unique_name(&mut self, position: usize) -> Result<String, Reason> {
        let base = self.tensors.name(position);
        self.budget.spend(base.len())?;
        let mut name = if base.is_empty() { format!("tensor_{position}") } else { base.to_owned() };
        while !self.names.insert(name.clone()) {
            self.budget.spend(name.len())?;
            name.push_str(&format!("#{position}"));
        }
        Ok(name)
    }

    fn slot(&self, position: usize) -> Slot {
        self.slots.get(position).copied().unwrap_or(Slot::Untouched)
    }

    fn set(&mut self, position: usize, slot: Slot) {
        if let Some(place) = self.slots.get_mut(position) {
            *place = slot;
        }
    }
}
