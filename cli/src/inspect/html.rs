//! A page of one file with a model's graph drawn.
//!
//! A node stands in the row after the last of those that it reads, and in a row by where these stand.

use super::Inspection;
use anyhow::Result;
use std::collections::BTreeMap;
use std::fmt::Write;

const WIDTH: usize = 190;
const HEIGHT: usize = 44;
const GAP: [usize; 2] = [24, 34];

/// Where a box is drawn, and what is written in it.
struct Drawn {
    column: f64,
    row: usize,
    title: String,
    lines: [String; 2],
    color: String,
}

/// The page.
pub(super) fn page(found: &Inspection) -> Result<String> {
    let mut page = String::from(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\n<style>\
         body{font:14px/1.4 sans-serif;margin:1.5em;color:#222;background:#fff}\
         table{border-collapse:collapse;margin:1em 0}td,th{padding:.15em .8em .15em 0;text-align:left;\
         vertical-align:top}th{border-bottom:1px solid #999}td:first-child{white-space:nowrap}\
         svg text{font:11px sans-serif}svg .op{font-weight:bold}.graph{overflow:auto}\
         @media(prefers-color-scheme:dark){body{color:#ddd;background:#1b1b1b}svg text{fill:#111}}\
         </style>\n",
    );
    let title = escaped(&found.file);
    write!(page, "<title>{title}</title></head><body>\n<h1>{title}</h1>\n<table>\n")?;
    for (what, line) in found.summary().into_iter().skip(1) {
        writeln!(page, "<tr><td>{what}</td><td>{}</td></tr>", escaped(&line))?;
    }
    page.push_str("</table>\n<table><tr><th>operator</th><th>nodes</th><th>operations</th></tr>\n");
    for (op, (count, flops)) in found.operators() {
        let flops = super::short(flops as f64);
        writeln!(page, "<tr><td>{}</td><td>{count}</td><td>{flops}</td></tr>", escaped(op))?;
    }
    page.push_str("</table>\n<div class=\"graph\">\n");
    drawing(found, &mut page)?;
    page.push_str("</div>\n<table><tr><th>step</th><th>kernel</th><th>chosen by</th></tr>\n");
    for step in &found.steps {
        let [name, kernel, source] = [&step.name, &step.kernel, &step.source].map(|text| escaped(text));
        writeln!(page, "<tr><td>{name}</td><td>{kernel}</td><td>{source}</td></tr>")?;
    }
    page.push_str("</table>\n</body></html>\n");
    Ok(page)
}

/// The graph as SVG.
fn drawing(found: &Inspection, page: &mut String) -> Result<()> {
    let graph = &found.model.graph;
    let mut boxes: Vec<Drawn> = Vec::new();
    let mut edges: Vec<(usize, usize)> = Vec::new();
    // The box that writes each value.
    let mut writers = BTreeMap::new();
    // The first free column of each row.
    let mut free: Vec<f64> = Vec::new();
    let mut place = |row: usize, wanted: f64| {
        if free.len() <= row {
            free.resize(row + 1, 0.0);
        }
        let column = wanted.max(free[row]);
        free[row] = column + 1.0;
        column
    };
    for (&value, port) in graph.inputs().iter().zip(&found.model.inputs) {
        writers.insert(value, boxes.len());
        let column = place(0, 0.0);
        let lines = [port.name.clone(), port.dims.to_string()];
        boxes.push(Drawn { column, row: 0, title: port.name.clone(), lines, color: "#ddd".to_owned() });
    }
    for node in &found.nodes {
        let before: Vec<usize> = node.reads.iter().filter_map(|value| writers.get(value).copied()).collect();
        let row = before.iter().map(|&at| boxes[at].row + 1).max().unwrap_or(0);
        let mean = before.iter().map(|&at| boxes[at].column).sum::<f64>() / before.len().max(1) as f64;
        let column = place(row, mean.floor());
        edges.extend(before.iter().map(|&at| (at, boxes.len())));
        writers.extend(node.writes.iter().map(|&value| (value, boxes.len())));
        let title = format!("{}\n{} {}\n{} operations", node.name, node.op, node.output, node.flops);
        let lines = [node.op.to_owned(), node.output.clone()];
        boxes.push(Drawn { column, row, title, lines, color: color(node.op) });
    }
    for (&value, port) in graph.outputs().iter().zip(&found.model.outputs) {
        let Some(&at) = writers.get(&value) else { continue };
        let row = boxes[at].row + 1;
        let column = place(row, boxes[at].column);
        edges.push((at, boxes.len()));
        let lines = [port.name.clone(), port.dims.to_string()];
        boxes.push(Drawn { column, row, title: port.name.clone(), lines, color: "#ddd".to_owned() });
    }
    let x = |drawn: &Drawn| drawn.column * (WIDTH + GAP[0]) as f64 + 4.0;
    let y = |drawn: &Drawn| drawn.row * (HEIGHT + GAP[1]) + 4;
    let width = boxes.iter().map(&x).fold(0.0, f64::max) + WIDTH as f64 + 8.0;
    let height = boxes.iter().map(&y).max().unwrap_or(0) + HEIGHT + 8;
    writeln!(page, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\">")?;
    for &(from, to) in &edges {
        let (a, b) = (&boxes[from], &boxes[to]);
        let [x1, x2] = [a, b].map(|drawn| x(drawn) + WIDTH as f64 / 2.0);
        let (y1, y2) = (y(a) + HEIGHT, y(b));
        let bend = (y2.saturating_sub(y1) / 2).max(GAP[1] / 2);
        let (c1, c2) = (y1 + bend, y2.saturating_sub(bend));
        writeln!(
            page,
            "<path d=\"M{x1} {y1}C{x1} {c1} {x2} {c2} {x2} {y2}\" fill=\"none\" stroke=\"#888\"/>"
        )?;
    }
    for drawn in &boxes {
        let (x, y) = (x(drawn), y(drawn));
        let [title, first, second] =
            [&drawn.title, &drawn.lines[0], &drawn.lines[1]].map(|text| escaped(text));
        writeln!(
            page,
            "<g><title>{title}</title><rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"5\" \
             fill=\"{}\" stroke=\"#555\"/><text class=\"op\" x=\"{}\" y=\"{}\">{}</text>\
             <text x=\"{}\" y=\"{}\">{}</text></g>",
            drawn.color,
            x + 8.0,
            y + 18,
            cut(&first),
            x + 8.0,
            y + 34,
            cut(&second),
        )?;
    }
    page.push_str("</svg>\n");
    Ok(())
}

/// A light color of its own for each operator.
fn color(op: &str) -> String {
    let hash = op.bytes().fold(7u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(u32::from(byte)));
    format!("hsl({} 60% 82%)", hash % 360)
}

/// What fits a box.
fn cut(text: &str) -> String {
    const MOST: usize = 30;
    if text.chars().count() <= MOST || text.contains('&') {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(MOST - 1).collect();
    cut.push('\u{2026}');
    cut
}

/// Text in a page.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_cut() {
        assert_eq!(escaped("a<b> & \"c\""), "a&lt;b&gt; &amp; &quot;c&quot;");
        assert_eq!(cut(&"x".repeat(40)).chars().count(), 30);
        assert_eq!(cut("short"), "short");
    }
}
