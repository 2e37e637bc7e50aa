//! What every op offers to sessions, tests, benches and the tuner.

use super::effort::Effort;
use super::halves::Magnitudes;
use super::kernel::Ordinary;
use super::operands::{OperandInfo, Operands};
use super::reference::Reference;
use crate::cpu::CpuKernel;
use crate::dtype::Precision;
use crate::emit::{Folded, KernelSpec, Operand, Scalar};
use crate::error::{Error, Result};
use crate::layout::{Form, Layout};
use crate::limits::Limits;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// One way to run an op: which kernel, how much each invocation computes, and the work-group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Choice {
    /// The kernel variant: the name of its text.
    pub variant: &'static str,
    /// Outputs per invocation along x, y and z of the grid. What the axes are, each op says.
    pub tile: [u32; 3],
    /// Invocations per work-group along x, y and z.
    pub work_group: [u32; 3],
    /// How the values lie in memory: feature maps as [`Layout::C4`] in buffers or [`Layout::Image2d`] in
    /// images, and [`Layout::Nhwc`] for rows. C4 for ops that have one form for each operand, for which it
    /// has no meaning.
    pub layout: Layout,
}

impl Choice {
    /// A choice whose feature maps lie in buffers.
    ///
    /// ```
    /// use diptych::{Choice, SessionOptions};
    ///
    /// // The kernel of one node by hand; `Session::steps` prints those that were chosen.
    /// let choice = Choice::new("direct", [1, 1, 1], [8, 4, 1]);
    /// let options = SessionOptions { choices: [("stem".to_owned(), choice)].into(), ..Default::default() };
    /// # let _ = options;
    /// ```
    pub const fn new(variant: &'static str, tile: [u32; 3], work_group: [u32; 3]) -> Self {
        Choice { variant, tile, work_group, layout: Layout::C4 }
    }

    /// A choice with values in the first layout that the variant offers.
    #[doc(hidden)]
    pub fn first(op: &dyn Op, variant: &'static str, tile: [u32; 3], work_group: [u32; 3]) -> Self {
        let layout = op.layouts(variant).first().copied().unwrap_or(Layout::C4);
        Choice { variant, tile, work_group, layout }
    }

    /// The same kernel with feature maps in `layout`.
    ///
    /// ```
    /// use diptych::{Choice, Layout};
    ///
    /// let choice = Choice::new("direct", [1, 1, 1], [8, 4, 1]).with_layout(Layout::Image2d);
    /// assert_eq!(choice.layout, Layout::Image2d);
    /// ```
    #[must_use]
    pub const fn with_layout(self, layout: Layout) -> Self {
        Choice { layout, ..self }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [tx, ty, tz] = self.tile;
        let [x, y, z] = self.work_group;
        let images = if self.layout == Layout::C4 { String::new() } else { format!(" {}", self.layout) };
        write!(f, "{}{images} tile {tx}x{ty}x{tz} work-group ({x},{y},{z})", self.variant)
    }
}

/// A kernel and what it is launched with.
#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    /// The kernel.
    pub spec: KernelSpec,
    /// Values of the interface's scalar parameters, in its order.
    pub params: Vec<Scalar>,
    /// Invocations along x, y and z that have work; the launch rounds up to whole work-groups and
    /// the kernel returns early beyond them.
    pub grid: [u32; 3],
}

impl Launch {
    /// Work-groups along x, y and z.
    pub fn groups(&self) -> [u32; 3] {
        match &self.spec.folded {
            Some(folded) => folded.launched(),
            None => groups(self.spec.work_group, self.grid),
        }
    }
}

fn groups(work_group: [u32; 3], grid: [u32; 3]) -> [u32; 3] {
    std::array::from_fn(|axis| grid[axis].div_ceil(work_group[axis]))
}

/// How a grid is launched that has more work-groups along an axis than a device launches; `None` for others.
pub(super) fn folded(work_group: [u32; 3], grid: [u32; 3], limits: &Limits) -> Option<Folded> {
    let groups = groups(work_group, grid);
    let beyond = groups.iter().zip(limits.max_groups).any(|(&groups, most)| groups > most);
    if beyond { Folded::new(groups, limits.max_groups) } else { None }
}

/// Kept to the crate: kernels run without checks as an op's plan says, so that a plan must be right.
pub trait Sealed {}

