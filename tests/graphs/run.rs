//! A recipe on a backend, with options, compared with what the oracle says.

use crate::Instant;
use crate::oracle::{self, Arithmetic, Known};
use crate::recipe::{Built, Origin, Recipe, Source};
use crate::ways;
use diptych::{
    Backend, Choice, Context, Dims, Graph, HostTensor, Layout, Limits, MatrixUnit, Picking, Place, Precision,
    Rewrite, Session, SessionOptions, Value,
};
use half::f16;
use std::collections::BTreeMap;
use std::time::Duration;

/// Runs of a session: the memory of one is left to the next.
pub(crate) const RUNS: usize = 2;

/// An OpenCL device that runs every kernel of that language.
pub(crate) fn widest() -> Limits {
    let mut limits = Limits::opencl();
    limits.native_half = true;
    limits.local_memory = 49152;
    limits.matrix_unit = Some(MatrixUnit::Ptx { capability: 90, warp_groups: true });
    limits
}

/// Whether nodes may join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Apart {
    No,
    /// None, by having the session's precision by name.
    Same,
    /// None, every other node storing halves.
    Mixed,
}

/// Where and how a graph runs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Setting {
    pub(crate) backend: Backend,
    pub(crate) precision: Precision,
    /// Whether each node is named in the options, so that it stays by itself.
    pub(crate) apart: Apart,
    /// The wanted layout of feature maps.
    pub(crate) layout: Option<Layout>,
    /// The kernel of a node, by its number.
    pub(crate) choice: Option<(usize, Choice)>,
    /// A node that the CPU computes.
    pub(crate) on_cpu: Option<usize>,
    pub(crate) given: Given,
    /// Rewrites that are left out.
    pub(crate) without: Vec<Rewrite>,
    /// How often it runs. The last run has the recipe's inputs, the one before has their elements backwards, and so
    /// on.
    pub(crate) runs: usize,
}

impl Setting {
    pub(crate) fn plain(backend: Backend) -> Self {
        Setting {
            backend,
            precision: Precision::F32,
            apart: Apart::No,
            layout: None,
            choice: None,
            on_cpu: None,
            given: Given::Rows,
            without: Vec::new(),
            runs: RUNS,
        }
    }

    /// The precision of the largest bounds among those of its nodes.
    pub(crate) fn widest(&self) -> Precision {
        match self.precision {
            _ if self.backend == Backend::Cpu => Precision::F32,
            Precision::F16 => Precision::F16,
            _ if self.apart == Apart::Mixed => Precision::F16Storage,
            precision => precision,
        }
    }

    /// Whether a run has the inputs' elements backwards.
    pub(crate) fn is_backwards(&self, run: usize) -> bool {
        (self.runs - 1 - run) % 2 == 1
    }

    pub(crate) fn options(&self, graph: &Graph) -> SessionOptions {
        let mut options = SessionOptions { precision: self.precision, ..Default::default() };
        if let Some(layout) = self.layout {
            let place = Place { layout: Some(layout), ..Place::default() };
            options.pick = Picking::Preference(vec![place]);
        }
        // A step may be several nodes, of other names.
        let of = |number: usize| {
            let name = format!("n{number}");
            graph.nodes().iter().any(|node| node.name() == name).then_some(name)
        };
        if self.apart != Apart::No {
            for (at, node) in graph.nodes().iter().enumerate() {
                let mixed = if at % 2 == 0 { Precision::F16Storage } else { Precision::F32 };
                let precision = if self.apart == Apart::Mixed { mixed } else { self.precision };
                // A kernel was chosen for the session's precision.
                let chosen = self.choice.and_then(|(number, _)| of(number));
                if chosen.as_deref() != Some(node.name()) {
                    options.precisions.insert(node.name().to_owned(), precision);
                }
            }
        }
        if let Some((number, choice)) = self.choice
            && let Some(name) = of(number)
        {
            options.choices.insert(name, choice);
        }
        options.on_cpu.extend(self.on_cpu.and_then(of));
        options.without_rewrites.extend(&self.without);
        options
    }

