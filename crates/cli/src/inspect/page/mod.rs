//! A page of one file with a model's graph: to look around in, to search, and with what is known of each node.

mod layout;

use super::Inspection;
use anyhow::Result;
use diptych::Port;
use layout::{HEIGHT, WIDTH};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::fmt::Write;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Letters that fit a box.
const LETTERS: usize = 27;

/// An input, a node or an output.
struct Drawn {
    /// What is written in its box: what it is, its name and its dimensions.
    lines: [String; 3],
    color: String,
    /// What the page shows of it: pairs of a word and its meaning.
    facts: Vec<(String, String)>,
}

/// The page.
pub(super) fn page(found: &Inspection) -> Result<String> {
    let (boxes, edges) = graph(found);
    let title = escaped(&found.file);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n<style>\n{STYLE}</style></head>\n\
         <body>\n<header><h1>{title}</h1>\n\
         <input id=\"search\" type=\"search\" placeholder=\"Search (/)\" aria-label=\"Search names, operators, shapes and options\">\n\
         <output id=\"matches\"></output>\n<button id=\"out\" title=\"Smaller (-)\">&minus;</button>\
         <button id=\"in\" title=\"Larger (+)\">+</button><button id=\"fit\" title=\"Show all (0)\">All</button>\n\
         </header>\n<main>\n<div id=\"graph\">\n"
    );
    drawing(&boxes, &edges, &mut page)?;
    page.push_str(
        "</div>\n<aside>\n<section id=\"node\" hidden></section>\n<section id=\"model\">\n<table>\n",
    );
    for (what, line) in found.summary().into_iter().skip(1) {
        writeln!(page, "<tr><th>{what}</th><td>{}</td></tr>", escaped(&line))?;
    }
    page.push_str("</table>\n<table><tr><th>operator</th><th>nodes</th><th>operations</th></tr>\n");
    for (op, (count, flops)) in found.operators() {
        let flops = super::short(flops as f64);
        writeln!(page, "<tr><td>{}</td><td>{count}</td><td>{flops}</td></tr>", escaped(op))?;
    }
    page.push_str("</table>\n<table><tr><th>step</th><th>kernel</th><th>chosen by</th></tr>\n");
    for step in &found.steps {
        let [name, kernel, source] = [&step.name, &step.kernel, &step.source].map(|text| escaped(text));
        writeln!(page, "<tr><td>{name}</td><td>{kernel}</td><td>{source}</td></tr>")?;
    }
    // Within a script only this letter could end it.
    let data = data(&boxes, &edges).to_string().replace('<', "\\u003c");
    write!(
        page,
        "</table>\n</section>\n</aside>\n</main>\n<script type=\"application/json\" id=\"data\">{data}</script>\n\
         <script>\n{SCRIPT}</script>\n</body></html>\n"
    )?;
    Ok(page)
}

/// The boxes in an order in which each is after what it reads, and what reads what.
fn graph(found: &Inspection) -> (Vec<Drawn>, Vec<(usize, usize)>) {
    let graph = &found.model.graph;
    let (mut boxes, mut edges): (Vec<Drawn>, Vec<(usize, usize)>) = (Vec::new(), Vec::new());
    // The box that writes each value.
    let mut writers = BTreeMap::new();
    let port = |what: &str, Port { name, dims, dtype, .. }: &Port| Drawn {
        lines: [what.to_owned(), name.clone(), format!("{dims} {dtype}")],
        color: "var(--port)".to_owned(),
        facts: [("name", name.clone()), ("dimensions", dims.to_string()), ("type", dtype.to_string())]
            .map(|(what, text)| (what.to_owned(), text))
            .into(),
    };
    for (&value, input) in graph.inputs().iter().zip(&found.inputs) {
        writers.insert(value, boxes.len());
        boxes.push(port("input", input));
    }
    for node in &found.nodes {
        edges.extend(node.reads.iter().filter_map(|value| Some((*writers.get(value)?, boxes.len()))));
        writers.extend(node.writes.iter().map(|&value| (value, boxes.len())));
        let mut facts = vec![
            ("name".to_owned(), node.name.clone()),
            ("operator".to_owned(), node.op.to_owned()),
            ("output".to_owned(), node.output.clone()),
            ("operations".to_owned(), node.flops.to_string()),
        ];
        facts.extend(node.options.iter().cloned());
        let constants = node.constants.iter();
        facts.extend(constants.map(|(operand, held)| ((*operand).to_owned(), format!("constant {held}"))));
        facts.extend(steps(found, &node.name));
        boxes.push(Drawn {
            lines: [node.op.to_owned(), node.name.clone(), node.output.clone()],
            color: color(node.op),
            facts,
        });
    }
    for (&value, output) in graph.outputs().iter().zip(&found.outputs) {
        edges.extend(writers.get(&value).map(|&writer| (writer, boxes.len())));
        boxes.push(port("output", output));
    }
    (boxes, edges)
}

