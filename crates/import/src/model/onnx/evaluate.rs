//! Operators of constants alone, computed while the file is read.

use super::import::{Handler, Import, Op};
use crate::graph::Graph;
use crate::host::HostTensor;
use crate::layout::Layout;
use crate::model::build::{Kind, Mapped, Operand};
use crate::model::constant::{Constant, Integers};
use crate::model::constant_cache::{self, ConstantCache};
use crate::model::reason::Reason;
use std::sync::Arc;

/// The most elements of a result that becomes a constant.
const MAX_ELEMENTS: usize = 1 << 24;

/// The most work that is done at once: what takes more is computed at each run.
const MAX_FLOPS: u64 = 1 << 32;

impl<'a> Import<'a> {
    /// Whether all inputs of an operator are known, and it has no branches that read others and draws nothing.
    pub(super) fn has_known_inputs(&self, op: &Op<'a>) -> bool {
        let mut inputs = op.node.inputs.iter().filter(|name| !name.is_empty()).peekable();
        inputs.peek().is_some()
            && inputs.all(|name| {
                self.unread(name).is_some()
                    || matches!(self.find(name), Ok(Operand::Constant(_, kind)) if !kind.is_handle())
            })
            && op.node.attributes.iter().all(|attribute| attribute.graph.is_none())
            && !super::random::draws(op)
    }

    /// What the results of an operator on large constants are kept under, where the file is read several times.
    fn kept_name(&self, op: &Op<'a>) -> Option<(Arc<ConstantCache>, String)> {
        let kept = self.kept.clone()?;
        // Its place in the file: branches may write the same names.
        let place = op.node.op.as_ptr();
        let mut name = format!("{} {} {place:?} {:?}", self.current, op.node.op, op.node.outputs);
        let mut is_large = false;
        for input in &op.node.inputs {
            name.push_str(" | ");
            if input.is_empty() {
                continue;
            }
            let Ok(Operand::Constant(constant, kind)) = self.find(input) else { return None };
            is_large |= constant.elements() > constant_cache::FEW;
            name.push_str(&format!("{kind:?} {}", kept.identity(&constant)?));
        }
        is_large.then_some((kept, name))
    }

    /// Makes what an operator of constants alone writes constants: what it is known to write, or else what it does.
    pub(super) fn evaluate(&mut self, handler: Handler, op: &Op<'a>) -> Result<(), Reason> {
        let Some((kept, name)) = self.kept_name(op) else { return self.evaluated(handler, op) };
        let outputs: Vec<&'a str> = op.node.outputs.iter().copied().filter(|name| !name.is_empty()).collect();
        if let Some(known) = kept.known(&name).filter(|known| known.len() == outputs.len()) {
            self.written.clear();
            for (output, (constant, kind)) in outputs.into_iter().zip(known) {
                self.set_name(output, Operand::Constant(constant, kind))?;
            }
            return Ok(());
        }
        self.evaluated(handler, op)?;
        let found = outputs.iter().map(|output| match self.find(output) {
            Ok(Operand::Constant(constant, kind)) if !kind.is_handle() => Some((constant, kind)),
            _ => None,
        });
        if let Some(found) = found.collect::<Option<Vec<_>>>() {
            kept.keep_made(name, &found);
        }
        Ok(())
    }

    /// Adds an operator to a graph of its own, and makes what it writes there constants.
    fn evaluated(&mut self, handler: Handler, op: &Op<'a>) -> Result<(), Reason> {
        let graph = self.begin_graph();
        let transposes = self.transposes;
        let uploaded = self.scopes.last_mut().map(|scope| std::mem::take(&mut scope.uploaded));
        self.written.clear();
        let done = handler(self, op);
        let own = std::mem::replace(&mut self.graph, graph);
        self.transposes = transposes;
        if let (Some(scope), Some(uploaded)) = (self.scopes.last_mut(), uploaded) {
            scope.uploaded = uploaded;
        }
        done?;
        let written = std::mem::take(&mut self.written);
        let mut values = Vec::new();
        for name in &written {
            if let Ok(Operand::Value(mapped)) = self.find(name) {
                values.push((*name, mapped));
            }
        }
        if values.is_empty() {
            return Ok(());
        }
        if self.is_too_much(&own, &values)? {
            if let Some(scope) = self.scopes.last_mut() {
                written.iter().for_each(|name| drop(scope.slots.remove(name)));
            }
            return handler(self, op);
        }
        let constants = self.computed(own, &values)?;
        for ((name, mapped), constant) in values.into_iter().zip(constants) {
            if let Some(scope) = self.scopes.last_mut() {
                scope.slots.insert(name, Operand::Constant(constant, mapped.kind));
            }
        }
        Ok(())
    }

