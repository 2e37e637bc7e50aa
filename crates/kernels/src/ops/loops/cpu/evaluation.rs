//! A program tile by tile: the nodes of a tile one behind the other, each a loop over vectors.

use super::functions::Spread;
use super::offset::{Along, Places};
use super::pairs::Reducing;
use super::program::{Compiled, Kind, NodeSet, Program, Step, Sweep};
use super::region::{Region, Target};
use crate::cpu::arch::apart;
use crate::ops::loops::nest::{MAX_AXES, MAX_NODES, NodeId};
use pulp::Simd;

/// The part of the places that one worker computes: those along each axis from the first ones on.
pub(super) type Bounds = Region;

/// That values are in a register.
const APART: usize = usize::MAX;

/// What is known of a tile.
pub(super) struct Evaluation<'a, S> {
    pub(super) simd: S,
    pub(super) program: &'a Program,
    pub(super) sources: &'a [&'a [f32]],
    bounds: &'a Bounds,
    /// The first place of the tile along each axis, and how many there are.
    pub(super) start: Places,
    size: Places,
    /// How far places along an axis are from each other in registers: of all places, and of rows.
    pub(super) strides: Places,
    pub(super) row_strides: Places,
    pub(super) inner_strides: Places,
    /// The places of the tile, and its rows.
    pub(super) len: usize,
    pub(super) rows: usize,
    /// Rows that are neighbours, where those are columns.
    pub(super) width: usize,
    /// The places of the tile along its inner axes.
    inner: usize,
    pub(super) registers: Vec<&'a mut [f32]>,
    /// For each reduction of a loop, what was found of each row.
    pub(super) found: Vec<f64>,
    /// What was found of columns since it was last joined to that, of how many values, and whether any was joined before.
    pub(super) parts: &'a mut [f32],
    pub(super) joined: usize,
    pub(super) collected: bool,
    /// For each reduction of a loop that finds a place, that of the best value of each row so far.
    pub(super) places: Vec<f32>,
    /// Nodes whose values are those of the tile, also spread over all of its places.
    pub(super) known: NodeSet,
    pub(super) spread: NodeSet,
    /// Where the values of reads begin that lie one behind the other in their source; [`APART`] of others.
    first: [usize; MAX_NODES],
    /// The results of which a tile is written one behind the other.
    written: u32,
    /// The loop whose places registers have, if they have those of its tile.
    laid_out: Option<usize>,
}

/// The next tile along some axes; false behind the last one.
fn next(axes: &[usize], sizes: &[usize], bounds: &Bounds, start: &mut Places) -> bool {
    for &axis in axes.iter().rev() {
        start[axis] += sizes[axis];
        if start[axis] < bounds.to[axis] {
            return true;
        }
        start[axis] = bounds.from[axis];
    }
    false
}

