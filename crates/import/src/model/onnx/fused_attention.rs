//! `Attention` and `MultiHeadAttention` of com.microsoft: the standard one with other masks.
//!
//! | mask | what it says |
//! |---|---|
//! | `batch` | how many keys there are |
//! | `2 batch` | where the keys end, then where they begin |
//! | `batch keys`, `batch queries keys`, `batch 1 queries keys` | above 0 where a key is one |
//!
//! A number is added to the products with other keys, `mask_filter_value`: where it is added to all, their softmax is
//! that of the products. Keys behind the query (`unidirectional`) get the least float in its stead.

use super::import::{Import, Op};
use crate::model::build::{
    Attended, Heads, Kind, Operand, Past, Reach, Rule, appended, attend, attend_openly, cut, merged, one_of,
    product, split, stacked, with_bias,
};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;

type Done = Result<(), Reason>;

/// `Attention` of com.microsoft: one product gives queries, keys and values.
pub(super) fn fused<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    if op.flag("do_rotary", false) {
        return refused!("found do_rotary, wanted a RotaryEmbedding before the attention");
    }
    let heads = usize::try_from(op.int("num_heads", 0)).unwrap_or(0);
    let (x, weights) = (i.slot(op, 0)?, i.slot(op, 1)?);
    let mut all = product(i, "inputs", x, weights)?;
    if op.has(2) {
        let bias = i.slot(op, 2)?;
        all = i.apply("biased", Function::Add, &[all.into(), bias.into()])?;
    }
    let own = i.shape(&all)?;
    let &[batch, rows, wide] = &own[..] else { return refused!("found {own:?}, wanted rank 3") };
    let sizes = match op.ints("qkv_hidden_sizes").filter(|list| list.len() == 3) {
        Some(list) => crate::model::build::sizes(list)?,
        None => vec![wide / 3; 3],
    };
    let mut parts = Vec::new();
    let mut begin = 0;
    for size in sizes {
        let part = cut(i, "part", all.clone(), &[(0, batch, 1), (0, rows, 1), (begin, size, 1)])?;
        parts.push(split(i, part, heads)?);
        begin += size;
    }
    let Ok([q, k, v]) = <[Operand; 3]>::try_from(parts) else { return refused!("found no three parts") };
    let mut kept = CachePlaces { known: known_past(i, op, 6)?, before: 0 };
    let caches = match op.has(4) {
        true => {
            let past = i.slot(op, 4)?;
            [Some(one_of(i, "past", &past, 0, 0)?), Some(one_of(i, "past", &past, 0, 1)?)]
        }
        false => [None, None],
    };
    let [before_k, before_v] = caches;
    let [k, k_present] = kept.with(i, "keys", before_k, k)?;
    let [v, v_present] = kept.with(i, "values", before_v, v)?;
    if op.writes(1) {
        let present = stacked(i, "present", vec![k_present, v_present], 0)?;
        i.set(op, 1, present)?;
    }
    finish(i, op, Heads { q, k, v }, [3, 5], kept.before)
}

/// Keys and values of earlier runs.
struct CachePlaces {
    /// How many places of a cache there are, if it has more.
    known: Option<usize>,
    /// How many there were.
    before: usize,
}

impl CachePlaces {
    /// What a cache has and what a run adds; and the cache behind it.
    fn with(
        &mut self,
        i: &mut Import<'_>,
        part: &str,
        cache: Option<Operand>,
        new: Operand,
    ) -> Result<[Operand; 2], Reason> {
        let held = match &cache {
            Some(cache) => i.shape(cache)?.get(2).copied().unwrap_or(0),
            None => 0,
        };
        self.before = self.known.unwrap_or(held);
        let all = appended(i, part, cache.clone(), self.before, new.clone(), (None, false))?;
        let present = match self.known {
            Some(past) => appended(i, "present", cache, past, new, (Some(held), true))?,
            None => all.clone(),
        };
        Ok([all, present])
    }
}

/// How many places of its caches there are, where an input says so.
fn known_past<'a>(i: &mut Import<'a>, op: &Op<'a>, index: usize) -> Result<Option<usize>, Reason> {
    if !op.has(index) {
        return Ok(None);
    }
    let found = i.integers(op, index)?;
    let past = found.first().and_then(|&past| usize::try_from(past).ok());
    past.map(Some).ok_or_else(|| format!("found {found:?} places of earlier runs, wanted a number").into())
}

