//! The page: the kernels side by side on all devices, in one file without scripts.

use super::costs::{COLUMNS, Costs};
use super::file::{Kernel, Outcome, Report, Use};
use super::text::{Counts, number};
use anyhow::{Context as _, Result};
use minijinja::{Environment, Value, context};
use std::collections::HashMap;

/// The page of `reports`, one for each device.
///
/// # Errors
/// If its template is wrong.
pub(super) fn page(reports: &[Report]) -> Result<String> {
    let mut environment = Environment::new();
    environment.add_template("page.html", include_str!("page.html")).context("the page's template")?;
    let lines = lines(reports);
    let marked = |is: fn(&Kernel) -> bool| -> Vec<Value> {
        let any = |line: &&Line<'_>| line.cells.iter().flatten().any(|cell| is(cell.0));
        lines.iter().filter(any).map(|line| line.shown(reports.len())).collect()
    };
    let mut subjects: Vec<(&str, Vec<Value>)> = Vec::new();
    for line in &lines {
        let shown = line.shown(reports.len());
        match subjects.iter_mut().find(|(subject, _)| *subject == line.subject) {
            Some((_, shown_lines)) => shown_lines.push(shown),
            None => subjects.push((line.subject, vec![shown])),
        }
    }
    let subjects: Vec<Value> = subjects
        .into_iter()
        .map(|(subject, lines)| context! { subject, count => lines.len(), lines })
        .collect();
    Ok(environment.get_template("page.html")?.render(context! {
        version => env!("CARGO_PKG_VERSION"),
        devices => reports.iter().map(device).collect::<Vec<_>>(),
        columns => COLUMNS.map(|column| column.title),
        spilling => marked(|kernel| Costs::of(kernel).spills()),
        broken => marked(|kernel| kernel.outcome.obstacle().is_some()),
        refused => refused(reports),
        subjects,
    })?)
}

fn device(report: &Report) -> Value {
    let (device, counts) = (&report.device, Counts::of(report));
    context! {
        name => device.name.clone(),
        api => device.api.clone(),
        driver => device.driver.clone(),
        family => device.family.clone(),
        means => report.means.clone().unwrap_or_else(|| "not told by this driver".to_owned()),
        compiled => counts.compiled,
        failed => counts.failed,
        crashed => counts.crashed + counts.timed_out,
        spilled => if counts.tells { counts.spilled.to_string() } else { "not told".to_owned() },
        spilled_untuned => if counts.tells { counts.spilled_untuned.to_string() } else { String::new() },
        refused => counts.refused,
    }
}

/// A step of a model, whichever kernel runs it on a device; or a kernel with an op's problem.
struct Line<'r> {
    subject: &'r str,
    case: &'r str,
    /// The kernel, if it is the same on all devices.
    label: Option<&'r str>,
    /// What became of it on each device, and whether an untuned session runs it.
    cells: Vec<Option<(&'r Kernel, bool)>>,
}

/// The lines of all reports, in the order in which they are met.
fn lines(reports: &[Report]) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    let mut places: HashMap<(&str, &str, Option<&str>, usize), usize> = HashMap::new();
    for (place, report) in reports.iter().enumerate() {
        let mut met: HashMap<(&str, &str, Option<&str>), usize> = HashMap::new();
        for Use { subject, case, kernel, untuned } in &report.uses {
            let kernel = &report.kernels[*kernel];
            // Of an op the lines are kernels; a device may run another one for a model's step.
            let label = (*subject == kernel.op).then_some(kernel.label.as_str());
            let turn = met.entry((subject, case, label)).or_default();
            let line = *places.entry((subject, case, label, *turn)).or_insert_with(|| {
                lines.push(Line { subject, case, label, cells: vec![None; reports.len()] });
                lines.len() - 1
            });
            *turn += 1;
            lines[line].cells[place] = Some((kernel, *untuned));
        }
    }
    lines
}