    /// The lines of a program that make the context and the options.
    pub(crate) fn text(&self) -> Vec<String> {
        let mut lines = vec![
            format!(
                "let context = diptych::Context::builder().backend(diptych::Backend::{:?}).open()?;",
                self.backend
            ),
            "let mut options = diptych::SessionOptions::default();".to_owned(),
            format!("options.precision = diptych::Precision::{:?};", self.precision),
        ];
        if let Some(layout) = self.layout {
            lines.push(format!(
                "let place = diptych::Place {{ layout: Some(diptych::Layout::{layout:?}), ..Default::default() }};"
            ));
            lines.push("options.pick = diptych::Picking::Preference(vec![place]);".to_owned());
        }
        if self.apart != Apart::No {
            let mixed = "[diptych::Precision::F16Storage, diptych::Precision::F32][at % 2]";
            let precision = if self.apart == Apart::Mixed { mixed } else { "options.precision" };
            lines.push("for (at, node) in graph.nodes().iter().enumerate() {".to_owned());
            lines.push(format!("    options.precisions.insert(node.name().to_owned(), {precision});"));
            lines.push("}".to_owned());
        }
        if let Some((number, Choice { variant, tile, work_group, layout })) = self.choice {
            lines.push(format!(
                "let choice = diptych::Choice::new({variant:?}, {tile:?}, {work_group:?}).with_layout(diptych::Layout::{layout:?});"
            ));
            lines.push(format!("options.choices.insert(\"n{number}\".to_owned(), choice);"));
        }
        if let Some(number) = self.on_cpu {
            lines.push(format!("options.on_cpu.insert(\"n{number}\".to_owned());"));
        }
        if !self.without.is_empty() {
            let names = self.without.iter().map(|rewrite| format!("diptych::Rewrite::{rewrite:?}"));
            let names = names.collect::<Vec<_>>().join(", ");
            lines.push(format!("options.without_rewrites.extend([{names}]);"));
        }
        lines
    }
}

/// What became of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    /// Elements of outputs.
    pub(crate) elements: usize,
    /// Elements that had a bound.
    pub(crate) compared: usize,
    /// Elements whose bound is small beside the tensor's largest element.
    pub(crate) sharply: usize,
    /// The ops of the session's steps.
    pub(crate) ops: BTreeMap<String, usize>,
    /// Their kernels, without tiles and work-groups.
    pub(crate) kernels: BTreeMap<String, usize>,
    /// What took how long.
    pub(crate) times: BTreeMap<&'static str, Duration>,
}

impl Counts {
    /// Does something and notes how long it took.
    pub(crate) async fn timed<T>(&mut self, what: &'static str, work: impl Future<Output = T>) -> T {
        let begin = Instant::now();
        let done = work.await;
        *self.times.entry(what).or_default() += begin.elapsed();
        done
    }
}

/// How the inputs are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Given {
    Rows,
    /// In halves, where they are exact.
    Halves,
    /// Feature maps as planes, channel by channel.
    Planes,
}

/// Why a run is not right.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Failure {
    /// An element that is off.
    Off(String),
    /// The session was refused, or failed.
    Error(String),
    Panic(String),
}

impl Failure {
    /// Whether it is the same kind of failure.
    pub(crate) fn is_like(&self, other: &Failure) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// Whether halves hold these numbers as they are.
pub(crate) fn are_halves(values: &[f32]) -> bool {
    values.iter().all(|&value| f16::from_f32(value).to_f32() == value)
}

impl Given {
    /// Where element `.0` of planes lies in rows, if these dimensions are a feature map's.
    pub(crate) fn planes(dims: &[usize]) -> Option<Vec<usize>> {
        let [n, h, w, c] = *dims else { return None };
        let place = |at: usize| {
            let (pixel, channel, image) = (at % (h * w), at / (h * w) % c, at / (h * w * c));
            (image * h * w + pixel) * c + channel
        };
        Some((0..n * h * w * c).map(place).collect())
    }

