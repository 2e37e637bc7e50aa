//! Values of a nest's nodes on the CPU: of a row, or of a block of places along one axis.

use super::cpu::{BLOCK, Loop, LoopsKernel};
use super::index::Index;
use super::nest::{Guard, Node, NodeId};
use crate::ops::reduce::Reduction;

/// What has been computed where a worker is.
pub(super) struct Evaluation<'a> {
    kernel: &'a LoopsKernel,
    sources: &'a [&'a [f32]],
    at: Vec<usize>,
    /// The axis along which a block goes, and its places.
    axis: usize,
    len: usize,
    /// The values of each node: of a block, or of a row.
    values: Vec<Vec<f32>>,
    known: Vec<bool>,
}

impl<'a> Evaluation<'a> {
    pub(super) fn new(kernel: &'a LoopsKernel, sources: &'a [&'a [f32]]) -> Self {
        let nodes = kernel.nest.nodes.len();
        let (at, values) = (vec![0; kernel.nest.extents.len().max(1)], vec![Vec::new(); nodes]);
        Evaluation { kernel, sources, at, axis: 0, len: 1, values, known: vec![false; nodes] }
    }

    /// Forgets what depends on more than the row, or all.
    fn forget(&mut self, row: bool) {
        for (known, depends) in self.known.iter_mut().zip(&self.kernel.depends) {
            if row || depends & !self.kernel.row != 0 {
                *known = false;
            }
        }
    }

    /// Sets the places along `axes`, of which `flat` counts them.
    pub(super) fn go_to(&mut self, axes: &[usize], flat: usize) {
        let mut rest = flat;
        for &axis in axes.iter().rev() {
            self.at[axis] = rest % self.kernel.nest.extents[axis];
            rest /= self.kernel.nest.extents[axis];
        }
    }

    /// The reductions of the row at these places.
    #[inline(always)]
    pub(super) fn reduce(&mut self) {
        self.forget(true);
        let kernel = self.kernel;
        for Loop { axes, reductions } in &kernel.loops {
            let Some((&axis, outer)) = axes.split_last() else { continue };
            let extent = kernel.nest.extents[axis];
            let mut found: Vec<f64> =
                reductions.iter().map(|(_, reduction, _)| first_of(*reduction)).collect();
            for line in 0..kernel.count(outer) {
                self.go_to(outer, line);
                for start in (0..extent).step_by(BLOCK) {
                    (self.at[axis], self.axis, self.len) = (start, axis, BLOCK.min(extent - start));
                    self.forget(false);
                    for (found, &(_, reduction, of)) in found.iter_mut().zip(reductions) {
                        self.compute(of);
                        let (values, len) = (&self.values[of], self.len);
                        let of_row = kernel.depends[of] & !kernel.row == 0;
                        let part = match (of_row, values.first()) {
                            (true, Some(&value)) => (0..len)
                                .fold(first_of(reduction), |all, _| joined(reduction, all, f64::from(value))),
                            _ => reduced(reduction, values.get(..len).unwrap_or_default()),
                        };
                        *found = joined(reduction, *found, part);
                    }
                }
            }
            let count = kernel.count(axes) as f64;
            for (found, &(id, reduction, _)) in found.into_iter().zip(reductions) {
                let value = if reduction == Reduction::Mean { found / count } else { found };
                self.values[id].clear();
                self.values[id].push(value as f32);
                self.known[id] = true;
            }
        }
    }

    /// Computes node `id` where it is not known: for the places of a block, or once for a row.
    #[inline(always)]
    fn compute(&mut self, id: NodeId) {
        // Nodes read earlier ones alone: those that are needed, in ascending order.
        let nest = &self.kernel.nest;
        let mut needed = vec![id];
        let mut next = 0;
        while let Some(&own) = needed.get(next) {
            next += 1;
            if self.known[own] {
                continue;
            }
            for argument in nest.nodes[own].arguments() {
                if !self.known[argument] && !needed.contains(&argument) {
                    needed.push(argument);
                }
            }
        }
        crate::sorted::sort(&mut needed, Ord::cmp);
        for own in needed {
            if !self.known[own] {
                self.node(own);
                self.known[own] = true;
            }
        }
    }

    #[inline(always)]
    fn node(&mut self, id: NodeId) {
        let kernel = self.kernel;
        let of_row = kernel.depends[id] & !kernel.row == 0;
        let len = if of_row { 1 } else { self.len };
        let mut out = std::mem::take(&mut self.values[id]);
        out.resize(len.max(out.len()), 0.0);
        let target = &mut out[..len];
        match &kernel.nest.nodes[id] {
            Node::Number(number) => target.fill(number.0),
            Node::Read { source, at, guards, otherwise } => {
                self.read(self.sources[*source], at, guards, otherwise.0, target);
            }
            Node::Apply(function, arguments) => {
                // What is the same for all places is there once.
                let mut held: [Vec<f32>; 3] = [Vec::new(), Vec::new(), Vec::new()];
                for (held, &argument) in held.iter_mut().zip(arguments) {
                    let values = &self.values[argument];
                    if !of_row && kernel.depends[argument] & !kernel.row == 0 {
                        *held = vec![values.first().copied().unwrap_or_default(); len];
                    }
                }
                let mut given: [&[f32]; 3] = [&[]; 3];
                for ((slot, held), &argument) in given.iter_mut().zip(&held).zip(arguments) {
                    *slot = if held.is_empty() {
                        self.values[argument].get(..len).unwrap_or_default()
                    } else {
                        held
                    };
                }
                function.each(given, target);
            }
            Node::Choose { guards, then, otherwise } => {
                let value = |of: NodeId, place: usize| {
                    let own = kernel.depends[of] & !kernel.row == 0;
                    self.values[of].get(if own { 0 } else { place }).copied().unwrap_or_default()
                };
                for (place, target) in target.iter_mut().enumerate() {
                    let holds = guards.iter().all(|guard| self.holds(guard, place));
                    *target = value(if holds { *then } else { *otherwise }, place);
                }
            }
            // Its loop came before; nests with integers have a kernel of their own.
            Node::Reduce { .. } | Node::Integer { .. } | Node::Gather { .. } | Node::ApplyIntegers { .. } => {
            }
        }
        self.values[id] = out;
    }

    /// The value of an index at a place of a block.
    fn value(&self, index: &Index, place: usize) -> i64 {
        match index.stride(self.axis) {
            Some(stride) => index.value(&self.at) + stride * place as i64,
            None => index.shifted(self.axis, place as i64).value(&self.at),
        }
    }

    fn holds(&self, guard: &Guard, place: usize) -> bool {
        (0..guard.below).contains(&self.value(&guard.index, place))
    }

    /// The elements of a block, the number where a guard does not hold.
    #[inline(always)]
    fn read(&self, source: &[f32], at: &Index, guards: &[Guard], otherwise: f32, target: &mut [f32]) {
        let element =
            |at: i64| usize::try_from(at).ok().and_then(|at| source.get(at)).copied().unwrap_or_default();
        let (mut from, mut to) = (0, target.len());
        let mut others: Vec<&Guard> = Vec::new();
        for guard in guards {
            match guard.index.stride(self.axis) {
                // A single place is checked like any other.
                Some(stride) if target.len() > 1 => {
                    let (low, high) = within(guard.index.value(&self.at), stride, guard.below, target.len());
                    (from, to) = (from.max(low), to.min(high));
                }
                _ => others.push(guard),
            }
        }
        to = to.max(from);
        target[..from].fill(otherwise);
        target[to..].fill(otherwise);
        let inside = &mut target[from..to];
        if !others.is_empty() || at.stride(self.axis).is_none() {
            for (place, target) in inside.iter_mut().enumerate() {
                let holds = others.iter().all(|guard| self.holds(guard, from + place));
                *target = if holds { element(self.value(at, from + place)) } else { otherwise };
            }
            return;
        }
        let (first, stride) = (self.value(at, from), at.stride(self.axis).unwrap_or_default());
        let whole = usize::try_from(first).ok().and_then(|first| source.get(first..first + inside.len()));
        match (stride, whole) {
            (0, _) => inside.fill(element(first)),
            (1, Some(whole)) => inside.copy_from_slice(whole),
            _ => {
                for (place, target) in inside.iter_mut().enumerate() {
                    *target = element(first + stride * place as i64);
                }
            }
        }
    }
}

/// The places of a block of `len` for which `first + stride * place` is from 0 on and below `below`.
fn within(first: i64, stride: i64, below: i64, len: usize) -> (usize, usize) {
    let len = len as i64;
    let (low, high) = match stride {
        0 if (0..below).contains(&first) => (0, len),
        0 => (0, 0),
        1.. => (
            (-first).div_euclid(stride) + i64::from((-first).rem_euclid(stride) > 0),
            (below - 1 - first).div_euclid(stride) + 1,
        ),
        _ => {
            let down = -stride;
            let over = first - (below - 1);
            (over.div_euclid(down) + i64::from(over.rem_euclid(down) > 0), first.div_euclid(down) + 1)
        }
    };
    let (low, high) = (low.clamp(0, len), high.clamp(0, len));
    (low as usize, high.max(low) as usize)
}

fn first_of(reduction: Reduction) -> f64 {
    match reduction {
        Reduction::Sum | Reduction::Mean | Reduction::Any => 0.0,
        Reduction::Product | Reduction::All => 1.0,
        Reduction::Max => f64::NEG_INFINITY,
        Reduction::Min => f64::INFINITY,
    }
}

#[inline(always)]
fn joined(reduction: Reduction, a: f64, b: f64) -> f64 {
    match reduction {
        Reduction::Sum | Reduction::Mean => a + b,
        Reduction::Product => a * b,
        Reduction::Max => {
            if a > b || a.is_nan() {
                a
            } else {
                b
            }
        }
        Reduction::Min => {
            if a < b || a.is_nan() {
                a
            } else {
                b
            }
        }
        Reduction::Any => f64::from(u8::from(a != 0.0 || b != 0.0)),
        Reduction::All => f64::from(u8::from(a != 0.0 && b != 0.0)),
    }
}

/// Several parts side by side, so that they are vectors.
const PARTS: usize = 16;

#[inline(always)]
fn reduced(reduction: Reduction, values: &[f32]) -> f64 {
    let mut sums = [first_of(reduction) as f32; PARTS];
    let chunks = values.chunks_exact(PARTS);
    let rest = chunks.remainder();
    match reduction {
        Reduction::Sum | Reduction::Mean => {
            for chunk in chunks {
                for (sum, value) in sums.iter_mut().zip(chunk) {
                    *sum += value;
                }
            }
        }
        Reduction::Max => {
            for chunk in chunks {
                for (sum, &value) in sums.iter_mut().zip(chunk) {
                    *sum = if *sum > value || sum.is_nan() { *sum } else { value };
                }
            }
        }
        _ => {
            for chunk in chunks {
                for (sum, &value) in sums.iter_mut().zip(chunk) {
                    *sum = joined(reduction, f64::from(*sum), f64::from(value)) as f32;
                }
            }
        }
    }
    let all = sums.iter().chain(rest);
    all.fold(first_of(reduction), |all, &value| joined(reduction, all, f64::from(value)))
}

impl Evaluation<'_> {
    /// The elements of a nest without reductions from `first` on, the first of a line.
    #[inline(always)]
    pub(super) fn lines(&mut self, first: usize, dst: &mut [f32]) {
        let kernel = self.kernel;
        let value = kernel.nest.value;
        let (outer, axis, extent) = match kernel.nest.written.split_last() {
            Some((&axis, outer)) => (outer, axis, kernel.nest.extents[axis]),
            None => (&[][..], 0, 1),
        };
        for (line, dst) in dst.chunks_mut(extent).enumerate() {
            self.go_to(outer, first / extent + line);
            for (block, dst) in dst.chunks_mut(BLOCK).enumerate() {
                (self.at[axis], self.axis, self.len) = (block * BLOCK, axis, dst.len());
                self.forget(true);
                self.compute(value);
                self.store(value, dst);
            }
        }
    }

