//! What an op offers to sessions, tests, benches and the tuner.

use super::bound::{BoundKernel, Kernels};
use super::halves::{Reach, Reaches};
use super::loops::OpNest;
use super::operands::{OperandInfo, Operands};
use super::plan::{Choice, Launch};
use super::reference::Reference;
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::layout::Layout;
use crate::limits::Limits;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// Kept to the crate: kernels run without checks as an op's plan says, so that a plan must be right.
pub trait Sealed {}

/// How much of an op's result is wanted, and how it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer<'a> {
    /// All of it in f64, term by term, with its bound.
    Exact,
    /// Some of the destination's rows in f64, with their bound ([`OperandInfo::shape`]), counted from 0.
    Rows(&'a [usize]),
    /// All of it, found quickly: values and bound may be those of the CPU's kernels, and
    /// [`super::expected_tolerance`] takes their error into account.
    Quick,
}

/// What an op may be wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To run on the CPU.
    Cpu,
    /// To run on a GPU: a session on one has the CPU compute what cannot.
    Device,
    /// To have its kernels measured by the tuner: the table's choice is used where they are not.
    Tuning,
}

/// An op applied to concrete shapes.
///
/// What is asked of one of its kernels, the kernel answers: [`Op::kernels`]. The trait is sealed: only this crate's
/// ops implement it.
pub trait Op: Sealed + fmt::Debug + Send + Sync + 'static {
    /// The op's name: that of its folders.
    fn name(&self) -> &'static str;

    /// Itself, for a rule that is about one op ([`Op::stack`]).
    fn as_any(&self) -> &dyn Any;

    /// All that the op is, in words: of two ops with the same words one does for the other. `None` where a function
    /// that has no words is a part of it.
    fn words(&self) -> Option<String> {
        None
    }

    /// All that its kernels pack constants by, in words, beside the constants, the kernel and the tile: of two ops with the
    /// same words one's packed constants do for the other, whatever the extents of their maps. `None` where that was not
    /// looked at.
    fn packing(&self) -> Option<String> {
        None
    }

    /// The problem in one line of words, such as `n1 h9 w9 c1024 o1024 bias relu6`: all that
    /// decides which kernels run and how long they take, but for the op's name, the precision and
    /// the layout. The same for equal problems in every version of the crate.
    fn problem_key(&self) -> String;

    /// What it reads and writes, in the order of a kernel's arguments: what is written is the last.
    fn operands(&self) -> Vec<OperandInfo>;

    /// Storage and arithmetic.
    fn precision(&self) -> Precision;

    /// Floating-point operations of one run, a multiply and an add counting two.
    fn flops(&self) -> u64;

    /// The result for `operands`.
    ///
    /// # Errors
    /// If an operand is missing, not wanted, or of another length than the op says.
    fn reference(&self, operands: &Operands<'_>, answer: Answer<'_>) -> Result<Reference>;

    /// The op on the CPU with its constants laid out once. It computes in f32 whatever the precision.
    ///
    /// # Errors
    /// If a constant is missing, not wanted, or of another length than the op says; or if there is
    /// nothing to do on the CPU ([`Op::obstacle`]).
    fn cpu(&self, constants: &Operands<'_>) -> Result<Box<dyn CpuKernel>> {
        self.cpu_on(constants, Shelf::default())
    }

    /// [`Op::cpu`], which takes what ops of the same constants and other extents have packed, and leaves what it packs to them.
    ///
    /// # Errors
    /// If a constant is missing, not wanted, or of another length than the op says; or if there is nothing to do on the CPU.
    fn cpu_on(&self, constants: &Operands<'_>, shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>>;

    /// Why it does not serve `purpose`, if so.
    fn obstacle(&self, _purpose: Purpose) -> Option<&'static str> {
        None
    }

    /// Whether its values may be stored in halves as far as rounding goes: it has kernels for them, and does not
    /// magnify what rounding changes as an exponential, a quotient or an index does.
    fn halves(&self) -> bool {
        false
    }

    /// Where its results lie, given where its inputs lie and its constants, as if nothing were rounded.
    fn reach(&self, _inputs: &Reaches<'_>, _constants: &Operands<'_>) -> Reach {
        Reach::ALL
    }

    /// Whether what it reads may lie where a result is infinite or not a number: at a divisor of 0, or beyond where a function
    /// is defined.
    fn is_singular(&self, _inputs: &Reaches<'_>) -> bool {
        false
    }

    /// The op that computes the results of `parts`, of which `self` is the first, at once: they are ops
    /// of the same input, and each of its constants is the parts' constants one after the other, zeros
    /// where a part has none. Its output has the parts' channels one after the other, those of each part
    /// followed by zeros up to a multiple of `multiple`. `None` if they cannot be stacked.
    fn stack(&self, _parts: &[&dyn Op], _multiple: usize) -> Option<Arc<dyn Op>> {
        None
    }

    /// The op that computes the same by changing what it is given as the operand with it, where there is one: it has no
    /// such operand, and finds its values where it writes.
    fn in_place(&self) -> Option<(Arc<dyn Op>, Operand)> {
        None
    }

    /// Numbers as `operand` usually has them, made of as many in [-1, 1): what an op is timed and checked with.
    fn usual(&self, _operand: Operand, noise: Vec<f32>) -> Vec<f32> {
        noise
    }

    /// The layout of its feature maps that the tuner's record names where a choice says C4.
    fn record_layout(&self) -> Layout {
        Layout::C4
    }

    /// Whether its kernels can call a function of what they are about to store ([`followed`](super::followed)).
    fn calls_function(&self) -> bool {
        false
    }

    /// What it computes as a nest of loops; none of what is no such nest.
    fn nest(&self) -> Option<OpNest> {
        None
    }

    /// For each result but the last operand: which operand it is, and an op that computes it alone of the same operands.
    fn others(&self) -> Vec<(Operand, Box<dyn Op>)> {
        Vec::new()
    }

    /// Its kernels.
    fn kernels(&self) -> Kernels<'_>;

    /// Its kernel `name`.
    ///
    /// # Errors
    /// [`Error::Reject`](crate::error::Error::Reject) if it has none of this name.
    fn kernel(&self, name: &str) -> Result<Box<dyn BoundKernel + '_>>;
}

impl dyn Op {
    /// Whether `choice` can run on a device with these limits.
    ///
    /// # Errors
    /// [`Error::Reject`](crate::error::Error::Reject) with the broken constraint and its values.
    pub fn fits(&self, choice: &Choice, limits: &Limits) -> Result<()> {
        self.kernel(choice.variant)?.fits(choice, limits)
    }

    /// The text and launch of `choice`.
    ///
    /// # Errors
    /// If it does not fit.
    pub fn plan(&self, choice: &Choice, limits: &Limits) -> Result<Launch> {
        self.kernel(choice.variant)?.plan(choice, limits)
    }
}
