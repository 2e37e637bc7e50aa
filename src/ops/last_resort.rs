//! What runs where a device has too few registers for any of an op's kernels and tiles.

use super::bound::BoundKernel;
use super::defined::Bound;
use super::definition::Definition;
use super::plan::Choice;
use crate::limits::Limits;

impl<O: Definition> Bound<'_, O> {
    /// Whether none of the op's kernels and tiles that an untuned session may run wants fewer registers than so many: one that
    /// spills is better than none.
    pub(super) fn wants_fewest(&self, wanted: u32, choice: &Choice, limits: &Limits) -> bool {
        let kernels = O::kernels()
            .iter()
            .filter(|kernel| kernel.layouts().contains(&choice.layout) && kernel.untuned(self.op, limits));
        let fewer = |bound: &Bound<'_, O>, other: &Choice| {
            let others = bound.kernel.registers(bound.op, other, limits);
            others.is_none_or(|others| others.wanted < wanted) && bound.fits_otherwise(other, limits)
        };
        let mut bounds = kernels.map(|&kernel| Bound { op: self.op, kernel });
        !bounds.any(|bound| {
            bound.offers(limits).iter().any(|offer| {
                let mut groups = bound.work_groups(offer.tile);
                if groups.is_empty() {
                    groups.push(choice.work_group);
                }
                groups
                    .into_iter()
                    .any(|group| fewer(&bound, &bound.choice(offer.tile, group).with_layout(choice.layout)))
            })
        })
    }
}
