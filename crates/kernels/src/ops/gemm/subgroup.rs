//! `subgroup`: products whose invocations share A by subgroup shuffles,
//! without local memory.
//!
//! A work-group is a row of invocations, side by side along the columns. Vulkan's page of
//! `SubgroupLocalInvocationId` says that it has no direct relation to `LocalInvocationIndex`, and that subgroups
//! are whole only under a flag that wgpu 30 does not set (`REQUIRE_FULL_SUBGROUPS`) or in SPIR-V 1.6, which it
//! does not write. So the kernel relies on neither: see its first note.

use super::GemmOp;
use super::arguments::preference;
use crate::layout::Layout;
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;

/// Groups of four columns by rows, per invocation.
const TILES: [[u32; 3]; 4] = [[1, 8, 1], [2, 8, 1], [1, 4, 1], [4, 4, 1]];

#[derive(Debug)]
pub(super) struct Subgroup;

impl Kernel<GemmOp> for Subgroup {
    fn entry(&self) -> VariantEntry {
        VariantEntry::vulkan(
            "subgroup",
            crate::emit::text!("../../../shaders/gemm/subgroup.wgsl"),
            "no OpenCL driver at hand lists cl_khr_subgroups",
        )
        .listed_as(Layout::Nhwc)
    }

    fn offers(&self, op: &GemmOp, limits: &Limits) -> Vec<Offer> {
        offers(preference::SUBGROUP, TILES.into_iter().filter(|_| self.obstacle(op, limits).is_none()))
    }

    fn grid(&self, op: &GemmOp, tile: [u32; 3]) -> [u32; 3] {
        op.grid_of(tile, [4, 1, 1])
    }

    fn obstacle(&self, op: &GemmOp, limits: &Limits) -> Option<String> {
        let none = limits.subgroup.is_none();
        let reason = "the device does not offer subgroups to this API";
        none.then(|| reason.to_owned()).or_else(|| op.vec4_obstacle())
    }

    fn choice_obstacle(&self, _op: &GemmOp, choice: &Choice, _limits: &Limits) -> Option<String> {
        let [x, y, z] = choice.work_group;
        (y * z != 1).then(|| format!("its work-groups are rows of invocations, {x} x {y} x {z} is not"))
    }

    /// Multiples of the sizes that subgroups have.
    fn work_groups(&self, _op: &GemmOp, _tile: [u32; 3]) -> Vec<[u32; 3]> {
        [[64, 1, 1], [128, 1, 1], [32, 1, 1]].to_vec()
    }

    fn constants(&self, op: &GemmOp, choice: &Choice, _limits: &Limits) -> Constants {
        op.constants(choice)
    }

    /// It runs where it was measured or asked for.
    fn untuned(&self, _op: &GemmOp, _limits: &Limits) -> bool {
        false
    }
}
