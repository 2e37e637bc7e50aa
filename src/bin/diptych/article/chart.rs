//! The chart: each node's median time, one line for each setting, on a logarithmic axis.

use super::{Figures, SETTINGS};
use crate::charts::{self, Axis, Chart, Mark, Scale, Series};
use anyhow::{Context as _, Result};
use plotters::prelude::{IntoDrawingArea, SVGBackend};
use std::path::Path;

pub(super) fn draw(path: &Path, figures: &Figures) -> Result<()> {
    let series = SETTINGS.iter().enumerate().map(|(setting, name)| Series {
        name: (*name).to_owned(),
        points: figures
            .nodes
            .iter()
            .enumerate()
            .map(|(index, node)| ((index + 1) as f64, node.median(setting)))
            .collect(),
        mark: Mark::Line,
        colour: setting,
    });
    let chart = Chart {
        title: format!("Time of each node: {}", figures.device),
        x: Axis::new("node", Scale::Count(figures.nodes.len())),
        y: Axis::new("microseconds", Scale::Log10),
        series: series.collect(),
    };
    let area = SVGBackend::new(path, (960, 480)).into_drawing_area();
    charts::draw(&area, &chart, &charts::PAPER).with_context(|| format!("{}", path.display()))
}
