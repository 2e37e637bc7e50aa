//! One way to run an op, and what it is launched with.

use crate::emit::{Folded, KernelSpec, Scalar};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::limits::Limits;
use std::fmt;

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

    /// The choice with feature maps in `layout`.
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
