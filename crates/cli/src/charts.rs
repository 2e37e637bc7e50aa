//! Charts for a page: lines and points over two axes, drawn by plotters; and the font of all charts.
//!
//! A logarithmic axis is a linear one over the logarithms, with ticks at round values: so one
//! drawing serves all.

use anyhow::{Result, anyhow, bail};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::sync::Once;

/// The family that charts ask for: an SVG's reader brings one, a bitmap has this one.
pub(crate) const FONT: &str = "sans-serif";
/// Printable ASCII of DejaVu Sans; its licence lies beside it.
const FONT_FILE: &[u8] = include_bytes!("DejaVuSans-ascii.ttf");

/// Makes [`FONT`] known to plotters.
pub(crate) fn register_font() {
    static REGISTERED: Once = Once::new();
    // It fails for what is no font; the texts' drawing would then fail too, and says so.
    REGISTERED.call_once(|| drop(plotters::style::register_font(FONT, FontStyle::Normal, FONT_FILE)));
}

/// How values lie along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    /// From zero, at round decimal steps.
    Linear,
    /// Ticks at 1, 2 and 5 times powers of ten.
    Log10,
    /// Ticks at powers of two.
    Log2,
    /// One place for each of so many numbered things, the first being 1.
    Count(usize),
}

/// An axis.
#[derive(Debug, Clone)]
pub(crate) struct Axis {
    /// What it measures, with its unit.
    pub(crate) label: String,
    pub(crate) scale: Scale,
}

impl Axis {
    pub(crate) fn new(label: impl Into<String>, scale: Scale) -> Self {
        Axis { label: label.into(), scale }
    }
}

/// What is drawn at a series' points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Points joined by a line.
    Line,
    /// A dashed line without points: a limit, not a measurement.
    Limit,
    /// Points alone.
    Points,
}

/// Points of one kind.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
    pub(crate) mark: Mark,
    /// Its place among the colours.
    pub(crate) colour: usize,
}

/// A chart.
#[derive(Debug, Clone)]
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
}

/// Colours of the series that a page has.
pub(crate) const COLOURS: usize = 6;

/// Colours of a chart.
#[derive(Debug, Clone, Copy)]
struct Palette {
    ink: RGBColor,
    grid: RGBColor,
    series: [RGBColor; COLOURS],
}

/// Colours that stand for the variables of a page's style sheet: see [`themed`].
const THEMED: Palette = Palette {
    ink: RGBColor(1, 0, 240),
    grid: RGBColor(1, 0, 241),
    series: [
        RGBColor(1, 1, 0),
        RGBColor(1, 1, 1),
        RGBColor(1, 1, 2),
        RGBColor(1, 1, 3),
        RGBColor(1, 1, 4),
        RGBColor(1, 1, 5),
    ],
};

const SMALL: i32 = 15;
const LARGE: i32 = 19;
/// Pixels between neighbouring entries of the legend, and of a letter of its text.
const LEGEND: (i32, i32) = (42, 7);

/// A range along an axis, in drawn coordinates, and its ticks.
#[derive(Debug, Clone)]
struct Span {
    low: f64,
    high: f64,
    ticks: Vec<f64>,
}

impl Ranged for Span {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        from + (f64::from(to - from) * (value - self.low) / (self.high - self.low)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.low..self.high
    }
}

impl Scale {
    /// A value's place.
    fn place(self, value: f64) -> f64 {
        match self {
            Scale::Linear | Scale::Count(_) => value,
            Scale::Log10 => value.log10(),
            Scale::Log2 => value.log2(),
        }
    }

    /// A place's value as text.
    fn text(self, place: f64) -> String {
        let value = match self {
            Scale::Linear | Scale::Count(_) => place,
            Scale::Log10 => 10f64.powf(place),
            Scale::Log2 => 2f64.powf(place),
        };
        short(value)
    }

    /// The range that shows `values`, with room at both ends.
    fn span(self, values: impl Iterator<Item = f64>) -> Option<Span> {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for place in values.map(|value| self.place(value)).filter(|place| place.is_finite()) {
            (low, high) = (low.min(place), high.max(place));
        }
        if let Scale::Count(count) = self {
            let step = count.div_ceil(31).max(1);
            let ticks = (1..=count).step_by(step).map(|index| index as f64).collect();
            return Some(Span { low: 0.4, high: count as f64 + 0.6, ticks });
        }
        if low > high {
            return None;
        }
        let room = (0.06 * (high - low)).max(0.05);
        if self == Scale::Linear {
            let step = round_step(high / 6.0);
            let ticks = (0..=(high / step) as usize + 1).map(|index| index as f64 * step).collect();
            return Some(Span { low: 0.0, high: high * 1.06, ticks });
        }
        (low, high) = (low - room, high + room);
        let within = |place: &f64| (low..=high).contains(place);
        let whole = low.floor() as i32..=high.ceil() as i32;
        let ticks: Vec<f64> = match self {
            Scale::Log10 if high - low < 4.0 => {
                let steps = [1.0f64, 2.0, 5.0].map(f64::log10);
                whole.flat_map(|power| steps.map(|step| f64::from(power) + step)).filter(within).collect()
            }
            _ => whole.map(f64::from).filter(within).collect(),
        };
        Some(Span { low, high, ticks })
    }
}

