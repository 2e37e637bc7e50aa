//! About how many registers kernels want, where that is not among what they say of their effort, and what a device has.
//!
//! The counts are 32-bit registers of an invocation in f32. They were held against what seven of Mesa's compilers say
//! (`scripts/drivers`): a kernel that wants more than there are was compiled with spills by nearly all of them. Compilers
//! differ, so that a few kernels spill that are not refused here.

use super::plan::Choice;
use crate::limits::Limits;

/// What a kernel wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Registers {
    /// Of an invocation, roughly.
    pub(crate) wanted: u32,
    /// Whether invocations of a work-group wait for each other, so that all of them have theirs at a time.
    pub(crate) waits: bool,
}

impl Registers {
    /// Of a kernel with barriers.
    pub(super) fn with_barriers(wanted: u32) -> Self {
        Registers { wanted, waits: true }
    }

    /// Of a kernel whose invocations have nothing to do with each other.
    pub(super) fn alone(wanted: u32) -> Self {
        Registers { wanted, waits: false }
    }
}

/// What addresses and loops take.
const OTHERS: u32 = 16;

/// A tile of `columns` groups of four columns by `rows`, both of which are read from local memory or by neighbours: the sums,
/// and a vec4 of each row and of four terms of each group.
pub(super) fn of_product(columns: u32, rows: u32) -> u32 {
    3 * OTHERS / 2 + 4 * columns * rows + 4 * rows + 16 * columns
}

/// A tile counted by [`of_product`], for which each invocation brings so many vec4s of both operands to local memory: two are among what
/// the others of the loop take.
pub(super) fn of_staged(columns: u32, rows: u32, [loads_a, loads_b]: [u32; 2]) -> u32 {
    of_product(columns, rows) + 4 * (loads_a + loads_b).saturating_sub(2)
}

/// A tile counted by [`of_product`], whose operands of `steps` steps are under way together on the first Adreno of the series 6xx.
pub(super) fn of_steps(columns: u32, rows: u32, steps: u32, limits: &Limits) -> u32 {
    let under_way =
        if limits.family.is_early_adreno() { steps.saturating_sub(1) * (4 * rows + 16 * columns) } else { 0 };
    of_product(columns, rows) + under_way
}

/// A tile of `pixels` and `slices` in which weights come lane by lane: the sums, a vec4 of each pixel, and two weights of each
/// slice.
pub(super) fn of_pixels(pixels: u32, slices: u32) -> u32 {
    OTHERS + 4 * pixels * slices + 4 * pixels + 8 * slices
}

/// A tile of `columns` groups of four columns by `rows`, counted by [`of_pixels`], whose loop the compiler for the first Adreno of the series 6xx
/// unrolls: the loads of two turns are under way together there.
pub(super) fn of_loads(columns: u32, rows: u32, limits: &Limits) -> u32 {
    let under_way = if limits.family.is_early_adreno() { 2 * (4 * rows + 16 * columns) } else { 0 };
    of_pixels(rows, columns) + under_way
}

/// A tile of `columns` by `rows` whose weights are unpacked from words, which keeps each of them in several registers.
pub(super) fn of_unpacked(columns: u32, rows: u32) -> u32 {
    2 * OTHERS + 4 + 20 * columns * rows
}

/// A tile of `pixels` by `words` of four channels, whose operands are words of four bytes: the sums, what each pixel is read at
/// and from, and the weights of each word. Fitted to what spilled on a Mali G610 and did not on Intel's.
pub(super) fn of_bytes(pixels: u32, words: u32) -> u32 {
    3 * OTHERS / 2 + 4 * pixels * words + 5 * pixels + 5 * words
}

/// `kept` vec4s for as long as the kernel runs, beside sums of them.
pub(super) fn of_kept(kept: u32) -> u32 {
    2 * OTHERS + 4 * kept
}

