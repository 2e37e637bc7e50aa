//! Which nodes lose accuracy in f16: the network is run in f32 and in f16 on samples of its inputs.
//!
//! First what each unit of the program writes is looked at, in both ([`Watched`]). What reaches beyond 65504 in f32, or
//! reads what does, is kept in f32. Then the network runs as it will: while an output is off by more than the tolerance,
//! those nodes are kept in f32 too that add most to the error of what they read: one, then two, then four, and so on. In
//! the end all are, and nothing is off.
//!
//! Nodes that are kept here and there cut the network into pieces, and a piece that saves less than the conversions
//! around it cost runs in f32 (`lower/precision.rs`). So f16 up to one node, and f16 from one node on, are tried as well
//! where pieces were given up: they convert once. What saves most is taken.

use super::watched::Watched;
use super::{Session, Step};
use crate::calibration::{CalibratedNode, CalibratedOutput, Calibration};
use crate::context::Context;
use crate::device::Device;
use crate::dtype::Precision;
use crate::error::{Error, Result};
use crate::graph::{Graph, Value};
use crate::host::HostTensor;
use crate::lower::{Observed, Written, has_halves, observed};
use crate::ops::LARGEST_HALF;
use crate::options::{Rewrite, SessionOptions};
use crate::sorted;
use std::collections::HashMap;

/// Inputs of one run, by name.
type Sample<'a> = Vec<(&'a str, &'a HostTensor)>;

/// What is known of a value.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    /// The largest magnitude in f32.
    largest: f32,
    /// The largest difference in f16.
    difference: f32,
}

impl Seen {
    fn add(&mut self, exact: &[f32], rounded: Option<&[f32]>) {
        for (index, &exact) in exact.iter().enumerate() {
            self.largest = self.largest.max(exact.abs());
            let Some(&rounded) = rounded.and_then(|rounded| rounded.get(index)) else { continue };
            // Equal infinities, and a NaN in both, are no difference.
            if rounded.to_bits() == exact.to_bits() || (rounded.is_nan() && exact.is_nan()) {
                continue;
            }
            let difference = (rounded - exact).abs();
            let difference = if difference.is_nan() { f32::INFINITY } else { difference };
            self.difference = self.difference.max(difference);
        }
    }

    fn error(&self) -> f32 {
        if self.difference == 0.0 { 0.0 } else { self.difference / self.largest }
    }
}

/// What came of a session with some nodes in f32.
#[derive(Debug, Clone, Default, PartialEq)]
struct Tried {
    /// How far each output is off.
    errors: Vec<f32>,
    /// Units that ran in f16.
    narrow: usize,
    /// What they save, in bytes that could be moved meanwhile.
    saved: f64,
}

impl Tried {
    fn worst(&self) -> f32 {
        self.errors.iter().copied().fold(0.0, f32::max)
    }
}

/// Why each unit is kept in f32, if it is.
type F32Reasons = Vec<Option<String>>;

/// What is kept in f32, and what came of it.
#[derive(Debug, Clone, PartialEq)]
struct Best {
    kept: F32Reasons,
    tried: Tried,
}

