//! What a tile's values are together: joined to what was found of tiles before, and at the end the values of the reductions.

use super::super::nest::NodeId;
use super::evaluation::Evaluation;
use super::found::{Best, Found};
use super::pairs::{Reducing, Summand};
use super::program::{Kind, Sweep};
use super::reductions::{Collected, Finished, Into, Reduced};
use super::sums::{Summands, Summed};
use crate::cpu::arch::apart;
use crate::ops::reduce::Reduction;
use pulp::Simd;

/// Values of a column that are joined before what comes of them is joined to the column, for its error.
const JOINED: usize = 64;

impl<S: Simd> Evaluation<'_, S> {
    /// Joins the values of a tile to what was found.
    pub(super) fn reduce(&mut self, sweep: &Sweep) {
        let columns = self.program.tiling.columns;
        if columns && self.joined >= JOINED {
            self.collect(sweep);
        }
        for (place, reducing) in sweep.reductions.iter().enumerate() {
            let &Reducing { reduction, of, summand, .. } = reducing;
            let each = |id: NodeId| self.program.kinds[id] == Kind::Places;
            let given = [of].into_iter().chain(reducing.place());
            for id in given.filter(|&id| !each(id)).collect::<Vec<_>>() {
                self.spread(id, self.len);
            }
            let own = place * self.rows..(place + 1) * self.rows;
            let (mut found, parts) = (std::mem::take(&mut self.found), std::mem::take(&mut self.parts));
            let mut places = std::mem::take(&mut self.places);
            let values_of = |id: NodeId| match self.program.kinds[id] {
                Kind::Places => self.computed(id),
                _ => self.spread_values(id, self.len),
            };
            let values = values_of(of);
            let into = match columns {
                true => Into::Columns(&mut parts[own.clone()], self.width),
                false => Into::Rows(&mut found[own.clone()]),
            };
            let sum = |summands, into| apart(self.simd, Summed { summands, values, into });
            match summand {
                Summand::Plain => apart(self.simd, Reduced { reduction, values, into }),
                Summand::Squares => sum(Summands::Squares, into),
                Summand::Products(other) => sum(Summands::Products(self.computed(other)), into),
                Summand::Differences(from) => sum(Summands::Differences(self.computed(from)), into),
                Summand::Powers(from) => sum(Summands::Powers(self.computed(from)), into),
                Summand::Deviations(from) => sum(Summands::Deviations(self.computed(from)), into),
                Summand::DeviationsOfDifferences(from) => {
                    sum(Summands::DeviationsOfDifferences(from.map(|from| self.computed(from))), into);
                }
                Summand::Place(at) => {
                    let best = Best { values: &mut parts[own.clone()], places: &mut places[own] };
                    let (largest, width) = (reduction == Reduction::Max, columns.then_some(self.width));
                    apart(self.simd, Found { largest, width, values, places: values_of(at), best });
                }
            }
            (self.found, self.parts, self.places) = (found, parts, places);
        }
        self.joined += self.len / self.rows.max(1);
    }

    /// Joins what was found of columns to what is known of them.
    fn collect(&mut self, sweep: &Sweep) {
        for (place, reducing) in sweep.reductions.iter().enumerate() {
            // The best values are in parts alone.
            if reducing.place().is_some() {
                continue;
            }
            let (own, reduction) = (place * self.rows..(place + 1) * self.rows, reducing.reduction);
            let (parts, found) = (&mut self.parts[own.clone()], &mut self.found[own]);
            apart(self.simd, Collected { reduction, is_first: !self.collected, parts, found });
        }
        (self.joined, self.collected) = (0, true);
    }

    /// What was found becomes the values of the reductions.
    pub(super) fn finish(&mut self, sweep: &Sweep) {
        let parts_alone = self.program.tiling.columns && !self.collected;
        if self.collected && self.program.tiling.columns {
            self.collect(sweep);
        }
        let count: usize = sweep.axes.iter().map(|&axis| self.program.extents[axis]).product();
        for (place, reducing) in sweep.reductions.iter().enumerate() {
            let id = reducing.node;
            // What is the same for all rows was found of each of them.
            let own = place * self.rows..place * self.rows + self.count(self.program.kinds[id]);
            let by = if reducing.reduction == Reduction::Mean { count as f64 } else { 1.0 };
            let values = &mut *self.registers[self.program.registers[id]];
            match (reducing.place(), parts_alone) {
                (Some(_), _) => apart(self.simd, Finished { found: &self.places[own], by, values }),
                (None, true) => apart(self.simd, Finished { found: &self.parts[own], by, values }),
                (None, false) => apart(self.simd, Finished { found: &self.found[own], by, values }),
            }
            self.known |= 1 << id;
            self.spread &= !(1 << id);
        }
    }
}
