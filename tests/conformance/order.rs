//! Choices that are said to compute the same to the bit (`KernelSpec::computes_like`) do: a session of several extents
//! runs one in place of another.

use crate::cases::{Case, GROUPS, small_table};
use crate::gpu::{check_by, written};
use crate::problem::{compare, expected, operands};
use diptych::Precision;
use diptych_device::device::Device;
use diptych_emit::emit::KernelSource;
use diptych_emit::emit::KernelSpec;
use diptych_kernels::ops::{Choice, Op};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// Choices of a kernel that are run: of as many tiles as there are up to this.
const MOST: usize = 3;

/// Choices of each of its kernels.
fn choices(op: &dyn Op, device: &dyn Device) -> BTreeMap<&'static str, Vec<Choice>> {
    let limits = &device.info().limits;
    let mut all: BTreeMap<&'static str, Vec<Choice>> = BTreeMap::new();
    for (kernel, tile) in op.kernels().space(limits) {
        let made_for = kernel.work_groups(tile);
        let sizes = if made_for.is_empty() { GROUPS.to_vec() } else { made_for };
        // Another work-group for each tile.
        let own = all.entry(kernel.name()).or_default();
        let layout = kernel.entry().layouts.first().copied().unwrap_or_default();
        let choices = sizes.iter().cycle().skip(own.len()).take(sizes.len());
        let choices = choices.map(|&size| kernel.choice(tile, size).with_layout(layout));
        own.extend(choices.filter(|choice| op.fits(choice, limits).is_ok()).take(2));
    }
    all
}

/// The first choice, and others that are said to compute like it.
fn alike(op: &dyn Op, device: &dyn Device, choices: &[Choice]) -> Vec<Choice> {
    let planned = |choice: &Choice| -> Option<(Choice, KernelSpec, KernelSource)> {
        let spec = op.plan(choice, &device.info().limits).ok()?.spec;
        Some((*choice, spec, written(device, op, choice).ok()?))
    };
    let planned: Vec<_> = choices.iter().filter_map(planned).collect();
    let mut best = Vec::new();
    for (index, (first, spec, text)) in planned.iter().enumerate() {
        let mut texts = vec![&text.text];
        let mut own = vec![*first];
        for (other, other_spec, other_text) in &planned[index + 1..] {
            let is_new = own.len() < MOST && !texts.contains(&&other_text.text);
            if is_new && other_spec.computes_like(spec, text.computes_alone()) {
                own.push(*other);
                texts.push(&other_text.text);
            }
        }
        if own.len() > best.len() {
            best = own;
        }
    }
    best
}

/// How many kernels were compared, of those whose number it is the `turn` of, and what differed.
pub(crate) async fn alike_to_the_bit(device: &dyn Device, turn: fn(usize) -> bool) -> (usize, Vec<String>) {
    let mut cases: Vec<Case> = small_table();
    cases.retain(|case| case.problem.precision() == Precision::F32);
    cases.sort_by_key(|case| std::cmp::Reverse(case.problem.flops()));
    let mut compared: BTreeSet<String> = BTreeSet::new();
    let mut failures = Vec::new();
    for case in &cases {
        let op = &*case.problem;
        for (variant, choices) in choices(op, device) {
            let kernel = format!("{}_{variant}", op.name());
            if compared.contains(&kernel) {
                continue;
            }
            let alike = alike(op, device, &choices);
            if alike.len() < 2 {
                continue;
            }
            compared.insert(kernel.clone());
            if !turn(compared.len()) {
                continue;
            }
            let (operands, expected) = (operands(op), expected(op, &operands(op)));
            let first: RefCell<Option<Vec<u32>>> = RefCell::new(None);
            for choice in &alike {
                let same = |op: &dyn Op, expected: &_, result: &[f32]| {
                    compare(op, expected, result)?;
                    let bits: Vec<u32> = result.iter().map(|value| value.to_bits()).collect();
                    let mut first = first.borrow_mut();
                    let wanted = first.get_or_insert_with(|| bits.clone());
                    match wanted.iter().zip(&bits).position(|(wanted, found)| wanted != found) {
                        Some(place) => Err(format!("element {place} is not that of {}", alike[0])),
                        None => Ok(()),
                    }
                };
                let result = check_by(&same, device, op, &operands, &expected, choice, &|_| {}).await;
                if let Err(error) = result {
                    failures.push(format!("{} {kernel} {choice}: {error}", case.name));
                }
            }
        }
    }
    ((0..compared.len()).filter(|number| turn(number + 1)).count(), failures)
}
