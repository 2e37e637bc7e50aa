//! The rows as a table for a terminal.

use super::{SUITES, by_case, maker, rate, share, time};
use crate::bench::row::{Record, Row};
use crate::table::Rows;

/// Every suite's table and the notes; nodes and single work-groups are for the page.
pub(in crate::bench) fn text(record: &Record) -> String {
    let mut text = String::new();
    for machine in &record.machines {
        let commit = machine.commit.as_deref().map(|commit| format!(", commit {commit}")).unwrap_or_default();
        text.push_str(&format!(
            "{}; {}; diptych {}{commit}; {}\n{}\n",
            machine.processor, machine.system, machine.version, machine.date, machine.command
        ));
    }
    for (suite, title) in SUITES {
        let rows: Vec<&Row> =
            record.rows.iter().filter(|row| row.suite == suite && row.metric != "node").collect();
        if !rows.is_empty() {
            text.push_str(&format!("\n{title}\n{}\n", table(suite, &rows)));
        }
    }
    for note in &record.notes {
        text.push_str(&format!("{} {}: {}\n", note.case, note.backend, note.text));
    }
    text
}

fn table(suite: &str, rows: &[&Row]) -> String {
    if suite == "work-groups" {
        let heads = ["case", "backend", "fastest", "", "slowest", "", "apart"];
        let mut table = Rows::new(heads).numbers(&[3, 5, 6]);
        for case in by_case(rows) {
            let (Some(best), Some(worst)) = (case.first(), case.last()) else { continue };
            let size = |row: &Row| row.node.clone().unwrap_or_default();
            table.add([
                best.case.clone(),
                maker(best),
                size(best),
                time(best.median),
                size(worst),
                time(worst.median),
                format!("{:.1}x", worst.median / best.median),
            ]);
        }
        return table.text();
    }
    let heads = ["case", "backend", "median", "p10-p90", "samples", "rate", "roofline", "kernel"];
    let mut table = Rows::new(heads).numbers(&[2, 3, 4, 5, 6]).labels(&[7]);
    for row in rows {
        let told = matches!(suite, "posenet" | "start") || row.metric == "chain";
        let metric = if told { format!(", {}", row.metric) } else { String::new() };
        table.add([
            format!("{}{metric}", row.case),
            maker(row),
            time(row.median),
            format!("{}-{}", time(row.p10), time(row.p90)),
            row.samples.len().to_string(),
            rate(row),
            share(row).unwrap_or_default(),
            row.kernel.clone(),
        ]);
    }
    table.text()
}