/// The least of 1, 2 and 5 times a power of ten that is not below `step`.
fn round_step(step: f64) -> f64 {
    let unit = 10f64.powf(step.max(f64::MIN_POSITIVE).log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|factor| factor * unit).into_iter().find(|round| *round >= step).unwrap_or(unit)
}

/// A number in as few letters as it needs: `20k`, `1.5`, `0.02`.
pub(crate) fn short(value: f64) -> String {
    let (value, unit) = match value.abs() {
        size if size >= 1e6 => (value / 1e6, "M"),
        size if size >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let digits = match value.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 1.0 => 2,
        size => (2.0 - size.log10().ceil()) as usize,
    };
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{unit}")
}

fn failed(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("drawing: {error}")
}

/// Draws `chart` on all of `area`.
fn draw<DB: DrawingBackend>(area: &DrawingArea<DB, Shift>, chart: &Chart, palette: &Palette) -> Result<()> {
    let points = || chart.series.iter().flat_map(|series| &series.points);
    let (Some(x), Some(y)) = (
        chart.x.scale.span(points().map(|point| point.0)),
        chart.y.scale.span(points().map(|point| point.1)),
    ) else {
        bail!("{}: no values to draw", chart.title);
    };
    let ink = |size: i32| (FONT, size).into_font().color(&palette.ink);
    area.draw(&Text::new(chart.title.clone(), (14, 12), ink(LARGE))).map_err(failed)?;
    let rows = legend(area, chart, palette)?;
    let (_, plot) = area.split_vertically(44 + 20 * rows);
    let mut built = ChartBuilder::on(&plot)
        .margin_right(16)
        .margin_left(6)
        .margin_bottom(6)
        .margin_top(8)
        .x_label_area_size(42)
        .y_label_area_size(58)
        .build_cartesian_2d(x.clone(), y.clone())
        .map_err(failed)?;
    built
        .configure_mesh()
        .x_desc(&chart.x.label)
        .y_desc(&chart.y.label)
        .x_labels(x.ticks.len().max(2))
        .y_labels(y.ticks.len().max(2))
        .x_label_formatter(&|place| chart.x.scale.text(*place))
        .y_label_formatter(&|place| chart.y.scale.text(*place))
        .label_style(ink(SMALL))
        .axis_desc_style(ink(SMALL))
        .axis_style(palette.ink)
        .bold_line_style(palette.grid)
        .light_line_style(palette.grid.mix(0.0))
        .draw()
        .map_err(failed)?;
    for series in &chart.series {
        let colour = palette.series[series.colour % palette.series.len()];
        let placed = series
            .points
            .iter()
            .map(|&(px, py)| (chart.x.scale.place(px), chart.y.scale.place(py)))
            .filter(|(px, py)| px.is_finite() && py.is_finite());
        match series.mark {
            Mark::Line => {
                let line = LineSeries::new(placed, colour.stroke_width(2)).point_size(3);
                built.draw_series(line).map_err(failed)?;
            }
            Mark::Limit => {
                let line = DashedLineSeries::new(placed, 6, 4, colour.stroke_width(2));
                built.draw_series(line).map_err(failed)?;
            }
            Mark::Points => {
                let dots = placed.map(|place| Circle::new(place, 4, colour.mix(0.75).filled()));
                built.draw_series(dots).map_err(failed)?;
            }
        }
    }
    area.present().map_err(failed)
}

