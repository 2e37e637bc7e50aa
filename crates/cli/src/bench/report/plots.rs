//! The charts of the page.

use super::{maker, makers};
use crate::bench::row::Row;
use crate::charts::{Axis, Chart, Mark, Scale, Series};

/// The measured peaks of a maker's device: GFLOP/s and GB/s.
fn peaks(rows: &[Row], who: &str) -> Option<[f64; 2]> {
    let of = |what| rate(rows, who, false, what);
    Some([of(|row| row.flops)?, of(|row| row.bytes)?])
}

/// The measured peak of its matrix instructions in GFLOP/s, if it has some.
fn matrix_peak(rows: &[Row], who: &str) -> Option<f64> {
    rate(rows, who, true, |row| row.flops)
}

fn rate(rows: &[Row], who: &str, halves: bool, what: fn(&Row) -> u64) -> Option<f64> {
    let mut baselines = rows.iter().filter(|row| row.suite == "baseline" && maker(row) == who);
    let row = baselines.find(|row| what(row) > 0 && row.is_of_halves() == halves)?;
    Some(what(row) as f64 / row.median / 1e3)
}

fn series(name: impl Into<String>, points: Vec<(f64, f64)>, mark: Mark, colour: usize) -> Series {
    Series { name: name.into(), points, mark, colour }
}

/// One roofline for each backend: rate against operations per byte.
pub(super) fn rooflines(rows: &[Row]) -> Vec<Chart> {
    let mut charts = Vec::new();
    for who in makers(rows) {
        let Some([gflops, gbytes]) = peaks(rows, &who) else { continue };
        let points = |suite: &str, precision: &str| -> Vec<(f64, f64)> {
            rows.iter()
                .filter(|row| row.suite == suite && row.precision == precision && maker(row) == who)
                .filter_map(|row| Some((row.flops as f64 / row.bytes as f64, row.gflops?)))
                .collect()
        };
        let mut all: Vec<Series> = [
            ("gemm f32", "gemm", "f32", 0),
            ("gemm f16s", "gemm", "f16s", 1),
            ("ops f32", "ops", "f32", 2),
            ("ops f16s", "ops", "f16s", 3),
        ]
        .into_iter()
        .map(|(name, suite, precision, colour)| series(name, points(suite, precision), Mark::Points, colour))
        .filter(|series| !series.points.is_empty())
        .collect();
        let intensities = || all.iter().flat_map(|series| &series.points).map(|point| point.0);
        let low = intensities().fold(f64::INFINITY, f64::min);
        let high = intensities().fold(0.0, f64::max);
        if low > high {
            continue;
        }
        let roof = |gflops: f64| {
            let ridge = gflops / gbytes;
            let mut line = vec![(low, (low * gbytes).min(gflops))];
            line.extend((low < ridge && ridge < high).then_some((ridge, gflops)));
            line.push((high, (high * gbytes).min(gflops)));
            line
        };
        let matrices = matrix_peak(rows, &who).map(roof);
        all.push(series("measured roofline (f32)", roof(gflops), Mark::Limit, 4));
        all.extend(matrices.map(|line| series("measured roofline (f16, matrix unit)", line, Mark::Limit, 5)));
        charts.push(Chart {
            title: format!("{who}: rate against arithmetic intensity"),
            x: Axis::new("FLOP per byte moved at least", Scale::Log2),
            y: Axis::new("GFLOP/s", Scale::Log10),
            series: all,
        });
    }
    charts
}

/// Square products: rate against the side.
pub(super) fn squares(rows: &[Row]) -> Option<Chart> {
    let mut all = Vec::new();
    for (colour, who) in makers(rows).into_iter().enumerate() {
        for (precision, colour) in [("f32", colour), ("f16s", colour + 3)] {
            let mut points: Vec<(f64, f64)> = rows
                .iter()
                .filter(|row| row.suite == "gemm" && row.precision == precision && maker(row) == who)
                .filter(|row| row.metric != "chain")
                .filter_map(|row| Some((square(&row.case)?, row.gflops?)))
                .collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            if !points.is_empty() {
                all.push(series(format!("{who} {precision}"), points, Mark::Line, colour));
            }
        }
    }
    let sides = || all.iter().flat_map(|series| &series.points).map(|point| point.0);
    let (low, high) = (sides().fold(f64::INFINITY, f64::min), sides().fold(0.0, f64::max));
    for (colour, who) in makers(rows).into_iter().enumerate() {
        if let Some([gflops, _]) = peaks(rows, &who).filter(|_| low < high) {
            let points = vec![(low, gflops), (high, gflops)];
            all.push(series(format!("{who} peak"), points, Mark::Limit, colour));
        }
    }
    all.iter().any(|series| series.mark == Mark::Line && series.points.len() > 1).then(|| Chart {
        title: "Square products: rate against the side".to_owned(),
        x: Axis::new("m = n = k", Scale::Log2),
        y: Axis::new("GFLOP/s", Scale::Log10),
        series: all,
    })
}

/// The side of a square product, from its case.
fn square(case: &str) -> Option<f64> {
    let extents = case.split_once(' ')?.1;
    let side: f64 = extents.strip_prefix('m')?.split(' ').next()?.parse().ok()?;
    (extents == format!("m{side} n{side} k{side}")).then_some(side)
}

