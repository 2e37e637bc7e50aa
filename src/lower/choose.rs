//! The kernel of each unit: by hand, by preference, by the measured times of the network as a whole, by
//! the record, or by rule.

use super::by::By;
use super::choosing::Choosing;
use super::forms;
use super::halves::op_on;
use super::kernel::Kernel;
use super::known::CompiledKernels;
use super::network::Network;
use super::unit::{Assigned, Unit};
use crate::dtype::Precision;
use crate::error::{Error, Result};
use crate::graph::{Graph, Value};
use crate::layout::Layout;
use crate::ops::{Choice, Op, Purpose};
use crate::options::{Picking, SessionOptions};
use crate::pick::network::{Edge, cheapest};
use crate::pick::{self, Candidate, KernelPlace, Pick, Place, Tensors};
use crate::shape::Shape;
use crate::tune::db::Source;
use crate::tune::work_group::{WorkGroup, untuned_of};
use std::collections::HashMap;
use std::time::Duration;

/// Times of a feature map's changes of layout: C4 to image, and back.
pub(super) type ChangeTimes<'a> = dyn Fn(Shape) -> Result<[Duration; 2]> + 'a;

/// The layouts of feature maps, in the order of [`cheapest`].
const LAYOUTS: [Layout; 2] = [Layout::C4, Layout::Image2d];

/// How many times as long a unit may take with a kernel that is compiled, whichever it is.
const MOST_TIMES: f64 = 1.1;

/// How much longer the network may take with such kernels beyond that, as a part of what it takes by rule.
const MOST_LONGER: f64 = 0.05;

/// How many times as long no unit may take with one.
const LEAST_LIKE: f64 = 4.0;

/// What an op asks of a device, roughly: operations, and elements that are moved.
fn work(op: &dyn Op) -> f64 {
    let moved: usize = op.operands().iter().map(|info| info.elements()).sum();
    op.flops() as f64 + moved as f64
}

/// What was picked for a unit.
#[derive(Debug, Clone)]
struct UnitPick {
    choice: Choice,
    precision: Precision,
    why: String,
}

/// Whether the op's operands are feature maps, which may lie in several layouts.
fn has_maps(op: &dyn Op) -> bool {
    op.record_layout() == Layout::C4
}