    fn store(&self, value: NodeId, dst: &mut [f32]) {
        let values = &self.values[value];
        if self.kernel.depends[value] & !self.kernel.row == 0 {
            return dst.fill(values.first().copied().unwrap_or_default());
        }
        if let Some(values) = values.get(..dst.len()) {
            dst.copy_from_slice(values);
        }
    }

    /// Writes the results of a row, into elements of its own that lie behind each other or where they are in all.
    #[inline(always)]
    pub(super) fn write(&mut self, dst: &mut [f32], is_own: bool) {
        let kernel = self.kernel;
        let value = kernel.nest.value;
        let (outer, axis, extent) = match kernel.along.split_last() {
            Some((&axis, outer)) => (outer, axis, kernel.nest.extents[axis]),
            None => (&[][..], 0, 1),
        };
        let single = kernel.along.is_empty();
        for line in 0..kernel.count(outer) {
            self.go_to(outer, line);
            for start in (0..extent).step_by(BLOCK) {
                let len = BLOCK.min(extent - start);
                if !single {
                    (self.at[axis], self.axis) = (start, axis);
                }
                self.len = len;
                self.forget(false);
                self.compute(value);
                if is_own {
                    let first = line * extent + start;
                    if let Some(dst) = dst.get_mut(first..first + len) {
                        self.store(value, dst);
                    }
                    continue;
                }
                let first: usize = self.at.iter().zip(&kernel.strides).map(|(at, stride)| at * stride).sum();
                let stride = if single { 0 } else { kernel.strides[axis] };
                let of_row = kernel.depends[value] & !kernel.row == 0;
                for place in 0..len {
                    let own =
                        self.values[value].get(if of_row { 0 } else { place }).copied().unwrap_or_default();
                    if let Some(slot) = dst.get_mut(first + place * stride) {
                        *slot = own;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::within;

    #[test]
    fn the_places_within_are_those_that_counting_finds() {
        for first in -7i64..8 {
            for stride in -3..4 {
                for below in 1..6 {
                    for len in [1usize, 4, 9] {
                        let holds = |place: usize| (0..below).contains(&(first + stride * place as i64));
                        let wanted: Vec<usize> = (0..len).filter(|&place| holds(place)).collect();
                        let (low, high) = within(first, stride, below, len);
                        assert_eq!((low..high).collect::<Vec<_>>(), wanted, "{first} {stride} {below} {len}");
                    }
                }
            }
        }
    }
}