/// One chart for each kernel: time against the work-group's invocations.
pub(super) fn work_groups(rows: &[Row]) -> Vec<Chart> {
    let sizes: Vec<&Row> = rows.iter().filter(|row| row.suite == "work-groups").collect();
    let (cases, everyone) = (cases(&sizes), makers(rows));
    let chart = |case: &&str| {
        let lanes = everyone.iter().enumerate().map(|(colour, who)| {
            let points = sizes
                .iter()
                .filter(|row| row.case == *case && maker(row) == *who)
                .map(|row| (f64::from(row.work_group.iter().product::<u32>()), row.median));
            series(who.clone(), points.collect(), Mark::Points, colour)
        });
        let lanes = lanes.filter(|lane| !lane.points.is_empty());
        Chart {
            title: (*case).to_owned(),
            x: Axis::new("invocations of the work-group", Scale::Log2),
            y: Axis::new("microseconds", Scale::Log10),
            series: lanes.collect(),
        }
    };
    cases.iter().map(chart).collect()
}

/// One chart for each network: the time of each node on each backend. Changes of layout are left
/// out, so that node 1 is the same everywhere.
pub(super) fn nodes(rows: &[Row]) -> Vec<Chart> {
    let nodes: Vec<&Row> = rows.iter().filter(|row| row.metric == "node" && !is_layout(row)).collect();
    let (cases, everyone) = (cases(&nodes), makers(rows));
    let chart = |case: &&str| {
        // The backend with the most nodes gives their places: another may run several as one.
        let of_maker = |who: &String| -> Vec<&str> {
            let of = nodes.iter().filter(|row| row.case == *case && maker(row) == *who);
            of.map(|row| first_name(row)).collect()
        };
        let names = everyone.iter().map(of_maker).max_by_key(Vec::len).unwrap_or_default();
        let lanes = everyone.iter().enumerate().map(|(colour, who)| {
            let of = nodes.iter().filter(|row| row.case == *case && maker(row) == *who);
            let points = of.filter_map(|row| {
                let place = names.iter().position(|name| *name == first_name(row))?;
                Some(((place + 1) as f64, row.median))
            });
            series(who.clone(), points.collect(), Mark::Line, colour)
        });
        let lanes: Vec<Series> = lanes.filter(|lane| !lane.points.is_empty()).collect();
        Chart {
            title: format!("{case}: device time of each node"),
            x: Axis::new("node", Scale::Count(names.len())),
            y: Axis::new("microseconds", Scale::Log10),
            series: lanes,
        }
    };
    cases.iter().map(chart).collect()
}

/// One chart for each network of the suite `growth`: the device's time against what grows, beside the least that the baselines
/// allow.
pub(super) fn growth(rows: &[Row]) -> Vec<Chart> {
    let grown: Vec<(&Row, Grown<'_>)> = rows
        .iter()
        .filter(|row| row.suite == "growth" && row.metric == "device")
        .filter_map(|row| Some((row, Grown::of(&row.case)?)))
        .collect();
    let mut names: Vec<(&str, &str)> = Vec::new();
    for (_, grown) in &grown {
        if !names.contains(&(grown.network, grown.axis)) {
            names.push((grown.network, grown.axis));
        }
    }
    let everyone = makers(rows);
    let chart = |&(network, axis): &(&str, &str)| {
        let of = || grown.iter().filter(|(_, grown)| (grown.network, grown.axis) == (network, axis));
        let mut all = Vec::new();
        for (colour, who) in everyone.iter().enumerate() {
            for (precision, shift) in [("f32", 0), ("f16s", 3)] {
                let own = || of().filter(|(row, _)| maker(row) == *who && row.precision == precision);
                let points: Vec<(f64, f64)> = own().map(|(row, grown)| (grown.size, row.median)).collect();
                let least = own().filter_map(|(row, grown)| Some((grown.size, row.median * row.roofline?)));
                let least: Vec<(f64, f64)> = least.filter(|(_, time)| *time > 0.0).collect();
                if !points.is_empty() {
                    all.push(series(format!("{who} {precision}"), points, Mark::Line, colour + shift));
                }
                if least.len() > 1 {
                    all.push(series(format!("{who} {precision}, least"), least, Mark::Limit, colour + shift));
                }
            }
        }
        Chart {
            title: format!("{network}: time against {axis}"),
            x: Axis::new(axis, Scale::Log2),
            y: Axis::new("microseconds", Scale::Log10),
            series: all,
        }
    };
    names.iter().map(chart).collect()
}

/// What a case of the suite `growth` says: `MobileNet, resolution=224 f32`.
struct Grown<'c> {
    network: &'c str,
    axis: &'c str,
    size: f64,
}

impl<'c> Grown<'c> {
    fn of(case: &'c str) -> Option<Self> {
        let (network, rest) = case.rsplit_once(", ")?;
        let (axis, size) = rest.split_once('=')?;
        let size = size.split(' ').next()?.parse().ok()?;
        Some(Grown { network, axis, size })
    }
}

/// The cases of `rows`, in their order.
fn cases<'r>(rows: &[&'r Row]) -> Vec<&'r str> {
    let mut cases: Vec<&str> = Vec::new();
    for row in rows {
        if !cases.contains(&row.case.as_str()) {
            cases.push(&row.case);
        }
    }
    cases
}

/// A node's name without its number; of nodes that run as one, the first's.
fn first_name(row: &Row) -> &str {
    let node = row.node.as_deref().unwrap_or_default();
    let name = node.split_once(' ').map_or(node, |(_, name)| name);
    name.split(" + ").next().unwrap_or(name)
}

/// Whether a node is a change of layout.
pub(super) fn is_layout(row: &Row) -> bool {
    row.node.as_deref().is_some_and(|node| node.ends_with(" (layout)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_squares_are_squares() {
        assert_eq!(square("gemm_f32 m256 n256 k256"), Some(256.0));
        for case in ["gemm_f32 m1 n4096 k4096", "gemm_f32 m64 n64 k64 batch64", "copy f32"] {
            assert_eq!(square(case), None, "{case}");
        }
    }
}