impl Choosing<'_> {
    /// The kernel of each unit of `network`.
    pub(super) fn choose(&self, network: &Network<'_>, changes: &ChangeTimes<'_>) -> Result<Vec<Kernel>> {
        self.check_names(network)?;
        let picks = self.picks(network, changes)?;
        let layouts = forms::layouts(network, self)?;
        let wide = self.wide(network, &layouts)?;
        let chosen = network.units().iter().zip(layouts).zip(wide).map(|((unit, layout), wide)| {
            let pick = picks.get(unit.name.as_str());
            let chosen = self.chosen(network.graph, unit, (layout, wide), pick);
            chosen.map_err(|error| error.at_node(&unit.name))
        });
        let mut kernels = chosen.collect::<Result<Vec<Kernel>>>()?;
        if let Some(known) = self.known.filter(|_| self.options.work_group == WorkGroup::Table) {
            self.prefer(known, &mut kernels)?;
        }
        Ok(kernels)
    }

    /// That each kernel by hand is of a node, or of nodes that this network runs as one.
    fn check_names(&self, network: &Network<'_>) -> Result<()> {
        let names = network.graph.nodes().iter().map(|node| node.name());
        let known = |wanted: &str| {
            names
                .clone()
                .chain(network.units().iter().map(|unit| unit.name.as_str()))
                .any(|name| name == wanted)
        };
        match self.options.choices.keys().find(|name| !known(name)) {
            None => Ok(()),
            Some(name) => {
                let found = format!("{name:?}, whose nodes do not run as one step here");
                Err(Error::input("options", found, "a node, or a step by its name in Session::steps"))
            }
        }
    }

    /// Takes kernels that are compiled in place of others that the rule chose.
    fn prefer(&self, known: &CompiledKernels, kernels: &mut [Kernel]) -> Result<()> {
        let all: f64 = kernels.iter().map(|kernel| work(&*kernel.op)).sum();
        let mut left = MOST_LONGER;
        for kernel in kernels.iter_mut().filter(|kernel| kernel.by == By::Rule) {
            let Some(choice) = &mut kernel.choice else { continue };
            let part = work(&*kernel.op) / all.max(1.0);
            let most = (1.0 + left / part.max(f64::MIN_POSITIVE)).clamp(MOST_TIMES, LEAST_LIKE);
            if let Some((compiled, times)) = known.instead(&*kernel.op, choice, most, self.limits)? {
                *choice = compiled;
                kernel.by = By::Compiled;
                if times > MOST_TIMES {
                    left -= (times - 1.0) * part;
                }
            }
        }
        Ok(())
    }

    fn chosen(
        &self,
        graph: &Graph,
        unit: &Unit,
        (layout, wide): (Layout, bool),
        pick: Option<&UnitPick>,
    ) -> Result<Kernel> {
        if let Some(why) = &unit.host {
            let op = unit.op(graph, Precision::F32)?;
            return Ok(Kernel { op, choice: None, by: By::Host(why.clone()), storage: None });
        }
        let precision = pick.map_or(self.options.precision, |pick| pick.precision);
        let by_hand = self.options.choices.get(&unit.name);
        let given = by_hand.or(pick.map(|pick| &pick.choice));
        let op = match given {
            None if wide => unit.op_of(graph, Precision::F32)?,
            _ => op_on(graph, unit, precision, given.map_or(layout, |choice| choice.layout), self.limits)?,
        };
        let (choice, by) = match (by_hand, pick) {
            (None, Some(pick)) => (pick.choice, By::Pick(pick.why.clone())),
            _ => self.decided(&unit.name, &*op, layout)?,
        };
        let described = |own: &Assigned| format!("{}: {}", own.precision.storage(), own.why);
        let storage = unit.precision.as_ref().map(described);
        Ok(Kernel { op, choice: Some(choice), by, storage })
    }

    /// What was picked beyond the rule, by the unit's name; nothing with [`Picking::Rule`].
    fn picks<'u>(
        &self,
        network: &'u Network<'_>,
        changes: &ChangeTimes<'_>,
    ) -> Result<HashMap<&'u str, UnitPick>> {
        if self.options.pick == Picking::Rule {
            return Ok(HashMap::new());
        }
        let mut units: Vec<&Unit> = Vec::with_capacity(network.units().len());
        for unit in network.units() {
            let by_hand = self.options.choices.contains_key(&unit.name);
            let op = self.op_in(network.graph, unit, Layout::Nhwc)?;
            // What has one kernel, and no times, is not picked, nor what computes in rows too: its layout follows
            // from the bytes that the network moves, and its kernel from the record.
            if !by_hand
                && unit.host.is_none()
                && op.obstacle(Purpose::Tuning).is_none()
                && !op.kernels().serve(Layout::Nhwc, self.limits)
            {
                units.push(unit);
            }
        }
        match &self.options.pick {
            Picking::Rule => Ok(HashMap::new()),
            Picking::Preference(places) => {
                let picks = units.iter().map(|unit| {
                    let pick = self.preferred(network.graph, unit, places)?;
                    Ok((unit.name.as_str(), pick))
                });
                picks.collect()
            }
            Picking::Measured => self.measured(network, &units, changes),
        }
    }

    /// The kernels that may run `unit`, in the session's storage.
    fn candidates(&self, graph: &Graph, unit: &Unit) -> Result<Vec<Candidate>> {
        let storage = self.options.precision;
        let mut candidates = Vec::new();
        let precisions = [Precision::F32, Precision::F16Storage, Precision::F16];
        // The session's own first: of equal grades the first counts. What may use matrix units has the
        // kernels of f32 among its own.
        let alone = storage.without_matrix_units() != storage;
        let same = |precision: &Precision| {
            !alone && *precision != storage && precision.storage() == storage.storage()
        };
        for precision in [storage].into_iter().chain(precisions.into_iter().filter(same)) {
            let op = op_on(graph, unit, precision, Layout::C4, self.limits)?;
            if op.precision() != precision && precision != storage {
                continue;
            }
            candidates.extend(pick::on_device(&*op, op.precision(), self.limits));
        }
        if !unit.parts().is_empty() {
            for candidate in candidates.iter_mut().filter(|one| one.kernel.layout == Layout::Image2d) {
                let reason = "its outputs leave the network together, from a buffer";
                candidate.obstacle.get_or_insert_with(|| reason.to_owned());
            }
        }
        Ok(candidates)
    }

    fn preferred(&self, graph: &Graph, unit: &Unit, places: &[Place]) -> Result<UnitPick> {
        let candidates = self.candidates(graph, unit)?;
        let maps = has_maps(&*self.op_in(graph, unit, Layout::C4)?);
        let stored = maps.then_some(self.options.precision.storage());
        let tensors = Tensors { input: stored, output: stored };
        let picked = Pick::Preference(places.to_vec()).pick(&unit.name, tensors, &candidates)?;
        let KernelPlace { variant, precision, layout, .. } = picked.winner;
        let precision = if maps { precision } else { self.options.precision };
        let layout = if maps { layout } else { Layout::C4 };
        let op = op_on(graph, unit, precision, Layout::C4, self.limits)?;
        let wanted = |other: &str| other == variant;
        let known = self.recorded(&*op, layout).filter(|known| wanted(known.choice.variant));
        let choice = match known {
            Some(known) => known.choice,
            None => untuned_of(
                &*op,
                &|kernel| wanted(kernel.name()),
                self.options.work_group,
                layout,
                self.limits,
            )?,
        };
        let why = picked.ranking.first().map(|(_, verdict)| verdict.to_string()).unwrap_or_default();
        Ok(UnitPick { choice, precision, why: format!("preference: {why}") })
    }

    fn measured<'u>(
        &self,
        network: &'u Network<'_>,
        units: &[&'u Unit],
        changes: &ChangeTimes<'_>,
    ) -> Result<HashMap<&'u str, UnitPick>> {
        if self.options.tuning.database().is_none() {
            let wanted = "Tuning::Database or Tuning::Online, which have measured times";
            return Err(Error::input("Picking::Measured", "Tuning::Default", wanted));
        }
        let mut found = Vec::with_capacity(units.len());
        for unit in units {
            let op = self.op_in(network.graph, unit, Layout::C4)?;
            let in_layout = |layout: Layout| {
                let no_images = !unit.parts().is_empty() || !has_maps(&*op);
                if layout == Layout::Image2d && no_images {
                    return None;
                }
                let known = self.recorded(&*op, layout)?;
                (known.from == Source::Exact).then_some((known.choice, known.time?))
            };
            let both = LAYOUTS.map(in_layout);
            if both.iter().all(Option::is_none) {
                // The error lists every candidate, and that it was not measured.
                let candidates = self.candidates(network.graph, unit)?;
                Pick::Measured(Vec::new()).pick(&unit.name, Tensors::default(), &candidates)?;
            }
            found.push(both);
        }
        let edges = self.edges(network, units, &found, changes)?;
        let times: Vec<[Option<Duration>; 2]> =
            found.iter().map(|both| both.map(|one| one.map(|(_, time)| time))).collect();
        let layouts = cheapest(&times, &edges);
        let mut picks = HashMap::new();
        for ((unit, both), layout) in units.iter().zip(&found).zip(layouts) {
            let Some((choice, time)) = both[layout] else {
                return Err(Error::Internal(format!("{:?} was given a layout without a time", unit.name)));
            };
            let microseconds = |time: Duration| format!("{:.1} us", time.as_secs_f64() * 1e6);
            let mut why = format!("measured: {}", microseconds(time));
            if let Some((_, other)) = both[1 - layout] {
                let (here, there) = (LAYOUTS[layout], LAYOUTS[1 - layout]);
                let other = microseconds(other);
                why = format!("{why} in {here}; {other} in {there}, changes of layout not counted");
            }
            let precision = self.options.precision;
            picks.insert(unit.name.as_str(), UnitPick { choice, precision, why });
        }
        Ok(picks)
    }

    /// The values that pass from unit to unit as feature maps, where a layout is to be decided. What
    /// enters and leaves the network is rows, which cost as much from or to either.
    fn edges(
        &self,
        network: &Network<'_>,
        units: &[&Unit],
        found: &[[Option<(Choice, Duration)>; 2]],
        changes: &ChangeTimes<'_>,
    ) -> Result<Vec<Edge>> {
        let mut maps = Vec::with_capacity(units.len());
        for unit in units {
            maps.push(has_maps(&*unit.op(network.graph, self.options.precision)?));
        }
        let mut known: HashMap<Shape, [Duration; 2]> = HashMap::new();
        let mut edges = Vec::new();
        let mut readers: HashMap<Value, Vec<usize>> = HashMap::new();
        for (reader, unit) in units.iter().enumerate().filter(|(reader, _)| maps[*reader]) {
            for value in unit.reads() {
                let readers = readers.entry(value).or_default();
                if readers.last() != Some(&reader) {
                    readers.push(reader);
                }
            }
        }
        for (producer, unit) in units.iter().enumerate() {
            let (&[value], true, true) = (&unit.outputs[..], maps[producer], unit.parts().is_empty()) else {
                continue;
            };
            let consumers = readers.get(&value).cloned().unwrap_or_default();
            let open =
                |index: &usize| found[*index].iter().flatten().count() > 1 || found[*index][1].is_some();
            if !consumers.iter().chain([&producer]).any(open) {
                continue;
            }
            let shape = network.dims(value)?.shape();
            let change = match known.get(&shape) {
                Some(change) => *change,
                None => *known.entry(shape).or_insert(changes(shape)?),
            };
            edges.push(Edge { producer, consumers, change });
        }
        Ok(edges)
    }
}

/// Why the CPU's kernel runs each unit.
///
/// # Errors
/// If the preference has no place for the CPU, or times are asked for, which the CPU has none of.
pub(crate) fn on_cpu(network: &Network<'_>, options: &SessionOptions) -> Result<Vec<String>> {
    let why = |unit: &Unit| match &options.pick {
        Picking::Rule => Ok("the only kernel".to_owned()),
        Picking::Preference(places) => {
            let candidate = pick::on_cpu(&*unit.op(network.graph, Precision::F32)?);
            let picked =
                Pick::Preference(places.clone()).pick(&unit.name, Tensors::default(), &[candidate])?;
            let why = picked.ranking.first().map(|(_, verdict)| verdict.to_string()).unwrap_or_default();
            Ok(format!("preference: {why}"))
        }
        Picking::Measured => {
            Err(Error::unsupported("Picking::Measured", "the CPU has one kernel for each op, and no record"))
        }
    };
    network.units().iter().map(why).collect()
}
