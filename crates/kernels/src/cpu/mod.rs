//! What the ops' CPU kernels are made of, in f32: what a machine without a GPU runs.
//!
//! Each op has a kernel in its own folder (`ops/<op>/cpu.rs`), made once from its shapes and constants
//! and run many times on host slices in the op's public layout. The op's precision is not looked at:
//! storage and arithmetic are f32.
//!
//! | module | what |
//! |---|---|
//! | `panels` | a constant right operand, packed once |
//! | `shelf` | constants that were packed, for other extents |
//! | `micro` | the micro-kernel that multiplies rows with it |
//! | `products` | sums of products of vectors at regular distances |
//! | `bytes` | sums of products of bytes |
//! | `product` | the matrix product of two operands that change from run to run |
//! | `tail` | bias, activation and residual |
//! | `arch` | which vectors the machine has |
//! | `aligned` | values that begin where a cache line does |
//! | `blocks`, `tile` | how work is cut into blocks that fit a core's cache |
//! | `workers` | who works on a run, and that they do not sleep meanwhile |
//!
//! Bias, activation and residual are applied before the sums
//! leave their registers, or while the block is in that cache.

pub mod aligned;
pub(crate) mod arch;
pub(crate) mod blocks;
pub mod bytes;
#[cfg(test)]
mod counted;
pub(crate) mod finish;
pub(crate) mod micro;
pub(crate) mod panels;
pub(crate) mod product;
pub(crate) mod products;
pub mod shelf;
pub(crate) mod tail;
pub(crate) mod tile;
pub mod workers;

use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::host::HostTensor;
use shelf::Shelf;
use std::borrow::Cow;
use std::fmt;

/// The values of an input that is the same in each run, which are converted to words when somebody asks for them.
#[derive(Debug)]
pub struct Held<'a>(&'a HostTensor);

impl<'a> Held<'a> {
    /// Makes them of a tensor.
    pub const fn new(tensor: &'a HostTensor) -> Self {
        Held(tensor)
    }

    /// How many words they are.
    pub(crate) fn count(&self) -> usize {
        self.0.dims().elements() * self.0.dtype().word().words()
    }

    /// The words.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub(crate) fn words(&self) -> Result<Cow<'a, [f32]>> {
        self.0.words()
    }
}

/// An op of concrete shapes with its constants laid out, to run on the CPU as often as wanted.
pub trait CpuKernel: fmt::Debug + Send + Sync {
    /// Told before the first run that an input has these values in each run. A kernel may lay them out for itself, and returns
    /// whether it has: then runs give it no values of that input.
    ///
    /// # Errors
    /// If there is no memory for them.
    fn hold(&mut self, _operand: Operand, _values: &Held<'_>, _shelf: Shelf<'_>) -> Result<bool> {
        Ok(false)
    }

    /// Reads the inputs and writes the outputs, all in the op's public layout.
    ///
    /// # Errors
    /// If one is missing, not wanted, or of another length than the op says.
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()>;
}

/// The input that is `operand`, if it is given.
pub(crate) fn given<'a>(inputs: &[(Operand, &'a [f32])], operand: Operand) -> Option<&'a [f32]> {
    inputs.iter().find(|(own, _)| *own == operand).map(|(_, values)| *values)
}

/// The input that is `operand`.
pub(crate) fn input<'a>(
    op: &'static str,
    inputs: &[(Operand, &'a [f32])],
    operand: Operand,
) -> Result<&'a [f32]> {
    given(inputs, operand).ok_or_else(|| missing(op, operand))
}

/// The output that is `operand`.
pub(crate) fn output<'a>(
    op: &'static str,
    outputs: &'a mut [(Operand, &mut [f32])],
    operand: Operand,
) -> Result<&'a mut [f32]> {
    let own = outputs.iter_mut().find(|(own, _)| *own == operand);
    own.map(|(_, values)| &mut **values).ok_or_else(|| missing(op, operand))
}

fn missing(op: &'static str, operand: Operand) -> Error {
    Error::input(format!("{op} {}", operand.name()), "none", "values")
}

/// Refuses a slice of another length than the shapes say.
pub(crate) fn check_len(op: &'static str, what: &str, found: usize, wanted: usize) -> Result<()> {
    if found == wanted {
        return Ok(());
    }
    Err(Error::input(format!("{op} {what}"), format!("{found} values"), format!("{wanted}")))
}
