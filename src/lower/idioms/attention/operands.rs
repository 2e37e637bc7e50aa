//! Where the operands of an attention lie, moves on the way to it undone.

use crate::dims::Dims;
use crate::graph::Value;
use crate::lower::idioms::factors::remap;
use crate::lower::idioms::strided::Places;
use crate::lower::idioms::{Finder, Term};
use crate::lower::unit::Input;
use crate::ops::elementwise::Function;

/// Where an operand's elements lie: axes are heads of all batches, places and features.
#[derive(Clone)]
pub(super) struct Operands {
    pub(super) input: Input,
    pub(super) dims: Dims,
    /// What the elements there are to be multiplied by.
    pub(super) factor: f32,
    pub(super) places: Places<3>,
}

impl Finder<'_, '_> {
    /// The value that is multiplied by a number, which is `value`, and the number.
    fn scaled(&self, value: Value) -> Option<(Value, f32)> {
        let at = self.network.writer(value)?;
        let found = self.multiplied(at, Function::Mul).or(self.multiplied(at, Function::Div))?;
        (!(self.alone)(&self.network.units()[at].name)).then_some((found.value, found.number))
    }

    /// An operand whose elements lie at `own` in `input`; if `far`, from as far back as moves can be undone, and factors
    /// where it `takes_factor`.
    pub(super) fn operands(
        &self,
        input: &Input,
        own: Places<3>,
        [far, takes_factor]: [bool; 2],
    ) -> Option<Operands> {
        let value = match input {
            Input::Value(value) => *value,
            Input::Constant(tensor, _) => {
                let dims = tensor.dims();
                return Some(Operands { input: input.clone(), dims, factor: 1.0, places: own });
            }
        };
        let alias = self.network.resolve(value);
        let mut at = own;
        at.first += alias.offset;
        let of = |value: Value, places: Places<3>| {
            let dims = self.network.dims(value).ok()?;
            Some(Operands { input: Input::Value(value), dims, factor: 1.0, places })
        };
        let mut best = of(alias.of, at.clone())?;
        let (mut value, mut factor) = (alias.of, 1.0);
        loop {
            if !far {
                break;
            }
            if let Some((source, places)) = self.before(value, &at) {
                (value, at) = (source, places);
            } else if let Some((source, number)) = self.scaled(value).filter(|_| takes_factor) {
                let alias = self.network.resolve(source);
                value = alias.of;
                at.first += alias.offset;
                factor *= number;
            } else {
                break;
            }
            if at.extents(2).len() <= 1
                && at.extents(1).len() <= 2
                && at.axes[2].iter().all(|axis| axis.1 == 1)
            {
                best = Operands { factor, ..of(value, at.clone())? };
            }
        }
        Some(best)
    }

    /// The value that a move made `value` of, and the same places there.
    fn before(&self, value: Value, places: &Places<3>) -> Option<(Value, Places<3>)> {
        let at = self.network.writer(value)?;
        let unit = &self.network.units()[at];
        if (self.alone)(&unit.name) {
            return None;
        }
        let op = remap(self.network, unit)?;
        let (first, parts) = op.strided()?;
        let alias = self.network.resolve(unit.reads().next()?);
        let mut moved = places.moved(first, &parts)?;
        moved.first += alias.offset;
        Some((alias.of, moved))
    }

    /// Numbers of scores: those of each, or of several alike.
    pub(super) fn to_scores(
        &self,
        term: &Term,
        dims: &Dims,
        scores: [(usize, usize); 3],
    ) -> Option<Operands> {
        let Term::Given(input, own) = term else { return None };
        // Where the elements of the scores' dimensions lie in what spreads to them.
        let (whole, rank) = (dims.extents(), own.rank());
        let mut parts = Vec::with_capacity(whole.len());
        let mut step = 1;
        for (axis, &extent) in whole.iter().enumerate().rev() {
            let place = (axis + rank).checked_sub(whole.len());
            let has = place.and_then(|place| own.extents().get(place)).copied().unwrap_or(1);
            parts.push((extent, if has == 1 { 0 } else { step }));
            step *= has;
        }
        parts.reverse();
        Some(self.spread_from(input, *own, Places::of(scores).moved(0, &parts)?))
    }

    /// Numbers of scores that lie at `places` in `input`, from before they were spread.
    pub(super) fn spread_from(&self, input: &Input, dims: Dims, places: Places<3>) -> Operands {
        let own = Operands { input: input.clone(), dims, factor: 1.0, places };
        let Input::Value(value) = *input else { return own };
        let alias = self.network.resolve(value);
        let Ok(dims) = self.network.dims(alias.of) else { return own };
        let mut best = Operands { input: Input::Value(alias.of), dims, ..own };
        best.places.first += alias.offset;
        while let Input::Value(value) = best.input
            && let Some((source, places)) = self.before(value, &best.places)
            && places.extents(2).len() <= 1
            && let Ok(dims) = self.network.dims(source)
        {
            best = Operands { input: Input::Value(source), dims, factor: 1.0, places };
        }
        best
    }
}
