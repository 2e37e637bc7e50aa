//! The nest in f64, and where correct kernels may be: each node has an interval that contains what any of them may have
//! there, as a function of each element has (`ops/elementwise/tolerance.rs`).
//!
//! A sum of `t` terms passes `t` roundings in any order: `t v` of the sum of their magnitudes, beside what the terms bring
//! along. A mean is divided as a quotient is. A product passes `t` roundings of itself, and underflows as often. The largest and
//! the smallest are a choice of values that exist, and so is what is true.

use super::LoopsOp;
use super::index::AxisSet;
use super::integers;
use super::nest::{GatherAxis, Nest, Node, NodeId, axes_of, elements_in};
use crate::dtype::DType;
use crate::ops::bytes;
use crate::ops::elementwise::{Function, Interval, Unit, applied};
use crate::ops::integer::wrapped;
use crate::ops::operands::{Operands, get};
use crate::ops::reduce::Reduction;
use crate::ops::reference::Reference;
use crate::word::numbers;
use half::f16;

pub(super) type Bounded = (f64, Interval);

/// The result for `operands`, which were checked.
pub(super) fn oracle(op: &LoopsOp, operands: &Operands<'_>) -> Reference {
    oracle_near(op, operands, None)
}

/// The result for `operands`, which were checked; each element of one source may be off by as much as its bound says, and kernels
/// have it in f32.
pub(super) fn oracle_near(op: &LoopsOp, operands: &Operands<'_>, near: Option<(usize, &[f64])>) -> Reference {
    let nest = &*op.nest;
    let words = |(place, &dtype): (usize, &DType)| {
        let words = get(operands, op.source(place)).unwrap_or_default();
        match dtype {
            DType::U8 => bytes::bytes(words).iter().map(|&byte| f64::from(byte)).collect(),
            dtype => numbers(dtype, words),
        }
    };
    let sources: Vec<Vec<f64>> = nest.types.iter().enumerate().map(words).collect();
    let half = |dtype: DType| (dtype == DType::F16).then(|| Unit::of(DType::F16));
    let store = half(op.stored_result(0));
    let stored = (0..nest.sources.len()).map(|source| half(op.stored_source(source))).collect();
    let (depends, row) = (nest.dependences(), nest.row_axes());
    let mut evaluation = Evaluation {
        nest,
        sources,
        near,
        types: nest.node_types(),
        stored,
        unit: Unit::of(DType::F32),
        at: vec![0; nest.extents.len()],
        depends,
        known: vec![None; nest.nodes.len()],
    };
    let (mut value, mut bound) = (Vec::new(), Vec::new());
    let mut last = None;
    let is_of_bytes = nest.result_type(0) == DType::U8;
    for index in 0..elements_in(nest.target, nest.result_type(0)) {
        nest.place(index, &mut evaluation.at);
        let own: Vec<usize> = axes_of(row).map(|axis| evaluation.at[axis]).collect();
        let same = last.as_ref() == Some(&own);
        evaluation.forget(if same { !row } else { AxisSet::MAX });
        last = Some(own);
        let (exact, interval) = evaluation.node(nest.value);
        let interval = store.map_or(interval, |unit| unit.rounded(interval));
        let is_exact = interval.is_exact() && interval.lo == exact;
        let distance = if is_exact { 0.0 } else { interval.distance(exact) };
        match (is_of_bytes, index % bytes::LANES) {
            (false, _) | (true, 0) => {
                value.push(exact);
                bound.push(distance);
            }
            (true, lane) => {
                // What a step of this byte is in its word.
                let step = f64::from(1u32 << (8 * lane));
                let [word, of_word] = [&mut value, &mut bound].map(|all| all.last_mut());
                word.into_iter().for_each(|word| *word += step * exact);
                of_word.into_iter().for_each(|bound| *bound += step * distance);
            }
        }
    }
    Reference::Bounded { value, bound }
}

struct Evaluation<'a> {
    nest: &'a Nest,
    sources: Vec<Vec<f64>>,
    /// A source that is not exact, and how far off its elements may be.
    near: Option<(usize, &'a [f64])>,
    types: Vec<DType>,
    /// What each source is stored in, where that rounds.
    stored: Vec<Option<Unit>>,
    unit: Unit,
    at: Vec<usize>,
    depends: Vec<AxisSet>,
    /// The values of nodes at these places.
    known: Vec<Option<Bounded>>,
}

