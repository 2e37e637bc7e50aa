//! A graph in the making: the operators of a network one after the other.

use super::frame::{Frame, OutputName};
use super::names;
use super::options::Operator;
use super::schema::{Model, OperatorCode};
use super::slots::{Slot, Variable};
use super::tables::{Tables, at};
use super::tensors::indices;
use crate::graph::Value;
use crate::model::build::Builder;
use crate::model::reason::Reason;
use std::collections::{HashMap, HashSet};
use std::ops::{Deref, DerefMut};

/// Operators that take complex values.
const COMPLEX: [&str; 7] = ["RESHAPE", "SQUEEZE", "EXPAND_DIMS", "COMPLEX_ABS", "REAL", "IMAG", "CAST"];

/// Adds an operator to the graph, or works out its constants.
pub(super) type Handler = for<'a> fn(&mut Import<'a>, &Op<'a>) -> Result<(), Reason>;

/// The function of an operator, by its name.
pub(super) type Handlers = fn(&str) -> Option<Handler>;

/// A graph in the making.
pub(super) struct Import<'a> {
    pub(super) model: Model<'a>,
    /// The whole file.
    pub(super) file: &'a [u8],
    pub(super) build: Builder,
    pub(super) codes: Tables<'a, OperatorCode<'a>>,
    pub(super) handlers: Handlers,
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
    /// Whether operators of floats with weights of 8-bit integers are computed on these.
    pub(super) integers: bool,
    /// The network's outputs, in the order of the file.
    pub(super) ends: Vec<OutputName>,
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

/// What went wrong, and in which operator.
pub(super) type Failure = (Option<(usize, String)>, Reason);

impl<'a> Import<'a> {
    /// Reads every operator of the network.
    pub(super) fn run(&mut self) -> Result<(), Failure> {
        for index in 0..self.operator_count() {
            if self.fused.contains(&index) || self.unneeded.contains(&index) {
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
        match (self.handlers)(&op.name) {
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
        self.build.budget.spend(name.len())?;
        let inputs = indices(table.inputs(), &mut self.build.budget)?;
        let outputs = indices(table.outputs(), &mut self.build.budget)?;
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
        self.build.budget.spend(base.len())?;
        let scope = &self.frame.scope;
        let name =
            if base.is_empty() { format!("{scope}tensor_{position}") } else { format!("{scope}{base}") };
        self.unique(name, position)
    }

    /// The name of a node that computes a part of the operator that writes `name`.
    pub(super) fn part_name(&mut self, name: &str, part: &str) -> Result<String, Reason> {
        self.build.budget.spend(name.len() + part.len())?;
        self.unique(format!("{name}/{part}"), self.build.names.len())
    }

    fn unique(&mut self, mut name: String, number: usize) -> Result<String, Reason> {
        while !self.build.names.insert(name.clone()) {
            self.build.budget.spend(name.len())?;
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
