//! What runs where a device has too few registers for any of an op's kernels and tiles.

use super::bound::BoundKernel;
use super::defined::Bound;
use super::definition::Definition;
use super::plan::Choice;
use super::registers;
use crate::limits::Limits;

/// A work-group that leaves its invocations as many registers as any.
const SMALL: [u32; 3] = [8, 8, 1];

impl<O: Definition> Bound<'_, O> {
    /// Why registers keep `choice` from the device, if they do and another kernel or tile has them.
    pub(super) fn too_few_registers(&self, choice: &Choice, limits: &Limits) -> Option<String> {
        let wanted = self.kernel.registers(self.op, choice, limits)?;
        let reason = registers::obstacle(wanted, choice, limits)?;
        (!self.wants_fewest(wanted.wanted, choice, limits)).then_some(reason)
    }

    /// Whether every kernel and tile of the op that an untuned session may run spills, and none of them wants fewer than `wanted`
    /// registers. A kernel that spills is better than none.
    fn wants_fewest(&self, wanted: u32, choice: &Choice, limits: &Limits) -> bool {
        let kernels = O::kernels().iter().filter(|kernel| {
            kernel.entry().layouts.contains(&choice.layout) && kernel.untuned(self.op, limits)
        });
        let better = |bound: &Bound<'_, O>, other: &Choice| {
            let others = bound.kernel.registers(bound.op, other, limits);
            let better = others.is_none_or(|others| {
                others.wanted < wanted || registers::obstacle(others, other, limits).is_none()
            });
            better && bound.fits_otherwise(other, limits).is_ok()
        };
        let mut bounds = kernels.map(|&kernel| Bound { op: self.op, kernel });
        !bounds.any(|bound| {
            bound.offers(limits).iter().any(|offer| {
                let mut groups = bound.work_groups(offer.tile);
                if groups.is_empty() {
                    groups.extend([choice.work_group, SMALL]);
                }
                groups
                    .into_iter()
                    .any(|group| better(&bound, &bound.choice(offer.tile, group).with_layout(choice.layout)))
            })
        })
    }
}
