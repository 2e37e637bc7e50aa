//! `diptych article`: the experiment behind the project, on this machine. A network's nodes with
//! the table's work-groups, with (1,1,1), with (8,4,8), as an untuned session runs them, and tuned.
//!
//! The first three run the kernels of the article (one vec4 of output channels per invocation), so
//! that they differ in the work-group alone. All are timed node by node in interleaved rounds; nodes that run as one step are
//! one row, in all settings. Convolutions without such a kernel run as in an untuned session.

mod chart;
mod text;

use crate::interrupt::{Interrupt, Interrupted};
use crate::output::{print, say};
use crate::tune::{bar, finish, record};
use anyhow::{Context as _, Result, ensure};
use diptych::internals::tune::db::{Database, Source};
use diptych::internals::tune::journal::Journal;
use diptych::internals::tune::statistics::signed_rank_interval;
use diptych::internals::tune::work_group;
use diptych::internals::{By, PlannedStep};
use diptych::{
    Context, Graph, HostTensor, Limits, Model, Port, ProblemReport, Profile, Report, Session, SessionOptions,
    SharedDatabase, Step, Tuner, Tuning,
};
use diptych_kernels::ops::{Choice, Op};
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A TensorFlow Lite or ONNX model with convolutions, such as PoseNet or MobileNet.
    pub(crate) model: PathBuf,

    #[command(flatten)]
    pub(crate) on: crate::flags::Gpus,

    #[command(flatten)]
    pub(crate) load: crate::flags::Load,

    /// Rounds: each runs every setting once. An interval of a ratio wants six.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(6..=1000))]
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

/// Which of the settings is tuned.
pub(crate) const TUNED: usize = 4;

/// A node's times in microseconds, one list for each setting. Nodes that run as one have one row.
pub(crate) struct NodeTimes {
    pub(crate) name: String,
    pub(crate) kernel: String,
    /// Whether it has the article's kernel. Without it the first three settings run it as an untuned session does.
    pub(crate) of_article: bool,
    /// Whether its kernel was compared with others on this device.
    pub(crate) tuned: bool,
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
    /// Steps that are no convolutions and have no kernel of the article, which the sums leave out.
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

    /// How many nodes are tuned.
    fn tuned(&self) -> usize {
        self.nodes.iter().filter(|node| node.tuned).count()
    }

    /// The settings' names, the last of which says how many nodes are tuned if not all are.
    fn heads(&self) -> [String; SETTINGS.len()] {
        let mut heads = SETTINGS.map(str::to_owned);
        heads[TUNED] = match self.tuned() {
            0 => "not tuned".to_owned(),
            tuned if tuned == self.nodes.len() => SETTINGS[TUNED].to_owned(),
            tuned => format!("tuned ({tuned} of {})", self.nodes.len()),
        };
        heads
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
        let budget = crate::flags::share(arguments.budget, spent, contexts.len() - index, contexts.len());
        let figures = measure(context, &graph, &record, budget, arguments.rounds)?;
        spent += figures.tuning;
        all.push(figures);
    }
    for figures in &all {
        print(text::table(figures))?;
    }
    if let Some(folder) = &arguments.out {
        std::fs::create_dir_all(folder).with_context(|| format!("{}", folder.display()))?;
        let path = folder.join("article.json");
        let json = serde_json::to_string_pretty(&all.iter().map(text::json).collect::<Vec<_>>())?;
        std::fs::write(&path, json).with_context(|| format!("{}", path.display()))?;
        for figures in &all {
            chart::draw(&folder.join(format!("article-{}", figures.api)), figures)?;
        }
    }
    Ok(())
}

/// The ops that are convolutions, whatever their numbers are.
const CONVOLUTIONS: [&str; 7] = [
    "conv2d",
    "pointwise",
    "depthwise",
    "transposed_conv2d",
    "dynamic_conv2d",
    "quantized_conv2d",
    "quantized_depthwise",
];

/// The article's kernel of an op, where it has one: one vec4 of outputs for each invocation, in the layout of `own` if it
/// serves that. With the work-group `size`, or the table's.
fn article_choice(op: &dyn Op, own: Choice, limits: &Limits, size: Option<[u32; 3]>) -> Option<Choice> {
    const TILE: [u32; 3] = [1, 1, 1];
    let kernel = op.kernel("direct").ok()?;
    kernel.offers(limits).iter().find(|offer| offer.tile == TILE)?;
    let work_group = size.unwrap_or_else(|| work_group::table(&*kernel, TILE, limits));
    let choice = kernel.choice(TILE, work_group);
    [choice.with_layout(own.layout), choice].into_iter().find(|choice| op.fits(choice, limits).is_ok())
}

