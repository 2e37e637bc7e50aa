//! The chart: each node's median time, one line for each setting, on a logarithmic axis.

use super::{Figures, SETTINGS};
use anyhow::{Result, anyhow};
use plotters::prelude::*;
use std::path::Path;

/// Colours that stay apart for colour-blind readers (Okabe and Ito, 2008).
const COLOURS: [RGBColor; SETTINGS.len()] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 158, 115),
];

pub(super) fn draw(path: &Path, figures: &Figures) -> Result<()> {
    let fail = |error: &dyn std::fmt::Display| anyhow!("{}: {error}", path.display());
    let medians = |setting: usize| figures.nodes.iter().map(move |node| node.median(setting));
    let all: Vec<f64> =
        (0..SETTINGS.len()).flat_map(medians).filter(|time| time.is_finite() && *time > 0.0).collect();
    let low = all.iter().copied().fold(f64::INFINITY, f64::min);
    let high = all.iter().copied().fold(0.0, f64::max);
    if all.is_empty() {
        return Err(anyhow!("{}: no times to draw", path.display()));
    }
    let area = SVGBackend::new(path, (960, 480)).into_drawing_area();
    area.fill(&WHITE).map_err(|error| fail(&error))?;
    let count = figures.nodes.len();
    let mut chart = ChartBuilder::on(&area)
        .caption(format!("Time of each node: {}", figures.device), ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(56)
        .build_cartesian_2d(0.5..count as f64 + 0.5, (low / 1.3..high * 1.3).log_scale())
        .map_err(|error| fail(&error))?;
    chart
        .configure_mesh()
        .x_desc("node")
        .y_desc("microseconds")
        .x_labels(count.min(31))
        .y_labels(8)
        .x_label_formatter(&|x| format!("{x:.0}"))
        .light_line_style(WHITE.mix(0.0))
        .draw()
        .map_err(|error| fail(&error))?;
    for (setting, name) in SETTINGS.iter().enumerate() {
        let colour = COLOURS[setting];
        let points = medians(setting).enumerate().map(|(index, time)| ((index + 1) as f64, time));
        chart
            .draw_series(LineSeries::new(points, colour.stroke_width(2)).point_size(3))
            .map_err(|error| fail(&error))?
            .label(*name)
            .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], colour.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        // Early nodes leave room above: (1,1,1) is slowest where channels are many.
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .draw()
        .map_err(|error| fail(&error))?;
    area.present().map_err(|error| fail(&error))
}
