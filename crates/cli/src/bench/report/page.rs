//! The page: one file, with its style and charts inside and no scripts.

use super::plots;
use super::{SUITES, by_case, maker, makers, rate, share, time};
use crate::bench::row::{Machine, Note, Record, Row};
use crate::charts::{COLOURS, Chart, themed};
use anyhow::{Context as _, Result};
use minijinja::{Environment, Value, context};

const WIDE: (u32, u32) = (1040, 420);
const HALF: (u32, u32) = (530, 380);

/// The page of `record`.
///
/// # Errors
/// If a chart cannot be drawn.
pub(in crate::bench) fn page(record: &Record) -> Result<String> {
    let mut environment = Environment::new();
    environment.add_template("page.html", include_str!("page.html")).context("the page's template")?;
    let template = environment.get_template("page.html")?;
    let rows = &record.rows;
    let everyone = makers(rows);
    let colour = |row: &Row| everyone.iter().position(|who| *who == maker(row)).unwrap_or(0) % COLOURS;
    let mut sections = Vec::new();
    for (suite, title) in SUITES {
        let of_suite: Vec<&Row> = rows.iter().filter(|row| row.suite == suite).collect();
        if of_suite.is_empty() {
            continue;
        }
        let charts = match suite {
            "gemm" => drawn(&plots::squares(rows).into_iter().collect::<Vec<_>>(), WIDE)?,
            "ops" => Vec::new(),
            "baseline" => drawn(&plots::rooflines(rows), HALF)?,
            "work-groups" => drawn(&plots::work_groups(rows), HALF)?,
            "posenet" => drawn(&plots::nodes(rows), WIDE)?,
            "growth" => drawn(&plots::growth(rows), HALF)?,
            _ => Vec::new(),
        };
        let half = matches!(suite, "baseline" | "work-groups" | "growth");
        let shown: Vec<&Row> = of_suite.iter().copied().filter(|row| row.metric != "node").collect();
        let table = if suite == "work-groups" { Vec::new() } else { lines(&shown, colour) };
        let extremes = if suite == "work-groups" { extremes(&of_suite, colour) } else { Vec::new() };
        let nodes: Vec<&Row> = of_suite.iter().copied().filter(|row| row.metric == "node").collect();
        sections.push(context! {
            suite, title, charts, half, table, extremes,
            nodes => lines(&nodes, colour),
        });
    }
    Ok(template.render(context! {
        machines => record.machines.iter().map(machine).collect::<Vec<_>>(),
        devices => devices(rows),
        sections,
        notes => record.notes.iter().map(note).collect::<Vec<_>>(),
        count => rows.len(),
        samples => rows.iter().map(|row| row.samples.len()).sum::<usize>(),
    })?)
}

fn drawn(charts: &[Chart], size: (u32, u32)) -> Result<Vec<String>> {
    charts.iter().map(|chart| themed(chart, size)).collect()
}

fn machine(machine: &Machine) -> Value {
    context! {
        processor => machine.processor.clone(),
        system => machine.system.clone(),
        date => machine.date.clone(),
        command => machine.command.clone(),
        version => machine.version.clone(),
        commit => machine.commit.clone(),
        debug_build => machine.debug_build,
    }
}

fn note(note: &Note) -> Value {
    context! {
        case => note.case.clone(),
        backend => note.backend.clone(),
        text => note.text.clone(),
        failure => note.failure,
    }
}

/// Each device once, with what made its rows.
fn devices(rows: &[Row]) -> Vec<Value> {
    let mut seen: Vec<&Row> = Vec::new();
    for row in rows {
        if !seen.iter().any(|known| known.device == row.device && known.engine == row.engine) {
            seen.push(row);
        }
    }
    let everyone = makers(rows);
    seen.into_iter()
        .map(|row| {
            let colour = everyone.iter().position(|who| *who == maker(row)).unwrap_or(0) % COLOURS;
            context! { maker => maker(row), device => context! {
                backend => row.device.backend.clone(),
                api => row.device.api.clone(),
                name => row.device.name.clone(),
                driver => row.device.driver.clone(),
                is_cpu => row.device.is_cpu,
            }, colour }
        })
        .collect()
}

