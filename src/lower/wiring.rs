//! A program whose inputs and outputs lie in an application's buffers.
//!
//! A stored value that an application's buffer holds in the same form is bound to that buffer in every step, and what
//! made it of another form is left out. A buffer in another form is read or written by a kernel that moves its
//! elements. What no wanted output and no state depends on is left out.

use super::arrangement::{Arrangement, vectors};
use super::program::Program;
use super::step::{OperandMemory, Part, Stored, Work};
use super::stored_as::{Forms, Kind};
use crate::dtype::{DType, Precision};
use crate::emit::{Access, Least};
use crate::error::{Error, Result};
use crate::layout::{Form, Layout};
use crate::limits::Limits;
use crate::ops::convert::ConvertOp;
use crate::ops::copy::CopyOp;
use crate::ops::{Launch, Op};
use crate::shape::Shape;
use crate::tune::work_group::{WorkGroup, untuned};
use std::collections::{BTreeMap, BTreeSet};

/// A port's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lent {
    pub(crate) arrangement: Arrangement,
    pub(crate) bytes: u64,
    /// Whether kernels may be given it: else rows are copied.
    pub(crate) bindable: bool,
}

/// An input or an output, by its place in the graph's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum PortIndex {
    Input(usize),
    Output(usize),
}

/// Where an operand lies, with the bytes that the kernel is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spot {
    Stored(Part),
    Lent {
        end: PortIndex,
        offset: u64,
        bytes: u64,
    },
    /// Memory between two moves of an output.
    Scratch {
        output: usize,
        bytes: u64,
    },
}

/// A dispatch of a wired program.
#[derive(Debug)]
pub(crate) enum WiredStep {
    /// One of the program's own, by its place, and the operands that lie in an application's buffer.
    Own { step: usize, replaced: Vec<(usize, Spot)> },
    /// A kernel that moves elements.
    Move { launch: Box<Launch>, from: Spot, to: Spot },
}

/// A program with buffers of an application for its ports.
#[derive(Debug, Default)]
pub(crate) struct Wired {
    pub(crate) steps: Vec<WiredStep>,
    /// Inputs and outputs that are copied as rows, and where the session has them.
    pub(crate) copied: Vec<(PortIndex, Spot)>,
}

/// What an operand of a step is given.
#[derive(Debug, Clone, Copy)]
struct WiringOperand {
    part: Part,
    access: Access,
    /// The bytes that the kernel is given.
    bytes: u64,
}

/// A port, and where its value is stored in which forms.
#[derive(Debug)]
struct WiringPort {
    shape: Shape,
    rows: Part,
    forms: Vec<(Kind, Part)>,
}

/// What of a program binding an application's buffers takes.
#[derive(Debug)]
pub(crate) struct Wiring {
    limits: Limits,
    /// The size of each stored value in bytes.
    bytes: Vec<u64>,
    steps: Vec<Vec<Option<WiringOperand>>>,
    states: BTreeSet<Stored>,
    inputs: Vec<WiringPort>,
    outputs: Vec<WiringPort>,
}

/// The stored values that an application's buffers hold.
type Held = BTreeMap<Stored, PortIndex>;

impl Wiring {
    /// Nothing, if the CPU computes a step.
    pub(crate) fn new(program: &Program) -> Option<Self> {
        let steps = program.steps.iter().map(|step| match &step.work {
            Work::Device { launch, sources } => Some(operands(launch, sources)),
            Work::Host { .. } => None,
        });
        let ports = |parts: &[Part], forms: &[Forms]| {
            let port = |(&rows, (shape, forms)): (&Part, &Forms)| WiringPort {
                shape: *shape,
                rows,
                forms: forms.clone(),
            };
            parts.iter().zip(forms).map(port).collect()
        };
        Some(Wiring {
            limits: program.limits.clone(),
            bytes: program.stored.iter().map(|stored| stored.bytes).collect(),
            steps: steps.collect::<Option<_>>()?,
            states: program.states.iter().map(|(part, _)| part.stored).collect(),
            inputs: ports(&program.inputs, &program.forms[0]),
            outputs: ports(&program.outputs, &program.forms[1]),
        })
    }

    fn port(&self, end: PortIndex) -> Option<&WiringPort> {
        match end {
            PortIndex::Input(index) => self.inputs.get(index),
            PortIndex::Output(index) => self.outputs.get(index),
        }
    }

    pub(crate) fn output_count(&self) -> usize {
        self.outputs.len()
    }

    /// The shape of a port.
    pub(crate) fn shape(&self, end: PortIndex) -> Result<Shape> {
        let missing = || Error::Internal(format!("no port {end:?}"));
        Ok(self.port(end).ok_or_else(missing)?.shape)
    }

    /// C4 of the session's type where steps read the input so alone, else rows of f32.
    pub(crate) fn preferred(&self, input: usize) -> Arrangement {
        let Some(port) = self.inputs.get(input) else { return Arrangement::ROWS };
        let c4 = port.forms.iter().find(|((form, shape, _), part)| {
            *form == Form::C4 && *shape == port.shape && self.is_whole(part)
        });
        c4.map_or(Arrangement::ROWS, |((_, _, dtype), _)| Arrangement { layout: Layout::C4, dtype: *dtype })
    }

