//! In which order the nodes of a program are computed, and in which registers.

use super::super::nest::NodeId;
use super::program::{Compiled, Given, Kind, NodeSet, Program, Step, Sweep, Written};

/// Numbers of a line of a cache.
pub(super) const LINE: usize = 16;

/// Registers that are used again.
#[derive(Default)]
struct Registers {
    lens: Vec<usize>,
    free: Vec<usize>,
    /// The nodes that have one of their own.
    taken: NodeSet,
}

impl Registers {
    fn new_one(&mut self, len: usize) -> usize {
        self.lens.push(len);
        self.lens.len() - 1
    }
}

impl Program {
    /// Puts the steps of each sweep in order and gives them registers.
    pub(super) fn plan(&mut self) {
        let mut used = vec![0usize; self.nodes.len()];
        for sweep in 0..self.sweeps.len() {
            let mut needed = vec![false; self.nodes.len()];
            for id in self.wanted(sweep) {
                needed[id] = true;
            }
            for id in (0..self.nodes.len()).rev().filter(|&id| !matches!(self.nodes[id], Compiled::Reduce)) {
                if needed[id] {
                    self.read_by(id).into_iter().for_each(|own| needed[own] = true);
                }
            }
            let users = self.users(sweep, &needed);
            let is_step = |id: &NodeId| needed[*id] && !matches!(self.nodes[*id], Compiled::Reduce);
            let result = |id: NodeId| {
                let alone = users[id] == 1 && used[id] == 0 && self.kinds[id] == Kind::Places;
                let is_own = |result: &Written| result.value == id;
                let last = sweep + 1 == self.sweeps.len() && self.is_function(id);
                self.results.iter().position(is_own).filter(|_| alone && last)
            };
            let step = |node: NodeId| Step {
                node,
                own: 1 << node,
                kind: self.kinds[node],
                register: 0,
                given: self.given(node),
                result: result(node),
            };
            self.sweeps[sweep].steps = (0..self.nodes.len()).filter(is_step).map(step).collect();
            for step in &self.sweeps[sweep].steps {
                used[step.node] += 1;
            }
        }
        let places = |sweep: &Sweep| sweep.dims.iter().map(|&axis| self.tiling.sizes[axis]).product();
        let longest = self.sweeps.iter().map(places).max().unwrap_or(1);
        let rows = self.row_dims.iter().map(|&axis| self.tiling.sizes[axis]).product();
        self.keep(&used);
        let mut registers = Registers::default();
        for (id, &used) in used.iter().enumerate() {
            let len = match self.kinds[id] {
                Kind::Single => 1,
                Kind::Rows => rows,
                Kind::Inner | Kind::Places => longest,
            };
            // Steps of several sweeps find what they share in one place.
            if self.kept & (1 << id) != 0 || used > 1 {
                self.registers[id] = registers.new_one(len);
                registers.taken |= 1 << id;
            }
        }
        for sweep in 0..self.sweeps.len() {
            self.allocate(sweep, longest, &mut registers);
        }
        // Registers begin at different lines of a cache.
        self.lens = registers.lens.into_iter().map(|len| len.next_multiple_of(LINE) + LINE).collect();
        for step in self.sweeps.iter_mut().flat_map(|sweep| &mut sweep.steps) {
            step.register = self.registers[step.node];
        }
    }

    /// Decides which values are kept from tile to tile.
    fn keep(&mut self, used: &[usize]) {
        let cut = |axes: &[usize]| {
            axes.iter().rev().copied().find(|&axis| self.tiling.sizes[axis] < self.extents[axis])
        };
        let cuts: Vec<Option<usize>> = self.sweeps.iter().map(|sweep| cut(&sweep.axes)).collect();
        let of_rows = cut(&self.tiling.rows);
        let mut kept = 0;
        for (id, &used) in used.iter().enumerate() {
            // Of a single tile nothing is computed again.
            let depends =
                |axis: Option<usize>| axis.is_none_or(|axis| self.dependents[axis] & (1 << id) != 0);
            let has = |sweep: &Sweep| sweep.steps.iter().any(|step| step.node == id);
            let own = self.sweeps.iter().zip(&cuts).filter(|(sweep, _)| has(sweep));
            let changes = own.clone().any(|(_, cut)| depends(cut.or(of_rows)));
            let again = used > 1 && own.clone().all(|(_, cut)| cut.is_none());
            let is_computed = used > 0 || matches!(self.nodes[id], Compiled::Reduce);
            if is_computed && (self.kinds[id] != Kind::Places || !changes || again) {
                kept |= 1 << id;
            }
        }
        self.kept = kept;
        for step in self.sweeps.iter_mut().flat_map(|sweep| &mut sweep.steps) {
            step.result = step.result.filter(|_| kept & (1 << step.node) == 0);
        }
        for sweep in &mut self.sweeps {
            let results = sweep.steps.iter().filter_map(|step| step.result);
            sweep.computed = results.fold(0, |all, place| all | 1 << place);
        }
    }

    /// Gives the nodes of a sweep that are not kept registers, and those that are spread over all places.
    fn allocate(&mut self, sweep: usize, longest: usize, registers: &mut Registers) {
        let steps: Vec<NodeId> = self.sweeps[sweep].steps.iter().map(|step| step.node).collect();
        let wanted = self.wanted(sweep);
        let last_use = |program: &Program, id: NodeId| {
            let reads = |step: &NodeId| program.read_by(*step).contains(&id);
            if wanted.contains(&id) { usize::MAX } else { steps.iter().rposition(reads).unwrap_or_default() }
        };
        let mut busy: Vec<(usize, usize)> = Vec::new();
        // What other sweeps used for their tiles is free.
        registers.free =
            (0..registers.lens.len()).filter(|own| !self.is_taken(*own, registers.taken)).collect();
        for (step, &id) in steps.iter().enumerate() {
            for given in self.given(id) {
                if let Given::Spread(own) = given {
                    self.spread_one(own, longest, registers);
                }
            }
            if registers.taken & (1 << id) != 0 {
                continue;
            }
            let (ended, still): (Vec<_>, Vec<_>) = busy.into_iter().partition(|(_, until)| *until < step);
            busy = still;
            registers.free.extend(ended.into_iter().map(|(own, _)| own));
            let own = registers.free.pop().unwrap_or_else(|| registers.new_one(longest));
            busy.push((own, last_use(self, id)));
            self.registers[id] = own;
        }
        for own in self.sweeps[sweep].reductions.clone() {
            for id in [own.of].into_iter().chain(own.place()) {
                if self.kinds[id] != Kind::Places {
                    self.spread_one(id, longest, registers);
                }
            }
        }
    }

    fn spread_one(&mut self, id: NodeId, longest: usize, registers: &mut Registers) {
        if self.spread[id].is_none() {
            self.spread[id] = Some(registers.new_one(longest));
        }
    }

    /// Whether a register is that of a node which has one of its own, or of one that is spread.
    fn is_taken(&self, register: usize, taken: NodeSet) -> bool {
        let own = (0..self.nodes.len()).any(|id| taken & (1 << id) != 0 && self.registers[id] == register);
        own || self.spread.contains(&Some(register))
    }
}
