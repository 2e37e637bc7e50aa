//! What computes a graph on the CPU, for those who make graphs and cannot run them themselves.

use crate::error::Result;
use crate::graph::Graph;
use crate::host::HostTensor;
use crate::source::Port;
use std::fmt;

/// Makes a graph ready to be computed on the CPU.
///
/// A loader is given it: for operators of constants alone, which are computed while the file is read, and for networks that
/// run within an operator, such as the body of a loop.
pub type Prepare = fn(&Graph) -> Result<Box<dyn Prepared>>;

/// A graph that is ready to be computed on the CPU.
pub trait Prepared: fmt::Debug + Send + Sync {
    /// The graph's inputs.
    fn inputs(&self) -> &[Port];

    /// Draws the random numbers of this seed from the next computation on.
    ///
    /// # Errors
    /// If the numbers cannot be drawn.
    fn draw_by(&self, seed: u64) -> Result<()>;

    /// The outputs, in the order of the graph, for inputs by their names.
    ///
    /// # Errors
    /// If an input is missing or of other dimensions, or an operator cannot be computed.
    fn compute(&self, inputs: &[(&str, &HostTensor)]) -> Result<Vec<HostTensor>>;
}
