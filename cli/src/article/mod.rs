//! `diptych article`: the experiment behind the project, on this machine. A network's nodes with
//! the table's work-groups, with (1,1,1), with (8,4,8), as an untuned session runs them, and tuned.
//!
//! The first three run the kernels of the article (one vec4 of output channels per invocation), so
//! that they differ in the work-group alone. All are timed node by node in interleaved rounds. Nodes without such a
//! kernel run as in an untuned session.

mod chart;

use crate::interrupt::{Interrupt, Interrupted};
use crate::output::{print, say};
use crate::table::{Rows, Stream};
use crate::tune::{bar, finish, record};
use anyhow::{Context as _, Result, bail, ensure};
use diptych::internals::ops::Choice;
use diptych::internals::tune::db::Database;
use diptych::internals::tune::journal::Journal;
use diptych::internals::tune::statistics::{percentile, signed_rank_interval};
use diptych::internals::tune::work_group;
use diptych::{
    Context, Graph, HostTensor, Limits, Model, Precision, Profile, Session, SessionOptions, SharedDatabase,
    Tuner, Tuning,
};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A TensorFlow Lite or ONNX model with convolutions and one input, such as PoseNet or MobileNet.
    pub(crate) model: PathBuf,

    #[command(flatten)]
    pub(crate) on: crate::flags::Gpus,

    #[command(flatten)]
    pub(crate) load: crate::flags::Load,

    /// Rounds: each runs every setting once.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(5..=1000))]
    pub(crate) rounds: u32,

    /// Seconds for tuning, which the APIs share; what the record has already is not tuned again.
    #[arg(long, default_value = "40", value_name = "SECONDS", value_parser = crate::flags::seconds)]
    pub(crate) budget: Duration,

    /// The tuner's record; in memory if it is left out.
    #[arg(long, value_name = "DIR|FILE")]
    pub(crate) db: Option<PathBuf>,

    /// Write the figures to DIR/article.json, and a chart with its table for each API to
    /// DIR/article-API.svg and DIR/article-API.png.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// The settings, in the table's order.
pub(crate) const SETTINGS: [&str; 5] = ["table", "(1,1,1)", "(8,4,8)", "untuned", "tuned"];

/// A node's times in microseconds, one list for each setting.
pub(crate) struct NodeTimes {
    pub(crate) name: String,
    pub(crate) kernel: String,
    pub(crate) times: [Vec<f64>; SETTINGS.len()],
}

/// One API's figures.
pub(crate) struct Figures {
    pub(crate) api: String,
    device: String,
    clock: &'static str,
    pub(crate) nodes: Vec<NodeTimes>,
    /// Host to host, in microseconds.
    latencies: [Vec<f64>; SETTINGS.len()],
    tuning: Duration,
    /// Steps of nodes without a kernel of the article, which the sums leave out.
    pub(crate) others: usize,
}

impl Figures {
    /// The sum over the nodes of each round.
    fn sums(&self, setting: usize) -> Vec<f64> {
        let rounds = self.nodes.first().map_or(0, |node| node.times[setting].len());
        (0..rounds)
            .map(|round| self.nodes.iter().filter_map(|node| node.times[setting].get(round)).sum())
            .collect()
    }
}

pub(crate) fn main(arguments: &Arguments) -> Result<()> {
    let graph = Model::load(&arguments.model, &arguments.load.options())?.graph;
    let interrupt = Interrupt::watch()?;
    let (database, journal) = match &arguments.db {
        Some(path) => {
            let (mut database, folder) = record(Some(path))?;
            let journal = Journal::open(&folder, &mut database)?;
            (database, Some(journal))
        }
        None => (Database::in_memory(), None),
    };
    let record = Record { database: Arc::new(Mutex::new(database)), journal, interrupt };
    let contexts = arguments.on.contexts()?;
    let (mut all, mut spent): (Vec<Figures>, _) = (Vec::new(), Duration::ZERO);
    for (index, context) in contexts.iter().enumerate() {
        let budget = crate::flags::share(arguments.budget, spent, contexts.len() - index);
        let figures = measure(context, &graph, &record, budget, arguments.rounds)?;
        spent += figures.tuning;
        all.push(figures);
    }
    for figures in &all {
        print(table(figures))?;
    }
    if let Some(folder) = &arguments.out {
        std::fs::create_dir_all(folder).with_context(|| format!("{}", folder.display()))?;
        let path = folder.join("article.json");
        let json = serde_json::to_string_pretty(&all.iter().map(json).collect::<Vec<_>>())?;
        std::fs::write(&path, json).with_context(|| format!("{}", path.display()))?;
        for figures in &all {
            chart::draw(&folder.join(format!("article-{}", figures.api)), figures)?;
        }
    }
    Ok(())
}

