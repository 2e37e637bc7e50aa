//! A verified file to a graph, operator by operator.

use super::constant::Constant;
use super::control::Variable;
use super::frame::{Frame, Joined};
use super::names;
use super::operators;
use super::schema::{Model, Operator, OperatorCode, SubGraph, Tables, at};
use super::survey;
use super::tensors::{Budget, indices};
use super::{LoadOptions, Loaded, ModelInfo};
use crate::error::{Error, Result};
use crate::graph::{Graph, Value};
use crate::model::reason::Reason;
use std::collections::{HashMap, HashSet};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// The most inputs or outputs of a network; adding one to a graph looks at those before it.
pub(super) const MAX_ENDS: usize = 4096;

/// Operators that take complex values.
const COMPLEX: [&str; 7] = ["RESHAPE", "SQUEEZE", "EXPAND_DIMS", "COMPLEX_ABS", "REAL", "IMAG", "CAST"];

/// What a tensor of the file stands for so far.
#[derive(Debug, Clone)]
pub(super) enum Slot {
    /// No operator has written it; it may be a constant of the file.
    Untouched,
    /// A value of the graph.
    Value(Value),
    /// Known while the file is read.
    Constant(Constant),
    /// Parts of values and constants, not joined yet.
    Joined(Arc<Joined>),
    /// A variable, by its index.
    Variable(usize),
    /// What a dilated convolution computes of one phase; nothing else reads it.
    Fused,
}

/// What an operator reads.
#[derive(Debug, Clone)]
pub(super) enum Input {
    Value(Value),
    Constant(Constant),
}

/// Who reads a tensor.
#[derive(Clone, Copy, Default)]
pub(super) struct Readers {
    pub(super) count: usize,
    pub(super) last: usize,
}

/// A graph in the making.
pub(super) struct Import<'a> {
    pub(super) model: Model<'a>,
    pub(super) budget: Budget,
    pub(super) graph: Graph,
    codes: Tables<'a, OperatorCode<'a>>,
    pub(super) names: HashSet<String>,
    /// The network that is the graph, by index.
    pub(super) main: usize,
    /// The network that is read.
    pub(super) frame: Box<Frame<'a>>,
    /// Networks that were called, by index.
    pub(super) frames: HashMap<usize, Box<Frame<'a>>>,
    /// How many calls there were, and how many the network that is read is in.
    pub(super) calls: usize,
    pub(super) depth: usize,
    pub(super) variables: Vec<Variable>,
    /// The names of variables that runs assign, once they are looked for; `None` if that is not known.
    pub(super) assigned: Option<Option<HashSet<String>>>,
    /// The imaginary parts of complex values, by the real ones.
    pub(super) imaginary: HashMap<Value, Value>,
    /// Whether what is read runs once, before the first run.
    pub(super) starting: bool,
}

impl<'a> Deref for Import<'a> {
    type Target = Frame<'a>;

    fn deref(&self) -> &Frame<'a> {
        &self.frame
    }
}

impl DerefMut for Import<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.frame
    }
}

/// An operator with its tensors.
pub(super) struct Op<'a> {
    pub(super) index: usize,
    pub(super) name: String,
    pub(super) table: Operator<'a>,
    pub(super) inputs: Vec<i32>,
    pub(super) outputs: Vec<i32>,
}

/// Reads the first network of a file, or that of a signature.
pub(super) fn import(file: &str, model: &Model<'_>, bytes: &[u8], options: &LoadOptions) -> Result<Loaded> {
    let fail = |reason: Reason| Error::Model { file: file.to_owned(), op: None, message: reason.into() };
    let mut budget = Budget::new(bytes.len());
    let main = main(model, options).map_err(fail)?;
    let info = ModelInfo::read(model, main, bytes, &mut budget).map_err(fail)?;
    let (mut import, inputs, outputs) = start(model, main, budget).map_err(fail)?;
    if let Some(unsupported) = survey::unsupported(&mut import, &inputs).map_err(fail)? {
        return Err(fail(unsupported.into()));
    }
    import.inputs(&inputs, options).map_err(fail)?;
    import.run().map_err(|(op, reason)| Error::Model {
        file: file.to_owned(),
        op,
        message: reason.into(),
    })?;
    import.update_variables().map_err(fail)?;
    for &output in &outputs {
        import.output(output).map_err(|message| fail(format!("output {message}").into()))?;
    }
    Ok(Loaded { graph: import.graph, info })
}

