//! The geometry of `subgroup`: products whose invocations tell each other of A by subgroup shuffles,
//! without local memory.
//!
//! A work-group is a row of invocations, side by side along the columns. Vulkan's page of
//! `SubgroupLocalInvocationId` says that it has no direct relation to `LocalInvocationIndex`, and that subgroups
//! are whole only under a flag that wgpu 30 does not set (`REQUIRE_FULL_SUBGROUPS`) or in SPIR-V 1.6, which it
//! does not write. So the kernel relies on neither: see its first note.

use super::GemmOp;
use crate::limits::Limits;
use crate::ops::plan::Choice;

/// Groups of four columns by rows, per invocation.
pub(super) const TILES: [[u32; 3]; 4] = [[1, 8, 1], [2, 8, 1], [1, 4, 1], [4, 4, 1]];

/// The work-groups to try, the default first: multiples of the sizes that subgroups have.
pub(super) const WORK_GROUPS: [[u32; 3]; 3] = [[64, 1, 1], [128, 1, 1], [32, 1, 1]];

impl GemmOp {
    /// Why `subgroup` cannot serve, if it cannot.
    pub(super) fn subgroup_obstacle(&self, limits: &Limits) -> Option<String> {
        let none = limits.subgroup.is_none();
        let reason = "the device does not offer subgroups to this API";
        none.then(|| reason.to_owned()).or_else(|| self.vec4_obstacle())
    }
}

/// Why `subgroup` cannot run as `choice`, if it cannot.
pub(super) fn choice_obstacle(choice: &Choice) -> Option<String> {
    let [x, y, z] = choice.work_group;
    (y * z != 1).then(|| format!("its work-groups are rows of invocations, {x} x {y} x {z} is not"))
}