/// The article's kernel for every node that has it, with a work-group of its own.
fn article_choices(
    graph: &Graph,
    limits: &Limits,
    size: Option<[u32; 3]>,
) -> Result<BTreeMap<String, Choice>> {
    let mut choices = BTreeMap::new();
    for node in graph.nodes() {
        let Some(op) = graph.op(node, Precision::F32)? else { continue };
        let kernel = op
            .kernel("direct")
            .ok()
            .filter(|kernel| kernel.offers(limits).iter().any(|offer| offer.tile == [1, 1, 1]));
        let Some(kernel) = kernel else { continue };
        let work_group = size.unwrap_or_else(|| work_group::table(&*kernel, [1, 1, 1], limits));
        let choice = Choice::new("direct", [1, 1, 1], work_group);
        choices.insert(node.name().to_owned(), choice);
    }
    ensure!(
        !choices.is_empty(),
        "found no node with a kernel of the article, wanted a model with convolutions"
    );
    Ok(choices)
}

/// Noise in [-1, 1): the times of a dense network do not depend on the picture.
fn picture(graph: &Graph) -> Result<(String, HostTensor)> {
    let [input] = graph.inputs() else {
        bail!("the model has {} inputs, wanted one", graph.inputs().len());
    };
    let shape = graph.shape(*input)?;
    let mut state = 1u32;
    let values: Vec<f32> = (0..shape.elements())
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect();
    Ok((graph.name(*input)?.to_owned(), HostTensor::new(shape, values)?))
}

/// The tuner's record, and what may end the tuning.
struct Record {
    database: SharedDatabase,
    journal: Option<Journal>,
    interrupt: Interrupt,
}

fn measure(
    context: &Context,
    graph: &Graph,
    record: &Record,
    budget: Duration,
    rounds: u32,
) -> Result<Figures> {
    let Record { database, journal, interrupt } = record;
    let device = context.info().device.clone().context("a GPU API without a device")?;
    let api = context.info().backend.to_string();
    say(context.info());
    let mut tuner = Tuner::new(context)?.database(Arc::clone(database)).budget(budget);
    if let Some(journal) = journal {
        tuner = tuner.journal(journal.clone());
    }
    tuner.begin(graph)?;
    let (report, interrupted) = finish(&mut tuner, &bar(&api)?, interrupt)?;
    if let Some(interrupted) = interrupted {
        return Err(interrupted.into());
    }

    let by_table = article_choices(graph, &device.limits, None)?;
    let by_hand = |size| -> Result<SessionOptions> {
        Ok(SessionOptions { choices: article_choices(graph, &device.limits, size)?, ..Default::default() })
    };
    let tuned = SessionOptions { tuning: Tuning::Database(Arc::clone(database)), ..Default::default() };
    let options: [SessionOptions; SETTINGS.len()] = [
        SessionOptions { choices: by_table.clone(), ..Default::default() },
        by_hand(Some([1, 1, 1]))?,
        by_hand(Some([8, 4, 8]))?,
        SessionOptions::default(),
        tuned,
    ];
    let mut sessions = Vec::new();
    for options in options {
        sessions.push(Session::new(context, graph, options)?);
    }
    let (name, tensor) = picture(graph)?;
    let feeds = [(name.as_str(), &tensor)];
    let wanted = sessions[0].run(&feeds)?;
    for (session, setting) in sessions.iter_mut().zip(SETTINGS) {
        let found = session.run(&feeds)?;
        let same = found.iter().zip(&wanted).all(|(a, b)| {
            a.to_f32().iter().zip(b.to_f32().iter()).all(|(a, b)| (a - b).abs() <= 1e-2 * b.abs().max(1.0))
        });
        ensure!(same, "{api}: the network with {setting} gives another result than with the table");
    }

    let steps = sessions[4].steps();
    let of_article = |name: &str| name.split(" + ").all(|part| by_table.contains_key(part));
    let (nodes, others): (Vec<&diptych::Step>, Vec<_>) =
        steps.iter().filter(|step| !step.inserted).partition(|step| of_article(&step.name));
    let mut figures = Figures {
        api,
        device: device.to_string(),
        clock: "",
        nodes: nodes
            .iter()
            .map(|step| NodeTimes {
                name: step.name.clone(),
                kernel: step.kernel.clone(),
                times: Default::default(),
            })
            .collect(),
        latencies: Default::default(),
        tuning: report.spent,
        others: others.len(),
    };
    for _ in 0..rounds {
        for (setting, session) in sessions.iter_mut().enumerate() {
            if interrupt.pressed() {
                return Err(Interrupted.into());
            }
            let profile = session.profile(&feeds)?;
            figures.clock = profile.clock;
            for node in &mut figures.nodes {
                node.times[setting].push(time_of(&node.name, &profile));
            }
            let start = Instant::now();
            session.run(&feeds)?;
            figures.latencies[setting].push(start.elapsed().as_secs_f64() * 1e6);
        }
    }
    Ok(figures)
}

