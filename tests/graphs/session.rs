//! A row of graphs, and what became of them.

use crate::Instant;
use crate::generate;
use crate::random::Random;
use crate::recipe::Recipe;
use crate::run::{self, Apart, Counts, Failure, Given, Setting};
use crate::shrink::{self, Case};
use diptych::{Backend, Choice, Context, DType, Dialect, Layout, Precision};
use diptych_kernels::ops::OpEntry;
use std::collections::BTreeMap;
use std::time::Duration;

/// What became of a row of graphs.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) graphs: usize,
    pub(crate) runs: BTreeMap<String, usize>,
    times: BTreeMap<String, Duration>,
    pub(crate) counts: Counts,
    /// What nodes of graphs compute.
    nodes: BTreeMap<String, usize>,
    skips: BTreeMap<String, usize>,
    pub(crate) failures: Vec<String>,
}

fn list(counts: &BTreeMap<String, usize>) -> String {
    counts.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
}

impl Report {
    /// One line of words and numbers.
    pub(crate) fn line(&self) -> String {
        let mut absent: Vec<&str> = diptych_kernels::ops::all().iter().map(|entry| entry.name).collect();
        absent.retain(|name| !self.counts.ops.contains_key(*name));
        let entries = diptych_kernels::ops::all().iter();
        let named = |entry: &OpEntry| {
            let variants = entry.variants().into_iter();
            variants.map(|variant| format!("{}_{}", entry.name, variant.name)).collect::<Vec<_>>()
        };
        let kernels: Vec<String> = entries.flat_map(named).collect();
        let idle: Vec<&String> =
            kernels.iter().filter(|name| !self.counts.kernels.contains_key(*name)).collect();
        let Counts { elements, compared, sharply, .. } = self.counts;
        let part = |of: usize| 100.0 * of as f64 / elements.max(1) as f64;
        let rates = self.runs.iter().map(|(setting, count)| {
            let seconds = self.times.get(setting).copied().unwrap_or_default().as_secs_f64();
            format!("{setting} {count} ({:.1}/s)", *count as f64 / seconds.max(1e-9))
        });
        let times = self.counts.times.iter().map(|(what, time)| format!("{what} {:.1}", time.as_secs_f64()));
        format!(
            "graphs: {}; differences: {}; runs: {}; elements: {elements}, with a bound {:.2} %, with a small one {:.2} %; \
             nodes: {}; steps: {}; seconds: {}; ops that did not run: {absent:?}; kernels: {} of {}, without {idle:?}; skipped: {}",
            self.graphs,
            self.failures.len(),
            rates.collect::<Vec<_>>().join(", "),
            part(compared),
            part(sharply),
            list(&self.nodes),
            list(&self.counts.ops),
            times.collect::<Vec<_>>().join(", "),
            kernels.len() - idle.len(),
            kernels.len(),
            list(&self.skips),
        )
    }
}

/// How a graph runs on a device, drawn from its seed.
fn setting(random: &mut Random, backend: Backend, context: &Context, recipe: &Recipe) -> Setting {
    let apart = random.pick(&[Apart::No, Apart::No, Apart::No, Apart::No, Apart::Same, Apart::Mixed]);
    let runs = if recipe.has_states() { 3 } else { run::RUNS };
    let given = random.pick(&[Given::Rows, Given::Rows, Given::Halves, Given::Planes]);
    let plain = Setting { apart, runs, given, ..Setting::plain(backend) };
    let Some(device) = context.device() else { return plain };
    let limits = &device.info().limits;
    use Precision::{Auto, F16, F16Storage, F32, SplitF16, Tf32};
    let mut precisions = vec![F32, F32, F32, F32, F16Storage, F16Storage, F16Storage];
    if apart == Apart::No {
        precisions.extend([Auto, Tf32, SplitF16]);
    }
    if limits.native_half {
        precisions.push(F16);
    }
    let precision = random.pick(&precisions);
    let opencl = limits.dialect == Dialect::OpenClC;
    let layouts = if opencl { &[Layout::C4, Layout::Image2d, Layout::Image2d][..] } else { &[Layout::C4] };
    let layout = if random.one_in(3) { Some(random.pick(layouts)) } else { None };
    let on_cpu = if random.one_in(8) { recipe.steps.get(random.below(recipe.steps.len())) } else { None };
    let mut setting = Setting { precision, layout, on_cpu: on_cpu.map(|step| step.number), ..plain };
    if setting.layout.is_none() && random.one_in(2) {
        setting.choice = choice(random, limits, recipe, precision);
    }
    if setting.choice.is_some_and(|(number, _)| setting.on_cpu == Some(number)) {
        setting.on_cpu = None;
    }
    setting
}