    fn is_too_much(&mut self, graph: &Graph, values: &[(&str, Mapped)]) -> Result<bool, Reason> {
        let mut most = 0;
        for (_, mapped) in values {
            most = most.max(graph.dims(mapped.value)?.elements());
        }
        let flops = graph.flops()?;
        let elements: usize = graph.all_values().map(|(_, info)| info.dims.elements()).sum();
        let work = elements.saturating_mul(4).saturating_add((flops / 4) as usize);
        Ok(most > MAX_ELEMENTS || flops > MAX_FLOPS || self.budget.spend(work).is_err())
    }

    /// The elements of values of a graph without inputs, in the order of the file.
    fn computed(&mut self, mut graph: Graph, values: &[(&str, Mapped)]) -> Result<Vec<Constant>, Reason> {
        let mut places = Vec::with_capacity(values.len());
        for (_, mapped) in values {
            let known = graph.outputs().iter().position(|&output| output == mapped.value);
            places.push(known.unwrap_or(graph.outputs().len()));
            if known.is_none() && graph.tensor(mapped.value)?.is_none() {
                graph.output(mapped.value)?;
            }
        }
        let outputs = if graph.outputs().is_empty() { Vec::new() } else { self.run(&graph)? };
        let mut constants = Vec::with_capacity(values.len());
        for ((_, mapped), place) in values.iter().zip(places) {
            let tensor = match graph.tensor(mapped.value)? {
                Some(tensor) => tensor.clone(),
                None => outputs.get(place).cloned().ok_or("found no result of a constant")?,
            };
            let stored = constant_of(&tensor, mapped.kind)?;
            let back: Vec<usize> = (0..mapped.rank()).map(|axis| mapped.place(axis)).collect();
            constants.push(self.constant_in_order(&stored, &back)?);
        }
        Ok(constants)
    }

    /// What a slot is that depends on constants alone, within an operator whose inputs are all known.
    pub(super) fn known(&mut self, slot: Operand) -> Result<Constant, Reason> {
        match slot {
            Operand::Constant(constant, _) => Ok(constant),
            Operand::Value(mapped) => {
                let constants = self.computed(self.graph.clone(), &[("", mapped)])?;
                constants.into_iter().next().ok_or_else(|| "found no result of a constant".into())
            }
        }
    }

    fn run(&mut self, graph: &Graph) -> Result<Vec<HostTensor>, Reason> {
        (self.prepare)(graph).and_then(|prepared| prepared.compute(&[])).map_err(Reason::from)
    }
}

/// A tensor as a constant of its type.
fn constant_of(tensor: &HostTensor, kind: Kind) -> Result<Constant, Reason> {
    if kind.is_float() {
        return Ok(Constant::Floats(tensor.clone()));
    }
    let extents = tensor.dims().extents().to_vec();
    if let Some(integers) = tensor.to_i64().filter(|_| tensor.layout() == Layout::Nhwc) {
        return Ok(Constant::Integers(Integers::new(extents, integers.into_owned())));
    }
    let whole = |&value: &f32| match value.abs() <= (1 << 24) as f32 {
        true => Ok(value as i64),
        false => {
            refused!("found {value} of {kind:?} computed of constants, wanted an integer that f32 holds")
        }
    };
    let values = tensor.to_nhwc().iter().map(whole).collect::<Result<Vec<i64>, Reason>>()?;
    Ok(Constant::Integers(Integers::new(extents, values)))
}