type Started<'a> = (Import<'a>, Vec<i32>, Vec<i32>);

/// What went wrong, and in which operator.
type Failure = (Option<(usize, String)>, Reason);

/// The network that the options ask for, by index.
fn main(model: &Model<'_>, options: &LoadOptions) -> Result<usize, Reason> {
    let Some(wanted) = &options.signature else { return Ok(0) };
    let signatures = || model.signatures().into_iter().flat_map(|signatures| signatures.iter());
    match signatures().find(|signature| signature.key() == Some(wanted)) {
        Some(signature) => Ok(signature.subgraph() as usize),
        None => {
            let names: Vec<&str> = signatures().filter_map(|signature| signature.key()).take(16).collect();
            refused!("found no signature {wanted:?}, wanted one of {names:?}")
        }
    }
}

fn start<'a>(model: &Model<'a>, main: usize, budget: Budget) -> Result<Started<'a>, Reason> {
    let networks = model.subgraphs();
    let count = networks.map_or(0, |networks| networks.len());
    let network: SubGraph<'a> = networks
        .and_then(|networks| at(networks, main))
        .ok_or_else(|| format!("found {count} subgraphs, wanted at least {}", main.saturating_add(1)))?;
    network.tensors().ok_or("found no tensors, wanted at least an input and an output")?;
    let operators = network.operators().filter(|operators| !operators.is_empty());
    operators.ok_or("found no operators, wanted at least one")?;
    let codes = model.operator_codes().ok_or("found operators, but no operator codes")?;
    let mut budget = budget;
    let inputs = ends("inputs", network.inputs(), &mut budget)?;
    let outputs = ends("outputs", network.outputs(), &mut budget)?;
    let frame = Frame::new(network, model, [inputs.clone(), outputs.clone()], &mut budget)?;
    let mut import = Import {
        model: *model,
        budget,
        graph: Graph::new(),
        codes,
        names: HashSet::new(),
        main,
        frame: Box::new(frame),
        frames: HashMap::new(),
        calls: 0,
        depth: 0,
        variables: Vec::new(),
        assigned: None,
        imaginary: HashMap::new(),
        starting: false,
    };
    import.name_ends(model)?;
    Ok((import, inputs, outputs))
}

fn ends(
    what: &str,
    vector: Option<flatbuffers::Vector<'_, i32>>,
    budget: &mut Budget,
) -> Result<Vec<i32>, Reason> {
    match vector.map_or(0, |vector| vector.len()) {
        0 => refused!("found no {what}, wanted at least one"),
        count if count > MAX_ENDS => refused!("found {count} {what}, wanted at most {MAX_ENDS}"),
        _ => indices(vector, budget),
    }
}

impl<'a> Import<'a> {
    /// Reads every operator of the network.
    pub(super) fn run(&mut self) -> Result<(), Failure> {
        for index in 0..self.operator_count() {
            if self.fused.contains(&index) {
                continue;
            }
            self.operator(index).map_err(|message| {
                let name = self.name_of(index).unwrap_or_else(|_| "unknown".to_owned());
                (Some((index, name)), message)
            })?;
        }
        Ok(())
    }

    /// How many operators the network has.
    pub(super) fn operator_count(&self) -> usize {
        self.operators.map_or(0, |operators| operators.len())
    }

    pub(super) fn operator(&mut self, index: usize) -> Result<(), Reason> {
        let op = self.op(index)?;
        self.check_complex(&op)?;
        match operators::handler(&op.name) {
            Some(handler) => handler(self, &op),
            None => refused!("this operator is not supported"),
        }
    }