impl<'a, S: Simd> Evaluation<'a, S> {
    pub(super) fn new(
        simd: S,
        program: &'a Program,
        sources: &'a [&'a [f32]],
        bounds: &'a Bounds,
        scratch: &'a mut [f32],
    ) -> Self {
        let (mut registers, mut rest): (Vec<&mut [f32]>, &mut [f32]) =
            (Vec::with_capacity(program.lens.len() + 1), scratch);
        let parts = program.most_parts();
        for &len in program.lens.iter().chain([&parts]) {
            let (own, behind) = rest.split_at_mut(len.min(rest.len()));
            registers.push(own);
            rest = behind;
        }
        let parts_of_columns = registers.pop().unwrap_or_default();
        let finds = program.sweeps.iter().flat_map(|own| &own.reductions).any(|own| own.place().is_some());
        Evaluation {
            simd,
            program,
            sources,
            bounds,
            start: [0; MAX_AXES],
            size: [1; MAX_AXES],
            strides: [0; MAX_AXES],
            row_strides: [0; MAX_AXES],
            inner_strides: [0; MAX_AXES],
            len: 1,
            rows: 1,
            width: 1,
            inner: 1,
            registers,
            found: vec![0.0; parts],
            parts: parts_of_columns,
            joined: 0,
            collected: false,
            places: vec![0.0; if finds { parts } else { 0 }],
            known: 0,
            spread: 0,
            first: [APART; MAX_NODES],
            written: 0,
            laid_out: None,
        }
    }

    /// Computes the part, of which each result begins with the element of its first place.
    pub(super) fn run(&mut self, results: &mut [&mut [f32]]) {
        let program = self.program;
        let mut start = self.bounds.from;
        loop {
            self.go_to(&program.tiling.rows, &start);
            for sweep in &program.sweeps {
                self.sweep(sweep, results);
            }
            if !next(&program.tiling.rows, &program.tiling.sizes, self.bounds, &mut start) {
                return;
            }
        }
    }

    /// The tile at these places along `axes`. What depends on an axis along which it changes is forgotten.
    fn go_to(&mut self, axes: &[usize], start: &Places) {
        let program = self.program;
        for &axis in axes {
            let size = program.tiling.sizes[axis].min(self.bounds.to[axis] - start[axis]);
            if size != self.size[axis] {
                // Places of another tile are elsewhere in registers.
                (self.size[axis], self.spread, self.laid_out) = (size, 0, None);
                self.known &= if program.tiling.rows.contains(&axis) { 0 } else { !program.of_places };
            } else if start[axis] == self.start[axis] {
                continue;
            }
            self.start[axis] = start[axis];
            self.known &= !program.dependents[axis];
            self.spread &= !program.dependents[axis];
        }
    }

    /// One loop of a tile of rows.
    fn sweep(&mut self, sweep: &'a Sweep, results: &mut [&mut [f32]]) {
        let program = self.program;
        let reduces = !sweep.reductions.is_empty();
        let is_known = |own: &Reducing| self.known & (1 << own.node) != 0;
        if reduces && sweep.reductions.iter().all(is_known) {
            return;
        }
        let mut start = self.bounds.from;
        let mut is_first = true;
        loop {
            self.go_to(&sweep.axes, &start);
            if self.laid_out != Some(sweep.layout) {
                self.lay_out(sweep);
            }
            if is_first {
                for (place, Reducing { reduction, .. }) in sweep.reductions.iter().enumerate() {
                    let own = place * self.rows..(place + 1) * self.rows;
                    let finds = sweep.reductions[place].place().is_some();
                    if finds {
                        self.places[own.clone()].fill(f32::INFINITY);
                    }
                    if finds || program.tiling.columns {
                        self.parts[own].fill(reduction.first());
                    } else {
                        self.found[own].fill(f64::from(reduction.first()));
                    }
                }
                (is_first, self.joined, self.collected) = (false, 0, false);
            }
            self.steps(sweep, results);
            if reduces {
                self.reduce(sweep);
            } else {
                self.write(sweep, results);
            }
            if !next(&sweep.axes, &program.tiling.sizes, self.bounds, &mut start) {
                break;
            }
        }
        self.finish(sweep);
    }

    /// Finds where places of the tile are in registers, and what lies there as it does in operands.
    fn lay_out(&mut self, sweep: &Sweep) {
        let strides = |dims: &[usize], size: &Places, strides: &mut Places| {
            *strides = [0; MAX_AXES];
            let mut len = 1;
            for &axis in dims.iter().rev() {
                strides[axis] = len;
                len *= size[axis];
            }
            len
        };
        let program = self.program;
        let before = self.strides;
        self.len = strides(&sweep.dims, &self.size, &mut self.strides);
        if before != self.strides {
            // Another loop has other places.
            self.known &= !program.of_places;
            self.spread = 0;
        }
        self.rows = strides(&program.row_dims, &self.size, &mut self.row_strides);
        let blocks = program.tiling.blocks.iter().map(|&axis| self.size[axis]).product::<usize>();
        self.width = self.rows / blocks;
        self.inner = strides(&sweep.inner, &self.size, &mut self.inner_strides);
        let alike = program.sweeps.iter().filter(|other| other.layout == sweep.layout);
        for step in alike.flat_map(|sweep| &sweep.steps) {
            self.first[step.node] = APART;
            let Compiled::Read { at, within, .. } = &program.nodes[step.node] else { continue };
            let (dims, strides) = self.places(step.kind, sweep);
            let follows = |&axis: &usize| match &at.along[axis] {
                Along::Stride(stride) => self.size[axis] == 1 || *stride == strides[axis] as i64,
                Along::Table(..) => false,
            };
            let plain = within.ranges.is_empty() && within.is_plain() && at.mixed_axes == 0;
            if plain && dims.iter().all(follows) {
                self.first[step.node] = usize::try_from(at.without(0, &self.start)).unwrap_or_default();
            }
        }
        self.laid_out = Some(sweep.layout);
        let is_whole = |strides: &Places| {
            sweep.dims.iter().all(|&axis| self.size[axis] == 1 || strides[axis] == self.strides[axis])
        };
        let results = program.results.iter().enumerate();
        self.written =
            results.fold(0, |all, (place, result)| all | u32::from(is_whole(&result.strides)) << place);
    }

    /// The axes along which nodes of a kind have several values, and how far these are from each other in a register.
    fn places(&self, kind: Kind, sweep: &'a Sweep) -> (&'a [usize], &Places) {
        match kind {
            Kind::Single => (&[], &[0; MAX_AXES]),
            Kind::Rows => (&self.program.row_dims, &self.row_strides),
            Kind::Inner => (&sweep.inner, &self.inner_strides),
            Kind::Places => (&sweep.dims, &self.strides),
        }
    }

    /// How many values nodes of a kind have in the tile.
    pub(super) fn count(&self, kind: Kind) -> usize {
        match kind {
            Kind::Single => 1,
            Kind::Rows => self.rows,
            Kind::Inner => self.inner,
            Kind::Places => self.len,
        }
    }

    /// The values of a node in its register or its source, as many as it has in the tile.
    pub(super) fn computed(&self, id: NodeId) -> &[f32] {
        let len = self.count(self.program.kinds[id]);
        let first = self.first[id];
        if first == APART {
            return self.registers[self.program.registers[id]].get(..len).unwrap_or_default();
        }
        let source = self.sources.get(self.program.reads[id]);
        source.and_then(|source| source.get(first..first + len)).unwrap_or_default()
    }

    pub(super) fn single(&self, id: NodeId) -> f32 {
        match &self.program.nodes[id] {
            Compiled::Number(number) => *number,
            _ => self.computed(id).first().copied().unwrap_or_default(),
        }
    }

    /// The nodes of a tile that are not known.
    fn steps(&mut self, sweep: &'a Sweep, results: &mut [&mut [f32]]) {
        let program = self.program;
        for step in &sweep.steps {
            if self.known & step.own != 0 {
                continue;
            }
            self.known |= step.own & program.kept;
            if let (true, Compiled::Read { at, .. }) =
                (self.first[step.node] != APART, &program.nodes[step.node])
            {
                self.first[step.node] = usize::try_from(at.without(0, &self.start)).unwrap_or_default();
                continue;
            }
            if let Some(place) = step.result.filter(|place| self.written & (1 << place) != 0) {
                let first = self.element(&program.results[place].strides);
                if let Some(out) = results.get_mut(place).and_then(|dst| dst.get_mut(first..first + self.len))
                {
                    self.compute(sweep, step, out);
                }
                continue;
            }
            let len = self.count(step.kind);
            let out = std::mem::take(&mut self.registers[step.register]);
            if let Some(out) = out.get_mut(..len) {
                self.compute(sweep, step, out);
            }
            self.registers[step.register] = out;
        }
    }

    /// The first element of the tile among those of the part's result.
    fn element(&self, strides: &Places) -> usize {
        let axes = 0..self.program.extents.len();
        axes.map(|axis| (self.start[axis] - self.bounds.from[axis]) * strides[axis]).sum()
    }

    /// The tile as a region.
    fn region(&self) -> Region {
        let mut region = Region { from: self.start, to: self.start };
        for (to, size) in region.to.iter_mut().zip(&self.size) {
            *to += size;
        }
        region
    }

    fn compute(&mut self, sweep: &'a Sweep, step: &Step, out: &mut [f32]) {
        match &self.program.nodes[step.node] {
            Compiled::Apply(function, ..) => return self.apply(*function, &step.given, out),
            Compiled::Pair { first, second, .. } => return self.pair([*first, *second], &step.given, out),
            Compiled::Normalised { .. } => return self.normalised(&step.given, out),
            _ => {}
        }
        let (dims, strides) = self.places(step.kind, sweep);
        let mut target = Target { values: out, first: 0, strides, dims };
        self.place(step.node, &self.region(), &mut target);
    }

    pub(super) fn spread_values(&self, id: NodeId, len: usize) -> &[f32] {
        let register = self.program.spread[id].and_then(|own| self.registers.get(own));
        register.and_then(|own| own.get(..len)).unwrap_or_default()
    }

    /// Spreads the values of a node over all places of the tile, or a number over its rows.
    pub(super) fn spread(&mut self, id: NodeId, len: usize) {
        let all = len == self.len;
        let (Some(register), false) = (self.program.spread[id], all && self.spread & (1 << id) != 0) else {
            return;
        };
        let out = std::mem::take(&mut self.registers[register]);
        if let Some(own) = out.get_mut(..len) {
            let single = [self.single(id)];
            let (values, width) = match self.program.kinds[id] {
                Kind::Rows => (self.computed(id), self.program.tiling.columns.then_some(self.width)),
                Kind::Inner => (self.computed(id), Some(self.inner)),
                _ => (&single[..], None),
            };
            apart(self.simd, Spread { values, width, out: own });
        }
        self.registers[register] = out;
        // Over rows alone it is spread each time.
        self.spread = if all { self.spread | 1 << id } else { self.spread & !(1 << id) };
    }

    /// Writes what was not computed where it belongs.
    fn write(&mut self, sweep: &Sweep, results: &mut [&mut [f32]]) {
        let program = self.program;
        for (place, (values, result)) in results.iter_mut().zip(&program.results).enumerate() {
            if self.written & sweep.computed & (1 << place) != 0 {
                continue;
            }
            let first = self.element(&result.strides);
            let mut target = Target { values, first, strides: &result.strides, dims: &sweep.dims };
            self.place(result.value, &self.region(), &mut target);
        }
    }
}
