//! Which nodes lose accuracy in f16: the network is run in f32 and in f16 on samples of its inputs.
//!
//! First every value is looked at, in both. What reaches beyond 65504 in f32, or reads what does, is kept in f32.
//! Then the network runs as it will: while an output is off by more than the tolerance, those nodes are kept in
//! f32 too that add most to the error of what they read: one, then two, then four, and so on. In the end all are,
//! and nothing is off.

use super::Session;
use crate::calibration::{CalibratedNode, CalibratedOutput, Calibration};
use crate::context::Context;
use crate::device::Device;
use crate::dtype::Precision;
use crate::error::{Error, Result};
use crate::graph::{Graph, Value};
use crate::host::HostTensor;
use crate::lower::{Observed, has_halves, observed};
use crate::ops::LARGEST_HALF;
use crate::options::SessionOptions;
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
    kept: Vec<Option<String>>,
}

impl<'a> Search<'a> {
    fn new(context: &'a Context, graph: &'a Graph, options: &SessionOptions, tolerance: f32) -> Result<Self> {
        let options = SessionOptions { dimensions: [].into(), ..options.clone() };
        let units = observed(graph, &options)?;
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

    /// Looks at every value in f32 and in f16, and keeps what halves do not hold.
    fn look(&mut self, samples: &[Sample<'_>]) -> Result<()> {
        let mut all = self.graph.clone();
        for &value in self.units.iter().flat_map(|unit| &unit.writes) {
            if !all.outputs().contains(&value) {
                all.output(value)?;
            }
        }
        let mut exact = self.session(&all, Precision::F32)?;
        let values = all.outputs().to_vec();
        for sample in samples {
            for &input in self.graph.inputs() {
                let name = self.graph.name(input)?;
                let given = sample.iter().find(|(own, _)| *own == name);
                let seen = self.seen.entry(input).or_default();
                given.into_iter().for_each(|(_, tensor)| seen.add(&tensor.to_nhwc(), None));
            }
            for (&value, tensor) in values.iter().zip(exact.run(sample)?) {
                self.seen.entry(value).or_default().add(&tensor.to_nhwc(), None);
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
        let mut rounded = self.session(&all, Precision::Auto)?;
        // States begin anew.
        exact.reset()?;
        for sample in samples {
            let results = exact.run(sample)?.into_iter().zip(rounded.run(sample)?);
            for (&value, (exact, rounded)) in values.iter().zip(results) {
                self.seen.entry(value).or_default().add(&exact.to_nhwc(), Some(&rounded.to_nhwc()));
            }
        }
        Ok(())
    }

    /// Keeps nodes in f32 until no output is off by more than the tolerance.
    fn refine(mut self, samples: &[Sample<'_>]) -> Result<Calibration> {
        let mut exact = self.session(self.graph, Precision::F32)?;
        let exact = samples.iter().map(|sample| exact.run(sample)).collect::<Result<Vec<_>>>()?;
        let mut ranked = self.ranked();
        let mut count = 1;
        loop {
            let mut rounded = self.session(self.graph, Precision::Auto)?;
            let mut outputs = vec![Seen::default(); self.graph.outputs().len()];
            for (sample, exact) in samples.iter().zip(&exact) {
                for ((output, exact), rounded) in outputs.iter_mut().zip(exact).zip(rounded.run(sample)?) {
                    output.add(&exact.to_nhwc(), Some(&rounded.to_nhwc()));
                }
            }
            let worst = outputs.iter().map(Seen::error).fold(0.0, f32::max);
            if worst <= self.tolerance || ranked.is_empty() {
                let named = self.graph.outputs().iter().zip(&outputs).map(|(&value, output)| {
                    let name = self.graph.name(value)?.to_owned();
                    Ok(CalibratedOutput { name, error: finite(output.error()) })
                });
                let named = named.collect::<Result<_>>()?;
                return Ok(self.calibration(named));
            }
            for (unit, added) in ranked.drain(..count.min(ranked.len())) {
                self.kept[unit] = Some(format!("it adds {added:.2e} to the error of what it reads"));
            }
            count *= 2;
        }
    }

    /// The units that are in f16 with what each adds to the error of what it reads, the most first.
    fn ranked(&self) -> Vec<(usize, f32)> {
        let most = |values: &[Value]| values.iter().map(|&value| self.error(value)).fold(0.0, f32::max);
        let open =
            self.units.iter().enumerate().filter(|(index, unit)| unit.halves && self.kept[*index].is_none());
        let added = |(index, unit): (usize, &Observed)| {
            let (read, written) = (most(&unit.reads), most(&unit.writes));
            // What reads an infinite error adds none of its own.
            (index, if read.is_finite() { written - read } else { f32::NEG_INFINITY })
        };
        let mut ranked: Vec<(usize, f32)> = open.map(added).collect();
        ranked.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        ranked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
