//! Values in other forms and places than they were written in: steps that move them, and rows that others hold.

use super::builder::Builder;
use super::by::By;
use super::known::CompiledKernels;
use super::step::{OperandMemory, Part, Step, Work};
use super::stored_as::{Kind, stored_bytes};
use crate::dtype::{DType, Precision};
use crate::error::{Error, Result};
use crate::graph::{State, Value};
use crate::layout::Form;
use crate::limits::Limits;
use crate::ops::Op;
use crate::ops::convert::ConvertOp;
use crate::ops::copy::CopyOp;
use crate::tune::work_group::{WorkGroup, untuned};

/// How many times as long a move may take with a kernel that is compiled: moves are a small part of a run.
const MOST_TIMES_OF_MOVES: f64 = 2.0;

/// What makes a value in the form `from` one in the form `to`, in a network of this precision, and what it does in words.
pub(super) fn conversion(from: Kind, to: Kind, precision: Precision) -> Result<(ConvertOp, String)> {
    let maps = if from.0.is_rows() { to } else { from };
    let precision = match maps.2 {
        dtype if dtype == precision.storage() => precision,
        DType::F16 => Precision::F16Storage,
        _ => Precision::F32,
    };
    Ok(match (from.0.layout(), to.0.layout()) {
        (one, other) if one == other => {
            let cast = if from.0.is_rows() { ConvertOp::of_rows } else { ConvertOp::storage };
            (cast(maps.1, from.2, to.2)?, format!("{} to {}", from.2, to.2))
        }
        (one, other) => {
            let op = ConvertOp::new(maps.1, one, other, precision)?;
            let halves = [from.0, to.0].contains(&Form::HalfRows);
            (if halves { op.with_half_rows() } else { op }, format!("{one} to {other}"))
        }
    })
}

/// A step that moves a value from one place to the other by the kernel of the rule, or one that is compiled.
pub(super) fn moving(
    name: String,
    op: &dyn Op,
    [source, target]: [Part; 2],
    limits: &Limits,
    known: Option<&CompiledKernels>,
) -> Result<Step> {
    let mut choice = untuned(op, WorkGroup::Table, limits)?;
    if let Some(known) = known
        && let Some((compiled, _)) = known.instead(op, &choice, MOST_TIMES_OF_MOVES, limits)?
    {
        choice = compiled;
    }
    let launch = op.plan(&choice, limits)?;
    let sources = vec![OperandMemory::Stored(source), OperandMemory::Stored(target)];
    let work = Work::Device { launch: Box::new(launch), sources };
    let (by, from) = (By::Rule, By::Rule.to_string());
    Ok(Step {
        name,
        op: op.name(),
        flops: 0,
        inserted: true,
        by,
        from,
        choice: Some(choice),
        unit: None,
        work,
    })
}

impl Builder<'_, '_> {
    /// A step that changes the form of `value`.
    pub(super) fn convert(
        &mut self,
        value: Value,
        (from, source): (Kind, Part),
        (to, target): (Kind, Part),
    ) -> Result<()> {
        let (op, what) = conversion(from, to, self.precision)?;
        let name = format!("{} ({what})", self.network.name(value)?);
        let step = self.single(name, &op, source, target)?;
        // What is the same at each run is converted once.
        if self.network.constant(value).is_some() {
            self.program.setup.push(step);
        } else {
            self.program.steps.push(step);
        }
        Ok(())
    }

    /// What rows of `value` are made of: what it is stored as in f32, if it is, and not what was rounded for another reader.
    pub(super) fn source_of_rows(&self, value: Value) -> Result<(Kind, Part)> {
        let of = |rounded: bool| {
            let stored = |form| move |kind: &Kind| kind.0 == form && (kind.2 == DType::F16) == rounded;
            Form::ALL.iter().find_map(|&form| self.place(value, &stored(form)))
        };
        let unknown = || Error::Internal(format!("value {} is read before it is written", value.index()));
        of(false).or_else(|| of(true)).ok_or_else(unknown)
    }

    /// A step that moves a value, between buffers.
    pub(super) fn single(&self, name: String, op: &dyn Op, source: Part, target: Part) -> Result<Step> {
        moving(name, op, [source, target], &self.program.limits, self.known)
    }

    /// The rows in which `value` or what it shows lies, or those from which elements of `dtype` are made: of a constant
    /// in f32 those of f32.
    pub(super) fn stored_rows(&self, value: Value, dtype: DType) -> Result<Kind> {
        let of = self.network.resolve(value).of;
        let halves = |kind: &Kind| kind.0 == Form::HalfRows;
        let (form, shape, word) = self.rows(value)?;
        let rows = self.place(of, &|kind| kind.0 == form).is_some();
        let constant = self.network.constant(of).is_some();
        Ok(match self.place(of, &halves) {
            Some((kind, _)) if !rows && (dtype == DType::F16 || !constant) => (kind.0, shape, kind.2),
            _ => (form, shape, word),
        })
    }

    /// Whether a unit reads `value`, or a state becomes it.
    fn is_read(&self, value: Value) -> bool {
        let next = |state: &State| state.next == Some(value);
        self.network.graph.states().iter().any(next)
            || self
                .network
                .readers(self.network.resolve(value).of)
                .any(|reader| self.network.units()[reader].reads().any(|read| read == value))
    }

    /// The rows of a view in `form`, which another value holds, or of a constant.
    pub(super) fn rows_elsewhere(&mut self, value: Value, form: Form) -> Result<Option<Part>> {
        let halves = form == Form::HalfRows;
        let in_form =
            |(rows, shape, word)| if halves { (form, shape, DType::F16) } else { (rows, shape, word) };
        if let Some(tensor) = self.network.constant(value) {
            let tensor = tensor.clone();
            let rows = in_form(self.rows(value)?);
            return Ok(Some(self.store(value, rows, Some(&tensor))));
        }
        let alias = self.network.resolve(value);
        if alias.of == value {
            return Ok(None);
        }
        let rows = in_form(self.rows(alias.of)?);
        let whole = self.read(alias.of, rows)?;
        let kind = in_form(self.rows(value)?);
        let (bytes, each) = (stored_bytes(kind) as u64, if halves { 2 } else { 4 });
        let part = Part { stored: whole.stored, offset: whole.offset + each * alias.offset as u64, bytes };
        let place = |builder: &mut Self, part| builder.places.entry(value).or_default().push((kind, part));
        // An output is read from where it lies; a kernel is given a buffer from where one may begin.
        if part.offset.is_multiple_of(self.program.limits.binding_alignment.max(1)) || !self.is_read(value) {
            place(self, part);
            return Ok(Some(part));
        }
        let op = CopyOp::new(rows.1, alias.offset, kind.1)?.of(kind.2);
        let own = self.own(stored_bytes(kind), self.network.leaves(alias.of));
        let name = format!("{} (copy)", self.network.name(value)?);
        let step = self.single(name, &op, whole, own)?;
        self.program.steps.push(step);
        place(self, own);
        Ok(Some(own))
    }
}
