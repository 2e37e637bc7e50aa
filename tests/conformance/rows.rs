//! Every kernel of the rows of one op against the oracle.

use crate::cases::{self, Case};
use crate::cover::Turn;
use crate::problem::{expected, operands};
use crate::{cover, gpu};
use diptych::{Layout, Limits};
use diptych_device::device::Device;
use diptych_kernels::ops::{Operands, Reference};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// What became of an op's rows on a device.
pub(crate) struct Tally {
    /// The device.
    name: String,
    op: String,
    pub(crate) cases: usize,
    pub(crate) runs: usize,
    /// How many different texts were run, and how many the op has.
    pub(crate) texts: [usize; 2],
    images: usize,
    /// Kernels with their tiles.
    pub(crate) met: BTreeSet<String>,
    /// Kernels with their tiles that should have been met and were not.
    pub(crate) missed: Vec<String>,
    pub(crate) failures: Vec<String>,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { name, op, cases, runs, texts: [some, all], images, met, failures, .. } = self;
        write!(
            f,
            "{name}: {cases} cases of {op}, {runs} runs of {some} of {all} texts, {images} of them with maps in images, \
             {} kernels and tiles, {} failures",
            met.len(),
            failures.len()
        )
    }
}

/// Runs the rows of `op`. `device_for` gives the device for the run of this number; all have the same limits. A device of
/// the `other` API shows in turn what is written alike for both.
///
/// # Errors
/// Those of `device_for`.
pub(crate) async fn every_kernel(
    op: &str,
    other: Option<&Limits>,
    device_for: &mut impl AsyncFnMut(usize) -> diptych::Result<Arc<dyn Device>>,
) -> diptych::Result<Tally> {
    let info = device_for(0).await?.info().clone();
    let cases: Vec<Case> = cases::table().into_iter().filter(|case| case.problem.name() == op).collect();
    let every = cover::runs(&cases, &info.limits);
    let (all, offered) = (cover::texts(&every), pairs(every.iter()));
    let turn = other.map_or_else(Turn::every, |other| Turn::between(&cases, &info.limits, other));
    let runs = if cases::wants_every_kernel() { every } else { cover::chosen(every, &turn) };
    let asked_for: Vec<_> = runs.iter().filter(|run| cases::is_asked_for(op, run.choice.variant)).collect();
    let mut failures = Vec::new();
    let mut images = 0;
    let mut row: Option<(usize, Operands<'static>, Reference)> = None;
    for (number, run) in asked_for.iter().enumerate() {
        let case = run.case;
        if row.as_ref().is_none_or(|(number, ..)| *number != case.number) {
            let operands = operands(&*case.problem);
            let expected = expected(&*case.problem, &operands);
            row = Some((case.number, operands, expected));
        }
        let Some((_, operands, expected)) = &row else { continue };
        images += usize::from(run.choice.layout == Layout::Image2d);
        let device = device_for(number).await?;
        // A browser compiles each by itself.
        if cfg!(not(target_family = "wasm")) && number.is_multiple_of(gpu::TOGETHER) {
            let next = asked_for.iter().skip(number).take(gpu::TOGETHER);
            let sources = next.filter_map(|run| gpu::written(&*device, &*run.case.problem, &run.choice).ok());
            gpu::compile_ahead(&*device, &sources.collect::<Vec<_>>());
        }
        let outcome = gpu::check(&*device, &*case.problem, operands, expected, &run.choice, &|_| {}).await;
        if let Err(failure) = outcome {
            failures.push(format!("{info}: {} [{}]: {failure}", case.name, run.choice));
        }
    }
    let met = pairs(asked_for.iter().copied());
    // Who asks for some kernels meets these alone.
    let complete = asked_for.len() == runs.len();
    let missed = if complete {
        offered.difference(&met).filter(|pair| !turn.has(pair)).cloned().collect()
    } else {
        Vec::new()
    };
    Ok(Tally {
        name: info.to_string(),
        op: op.to_owned(),
        cases: cases.len(),
        runs: asked_for.len(),
        texts: [cover::texts(&runs), all],
        images,
        met,
        missed,
        failures,
    })
}

/// The kernels and tiles of `runs`.
fn pairs<'r, 'c: 'r>(runs: impl Iterator<Item = &'r cover::Run<'c>>) -> BTreeSet<String> {
    runs.map(cover::Run::pair).collect()
}