/// The microseconds of a step, or where the session ran its nodes by themselves, of these.
fn time_of(name: &str, profile: &Profile) -> f64 {
    let step = profile.steps.iter().find(|timed| timed.step.name == name);
    let alone =
        name.split(" + ").filter_map(|part| profile.steps.iter().find(|timed| timed.step.name == part));
    let times = step.map_or_else(|| alone.map(|timed| timed.time).sum(), |timed| timed.time);
    times.as_secs_f64() * 1e6
}

/// `setting` against the table, round by round: how many times faster, and the 95 % interval
/// (Hodges-Lehmann estimate and signed-rank interval of the logarithms of paired ratios).
fn speed_up(slow: &[f64], fast: &[f64]) -> Option<[f64; 3]> {
    let differences: Vec<f64> = slow.iter().zip(fast).map(|(slow, fast)| (slow / fast).ln()).collect();
    let interval = signed_rank_interval(&differences, 0.025)?;
    Some([interval.centre, interval.low, interval.high].map(f64::exp))
}

fn table(figures: &Figures) -> String {
    let [a, b, c, d, e] = SETTINGS;
    let mut table = Rows::new(["#", "node", a, b, c, d, e, "table/tuned", "kernel"]);
    table = table.numbers(&[0, 2, 3, 4, 5, 6, 7]).names(&[1]).labels(&[8]);
    for (index, node) in figures.nodes.iter().enumerate() {
        let [a, b, c, d, e] = std::array::from_fn(|setting| with_spread(&node.times[setting]));
        let ratio = speed_up(&node.times[0], &node.times[4])
            .map_or_else(|| "-".to_owned(), |[ratio, low, high]| format!("{ratio:.2} ({low:.2}-{high:.2})"));
        table.add([(index + 1).to_string(), node.name.clone(), a, b, c, d, e, ratio, node.kernel.clone()]);
    }
    let (device, clock, table) = (&figures.device, figures.clock, table.text(Stream::Stdout));
    let mut text = format!("{device} ({clock}); microseconds: medians and 10th-90th percentiles\n{table}\n");
    for (setting, name) in SETTINGS.iter().enumerate() {
        let sums = figures.sums(setting);
        let ratio = speed_up(&figures.sums(0), &sums);
        let host = speed_up(&figures.latencies[0], &figures.latencies[setting]);
        let show = |ratio: Option<[f64; 3]>| {
            ratio.map_or_else(
                || "-".to_owned(),
                |[ratio, low, high]| format!("{ratio:.2}x ({low:.2}-{high:.2})"),
            )
        };
        text.push_str(&format!(
            "{name:>8}: nodes {} us, {} against the table; host to host {} us, {}\n",
            with_spread(&sums),
            show(ratio),
            with_spread(&figures.latencies[setting]),
            show(host)
        ));
    }
    if figures.others > 0 {
        text.push_str(&format!(
            "{} steps that are no convolutions are not listed; only the times from host to host have them\n",
            figures.others
        ));
    }
    text.push_str(&format!("tuning took {:.1} s\n", figures.tuning.as_secs_f64()));
    text
}

fn with_spread(times: &[f64]) -> String {
    let at = |share| percentile(times, share).unwrap_or(f64::NAN);
    format!("{:.1} ({:.1}-{:.1})", at(0.5), at(0.1), at(0.9))
}

fn json(figures: &Figures) -> serde_json::Value {
    let by_setting = |lists: &[Vec<f64>; SETTINGS.len()]| {
        let pairs =
            SETTINGS.iter().zip(lists).map(|(name, times)| ((*name).to_owned(), times.clone().into()));
        serde_json::Value::Object(pairs.collect())
    };
    serde_json::json!({
        "api": figures.api,
        "device": figures.device,
        "clock": figures.clock,
        "unit": "microseconds",
        "tuning_seconds": figures.tuning.as_secs_f64(),
        "other_steps": figures.others,
        "host_to_host": by_setting(&figures.latencies),
        "nodes": figures.nodes.iter().map(|node| serde_json::json!({
            "name": node.name,
            "kernel": node.kernel,
            "times": by_setting(&node.times),
        })).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_up_is_paired_round_by_round() {
        // A clock that drifts by half leaves the ratio of each round as it is.
        let fast: Vec<f64> = (0..12).map(|round| 10.0 + f64::from(round) / 2.0).collect();
        let slow: Vec<f64> = fast.iter().map(|time| 1.5 * time).collect();
        let [ratio, low, high] = speed_up(&slow, &fast).expect("twelve rounds");
        assert!((ratio - 1.5).abs() < 1e-9 && (low - 1.5).abs() < 1e-9 && (high - 1.5).abs() < 1e-9);
        assert_eq!(speed_up(&slow[..2], &fast[..2]), None, "two rounds say nothing");
    }
}