/// An op applied to concrete shapes.
///
/// The trait is sealed: only this crate's ops implement it.
pub trait Op: Sealed + fmt::Debug + Send + Sync + 'static {
    /// The op's name: that of its folders.
    fn name(&self) -> &'static str;

    /// Itself, for a rule that is about one op ([`Op::stack`]).
    fn as_any(&self) -> &dyn Any;

    /// What it reads and writes, in the order of a kernel's arguments: what is written is the last.
    fn operands(&self) -> Vec<OperandInfo>;

    /// In which form the kernel of `choice` reads or writes `operand`; `None` for constants, which are
    /// packed for it.
    fn form(&self, operand: Operand, choice: &Choice) -> Option<Form>;

    /// The result in f64, term by term, with its bound.
    ///
    /// # Errors
    /// If an operand is missing, not wanted, or of another length than the op says.
    fn oracle(&self, operands: &Operands<'_>) -> Result<Reference>;

    /// The oracle's result for some of the destination's rows ([`OperandInfo::shape`]), counted from 0.
    ///
    /// # Errors
    /// Those of [`Op::oracle`].
    fn oracle_rows(&self, operands: &Operands<'_>, rows: &[usize]) -> Result<Reference> {
        let output = self.operands().into_iter().next_back();
        Ok(self.oracle(operands)?.rows(rows, output.map_or(1, |output| output.shape.c)))
    }

    /// The oracle's result, found quickly: values and bound may be those of the CPU's kernels, and
    /// [`super::expected_tolerance`] takes their error into account.
    ///
    /// # Errors
    /// Those of [`Op::oracle`].
    fn expected(&self, operands: &Operands<'_>) -> Result<Reference> {
        self.oracle(operands)
    }

    /// Whether the kernels of `variant` sum other terms than the op's own, as Winograd's do.
    fn sums_otherwise(&self, _variant: &str) -> bool {
        false
    }

    /// `reference` with the bound of such a kernel; as it is, for the others.
    ///
    /// # Errors
    /// Those of [`Op::oracle`].
    fn reference_of(
        &self,
        _variant: &str,
        _operands: &Operands<'_>,
        reference: Reference,
    ) -> Result<Reference> {
        Ok(reference)
    }

    /// The op on the CPU with its constants laid out once. It computes in f32 whatever the precision.
    ///
    /// # Errors
    /// If a constant is missing, not wanted, or of another length than the op says; or if there is
    /// nothing to do on the CPU ([`Op::cpu_obstacle`]).
    fn cpu(&self, constants: &Operands<'_>) -> Result<Box<dyn CpuKernel>>;

    /// All that the op is, in words: of two ops with the same words one does for the other. `None` where a function
    /// that has no words is a part of it.
    fn words(&self) -> Option<String> {
        None
    }

    /// Why the CPU does not run this op, if so.
    fn cpu_obstacle(&self) -> Option<&'static str> {
        None
    }

    /// Why no GPU runs this op, if so: a session on one computes it on the CPU.
    fn device_obstacle(&self) -> Option<&'static str> {
        None
    }

    /// The same op in another precision.
    fn with_precision(&self, precision: Precision) -> Arc<dyn Op>;

    /// The precision that it has in a network that asks for `wanted`.
    fn network_precision(&self, wanted: Precision) -> Precision {
        wanted
    }

    /// Whether its values may be stored in halves as far as rounding goes: it has kernels for them, and does not
    /// magnify what rounding changes as an exponential, a quotient or an index does.
    fn halves(&self) -> bool {
        false
    }

    /// The largest magnitude that its results can have, given those of its inputs and its constants.
    fn reach(&self, _inputs: &Magnitudes<'_>, _constants: &Operands<'_>) -> f64 {
        f64::INFINITY
    }

    /// The op that computes the results of `parts`, of which `self` is the first, at once: they are ops
    /// of the same input, and each of its constants is the parts' constants one after the other, zeros
    /// where a part has none. Its output has the parts' channels one after the other, those of each part
    /// followed by zeros up to a multiple of `multiple`. `None` if they cannot be stacked.
    fn stack(&self, _parts: &[&dyn Op], _multiple: usize) -> Option<Arc<dyn Op>> {
        None
    }

    /// Where each input lies in the output as `choice` stores it, in elements (lanes beyond the channels
    /// included), if the output is its inputs one behind the other: then who writes an input may write it
    /// there, and no kernel runs.
    fn joins(&self, _choice: &Choice) -> Option<Vec<(Operand, usize)>> {
        None
    }

    /// The layout of its feature maps that the tuner's record names where a choice says C4.
    fn record_layout(&self) -> Layout {
        Layout::C4
    }

    /// Why the tuner does not measure its kernels, if so: the table's choice is used.
    fn untunable(&self) -> Option<&'static str> {
        None
    }

    /// The problem in one line of words, such as `n1 h9 w9 c1024 o1024 bias relu6`: all that
    /// decides which kernels run and how long they take, but for the op's name, the precision and
    /// the layout. The same for equal problems in every version of the crate.
    fn problem_key(&self) -> String;

    /// Storage and arithmetic.
    fn precision(&self) -> Precision;

    /// Floating-point operations of one run, a multiply and an add counting two.
    fn flops(&self) -> u64;

    /// Every (variant, tile) that the op offers for these shapes, the default first. [`Op::fits`] says
    /// whether a device can run one.
    fn space(&self, limits: &Limits) -> Vec<(&'static str, [u32; 3])>;

    /// The grid extents, in invocations, of a variant and tile: what a work-group covers.
    fn grid(&self, variant: &str, tile: [u32; 3]) -> [u32; 3];

    /// The work-groups that a kernel is made for, the default first; empty if the tables for
    /// ordinary kernels serve it.
    fn work_groups(&self, _variant: &str, _tile: [u32; 3]) -> Vec<[u32; 3]> {
        Vec::new()
    }

    /// The work-group of a kernel that is made for none.
    fn ordinary(&self, _variant: &str) -> Ordinary {
        Ordinary::Workload
    }

    /// How long `choice` takes, for kernels of which it can be estimated, in a unit of the op's own:
    /// an untuned node takes the least, among them. Matrix products say it, whose kernels were measured
    /// against each other; an op that says it is not asked for its [`Op::effort`].
    fn estimate(&self, _choice: &Choice, _limits: &Limits) -> Option<f64> {
        None
    }

    /// Whether a session that measured nothing may run `variant` for speed's sake. Any kernel may be
    /// asked for by name, and tuned.
    fn untuned(&self, _variant: &str, _limits: &Limits) -> bool {
        true
    }

    /// The layouts that the feature maps of a variant may have, C4 first. [`Op::fits`] says
    /// whether a device can run one.
    fn layouts(&self, _variant: &str) -> &'static [Layout] {
        &[Layout::C4]
    }

    /// The layout that distinguishes `variant` from the op's other kernels in a list of candidates.
    fn place(&self, _variant: &str) -> Layout {
        Layout::C4
    }

    /// How many ordinary invocations keep a device as busy as those of `choice`.
    fn counted(&self, choice: &Choice) -> u64 {
        self.grid(choice.variant, choice.tile).iter().map(|&extent| u64::from(extent)).product()
    }

    /// Its kernels are kept busy by an invocation where others need so many.
    fn share(&self) -> u64 {
        1
    }

    /// Slices of four output channels (columns, for a matrix): what the work-group tables are
    /// indexed by.
    fn dst_depth(&self) -> u32;

    /// What `choice` asks of a device, as if it fitted; `None` where it was not counted. Convolutions say it,
    /// and one model of devices makes times of it.
    fn effort(&self, _choice: &Choice, _limits: &Limits) -> Option<Effort> {
        None
    }

    /// Whether `choice` can run on a device with these limits.
    ///
    /// # Errors
    /// [`Error::Reject`] with the broken constraint and its values.
    fn fits(&self, choice: &Choice, limits: &Limits) -> Result<()>;

    /// The kernel and launch of `choice`.
    ///
    /// # Errors
    /// Those of [`Op::fits`].
    fn plan(&self, choice: &Choice, limits: &Limits) -> Result<Launch>;

    /// Lays out a constant operand (weights, bias, slope) as `choice`'s kernel reads it; its
    /// work-group makes no difference. `data` is in the op's public layout.
    ///
    /// # Errors
    /// If the op has no such operand.
    fn pack(&self, choice: &Choice, operand: Operand, data: &[f32]) -> Result<Vec<f32>>;
}

