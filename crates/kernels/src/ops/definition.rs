//! How an op is defined.

use super::halves::{Reach, Reaches};
use super::kernel::Kernel;
use super::loops::OpNest;
use super::op::Op;
use super::operands::{OperandInfo, Operands};
use super::plan::Choice;
use super::reference::Reference;
use super::spec::{self, Params};
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dtype::Precision;
use crate::emit::{Binding, Epilogue, Operand};
use crate::error::{Error, Result};
use crate::layout::{Form, Layout};
use crate::limits::Limits;
use crate::shape::Shape;
use std::fmt;
use std::sync::Arc;

/// An op of concrete shapes as its folder defines it. The methods without a comment are those of
/// [`Op`], and of its kernels.
pub(crate) trait Definition: fmt::Debug + Clone + Send + Sync + 'static {
    /// The op's name: that of its folders.
    const NAME: &'static str;

    /// Whether its values lie in rows: its record names no layout of feature maps.
    const ROWS: bool = false;

    /// Whether its values may be stored in halves, as [`Op::halves`] says.
    const HALVES: bool = false;

    /// Whether its kernels can call a function of what they are about to store: their texts have an epilogue before each store
    /// of the result.
    const CALLS_FUNCTION: bool = false;

    /// Its kernels are kept busy by an invocation where others need so many.
    const SHARE: u64 = 1;

    /// Whether each output channel is a sum over input channels. The lanes beyond the output's channels are then
    /// sums with weights of zero, which are NaN where the input is infinite or NaN.
    const MIXES_CHANNELS: bool = false;

    /// Why the tuner does not measure its kernels, if so.
    const UNTUNABLE: Option<&'static str> = None;

    /// Why the CPU does not run it, if so.
    const CPU_OBSTACLE: Option<&'static str> = None;

    /// Its kernels. An untuned session prefers those whose tiles come first ([`super::kernel::Offer`]).
    fn kernels() -> &'static [&'static dyn Kernel<Self>];

    fn packing(&self) -> Option<String> {
        None
    }

    fn problem_key(&self) -> String;

    fn precision(&self) -> Precision;

    fn flops(&self) -> u64;

    fn dst_depth(&self) -> u32;

    fn operands(&self) -> Vec<OperandInfo>;

    /// The form of its values where a kernel has no other: rows, or feature maps in the layout of `choice`.
    fn form(&self, _operand: Operand, choice: &Choice) -> Form {
        match choice.layout {
            _ if Self::ROWS => Form::Rows,
            Layout::Image2d => Form::Image,
            Layout::Nhwc => Form::Rows,
            _ => Form::C4,
        }
    }

    /// The feature maps that its kernels may have in images; none of an op that has none in images.
    fn maps(&self) -> Option<[Shape; 2]> {
        None
    }

    /// The buffers and images of its kernels, unless one says otherwise: its operands, each in its form.
    fn bindings(&self, choice: &Choice) -> Vec<Binding> {
        spec::bindings(self, choice)
    }

    /// The scalars of its kernels, unless one says otherwise.
    fn params(&self, _choice: &Choice) -> Params {
        Vec::new()
    }

    /// A constant as its kernels read it, unless one says otherwise: as it is.
    fn pack(&self, _choice: &Choice, _operand: Operand, data: &[f32]) -> Vec<f32> {
        data.to_vec()
    }

    /// Whether a session that measured nothing may run its kernels for speed's sake, unless one says otherwise.
    fn untuned(&self, _limits: &Limits) -> bool {
        true
    }

    /// What happens to a sum before it is stored.
    fn epilogue(&self) -> Epilogue {
        Epilogue::default()
    }

    /// What happens to the sum of an op in two halves in between.
    fn between(&self) -> Option<Epilogue> {
        None
    }

    /// The result of operands that were checked, exactly.
    fn oracle(&self, operands: &Operands<'_>) -> Reference;

    /// The exact result of some rows.
    fn oracle_rows(&self, operands: &Operands<'_>, rows: &[usize]) -> Reference {
        let output = self.operands().into_iter().next_back();
        self.oracle(operands).rows(rows, output.map_or(1, |output| output.shape.c))
    }

    /// The result of operands that were checked, found quickly.
    fn expected(&self, operands: &Operands<'_>) -> Result<Reference> {
        Ok(self.oracle(operands))
    }

    fn cpu(&self, constants: &Operands<'_>, shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>>;

    fn halves(&self) -> bool {
        Self::HALVES
    }

    fn reach(&self, _inputs: &Reaches<'_>, _constants: &Operands<'_>) -> Reach {
        Reach::ALL
    }

    fn is_singular(&self, _inputs: &Reaches<'_>) -> bool {
        false
    }

    fn stack(&self, _parts: &[&dyn Op], _multiple: usize) -> Option<Self> {
        None
    }

    /// Numbers as `operand` usually has them, made of `noise` ([`Op::usual`]).
    fn usual(&self, _operand: Operand, noise: Vec<f32>) -> Vec<f32> {
        noise
    }

    fn in_place(&self) -> Option<(Arc<dyn Op>, Operand)> {
        None
    }

    fn nest(&self) -> Option<OpNest> {
        None
    }

    /// Why the kernels of its nest are not for feature maps in slices of four channels, if so.
    fn obstacle_in_maps(&self, _limits: &Limits) -> Option<String> {
        None
    }

    /// What it computes, as a nest of which it has kernels.
    fn nest_of_kernels(&self) -> Option<OpNest> {
        self.nest()
    }

    fn others(&self) -> Vec<(Operand, Box<dyn Op>)> {
        Vec::new()
    }

    fn joins(&self, _choice: &Choice) -> Option<Vec<(Operand, usize)>> {
        None
    }

    /// Why the tuner does not measure these kernels, if so.
    fn untunable(&self) -> Option<&'static str> {
        Self::UNTUNABLE
    }
}

/// What only the CPU computes, unless it was left out.
pub(super) fn computed<T>(op: &str, compute: impl FnOnce() -> Result<T>) -> Result<T> {
    if cfg!(feature = "cpu") {
        return compute();
    }
    Err(Error::without_cpu(format!("{op} on the CPU")))
}
