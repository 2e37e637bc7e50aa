//! The report: a table for a terminal, and a page.

mod page;
mod plots;
mod table;

pub(super) use page::page;
pub(super) use table::text;

use super::row::Row;

/// Who made a row: the backend, and the engine if it is another's.
fn maker(row: &Row) -> String {
    if row.engine == "diptych" {
        return row.device.backend.clone();
    }
    format!("{} ({})", row.engine, row.device.api)
}

/// Makers in the order of the rows; a maker's place is its colour.
fn makers(rows: &[Row]) -> Vec<String> {
    let mut makers = Vec::new();
    for maker in rows.iter().map(maker) {
        if !makers.contains(&maker) {
            makers.push(maker);
        }
    }
    makers
}

/// The suites with a title, in the order of the report.
const SUITES: [(&str, &str); 9] = [
    ("baseline", "What the device can do"),
    ("gemm", "Matrix products"),
    ("ops", "Convolutions"),
    ("work-groups", "Time against work-group size"),
    ("posenet", "A network"),
    ("networks", "Networks of usual kinds"),
    ("growth", "How cost grows"),
    ("start", "First result of a new process"),
    ("peers", "Beside another engine"),
];

/// A time with the unit that suits it.
fn time(microseconds: f64) -> String {
    match microseconds {
        t if t >= 1e6 => format!("{:.2} s", t / 1e6),
        t if t >= 1e4 => format!("{:.1} ms", t / 1e3),
        t if t >= 1e3 => format!("{:.2} ms", t / 1e3),
        t if t >= 100.0 => format!("{t:.0} us"),
        t if t >= 10.0 => format!("{t:.1} us"),
        t => format!("{t:.2} us"),
    }
}

/// The rate of a row, in what it is about.
fn rate(row: &Row) -> String {
    let gbytes = row.bytes as f64 / row.median.max(1e-9) / 1e3;
    match row.gflops {
        Some(gflops) if gflops >= 1e4 => format!("{:.1} TFLOP/s", gflops / 1e3),
        Some(gflops) => format!("{} GFLOP/s", crate::charts::short(gflops)),
        None if row.bytes > 0 => format!("{} GB/s", crate::charts::short(gbytes)),
        None => String::new(),
    }
}

/// The share of the roofline, with what bounds it.
fn share(row: &Row) -> Option<String> {
    Some(format!("{:.0} % {}", 100.0 * row.roofline?, row.bound.as_deref()?))
}

/// For each case of `rows` (all of the suite work-groups) and maker: its rows, fastest first.
fn by_case<'r>(rows: &[&'r Row]) -> Vec<Vec<&'r Row>> {
    let mut cases: Vec<Vec<&Row>> = Vec::new();
    for row in rows {
        match cases.iter_mut().find(|case| case[0].case == row.case && maker(case[0]) == maker(row)) {
            Some(case) => case.push(row),
            None => cases.push(vec![row]),
        }
    }
    for case in &mut cases {
        case.sort_by(|a, b| a.median.total_cmp(&b.median));
    }
    cases
}
