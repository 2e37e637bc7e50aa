//! Rows in halves: for which units of a network that stores halves they are, where devices and kernels have them.
//!
//! Some functions of each element, sums and integers have rows of f32 in every precision. A unit between them that
//! saves less by halves than the conversions of what it reads and writes cost has them too (`cut`): the mean of
//! squares, or the angles of which sines are taken.

use super::choose::Choosing;
use super::cut::Cut;
use super::precision::{CONVERSION, saves};
use super::unit::{Network, Unit};
use crate::dtype::{DType, Precision};
use crate::error::Result;
use crate::graph::{Graph, Value};
use crate::layout::{Form, Layout};
use crate::limits::Limits;
use crate::ops::{Choice, Op};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a unit that stays in halves saves by them: more than all conversions cost.
const ALL: u64 = 1 << 56;

/// The form of what `op` reads or writes in `layout`, if it can run there: rows of halves if some of it is, else maps.
fn form(op: &dyn Op, layout: Layout, limits: &Limits) -> Option<Form> {
    let kernels = op.kernels();
    let space = kernels.space(limits);
    let (kernel, tile) = space.iter().find(|(kernel, _)| kernel.layouts().contains(&layout))?;
    let choice = Choice::new(kernel.name(), *tile, [1; 3]).with_layout(layout);
    let forms: Vec<Form> =
        op.operands().iter().filter_map(|info| kernel.form(info.operand, &choice)).collect();
    let first = [Form::HalfRows, Form::C4, Form::Image].into_iter().find(|form| forms.contains(form));
    Some(first.unwrap_or(Form::Rows))
}

/// Whether `op` reads and writes rows in any layout, those of halves where it stores them.
pub(super) fn has_rows_alone(op: &dyn Op, limits: &Limits) -> bool {
    matches!(form(op, Layout::C4, limits), None | Some(Form::Rows | Form::HalfRows))
}

/// Whether `op` has no kernel of rows.
pub(super) fn has_maps_alone(op: &dyn Op, limits: &Limits) -> bool {
    !has_rows_alone(op, limits) && !op.kernels().serve(Layout::Nhwc, limits)
}

impl Network<'_> {
    /// The units that write or read each value, or elements of it.
    pub(super) fn users(&self) -> BTreeMap<Value, Vec<usize>> {
        let mut users: BTreeMap<Value, Vec<usize>> = BTreeMap::new();
        for (index, unit) in self.units().iter().enumerate() {
            let read = unit.reads().map(|value| self.resolve(value).of);
            for value in read.chain(unit.outputs.iter().copied()) {
                let users = users.entry(value).or_default();
                if users.last() != Some(&index) {
                    users.push(index);
                }
            }
        }
        users
    }
}

impl Choosing<'_> {
    /// The op of `unit` with values in `layout`: in its precision, or in f32 where it has no kernel of that on the device.
    pub(super) fn op_in(&self, graph: &Graph, unit: &Unit, layout: Layout) -> Result<Arc<dyn Op>> {
        let op = unit.op(graph, self.options.precision)?;
        if op.precision().storage() != DType::F16 || !unit.parts().is_empty() {
            return Ok(op);
        }
        let serves = match form(&*op, layout, self.limits) {
            Some(Form::HalfRows) => self.limits.has_half_rows(),
            Some(_) => true,
            None => false,
        };
        if serves {
            return Ok(op);
        }
        let wide = unit.op_of(graph, Precision::F32)?;
        Ok(if wide.kernels().serve(layout, self.limits) { wide } else { op })
    }

    /// Which units of a network that stores halves have rows of f32 because that costs less, each in its layout.
    pub(super) fn wide(&self, network: &Network<'_>, layouts: &[Layout]) -> Result<Vec<bool>> {
        let units = network.units();
        if self.options.precision.storage() != DType::F16 {
            return Ok(vec![false; units.len()]);
        }
        let mut free = vec![false; units.len()];
        let mut own = Vec::with_capacity(units.len());
        for (index, (unit, &layout)) in units.iter().zip(layouts).enumerate() {
            let op = self.op_in(network.graph, unit, layout)?;
            let halves = op.precision().storage() == DType::F16 && unit.host.is_none();
            let form = form(&*op, layout, self.limits);
            let by_hand = unit.precision.is_some() || self.options.choices.contains_key(&unit.name);
            free[index] = form == Some(Form::HalfRows) && halves && !by_hand && unit.parts().is_empty();
            own.push(match form {
                Some(Form::Rows) | None => None,
                _ if !halves => None,
                _ if free[index] => Some(saves(&*op) as u64),
                _ => Some(ALL),
            });
        }
        let mut cut = Cut::new(&own);
        for (value, users) in network.users() {
            let bytes = 6 * network.dims(value)?.elements();
            cut.value(&users, CONVERSION as u64 + bytes as u64);
        }
        Ok(free.into_iter().zip(cut.narrow()).map(|(free, narrow)| free && !narrow).collect())
    }
}