/// Looks for what to keep in f32 beside `first`, so that no output is off by more than `tolerance` and f16 saves most.
/// `open` are the units that may be in f16, `ranked` are those with what each adds to the error, the most first; `try_out`
/// runs the network.
fn search(
    tolerance: f32,
    first: &F32Reasons,
    open: &[bool],
    ranked: Vec<(usize, f32)>,
    try_out: &mut dyn FnMut(&F32Reasons) -> Result<Tried>,
) -> Result<Best> {
    let mut kept = first.clone();
    let (mut ranked, mut count) = (ranked.into_iter(), 1);
    let mut best = loop {
        let tried = try_out(&kept)?;
        if tried.worst() <= tolerance || ranked.len() == 0 {
            break Best { kept, tried };
        }
        for (unit, added) in ranked.by_ref().take(count) {
            kept[unit] = Some(why(added));
        }
        count *= 2;
    };
    let allowed =
        |kept: &F32Reasons| open.iter().zip(kept).filter(|(open, kept)| **open && kept.is_none()).count();
    if best.tried.narrow >= allowed(&best.kept) {
        return Ok(best);
    }
    for from_first in [true, false] {
        let cut = |wide: usize| -> F32Reasons {
            let why = "f16 in one piece, which converts once, saves more without it";
            let own = |(unit, (kept, open)): (usize, (&Option<String>, &bool))| {
                let beyond = if from_first { unit >= wide } else { unit < first.len().saturating_sub(wide) };
                kept.clone().or((*open && beyond).then(|| why.to_owned()))
            };
            first.iter().zip(open).enumerate().map(own).collect()
        };
        // Units in f16 that are within the tolerance, and the fewest known not to be.
        let (mut within, mut beyond) = (0, first.len() + 1);
        while beyond - within > 1 {
            let middle = within + (beyond - within) / 2;
            let kept = cut(middle);
            let tried = try_out(&kept)?;
            if tried.worst() > tolerance {
                beyond = middle;
                continue;
            }
            within = middle;
            if tried.saved > best.tried.saved {
                best = Best { kept, tried };
            }
        }
    }
    Ok(best)
}

/// Why a unit is kept that adds so much to the error of what it reads.
fn why(added: f32) -> String {
    match added {
        f32::INFINITY => {
            "f16 makes an infinity or a NaN of what it writes, or of what is made of that".to_owned()
        }
        f32::NEG_INFINITY => "in f16 it reads an infinity or a NaN".to_owned(),
        added => format!("it adds {added:.2e} to the error of what it reads"),
    }
}

/// The value if it is finite, else the largest that is.
const fn finite(value: f32) -> f32 {
    if value.is_finite() { value } else { f32::MAX }
}

impl Session {
    /// Runs `graph` on samples of its inputs in f32 and in f16, and says which nodes [`Precision::Auto`] is to
    /// keep in f32 so that no output is off by more than `tolerance` of its largest magnitude
    /// ([`Calibration::TOLERANCE`], if nothing else is wanted). `options` are those of the session that is to use
    /// it; its precision and calibration do not count.
    ///
    /// ```no_run
    /// # use diptych::{Backend, Calibration, Context, Graph, HostTensor, Precision, Session, SessionOptions};
    /// # fn calibrated(graph: &Graph, pictures: &[HostTensor]) -> diptych::Result<Session> {
    /// let context = Context::new(Backend::Wgpu)?;
    /// let samples: Vec<_> = pictures.iter().map(|picture| vec![("image", picture)]).collect();
    /// let options = SessionOptions { precision: Precision::Auto, ..Default::default() };
    /// let calibration = Session::calibrate(&context, graph, &options, &samples, Calibration::TOLERANCE)?;
    /// println!("{calibration}"); // what is kept in f32, and why
    /// calibration.save("network.calibration.json")?;
    /// Session::new(&context, graph, SessionOptions { calibration: Some(calibration), ..options })
    /// # }
    /// ```
    ///
    /// # Errors
    /// If there is no sample, the tolerance is not above 0, the device gains nothing by halves, or a run fails.
    pub fn calibrate(
        context: &Context,
        graph: &Graph,
        options: &SessionOptions,
        samples: &[Vec<(&str, &HostTensor)>],
        tolerance: f32,
    ) -> Result<Calibration> {
        if samples.is_empty() {
            return Err(Error::input("calibration", "no samples", "at least one run's inputs"));
        }
        if tolerance.is_nan() || tolerance <= 0.0 {
            return Err(Error::input("tolerance", tolerance.to_string(), "more than 0"));
        }
        let gains = |device: &dyn Device| has_halves(&device.info().limits);
        if !context.engine.device().is_ok_and(gains) {
            let reason = "the device has no arithmetic of halves: Precision::Auto is f32 there";
            return Err(Error::unsupported("a calibration", reason));
        }
        let fixed: Vec<(&str, usize)> =
            options.dimensions.iter().map(|(name, &extent)| (name.as_str(), extent)).collect();
        let graph = &graph.with_dimensions(&fixed)?;
        let mut search = Search::new(context, graph, options, tolerance)?;
        search.look(samples)?;
        search.refine(samples)
    }
}

