//! The kernels that are asked for: those of models, of ops, or all of the space.

use super::Arguments;
use super::file::{Refused, Use};
use anyhow::{Context as _, Result};
use diptych::internals::tune::{search, work_group};
use diptych::{
    Context, Dialect, Error, Layout, Limits, ModelFile, Precision, Session, SessionOptions, WorkGroup,
};
use diptych_emit::emit::KernelSource;
use diptych_kernels::ops::{self, BoundKernel, Choice, Launch, Op, OpEntry};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

/// What all ops are called.
pub(super) const ALL: &str = "all";

/// The kernels, each text once, and what they are for.
#[derive(Debug)]
pub(super) struct List {
    pub(super) kernels: Vec<KernelToCompile>,
    pub(super) uses: Vec<Use>,
    pub(super) refused: Vec<Refused>,
    /// The place of each text.
    places: HashMap<(String, [u32; 3]), usize>,
    /// The place of each refusal.
    refusals: HashMap<(&'static str, &'static str, String), usize>,
    dialect: Dialect,
}

/// A kernel to compile.
#[derive(Debug)]
pub(super) struct KernelToCompile {
    pub(super) source: KernelSource,
    pub(super) op: &'static str,
    pub(super) variant: &'static str,
}

/// What the flags ask for, on this device. The same, in the same order, each time.
///
/// # Errors
/// If a model cannot be read or an untuned session of it cannot be planned.
pub(super) fn list(arguments: &Arguments, context: &Context, limits: &Limits) -> Result<List> {
    let mut list = List {
        kernels: Vec::new(),
        uses: Vec::new(),
        refused: Vec::new(),
        places: HashMap::new(),
        refusals: HashMap::new(),
        dialect: limits.dialect,
    };
    let precisions: Vec<Precision> = match &arguments.precision[..] {
        [] => vec![Precision::F32],
        some => some.iter().map(|name| name.precision()).collect(),
    };
    for precision in precisions {
        for model in &arguments.models {
            list.add_model(model, precision, arguments, context)
                .with_context(|| model.display().to_string())?;
        }
        let ops = &arguments.op;
        let all = ops.iter().any(|op| op == ALL) || (ops.is_empty() && arguments.space);
        for entry in ops::all().iter().filter(|entry| all || ops.iter().any(|op| op == entry.name)) {
            list.add_op(entry, precision, arguments.space, limits)?;
        }
    }
    Ok(list)
}

impl List {
    /// The steps of an untuned session.
    fn add_model(
        &mut self,
        path: &Path,
        precision: Precision,
        arguments: &Arguments,
        context: &Context,
    ) -> Result<()> {
        let model = ModelFile::load(path, &arguments.load.options())?.model(&BTreeMap::new())?;
        let options = SessionOptions { precision, ..Default::default() };
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        let subject =
            if precision == Precision::F32 { name.to_string() } else { format!("{name} {precision}") };
        for step in Session::planned_steps(context, &model.graph, &options)? {
            self.add(&step.launch, subject.clone(), step.name, true)?;
        }
        Ok(())
    }

