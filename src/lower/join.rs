//! Concatenations without a kernel: what writes an input writes it where it belongs in the result.
//!
//! That is possible where each input is one piece of the result ([`crate::ops::Op::joins`]) that a binding may
//! begin at. No kernel may write a piece of a buffer of which it reads another piece, which WebGPU forbids: such
//! an input is copied there, and so is one that lies elsewhere anyway, as inputs of the network and constants
//! do.

use super::builder::Builder;
use super::kernel::Kernel;
use super::step::Part;
use super::stored_as::{Kind, same_kind, stored_bytes};
use super::unit::{Input, Unit};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::graph::Value;
use crate::layout::Form;
use crate::lower::mistakes::planted;
use crate::ops::copy::CopyOp;
use crate::shape::Shape;
use std::collections::HashMap;

/// An input of a concatenation, and its piece of the result.
#[derive(Debug, Clone, Copy)]
struct Piece {
    value: Value,
    kind: Kind,
    part: Part,
}

/// A concatenation that needs no kernel.
#[derive(Debug)]
pub(super) struct Join {
    pieces: Vec<Piece>,
    /// What the result is stored as, and where.
    kind: Kind,
    whole: Part,
}

impl Builder<'_, '_> {
    /// The units that need no kernel, by their places, and where their inputs are to be stored.
    ///
    /// The last come first: a result may be a piece of another one.
    pub(super) fn place_joins(&mut self, kernels: &[Kernel]) -> Result<HashMap<usize, Join>> {
        let mut joins: HashMap<usize, Join> = HashMap::new();
        for (index, kernel) in kernels.iter().enumerate().rev() {
            // A concatenation without a kernel writes nothing itself.
            let writes = |unit: usize| unit != index && !joins.contains_key(&unit);
            if let Some(join) = self.place_join(&self.network.units()[index], kernel, &writes)? {
                joins.insert(index, join);
            }
        }
        Ok(joins)
    }

    fn place_join(
        &mut self,
        unit: &Unit,
        Kernel { op, choice, .. }: &Kernel,
        writes: &dyn Fn(usize) -> bool,
    ) -> Result<Option<Join>> {
        let Some(choice) = choice else { return Ok(None) };
        let own = op.kernel(choice.variant)?;
        let (Some(offsets), &[output]) = (own.joins(choice), &unit.outputs[..]) else { return Ok(None) };
        let infos = op.operands();
        let kind_of = |operand| {
            let info = infos.iter().find(|info| info.operand == operand)?;
            Some(Self::kind(&**op, info, own.form(operand, choice)?))
        };
        let Some(kind) = crate::ops::outputs(&**op).next().and_then(|info| kind_of(info.operand)) else {
            return Ok(None);
        };
        let outer = self.targets.get(&output).filter(|(wanted, _)| same_kind(wanted, &kind)).map(|at| at.1);
        let first = outer.map_or(0, |part| part.offset);
        let alignment = self.program.limits.binding_alignment.max(1);
        // What is placed in the same buffer.
        let beside =
            |outer: Part| self.targets.iter().filter(move |(_, (_, part))| part.stored == outer.stored);
        let mut placed: Vec<Value> = outer.into_iter().flat_map(beside).map(|(&value, _)| value).collect();
        let mut pieces = Vec::with_capacity(offsets.len());
        let mut order: Vec<usize> = offsets.iter().map(|(_, offset)| *offset).collect();
        if planted("concatenation_order") {
            order.reverse();
        }
        for ((operand, _), offset) in offsets.into_iter().zip(order) {
            let (Some(own), Input::Value(value)) = (kind_of(operand), unit.input(operand)?) else {
                return Ok(None);
            };
            let offset = first + (offset * own.2.bytes()) as u64;
            let base = self.network.resolve(*value).of;
            let free = self.can_be_placed(*value, own)? && !placed.contains(&base);
            placed.push(base);
            let copied = !free || self.writes_what_it_reads(&placed, writes);
            if copied {
                placed.pop();
            }
            // Maps are only copied as rows.
            if !offset.is_multiple_of(alignment) || (copied && !own.0.is_rows()) {
                return Ok(None);
            }
            let part = Part { stored: 0, offset, bytes: stored_bytes(own) as u64 };
            pieces.push((Piece { value: *value, kind: own, part }, copied));
        }
        let moved: u64 = pieces.iter().filter(|(_, copied)| *copied).map(|(piece, _)| piece.part.bytes).sum();
        if 2 * moved > stored_bytes(kind) as u64 {
            return Ok(None);
        }
        let whole = match outer {
            Some(part) => part,
            None => {
                let pinned = kind.0 == Form::Rows && self.network.leaves(output);
                self.own(stored_bytes(kind), pinned)
            }
        };
        let mut own = Vec::with_capacity(pieces.len());
        for (mut piece, copied) in pieces {
            piece.part.stored = whole.stored;
            if !copied {
                self.targets.insert(self.network.resolve(piece.value).of, (piece.kind, piece.part));
            }
            own.push(piece);
        }
        Ok(Some(Join { pieces: own, kind, whole }))
    }

