//! Times, and tables of them.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};
use std::time::Duration;

/// The time from input in host memory to outputs in host memory, over several runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latency {
    pub runs: usize,
    pub min_ms: f64,
    pub median_ms: f64,
    pub p90_ms: f64,
}

impl Latency {
    /// The statistics of some runs; none for no runs.
    ///
    /// The median of an even number is the mean of the middle two. The 90th percentile is the
    /// shortest time that at least 90 % of the runs did not exceed.
    pub fn of(times: &[Duration]) -> Option<Self> {
        let mut ms: Vec<f64> = times.iter().map(|&time| milliseconds(time)).collect();
        ms.sort_by(f64::total_cmp);
        let runs = ms.len();
        let min_ms = *ms.first()?;
        let median_ms = (ms[(runs - 1) / 2] + ms[runs / 2]) / 2.0;
        let p90_ms = ms[(runs * 9).div_ceil(10) - 1];
        Some(Latency { runs, min_ms, median_ms, p90_ms })
    }
}

/// A duration in milliseconds.
pub fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Without the digits that only f32 arithmetic put there.
pub fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (value * scale).round() / scale
}

/// A rule under the header, and nothing else.
const RULED: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// A table whose columns `right` hold numbers, no wider than the terminal.
pub fn table(header: &[&str], right: &[usize], rows: impl Iterator<Item = Vec<String>>) -> Table {
    let mut table = Table::new();
    table.load_style(RULED).set_content_arrangement(ContentArrangement::Dynamic).set_header(header.to_vec());
    for row in rows {
        table.add_row(row);
    }
    for &index in right {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_statistics() {
        let ms = |values: &[u64]| values.iter().map(|&v| Duration::from_millis(v)).collect::<Vec<_>>();
        assert_eq!(Latency::of(&[]), None);
        let one = Latency::of(&ms(&[7])).expect("one run");
        assert_eq!((one.min_ms, one.median_ms, one.p90_ms), (7.0, 7.0, 7.0));
        let ten = Latency::of(&ms(&[10, 9, 8, 7, 6, 5, 4, 3, 2, 1])).expect("ten runs");
        assert_eq!((ten.runs, ten.min_ms, ten.median_ms, ten.p90_ms), (10, 1.0, 5.5, 9.0));
        let eleven = Latency::of(&ms(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])).expect("eleven runs");
        assert_eq!((eleven.median_ms, eleven.p90_ms), (6.0, 10.0));
    }
}