/// A kernel for one of the nodes, which fits the device.
fn choice(
    random: &mut Random,
    limits: &diptych::Limits,
    recipe: &Recipe,
    precision: Precision,
) -> Option<(usize, Choice)> {
    let built = recipe.build().ok()?;
    let step = random.below(recipe.steps.len());
    let number = recipe.steps.get(step)?.number;
    let value = built.values.get(recipe.sources.len() + step)?;
    let node = built.graph.nodes().iter().find(|node| node.outputs().first() == Some(value))?;
    let precision = if precision.storage() == DType::F16 { precision } else { Precision::F32 };
    let op = built.graph.op(node, precision).ok()??;
    let kernels = op.kernels();
    let space = kernels.space(limits);
    let mut variants: Vec<&str> = space.iter().map(|(kernel, _)| kernel.name()).collect();
    variants.dedup();
    // A device without single halves in buffers has no kernel for some ops that store halves.
    if variants.is_empty() {
        return None;
    }
    let variant = random.pick(&variants);
    let tiles: Vec<_> = space.into_iter().filter(|(kernel, _)| kernel.name() == variant).collect();
    let (kernel, tile) = random.pick(&tiles);
    let groups = kernel.work_groups(tile);
    let usual = [[8, 4, 1], [1, 1, 1], [3, 5, 2], [16, 2, 1]];
    let work_group = if groups.is_empty() { random.pick(&usual) } else { random.pick(&groups) };
    let layouts = kernel.entry().layouts;
    let layout = if layouts.is_empty() { Layout::C4 } else { random.pick(layouts) };
    let choice = Choice::new(kernel.name(), tile, work_group).with_layout(layout);
    let there = layout != Layout::Image2d || limits.dialect == Dialect::OpenClC;
    (there && kernel.fits(&choice, limits).is_ok()).then_some((number, choice))
}

/// Runs graphs `first..first + count` until the time is over. `contexts_for` gives the contexts for the graph that is the
/// so-maniest of the row.
///
/// # Errors
/// Those of `contexts_for`.
pub(crate) async fn run(
    first: usize,
    count: usize,
    seconds: usize,
    contexts_for: &mut impl AsyncFnMut(usize) -> diptych::Result<Vec<(Backend, Context)>>,
) -> diptych::Result<Report> {
    let (mut report, begin) = (Report::default(), Instant::now());
    for seed in first..first.saturating_add(count) {
        if begin.elapsed().as_secs() >= seconds as u64 {
            break;
        }
        let contexts = contexts_for(report.graphs).await?;
        let recipe = report.counts.timed("drawing", async { generate::recipe(seed as u64) }).await;
        report.graphs += 1;
        if recipe.outputs.is_empty() {
            *report.skips.entry("nothing was drawn".to_owned()).or_default() += 1;
            continue;
        }
        if let Ok(built) = recipe.build() {
            for node in built.graph.nodes() {
                *report.nodes.entry(node.operator().name().to_owned()).or_default() += 1;
            }
        }
        for (place, (backend, context)) in contexts.iter().enumerate() {
            let mut random = Random::new((seed as u64) << 3 | place as u64 | 1 << 60);
            let setting = setting(&mut random, *backend, context, &recipe);
            if std::env::var("DIPTYCH_GRAPHS_WRITE").is_ok() {
                keep(&Case { recipe: recipe.clone(), setting: setting.clone() }, seed);
            }
            let before = Instant::now();
            let outcome = run::check(context, &recipe, &setting).await;
            let mixed = if setting.apart == Apart::Mixed { " mixed" } else { "" };
            let name = format!("{backend:?} {}{mixed}", setting.precision);
            *report.times.entry(name.clone()).or_default() += before.elapsed();
            *report.runs.entry(name).or_default() += 1;
            match outcome {
                Ok(counts) => report.counts.add(&counts),
                Err(failure) => {
                    let case = Case { recipe: recipe.clone(), setting };
                    let text = failed(context, case, failure, seed).await;
                    crate::say(&text);
                    report.failures.push(text);
                }
            }
        }
    }
    Ok(report)
}

/// Makes a failing case smaller, and writes it as a test.
async fn failed(context: &Context, case: Case, failure: Failure, seed: usize) -> String {
    let fails = async |case: &Case| run::check(context, &case.recipe, &case.setting).await.err();
    let (case, why) = shrink::smallest(case, failure.clone(), &fails).await;
    let text = keep(&case, seed);
    format!("graph {seed}: {failure:?}, and made smaller {why:?}\n{text}")
}

/// A case as a test, written to the folder for them.
pub(crate) fn keep(case: &Case, seed: usize) -> String {
    let text = written(case, seed);
    if let Ok(folder) = std::env::var("DIPTYCH_GRAPHS_OUT") {
        let path = std::path::Path::new(&folder).join(format!("graph_{seed}_{}.rs", case.setting.backend));
        if let Err(error) = std::fs::write(&path, &text) {
            println!("{}: {error}", path.display());
        }
    }
    text
}

/// A case as a test.
pub(crate) fn written(case: &Case, seed: usize) -> String {
    let arithmetic = crate::oracle::Arithmetic { precision: case.setting.widest(), otherwise: true };
    let wanted = case.recipe.build().map_err(|error| error.to_string());
    let wanted = wanted
        .and_then(|built| run::wanted(&case.recipe, &built, &case.setting, arithmetic))
        .unwrap_or_default();
    let last = wanted.into_iter().next_back().unwrap_or_default();
    let wanted: Vec<(Vec<f32>, Vec<f64>)> =
        last.into_iter().map(|known| (known.value, known.error)).collect();
    crate::print::test(&case.recipe, &case.setting, &format!("graph_{seed}_agrees_with_the_oracle"), &wanted)
}
