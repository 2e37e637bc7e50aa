//! `diptych compare`: the choices of two records, timed against each other.

use crate::output::print;
use crate::table::Rows;
use crate::tune::{PrecisionName, record};
use anyhow::Result;
use diptych::internals::Comparison;
use diptych::internals::tune::statistics::median;
use diptych::{Model, Tuner};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A TensorFlow Lite or ONNX model that both records were tuned for.
    pub(crate) model: PathBuf,

    /// A record: a directory or a file.
    #[arg(long, value_name = "DIR|FILE")]
    pub(crate) db: PathBuf,

    /// The record to compare it with.
    #[arg(long, value_name = "DIR|FILE")]
    pub(crate) with: PathBuf,

    #[command(flatten)]
    pub(crate) on: crate::flags::Gpus,

    #[command(flatten)]
    pub(crate) load: crate::flags::Load,

    /// Only these nodes.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) nodes: Vec<String>,

    /// Storage and arithmetic of the convolutions.
    #[arg(long, value_enum, default_value_t = PrecisionName::F32)]
    pub(crate) precision: PrecisionName,

    /// Rounds: each runs both choices.
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u32).range(6..=1000))]
    pub(crate) rounds: u32,

    /// Times that differ by this share at most count as equal.
    #[arg(long, default_value_t = 0.02)]
    pub(crate) within: f64,
}

pub(crate) fn main(arguments: &Arguments) -> Result<()> {
    let graph = Model::load(&arguments.model, &arguments.load.options())?.graph;
    let [first, second] = [&arguments.db, &arguments.with]
        .map(|path| record(Some(path)).map(|(record, _)| Arc::new(Mutex::new(record))));
    let (first, second) = (first?, second?);
    for context in arguments.on.contexts()? {
        let mut tuner = Tuner::new(&context)?
            .database(Arc::clone(&first))
            .precision(arguments.precision.precision())
            .retune(true);
        match arguments.nodes.as_slice() {
            [] => tuner.begin(&graph)?,
            names => tuner.begin_nodes(&graph, names)?,
        }
        let rows = tuner.compare(&second, arguments.rounds as usize)?;
        print(format_args!("{}\n{}", tuner.report().device, table(&rows)))?;
        print(format_args!("{}\n", summary(&rows, arguments.within)))?;
    }
    Ok(())
}

fn table(rows: &[Comparison]) -> String {
    let heads = ["nodes", "problem", "us", "ratio (95 %)", "choice", "the other's"];
    let mut table = Rows::new(heads).numbers(&[0, 2, 3]);
    for row in rows {
        let name = |place: usize| match &row.choices[place] {
            Some(_) if place == 1 && row.choices[0] == row.choices[1] => "the same".to_owned(),
            Some(choice) => choice.to_string(),
            None => "none on record".to_owned(),
        };
        table.add([
            row.nodes.len().to_string(),
            format!("{} {}", row.op, row.problem),
            row.time.map_or_else(|| "-".to_owned(), |time| format!("{:.2}", time.as_secs_f64() * 1e6)),
            row.ratio.map_or_else(
                || "-".to_owned(),
                |ratio| format!("{:.3} ({:.3}-{:.3})", ratio.centre, ratio.low, ratio.high),
            ),
            name(0),
            name(1),
        ]);
    }
    table.text()
}

/// How many problems and nodes have equal choices, and what the differences are.
fn summary(rows: &[Comparison], within: f64) -> String {
    let known: Vec<(&Comparison, f64)> =
        rows.iter().filter_map(|row| Some((row, row.ratio?.centre))).collect();
    let close = |ratio: f64| ratio.ln().abs() <= (1.0 + within).ln();
    let count = |wanted: &dyn Fn(&Comparison, f64) -> bool| {
        let kept = known.iter().filter(|(row, ratio)| wanted(row, *ratio));
        kept.fold([0, 0], |[problems, nodes], (row, _)| [problems + 1, nodes + row.nodes.len()])
    };
    let [problems, nodes] = count(&|_, _| true);
    let [same, same_nodes] = count(&|row, _| row.choices[0] == row.choices[1]);
    let [equal, equal_nodes] = count(&|_, ratio| close(ratio));
    let ratios: Vec<f64> = known.iter().map(|(_, ratio)| *ratio).collect();
    let by_node: Vec<f64> =
        known.iter().flat_map(|(row, ratio)| std::iter::repeat_n(*ratio, row.nodes.len())).collect();
    let at = |values: &[f64]| median(values).unwrap_or(f64::NAN);
    let extreme = |pick: fn(f64, f64) -> f64| ratios.iter().copied().reduce(pick).unwrap_or(f64::NAN);
    format!(
        "{equal} of {problems} problems ({equal_nodes} of {nodes} nodes) within {:.1} %, of them {same} ({same_nodes}) with \
         the same choice\nthe other's time: median {:.3} over problems, {:.3} over nodes, from {:.3} to {:.3}; {} without \
         a choice in both",
        100.0 * within,
        at(&ratios),
        at(&by_node),
        extreme(f64::min),
        extreme(f64::max),
        rows.len() - problems
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use diptych::Choice;
    use diptych::internals::tune::statistics::Interval;

    #[test]
    fn the_summary_counts_problems_and_nodes() {
        let choice = |x| Some(Choice::new("direct", [1, 1, 1], [x, 1, 1]));
        let row = |nodes: usize, second, ratio: Option<f64>| Comparison {
            nodes: vec!["a".to_owned(); nodes],
            op: "pointwise",
            problem: "1x1x1x4 o4".to_owned(),
            choices: [choice(8), second],
            ratio: ratio.map(|centre| Interval { centre, low: centre, high: centre }),
            time: None,
        };
        let rows = [
            row(3, choice(8), Some(1.0)),
            row(2, choice(16), Some(0.985)),
            row(1, choice(16), Some(1.3)),
            row(1, None, None),
        ];
        let text = summary(&rows, 0.02);
        assert!(
            text.starts_with("2 of 3 problems (5 of 6 nodes) within 2.0 %, of them 1 (3) with"),
            "{text}"
        );
        assert!(text.ends_with("from 0.985 to 1.300; 1 without a choice in both"), "{text}");
        assert!(table(&rows).contains("none on record"));
    }
}
