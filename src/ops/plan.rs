//! What every op offers to sessions, tests, benches and the tuner.

use super::effort::Effort;
use crate::dtype::Precision;
use crate::emit::{KernelSpec, Operand, Scalar};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::limits::Limits;
use std::fmt;

/// One way to run an op: which kernel, how much each invocation computes, and the work-group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Choice {
    /// The kernel variant: the name of its templates.
    pub variant: &'static str,
    /// Outputs per invocation along x, y and z of the grid. What the axes are, each op says.
    pub tile: [u32; 3],
    /// Invocations per work-group along x, y and z.
    pub work_group: [u32; 3],
    /// How the feature maps lie in memory: [`Layout::C4`] in buffers, [`Layout::Image2d`] in images.
    /// C4 for ops without feature maps, which it tells nothing about.
    pub layout: Layout,
}

impl Choice {
    /// A choice whose feature maps lie in buffers.
    pub const fn new(variant: &'static str, tile: [u32; 3], work_group: [u32; 3]) -> Self {
        Choice { variant, tile, work_group, layout: Layout::C4 }
    }

    /// The same kernel with feature maps in `layout`.
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
        std::array::from_fn(|axis| self.grid[axis].div_ceil(self.spec.work_group[axis]))
    }
}

/// An oracle's answer, in the order of the destination's logical elements (NHWC, or row-major).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reference {
    /// The result in f64.
    pub value: Vec<f64>,
    /// For each result a bound on the size of what was summed: the sum of the absolute values of
    /// all terms, bias included, before the activation.
    pub magnitude: Vec<f64>,
    /// For each result a bound on the error that its terms bring along, where they were computed
    /// themselves; empty where they were given.
    pub carried: Vec<f64>,
    /// The number of terms summed.
    pub terms: usize,
}

/// An op applied to concrete shapes.
pub trait Op: fmt::Debug + Send + Sync {
    /// The op's name: that of its folders.
    fn name(&self) -> &'static str;

    /// The problem in one line of words, such as `n1 h9 w9 c1024 o1024 bias relu6`: all that
    /// decides which kernels run and how long they take, but for the op's name, the precision and
    /// the layout. The same for equal problems in every version of the crate.
    fn problem_key(&self) -> String;

    /// Storage and arithmetic.
    fn precision(&self) -> Precision;

    /// Floating-point operations of one run, a multiply and an add counting two.
    fn flops(&self) -> u64;

    /// Every (variant, tile) that the op offers for these shapes, the default first. Whether a
    /// device can run one is [`Op::fits`]'s answer.
    fn space(&self, limits: &Limits) -> Vec<(&'static str, [u32; 3])>;

    /// The grid extents, in invocations, of a variant and tile: what a work-group covers.
    fn grid(&self, variant: &'static str, tile: [u32; 3]) -> [u32; 3];

    /// The work-groups that a kernel is made for, the default first; empty if the tables for
    /// ordinary kernels serve it.
    fn work_groups(&self, _variant: &'static str, _tile: [u32; 3]) -> Vec<[u32; 3]> {
        Vec::new()
    }

    /// Whether a session that measured nothing may run `variant` for speed's sake. Any kernel may be
    /// asked for by name, and tuned.
    fn untuned(&self, _variant: &str, _limits: &Limits) -> bool {
        true
    }

    /// The layouts that the feature maps of a variant may have, C4 first. Whether a device can run
    /// one is [`Op::fits`]'s answer.
    fn layouts(&self, _variant: &'static str) -> &'static [Layout] {
        &[Layout::C4]
    }

    /// Slices of four output channels (columns, for a matrix): what the work-group tables are
    /// indexed by.
    fn dst_depth(&self) -> u32;

    /// What `choice` asks of a device, as if it fitted; `None` where nobody counted.
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

/// The limits that every choice must keep.
pub(crate) fn check_work_group(
    label: &str,
    work_group: [u32; 3],
    grid: [u32; 3],
    limits: &Limits,
) -> Result<()> {
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
        let groups = grid[axis].div_ceil(work_group[axis]);
        if groups > limits.max_groups[axis] {
            return reject(format!(
                "{groups} work-groups along axis {axis}, the device allows {}",
                limits.max_groups[axis]
            ));
        }
    }
    Ok(())
}
