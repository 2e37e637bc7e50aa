//! `y[i] = f(x0[p(i)], x1[q(i)], ...)` with reductions within: one kernel that is composed of what nodes compute
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x0` ... `x6` | any | rows |
//! | `y`, `y1` ... `y3` | any | rows |
//!
//! A [`Nest`] says what is computed: reads of elements at places that follow from those along the axes of the result and of
//! loops, functions of them, and reductions along axes, of which others may follow. Moves, functions of each element,
//! reductions, softmax and normalisations are nests of one or a few nodes; what two of them compute one behind the other is a
//! nest again ([`Nest::after`]). Oracle, bound, texts and the CPU's kernel follow from the nest alone.
//!
//! A nest may write several results, each of which has an element for each place along the same axes.
//!
//! Sums are in f32 in every precision. A mean is a sum and a quotient.

mod beside;
mod checks;
mod compose;
mod cpu;
mod estimate;
mod examples;
mod examples_of_bytes;
mod flat;
mod index;
#[cfg(test)]
mod index_tests;
mod integers;
mod joins;
mod kept;
mod key;
mod maps;
mod matrices;
mod nest;
mod node;
mod of_op;
mod of_product;
mod operator;
mod oracle;
mod parts;
mod plan;
mod prologue;
mod reads;
mod rolled;
mod row_text;
mod rows;
mod scalars;
mod term;
#[cfg(test)]
mod tests;
mod text;
mod tidy;
mod words;
mod written;

pub use compose::{ReadFrom, SourceAt, Sources};
pub use cpu::STEP as CPU_STEP;
pub(super) use cpu::{LoopsKernel, kernel};
pub(super) use examples::{NUMBERS, examples};
pub(super) use index::{Index, Mirror};
pub use matrices::{Matrices, MatrixIndex, MatrixStrides};
pub use nest::Nest;
pub(super) use nest::{GatherAxis, Guard, Node, NodeId, Nodes, aligned, element};
pub(super) use of_op::AsNest;
pub(super) use of_product::RowsWithin;
pub use operator::Loops;
pub use parts::InParts;
use written::LastText;

use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::error::Result;
use std::sync::Arc;

const OP: &str = "loops";

/// The operand that a result is.
const fn result_operand(result: usize) -> Operand {
    if result == 0 { Operand::Dst } else { Operand::Result(result as u8) }
}

/// What an op computes, as a nest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpNest {
    /// The nest.
    pub nest: Nest,
    /// Which operand of the op each of its sources is.
    pub operands: Vec<Operand>,
    /// Which operands are stored in halves where the op stores those.
    pub halves: OperandSet,
}

impl OpNest {
    /// The nest whose sources are these operands of an op; what the op stores in halves is all of them.
    pub(super) const fn new(nest: Nest, operands: Vec<Operand>) -> Self {
        OpNest { nest, operands, halves: OperandSet::ALL }
    }

    /// What it is of operands `Arg(0)`, `Arg(1)`, ...
    pub(super) fn of_arguments(nest: Nest) -> Self {
        let operands = (0..nest.sources.len()).map(|place| Operand::Arg(place as u8)).collect();
        OpNest::new(nest, operands)
    }

    /// What it is with halves in operands of `halves` alone.
    #[must_use]
    pub(super) fn with_halves(self, halves: OperandSet) -> Self {
        OpNest { halves, ..self }
    }
}

/// A nest with a precision.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LoopsOp {
    nest: Arc<Nest>,
    /// The operand that each source is.
    sources: Vec<Operand>,
    /// The nest with its operands as kernels have them.
    stored: Arc<Nest>,
    /// Which operands are stored in halves where a network stores those: halves do not hold every number.
    halves: OperandSet,
    /// Which operands are feature maps in slices of four channels.
    maps: OperandSet,
    precision: Precision,
    text: LastText,
}

/// Some operands of a nest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OperandSet {
    /// A bit for each source.
    pub sources: u32,
    /// A bit for each result.
    pub results: u32,
}

impl OperandSet {
    /// All of them.
    pub const ALL: OperandSet = OperandSet { sources: u32::MAX, results: u32::MAX };
    /// None of them.
    pub const NONE: OperandSet = OperandSet { sources: 0, results: 0 };

    const fn has_source(self, source: usize) -> bool {
        source < 32 && self.sources & (1 << source) != 0
    }

    const fn has_result(self, result: usize) -> bool {
        result < 32 && self.results & (1 << result) != 0
    }

    fn key(self, name: &str) -> String {
        match self {
            OperandSet::NONE => String::new(),
            OperandSet { sources, results } => format!(" {name}{sources:b}y{results:b}"),
        }
    }
}

impl LoopsOp {
    /// The op that computes `nest`, which was checked when it was made, with operands of `halves` in halves and those of
    /// `maps` in slices of four channels.
    ///
    /// # Errors
    /// If there are no kernels of the nest with its operands so.
    pub(super) fn new(
        nest: Arc<Nest>,
        halves: OperandSet,
        maps: OperandSet,
        precision: Precision,
    ) -> Result<Self> {
        let stored = match maps {
            OperandSet::NONE => Arc::clone(&nest),
            _ => Arc::new(nest.in_maps(maps)?),
        };
        let stored = stored.with_rows_apart().map_or(stored, Arc::new);
        let sources = (0..nest.sources.len()).map(|place| Operand::Arg(place as u8)).collect();
        let (precision, text) = (precision.with_f32_sums(), LastText::default());
        Ok(LoopsOp { nest, sources, stored, halves, maps, precision, text })
    }

    /// The operand that source `place` is.
    fn source(&self, place: usize) -> Operand {
        self.sources.get(place).copied().unwrap_or(Operand::Arg(place as u8))
    }

    fn results(&self) -> usize {
        1 + self.nest.further.len()
    }

    /// Whether a kernel takes all scalars that its text names.
    fn has_scalars_for_all(&self) -> bool {
        if self.stored.reduces() { rows::has_scalars_for_all(self) } else { flat::has_scalars_for_all(self) }
    }

    /// The type in which a source is stored.
    fn stored_source(&self, source: usize) -> DType {
        match self.nest.types.get(source) {
            Some(DType::F32) if self.halves.has_source(source) => self.precision.storage(),
            Some(&word) => word,
            None => DType::F32,
        }
    }

    /// The type in which a result is stored.
    fn stored_result(&self, result: usize) -> DType {
        match self.nest.result_type(result) {
            DType::F32 if self.halves.has_result(result) => self.precision.storage(),
            word => word,
        }
    }

    /// The precision of its kernels: of f32 where no operand is of halves.
    fn precision_of_rows(&self) -> Precision {
        let stored = (0..self.nest.sources.len()).map(|source| self.stored_source(source));
        let results = (0..self.results()).map(|result| self.stored_result(result));
        let halves = stored.chain(results).any(|dtype| dtype == DType::F16);
        if halves { self.precision } else { Precision::F32 }
    }
}