    /// Whether `value` may be stored as `kind` where one wishes: if it is computed, is the whole of what it
    /// shows, and has no other place.
    fn can_be_placed(&self, value: Value, kind: Kind) -> Result<bool> {
        let alias = self.network.resolve(value);
        let whole = alias.offset == 0
            && self.network.dims(alias.of)?.elements() == self.network.dims(value)?.elements();
        // A map in other extents is another map.
        let same = kind.0.is_rows() || self.same_map(value)? == alias.of;
        let writer = self.network.writer(alias.of);
        // No kernel may write several pieces of one buffer.
        let alone = |unit: &Unit| unit.parts().is_empty() && unit.outputs.len() == 1;
        let computed = writer.is_some_and(|writer| alone(&self.network.units()[writer]));
        let free = !self.targets.contains_key(&alias.of) && !self.network.leaves(alias.of);
        Ok(whole && same && computed && free)
    }

    /// Whether the writer of one of `values`, of the units that write, reads another one.
    fn writes_what_it_reads(&self, values: &[Value], writes: &dyn Fn(usize) -> bool) -> bool {
        let mut writers =
            values.iter().filter_map(|&value| self.network.writer(value)).filter(|&index| writes(index));
        let reads = |unit: &Unit| unit.reads().any(|read| values.contains(&self.network.resolve(read).of));
        writers.any(|index| reads(&self.network.units()[index]))
    }

    /// Makes sure that every piece is in its place.
    pub(super) fn join(&mut self, unit: &Unit, Join { pieces, kind, whole }: Join) -> Result<()> {
        for Piece { value, kind, part } in pieces {
            let found = self.read(value, kind)?;
            if found == part {
                continue;
            }
            // A map that was written in another form, and so not where it belongs, is copied as the words that it is stored in.
            let kind = match kind.0 {
                form if form.is_rows() => kind,
                _ => (Form::Rows, Shape::nhwc(1, 1, 1, stored_bytes(kind) / 4), DType::U32),
            };
            let name = format!("{} (copy)", self.network.name(value)?);
            // A kernel may not read another piece of the buffer that it writes.
            let mut from = found;
            if found.stored == part.stored {
                from = self.own(stored_bytes(kind), false);
                self.copy(name.clone(), kind, found, from)?;
            }
            self.copy(name, kind, from, part)?;
        }
        let &[output] = &unit.outputs[..] else {
            return Err(Error::Internal(format!("{:?} has several outputs", unit.name)));
        };
        self.places.entry(output).or_default().push((kind, whole));
        Ok(())
    }

    /// Adds a step that copies rows.
    fn copy(&mut self, name: String, kind: Kind, from: Part, to: Part) -> Result<()> {
        let word = if kind.0 == Form::HalfRows { kind.2 } else { kind.2.device_word() };
        let step = self.single(name, &CopyOp::new(kind.1, 0, kind.1)?.of(word), from, to)?;
        self.program.steps.push(step);
        Ok(())
    }
}
