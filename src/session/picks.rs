//! Which kernel runs each node, where that is more than the record or the rule: by preference, or
//! by the measured times of the network as a whole.

use super::units::Unit;
use super::{Picking, SessionOptions};
use crate::device::{Device, Dispatch, Memory, Resource};
use crate::dtype::Precision;
use crate::error::{Error, Result};
use crate::graph::{Graph, NodeOp};
use crate::layout::Layout;
use crate::limits::Limits;
use crate::ops::convert::ConvertOp;
use crate::ops::{Choice, Op};
use crate::pick::network::{Edge, cheapest};
use crate::pick::{self, Candidate, KernelPlace, Pick, Place, Tensors};
use crate::shape::Shape;
use crate::tune::db::Source;
use crate::tune::key::{DeviceKey, ProblemKey, SourceHash};
use crate::tune::work_group::{WorkGroup, untuned, untuned_of};
use crate::tuner::{layout_of, problem_of};
use std::collections::HashMap;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// What was picked for a node.
#[derive(Debug, Clone)]
pub(super) struct NodePick {
    pub(super) choice: Choice,
    pub(super) precision: Precision,
    /// Why.
    pub(super) from: String,
}

/// Picks by the node's name.
pub(super) type Picks = HashMap<String, NodePick>;

/// Times of a feature map's changes of layout: C4 to image, and back.
pub(super) type ChangeTimes<'a> = dyn Fn(Shape) -> Result<[Duration; 2]> + 'a;

/// The layouts of feature maps, in the order of [`cheapest`].
const LAYOUTS: [Layout; 2] = [Layout::C4, Layout::Image2d];

/// A choice of the record.
pub(super) struct Recorded {
    pub(super) choice: Choice,
    pub(super) from: Source,
    /// Its median time.
    pub(super) time: Option<Duration>,
}

/// What the record of the options has on a node whose feature maps are in `layout`.
pub(super) fn recorded(
    options: &SessionOptions,
    device: &DeviceKey,
    op: &dyn Op,
    layout: Layout,
    limits: &Limits,
) -> Option<Recorded> {
    let database = options.tuning.database()?.lock().unwrap_or_else(PoisonError::into_inner);
    let key = ProblemKey::of(op, if layout == Layout::C4 { layout_of(op) } else { layout });
    let found = database.lookup(device, &key, &|choice| {
        op.fits(choice, limits).ok()?;
        SourceHash::of_kernel(op, choice, limits).ok()
    })?;
    let time = found.row.time.map(|time| Duration::from_nanos(time.median_ns));
    Some(Recorded { choice: found.choice, from: found.from, time })
}