impl Evaluation<'_> {
    /// Forgets what depends on one of `axes`, or on everything with all of them.
    fn forget(&mut self, axes: AxisSet) {
        for (known, depends) in self.known.iter_mut().zip(&self.depends) {
            if axes == AxisSet::MAX || depends & axes != 0 {
                *known = None;
            }
        }
    }

    fn node(&mut self, id: NodeId) -> Bounded {
        if let Some(known) = self.known[id] {
            return known;
        }
        let nest = self.nest;
        let holds = |guards: &[super::nest::Guard], at: &[usize]| {
            guards.iter().all(|guard| (0..guard.below).contains(&guard.index.value(at)))
        };
        let found = match &nest.nodes[id] {
            Node::Number(number) => exactly(f64::from(number.0)),
            Node::Read { source, at, guards, otherwise } => {
                if holds(guards, &self.at) {
                    self.element(*source, at.value(&self.at))
                } else {
                    match self.types[id] {
                        DType::F32 => exactly(f64::from(otherwise.0)),
                        _ => exactly((otherwise.0 as i64) as f64),
                    }
                }
            }
            Node::Place(at) => exactly(at.value(&self.at) as f64),
            Node::Byte(of) => self.node(*of),
            Node::Integer { value, word } => exactly(wrapped(*word, *value) as f64),
            Node::Gather { source, at, guards, by } if holds(guards, &self.at) => {
                let place = at.value(&self.at);
                self.gathered(*source, place, by)
            }
            Node::Gather { .. } => exactly(0.0),
            Node::ApplyIntegers { function, arguments, word, result } => {
                let mut given = [exactly(0.0); 3];
                for (slot, &argument) in given.iter_mut().zip(arguments) {
                    *slot = self.node(argument);
                }
                integers::applied(*function, given, *word, *result)
            }
            Node::Apply(function, arguments) => {
                let mut given = [exactly(0.0); 3];
                for (slot, &argument) in given.iter_mut().zip(arguments) {
                    *slot = self.node(argument);
                }
                applied(*function, given, &self.unit)
            }
            Node::Choose { guards, then, otherwise } => {
                let chosen = if holds(guards, &self.at) { *then } else { *otherwise };
                self.node(chosen)
            }
            Node::Reduce { reduction, of, over, place: Some(place) } => {
                self.found(*reduction, [*of, *place], *over)
            }
            Node::Reduce { reduction, of, over, .. } => self.reduced(*reduction, *of, *over),
        };
        self.known[id] = Some(found);
        found
    }

    /// An element of a source.
    fn element(&self, source: usize, at: i64) -> Bounded {
        let place = usize::try_from(at).unwrap_or(usize::MAX);
        let value = self.sources[source].get(place).copied().unwrap_or(f64::NAN);
        if let Some((_, by)) = self.near.filter(|(own, _)| *own == source) {
            let by = by.get(place).copied().unwrap_or(f64::INFINITY);
            return (value, Interval { lo: value - by, hi: value + by });
        }
        (value, self.read(source, value))
    }

    /// The element that nodes say: one of all that lie where these may be.
    fn gathered(&mut self, source: usize, at: i64, by: &[GatherAxis]) -> Bounded {
        /// More of them than this may be anything.
        const MOST: usize = 4096;
        let mut places = vec![(at, true)];
        let mut exact = Some(at);
        for own in by {
            let (value, interval) = self.node(own.index);
            let below = own.extent as f64;
            let inside = |index: f64| index >= 0.0 && index.trunc() < below;
            exact = exact.filter(|_| inside(value)).map(|at| at + value.trunc() as i64 * own.stride as i64);
            let (lo, hi) = (interval.lo.trunc().max(0.0), interval.hi.trunc().min(below - 1.0));
            let outside = !inside(interval.lo) || !inside(interval.hi);
            let mut next = Vec::new();
            for &(at, within) in &places {
                let mut index = lo;
                while index <= hi && next.len() <= MOST {
                    next.push((at + index as i64 * own.stride as i64, within));
                    index += 1.0;
                }
                if outside && next.len() <= MOST {
                    next.push((at, false));
                }
            }
            places = next;
        }
        let value = exact.map_or(0.0, |at| self.element(source, at).0);
        if places.len() > MOST {
            return (value, Interval { lo: f64::NEG_INFINITY, hi: f64::INFINITY });
        }
        let each = places.into_iter().map(|(at, within)| match within {
            true => self.element(source, at).1,
            false => Interval::exact(0.0),
        });
        let ends: Vec<f64> = each.flat_map(|own| [own.lo, own.hi]).collect();
        (value, Interval::hull(ends))
    }

    /// What a kernel reads where it has a value in halves: it may lie in f32 as well.
    fn read(&self, source: usize, value: f64) -> Interval {
        if self.nest.types.get(source) != Some(&DType::F32) {
            return Interval::exact(value);
        }
        let is_half = f64::from(f16::from_f64(value)) == value;
        match &self.stored[source] {
            Some(unit) if !is_half => unit.rounded(Interval::exact(value)),
            _ => Interval::exact(value),
        }
    }

    /// What `of` gives for each place along `over`.
    fn terms<T>(&mut self, over: AxisSet, mut of: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let axes: Vec<usize> = axes_of(over).collect();
        let before: Vec<usize> = axes.iter().map(|&axis| self.at[axis]).collect();
        let count = self.nest.count(over);
        let mut terms = Vec::with_capacity(count);
        for index in 0..count {
            let mut rest = index;
            for &axis in axes.iter().rev() {
                self.at[axis] = rest % self.nest.extents[axis];
                rest /= self.nest.extents[axis];
            }
            self.forget(over);
            terms.push(of(self));
        }
        for (&axis, place) in axes.iter().zip(before) {
            self.at[axis] = place;
        }
        self.forget(over);
        terms
    }

    /// What the second node gives where the first one is the largest or the smallest: of a rounded one each of those that may
    /// be it.
    fn found(&mut self, reduction: Reduction, of: [NodeId; 2], over: AxisSet) -> Bounded {
        let terms = self.terms(over, |own| of.map(|id| own.node(id)));
        let better = |best: [Bounded; 2], term: [Bounded; 2]| {
            let is_before = term[1].0 < best[1].0 && !reduction.takes(best[0].0, term[0].0);
            if reduction.takes(term[0].0, best[0].0) || is_before { term } else { best }
        };
        let value = terms.iter().copied().reduce(better).map_or(f64::NAN, |best| best[1].0);
        let is_known = |[x, _]: &[Bounded; 2]| x.1.is_exact() && x.1.lo == x.0 || x.0.is_nan();
        if terms.iter().all(is_known) {
            return exactly(value);
        }
        let surely = match reduction {
            Reduction::Max => terms.iter().map(|[x, _]| x.1.lo).fold(f64::NEG_INFINITY, f64::max),
            _ => terms.iter().map(|[x, _]| x.1.hi).fold(f64::INFINITY, f64::min),
        };
        let is_less = |[x, _]: &&[Bounded; 2]| match reduction {
            Reduction::Max => x.1.hi < surely,
            _ => x.1.lo > surely,
        };
        let perhaps = terms.iter().filter(|term| !is_less(term));
        (value, Interval::hull(perhaps.flat_map(|[_, place]| [place.1.lo, place.1.hi])))
    }

    fn reduced(&mut self, reduction: Reduction, of: NodeId, over: AxisSet) -> Bounded {
        let terms = self.terms(over, |own| own.node(of));
        let count = terms.len();
        if self.types[of] != DType::F32 {
            return integers::reduced(reduction, &terms, self.types[of]);
        }
        let unit = &self.unit;
        let own =
            |value: f64, lo: f64, hi: f64, by: f64| (value, unit.limited(Interval { lo, hi }.widened(by)));
        let fold = |by: &dyn Fn(f64, f64) -> f64, first: f64| {
            let part = |part: &dyn Fn(&Bounded) -> f64| terms.iter().map(part).fold(first, by);
            [part(&|term| term.0), part(&|term| term.1.lo), part(&|term| term.1.hi)]
        };
        let steps = count as f64 * unit.v;
        match reduction {
            Reduction::Sum | Reduction::Mean => {
                let [value, lo, hi] = fold(&|a, b| a + b, 0.0);
                let magnitude: f64 = terms.iter().map(|term| term.1.magnitude()).sum();
                let by = if count > 1 { 1.01 * steps * magnitude + count as f64 * unit.tiny } else { 0.0 };
                let sum = own(value, lo, hi, by);
                if reduction == Reduction::Sum {
                    return sum;
                }
                applied(Function::Div, [sum, exactly(count as f64), exactly(0.0)], unit)
            }
            Reduction::Max => {
                let [value, lo, hi] =
                    fold(&|a, b| if a > b || a.is_nan() { a } else { b }, f64::NEG_INFINITY);
                own(value, lo, hi, 0.0)
            }
            Reduction::Min => {
                let [value, lo, hi] = fold(&|a, b| if a < b || a.is_nan() { a } else { b }, f64::INFINITY);
                own(value, lo, hi, 0.0)
            }
            Reduction::Product => {
                let value: f64 = terms.iter().map(|term| term.0).product();
                let mut all = Interval::exact(1.0);
                for (_, term) in &terms {
                    let ends = [all.lo * term.lo, all.lo * term.hi, all.hi * term.lo, all.hi * term.hi];
                    all = Interval::hull(ends);
                }
                let largest: f64 = terms.iter().map(|term| term.1.magnitude().max(1.0)).product();
                let by = 1.01 * steps * all.magnitude() + count as f64 * unit.tiny * largest;
                own(value, all.lo, all.hi, if count > 1 { by } else { 0.0 })
            }
            Reduction::Any | Reduction::All => {
                let any = reduction == Reduction::Any;
                // Whether it is true of the exact values, of none of the intervals, and of one at least.
                let zero = |interval: &Interval| interval.lo == 0.0 && interval.hi == 0.0;
                let of = |is: &dyn Fn(&Bounded) -> bool| {
                    let truth = if any { terms.iter().any(is) } else { terms.iter().all(is) };
                    f64::from(u8::from(truth))
                };
                let surely = of(&|term| !term.1.contains(0.0));
                let perhaps = of(&|term| !zero(&term.1));
                (of(&|term| term.0 != 0.0), Interval { lo: surely, hi: perhaps })
            }
        }
    }
}

pub(super) fn exactly(value: f64) -> Bounded {
    (value, Interval::exact(value))
}