    /// The kernels of an op's examples: what an untuned session runs, or all of the space.
    fn add_op(&mut self, entry: &OpEntry, precision: Precision, space: bool, limits: &Limits) -> Result<()> {
        let problem = |op: &dyn Op| format!("{} {}", op.problem_key(), op.precision());
        let mut problems: Vec<Box<dyn Op>> = (entry.examples)(precision)?;
        problems.retain(|op| op.precision() == precision);
        for op in &problems {
            // Some ops have kernels in one layout alone, and a session may have either.
            let mut untuned = Vec::new();
            for layout in work_group::layouts(&**op, limits) {
                let choice = work_group::untuned_in(&**op, WorkGroup::Table, layout, limits)?;
                let launch = op.plan(&choice, limits)?;
                self.add(&launch, entry.name.to_owned(), problem(&**op), true)?;
                untuned.push(choice);
            }
            if untuned.is_empty()
                && let Err(error) = work_group::untuned(&**op, WorkGroup::Table, limits)
            {
                self.refuse(entry.name, "", reason(error));
            }
            if !space {
                continue;
            }
            let kernels = op.kernels();
            for (kernel, tile) in kernels.space(limits) {
                for choice in choices(kernel, tile, limits) {
                    if untuned.contains(&choice) {
                        continue;
                    }
                    match kernel.fits(&choice, limits) {
                        Ok(()) => {
                            let launch = kernel.plan(&choice, limits)?;
                            self.add(&launch, entry.name.to_owned(), problem(&**op), false)?;
                        }
                        Err(error) => self.refuse(entry.name, kernel.name(), reason(error)),
                    }
                }
            }
            // Those that offer nothing on this device say why.
            for kernel in kernels.iter().filter(|kernel| kernel.offers(limits).is_empty()) {
                let choice = kernel.choice([1; 3], [1; 3]);
                if let Err(error) = kernel.fits(&choice, limits) {
                    self.refuse(entry.name, kernel.name(), reason(error));
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, launch: &Launch, subject: String, case: String, untuned: bool) -> Result<()> {
        // An application's shader is compiled with checks, and its own.
        if launch.spec.foreign.is_some() {
            return Ok(());
        }
        let (op, variant) = (launch.spec.op, launch.spec.variant);
        let source = launch.spec.render_written(self.dialect).with_context(|| case.clone())?;
        let kernel = *self.places.entry((source.text.clone(), source.work_group)).or_insert_with(|| {
            self.kernels.push(KernelToCompile { source, op, variant });
            self.kernels.len() - 1
        });
        self.uses.push(Use { subject, case, kernel, untuned });
        Ok(())
    }

    fn refuse(&mut self, op: &'static str, variant: &'static str, reason: String) {
        let refused = &mut self.refused;
        let place = *self.refusals.entry((op, variant, reason.clone())).or_insert_with(|| {
            let (op, variant) = (op.to_owned(), variant.to_owned());
            refused.push(Refused { op, variant, reason, choices: 0 });
            refused.len() - 1
        });
        self.refused[place].choices += 1;
    }
}

/// The choices of a kernel and tile: with the work-groups that it is made for, or the table's, those of a quick search
/// and the largest that the device allows; in each layout.
fn choices(kernel: &dyn BoundKernel, tile: [u32; 3], limits: &Limits) -> Vec<Choice> {
    let mut groups = kernel.work_groups(tile);
    if groups.is_empty() {
        groups.push(work_group::table(kernel, tile, limits));
        groups.extend(search::handful(kernel.grid(tile), limits));
        groups.push(largest(limits));
    }
    let layouts = kernel
        .entry()
        .layouts
        .iter()
        .filter(|&&layout| layout != Layout::Image2d || limits.max_image.is_some());
    let each = layouts
        .flat_map(|&layout| groups.iter().map(move |&group| kernel.choice(tile, group).with_layout(layout)));
    let mut seen = HashSet::new();
    each.filter(|choice| seen.insert(*choice)).collect()
}

/// A work-group of as many invocations as the device allows, as square as its axes allow.
fn largest(limits: &Limits) -> [u32; 3] {
    let [mut x, mut y] = [1, 1];
    while 2 * x * y <= limits.max_invocations {
        let wide = x > y || 2 * x > limits.max_work_group[0];
        match wide && 2 * y <= limits.max_work_group[1] {
            true => y *= 2,
            false if 2 * x <= limits.max_work_group[0] => x *= 2,
            false => break,
        }
    }
    [x, y, 1]
}

/// Why a choice does not fit, without the kernel's name.
fn reason(error: Error) -> String {
    match error {
        Error::Reject { reason, .. } => reason,
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_work_group_keeps_the_limits() {
        let limits = |most, axes| Limits { max_invocations: most, max_work_group: axes, ..Limits::webgpu() };
        assert_eq!(largest(&limits(1024, [1024, 1024, 64])), [32, 32, 1]);
        assert_eq!(largest(&limits(2048, [1024, 1024, 64])), [64, 32, 1]);
        assert_eq!(largest(&limits(256, [16, 1, 1])), [16, 1, 1]);
        assert_eq!(largest(&limits(1, [1, 1, 1])), [1, 1, 1]);
    }
}
