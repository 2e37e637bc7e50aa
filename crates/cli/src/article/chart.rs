//! The article's figure, as SVG and as PNG: each node's times with every setting on a logarithmic
//! axis, and beneath it the same numbers as a table.

use super::text::with_spread;
use super::{Figures, SETTINGS, speed_up};
use crate::charts::{self, FONT};
use anyhow::{Context as _, Result, anyhow};
use diptych::internals::tune::statistics::percentile;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::path::Path;

/// Colours that stay apart for colour-blind readers (Okabe and Ito, 2008).
const COLOURS: [RGBColor; SETTINGS.len()] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 158, 115),
];

/// Width, height of the chart, and height of a line of the table, in the SVG's units.
const WIDTH: u32 = 1120;
const CHART: u32 = 480;
const LINE: u32 = 17;
/// Height of the legend.
const LEGEND: u32 = 22;
/// Pixels of the PNG to a unit.
const SCALE: u32 = 2;

type Area<B> = DrawingArea<B, Shift>;

/// Writes `figures` to `path` with the endings `svg` and `png`.
pub(super) fn draw(path: &Path, figures: &Figures) -> Result<()> {
    charts::register_font();
    let size = (WIDTH, CHART + LINE * (lines(figures).len() as u32 + 2));
    let svg = path.with_extension("svg");
    picture(&SVGBackend::new(&svg, size).into_drawing_area(), 1, figures)
        .with_context(|| format!("{}", svg.display()))?;
    let size = (size.0 * SCALE, size.1 * SCALE);
    let mut pixels = vec![0; 3 * size.0 as usize * size.1 as usize];
    let png = path.with_extension("png");
    let drawn = picture(&BitMapBackend::with_buffer(&mut pixels, size).into_drawing_area(), SCALE, figures);
    drawn.and_then(|()| encode(&png, size, &pixels)).with_context(|| format!("{}", png.display()))
}