/// Why a kernel that wants so many registers cannot run as `choice`, if the device is known to have fewer.
pub(super) fn obstacle(registers: Registers, choice: &Choice, limits: &Limits) -> Option<String> {
    let Registers { wanted, waits } = registers;
    let invocations = choice.work_group.iter().product();
    let most = limits.registers(invocations, waits)?;
    (wanted > most).then(|| {
        format!(
            "about {wanted} registers for an invocation, {} has {most} in a work-group of {invocations}: the others would \
             be in memory",
            limits.family
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{Family, MaliArchitecture};

    /// The fewest that anything known has: what fits there runs, and where nothing does the smallest does.
    #[test]
    fn a_video_core_has_registers_for_small_tiles_alone() {
        let limits = Limits { family: Family::VideoCore, ..Limits::webgpu() };
        let refused = |wanted| {
            obstacle(Registers::alone(wanted), &Choice::new("kernel", [1; 3], [64, 1, 1]), &limits).is_some()
        };
        assert!(refused(of_pixels(4, 1)) && !refused(of_pixels(1, 1)) && !refused(of_kept(1)));
    }

    /// What spills by the compilers of Mesa 25.0.7.
    #[test]
    fn what_spills_is_refused_and_the_next_smaller_tile_is_not() {
        let limits = |family| Limits { family, ..Limits::webgpu() };
        let adreno = limits(Family::Adreno(660));
        let mali = limits(Family::Mali(MaliArchitecture::Valhall));
        let intel = limits(Family::Intel);
        let refused = |wanted: u32, work_group: [u32; 3], limits: &Limits| {
            obstacle(Registers::with_barriers(wanted), &Choice::new("kernel", [1; 3], work_group), limits)
                .is_some()
        };
        // The `tiled` kernel of a matrix product.
        assert!(
            refused(of_product(2, 8), [8, 8, 2], &intel) && refused(of_product(2, 8), [8, 8, 4], &adreno)
        );
        assert!(
            !refused(of_product(1, 4), [8, 8, 2], &intel) && !refused(of_product(2, 8), [8, 8, 1], &adreno)
        );
        assert!(refused(of_product(2, 16), [8, 8, 1], &adreno));
        // Of small work-groups, each of which brings more.
        assert!(refused(of_staged(1, 4, [4, 4]), [2, 2, 8], &intel));
        assert!(!refused(of_staged(1, 4, [2, 2]), [4, 4, 8], &intel));
        // `micro` of a 1x1 convolution.
        assert!(refused(of_pixels(4, 2), [32, 8, 1], &mali) && !refused(of_pixels(4, 1), [32, 8, 1], &mali));
        assert!(!refused(of_pixels(4, 2), [32, 8, 1], &adreno));
        let alone = Registers::alone(of_pixels(8, 2));
        assert_eq!(obstacle(alone, &Choice::new("kernel", [1; 3], [64, 32, 1]), &adreno), None);
        // `vec4` of a matrix product.
        let early = limits(Family::Adreno(630));
        let loads = |columns, rows| Registers::alone(of_loads(columns, rows, &early));
        let square = Choice::new("vec4", [1; 3], [8, 8, 1]);
        assert!(obstacle(loads(2, 8), &square, &early).is_some());
        assert_eq!(obstacle(loads(1, 8), &square, &early), None);
        // `direct` of a product with its rows.
        let steps = |columns| of_steps(columns, 4, 2, &early);
        assert!(refused(steps(2), [17, 1, 8], &early) && !refused(steps(1), [17, 1, 8], &early));
        // `kept` of a normalisation.
        let all = [1024, 1, 1];
        assert!([&adreno, &mali, &intel].into_iter().all(|limits| refused(of_kept(9), all, limits)));
        assert!(!refused(of_kept(9), [256, 1, 1], &intel) && !refused(of_kept(1), [256, 1, 1], &mali));
        assert!(
            !refused(1000, all, &limits(Family::Unknown)) && !refused(1000, all, &limits(Family::Nvidia))
        );
    }
}