/// `MultiHeadAttention` of com.microsoft: queries, keys and values are inputs.
pub(super) fn multi_head<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    if op.has(9) {
        return refused!("found caches of several beams (cache_indirection), wanted an attention without");
    }
    if !op.has(1) || !op.has(2) {
        return refused!("found packed inputs, wanted queries, keys and values");
    }
    let heads = usize::try_from(op.int("num_heads", 0)).unwrap_or(0);
    let mut parts = Vec::new();
    let mut begin = 0;
    for index in 0..3 {
        let mut slot = i.slot(op, index)?;
        let extents = i.shape(&slot)?;
        if op.has(3) && extents.len() == 3 {
            let bias = i.slot(op, 3)?;
            let bias = cut(i, "bias", bias, &[(begin, extents[2], 1)])?;
            slot = i.apply("biased", Function::Add, &[slot.into(), bias.into()])?;
            begin += extents[2];
        }
        parts.push(split(i, slot, heads)?);
    }
    let Ok([q, k, v]) = <[Operand; 3]>::try_from(parts) else { return refused!("found no three parts") };
    let mut kept = CachePlaces { known: known_past(i, op, 8)?, before: 0 };
    let cache = |index: usize| if op.has(index) { i.slot(op, index).map(Some) } else { Ok(None) };
    let (before_k, before_v) = (cache(6)?, cache(7)?);
    let [k, k_present] = kept.with(i, "keys", before_k, k)?;
    let [v, v_present] = kept.with(i, "values", before_v, v)?;
    i.set(op, 1, k_present)?;
    i.set(op, 2, v_present)?;
    finish(i, op, Heads { q, k, v }, [4, 5], kept.before)
}

/// With a mask of keys (input `mask`) and a bias (input `more`), behind `before` places of earlier runs.
fn finish<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    heads: Heads,
    [mask, more]: [usize; 2],
    before: usize,
) -> Done {
    let own = i.shape(&heads.q)?;
    let (batch, rows, depth) = (own[0], own[2], own[3]);
    let keys = i.shape(&heads.k)?[2];
    let mut bias = None;
    if op.has(mask)
        && let Some(known) = known_keys(i, op, mask, [batch, rows, keys])?
    {
        let filter = op.number("mask_filter_value", -10_000.0);
        let own = i.apply("mask", Function::Select, &[known.into(), 0.0.into(), filter.into()])?;
        bias = Some(own.of_kind(Kind::F32));
    }
    let past = Past::Known(before);
    let behind = op.flag("unidirectional", false).then_some(0);
    let reach = Reach { rows, keys, past, before: None, behind, ends: None };
    if let Some(allowed) = reach.allowed(i)? {
        let own = bias.map_or_else(|| 0.0.into(), Into::into);
        let causal = i.apply("causal", Function::Select, &[allowed.into(), own, f32::MIN.into()])?;
        bias = Some(causal.of_kind(Kind::F32));
    }
    let attends = !op.has(more) && op.number("mask_filter_value", 0.0).is_finite();
    if op.has(more) {
        let slot = i.slot(op, more)?;
        bias = Some(with_bias(i, bias, slot)?);
    }
    let scale = match op.float("scale", 0.0) {
        0.0 => 1.0 / (depth as f32).sqrt(),
        scale => scale,
    };
    let rule = Rule { scale, softcap: 0.0, bias, reach: None, attends, sink: None };
    let output = if op.node.op == "MultiHeadAttention" && op.writes(3) {
        let Attended { output, products: [_, _, products, _] } = attend_openly(i, "heads", heads, rule)?;
        i.set(op, 3, products)?;
        output
    } else {
        attend(i, "heads", heads, rule)?
    };
    let output = merged(i, "", output)?;
    i.set(op, 0, output)
}

/// Which keys there are, of a mask at an input, broadcast to batch, head, query and key; none where it says nothing.
fn known_keys<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    mask: usize,
    [batch, rows, keys]: [usize; 3],
) -> Result<Option<Operand>, Reason> {
    let slot = i.slot(op, mask)?;
    let own = i.shape(&slot)?;
    let target = match own[..] {
        [count] if count == batch || count == 2 * batch => {
            let key = i.counted(keys, 3, 4)?;
            let mut part = |first: usize, function: Function| -> Result<Operand, Reason> {
                let ends = cut(i, "ends", slot.clone(), &[(first, batch, 1)])?;
                let ends = i.with_extents("ends", ends, &[batch, 1, 1, 1])?;
                i.apply("known", function, &[key.clone().into(), ends.into()])
            };
            let mut known = part(0, Function::Less)?;
            if count == 2 * batch {
                let begun = part(batch, Function::GreaterEqual)?;
                known = i.apply("known", Function::LogicalAnd, &[known.into(), begun.into()])?;
            }
            return Ok(Some(known));
        }
        [own, count] if own == batch && count == keys => [batch, 1, 1, keys],
        // A mask of one key for several says nothing.
        [own, 1] if own == batch || own == 1 => return Ok(None),
        [own, of, count] if own == batch && of == rows && count == keys => [batch, 1, rows, keys],
        [own, 1, of, count] if own == batch && of == rows && count == keys => [batch, 1, rows, keys],
        _ => {
            return refused!(
                "found a mask of {own:?}, wanted one of [{batch}], [{}], [{batch}, {keys}], [{batch}, {rows}, {keys}] or \
                 [{batch}, 1, {rows}, {keys}]",
                2 * batch
            );
        }
    };
    let truth = i.apply("known", Function::Greater, &[slot.into(), 0.0.into()])?;
    i.with_extents("known", truth, &target).map(Some)
}
