//! An attention of operands that lie anywhere, as a unit.

use super::operands::Operands;
use crate::dims::Dims;
use crate::emit::Operand;
use crate::graph::Value;
use crate::lower::idioms::strided::Places;
use crate::lower::mistakes::planted;
use crate::lower::unit::{Input, Unit};
use crate::ops::attention::{Added, RowStrides, Rules, Sizes, Strided};
use std::sync::Arc;

/// All that an attention is made of but its result.
pub(super) struct AttentionInputs {
    pub(super) name: String,
    pub(super) query: Operands,
    pub(super) key: Operands,
    pub(super) value: Operands,
    pub(super) bias: Option<Operands>,
    pub(super) mask: Option<Operands>,
    /// Numbers of places and keys.
    pub(super) more: Vec<(Operand, Input, Dims)>,
    pub(super) rules: Rules,
    /// Batches, and heads that share one of keys, where these are known.
    pub(super) batch: Option<usize>,
    pub(super) group: Option<usize>,
}

impl AttentionInputs {
    /// The unit that writes `output`, of `dims`, at `dst`.
    pub(super) fn unit(&self, dst: &Places<3>, dims: Dims, output: Value) -> Option<Unit> {
        let all =
            [Some(&self.query), Some(&self.key), Some(&self.value), self.bias.as_ref(), self.mask.as_ref()];
        let places = || all.iter().flatten().map(|operands| &operands.places).chain([dst]);
        // Batches and heads: as few of both as all operands can be counted by.
        let total: usize =
            [&self.query.places, dst].iter().map(|at| at.extents(0).iter().product::<usize>()).max()?;
        let heads = match self.batch {
            Some(batch) => total.checked_div(batch)?,
            None => inner_extent(places(), 0, total)?,
        };
        let batch = total.checked_div(heads).filter(|batch| batch * heads == total)?;
        // Queries that share a head of keys.
        let rows: usize =
            [&self.query.places, dst].iter().map(|at| at.extents(1).iter().product::<usize>()).max()?;
        let inner = match self.group {
            Some(group) => rows.checked_div(group)?,
            None => inner_extent(places(), 1, rows)?,
        };
        let group = rows.checked_div(inner).filter(|group| group * inner == rows)?;
        let features = |at: &Places<3>| at.extents(2).iter().product::<usize>();
        let (depth, width) = (features(&self.query.places), features(&self.value.places));
        let keys = self.key.places.extents(1).iter().product::<usize>();
        let sizes = Sizes { batch, heads, group, rows: inner, keys, depth, width };
        let query_like = |at: &Places<3>, features: usize| -> Option<RowStrides> {
            let [b, h] = at.split(0, &[batch, heads])?.try_into().ok()?;
            let [g, row] = at.split(1, &[group, inner])?.try_into().ok()?;
            let whole = at.split(2, &[features])?;
            let unit = features == 1 || whole == [1];
            unit.then_some(RowStrides { first: at.first, steps: [b, h, g, row] })
        };
        let key_like = |at: &Places<3>, features: usize| -> Option<RowStrides> {
            let [b, h] = at.split(0, &[batch, heads])?.try_into().ok()?;
            let [row] = at.split(1, &[keys])?.try_into().ok()?;
            let whole = at.split(2, &[features])?;
            let unit = features == 1 || whole == [1];
            unit.then_some(RowStrides { first: at.first, steps: [b, h, 0, row] })
        };
        let added = |operands: &Option<Operands>| -> Option<Option<Added>> {
            let Some(Operands { places: at, .. }) = operands else { return Some(None) };
            let [b, h] = at.split(0, &[batch, heads])?.try_into().ok()?;
            let [g, mut row]: [usize; 2] = at.split(1, &[group, inner])?.try_into().ok()?;
            let [mut key]: [usize; 1] = at.split(2, &[keys])?.try_into().ok()?;
            if planted("attention_bias_axes") {
                (row, key) = (key, row);
            }
            (at.first == 0 || planted("attention_bias_first"))
                .then_some(Some(Added { steps: [b, h, g, row, key] }))
        };
        let strided = Strided {
            sizes,
            query: query_like(&self.query.places, depth)?,
            key: key_like(&self.key.places, depth)?,
            value: key_like(&self.value.places, width)?,
            dst: query_like(dst, width)?,
            bias: added(&self.bias)?,
            mask: added(&self.mask)?,
            rules: self.rules,
            parts: 1,
            output: dims,
        };
        let named = [Operand::Query, Operand::Key, Operand::Value, Operand::Bias, Operand::Mask];
        let given = named.into_iter().zip(all);
        let inputs = given.filter_map(|(operand, own)| own.map(|own| (operand, own.input.clone(), own.dims)));
        let inputs = inputs.chain(self.more.iter().cloned());
        let unit = Unit::of_node(self.name.clone(), Arc::new(strided), inputs.collect(), vec![output]);
        Some(unit)
    }
}

/// The inner one of two parts that an axis of `total` elements is in, in all of `places` that have parts of it; all of it
/// where none has. `None` where they differ.
fn inner_extent<'p>(places: impl Iterator<Item = &'p Places<3>>, axis: usize, total: usize) -> Option<usize> {
    let mut found = None;
    for extents in places.map(|at| at.extents(axis)) {
        match extents[..] {
            [] | [_] => {}
            [_, inner] if found.is_none_or(|found| found == inner) => found = Some(inner),
            _ => return None,
        }
    }
    Some(found.unwrap_or(total))
}