    fn tensor(self, source: &Source, backwards: bool) -> diptych::Result<HostTensor> {
        let (values, dims) = (elements(source, backwards), Dims::new(&source.tensor.dims)?);
        match (self, Given::planes(&source.tensor.dims)) {
            (Given::Planes, Some(places)) => {
                let planes: Vec<f32> = places.into_iter().map(|at| values[at]).collect();
                HostTensor::with_layout(dims, Layout::Nchw, planes)
            }
            (Given::Halves, _) if are_halves(&values) => {
                let halves: Vec<f16> = values.into_iter().map(f16::from_f32).collect();
                HostTensor::from_f16(dims, Layout::Nhwc, halves)
            }
            _ => HostTensor::new(dims, values),
        }
    }
}

/// The elements of an input.
pub(crate) fn elements(source: &Source, backwards: bool) -> Vec<f32> {
    let values = &source.tensor.values;
    if backwards { values.iter().rev().copied().collect() } else { values.clone() }
}

/// The outputs that are wanted after each run.
pub(crate) fn wanted(
    recipe: &Recipe,
    built: &Built,
    setting: &Setting,
    arithmetic: Arithmetic,
) -> Result<Vec<Vec<Known>>, String> {
    let mut first: BTreeMap<Value, Known> = BTreeMap::new();
    for (source, &value) in recipe.sources.iter().zip(&built.values) {
        first.insert(value, Known::exact(source.tensor.values.clone()));
    }
    let mut runs = Vec::new();
    for run in 0..setting.runs {
        for (source, &value) in recipe.sources.iter().zip(&built.values) {
            if source.origin == Origin::Input {
                first.insert(value, Known::exact(elements(source, setting.is_backwards(run))));
            }
        }
        let known = oracle::values(&built.graph, &first, arithmetic)?;
        let get = |value: &Value| known.get(value).cloned().unwrap_or_default();
        let stored = |known: Known| if arithmetic.halves() { known.in_halves() } else { known };
        runs.push(built.graph.outputs().iter().map(|value| stored(get(value))).collect());
        for (index, source) in recipe.sources.iter().enumerate() {
            if let Origin::State(Some(next)) = source.origin {
                first.insert(built.values[index], stored(get(&built.values[next])));
            }
        }
    }
    Ok(runs)
}

/// Runs `recipe` and compares every output of every run.
///
/// # Errors
/// What is not right.
#[cfg(not(target_family = "wasm"))]
pub(crate) async fn check(context: &Context, recipe: &Recipe, setting: &Setting) -> Result<Counts, Failure> {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    // Nothing here is awaited by others: what could be is ready at once.
    let outcome = catch_unwind(AssertUnwindSafe(|| pollster::block_on(compare(context, recipe, setting))));
    outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        Err(Failure::Panic(
            text.or(panic.downcast_ref::<&str>().map(|&text| text.to_owned())).unwrap_or_default(),
        ))
    })
}

/// Runs `recipe` and compares every output of every run. A panic ends the module.
///
/// # Errors
/// What is not right.
#[cfg(target_family = "wasm")]
pub(crate) async fn check(context: &Context, recipe: &Recipe, setting: &Setting) -> Result<Counts, Failure> {
    compare(context, recipe, setting).await
}

/// What the outputs' bounds follow from: the session's kernels.
pub(crate) fn arithmetic(setting: &Setting, session: &Session) -> Arithmetic {
    let otherwise = session.steps().iter().any(|step| step.kernel.contains("winograd"));
    Arithmetic { precision: setting.widest(), otherwise }
}

/// Which of its op's kernels a step is.
fn kernel(step: &diptych::Step) -> Option<String> {
    let entry = diptych_kernels::ops::all().iter().find(|entry| entry.name == step.op)?;
    let names = entry.variants().into_iter().map(|variant| format!("{}_{}", entry.name, variant.name));
    names.filter(|name| step.kernel.starts_with(&format!("{name}_"))).max_by_key(String::len)
}