/// The names beside their marks, below the title; returns the rows that they take.
fn legend<DB: DrawingBackend>(
    area: &DrawingArea<DB, Shift>,
    chart: &Chart,
    palette: &Palette,
) -> Result<i32> {
    let width = i32::try_from(area.dim_in_pixel().0)?;
    let style = (FONT, SMALL).into_font().color(&palette.ink).pos(Pos::new(HPos::Left, VPos::Center));
    let (mut at, mut row) = (14, 0);
    for series in &chart.series {
        let length = LEGEND.0 + LEGEND.1 * i32::try_from(series.name.chars().count())?;
        if at > 14 && at + length > width {
            (at, row) = (14, row + 1);
        }
        let y = 46 + 20 * row;
        let colour = palette.series[series.colour % palette.series.len()];
        let line = |from: i32, to: i32| PathElement::new(vec![(from, y), (to, y)], colour.stroke_width(2));
        match series.mark {
            Mark::Line => {
                area.draw(&line(at, at + 20)).map_err(failed)?;
                area.draw(&Circle::new((at + 10, y), 3, colour.filled())).map_err(failed)?;
            }
            Mark::Limit => {
                for from in [at, at + 8, at + 16] {
                    area.draw(&line(from, from + 5)).map_err(failed)?;
                }
            }
            Mark::Points => {
                area.draw(&Circle::new((at + 10, y), 4, colour.mix(0.75).filled())).map_err(failed)?;
            }
        }
        area.draw(&Text::new(series.name.clone(), (at + 26, y), style.clone())).map_err(failed)?;
        at += length;
    }
    Ok(if chart.series.is_empty() { 0 } else { row + 1 })
}

/// `chart` as SVG whose colours are variables of the page around it: `--ink`, `--grid`, `--c0` to
/// `--c5`. So one drawing serves a light and a dark page.
pub(crate) fn themed(chart: &Chart, size: (u32, u32)) -> Result<String> {
    register_font();
    let mut text = String::new();
    draw(&SVGBackend::with_string(&mut text, size).into_drawing_area(), chart, &THEMED)?;
    let variable = |name: &str| format!("var(--{name})");
    for (colour, name) in [(THEMED.ink, "ink".to_owned()), (THEMED.grid, "grid".to_owned())]
        .into_iter()
        .chain(THEMED.series.into_iter().enumerate().map(|(index, colour)| (colour, format!("c{index}"))))
    {
        let RGBColor(red, green, blue) = colour;
        text = text.replace(&format!("#{red:02X}{green:02X}{blue:02X}"), &variable(&name));
    }
    let [width, height] = [size.0, size.1].map(|extent| extent.to_string());
    let plain = format!("width=\"{width}\" height=\"{height}\" ");
    Ok(text.replacen(&plain, &format!("role=\"img\" aria-label=\"{}\" ", escape(&chart.title)), 1))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: &[(f64, f64)]) -> Chart {
        let series = Series { name: "wgpu".to_owned(), points: points.to_vec(), mark: Mark::Line, colour: 0 };
        Chart {
            title: "a < b".to_owned(),
            x: Axis::new("n", Scale::Log2),
            y: Axis::new("GFLOP/s", Scale::Log10),
            series: vec![series],
        }
    }

    #[test]
    fn ticks_are_round_values_within_the_range() {
        let span = Scale::Log10.span([3.0, 70.0].into_iter()).expect("values");
        let ticks: Vec<String> = span.ticks.iter().map(|tick| Scale::Log10.text(*tick)).collect();
        assert_eq!(ticks, ["5", "10", "20", "50"]);
        let span = Scale::Linear.span([0.3, 11.0].into_iter()).expect("values");
        assert_eq!(span.ticks.get(..3), Some(&[0.0, 2.0, 4.0][..]));
        let span = Scale::Log2.span([256.0, 4096.0].into_iter()).expect("values");
        let ticks: Vec<String> = span.ticks.iter().map(|tick| Scale::Log2.text(*tick)).collect();
        assert_eq!(ticks, ["256", "512", "1024", "2048", "4096"]);
        assert!(Scale::Log10.span(std::iter::empty()).is_none());
    }

    #[test]
    fn numbers_are_short() {
        for (value, wanted) in [
            (0.0, "0"),
            (0.02, "0.02"),
            (0.5, "0.5"),
            (1.5, "1.5"),
            (20.0, "20"),
            (4096.0, "4096"),
            (51_400.0, "51.4k"),
            (2e6, "2M"),
        ] {
            assert_eq!(short(value), wanted);
        }
    }

    #[test]
    fn a_themed_chart_takes_every_colour_from_the_page() {
        let text = themed(&chart(&[(256.0, 10.0), (512.0, 40.0)]), (640, 400)).expect("drawn");
        for wanted in ["var(--ink)", "var(--grid)", "var(--c0)", "a &lt; b", "viewBox=\"0 0 640 400\""] {
            assert!(text.contains(wanted), "no {wanted} in {text}");
        }
        assert!(!text.contains("=\"#"), "a fixed colour: {text}");
        assert!(themed(&chart(&[]), (640, 400)).is_err(), "nothing to draw");
    }
}
