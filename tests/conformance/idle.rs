//! Every work-group of a launch has work: with one fewer along an axis, a part of the result is missing.

use crate::cases::{Case, GROUPS, small_table};
use crate::gpu::check_with_fewer_groups;
use crate::problem::{expected, operands};
use diptych_device::device::Device;
use diptych_kernels::ops::{Choice, Op};
use std::collections::{BTreeMap, BTreeSet};

/// The choices of a kernel's first tile with the smallest and the largest work-group.
fn choices(op: &dyn Op, device: &dyn Device) -> Vec<Choice> {
    let limits = &device.info().limits;
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for (kernel, tile) in op.kernels().space(limits) {
        if !seen.insert(kernel.name()) {
            continue;
        }
        let own = kernel.work_groups(tile);
        let sizes = if own.is_empty() { GROUPS.to_vec() } else { own };
        let layout = kernel.entry().layouts.first().copied().unwrap_or_default();
        let choices = sizes.into_iter().map(|size| kernel.choice(tile, size).with_layout(layout));
        let mut fit: Vec<Choice> = choices.filter(|choice| op.fits(choice, limits).is_ok()).collect();
        fit.sort_by_key(|choice| choice.work_group.iter().product::<u32>());
        all.extend(fit.first().copied());
        all.extend(fit.last().copied().filter(|_| fit.len() > 1));
    }
    all
}

/// Problems that a kernel is tried with: whether a work-group writes anything may depend on the numbers.
const MOST: usize = 4;

/// How many kernels' launches were shortened along an axis, and those whose results were right all the same.
pub(crate) async fn every_group_has_work(device: &dyn Device) -> (usize, Vec<String>) {
    let mut cases: Vec<Case> = small_table();
    // The largest problems have the most work-groups.
    cases.sort_by_key(|case| std::cmp::Reverse(case.problem.flops()));
    let mut found: BTreeMap<_, Vec<String>> = BTreeMap::new();
    let mut shown = BTreeSet::new();
    for case in &cases {
        let op = &*case.problem;
        for choice in choices(op, device) {
            let Ok(launch) = op.plan(&choice, &device.info().limits) else { continue };
            let (groups, large) = (launch.groups(), choice.work_group.iter().product::<u32>() > 64);
            for axis in (0..3).filter(|&axis| groups[axis] > 1) {
                let key = (op.name(), choice.variant, large, axis);
                let tried = found.entry(key).or_default();
                if shown.contains(&key) || tried.len() == MOST {
                    continue;
                }
                let operands = operands(op);
                let expected = expected(op, &operands);
                let result = check_with_fewer_groups(device, op, &operands, &expected, &choice, axis).await;
                let own = format!("{} {choice}: {groups:?} along axis {axis}", case.name);
                match result {
                    Ok(()) => tried.push(own),
                    Err(failure) if failure.contains("element") => drop(shown.insert(key)),
                    Err(failure) => tried.push(format!("{own}: {failure}")),
                }
            }
        }
    }
    let count = found.len();
    let idle = found.into_iter().filter(|(key, _)| !shown.contains(key));
    (count, idle.flat_map(|(_, tried)| tried).collect())
}
