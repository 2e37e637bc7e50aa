//! One network of a file.

use super::options::Operator;
use super::schema::{Model, SubGraph};
use super::slots::{Phases, Readers, Slot};
use super::tables::Tables;
use super::tensors::{Budget, Tensors, indices};
use crate::graph::Value;
use crate::model::reason::Reason;
use std::collections::{HashMap, HashSet};

/// One network of a file, and what its tensors stand for so far.
pub(super) struct Frame<'a> {
    pub(super) tensors: Tensors<'a>,
    pub(super) operators: Option<Tables<'a, Operator<'a>>>,
    pub(super) inputs: Vec<i32>,
    pub(super) outputs: Vec<i32>,
    pub(super) slots: Vec<Slot>,
    pub(super) readers: Vec<Readers>,
    /// Names of a signature, by tensor.
    pub(super) signature: HashMap<usize, String>,
    /// Constants that are values of the graph, by tensor.
    pub(super) constants: HashMap<usize, Value>,
    /// Tensors as bytes.
    pub(super) fused: HashSet<usize>,
    /// Operators that nothing but outputs which were not chosen needs.
    pub(super) unneeded: HashSet<usize>,
    /// Names of values that are rounded after they are computed, by tensor.
    pub(super) unrounded: HashMap<usize, String>,
    /// Dilated convolutions, by the operator of the convolution.
    pub(super) phases: HashMap<usize, Phases>,
    /// Outputs of calls, which have the names of other tensors.
    pub(super) renamed: HashSet<usize>,
    /// What names begin with.
    pub(super) scope: String,
    /// The operator that writes each tensor, once it is asked for.
    pub(super) writers: Option<HashMap<i32, usize>>,
}

/// An output of the network.
#[derive(Debug, Clone, Default)]
pub(super) struct OutputName {
    /// Its name in the graph.
    pub(super) name: String,
    /// Whether its tensor is an input or an output before it.
    pub(super) again: bool,
}

impl<'a> Frame<'a> {
    pub(super) fn new(
        network: SubGraph<'a>,
        (model, file): (&Model<'a>, &'a [u8]),
        ends: [Vec<i32>; 2],
        budget: &mut Budget,
    ) -> Result<Self, Reason> {
        let tensors = network.tensors().ok_or("found no tensors, wanted at least an input and an output")?;
        let [inputs, outputs] = ends;
        let mut frame = Frame {
            slots: vec![Slot::Untouched; tensors.len()],
            readers: vec![Readers::default(); tensors.len()],
            tensors: Tensors::new(tensors, (model.buffers(), file), [&inputs, &outputs]),
            operators: network.operators(),
            inputs,
            outputs,
            signature: HashMap::new(),
            constants: HashMap::new(),
            fused: HashSet::new(),
            unneeded: HashSet::new(),
            unrounded: HashMap::new(),
            phases: HashMap::new(),
            renamed: HashSet::new(),
            scope: String::new(),
            writers: None,
        };
        frame.count_readers(budget)?;
        Ok(frame)
    }

    fn count_readers(&mut self, budget: &mut Budget) -> Result<(), Reason> {
        let operators = self.operators;
        for (index, operator) in operators.iter().flat_map(|operators| operators.iter()).enumerate() {
            for tensor in indices(operator.inputs(), budget)? {
                self.count_reader(tensor, index);
            }
        }
        for tensor in self.outputs.clone() {
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
}