/// The picks of a graph on a device; none with [`Picking::Rule`].
pub(super) fn picks(
    graph: &Graph,
    options: &SessionOptions,
    units: &[Unit<'_>],
    device: &DeviceKey,
    limits: &Limits,
    changes: &ChangeTimes<'_>,
) -> Result<Picks> {
    let by_hand = |unit: &Unit<'_>| options.choices.contains_key(unit.name());
    let units: Vec<Unit<'_>> = units.iter().filter(|unit| !by_hand(unit)).copied().collect();
    match &options.pick {
        Picking::Rule => Ok(Picks::new()),
        Picking::Preference(places) => {
            let picks = units.iter().map(|unit| {
                let pick = preferred(graph, options, unit, places, device, limits)?;
                Ok((unit.name().to_owned(), pick))
            });
            picks.collect()
        }
        Picking::Measured => measured(graph, options, &units, device, limits, changes),
    }
}

/// The kernels that may run `unit`, in the session's storage.
fn candidates(graph: &Graph, unit: &Unit<'_>, storage: Precision, limits: &Limits) -> Result<Vec<Candidate>> {
    let mut candidates = Vec::new();
    let precisions = [Precision::F32, Precision::F16Storage, Precision::F16];
    // The session's own first: of equal grades the first counts. What may use matrix units has the
    // kernels of f32 among its own.
    let alone = storage.without_matrix_units() != storage;
    let same =
        |precision: &Precision| !alone && *precision != storage && precision.storage() == storage.storage();
    for precision in [storage].into_iter().chain(precisions.into_iter().filter(same)) {
        let problem = problem_of(&unit.problem(graph, precision)?);
        if problem.precision() != precision && precision != storage {
            continue;
        }
        candidates.extend(pick::on_device(&*problem, problem.precision(), limits));
    }
    if unit.merged() {
        for candidate in candidates.iter_mut().filter(|one| one.kernel.layout == Layout::Image2d) {
            let reason = "its outputs leave the network together, from a buffer";
            candidate.obstacle.get_or_insert_with(|| reason.to_owned());
        }
    }
    Ok(candidates)
}

/// The layout of feature maps that a kernel's place means.
fn maps(unit: &Unit<'_>, kernel: &KernelPlace) -> Layout {
    match unit.node.op() {
        NodeOp::Gemm(_) => Layout::C4,
        _ => kernel.layout,
    }
}

fn preferred(
    graph: &Graph,
    options: &SessionOptions,
    unit: &Unit<'_>,
    places: &[Place],
    device: &DeviceKey,
    limits: &Limits,
) -> Result<NodePick> {
    let candidates = candidates(graph, unit, options.precision, limits)?;
    let stored = Some(options.precision.storage());
    let tensors = match unit.node.op() {
        NodeOp::Gemm(_) => Tensors::default(),
        _ => Tensors { input: stored, output: stored },
    };
    let picked = Pick::Preference(places.to_vec()).pick(unit.name(), tensors, &candidates)?;
    let precision = match unit.node.op() {
        NodeOp::Gemm(_) => options.precision,
        _ => picked.winner.precision,
    };
    let problem = problem_of(&unit.problem(graph, precision)?);
    let (op, layout) = (&*problem, maps(unit, &picked.winner));
    let wanted = |variant: &str| variant == picked.winner.variant;
    let known = recorded(options, device, op, layout, limits).filter(|known| wanted(known.choice.variant));
    let choice = match known {
        Some(known) => known.choice,
        None => untuned_of(op, &wanted, options.work_group, layout, limits)?,
    };
    let why = picked.ranking.first().map(|(_, verdict)| verdict.to_string()).unwrap_or_default();
    Ok(NodePick { choice, precision, from: format!("preference: {why}") })
}

fn measured(
    graph: &Graph,
    options: &SessionOptions,
    units: &[Unit<'_>],
    device: &DeviceKey,
    limits: &Limits,
    changes: &ChangeTimes<'_>,
) -> Result<Picks> {
    if options.tuning.database().is_none() {
        let wanted = "Tuning::Database or Tuning::Online, which have measured times";
        return Err(Error::input("Picking::Measured", "Tuning::Default", wanted));
    }
    let mut found = Vec::with_capacity(units.len());
    for unit in units {
        let problem = problem_of(&unit.problem(graph, options.precision)?);
        let op = &*problem;
        let in_layout = |layout: Layout| {
            let no_images = unit.merged() || matches!(unit.node.op(), NodeOp::Gemm(_));
            if layout == Layout::Image2d && no_images {
                return None;
            }
            let known = recorded(options, device, op, layout, limits)?;
            (known.from == Source::Exact).then_some((known.choice, known.time?))
        };
        let both = LAYOUTS.map(in_layout);
        if both.iter().all(Option::is_none) {
            // Tells every candidate, and that it was not measured.
            let candidates = candidates(graph, unit, options.precision, limits)?;
            Pick::Measured(Vec::new()).pick(unit.name(), Tensors::default(), &candidates)?;
        }
        found.push(both);
    }
    let edges = edges(graph, units, &found, changes)?;
    let times: Vec<[Option<Duration>; 2]> =
        found.iter().map(|both| both.map(|one| one.map(|(_, time)| time))).collect();
    let layouts = cheapest(&times, &edges);
    let mut picks = Picks::new();
    for ((unit, both), layout) in units.iter().zip(&found).zip(layouts) {
        let Some((choice, time)) = both[layout] else {
            return Err(Error::Internal(format!("{:?} was given a layout without a time", unit.name())));
        };
        let microseconds = |time: Duration| format!("{:.1} us", time.as_secs_f64() * 1e6);
        let mut from = format!("measured: {}", microseconds(time));
        if let Some((_, other)) = both[1 - layout] {
            let (here, there) = (LAYOUTS[layout], LAYOUTS[1 - layout]);
            let other = microseconds(other);
            from = format!("{from} in {here}; {other} in {there}, changes of layout not counted");
        }
        picks.insert(unit.name().to_owned(), NodePick { choice, precision: options.precision, from });
    }
    Ok(picks)
}

/// The values that pass from node to node as feature maps, where a layout is to be decided. What
/// enters and leaves the network is rows, which cost as much from or to either.
fn edges(
    graph: &Graph,
    units: &[Unit<'_>],
    found: &[[Option<(Choice, Duration)>; 2]],
    changes: &ChangeTimes<'_>,
) -> Result<Vec<Edge>> {
    let mut known: HashMap<Shape, [Duration; 2]> = HashMap::new();
    let mut edges = Vec::new();
    let maps = |unit: &Unit<'_>| !matches!(unit.node.op(), NodeOp::Gemm(_));
    for (producer, unit) in units.iter().enumerate().filter(|(_, unit)| maps(unit) && !unit.merged()) {
        let value = unit.node.output();
        let readers = units.iter().enumerate().filter(|(_, unit)| maps(unit));
        let consumers: Vec<usize> = readers
            .filter(|(_, unit)| unit.inputs().any(|input| input == value))
            .map(|(reader, _)| reader)
            .collect();
        let open = |index: &usize| found[*index].iter().flatten().count() > 1 || found[*index][1].is_some();
        if !consumers.iter().chain([&producer]).any(open) {
            continue;
        }
        let shape = graph.shape(value)?;
        let change = match known.get(&shape) {
            Some(change) => *change,
            None => *known.entry(shape).or_insert(changes(shape)?),
        };
        edges.push(Edge { producer, consumers, change });
    }
    Ok(edges)
}

/// Measures what it takes to change the layout of a feature map of `shape`: C4 to image, and back.
pub(super) fn change_times(device: &dyn Device, shape: Shape, precision: Precision) -> Result<[Duration; 2]> {
    let limits = &device.info().limits;
    let dtype = precision.storage();
    let bytes = (Layout::C4.elements(&shape) * dtype.bytes()) as u64;
    let buffer = Resource::from(&device.alloc(bytes, Memory::Device)?);
    let [width, height] = Layout::image_extent(&shape);
    let image = Resource::from(&device.alloc_image(width, height, dtype)?);
    let time = |from: Layout, to: Layout, resources: [&Resource; 2]| -> Result<Duration> {
        let op = ConvertOp::new(shape, from, to, precision)?;
        let launch = op.plan(&untuned(&op, WorkGroup::Table, limits)?, limits)?;
        let recording = device.record(&[Dispatch {
            pipeline: device.compile(&launch.spec.render(limits.dialect)?)?,
            resources: resources.map(Resource::clone).to_vec(),
            groups: launch.groups(),
            params: launch.params,
        }])?;
        let mut fastest = Duration::MAX;
        // The first warms up; outliers are slow, never fast.
        for _ in 0..6 {
            let start = Instant::now();
            let time = if device.info().timestamps {
                device.time(&recording)?.into_iter().sum()
            } else {
                device.submit(&recording)?;
                device.wait()?;
                start.elapsed()
            };
            fastest = fastest.min(time);
        }
        Ok(fastest)
    };
    Ok([
        time(Layout::C4, Layout::Image2d, [&buffer, &image])?,
        time(Layout::Image2d, Layout::C4, [&image, &buffer])?,
    ])
}

/// Why the CPU's kernel runs each node.
///
/// # Errors
/// If the preference has no place for the CPU, or times are asked for, which the CPU has none of.
pub(super) fn on_cpu(graph: &Graph, options: &SessionOptions, units: &[Unit<'_>]) -> Result<Vec<String>> {
    let alone = |unit: &Unit<'_>| match &options.pick {
        Picking::Rule => Ok("the only kernel".to_owned()),
        Picking::Preference(places) => {
            let problem = problem_of(&unit.problem(graph, Precision::F32)?);
            let candidate = pick::on_cpu(&*problem);
            let picked =
                Pick::Preference(places.clone()).pick(unit.name(), Tensors::default(), &[candidate])?;
            let why = picked.ranking.first().map(|(_, verdict)| verdict.to_string()).unwrap_or_default();
            Ok(format!("preference: {why}"))
        }
        Picking::Measured => {
            Err(Error::unsupported("Picking::Measured", "the CPU has one kernel for each op, and no record"))
        }
    };
    let why = |unit: &Unit<'_>| {
        let alone = alone(unit)?;
        Ok(unit.fused.map_or(alone.clone(), |fused| format!("{alone}; fused: {}", fused.why)))
    };
    units.iter().map(why).collect()
}
