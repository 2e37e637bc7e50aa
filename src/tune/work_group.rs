//! From a table's work-group to one that a device can launch, and the choice of an untuned node.

use super::tables;
use crate::emit::Dialect;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::limits::machine::Machine;
use crate::limits::{Family, Limits};
use crate::ops::{BoundKernel, Choice, Offered, Op, Ordinary};
use crate::sorted;
use std::sync::LazyLock;

/// Where the work-groups of a session come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum WorkGroup {
    /// The GL delegate's tables ([`tables`]), shrunk to the device's limits.
    #[default]
    Table,
    /// This size for every kernel; an error where a kernel cannot be launched with it.
    Fixed([u32; 3]),
}

/// The most invocations of a work-group that no measurement chose. A driver may compile a kernel
/// for fewer than the device's limit: NVIDIA's OpenCL says 1024 for the device and 256 for the
/// kernel. 256 is also the least that WebGPU guarantees.
const UNTUNED_INVOCATIONS: u32 = 256;

/// Halves the longest extent until the work-group keeps the device's limits, and 256 invocations.
pub fn shrink(mut size: [u32; 3], limits: &Limits) -> [u32; 3] {
    let largest = limits.max_invocations.clamp(1, UNTUNED_INVOCATIONS);
    for (extent, most) in size.iter_mut().zip(limits.max_work_group) {
        *extent = (*extent).clamp(1, most.max(1));
    }
    while size.iter().product::<u32>() > largest {
        let longest = if size[0] >= size[1] && size[0] >= size[2] {
            0
        } else if size[1] >= size[2] {
            1
        } else {
            2
        };
        size[longest] = size[longest].div_ceil(2);
    }
    size
}

/// The table's work-group for `kernel`.
///
/// The tables are made for grids of width x height x slices. A kernel whose grid is a row of
/// pixels by slices gets the same number of invocations: width and height folded into one axis.
///
/// LiteRT measured its tables on Adreno alone. Elsewhere another size takes the place of the table's where it is
/// estimated to be faster by more than a tenth, mostly because fewer of its invocations lie beyond the grid.
pub fn table(kernel: &dyn BoundKernel, tile: [u32; 3], limits: &Limits) -> [u32; 3] {
    let made_for = kernel.work_groups(tile);
    if let Some(first) = made_for.first() {
        let fits = |&&size: &&[u32; 3]| kernel.fits(&kernel.choice(tile, size), limits).is_ok();
        return *made_for.iter().find(fits).unwrap_or(first);
    }
    let size = match kernel.entry().ordinary {
        // One for all of a network's maps, so that they share a text.
        Ordinary::Folded if limits.has_lanes() => [16, 4, 1],
        Ordinary::Folded => {
            let [x, y, z] = tables::gl_conv(limits.family, kernel.dst_depth());
            [x * y, z, 1]
        }
        Ordinary::Convolution => tables::gl_conv(limits.family, kernel.dst_depth()),
        Ordinary::Size(size) => size,
        Ordinary::Workload => tables::gl_workload(limits.family, kernel.grid(tile)[2]),
    };
    let size = shrink(size, limits);
    let size = quicker_size(kernel, tile, size, limits).unwrap_or(size);
    let size = if limits.has_lanes() { within(size, kernel.grid(tile)) } else { size };
    if limits.faults.is_empty() { size } else { reshaped(kernel, tile, size, limits) }
}

/// The fewest invocations of a size that is estimated on a device of which nothing was measured.
const LEAST_INVOCATIONS: u32 = 32;

/// The size with the least estimate, if that is much less than that of `size`.
fn quicker_size(
    kernel: &dyn BoundKernel,
    tile: [u32; 3],
    size: [u32; 3],
    limits: &Limits,
) -> Option<[u32; 3]> {
    if matches!(limits.family, Family::Adreno(_)) {
        return None;
    }
    let wave = Machine::of(limits)?.wave;
    // That smaller ones lose nothing is believed where it was measured.
    let least = if limits.measured.is_some() { wave } else { wave.max(LEAST_INVOCATIONS) };
    let estimate = |size: [u32; 3]| kernel.estimate(&kernel.choice(tile, size), limits);
    let mut best = (MAX_TIME_RATIO * estimate(size)?, None);
    let deep = matches!(kernel.entry().ordinary, Ordinary::Convolution | Ordinary::Workload);
    let whole = |size: &[u32; 3]| {
        let invocations = size.iter().product::<u32>();
        (deep || size[2] == 1)
            && invocations <= UNTUNED_INVOCATIONS.min(limits.max_invocations)
            && invocations >= least
            && invocations.is_multiple_of(wave)
            && size.iter().zip(limits.max_work_group).all(|(extent, most)| *extent <= most)
    };
    for size in SIZES.iter().filter(|size| whole(size)) {
        let time = estimate(*size)?;
        if time < best.0 && kernel.fits(&kernel.choice(tile, *size), limits).is_ok() {
            best = (time, Some(*size));
        }
    }
    best.1
}

