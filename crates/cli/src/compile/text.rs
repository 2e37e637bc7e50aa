//! A report for a terminal.

use super::costs::{COLUMNS, Costs};
use super::file::{Outcome, Report};
use crate::table::{Rows, line};

/// How many kernels of each kind became what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counts {
    pub(super) compiled: usize,
    pub(super) failed: usize,
    pub(super) crashed: usize,
    pub(super) timed_out: usize,
    pub(super) spilled: usize,
    /// Of those that spill, the ones that an untuned session runs.
    pub(super) spilled_untuned: usize,
    /// Choices that were refused before a compiler saw them.
    pub(super) refused: usize,
    /// Whether the driver tells of spills.
    pub(super) tells: bool,
}

impl Counts {
    pub(super) fn of(report: &Report) -> Self {
        let mut counts = Counts {
            refused: report.refused.iter().map(|refused| refused.choices).sum(),
            ..Default::default()
        };
        for (index, kernel) in report.kernels.iter().enumerate() {
            match kernel.outcome {
                Outcome::Compiled { .. } => counts.compiled += 1,
                Outcome::Failed { .. } => counts.failed += 1,
                Outcome::Crashed { .. } => counts.crashed += 1,
                Outcome::TimedOut { .. } => counts.timed_out += 1,
            }
            let costs = Costs::of(kernel);
            counts.tells |= costs.spills.is_some();
            if costs.spills() {
                counts.spilled += 1;
                counts.spilled_untuned += usize::from(report.uses_of(index).any(|used| used.untuned));
            }
        }
        counts
    }

    /// The counts in a line of text.
    pub(super) fn line(&self) -> String {
        let mut parts = vec![format!("{} compiled", self.compiled)];
        let others = [
            (self.failed, "refused by the driver"),
            (self.crashed, "crashed"),
            (self.timed_out, "timed out"),
        ];
        parts.extend(
            others.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")),
        );
        parts.push(match self.tells {
            true => format!("{} spill, {} of these in untuned sessions", self.spilled, self.spilled_untuned),
            false => "spills are not told by this driver".to_owned(),
        });
        if self.refused > 0 {
            parts.push(format!("{} choices do not fit the device", self.refused));
        }
        parts.join("; ")
    }
}

/// What a report has that a command is to fail for, in a line: kernels that are not compiled, or those of untuned sessions
/// that spill.
pub(super) fn denied(report: &Report, failures: bool, spills: bool) -> Option<String> {
    let counts = Counts::of(report);
    let name = &report.device.name;
    let broken = counts.failed + counts.crashed + counts.timed_out;
    if failures && broken > 0 {
        return Some(format!("{name}: {broken} kernels are not compiled"));
    }
    let spilled = counts.spilled_untuned;
    (spills && spilled > 0).then(|| format!("{name}: {spilled} kernels of untuned sessions spill"))
}

/// A number without digits that say nothing.
pub(super) fn number(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

/// The report: the device, each kernel if there are few or `all` are wanted, and those that are not as they should be.
pub(super) fn text(report: &Report, all: bool) -> String {
    let device = &report.device;
    let name = format!("device   {} ({}, {})", device.name, device.api, device.driver);
    let mut text = line(&name) + "\n";
    let means = report.means.as_deref().unwrap_or("not told by this driver");
    text.push_str(&format!(
        "told by  {means}\n{}\n",
        line(&format!("kernels  {}", Counts::of(report).line()))
    ));
    const FEW: usize = 40;
    let shown = all || report.kernels.len() <= FEW;
    let head = |column: usize| COLUMNS[column].title;
    let heads = ["kernel", head(0), head(1), head(2), head(3), head(4), head(5), "used by"];
    let mut rows = Rows::new(heads).numbers(&[1, 2, 3, 4, 5, 6]).labels(&[0]).names(&[7]);
    let mut notes = Vec::new();
    for (index, kernel) in report.kernels.iter().enumerate() {
        let costs = Costs::of(kernel);
        let mut uses = report.uses_of(index);
        let first = uses.next().map(|used| format!("{}: {}", used.subject, used.case)).unwrap_or_default();
        let others = uses.count();
        let used = if others > 0 { format!("{first} and {others} more") } else { first };
        if let Some(obstacle) = kernel.outcome.obstacle() {
            notes.push(format!("{}: {obstacle} ({used})", kernel.label));
        }
        if !shown && !costs.spills() {
            continue;
        }
        let cell = |column: usize| (COLUMNS[column].of)(&costs).map_or("-".to_owned(), number);
        rows.add([kernel.label.clone(), cell(0), cell(1), cell(2), cell(3), cell(4), cell(5), used]);
    }
    if !shown {
        text.push_str("\nThose that spill (--all lists every kernel):\n");
    }
    text.push_str(&format!("\n{}\n", rows.text()));
    for note in notes {
        text.push_str(&format!("\n{}", line(&note)));
    }
    if !report.refused.is_empty() {
        text.push_str("\n\nNot for this device:\n");
        for refused in &report.refused {
            let kernel = match refused.variant.as_str() {
                "" => refused.op.clone(),
                variant => format!("{}_{variant}", refused.op),
            };
            let words = format!("{kernel}: {} ({} choices)", refused.reason, refused.choices);
            text.push_str(&(line(&words) + "\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::file::tests::report;

    #[test]
    fn what_became_of_the_kernels_is_counted_and_said() {
        let report = report("one");
        let counts = Counts::of(&report);
        let wanted = Counts {
            compiled: 2,
            crashed: 1,
            spilled: 1,
            spilled_untuned: 1,
            refused: 7,
            tells: true,
            ..Default::default()
        };
        assert_eq!(counts, wanted);
        let said = |failures, spills| denied(&report, failures, spills);
        assert_eq!(said(false, false), None);
        assert_eq!(said(true, true).as_deref(), Some("one: 1 kernels are not compiled"));
        assert_eq!(said(false, true).as_deref(), Some("one: 1 kernels of untuned sessions spill"));
        let text = text(&report, false);
        for words in [
            "2 compiled; 1 crashed; 1 spill, 1 of these in untuned sessions; 7 choices do not fit the device",
            "gemm_tiled_f32_t4x4x1_wg8x8x1",
            "the compiler crashed: signal: 6 <abort> (gemm: m5 n7 k9)",
            "gemm_matrix: the device has no matrix units (7 choices)",
        ] {
            assert!(text.contains(words), "no {words:?} in {text}");
        }
    }
}
