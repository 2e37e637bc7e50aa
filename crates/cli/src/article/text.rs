//! An API's figures as a table with notes, and as JSON.

use super::{Figures, NodeTimes, SETTINGS, TUNED, speed_up};
use crate::table::{Rows, line, node_name};
use diptych::internals::tune::statistics::percentile;
use std::io::IsTerminal;

/// Behind a time of a node that has no kernel of the article, and of one that is not tuned.
const AS_UNTUNED: &str = "+";
const NOT_TUNED: &str = "*";

pub(super) fn table(figures: &Figures) -> String {
    let heads = figures.heads();
    let [a, b, c, d, e] = SETTINGS;
    // The sums below say how many nodes are tuned.
    let last = if figures.tuned() == 0 { "not tuned" } else { e };
    let mut table = Rows::new(["#", "node", a, b, c, d, last, "table/tuned", "kernel"]);
    table = table.numbers(&[0, 2, 3, 4, 5, 6, 7]).names(&[1]).labels(&[8]);
    let terminal = std::io::stdout().is_terminal();
    for (index, node) in figures.nodes.iter().enumerate() {
        let [a, b, c, d, e] = std::array::from_fn(|setting| {
            let mark = match setting {
                0..=2 if !node.of_article => AS_UNTUNED,
                TUNED if !node.tuned => NOT_TUNED,
                _ => "",
            };
            format!("{}{mark}", with_spread(&node.times[setting]))
        });
        let ratio = ratio(node).map(|[ratio, low, high]| format!("{ratio:.2} ({low:.2}-{high:.2})"));
        let name = node_name(&node.name, terminal);
        let ratio = ratio.unwrap_or_else(|| "-".to_owned());
        table.add([(index + 1).to_string(), name, a, b, c, d, e, ratio, node.kernel.clone()]);
    }
    let mut text = line(&format!(
        "{} ({}); microseconds: medians and 10th-90th percentiles",
        figures.device, figures.clock
    ));
    text.push_str(&format!("\n{}\n", table.text()));
    let mut add = |words: &str| text.push_str(&(line(words) + "\n"));
    for (setting, name) in heads.iter().enumerate() {
        let sums = figures.sums(setting);
        add(&format!(
            "{name:>9}: nodes {} us, {} against the table; host to host {} us, {}",
            with_spread(&sums),
            times(speed_up(&figures.sums(0), &sums)),
            with_spread(&figures.latencies[setting]),
            times(speed_up(&figures.latencies[0], &figures.latencies[setting]))
        ));
    }
    notes(figures).iter().for_each(|note| add(note));
    text
}

/// The table's time over the tuned one.
fn ratio(node: &NodeTimes) -> Option<[f64; 3]> {
    speed_up(&node.times[0], &node.times[TUNED]).filter(|_| node.tuned && node.of_article)
}

/// What the marks mean, and what is not in the table.
fn notes(figures: &Figures) -> Vec<String> {
    let mut notes = Vec::new();
    let all = figures.nodes.len();
    let without = figures.nodes.iter().filter(|node| !node.of_article).count();
    if without > 0 {
        notes.push(format!(
            "{AS_UNTUNED} {without} of {all} nodes have no kernel of the article (a vec4 of outputs for each invocation) and run \
             as untuned in these columns: no ratio"
        ));
    }
    let untuned = all - figures.tuned();
    if untuned > 0 {
        notes.push(format!(
            "{NOT_TUNED} {untuned} of {all} nodes are not tuned: the budget was over before two of their kernels were compared: \
             no ratio; --budget gives more time, and --db keeps what was found"
        ));
    }
    let timed = |node: &&NodeTimes| node.tuned && node.of_article && ratio(node).is_none();
    let unclear = figures.nodes.iter().filter(timed).count();
    if unclear > 0 {
        notes.push(format!(
            "{unclear} of {all} nodes have no ratio: the clock gave times of 0, or too few rounds"
        ));
    }
    if figures.others > 0 {
        notes.push(format!(
            "{} steps that are no convolutions are not listed; only the times from host to host have them",
            figures.others
        ));
    }
    notes.push(format!("tuning took {:.1} s", figures.tuning.as_secs_f64()));
    notes
}

fn times(ratio: Option<[f64; 3]>) -> String {
    ratio.map_or_else(|| "-".to_owned(), |[ratio, low, high]| format!("{ratio:.2}x ({low:.2}-{high:.2})"))
}