/// Powers of two along each axis, 256 invocations at most.
static SIZES: LazyLock<Vec<[u32; 3]>> = LazyLock::new(|| {
    let powers = || (0..=8).map(|power| 1_u32 << power);
    let sizes = powers().flat_map(|z| powers().flat_map(move |y| powers().map(move |x| [x, y, z])));
    sizes.filter(|size| size.iter().product::<u32>() <= UNTUNED_INVOCATIONS).collect()
});

/// Another shape of as many invocations, where a fault of the device keeps `size` from the kernel.
fn reshaped(kernel: &dyn BoundKernel, tile: [u32; 3], [x, y, z]: [u32; 3], limits: &Limits) -> [u32; 3] {
    let wider = [2, 4, 8].map(|factor| [x * factor, y / factor, z]);
    let taller = [2, 4, 8].map(|factor| [x / factor, y * factor, z]);
    let fits = |size: &[u32; 3]| kernel.fits(&kernel.choice(tile, *size), limits).is_ok();
    let all = [[x, y, z]].into_iter().chain(wider).chain(taller);
    let mut whole = all.filter(|size| size.iter().product::<u32>() == x * y * z);
    whole.find(fits).unwrap_or([x, y, z])
}

/// Halves each extent as long as a work-group covers the grid.
fn within(mut size: [u32; 3], grid: [u32; 3]) -> [u32; 3] {
    for (extent, most) in size.iter_mut().zip(grid) {
        while *extent / 2 >= most.max(1) {
            *extent /= 2;
        }
    }
    size
}

/// Invocations that keep a device busy, roughly.
fn enough_invocations(limits: &Limits) -> u64 {
    match Machine::of(limits) {
        Some(machine) => machine.busy(),
        // A vector for each of some tens of threads.
        None if limits.dialect == Dialect::Wgsl => 128,
        None => 512,
    }
}

/// What an untuned node runs, with the table's or the given work-group: the first (kernel, tile) of
/// its space that leaves the device enough invocations, or else the one with the most.
///
/// With the table's work-groups, times count as well where they can be estimated ([`BoundKernel::estimate`]). Where the order
/// of an op's kernels was measured ([`VariantEntry::ordered`](crate::ops::VariantEntry::ordered)), one that is estimated to be
/// shorter by more than a tenth takes the place of the first; of the others, the one with the least estimate runs. Each is
/// estimated with all the work-groups that it is made for.
///
/// # Errors
/// If no kernel can run; the error says why the preferred one cannot.
pub fn untuned(op: &dyn Op, work_group: WorkGroup, limits: &Limits) -> Result<Choice> {
    untuned_in(op, work_group, Layout::C4, limits)
}

/// What an untuned node runs, chosen as [`untuned`] does from the kernels whose feature maps can be in `layout`.
///
/// # Errors
/// Those of [`untuned`].
pub fn untuned_in(op: &dyn Op, work_group: WorkGroup, layout: Layout, limits: &Limits) -> Result<Choice> {
    untuned_of(op, &|kernel| kernel.untuned(limits), work_group, layout, limits)
}

/// The layouts in which a kernel of `op` can run on such a device, but for images: feature maps in C4, rows. Ops
/// whose operands have one layout each answer C4, whatever it is.
pub fn layouts(op: &dyn Op, limits: &Limits) -> Vec<Layout> {
    let can_run = |layout: &Layout| untuned_in(op, WorkGroup::Table, *layout, limits).is_ok();
    [Layout::C4, Layout::Nhwc].into_iter().filter(can_run).collect()
}