/// A calibration under way.
struct Search<'a> {
    context: &'a Context,
    graph: &'a Graph,
    options: SessionOptions,
    tolerance: f32,
    units: Vec<Observed>,
    seen: HashMap<Value, Seen>,
    /// Why each unit is kept in f32, if it is.
    kept: F32Reasons,
}

impl<'a> Search<'a> {
    fn new(context: &'a Context, graph: &'a Graph, options: &SessionOptions, tolerance: f32) -> Result<Self> {
        // What each unit gives is looked at, and not what several give together.
        let mut options = SessionOptions { dimensions: [].into(), ..options.clone() };
        options.without_rewrites.extend([
            Rewrite::Loops,
            Rewrite::ProductRows,
            Rewrite::Epilogues,
            Rewrite::Prologues,
        ]);
        let alignment = context.engine.device()?.info().limits.binding_alignment;
        let units = observed(graph, &options, alignment)?;
        let kept = vec![None; units.len()];
        Ok(Search { context, graph, options, tolerance, units, seen: HashMap::new(), kept })
    }

    fn error(&self, value: Value) -> f32 {
        self.seen.get(&value).map_or(0.0, Seen::error)
    }

    fn largest(&self, values: &[Value]) -> f32 {
        values.iter().filter_map(|value| self.seen.get(value)).fold(0.0, |most, seen| most.max(seen.largest))
    }

    /// The calibration as far as it is known.
    fn calibration(&self, outputs: Vec<CalibratedOutput>) -> Calibration {
        let node = |(unit, kept): (&Observed, &Option<String>)| {
            let error = unit.writes.iter().map(|&value| self.error(value)).fold(0.0, f32::max);
            CalibratedNode {
                name: unit.name.clone(),
                largest: finite(self.largest(&unit.writes)),
                error: error.is_finite().then_some(error),
                kept: kept.clone(),
            }
        };
        let nodes = self.units.iter().zip(&self.kept).map(node).collect();
        Calibration::new(self.tolerance, nodes, outputs)
    }

    fn session(&self, graph: &Graph, precision: Precision) -> Result<Session> {
        let calibration = (precision == Precision::Auto).then(|| self.calibration(Vec::new()));
        let options = SessionOptions { precision, calibration, ..self.options.clone() };
        Session::new(self.context, graph, options)
    }

    /// A session with the units of the one that is to use the calibration, whose runs give what they write.
    fn watched(&self) -> Result<Watched> {
        let calibration = Some(self.calibration(Vec::new()));
        let options = SessionOptions { precision: Precision::Auto, calibration, ..self.options.clone() };
        Watched::new(self.context, self.graph, &options)
    }

