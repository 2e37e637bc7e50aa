//! Time against work-group size: one kernel, one tile, and only the work-group changes. This is the
//! plot of the article that began this project, of its kernel and of those that a session runs.

use super::op::row;
use super::row::Row;
use super::subject::{Subject, Target};
use super::suites;
use anyhow::{Result, bail, ensure};
use diptych::internals::tune::{Bench, Check, OpBench};
use diptych::{Choice, Precision};
use diptych_kernels::ops::Op;
use std::sync::Arc;
use std::time::Duration;

/// A kernel whose work-group is to change.
#[derive(Debug, Clone)]
pub(super) struct Kernel {
    pub(super) problem: Arc<dyn Op>,
    variant: &'static str,
    tile: [u32; 3],
    /// The longest extents worth trying.
    most: [u32; 3],
}

/// A kernel of one problem with many work-groups.
pub(super) struct WorkGroups {
    bench: OpBench,
    sizes: Vec<(Choice, Row)>,
}

/// Boxes of powers of two with 1, 4, 16, 64 or 256 invocations, within `most` along each axis.
fn boxes(most: [u32; 3]) -> Vec<[u32; 3]> {
    let powers = |most: u32| (0..9).map(|power| 1u32 << power).filter(move |extent| *extent <= most);
    let all = powers(most[0])
        .flat_map(|x| powers(most[1]).flat_map(move |y| powers(most[2]).map(move |z| [x, y, z])));
    let mut boxes: Vec<[u32; 3]> =
        all.filter(|size| [1, 4, 16, 64, 256].contains(&size.iter().product::<u32>())).collect();
    boxes.sort_by_key(|size| (size.iter().product::<u32>(), *size));
    boxes
}

/// The kernels.
///
/// # Errors
/// If a shape is not valid, which they are.
pub(super) fn kernels(target: &Target) -> Result<Vec<Kernel>> {
    // A product that takes some milliseconds at the peak, 1024 at most.
    let side =
        |side: &usize| target.least(2 * (side * side * side) as u64, 0).is_some_and(|time| time < 2e-3);
    let side = [1024, 512].into_iter().find(side).unwrap_or(256);
    let node = suites::layer(suites::NODE_27, Precision::F32)?;
    let product = suites::product((side, side, side, 1), Precision::F32)?;
    let mut kernels = vec![
        // The article's: an invocation per pixel and slice of four channels.
        Kernel { problem: Arc::clone(&node), variant: "direct", tile: [1, 1, 1], most: [16, 16, 256] },
        // Its counterpart among products: 8 rows by 4 columns.
        Kernel { problem: Arc::clone(&product), variant: "vec4", tile: [1, 8, 1], most: [256, 256, 1] },
    ];
    for (problem, most) in [(node, [16, 16, 256]), (product, [256, 256, 1])] {
        let (Choice { variant, tile, .. }, _) = target.choose(&*problem)?;
        // A session's own kernel, unless it is one of these.
        if kernels.iter().all(|kernel| (kernel.variant, kernel.tile) != (variant, tile)) {
            kernels.push(Kernel { problem, variant, tile, most });
        }
    }
    Ok(kernels)
}

impl Kernel {
    /// The name of its rows: the problem's, and the kernel's.
    pub(super) fn name(&self) -> String {
        let [x, y, z] = self.tile;
        format!("{} {} {x}x{y}x{z}", suites::name(&*self.problem), self.variant)
    }

    /// The work-groups to try: boxes of powers of two, and those that the kernel is made for.
    fn sizes(&self) -> Vec<[u32; 3]> {
        let kernel = self.problem.kernel(self.variant);
        let made_for = kernel.map_or(Vec::new(), |kernel| kernel.work_groups(self.tile));
        let mut sizes = boxes(self.most);
        sizes.extend(made_for.into_iter().filter(|size| !sizes.contains(size)).collect::<Vec<_>>());
        sizes
    }
}

impl WorkGroups {
    /// Every size that fits, checked; the others are left out.
    ///
    /// # Errors
    /// If none fits, or a result is wrong.
    pub(super) fn new(target: &Target, kernel: Kernel, longest: Duration) -> Result<Self> {
        let Kernel { ref problem, variant, tile, .. } = kernel;
        let device = target.device()?;
        let limits = device.info().limits.clone();
        let mut bench = OpBench::new(device, Arc::clone(problem))?;
        let mut sizes = Vec::new();
        for work_group in kernel.sizes() {
            let choice = Choice::new(variant, tile, work_group);
            if bench.fits(&choice).is_err() {
                continue;
            }
            bench.prepare(&choice)?;
            if let Check::Wrong { detail } = bench.check(&choice)? {
                bail!("wrong: {choice}: {detail}");
            }
            let estimate = bench.sample(&choice, 1)?;
            if estimate > longest {
                bench.release(&choice);
                continue;
            }
            let mut row = row(target, "work-groups", &**problem);
            row.case = kernel.name();
            row.kernel = problem.plan(&choice, &limits)?.spec.label();
            let [x, y, z] = work_group;
            row.node = Some(format!("({x},{y},{z})"));
            row.work_group = work_group;
            row.chosen_by = "by hand".to_owned();
            row.checked = "every element, against the CPU backend".to_owned();
            row.repeats = bench.repeats(estimate).min(64);
            row.clock = bench.clock().kind().to_string();
            sizes.push((choice, row));
        }
        ensure!(!sizes.is_empty(), "left out: no work-group of {variant} fits and is short enough");
        Ok(WorkGroups { bench, sizes })
    }
}

impl Subject for WorkGroups {
    fn round(&mut self) -> Result<()> {
        for (choice, row) in &mut self.sizes {
            let time = self.bench.sample(choice, row.repeats)?;
            row.samples.push(time.as_secs_f64() * 1e6 / f64::from(row.repeats));
        }
        Ok(())
    }

    fn rows(&self) -> Vec<Row> {
        self.sizes.iter().map(|(_, row)| row.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_distinct_and_hold_the_extremes() {
        let sizes = boxes([16, 16, 256]);
        for wanted in [[1, 1, 1], [1, 1, 64], [16, 16, 1], [4, 4, 16], [2, 2, 1]] {
            assert!(sizes.contains(&wanted), "{wanted:?} of {sizes:?}");
        }
        let mut unique = sizes.clone();
        unique.dedup();
        assert_eq!(unique.len(), sizes.len());
        assert!((30..80).contains(&sizes.len()), "{}", sizes.len());
    }
}