/// The limits that every work-group must keep.
pub(crate) fn check_work_group(label: &str, work_group: [u32; 3], limits: &Limits) -> Result<()> {
    let reject = |reason: String| Err(Error::Reject { kernel: label.to_owned(), reason });
    let invocations = work_group.iter().map(|&extent| u64::from(extent)).product::<u64>();
    if invocations == 0 {
        return reject(format!("work-group {work_group:?} is empty"));
    }
    if invocations > u64::from(limits.max_invocations) {
        return reject(format!(
            "work-group {work_group:?} has {invocations} invocations, the device allows {}",
            limits.max_invocations
        ));
    }
    for axis in 0..3 {
        if work_group[axis] > limits.max_work_group[axis] {
            return reject(format!(
                "work-group {work_group:?} is {} along axis {axis}, the device allows {}",
                work_group[axis], limits.max_work_group[axis]
            ));
        }
    }
    Ok(())
}

/// The limits of a grid whose work-groups are launched as they are.
pub(crate) fn check_axes(label: &str, work_group: [u32; 3], grid: [u32; 3], limits: &Limits) -> Result<()> {
    for (axis, (groups, most)) in groups(work_group, grid).into_iter().zip(limits.max_groups).enumerate() {
        if groups > most {
            return Err(Error::Reject {
                kernel: label.to_owned(),
                reason: format!("{groups} work-groups along axis {axis}, the device allows {most}"),
            });
        }
    }
    Ok(())
}

/// The limits of a grid that may be launched in lines.
pub(super) fn check_grid(label: &str, work_group: [u32; 3], grid: [u32; 3], limits: &Limits) -> Result<()> {
    if folded(work_group, grid, limits).is_some() || check_axes(label, work_group, grid, limits).is_ok() {
        return Ok(());
    }
    let groups = groups(work_group, grid);
    let [x, y, _] = limits.max_groups;
    Err(Error::Reject {
        kernel: label.to_owned(),
        reason: format!("a grid of {groups:?} work-groups, the device launches {x} by {y} at most"),
    })
}