impl Line<'_> {
    fn shown(&self, devices: usize) -> Value {
        let cells = (0..devices).map(|device| match self.cells.get(device).copied().flatten() {
            None => context! { kind => "none" },
            Some((kernel, untuned)) => self.cell(kernel, untuned),
        });
        context! {
            subject => self.subject,
            case => self.case,
            label => self.label,
            cells => cells.collect::<Vec<_>>(),
        }
    }

    fn cell(&self, kernel: &Kernel, untuned: bool) -> Value {
        let costs = Costs::of(kernel);
        let obstacle = kernel.outcome.obstacle();
        let numbers = COLUMNS.map(|column| (column.of)(&costs).map_or("-".to_owned(), number));
        let told = kernel.outcome.programs().iter().flat_map(|program| &program.statistics);
        let told: Vec<String> = told.map(|told| format!("{}: {}", told.name, number(told.value))).collect();
        let kind = match &obstacle {
            Some(_) => "broken",
            None if costs.spills() => "spills",
            None => "fine",
        };
        context! {
            kind,
            untuned,
            numbers,
            obstacle,
            word => match kernel.outcome {
                Outcome::Compiled { .. } => "",
                Outcome::Failed { .. } => "refused",
                Outcome::Crashed { .. } => "crashed",
                Outcome::TimedOut { .. } => "timed out",
            },
            label => if self.label.is_none() { kernel.label.clone() } else { String::new() },
            told => format!("{}\n{}", kernel.label, told.join("\n")),
        }
    }
}

/// Why choices do not fit, and how many on each device.
fn refused(reports: &[Report]) -> Vec<Value> {
    let mut rows: Vec<(&str, &str, &str, Vec<usize>)> = Vec::new();
    let mut places: HashMap<(&str, &str, &str), usize> = HashMap::new();
    for (device, report) in reports.iter().enumerate() {
        for refused in &report.refused {
            let key = (refused.op.as_str(), refused.variant.as_str(), refused.reason.as_str());
            let place = *places.entry(key).or_insert_with(|| {
                rows.push((key.0, key.1, key.2, vec![0; reports.len()]));
                rows.len() - 1
            });
            rows[place].3[device] += refused.choices;
        }
    }
    rows.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
    let shown = rows.into_iter().map(|(op, variant, reason, counts)| {
        let kernel = if variant.is_empty() { op.to_owned() } else { format!("{op}_{variant}") };
        context! { kernel, reason, counts }
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::file::tests::report;

    #[test]
    fn the_page_shows_all_devices_and_what_is_not_as_it_should_be() {
        let mut other = report("other <device>");
        other.means = None;
        other.kernels.iter_mut().for_each(|kernel| {
            kernel.outcome = Outcome::Compiled { seconds: 1.0, programs: Vec::new() };
        });
        other.refused.clear();
        let page = page(&[report("one"), other]).expect("a page");
        for wanted in [
            "other &lt;device&gt;",
            "not told by this driver",
            "gemm_tiled_f32_t4x4x1_wg8x8x1",
            "the device has no matrix units",
            "the compiler crashed: signal: 6 &lt;abort&gt;",
            "Spilled VGPRs: 12",
            "prefers-color-scheme",
        ] {
            assert!(page.contains(wanted), "no {wanted:?}");
        }
        assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
        for foreign in ["<script", "src=", "@import", "<link"] {
            assert!(!page.contains(foreign), "{foreign}");
        }
        // Once where it spills and once where it is listed, on the device that says so.
        assert_eq!(page.matches("class=\"cell spills\"").count(), 2);
        assert_eq!(page.matches("class=\"cell broken\"").count(), 2);
    }

    #[test]
    fn a_step_is_one_line_whichever_kernel_runs_it() {
        let mut one = report("one");
        one.uses =
            vec![Use { subject: "net.tflite".to_owned(), case: "conv".to_owned(), kernel: 0, untuned: true }];
        let mut other = one.clone();
        other.uses[0].kernel = 1;
        let both = [one, other];
        let lines = lines(&both);
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].cells.iter().flatten().count(), 2);
    }
}