/// The lines of a table. A bar is a row's time as a share of the slowest of its case.
fn lines(rows: &[&Row], colour: impl Fn(&Row) -> usize) -> Vec<Value> {
    let group = |row: &Row| {
        // What may be distinguished at a glance: the same work on each backend.
        (row.case.clone(), row.metric.clone(), row.node.clone())
    };
    let slowest = |row: &Row| {
        let same = rows.iter().filter(|other| group(other) == group(row));
        same.map(|other| other.median).fold(0.0, f64::max)
    };
    // The same work stands together, its name once.
    let mut ordered: Vec<&Row> = Vec::with_capacity(rows.len());
    for row in rows {
        if !ordered.iter().any(|known| group(known) == group(row)) {
            ordered.extend(rows.iter().filter(|other| group(other) == group(row)));
        }
    }
    let mut before = None;
    ordered
        .iter()
        .map(|row| {
            let first = before.replace(group(row)).is_none_or(|before| before != group(row));
            context! {
                first,
                span => ordered.iter().filter(|other| group(other) == group(row)).count(),
                case => row.node.clone().unwrap_or_else(|| row.case.clone()),
                metric => metric(row),
                // Where one case has several.
                told => (matches!(row.suite.as_str(), "posenet" | "networks" | "growth" | "start") || row.metric == "chain") && row.node.is_none(),
                maker => maker(row),
                colour => colour(row),
                time => time(row.median),
                bar => format!("{:.1}", 100.0 * row.median / slowest(row).max(1e-9)),
                tenths => format!("{} - {}", time(row.p10), time(row.p90)),
                samples => row.samples.len(),
                rate => rate(row),
                share => share(row).unwrap_or_default(),
                full => row.roofline.map(|share| format!("{:.1}", 100.0 * share.min(1.0))),
                kernel => row.kernel.clone(),
                chosen => row.chosen_by.clone(),
                checked => row.checked.clone(),
                clock => row.clock.clone(),
            }
        })
        .collect()
}

fn metric(row: &Row) -> &'static str {
    match row.metric.as_str() {
        "host" => "host to host",
        "process" => "process start to result",
        "wall" => "wall",
        "chain" => "in a chain",
        _ => "on the device",
    }
}

/// The fastest and slowest work-group of each kernel and backend.
fn extremes(rows: &[&Row], colour: impl Fn(&Row) -> usize) -> Vec<Value> {
    let size = |row: &Row| row.node.clone().unwrap_or_default();
    by_case(rows)
        .iter()
        .filter_map(|case| {
            let (best, worst) = (*case.first()?, *case.last()?);
            Some(context! {
                case => best.case.clone(),
                maker => maker(best),
                colour => colour(best),
                sizes => case.len(),
                best => size(best),
                best_time => time(best.median),
                worst => size(worst),
                worst_time => time(worst.median),
                apart => format!("{:.1}", worst.median / best.median),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::row::SCHEMA;
    use crate::bench::row::tests::row;

    fn record() -> Record {
        let mut rows = Vec::new();
        for (suite, case, metric, node, group) in [
            ("baseline", "copy f32", "device", None, [256, 1, 1]),
            ("gemm", "gemm_f32 m256 n256 k256", "device", None, [8, 8, 1]),
            ("gemm", "gemm_f32 m512 n512 k512", "device", None, [8, 8, 1]),
            ("ops", "pointwise_f32 <b>", "device", None, [8, 8, 1]),
            ("work-groups", "pointwise_f32 n1", "device", Some("(1,1,1)"), [1, 1, 1]),
            ("work-groups", "pointwise_f32 n1", "device", Some("(8,8,1)"), [8, 8, 1]),
            ("posenet", "net f32", "host", None, [0; 3]),
            ("posenet", "net f32", "node", Some("1 conv"), [8, 4, 8]),
            ("growth", "net, batch=2 f32", "device", None, [0; 3]),
            ("growth", "net, batch=4 f32", "device", None, [0; 3]),
            ("start", "net f32, empty caches", "process", None, [0; 3]),
        ] {
            let mut row = row(case, &[2.0, 3.0, 4.0, 5.0, 6.0]);
            (row.suite, row.metric) = (suite.to_owned(), metric.to_owned());
            (row.node, row.work_group) = (node.map(str::to_owned), group);
            rows.push(row);
        }
        let machine = Machine {
            schema: SCHEMA,
            system: "linux x86_64".to_owned(),
            processor: "Some <CPU>".to_owned(),
            date: "2026-11-21 05:30".to_owned(),
            command: "diptych bench --suite all".to_owned(),
            version: "0.1.0".to_owned(),
            commit: None,
            debug_build: true,
        };
        let note = Note {
            suite: "gemm".to_owned(),
            case: "gemm_f32 m4096".to_owned(),
            backend: "cpu".to_owned(),
            text: "left out: \"too long\"".to_owned(),
            failure: false,
        };
        Record { machines: vec![machine], rows, notes: vec![note] }
    }

    #[test]
    fn the_page_stands_alone_and_quotes_what_it_is_given() {
        let page = page(&record()).expect("a page");
        for wanted in [
            "Some &lt;CPU&gt;",
            "pointwise_f32 &lt;b&gt;",
            "left out: &quot;too long&quot;",
            "<svg",
            "Time against work-group size",
            "net: time against batch",
            "not optimised",
            "prefers-color-scheme",
        ] {
            assert!(page.contains(wanted), "no {wanted:?}");
        }
        for foreign in ["<script", "src=\"http", "@import", "<link"] {
            assert!(!page.contains(foreign), "{foreign}");
        }
        assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    }

    #[test]
    fn a_record_of_one_row_has_a_page_too() {
        let record = Record { rows: record().rows.split_off(10), ..Default::default() };
        assert!(page(&record).expect("a page").contains("First result of a new process"));
    }
}