/// The article's kernel for every step of an untuned session that has it, with a work-group of its own. What runs as one step
/// stays one, so that the settings differ in kernels and work-groups alone.
fn article_choices(
    graph: &Graph,
    steps: &[PlannedStep],
    limits: &Limits,
    size: Option<[u32; 3]>,
) -> BTreeMap<String, Choice> {
    let nodes: HashSet<&str> = graph.nodes().iter().map(|node| node.name()).collect();
    // A step that a rewrite made of a part of a node has no name that a choice could be given to.
    let named = |step: &&PlannedStep| step.name.split(" + ").all(|part| nodes.contains(part));
    let choice = |step: &PlannedStep| {
        let choice = article_choice(&**step.unit.as_ref()?, step.choice, limits, size)?;
        Some((step.name.clone(), choice))
    };
    steps.iter().filter(named).filter_map(choice).collect()
}

/// Noise in [-1, 1), or zeros and ones where an input is of integers: the times of a dense network do not depend on them.
fn noise(ports: &[Port]) -> Result<Vec<(&str, HostTensor)>> {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    };
    let mut feeds = Vec::new();
    for port in ports {
        let mut value = || match port.dtype.is_float() {
            true => next() as f32 / (1 << 23) as f32 - 1.0,
            false => (next() >> 23) as f32,
        };
        let values: Vec<f32> = (0..port.dims.elements()).map(|_| value()).collect();
        feeds.push((port.name.as_str(), HostTensor::new(port.dims, values)?));
    }
    Ok(feeds)
}