/// The kernel that computes a node, alone or with others.
fn steps(found: &Inspection, node: &str) -> Vec<(String, String)> {
    let step = found.steps.iter().find(|step| step.name == node).or_else(|| {
        let joined = |name: &str| name.split(" + ").any(|part| part == node);
        found.steps.iter().find(|step| joined(&step.name))
    });
    match step {
        Some(step) => [
            ("step", &step.name),
            ("kernel", &step.kernel),
            ("precision", &step.precision.to_string()),
            ("chosen by", &step.source),
        ]
        .map(|(what, text)| (what.to_owned(), text.clone()))
        .into(),
        None => vec![(
            "kernel".to_owned(),
            "none of its own: another node's step has it, or it moves nothing".to_owned(),
        )],
    }
}

/// What the script shows of each box.
fn data(boxes: &[Drawn], edges: &[(usize, usize)]) -> Json {
    let mut nodes: Vec<Json> = Vec::new();
    for (index, drawn) in boxes.iter().enumerate() {
        let reads: Vec<usize> = edges.iter().filter(|edge| edge.1 == index).map(|edge| edge.0).collect();
        let readers: Vec<usize> = edges.iter().filter(|edge| edge.0 == index).map(|edge| edge.1).collect();
        nodes.push(json!({ "lines": drawn.lines, "facts": drawn.facts, "reads": reads, "readers": readers }));
    }
    Json::Array(nodes)
}

/// The graph as SVG.
fn drawing(boxes: &[Drawn], edges: &[(usize, usize)], page: &mut String) -> Result<()> {
    let drawing = layout::layout(boxes.len(), edges);
    let [width, height] = drawing.size;
    writeln!(
        page,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         preserveAspectRatio=\"xMidYMid meet\">\n<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" \
         markerWidth=\"9\" markerHeight=\"9\" \
         markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\"/></marker></defs>\n<g id=\"edges\">"
    )?;
    for edge in &drawing.edges {
        let readers: Vec<String> = edge.readers.iter().map(usize::to_string).collect();
        let end = if edge.ends { " marker-end=\"url(#arrow)\"" } else { "" };
        writeln!(
            page,
            "<path data-from=\"{}\" data-to=\"{}\" d=\"{}\"{end}/>",
            edge.source,
            readers.join(" "),
            edge.path
        )?;
    }
    page.push_str("</g>\n");
    for (index, (drawn, [x, y])) in boxes.iter().zip(&drawing.boxes).enumerate() {
        let [what, name, dims] = &drawn.lines;
        let [title, what, name, dims] =
            [format!("{what} {name} {dims}"), cut(what), cut(name), cut(dims)].map(|text| escaped(&text));
        writeln!(
            page,
            "<g class=\"box\" data-box=\"{index}\" tabindex=\"0\" transform=\"translate({x:.1} {y:.1})\"><title>{title}\
             </title><rect width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"6\" style=\"fill:{}\"/><text x=\"9\" y=\"17\" \
             class=\"op\">{what}</text><text x=\"9\" y=\"33\">{name}</text><text x=\"9\" y=\"48\">{dims}</text></g>",
            drawn.color
        )?;
    }
    page.push_str("</svg>\n");
    Ok(())
}

/// A color of its own for each operator; the style says how light.
fn color(op: &str) -> String {
    // FNV-1a, whose upper bits differ where names have much in common.
    let hash =
        op.bytes().fold(0x811c_9dc5u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("hsl({} var(--color))", (hash >> 8) % 360)
}

/// What fits a box: of a longer text the end, which says more than the beginning.
fn cut(text: &str) -> String {
    let length = text.chars().count();
    if length <= LETTERS {
        return text.to_owned();
    }
    std::iter::once('\u{2026}').chain(text.chars().skip(length + 1 - LETTERS)).collect()
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
        let long = cut(&("a".repeat(40) + "/end"));
        assert!(long.chars().count() == LETTERS && long.ends_with("/end"), "{long}");
        assert_eq!(cut("short"), "short");
    }
}