    /// The bytes that a buffer must have to be bound as rows of f32 in place of the session's.
    pub(crate) fn bound_bytes(&self, end: PortIndex) -> u64 {
        self.port(end).map_or(0, |port| self.reach(port.rows.stored).max(port.rows.bytes))
    }

    /// Where the bytes end that kernels reach of a stored value.
    fn reach(&self, stored: Stored) -> u64 {
        let own = self.steps.iter().flatten().flatten().filter(|operand| operand.part.stored == stored);
        own.map(|operand| operand.part.offset + operand.bytes).fold(self.bytes[stored], u64::max)
    }

    fn writes(&self, step: usize) -> impl Iterator<Item = Stored> + '_ {
        let written = self.steps[step].iter().flatten().filter(|operand| operand.access != Access::Read);
        written.map(|operand| operand.part.stored)
    }

    fn is_written(&self, stored: Stored) -> bool {
        (0..self.steps.len()).any(|step| self.writes(step).any(|written| written == stored))
    }

    fn is_whole(&self, part: &Part) -> bool {
        part.offset == 0 && part.bytes == self.bytes[part.stored]
    }

    /// The stored value that the buffer of `port` may hold as it is.
    fn held(&self, port: &WiringPort, lent: &Lent, held: &Held, is_input: bool) -> Option<Stored> {
        let part = if lent.arrangement.is_rows() {
            port.rows
        } else {
            let wanted = (Form::C4, port.shape, lent.arrangement.dtype);
            let is_c4 = lent.arrangement.layout == Layout::C4;
            port.forms.iter().find(|(kind, _)| is_c4 && *kind == wanted)?.1
        };
        // What no step writes is there before the run: an input, or what was computed once. The rows of an
        // input are the application's to write.
        let stored = part.stored;
        let writable = if is_input && lent.arrangement.is_rows() {
            !self.is_written(stored)
        } else {
            self.is_written(stored)
        };
        let free = !held.contains_key(&stored) && !self.states.contains(&stored);
        let fits = lent.bindable && lent.bytes >= self.reach(stored);
        (self.is_whole(&part) && writable && free && fits).then_some(stored)
    }

    /// The steps of a run with these buffers. Outputs that are not given are not computed.
    pub(crate) fn wire(&self, inputs: &[Lent], outputs: &[Option<Lent>]) -> Result<Wired> {
        let mut wired = Wired::default();
        let mut held = Held::new();
        // Inputs whose rows are made of something else, if anything reads them.
        let mut moved = Vec::new();
        for (index, (port, lent)) in self.inputs.iter().zip(inputs).enumerate() {
            let end = PortIndex::Input(index);
            if port.rows.bytes == 0 {
                continue;
            }
            match self.held(port, lent, &held, true) {
                Some(stored) => {
                    held.insert(stored, end);
                    if !lent.arrangement.is_rows() {
                        moved.push((index, port, lent));
                    }
                }
                None if lent.bindable => moved.push((index, port, lent)),
                None => wired.copied.push((end, Spot::Stored(port.rows))),
            }
        }
        let provided = crate::sorted::set(held.keys().copied());
        let mut needed = self.states.clone();
        let mut ends = Vec::new();
        for (index, (port, lent)) in self.outputs.iter().zip(outputs).enumerate() {
            let Some(lent) = lent.as_ref().filter(|_| port.rows.bytes > 0) else { continue };
            let end = PortIndex::Output(index);
            match self.held(port, lent, &held, false) {
                Some(stored) => {
                    held.insert(stored, end);
                    needed.insert(stored);
                }
                None => {
                    needed.insert(port.rows.stored);
                    ends.push((index, port, lent));
                }
            }
        }
        let live = self.live(&mut needed, &provided);
        for (index, port, lent) in moved {
            if needed.contains(&port.rows.stored) {
                let bytes = lent.arrangement.bytes(&port.shape);
                let from = Spot::Lent { end: PortIndex::Input(index), offset: 0, bytes };
                wired.steps.push(self.moved(&port.shape, lent.arrangement, from, true, port.rows)?);
            }
        }
        for step in live {
            let replaced = self.steps[step].iter().enumerate().filter_map(|(place, operand)| {
                let operand = (*operand)?;
                let end = *held.get(&operand.part.stored)?;
                Some((place, Spot::Lent { end, offset: operand.part.offset, bytes: operand.bytes }))
            });
            wired.steps.push(WiredStep::Own { step, replaced: replaced.collect() });
        }
        for (index, port, lent) in ends {
            self.store(&mut wired, &held, (index, port, lent))?;
        }
        Ok(wired)
    }

    /// The steps that make what is needed, in their order; adds what they read to it.
    fn live(&self, needed: &mut BTreeSet<Stored>, provided: &BTreeSet<Stored>) -> Vec<usize> {
        let mut live = Vec::new();
        for step in (0..self.steps.len()).rev() {
            if self.writes(step).any(|stored| needed.contains(&stored) && !provided.contains(&stored)) {
                needed.extend(self.steps[step].iter().flatten().map(|operand| operand.part.stored));
                live.push(step);
            }
        }
        live.reverse();
        live
    }

    /// Where a part lies.
    fn spot(held: &Held, part: Part) -> Spot {
        match held.get(&part.stored) {
            Some(&end) => Spot::Lent { end, offset: part.offset, bytes: part.bytes },
            None => Spot::Stored(part),
        }
    }

    /// A kernel between the rows of a port, `own`, and a buffer in another arrangement.
    fn moved(
        &self,
        shape: &Shape,
        arrangement: Arrangement,
        lent: Spot,
        inward: bool,
        own: Part,
    ) -> Result<WiredStep> {
        let launch = self.change(shape, arrangement, inward)?;
        let own = Spot::Stored(own);
        let (from, to) = if inward { (lent, own) } else { (own, lent) };
        Ok(WiredStep::Move { launch, from, to })
    }

    /// The kernel that makes rows of f32 of an arrangement, or the arrangement of such rows.
    fn change(&self, shape: &Shape, arrangement: Arrangement, inward: bool) -> Result<Box<Launch>> {
        let Arrangement { layout, dtype } = arrangement;
        let types = if inward { (dtype, DType::F32) } else { (DType::F32, dtype) };
        match (layout, dtype) {
            (Layout::C4, _) => {
                let precision = if dtype == DType::F16 { Precision::F16Storage } else { Precision::F32 };
                let (from, to) = if inward { (Layout::C4, Layout::Nhwc) } else { (Layout::Nhwc, Layout::C4) };
                self.plan(&ConvertOp::new(*shape, from, to, precision)?)
            }
            // Rows are maps of four channels as well, whose last pixel ends beyond them.
            (_, DType::F16) => self.plan(&ConvertOp::storage(vectors(shape), types.0, types.1)?),
            (_, _) => self.plan(&CopyOp::new(*shape, 0, *shape)?),
        }
    }

    fn plan(&self, op: &dyn Op) -> Result<Box<Launch>> {
        let choice = untuned(op, WorkGroup::Table, &self.limits)?;
        Ok(Box::new(op.plan(&choice, &self.limits)?))
    }

    /// A kernel that copies rows, from where they lie.
    fn copy(&self, held: &Held, part: Part, shape: &Shape) -> Result<(Spot, Box<Launch>)> {
        let bytes = self.bytes[part.stored];
        let whole = Part { stored: part.stored, offset: 0, bytes };
        let elements = (bytes / 4) as usize;
        let op = CopyOp::new(Shape::nhwc(1, 1, 1, elements), (part.offset / 4) as usize, *shape)?;
        Ok((Self::spot(held, whole), self.plan(&op)?))
    }

    /// Steps that give an application's buffer the rows of an output.
    fn store(
        &self,
        wired: &mut Wired,
        held: &Held,
        (output, port, lent): (usize, &WiringPort, &Lent),
    ) -> Result<()> {
        let bytes = lent.arrangement.bytes(&port.shape);
        let (end, steps) = (PortIndex::Output(output), &mut wired.steps);
        let own = !held.contains_key(&port.rows.stored);
        if !lent.bindable && own {
            wired.copied.push((end, Spot::Stored(port.rows)));
            return Ok(());
        }
        let scratch = Spot::Scratch { output, bytes: port.rows.bytes };
        if !lent.bindable {
            let (from, launch) = self.copy(held, port.rows, &port.shape)?;
            steps.push(WiredStep::Move { launch, from, to: scratch });
            wired.copied.push((end, scratch));
            return Ok(());
        }
        let to = Spot::Lent { end, offset: 0, bytes };
        if lent.arrangement.is_rows() {
            let (from, launch) = self.copy(held, port.rows, &port.shape)?;
            steps.push(WiredStep::Move { launch, from, to });
            return Ok(());
        }
        // What begins where no binding may, or ends before a whole vector, is copied first.
        let aligned = port.rows.offset.is_multiple_of(self.limits.binding_alignment.max(16));
        if aligned && own && self.is_whole(&port.rows) {
            steps.push(self.moved(&port.shape, lent.arrangement, to, false, port.rows)?);
            return Ok(());
        }
        let (from, launch) = self.copy(held, port.rows, &port.shape)?;
        steps.push(WiredStep::Move { launch, from, to: scratch });
        let launch = self.change(&port.shape, lent.arrangement, false)?;
        steps.push(WiredStep::Move { launch, from: scratch, to });
        Ok(())
    }
}

/// What the kernel of a step is given, for its operands that are stored values.
fn operands(launch: &Launch, sources: &[OperandMemory]) -> Vec<Option<WiringOperand>> {
    let operand = |(binding, source): (&crate::emit::Binding, &OperandMemory)| match source {
        OperandMemory::Constant(_) => None,
        OperandMemory::Stored(part) => {
            let least = match binding.least {
                Least::Bytes(bytes) => bytes,
                _ => 0,
            };
            Some(WiringOperand { part: *part, access: binding.access, bytes: part.bytes.max(least) })
        }
    };
    launch.spec.interface.bindings.iter().zip(sources).map(operand).collect()
}
