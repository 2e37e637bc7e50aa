//! A softmax, from its quotient on.

use super::{Finder, Replacement};
use crate::emit::Operand;
use crate::error::Result;
use crate::lower::mistakes::planted;
use crate::lower::unit::{Input, Unit};
use crate::ops::elementwise::Function;
use crate::ops::reduce::Reduction;
use crate::ops::softmax::Softmax;
use std::sync::Arc;

impl Finder<'_, '_> {
    /// What ends as the softmax whose quotient is unit `index`.
    pub(super) fn softmax(&self, index: usize) -> Result<Option<Replacement>> {
        let found = || {
            let quotient = self.single(index, Function::Div)?;
            let &[Some(exponential), Some(sum)] =
                &[quotient.terms.first()?.value(), quotient.terms.get(1)?.value()]
            else {
                return None;
            };
            let sum_at = self.network.writer(sum)?;
            let (summed, read, _) = self.reduction(sum_at)?;
            let power = self.written(exponential, Function::Exp)?;
            let difference = self.written(power.terms.first()?.value()?, Function::Sub)?;
            let &[Some(x), Some(largest)] =
                &[difference.terms.first()?.value(), difference.terms.get(1)?.value()]
            else {
                return None;
            };
            let largest_at = self.network.writer(largest)?;
            let (over, from, _) = self.reduction(largest_at)?;
            let &[axis] = &summed.axes[..] else { return None };
            let same = summed.axes == over.axes && read == exponential && from == x;
            let kinds = [summed.reduction, over.reduction] == [Reduction::Sum, Reduction::Max];
            let old = vec![largest_at, difference.index, power.index, sum_at, index];
            (same && kinds && self.closed(&old, quotient.output)).then_some((x, axis, old, quotient.output))
        };
        let Some((x, axis, old, result)) = found() else { return Ok(None) };
        let given = vec![(Operand::Src, Input::Value(x), self.network.dims(x)?)];
        let axis = if planted("softmax_axis") { 0 } else { axis };
        let operator = Arc::new(Softmax { axis, ..Softmax::default() });
        let name = self.network.units()[index].name.clone();
        Ok(Some(Replacement { old, new: vec![Unit::of_node(name, operator, given, vec![result])] }))
    }
}
