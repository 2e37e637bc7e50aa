//! `y[i] = f(x0[i], x1[i], ...)`: one function of each element, or a chain of them as one kernel
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x0` ... `x5` | any that fit each other by numpy's rule | C4 or rows on the device |
//! | `y` | what they have together | as the inputs |
//!
//! Numpy's rule: shapes are aligned at the last axis, and an extent of 1 goes with any other. In C4 this is
//! done where the shapes fit as feature maps: of higher ranks the leading axes are one there.
//!
//! Functions are those of IEEE 754 and C for infinities, and a NaN stays: also in `relu`, `clamp`, `sign`, and in a
//! minimum or maximum where one of two is NaN. `pow` is 1 where the exponent is 0 or the base 1, comparisons with NaN are
//! false, and whatever is not 0 is true, NaN too. Texts find a NaN by its bits, because WGSL lets an implementation assume
//! that there is none; arithmetic with one is left to the device, and lavapipe, PoCL and NVIDIA's drivers keep it. Numbers
//! below the smallest normal one may count as 0 on a GPU, and a zero may lose its sign.

mod broadcast;
mod cpu;
mod examples;
mod idioms;
mod interval;
mod nest;
mod operator;
mod oracle;
mod plan;
mod program;
mod reach;
mod table;
mod tolerance;
mod unit;

pub(super) use broadcast::{Broadcast, dims_of};
pub(super) use examples::{NUMBERS, examples};
pub(super) use interval::Interval;
pub use operator::Elementwise;
pub(super) use oracle::applied;
pub use program::{MAX_INPUTS, MAX_STEPS, Program, Source, Step};
pub use table::Function;
pub(super) use unit::Unit;

use crate::dims::Dims;
use crate::dtype::Precision;
use crate::error::{Error, Result};

const OP: &str = "elementwise";

/// A program for inputs of concrete shapes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ElementwiseOp {
    program: Program,
    inputs: Vec<Dims>,
    output: Dims,
    broadcast: Broadcast,
    precision: Precision,
}

impl ElementwiseOp {
    /// Checks that the shapes fit each other.
    ///
    /// # Errors
    /// If there are not as many as the program reads, or they do not fit.
    pub fn new(program: Program, inputs: &[Dims], precision: Precision) -> Result<Self> {
        if inputs.len() != program.inputs() {
            return Err(Error::shape(
                OP,
                format!("{} inputs", inputs.len()),
                format!("the {} of {}", program.inputs(), program.key()),
            ));
        }
        for input in inputs {
            input.checked_or_empty(OP)?;
        }
        let output = broadcast::dims_of(OP, inputs)?;
        let broadcast = Broadcast::new(&output, inputs);
        Ok(ElementwiseOp { program, inputs: inputs.to_vec(), output, broadcast, precision })
    }

    /// The dimensions of the result.
    pub fn output(&self) -> Dims {
        self.output
    }
}
