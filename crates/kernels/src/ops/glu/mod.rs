//! `y[i,j] = f(x[i,j], x[i,n+j])`: a gated linear unit, of rows that have its gate and what it lets through side by side
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x` | `... 2n` | rows |
//! | `y` | `... n` | rows |
//!
//! `f` is a function of two elements, such as `silu(a) b`: Dauphin et al., *Language Modeling with Gated Convolutional
//! Networks*, 2017, and Shazeer, *GLU Variants Improve Transformer*, 2020. One product makes both halves.
//!
//! NaN and infinities are what the functions make of them: see `elementwise`.

mod examples;
mod nest;
mod operator;
mod oracle;
mod rows;

pub(super) use examples::{NUMBERS, examples};
pub use operator::Glu;

use crate::dims::Dims;
use crate::dtype::Precision;
use crate::error::{Error, Result};
use crate::ops::elementwise::{ElementwiseOp, Program};

const OP: &str = "glu";

/// A gated linear unit of concrete shapes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GluOp {
    program: Program,
    /// The program as a function of two tensors.
    each: ElementwiseOp,
    /// The extents of `x` and of the result.
    src: Dims,
    dst: Dims,
    precision: Precision,
}

impl GluOp {
    /// Checks the extents; `program` is a function of two inputs: the first half of a row, and the second.
    ///
    /// # Errors
    /// If the program has another number of inputs, or rows have no halves.
    pub fn new(program: Program, src: Dims, precision: Precision) -> Result<Self> {
        src.checked_or_empty(OP)?;
        if program.inputs() != 2 {
            let found = format!("a function of {} inputs", program.inputs());
            return Err(Error::shape(OP, found, "of two: the halves of a row"));
        }
        let mut extents = src.extents().to_vec();
        match extents.last_mut() {
            Some(last) if *last > 0 && last.is_multiple_of(2) => *last /= 2,
            _ => return Err(Error::shape(OP, format!("an input of {src}"), "rows of an even extent")),
        }
        let halves = program.reads_half_rows() && program.writes_half_rows();
        let precision = if halves { precision.with_f32_sums() } else { Precision::F32 };
        let dst = Dims::new(&extents)?;
        let each = ElementwiseOp::new(program.clone(), &[dst, dst], precision)?;
        Ok(GluOp { program, each, src, dst, precision })
    }

    /// Elements of a row of the result.
    fn columns(&self) -> usize {
        self.dst.extents().last().copied().unwrap_or(1)
    }
}
