//! Arithmetic on shapes that a file has behind an operator which wants to know its result.

use super::constant::{Constant, Integers};
use super::import::{Import, Op};
use super::slots::{Input, Slot};
use crate::model::reason::Reason;
use std::collections::HashMap;

/// Operators that shapes are worked out with. They leave nothing behind but their outputs, so they may run early.
const ARITHMETIC: [&str; 27] = [
    "ADD",
    "BROADCAST_ARGS",
    "CAST",
    "CONCATENATION",
    "DIV",
    "EXPAND_DIMS",
    "FILL",
    "FLOOR_DIV",
    "FLOOR_MOD",
    "GATHER",
    "MAXIMUM",
    "MINIMUM",
    "MUL",
    "NEG",
    "PACK",
    "RANGE",
    "RANK",
    "REDUCE_PROD",
    "RESHAPE",
    "SHAPE",
    "SLICE",
    "SQUEEZE",
    "STRIDED_SLICE",
    "SUB",
    "SUM",
    "TRANSPOSE",
    "UNPACK",
];

/// The most operators that are read early for one number.
const MOST: usize = 256;

impl<'a> Import<'a> {
    /// The integers at an input of an operator that is not read yet. What works them out is read now; `None` if that
    /// needs something else than arithmetic on shapes that are known.
    pub(super) fn integers_ahead(&mut self, op: &Op<'a>, index: usize) -> Result<Option<Integers>, Reason> {
        let wanted = self.tensors.position(op.input(index)?)?;
        let mut open = vec![wanted];
        let mut read = 0;
        while let Some(&position) = open.last() {
            if self.is_there(position)? {
                open.pop();
                continue;
            }
            read += 1;
            let Some(writer) = self.writer(position)?.filter(|_| read <= MOST) else { return Ok(None) };
            let op = self.op(writer)?;
            if !ARITHMETIC.contains(&op.name.as_str()) || self.fused.contains(&writer) {
                return Ok(None);
            }
            let mut missing = Vec::new();
            for &input in op.inputs.iter().filter(|&&input| input != -1) {
                let input = self.tensors.position(input)?;
                if !self.is_there(input)? {
                    missing.push(input);
                }
            }
            // What waits for itself never ends.
            if missing.iter().any(|input| open.contains(input)) {
                return Ok(None);
            }
            if missing.is_empty() {
                if self.operator(writer).is_err() {
                    // It is read again in its turn, and refused there.
                    return Ok(None);
                }
                self.fused.insert(writer);
            }
            open.extend(missing);
        }
        Ok(match self.resolved(wanted)? {
            Input::Constant(Constant::Integers(integers)) => Some(integers),
            _ => None,
        })
    }

    /// Whether a tensor is known or computed by now.
    fn is_there(&self, position: usize) -> Result<bool, Reason> {
        Ok(match self.slots.get(position) {
            Some(Slot::Untouched) | None => self.tensors.data(position)?.is_some() || self.is_empty(position),
            Some(Slot::Fused) => false,
            Some(_) => true,
        })
    }

    /// The operator of the network that writes a tensor.
    fn writer(&mut self, position: usize) -> Result<Option<usize>, Reason> {
        if self.writers.is_none() {
            let mut writers = HashMap::new();
            for index in 0..self.operator_count() {
                for output in self.op(index)?.outputs {
                    writers.insert(output, index);
                }
            }
            self.frame.writers = Some(writers);
        }
        let output = i32::try_from(position).unwrap_or(-1);
        Ok(self.writers.as_ref().and_then(|writers| writers.get(&output).copied()))
    }
}