/// What an untuned node runs, chosen as [`untuned_in`] does from the kernels for which `wanted` is true.
pub(crate) fn untuned_of(
    op: &dyn Op,
    wanted: &dyn Fn(&dyn BoundKernel) -> bool,
    work_group: WorkGroup,
    layout: Layout,
    limits: &Limits,
) -> Result<Choice> {
    let kernels = op.kernels();
    let mut space = kernels.space(limits);
    space.retain(|(kernel, _)| wanted(*kernel));
    if work_group == WorkGroup::Table
        && let Some(choice) = estimated(&space, layout, limits)
    {
        return Ok(choice);
    }
    let (kernel, ruled) = filling(op, &space, work_group, layout, limits)?;
    if work_group != WorkGroup::Table {
        return Ok(ruled);
    }
    Ok(quicker(&space, kernel, &ruled, limits).unwrap_or(ruled))
}

/// The work-groups that a kernel is made for, or else the table's.
fn sizes(kernel: &dyn BoundKernel, tile: [u32; 3], limits: &Limits) -> Vec<[u32; 3]> {
    let made_for = kernel.work_groups(tile);
    if made_for.is_empty() { vec![table(kernel, tile, limits)] } else { made_for }
}

/// The choice that is estimated to be fastest, if the first kernel that can run has an estimate and no order was measured.
fn estimated(space: &[Offered<'_>], layout: Layout, limits: &Limits) -> Option<Choice> {
    let mut best: Option<(f64, Choice)> = None;
    for &(kernel, tile) in space.iter().filter(|(kernel, _)| kernel.serves(layout)) {
        let choices = sizes(kernel, tile, limits).into_iter();
        let choices = choices.map(|size| kernel.choice(tile, size).with_layout(layout));
        for choice in choices.filter(|choice| kernel.fits(choice, limits).is_ok()) {
            match kernel.estimate(&choice, limits).filter(|_| !kernel.entry().ordered) {
                Some(time) if best.is_none_or(|(least, _)| time < least) => best = Some((time, choice)),
                Some(_) => {}
                // This op, or this precision, has another rule.
                None if best.is_none() => return None,
                None => break,
            }
        }
    }
    best.map(|(_, choice)| choice)
}

/// The first that leaves the device enough invocations.
fn filling<'k>(
    op: &dyn Op,
    space: &[Offered<'k>],
    work_group: WorkGroup,
    layout: Layout,
    limits: &Limits,
) -> Result<(&'k dyn BoundKernel, Choice)> {
    let enough = enough_invocations(limits);
    let mut best = None;
    let mut most = None;
    let mut refused = Vec::new();
    for &(kernel, tile) in space {
        if !kernel.serves(layout) {
            refused.push(format!("{}_{}: no feature maps in {layout}", op.name(), kernel.name()));
            continue;
        }
        let work_group = match work_group {
            WorkGroup::Table => table(kernel, tile, limits),
            WorkGroup::Fixed(size) => size,
        };
        let choice = kernel.choice(tile, work_group).with_layout(layout);
        if let Err(error) = kernel.fits(&choice, limits) {
            refused.push(error.to_string());
            continue;
        }
        let invocations = kernel.counted(&choice);
        if invocations >= enough {
            return Ok((kernel, choice));
        }
        if most.is_none_or(|most| invocations > most) {
            (most, best) = (Some(invocations), Some((kernel, choice)));
        }
    }
    best.ok_or_else(|| {
        let reason = match &refused[..] {
            [] => "no kernel serves these shapes on this device".to_owned(),
            [one] => one.clone(),
            [first, others @ ..] => {
                format!("no kernel can run: {first}; nor can {} other kernels and tiles", others.len())
            }
        };
        Error::unsupported(op.name(), reason)
    })
}

/// How much shorter an estimate must be to count: they are not better than that.
const MAX_TIME_RATIO: f64 = 0.9;

/// The choice with the least estimate, if that is less than that of `ruled`, a choice of `kernel`.
fn quicker(
    space: &[Offered<'_>],
    kernel: &dyn BoundKernel,
    ruled: &Choice,
    limits: &Limits,
) -> Option<Choice> {
    let enough = MAX_TIME_RATIO * kernel.estimate(ruled, limits)?;
    let mut ranked = Vec::new();
    for &(kernel, tile) in space {
        if !kernel.serves(ruled.layout) {
            continue;
        }
        for work_group in sizes(kernel, tile, limits) {
            let choice = kernel.choice(tile, work_group).with_layout(ruled.layout);
            let shorter = kernel.estimate(&choice, limits).filter(|&clocks| clocks < enough);
            ranked.extend(shorter.map(|clocks| (clocks, kernel, choice)));
        }
    }
    sorted::sort(&mut ranked, |(one, ..), (other, ..)| one.total_cmp(other));
    let fitting = ranked.into_iter().find(|(_, kernel, choice)| kernel.fits(choice, limits).is_ok());
    fitting.map(|(.., choice)| choice)
}

/// How many times as long as `ruled` another choice of the same kernel takes, by what the rule goes by: estimates,
/// or the invocations that keep the device busy.
pub(crate) fn times_as_long(
    kernel: &dyn BoundKernel,
    ruled: &Choice,
    other: &Choice,
    limits: &Limits,
) -> f64 {
    let estimates = [ruled, other].map(|choice| kernel.estimate(choice, limits));
    if let [Some(ruled), Some(other)] = estimates {
        return other / ruled;
    }
    let [ruled, other] = [ruled, other].map(|choice| filled(kernel, choice, limits));
    other / ruled
}

/// The time of a choice where nothing else is known: what each invocation computes and loads, by the invocations that are
/// launched, or by those that keep the device busy.
fn filled(kernel: &dyn BoundKernel, choice: &Choice, limits: &Limits) -> f64 {
    let of_each = choice.tile.iter().product::<u32>() + choice.tile.iter().sum::<u32>();
    let launched = kernel.grid(choice.tile).into_iter().zip(choice.work_group).map(|(extent, size)| {
        let [extent, size] = [extent, size].map(|extent| u64::from(extent.max(1)));
        extent.next_multiple_of(size) as f64 / extent as f64
    });
    let invocations = kernel.counted(choice) as f64 * launched.product::<f64>();
    f64::from(of_each) * invocations.max(enough_invocations(limits) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Precision;
    use crate::ops::conv2d::{Conv2d, Conv2dOp};
    use crate::ops::gemm::{Gemm, GemmOp};
    use crate::ops::pointwise::{Pointwise, PointwiseOp};
    use crate::shape::{Padding, Shape};

    fn node_27() -> PointwiseOp {
        let (input, weights) = (Shape::nhwc(1, 9, 9, 1024), Shape::nhwc(1024, 1, 1, 1024));
        PointwiseOp::new(input, weights, &Pointwise::default(), true, false, Precision::F32)
            .expect("the article's node")
    }

    #[test]
    fn a_work_group_is_shrunk_along_its_longest_extent() {
        let limits = Limits::webgpu();
        assert_eq!(shrink([32, 32, 1], &limits), [16, 16, 1]);
        assert_eq!(shrink([4, 4, 64], &limits), [4, 4, 16]);
        assert_eq!(shrink([8, 4, 8], &limits), [8, 4, 8]);
        assert_eq!(shrink([0, 1, 1], &limits), [1, 1, 1]);
    }

    #[test]
    fn the_table_covers_folded_grids_with_as_many_invocations() {
        let op = node_27();
        let adreno = Limits { family: Family::Adreno(640), ..Limits::webgpu() };
        let of = |name, tile, limits| table(&*op.kernel(name).expect("a kernel"), tile, limits);
        assert_eq!(of("direct", [1, 1, 1], &adreno), [2, 8, 16]);
        assert_eq!(of("micro", [4, 2, 1], &adreno), [16, 16, 1]);
        // Of (8,4,8), which the table has for all others, 58 % of the invocations would lie beyond 9 x 9.
        let [x, y, z] = of("direct", [1, 1, 1], &Limits::webgpu());
        let covered = 9_u32.next_multiple_of(x) * 9_u32.next_multiple_of(y);
        assert!(covered <= 120 && x * y * z >= 32, "{x} {y} {z}");
    }

    #[test]
    fn a_large_gpu_splits_the_sums_of_a_small_map_and_a_cpu_driver_takes_large_tiles() {
        let op = node_27();
        let on = |family| {
            let limits = Limits { family, local_memory: 49152, compute_units: Some(132), ..Limits::webgpu() };
            let choice = untuned(&op, WorkGroup::Table, &limits).expect("a choice");
            (choice.variant, choice.tile)
        };
        assert_eq!(on(Family::CpuDriver), ("micro", [8, 2, 1]));
        let pocl = Limits { family: Family::CpuDriver, ..Limits::opencl() };
        let choice = untuned(&op, WorkGroup::Table, &pocl).expect("a choice");
        assert_eq!((choice.variant, choice.tile), ("micro", [4, 2, 1]));
        // 27 x 256 tiles of three pixels by one slice, each sum in 16 parts: 110592 invocations.
        assert_eq!(on(Family::Nvidia), ("split", [3, 1, 16]));
    }

    #[test]
    fn a_cpu_driver_has_no_barriers_and_no_idle_lanes_in_wgsl() {
        let on = |limits: &Limits, side, channels| {
            let (input, weights) =
                (Shape::nhwc(1, side, side, channels), Shape::nhwc(channels, 1, 1, channels));
            let op = PointwiseOp::new(input, weights, &Pointwise::default(), true, false, Precision::F32);
            let choice = untuned(&op.expect("an op"), WorkGroup::Table, limits).expect("a choice");
            (choice.variant, choice.tile, choice.work_group)
        };
        let lanes = Limits { family: Family::CpuDriver, ..Limits::webgpu() };
        assert_eq!(on(&lanes, 14, 128), ("micro", [8, 2, 1], [16, 4, 1]));
        // A classifier: the sum of the only pixel is not split.
        let (variant, _, work_group) = on(&lanes, 1, 256);
        assert_ne!(variant, "split");
        assert_eq!(work_group[0], 1);
        // Where nothing is known of the device, invocations count.
        assert_eq!(on(&Limits::webgpu(), 1, 256).0, "split");
        assert_eq!(within([16, 4, 8], [5, 4, 0]), [8, 4, 1]);
    }

    #[test]
    fn estimates_take_a_staged_kernel_for_eight_images_and_leave_one_alone() {
        let h200 = |base: Limits| Limits {
            family: Family::Nvidia,
            local_memory: 49152,
            compute_units: Some(132),
            ..base
        };
        let of = |base: &Limits, n, side, channels| {
            let (input, weights) =
                (Shape::nhwc(n, side, side, channels), Shape::nhwc(channels, 1, 1, channels));
            let op = PointwiseOp::new(input, weights, &Pointwise::default(), true, false, Precision::F32);
            let choice = untuned(&op.expect("an op"), WorkGroup::Table, &h200(base.clone()));
            choice.map(|choice| (choice.variant, choice.tile)).expect("a choice")
        };
        for base in [Limits::webgpu(), Limits::opencl()] {
            assert_eq!(of(&base, 1, 9, 1024), ("split", [3, 1, 16]));
            assert_eq!(of(&base, 1, 17, 512), ("split", [3, 1, 8]));
            assert_eq!(of(&base, 8, 9, 1024).0, "tiled");
        }
        for (side, channels) in [(17, 512), (33, 256), (65, 128)] {
            assert_eq!(of(&Limits::opencl(), 8, side, channels).0, "tiled", "{side} {channels}");
        }
        // Asked for a size, the rule is not asked.
        let fixed = untuned(&node_27(), WorkGroup::Fixed([4, 4, 16]), &h200(Limits::webgpu()));
        assert_eq!(fixed.expect("a choice").work_group, [4, 4, 16]);
    }

    #[test]
    fn a_large_gpu_stages_products_in_smaller_tiles_the_fewer_there_are() {
        let on = |family, n| {
            let limits = Limits { family, local_memory: 49152, ..Limits::webgpu() };
            let choice = untuned(&GemmOp::packed(n, n, n), WorkGroup::Table, &limits).expect("a choice");
            (choice.variant, choice.tile, choice.work_group)
        };
        assert_eq!(on(Family::Nvidia, 4096), ("tiled", [2, 16, 1], [16, 16, 1]));
        assert_eq!(on(Family::Nvidia, 2048), ("tiled", [2, 16, 1], [16, 16, 1]));
        let (variant, [columns4, rows, splits], _) = on(Family::Nvidia, 1024);
        assert!(variant == "tiled" && columns4 * rows <= 16 && splits == 2, "{columns4} {rows} {splits}");
        let (variant, [columns4, rows, splits], _) = on(Family::Nvidia, 512);
        assert!(variant == "tiled" && columns4 * rows <= 8 && splits >= 4, "{columns4} {rows} {splits}");
        assert_eq!(on(Family::CpuDriver, 512), ("vec4", [1, 8, 1], [8, 8, 1]));
        let limits = Limits { family: Family::CpuDriver, compute_units: Some(2), ..Limits::opencl() };
        let choice = untuned(&GemmOp::packed(512, 512, 512), WorkGroup::Table, &limits).expect("a choice");
        assert_eq!((choice.variant, choice.tile), ("wide", [4, 6, 1]));
    }

    #[test]
    fn a_large_gpu_reads_b_for_few_rows_in_invocations_enough() {
        let on = |base: Limits, m| {
            let limits =
                Limits { family: Family::Nvidia, local_memory: 49152, compute_units: Some(132), ..base };
            let choice =
                untuned(&GemmOp::packed(m, 4096, 4096), WorkGroup::Table, &limits).expect("a choice");
            (choice.variant, choice.tile, choice.work_group)
        };
        for base in [Limits::webgpu(), Limits::opencl()] {
            assert_eq!(on(base.clone(), 1), ("thin", [1, 1, 64], [4, 1, 64]));
            assert_eq!(on(base.clone(), 8).0, "thin");
            assert_eq!(on(base.clone(), 16).0, "thin");
            assert_eq!(on(base, 64).0, "tiled");
        }
    }

    #[test]
    fn layers_share_the_terms_of_halves_where_a_product_has_few_rows_and_columns() {
        use crate::limits::MatrixUnit;
        let limits = Limits {
            family: Family::Nvidia,
            local_memory: 49152,
            native_half: true,
            max_invocations: 1024,
            matrix_unit: Some(MatrixUnit::Cooperative { subgroup: 32 }),
            ..Limits::webgpu()
        };
        let on = |m, n, k| {
            let op = GemmOp::new(m, n, k, 1, &Gemm::default(), false, false, Precision::F16Storage);
            let choice = untuned(&op.expect("an op"), WorkGroup::Table, &limits).expect("a choice");
            (choice.variant, choice.tile[2])
        };
        for (m, n, k) in [(197, 768, 3072), (197, 768, 768), (49, 768, 768), (64, 512, 2048)] {
            let (variant, layers) = on(m, n, k);
            assert!(variant == "matrix" && layers > 1, "{m} {n} {k}: {variant} {layers}");
        }
        assert_eq!(on(1024, 1024, 1024), ("matrix", 1));
        assert_eq!(on(2048, 2048, 2048), ("matrix", 1));
    }

    #[test]
    fn warp_groups_multiply_in_smaller_tiles_the_fewer_there_are_and_not_a_few_rows() {
        use crate::limits::MatrixUnit;
        let limits = Limits {
            family: Family::Nvidia,
            matrix_unit: Some(MatrixUnit::Ptx { capability: 90, warp_groups: true }),
            ..Limits::opencl()
        };
        let on = |m, n, precision| {
            let op = GemmOp::new(m, n, n, 1, &Gemm::default(), false, false, precision).expect("a product");
            let choice = untuned(&op, WorkGroup::Table, &limits).expect("a choice");
            (choice.variant, choice.tile, choice.work_group)
        };
        let halves = |n| on(n, n, Precision::F16Storage);
        assert_eq!(halves(4096), ("wgmma", [4, 2, 1], [128, 2, 1]));
        assert_eq!(halves(2048), ("wgmma", [4, 2, 1], [128, 2, 1]));
        assert_eq!(halves(1536), ("wgmma", [2, 2, 1], [128, 2, 1]));
        assert_eq!(halves(1024), ("wgmma", [1, 1, 1], [128, 1, 1]));
        assert_eq!(halves(512), ("wgmma", [1, 1, 1], [128, 1, 1]));
        let tf32 = |n| on(n, n, Precision::Tf32);
        assert_eq!(tf32(2048), ("wgmma_tf32", [2, 4, 1], [128, 2, 1]));
        assert_eq!(tf32(1024), ("wgmma_tf32", [1, 2, 1], [128, 1, 1]));
        assert_eq!(tf32(512), ("wgmma_tf32", [1, 1, 1], [128, 1, 1]));
        assert_ne!(on(8, 4096, Precision::F16Storage).0, "wgmma");
        assert_eq!(on(512, 512, Precision::F32).0, "tiled");
    }

    #[test]
    fn a_large_gpu_filters_by_winograd_in_work_groups_that_fill_it() {
        let on = |family, [n, side, c]: [usize; 3], precision| {
            let limits = Limits { family, local_memory: 49152, ..Limits::webgpu() };
            let options = Conv2d { padding: Padding::Same, ..Default::default() };
            let (input, weights) = (Shape::nhwc(n, side, side, c), Shape::nhwc(c, 3, 3, c));
            let op = Conv2dOp::new(input, weights, &options, true, false, precision).expect("a convolution");
            let choice = untuned(&op, WorkGroup::Table, &limits).expect("a choice");
            (choice.variant, choice.tile, choice.work_group)
        };
        let nvidia = |shape| on(Family::Nvidia, shape, Precision::F32);
        assert_eq!(nvidia([8, 112, 64]), ("winograd2", [8, 2, 2], [4, 4, 16]));
        assert_eq!(nvidia([1, 56, 64]), ("winograd2", [4, 2, 2], [4, 4, 16]));
        assert_eq!(nvidia([1, 28, 128]), ("winograd2", [4, 2, 2], [4, 2, 32]));
        assert_eq!(nvidia([1, 14, 256]), ("winograd2", [4, 2, 2], [2, 2, 64]));
        assert_eq!(nvidia([1, 7, 512]), ("winograd2", [4, 1, 2], [2, 2, 64]));
        // Few channels, sums in f16, and devices that were not measured.
        assert_ne!(nvidia([1, 56, 32]).0, "winograd2");
        assert_ne!(on(Family::CpuDriver, [1, 56, 64], Precision::F32).0, "winograd2");
    }

    #[test]
    fn a_size_that_no_kernel_can_have_is_refused_in_a_sentence() {
        let fixed = WorkGroup::Fixed([512, 2, 1]);
        let error = untuned(&node_27(), fixed, &Limits::webgpu()).expect_err("1024 of 256 invocations");
        let text = error.to_string();
        assert!(text.contains("1024 invocations, the device allows 256"), "{text}");
        assert!(text.contains("other kernels and tiles") && text.len() < 300, "{text}");
    }

    #[test]
    fn a_video_core_takes_small_tiles_and_has_a_kernel_for_all() {
        let limits = Limits { family: Family::VideoCore, ..Limits::webgpu() };
        let op = |name: &str, extents: &[usize]| {
            let entry = crate::ops::all().iter().find(|entry| entry.name == name).expect("the op");
            (entry.numbers.op)(extents, None, Precision::F32).expect("extents")
        };
        let product = untuned(&*op("gemm", &[512, 512, 512]), WorkGroup::Table, &limits).expect("a kernel");
        assert!(product.tile[0] * product.tile[1] <= 2, "{product}");
        let map = untuned(&*op("pointwise", &[1, 33, 33, 256, 256]), WorkGroup::Table, &limits);
        let map = map.expect("a kernel");
        assert!(map.tile[0] * map.tile[1] <= 2, "{map}");
        // Each of these wants more than there are, and the one that wants the fewest runs.
        let many = op("quantized_gemm", &[512, 512, 512, 4, 32]);
        let choice = untuned(&*many, WorkGroup::Table, &limits).expect("a kernel all the same");
        assert_eq!((choice.variant, choice.tile), ("tiled", [1, 1, 1]));
        let error =
            many.fits(&Choice::new("tiled", [1, 4, 1], [8, 8, 1]), &limits).expect_err("more than it has");
        assert!(error.to_string().contains("VideoCore has 48"), "{error}");
    }

    #[test]
    fn many_queries_are_tiled_and_one_is_not() {
        let limits = Limits {
            family: Family::Nvidia,
            compute_units: Some(132),
            local_memory: 49152,
            ..Limits::opencl()
        };
        let entry = crate::ops::all().iter().find(|entry| entry.name == "attention").expect("the op");
        for (extents, wanted) in
            [([6, 1500, 1500, 64], "tiled"), ([12, 197, 197, 64], "tiled"), ([12, 1, 512, 64], "row")]
        {
            let op = (entry.numbers.op)(&extents, None, Precision::F32).expect("extents");
            let choice = untuned(&*op, WorkGroup::Table, &limits).expect("a choice");
            assert_eq!(choice.variant, wanted, "{extents:?}: {choice}");
        }
    }
}