    /// Refuses complex inputs of an operator that does not know them.
    fn check_complex(&self, op: &Op<'a>) -> Result<(), Reason> {
        if self.imaginary.is_empty() || COMPLEX.contains(&op.name.as_str()) {
            return Ok(());
        }
        for &input in op.inputs.iter().filter(|&&input| input != -1) {
            let position = self.tensors.position(input)?;
            if let Some(Slot::Value(value)) = self.slots.get(position)
                && self.imaginary.contains_key(value)
            {
                let place = self.tensors.describe(position);
                return refused!("{place}: found a complex value, wanted a real one");
            }
        }
        Ok(())
    }

    pub(super) fn op(&mut self, index: usize) -> Result<Op<'a>, Reason> {
        let table = self.table(index)?;
        let name = self.operator_name(&table)?;
        self.budget.spend(name.len())?;
        let inputs = indices(table.inputs(), &mut self.budget)?;
        let outputs = indices(table.outputs(), &mut self.budget)?;
        Ok(Op { index, name, table, inputs, outputs })
    }

    /// The name of the operator at `index`.
    fn name_of(&self, index: usize) -> Result<String, Reason> {
        self.operator_name(&self.table(index)?)
    }

    fn table(&self, index: usize) -> Result<Operator<'a>, Reason> {
        let table = self.operators.and_then(|operators| at(operators, index));
        table.ok_or_else(|| {
            format!("found operator {index} of {}, wanted one that is there", self.operator_count()).into()
        })
    }

    /// The name of an operator.
    pub(super) fn operator_name(&self, operator: &Operator<'a>) -> Result<String, Reason> {
        let code = operator.opcode_index();
        let entry = at(self.codes, code as usize).ok_or_else(|| {
            format!("found operator code index {code}, wanted one below {}", self.codes.len())
        })?;
        // Writers of before the second field filled only the first, later ones both.
        let code = entry.builtin_code().max(i32::from(entry.deprecated_builtin_code()));
        Ok(match (code, entry.custom_code()) {
            (names::CUSTOM, Some(custom)) => format!("CUSTOM {custom:?}"),
            _ => names::operator(code),
        })
    }

    /// Refuses a tensor that an operator or the caller writes already, or that is a constant.
    pub(super) fn check_unwritten(&self, position: usize) -> Result<(), Reason> {
        let found = match self.slots.get(position) {
            Some(Slot::Untouched) if self.tensors.data(position)?.is_some() => "is a constant",
            Some(Slot::Untouched) | None => return Ok(()),
            Some(_) => "is written already",
        };
        refused!("{}: {found}, wanted a tensor that is written once", self.tensors.describe(position))
    }

    /// The tensor's name, made unique in the graph.
    pub(super) fn unique_name(&mut self, position: usize) -> Result<String, Reason> {
        if let Some(name) = self.frame.signature.remove(&position) {
            return Ok(name);
        }
        let base = self.tensors.name(position);
        self.budget.spend(base.len())?;
        let scope = &self.frame.scope;
        let name =
            if base.is_empty() { format!("{scope}tensor_{position}") } else { format!("{scope}{base}") };
        self.unique(name, position)
    }

    /// The name of a node that computes a part of the operator that writes `name`.
    pub(super) fn part_name(&mut self, name: &str, part: &str) -> Result<String, Reason> {
        self.budget.spend(name.len() + part.len())?;
        self.unique(format!("{name}/{part}"), self.names.len())
    }

    fn unique(&mut self, mut name: String, number: usize) -> Result<String, Reason> {
        while !self.names.insert(name.clone()) {
            self.budget.spend(name.len())?;
            name.push_str(&format!("#{number}"));
        }
        Ok(name)
    }

    pub(super) fn set(&mut self, position: usize, slot: Slot) {
        if let Some(place) = self.slots.get_mut(position) {
            *place = slot;
        }
    }
}