    /// Looks at what each unit writes in f32 and in f16, and keeps what halves do not hold.
    fn look(&mut self, samples: &[Sample<'_>]) -> Result<()> {
        // The same units as in f16.
        self.kept.fill(Some(String::new()));
        let mut exact = self.watched()?;
        let outputs = self.units.iter().flat_map(|unit| {
            let places = unit.writes.iter().enumerate();
            places.map(|(place, &value)| ((unit.name.clone(), place), value))
        });
        let values: HashMap<(String, usize), Value> = outputs.collect();
        let value = |written: &Written| values.get(&(written.unit.clone(), written.place)).copied();
        for sample in samples {
            for &input in self.graph.inputs() {
                let name = self.graph.name(input)?;
                let given = sample.iter().find(|(own, _)| *own == name);
                let seen = self.seen.entry(input).or_default();
                given.into_iter().for_each(|(_, tensor)| seen.add(&tensor.to_nhwc(), None));
            }
            for state in self.graph.states() {
                self.seen.entry(state.value).or_default().add(&state.initial.to_nhwc(), None);
            }
            let run = exact.run(sample)?;
            for found in run.each() {
                let (written, elements) = found?;
                let Some(value) = value(written) else { continue };
                self.seen.entry(value).or_default().add(elements, None);
            }
        }
        for state in self.graph.states() {
            if let Some(next) = state.next.and_then(|next| self.seen.get(&next)) {
                let (next, seen) = (next.largest, self.seen.entry(state.value).or_default());
                seen.largest = seen.largest.max(next);
            }
        }
        for index in 0..self.units.len() {
            let unit = &self.units[index];
            let beyond = |what, values: &[Value]| {
                let largest = self.largest(values);
                let fits = f64::from(largest) <= LARGEST_HALF;
                (!fits).then(|| format!("it {what} up to {largest:.3e}, halves end at 65504"))
            };
            let why = beyond("writes", &unit.writes).or_else(|| beyond("reads", &unit.reads));
            self.kept[index] = why.filter(|_| unit.halves);
        }
        let mut rounded = self.watched()?;
        // States begin anew.
        exact.reset()?;
        for sample in samples {
            let (exact, rounded) = (exact.run(sample)?, rounded.run(sample)?);
            for found in exact.each() {
                let (written, exact) = found?;
                let Some(value) = value(written) else { continue };
                let rounded = rounded.of(&written.unit, written.place)?;
                self.seen.entry(value).or_default().add(exact, rounded);
            }
        }
        Ok(())
    }

    /// Keeps nodes in f32 until no output is off by more than the tolerance.
    fn refine(mut self, samples: &[Sample<'_>]) -> Result<Calibration> {
        let mut exact = self.session(self.graph, Precision::F32)?;
        let exact = samples.iter().map(|sample| exact.run(sample)).collect::<Result<Vec<_>>>()?;
        let (tolerance, first) = (self.tolerance, self.kept.clone());
        let open: Vec<bool> =
            self.units.iter().zip(&first).map(|(unit, kept)| unit.halves && kept.is_none()).collect();
        let ranked = self.ranked();
        let best = search(tolerance, &first, &open, ranked, &mut |kept| {
            self.kept.clone_from_slice(kept);
            self.tried(samples, &exact)
        })?;
        self.kept = best.kept;
        let named = self.graph.outputs().iter().zip(&best.tried.errors).map(|(&value, &error)| {
            let name = self.graph.name(value)?.to_owned();
            Ok(CalibratedOutput { name, error: finite(error) })
        });
        let named = named.collect::<Result<_>>()?;
        Ok(self.calibration(named))
    }

    /// What comes of the units that are kept now.
    fn tried(&self, samples: &[Sample<'_>], exact: &[Vec<HostTensor>]) -> Result<Tried> {
        let mut rounded = self.session(self.graph, Precision::Auto)?;
        let mut outputs = vec![Seen::default(); self.graph.outputs().len()];
        for (sample, exact) in samples.iter().zip(exact) {
            for ((output, exact), rounded) in outputs.iter_mut().zip(exact).zip(rounded.run(sample)?) {
                output.add(&exact.to_nhwc(), Some(&rounded.to_nhwc()));
            }
        }
        let steps = rounded.steps();
        // A step of several units has the names of all.
        let in_halves = |unit: &&Observed| {
            let of_unit = |step: &&Step| step.name.split(" + ").any(|name| name == unit.name);
            let found = steps.iter().find(|step| step.name == unit.name).or(steps.iter().find(of_unit));
            found.is_some_and(|step| step.precision != Precision::F32)
        };
        let narrow: Vec<&Observed> = self.units.iter().filter(in_halves).collect();
        Ok(Tried {
            errors: outputs.iter().map(Seen::error).collect(),
            narrow: narrow.len(),
            saved: narrow.iter().map(|unit| unit.saves).sum(),
        })
    }

    /// The units that are in f16 with what each adds to the error of what it reads, the most first.
    fn ranked(&self) -> Vec<(usize, f32)> {
        let most = |values: &[Value]| values.iter().map(|&value| self.error(value)).fold(0.0, f32::max);
        let each = self.units.iter().zip(&self.kept).map(|(unit, kept)| {
            let (read, written) = (most(&unit.reads), most(&unit.writes));
            // What reads an infinite error adds none of its own.
            let added = if read.is_finite() { written - read } else { f32::NEG_INFINITY };
            (unit, added, unit.halves && kept.is_none())
        });
        rank(&each.collect::<Vec<_>>())
    }
}

/// The units that are open, with what each adds to the error of what it reads, the most first. Where one that is in f32
/// makes an infinity of a number, those are to blame that write what it reads: it divides by what they made 0, say.
fn rank(units: &[(&Observed, f32, bool)]) -> Vec<(usize, f32)> {
    let writers = units.iter().enumerate().flat_map(|(index, (unit, ..))| {
        let values = unit.writes.iter();
        values.map(move |&value| (value, index))
    });
    let writers: HashMap<Value, usize> = writers.collect();
    let mut added: Vec<f32> = units.iter().map(|(_, added, _)| *added).collect();
    let mut begun: Vec<usize> =
        (0..units.len()).filter(|&index| added[index] == f32::INFINITY && !units[index].2).collect();
    let mut seen = vec![false; units.len()];
    while let Some(index) = begun.pop() {
        for &writer in units[index].0.reads.iter().filter_map(|value| writers.get(value)) {
            if units[writer].2 {
                added[writer] = f32::INFINITY;
            } else if !std::mem::replace(&mut seen[writer], true) {
                begun.push(writer);
            }
        }
    }
    let open = added.into_iter().enumerate().filter(|(index, _)| units[*index].2);
    let mut ranked: Vec<(usize, f32)> = open.collect();
    sorted::sort(&mut ranked, |(_, one), (_, other)| other.total_cmp(one));
    ranked
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chain of twelve units, each of which adds to the error and saves three, where a change between f16 and f32
    /// costs ten: pieces that save less are in f32.
    fn chain(errors: [f32; 12], kept: &F32Reasons) -> Tried {
        let wide: Vec<bool> = kept.iter().map(Option::is_some).collect();
        let mut tried = Tried { errors: vec![0.0], ..Tried::default() };
        for piece in (0..12).collect::<Vec<usize>>().chunk_by(|a, b| wide[*a] == wide[*b]) {
            let ends = usize::from(piece[0] > 0) + usize::from(piece[piece.len() - 1] < 11);
            let saved = 3.0 * piece.len() as f64;
            if !wide[piece[0]] && saved >= 10.0 * ends as f64 {
                tried.narrow += piece.len();
                tried.saved += saved;
                tried.errors[0] += piece.iter().map(|&unit| errors[unit]).sum::<f32>();
            }
        }
        tried
    }

    fn found(errors: [f32; 12], tolerance: f32) -> Best {
        let mut ranked: Vec<(usize, f32)> = errors.into_iter().enumerate().collect();
        sorted::sort(&mut ranked, |(_, one), (_, other)| other.total_cmp(one));
        search(tolerance, &vec![None; 12], &[true; 12], ranked, &mut |kept| Ok(chain(errors, kept)))
            .expect("a search")
    }

    #[test]
    fn f16_in_one_piece_is_tried_where_pieces_would_save_too_little() {
        // Those that add most are kept at first: units 2, 5 and 8, and no piece between them is worth its conversions.
        let mut errors = [0.5; 12];
        (errors[2], errors[5], errors[8]) = (3.0, 2.0, 2.5);
        let here_and_there: F32Reasons =
            (0..12).map(|unit| [2, 5, 8].contains(&unit).then(String::new)).collect();
        assert_eq!(chain(errors, &here_and_there).narrow, 0);
        let best = found(errors, 7.5);
        assert_eq!((best.tried.narrow, best.tried.saved, best.tried.worst()), (8, 24.0, 7.5));
        assert_eq!(
            best.kept.iter().map(Option::is_some).collect::<Vec<_>>(),
            [[true; 4], [false; 4], [false; 4]].concat()
        );
        // What adds most is at the beginning; a piece at the end is left, and there is a longer one.
        let mut errors = [0.3; 12];
        (errors[0], errors[3], errors[6]) = (4.0, 2.0, 1.0);
        let best = found(errors, 5.0);
        assert!(best.tried.worst() <= 5.0 && best.tried.narrow >= 8, "{best:?}");
        assert!(best.kept[0].is_some() && best.kept[11].is_none(), "{best:?}");
    }

    #[test]
    fn what_fits_as_it_is_stays_so_and_what_never_fits_is_all_in_f32() {
        let all = found([0.1; 12], 2.0);
        assert_eq!((all.tried.narrow, all.kept), (12, vec![None; 12]));
        // One node at the end is kept, and the rest in one piece.
        let mut errors = [0.1; 12];
        errors[11] = 9.0;
        let end = found(errors, 2.0);
        assert_eq!((end.tried.narrow, end.kept.iter().filter(|kept| kept.is_some()).count()), (11, 1));
        let none = found([1.0; 12], 0.5);
        assert_eq!((none.tried.narrow, none.tried.worst()), (0, 0.0));
    }

    #[test]
    fn what_divides_in_f32_blames_what_made_its_divisor_zero() {
        let mut graph = Graph::new();
        let value = || HostTensor::vector(vec![1.0]).expect("one");
        let values: Vec<Value> = (0..5).map(|at| graph.constant(&format!("v{at}"), value())).collect();
        let unit = |name: &str, reads: &[usize], write: usize| Observed {
            name: name.to_owned(),
            reads: reads.iter().map(|&at| values[at]).collect(),
            writes: vec![values[write]],
            halves: true,
            saves: 1.0,
        };
        // A divisor passes through a unit in f32; a product is to blame for more than the rest, but not for that.
        let [divisor, moved, product, quotient] = [
            unit("divisor", &[], 0),
            unit("moved", &[0], 1),
            unit("product", &[], 2),
            unit("quotient", &[1], 3),
        ];
        let behind = unit("behind", &[3], 4);
        let units = [
            (&divisor, 1e-6, true),
            (&moved, 0.0, false),
            (&product, 0.5, true),
            (&quotient, f32::INFINITY, false),
            (&behind, f32::NEG_INFINITY, true),
        ];
        let ranked = rank(&units);
        assert_eq!(ranked, [(0, f32::INFINITY), (2, 0.5), (4, f32::NEG_INFINITY)]);
        assert!(ranked.iter().all(|(_, added)| !why(*added).contains("inf to")));
    }

    #[test]
    fn what_is_not_finite_in_one_run_alone_is_off_without_end() {
        let error = |exact: f32, rounded: f32| {
            let mut seen = Seen::default();
            seen.add(&[2.0, exact], Some(&[2.0, rounded]));
            seen.error()
        };
        assert_eq!(error(4.0, 3.0), 0.25);
        assert_eq!(error(f32::INFINITY, f32::INFINITY), 0.0);
        assert_eq!(error(f32::NAN, f32::NAN), 0.0);
        assert_eq!(error(1.0, f32::INFINITY), f32::INFINITY);
        assert_eq!(error(1.0, f32::NAN), f32::INFINITY);
        assert_eq!(error(0.0, -0.0), 0.0);
    }
}