async fn compare(context: &Context, recipe: &Recipe, setting: &Setting) -> Result<Counts, Failure> {
    let error = |error: diptych::Error| Failure::Error(error.to_string());
    let built = recipe.build().map_err(error)?;
    let mut counts = Counts::default();
    let options = setting.options(&built.graph);
    let made = counts.timed("sessions", ways::session(context, &built.graph, options));
    let mut session = made.await.map_err(error)?;
    let arithmetic = arithmetic(setting, &session);
    let runs = counts.timed("oracles", async { wanted(recipe, &built, setting, arithmetic) }).await;
    let runs = runs.map_err(Failure::Error)?;
    for step in session.steps() {
        *counts.ops.entry(step.op.to_owned()).or_default() += 1;
        if setting.backend != Backend::Cpu
            && let Some(kernel) = kernel(&step)
        {
            *counts.kernels.entry(kernel).or_default() += 1;
        }
    }
    // Winograd's kernels spread what is not finite over a tile.
    let finite = |source: &Source| source.tensor.values.iter().all(|value| value.is_finite());
    if arithmetic.otherwise && !recipe.sources.iter().all(finite) {
        return Ok(counts);
    }
    let tensors = |backwards: bool| -> diptych::Result<Vec<(&str, HostTensor)>> {
        let sources = recipe.sources.iter().filter(|source| source.origin == Origin::Input);
        let each = sources.zip(&built.inputs);
        each.map(|(source, (name, _))| Ok((name.as_str(), setting.given.tensor(source, backwards)?)))
            .collect()
    };
    let (turned, inputs) = (tensors(true).map_err(error)?, tensors(false).map_err(error)?);
    let [turned, inputs] =
        [&turned, &inputs].map(|all| all.iter().map(|(name, tensor)| (*name, tensor)).collect::<Vec<_>>());
    let mut done = Vec::new();
    for (run, wanted) in runs.iter().enumerate() {
        let given = if setting.is_backwards(run) { &turned } else { &inputs };
        let outputs = counts.timed("runs", ways::run(&mut session, given)).await.map_err(error)?;
        if outputs.len() != wanted.len() {
            return Err(Failure::Off(format!("{} outputs instead of {}", outputs.len(), wanted.len())));
        }
        for (place, (found, wanted)) in outputs.iter().zip(wanted).enumerate() {
            counts.output(&found.to_f32(), wanted, arithmetic).map_err(|text| {
                Failure::Off(format!("run {run}, output {place} {}: {text}", found.dims()))
            })?;
        }
        let rows = outputs.iter().map(|output| output.to_f32().into_owned());
        done.push((given.as_slice(), rows.collect()));
    }
    let others = counts.timed("other ways", ways::others(context, &mut session, &done));
    others.await.map_err(error)?.map_err(Failure::Off)?;
    Ok(counts)
}

impl Counts {
    pub(crate) fn output(
        &mut self,
        found: &[f32],
        wanted: &Known,
        arithmetic: Arithmetic,
    ) -> Result<(), String> {
        if found.len() != wanted.value.len() {
            return Err(format!("{} elements instead of {}", found.len(), wanted.value.len()));
        }
        let finite = wanted.value.iter().filter(|value| value.is_finite());
        let largest = finite.fold(0.0, |most: f64, value| most.max(f64::from(value.abs())));
        let sharp = largest * if arithmetic.halves() { 0.05 } else { 1e-3 };
        for (at, (&found, (&value, &error))) in
            found.iter().zip(wanted.value.iter().zip(&wanted.error)).enumerate()
        {
            self.elements += 1;
            if !error.is_finite() {
                continue;
            }
            self.compared += 1;
            self.sharply += usize::from(error <= sharp);
            let off = (f64::from(found) - f64::from(value)).abs();
            let same = error == 0.0 && (found == value || found.is_nan() && value.is_nan());
            if !same && (off.is_nan() || off > error) {
                return Err(format!("element {at} is {found} instead of {value} +- {error:.3e}"));
            }
        }
        Ok(())
    }

    pub(crate) fn add(&mut self, other: &Counts) {
        self.elements += other.elements;
        self.compared += other.compared;
        self.sharply += other.sharply;
        for (what, time) in &other.times {
            *self.times.entry(what).or_default() += *time;
        }
        for (all, some) in [(&mut self.ops, &other.ops), (&mut self.kernels, &other.kernels)] {
            some.iter().for_each(|(name, count)| *all.entry(name.clone()).or_default() += count);
        }
    }
}
