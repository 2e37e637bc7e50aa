//! Steps that move a value: into another form, or to another place.

use super::choose::RULE;
use super::kind::Kind;
use super::program::Builder;
use super::step::{Part, Source, Step, Work};
use crate::dtype::{DType, Precision};
use crate::error::Result;
use crate::graph::Value;
use crate::layout::Form;
use crate::ops::Op;
use crate::ops::convert::ConvertOp;
use crate::tune::work_group::{WorkGroup, untuned};

/// How many times as long a move may take with a kernel that is compiled: moves are a small part of a run.
const MOST_TIMES_OF_MOVES: f64 = 2.0;

impl Builder<'_, '_> {
    /// A step that changes the form of `value`.
    pub(super) fn convert(
        &mut self,
        value: Value,
        (from, source): (Kind, Part),
        (to, target): (Kind, Part),
    ) -> Result<()> {
        let maps = if from.0.is_rows() { to } else { from };
        let precision = match maps.2 {
            dtype if dtype == self.precision.storage() => self.precision,
            DType::F16 => Precision::F16Storage,
            _ => Precision::F32,
        };
        let name = self.network.name(value)?;
        let (op, name) = match (from.0.layout(), to.0.layout()) {
            (one, other) if one == other => {
                let cast = if from.0.is_rows() { ConvertOp::of_rows } else { ConvertOp::storage };
                (cast(maps.1, from.2, to.2)?, format!("{name} ({} to {})", from.2, to.2))
            }
            (one, other) => {
                let op = ConvertOp::new(maps.1, one, other, precision)?;
                let halves = [from.0, to.0].contains(&Form::HalfRows);
                (if halves { op.with_half_rows() } else { op }, format!("{name} ({one} to {other})"))
            }
        };
        let step = self.single(name, &op, source, target)?;
        // What is the same at each run is converted once.
        if self.network.constant(value).is_some() {
            self.program.setup.push(step);
        } else {
            self.program.steps.push(step);
        }
        Ok(())
    }

    /// A step that moves a value, between buffers.
    pub(super) fn single(&self, name: String, op: &dyn Op, source: Part, target: Part) -> Result<Step> {
        let limits = &self.program.limits;
        let mut choice = untuned(op, WorkGroup::Table, limits)?;
        if let Some(known) = self.known
            && let Some((compiled, _)) = known.instead(op, &choice, MOST_TIMES_OF_MOVES, limits)?
        {
            choice = compiled;
        }
        let launch = op.plan(&choice, limits)?;
        let sources = vec![Source::Stored(source), Source::Stored(target)];
        let from = RULE.to_owned();
        let work = Work::Device { launch: Box::new(launch), sources };
        Ok(Step { name, op: op.name(), flops: 0, inserted: true, from, work })
    }
}