fn encode(path: &Path, (width, height): (u32, u32), pixels: &[u8]) -> Result<()> {
    let file = std::io::BufWriter::new(std::fs::File::create(path)?);
    let mut encoder = png::Encoder::new(file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    Ok(writer.finish()?)
}

fn fail(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("{error}")
}

fn picture<B: DrawingBackend>(area: &Area<B>, scale: u32, figures: &Figures) -> Result<()> {
    area.fill(&WHITE).map_err(fail)?;
    let (above, below) = area.split_vertically(CHART * scale);
    chart(&above, scale, figures)?;
    table(&below, scale, figures)?;
    area.present().map_err(fail)
}

fn chart<B: DrawingBackend>(area: &Area<B>, scale: u32, figures: &Figures) -> Result<()> {
    let times = |setting: usize, share: f64| {
        figures.nodes.iter().map(move |node| percentile(&node.times[setting], share).unwrap_or(f64::NAN))
    };
    let all: Vec<f64> = (0..SETTINGS.len())
        .flat_map(|setting| times(setting, 0.1).chain(times(setting, 0.9)))
        .filter(|time| time.is_finite() && *time > 0.0)
        .collect();
    if all.is_empty() {
        return Err(anyhow!("no times to draw"));
    }
    let low = all.iter().copied().fold(f64::INFINITY, f64::min);
    let high = all.iter().copied().fold(0.0, f64::max);
    let count = figures.nodes.len();
    let title = format!("Time of each node: {}", figures.device);
    let area = area.margin(8 * scale, 0, 0, 0).titled(&title, (FONT, 18 * scale)).map_err(fail)?;
    let (above, below) = area.split_vertically(LEGEND * scale);
    legend(&above, scale, &figures.heads())?;
    let mut chart = ChartBuilder::on(&below)
        .margin(12 * scale)
        .x_label_area_size(36 * scale)
        .y_label_area_size(64 * scale)
        .build_cartesian_2d(0.5..count as f64 + 0.5, (low / 1.3..high * 1.3).log_scale())
        .map_err(fail)?;
    chart
        .configure_mesh()
        .label_style((FONT, 12 * scale))
        .x_desc("node")
        .y_desc(format!("microseconds ({})", figures.clock))
        .x_labels(count.min(31))
        .y_labels(8)
        .x_label_formatter(&|x| format!("{x:.0}"))
        .light_line_style(WHITE.mix(0.0))
        .set_all_tick_mark_size(5 * scale)
        .draw()
        .map_err(fail)?;
    for (setting, colour) in COLOURS.iter().enumerate() {
        let line = colour.stroke_width(2 * scale);
        // Side by side, so that no bar hides another.
        let x = move |index: usize| (index + 1) as f64 + 0.1 * (setting as f64 - 2.0);
        let points = times(setting, 0.5).enumerate().map(|(index, time)| (x(index), time));
        chart.draw_series(LineSeries::new(points, line).point_size(3 * scale)).map_err(fail)?;
        let bars = times(setting, 0.1).zip(times(setting, 0.9)).enumerate();
        let bars = bars.map(|(index, (low, high))| {
            PathElement::new(vec![(x(index), low), (x(index), high)], colour.stroke_width(scale))
        });
        chart.draw_series(bars).map_err(fail)?;
    }
    Ok(())
}

/// The settings beside their colours, in a line of its own: within the chart it would hide points.
fn legend<B: DrawingBackend>(area: &Area<B>, scale: u32, heads: &[String; SETTINGS.len()]) -> Result<()> {
    let style = (FONT, 13 * scale).into_text_style(area).pos(Pos::new(HPos::Left, VPos::Center));
    let [left, line, step] = [76, 22, 130].map(|length| (length * scale) as i32);
    let y = (LEGEND / 2 * scale) as i32;
    for (index, (name, colour)) in heads.iter().zip(COLOURS).enumerate() {
        let x = left + step * index as i32;
        let mark = PathElement::new(vec![(x, y), (x + line, y)], colour.stroke_width(2 * scale));
        area.draw(&mark).map_err(fail)?;
        area.draw(&Circle::new((x + line / 2, y), 3 * scale, colour.filled())).map_err(fail)?;
        area.draw_text(name, &style, (x + line + line / 4, y)).map_err(fail)?;
    }
    Ok(())
}

/// The table's lines: a number, a name, and a text for each setting.
fn lines(figures: &Figures) -> Vec<[String; SETTINGS.len() + 2]> {
    let line = |number: String, name: &str, cells: [String; SETTINGS.len()]| {
        let [a, b, c, d, e] = cells;
        [number, name.to_owned(), a, b, c, d, e]
    };
    let cells = |text: &dyn Fn(usize) -> String| std::array::from_fn(text);
    let mut lines = vec![line("#".to_owned(), "node: us, 10th-90th percentile", figures.heads())];
    for (index, node) in figures.nodes.iter().enumerate() {
        let times = cells(&|setting| with_spread(&node.times[setting]));
        lines.push(line((index + 1).to_string(), &node.name, times));
    }
    let sums = std::array::from_fn::<_, { SETTINGS.len() }, _>(|setting| figures.sums(setting));
    let against = |times: &[Vec<f64>; SETTINGS.len()], setting: usize| {
        speed_up(&times[0], &times[setting])
            .map_or_else(|| "-".to_owned(), |[ratio, low, high]| format!("{ratio:.2}x ({low:.2}-{high:.2})"))
    };
    let none = String::new;
    lines.push(line(none(), "sum over the nodes", cells(&|setting| with_spread(&sums[setting]))));
    lines.push(line(none(), "  against the table", cells(&|setting| against(&sums, setting))));
    let host = &figures.latencies;
    lines.push(line(none(), "host to host", cells(&|setting| with_spread(&host[setting]))));
    lines.push(line(none(), "  against the table", cells(&|setting| against(host, setting))));
    lines
}

fn table<B: DrawingBackend>(area: &Area<B>, scale: u32, figures: &Figures) -> Result<()> {
    let font = (FONT, 12 * scale).into_text_style(area);
    let right = font.pos(Pos::new(HPos::Right, VPos::Top));
    let left = font.pos(Pos::new(HPos::Left, VPos::Top));
    let at = |x: u32, line: usize| ((x * scale) as i32, ((line as u32 * LINE + LINE / 2) * scale) as i32);
    for (index, [number, name, cells @ ..]) in lines(figures).iter().enumerate() {
        area.draw_text(number, &right, at(32, index)).map_err(fail)?;
        area.draw_text(&shortened(name), &left, at(42, index)).map_err(fail)?;
        for (setting, cell) in cells.iter().enumerate() {
            let x = WIDTH - 14 - 162 * (SETTINGS.len() - 1 - setting) as u32;
            area.draw_text(cell, &right.color(&ink(index, setting)), at(x, index)).map_err(fail)?;
        }
    }
    Ok(())
}

/// The head of a column has its line's colour.
fn ink(line: usize, setting: usize) -> RGBColor {
    if line == 0 { COLOURS[setting] } else { BLACK }
}

/// A name that fits its column: the end says more than the beginning.
fn shortened(name: &str) -> String {
    const MOST: usize = 34;
    match name.chars().count() {
        length if length <= MOST => name.to_owned(),
        length => format!("...{}", name.chars().skip(length + 3 - MOST).collect::<String>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::article::NodeTimes;

    /// Noise-free figures of `nodes` nodes.
    fn figures(nodes: usize) -> Figures {
        let times = |index: usize| {
            std::array::from_fn(|setting| {
                (0..12)
                    .map(|round| (20 + 9 * index) as f64 / (1 + setting) as f64 + 0.2 * f64::from(round))
                    .collect()
            })
        };
        Figures {
            api: "wgpu".to_owned(),
            device: "Some GPU (Vulkan, driver 1.2)".to_owned(),
            clock: "GPU timestamps",
            nodes: (0..nodes)
                .map(|index| NodeTimes {
                    name: format!("MobilenetV1/MobilenetV1/Conv2d_{index}_pointwise/Relu6"),
                    kernel: "direct".to_owned(),
                    of_article: true,
                    tuned: true,
                    times: times(index),
                })
                .collect(),
            latencies: times(nodes),
            tuning: std::time::Duration::from_secs(1),
            others: 0,
        }
    }

    #[test]
    fn both_pictures_carry_the_table() {
        let folder = tempfile::tempdir().expect("a folder");
        let figures = figures(31);
        draw(&folder.path().join("article-wgpu"), &figures).expect("drawn");
        let svg = std::fs::read_to_string(folder.path().join("article-wgpu.svg")).expect("the SVG");
        for text in SETTINGS.iter().map(|name| (*name).to_owned()).chain([
            "Time of each node: Some GPU".to_owned(),
            "Conv2d_30_pointwise/Relu6".to_owned(),
            with_spread(&figures.nodes[30].times[4]),
            "sum over the nodes".to_owned(),
        ]) {
            assert!(svg.contains(&text), "no {text:?}");
        }
        let file = std::fs::File::open(folder.path().join("article-wgpu.png")).expect("the PNG");
        let mut reader = png::Decoder::new(std::io::BufReader::new(file)).read_info().expect("a PNG");
        let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
        let info = reader.next_frame(&mut pixels).expect("pixels");
        assert_eq!((info.width, info.color_type), (WIDTH * SCALE, png::ColorType::Rgb));
        // The last line of the table is written there: dark pixels in its rows, and each setting's
        // colour somewhere.
        let row = 3 * info.width as usize;
        let last = info.height as usize - (2 * LINE * SCALE) as usize;
        let line = &pixels[(last - (LINE * SCALE) as usize) * row..(last + 10) * row];
        assert!(line.chunks_exact(3).filter(|pixel| pixel.iter().all(|&value| value < 90)).count() > 300);
        for RGBColor(r, g, b) in COLOURS {
            assert!(pixels.chunks_exact(3).any(|pixel| pixel == [r, g, b]), "no {r} {g} {b}");
        }
    }

    #[test]
    fn a_chart_needs_times() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = draw(&folder.path().join("none"), &figures(0)).expect_err("nothing to draw");
        assert!(format!("{error:#}").contains("none.svg: no times to draw"), "{error:#}");
    }
}