/// The median, and the 10th and 90th percentile: no more digits than a column has room for.
pub(super) fn with_spread(times: &[f64]) -> String {
    let at = |share| match percentile(times, share).unwrap_or(f64::NAN) {
        time if time < 100.0 => format!("{time:.1}"),
        time => format!("{time:.0}"),
    };
    format!("{} ({}-{})", at(0.5), at(0.1), at(0.9))
}

pub(super) fn json(figures: &Figures) -> serde_json::Value {
    // A column is called tuned only where all of its nodes are.
    let tuned = if figures.tuned() == figures.nodes.len() { SETTINGS[TUNED] } else { "not all tuned" };
    let by_setting = |lists: &[Vec<f64>; SETTINGS.len()], tuned: &str| {
        let names = SETTINGS.iter().enumerate().map(|(at, name)| if at == TUNED { tuned } else { name });
        let pairs = names.zip(lists).map(|(name, times)| (name.to_owned(), times.clone().into()));
        serde_json::Value::Object(pairs.collect())
    };
    let node = |node: &NodeTimes| {
        let own = if node.tuned { SETTINGS[TUNED] } else { "not tuned" };
        serde_json::json!({
            "name": node.name,
            "kernel": node.kernel,
            "of_article": node.of_article,
            "tuned": node.tuned,
            "times": by_setting(&node.times, own),
        })
    };
    serde_json::json!({
        "api": figures.api,
        "device": figures.device,
        "clock": figures.clock,
        "unit": "microseconds",
        "tuning_seconds": figures.tuning.as_secs_f64(),
        "tuned_nodes": figures.tuned(),
        "other_steps": figures.others,
        "host_to_host": by_setting(&figures.latencies, tuned),
        "nodes": figures.nodes.iter().map(node).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// A node that is tuned, one that is not, and one without the article's kernel.
    fn figures() -> Figures {
        let times = || std::array::from_fn(|setting| vec![10.0 / (1 + setting) as f64; 8]);
        let node = |name: &str, of_article, tuned| NodeTimes {
            name: name.to_owned(),
            kernel: "conv2d_direct".to_owned(),
            of_article,
            tuned,
            times: times(),
        };
        Figures {
            api: "wgpu".to_owned(),
            device: "Some GPU".to_owned(),
            clock: "GPU timestamps",
            nodes: vec![node("a + relu", true, true), node("b", true, false), node("c", false, true)],
            latencies: times(),
            tuning: Duration::from_secs(2),
            others: 1,
        }
    }

    #[test]
    fn what_is_not_tuned_is_not_called_so_and_a_missing_ratio_has_its_reason() {
        let mut figures = figures();
        let text = table(&figures);
        let row = |name: &str| text.lines().find(|line| line.contains(name)).expect("a row").to_owned();
        assert!(
            row(" a + relu ").contains(" 5.00 (5.00-5.00)") && !row(" a + relu ").contains('*'),
            "{text}"
        );
        assert!(row(" b ").contains("2.0 (2.0-2.0)*") && row(" b ").contains(" - "), "{text}");
        assert!(row(" c ").contains("10.0 (10.0-10.0)+") && row(" c ").contains(" - "), "{text}");
        for words in [
            "tuned (2 of 3): nodes",
            "+ 1 of 3 nodes have no kernel of the article",
            "* 1 of 3 nodes are not tuned: the budget was over",
            "1 steps that are no convolutions",
        ] {
            assert!(text.contains(words), "no {words:?} in\n{text}");
        }
        assert_eq!(json(&figures)["nodes"][1]["times"]["tuned"], serde_json::Value::Null);
        figures.nodes.iter_mut().for_each(|node| node.tuned = false);
        let text = table(&figures);
        let head = text.lines().nth(1).expect("a heading");
        assert!(head.contains("not tuned") && text.contains("not tuned: nodes"), "{text}");
        figures.nodes.iter_mut().for_each(|node| (node.tuned, node.of_article) = (true, true));
        let text = table(&figures);
        assert!(
            !text.contains("not tuned") && text.contains(" tuned: nodes") && !text.contains(" - "),
            "{text}"
        );
        assert!(json(&figures)["host_to_host"]["tuned"].is_array());
    }
}
