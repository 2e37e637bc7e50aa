//! Rows in halves: for which units of a network that stores halves they are, where devices and kernels have them.

use super::choose::Choosing;
use super::unit::Unit;
use crate::dtype::{DType, Precision};
use crate::error::Result;
use crate::graph::Graph;
use crate::layout::{Form, Layout};
use crate::limits::Limits;
use crate::ops::{Choice, Op};
use std::sync::Arc;

/// The form of rows that `op` reads or writes in `layout`, if it can run there: of halves if some of them are.
fn rows(op: &dyn Op, layout: Layout, limits: &Limits) -> Option<Form> {
    let kernels = op.kernels();
    let space = kernels.space(limits);
    let (kernel, tile) = space.iter().find(|(kernel, _)| kernel.layouts().contains(&layout))?;
    let choice = Choice::new(kernel.name(), *tile, [1; 3]).with_layout(layout);
    let halves = |operand| kernel.form(operand, &choice) == Some(Form::HalfRows);
    let any = op.operands().iter().any(|info| halves(info.operand));
    Some(if any { Form::HalfRows } else { Form::Rows })
}

impl Choosing<'_> {
    /// The op of `unit` with values in `layout`: in its precision, or in f32 where it has no kernel of that on the device.
    pub(super) fn op_in(&self, graph: &Graph, unit: &Unit, layout: Layout) -> Result<Arc<dyn Op>> {
        let op = unit.op(graph, self.options.precision)?;
        if op.precision().storage() != DType::F16 || !unit.parts().is_empty() {
            return Ok(op);
        }
        let serves = match rows(&*op, layout, self.limits) {
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
}