/// Whether two settings gave the same, but for rounding; integers may differ by one.
fn alike(found: &[HostTensor], wanted: &[HostTensor]) -> bool {
    found.iter().zip(wanted).all(|(a, b)| {
        let least = if b.dtype().is_float() { 0.0 } else { 1.0 };
        let near = |(a, b): (&f32, &f32)| (a - b).abs() <= least + 1e-2 * b.abs().max(1.0);
        a.to_f32().iter().zip(b.to_f32().iter()).all(near)
    })
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
    let (report, interrupted) = finish(&mut tuner, &bar(&api, Some(budget))?, interrupt)?;
    if let Some(interrupted) = interrupted {
        return Err(interrupted.into());
    }

    let untuned = SessionOptions::default();
    let steps = Session::planned_steps(context, graph, &untuned)?;
    let by_table = article_choices(graph, &steps, &device.limits, None);
    ensure!(
        steps.iter().any(|step| CONVOLUTIONS.contains(&step.launch.spec.op)),
        "found no convolution, wanted a model with some"
    );
    let by_hand = |size| SessionOptions {
        choices: article_choices(graph, &steps, &device.limits, size),
        ..Default::default()
    };
    let tuned = SessionOptions { tuning: Tuning::Database(Arc::clone(database)), ..Default::default() };
    let was_tuned = tuned_steps(&Session::planned_steps(context, graph, &tuned)?, &report);
    let options: [SessionOptions; SETTINGS.len()] =
        [by_hand(None), by_hand(Some([1, 1, 1])), by_hand(Some([8, 4, 8])), untuned, tuned];
    let mut sessions = Vec::new();
    for options in options {
        sessions.push(Session::new(context, graph, options)?);
    }
    let ports = sessions[0].inputs().to_vec();
    let feeds = noise(&ports)?;
    let feeds: Vec<(&str, &HostTensor)> = feeds.iter().map(|(name, tensor)| (*name, tensor)).collect();
    let wanted = sessions[0].run(&feeds)?;
    for (session, setting) in sessions.iter_mut().zip(SETTINGS) {
        let found = session.run(&feeds)?;
        ensure!(
            alike(&found, &wanted),
            "{api}: the network with {setting} gives another result than with the table"
        );
    }

    let steps = sessions[TUNED].steps();
    let listed = |step: &&Step| CONVOLUTIONS.contains(&step.op) || by_table.contains_key(&step.name);
    let (nodes, others): (Vec<&Step>, Vec<_>) = steps.iter().filter(|step| !step.inserted).partition(listed);
    let row = |step: &&Step| NodeTimes {
        name: step.name.clone(),
        kernel: step.kernel.clone(),
        of_article: by_table.contains_key(&step.name),
        tuned: was_tuned.contains(&step.name),
        times: Default::default(),
    };
    let mut figures = Figures {
        api,
        device: device.to_string(),
        clock: "",
        nodes: nodes.iter().map(row).collect(),
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

/// The steps whose kernels are on record for just their problems, and were compared with others: a default that was timed
/// alone, because the time was over, is not tuned.
fn tuned_steps(steps: &[PlannedStep], report: &Report) -> HashSet<String> {
    let compared = |name: &str| {
        let mut own = report.problems.iter().filter(|problem| problem.nodes.iter().any(|node| node == name));
        // What is not in the report was on record before, at its end.
        let timed =
            |problem: &ProblemReport| problem.trials.iter().filter(|one| one.median.is_some()).count();
        own.clone().next().is_none() || own.any(|problem| !problem.cut_short || timed(problem) > 1)
    };
    let tuned = steps.iter().filter(|step| step.by == By::Record(Source::Exact) && compared(&step.name));
    tuned.map(|step| step.name.clone()).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use diptych::nn::PadMode;
    use diptych::{Backend, Bits, Conv2d, Extras, Function, Shape};

    #[test]
    fn a_speed_up_is_paired_round_by_round() {
        // A clock that drifts by half leaves the ratio of each round as it is.
        let fast: Vec<f64> = (0..12).map(|round| 10.0 + f64::from(round) / 2.0).collect();
        let slow: Vec<f64> = fast.iter().map(|time| 1.5 * time).collect();
        let [ratio, low, high] = speed_up(&slow, &fast).expect("twelve rounds");
        assert!((ratio - 1.5).abs() < 1e-9 && (low - 1.5).abs() < 1e-9 && (high - 1.5).abs() < 1e-9);
        assert_eq!(speed_up(&slow[..2], &fast[..2]), None, "two rounds say nothing");
    }

    /// The devices that there are; a missing one is printed, or fails if devices are required.
    fn gpus() -> Vec<Context> {
        let mut found = Vec::new();
        for backend in [Backend::Wgpu, Backend::OpenCl] {
            match Context::new(backend) {
                Ok(context) => found.push(context),
                Err(error) if std::env::var("DIPTYCH_REQUIRE_DEVICES").is_ok_and(|value| value == "1") => {
                    panic!("{backend} is required: {error}")
                }
                Err(error) => println!("skipping {backend}: {error}"),
            }
        }
        found
    }

    /// A convolution that runs with a function, one by itself behind a pad, and a pooling.
    fn network() -> Graph {
        let weights = |shape: Shape| {
            let values = (0..shape.elements()).map(|index| (index % 7) as f32 / 7.0 - 0.4);
            HostTensor::new(shape, values.collect::<Vec<f32>>()).expect("weights")
        };
        let mut graph = Graph::new();
        let x = graph.input("x", Shape::nhwc(1, 12, 12, 4)).expect("an input");
        let own = weights(Shape::nhwc(8, 3, 3, 4));
        let x = graph.conv2d("first", x, own, Extras::default(), Conv2d::default()).expect("a convolution");
        let x = graph.elementwise("relu", Function::Relu, &[x.into()]).expect("a function");
        let zeros = PadMode::Constant(Bits(0.0));
        let x = graph.pad("border", x, &[0, 1, 1, 0], &[0, 1, 1, 0], zeros).expect("a pad");
        let own = weights(Shape::nhwc(8, 3, 3, 8));
        let x = graph.conv2d("second", x, own, Extras::default(), Conv2d::default()).expect("a convolution");
        graph.output(x).expect("an output");
        graph
    }

    #[test]
    fn each_convolution_is_listed_fused_or_not_and_of_whatever_numbers() {
        let record = || Record {
            database: Arc::new(Mutex::new(Database::in_memory())),
            journal: None,
            interrupt: Interrupt::watch().expect("a handler"),
        };
        let bytes = Model::load("../../tests/cases/dynamic_conv_uint8.onnx", &Default::default());
        let bytes = bytes.expect("a network of bytes").graph;
        for context in gpus() {
            let figures = measure(&context, &network(), &record(), Duration::ZERO, 6).expect("figures");
            let names: Vec<&str> = figures.nodes.iter().map(|node| node.name.as_str()).collect();
            assert_eq!(names, ["first + relu", "second"], "{}", figures.api);
            assert!(figures.nodes.iter().all(|node| node.of_article && !node.tuned), "{}", figures.api);
            for times in figures.nodes.iter().flat_map(|node| &node.times) {
                assert!(times.len() == 6 && times.iter().all(|time| *time > 0.0), "{times:?}");
            }
            assert_eq!(figures.heads()[TUNED], "not tuned", "there was no time");
            let figures =
                measure(&context, &network(), &record(), Duration::from_secs(8), 6).expect("figures");
            assert!(figures.tuned() > 0, "{}", text::table(&figures));
            let figures = measure(&context, &bytes, &record(), Duration::ZERO, 6).expect("figures of bytes");
            assert_eq!(figures.nodes.len(), 1, "{}", text::table(&figures));
        }
    }
}
