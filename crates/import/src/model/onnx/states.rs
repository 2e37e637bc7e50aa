//! Operators that take what earlier tokens left, and leave it to the next ones.

use super::import::{Import, Op};
use crate::model::build::{Arg, Mapped, Operand, axis, cut, is_kept, kept_with, product, swapped};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function as F;

type Done = Result<(), Reason>;

/// The most tokens of a recurrence, each of which is a dozen nodes.
const MAX_TOKENS: usize = 1024;

/// The most taps of a causal convolution, each of which is two nodes.
const MAX_TAPS: usize = 256;

/// `CausalConvWithState`: each channel's taps over the last elements of it, those of the state first.
pub(super) fn causal<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let (own, weights) = (i.extents_of(op, 0)?, i.extents_of(op, 1)?);
    let (&[n, c, length], &[of, 1, taps]) = (&own[..], &weights[..]) else {
        return refused!("found weights of {weights:?} for {own:?}, wanted one filter for each channel");
    };
    if of != c || taps == 0 || taps > MAX_TAPS {
        return refused!("found weights of {weights:?} for {own:?}, wanted 1 to {MAX_TAPS} taps a channel");
    }
    let x = i.slot(op, 0)?;
    let kind = x.kind();
    let state = match (taps, op.has(3)) {
        (1, _) => None,
        (_, true) => Some(i.slot(op, 3)?),
        (_, false) => Some(i.filled(&[n, c, taps - 1], 0.0)?),
    };
    let all = match state {
        Some(state) => i.joined("all", vec![state, x], 2)?,
        None => x,
    };
    let filter = i.slot(op, 1)?;
    let mut sum: Option<Arg> = None;
    for tap in 0..taps {
        let part = cut(i, "tap", all.clone(), &[(0, n, 1), (0, c, 1), (tap, length, 1)])?;
        let weight = cut(i, "weight", filter.clone(), &[(0, c, 1), (0, 1, 1), (tap, 1, 1)])?;
        let weight = i.with_extents("weight", weight, &[c, 1])?;
        let term = i.apply("term", F::Mul, &[part.into(), weight.into()])?.into();
        sum = Some(match sum {
            None => term,
            Some(sum) => i.apply("sum", F::Add, &[sum, term])?.into(),
        });
    }
    let mut sum = sum.ok_or("found no taps")?;
    if op.has(2) {
        let bias = i.slot(op, 2)?;
        let bias = i.with_extents("bias", bias, &[c, 1])?;
        sum = i.apply("biased", F::Add, &[sum, bias.into()])?.into();
    }
    let y = match op.text("activation", "none")? {
        "none" | "" => i.apply("", F::Mul, &[sum, 1.0.into()])?,
        "silu" | "swish" => {
            let share = i.apply("share", F::Sigmoid, std::slice::from_ref(&sum))?;
            i.apply("", F::Mul, &[sum, share.into()])?
        }
        other => return refused!("found activation {other:?}, wanted none, silu or swish"),
    };
    i.set(op, 0, y.of_kind(kind))?;
    if op.writes(1) {
        let last = cut(i, "state", all, &[(0, n, 1), (0, c, 1), (length, taps - 1, 1)])?;
        i.set(op, 1, last)?;
    }
    Ok(())
}

/// `TensorScatter`: an update written into a cache along one axis, from each batch's own place on.
pub(super) fn write_into<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let (own, update) = (i.extents_of(op, 0)?, i.extents_of(op, 1)?);
    let place = axis(op.int("axis", -2), own.len())?;
    let fits = own.len() == update.len()
        && own
            .iter()
            .zip(&update)
            .enumerate()
            .all(|(axis, (a, b))| if axis == place { b <= a } else { a == b });
    if place == 0 || !fits {
        return refused!(
            "found an update of {update:?} for a cache of {own:?} along axis {place}, wanted the same other extents"
        );
    }
    let (batch, whole, count) = (own[0], own[place], update[place]);
    let circular = match op.text("mode", "linear")? {
        "linear" => false,
        "circular" => true,
        other => return refused!("found mode {other:?}, wanted linear or circular"),
    };
    let (cache, more) = (i.slot(op, 0)?, i.slot(op, 1)?);
    if !circular && place + 2 == own.len() && is_kept(i, &cache) {
        let first = match op.has(2) {
            true => i.slot(op, 2)?,
            false => Operand::integers(vec![1], vec![0]),
        };
        let all = kept_with(i, "", &cache, more, Some(first))?;
        return i.set(op, 0, all);
    }
    let first: Arg = match op.has(2) {
        true => {
            let slot = i.slot(op, 2)?;
            i.with_extents("first", slot, &[batch, 1])?.into()
        }
        false => 0.0.into(),
    };
    let at: Arg = i.counted(whole, 1, 2)?.into();
    let mut source: Arg = i.apply("source", F::Sub, &[at.clone(), first])?.into();
    if circular {
        source = i.apply("source", F::FloorMod, &[source, (whole as f32).into()])?.into();
    }
    let low = i.apply("from", F::GreaterEqual, &[source.clone(), 0.0.into()])?;
    let high = i.apply("to", F::Less, &[source.clone(), (count as f32).into()])?;
    let within = i.apply("within", F::LogicalAnd, &[low.into(), high.into()])?;
    let moved = i.apply("moved", F::Add, &[source, (whole as f32).into()])?;
    let index = i.apply("index", F::Select, &[within.into(), moved.into(), at])?;
    let index = match i.shape(&index)?[0] {
        one if one == batch => index,
        _ => {
            i.budget.spend(batch.saturating_mul(16))?;
            let ones = Operand::integers(vec![batch, 1], vec![0; batch]);
            i.apply("index", F::Add, &[ones.into(), index.into()])?
        }
    };
    let kind = cache.kind();
    let both = i.joined("both", vec![cache, more], place)?;
    let (both, index) = (i.mapped_slot(both, None)?, i.mapped_slot(index, None)?);
    let (both, index) = (i.logical(&both)?, i.logical(&index)?);
    let value = i.add("", |graph, name| graph.gather(name, both, index, place as isize, 1))?;
    i.write(op, 0, Mapped::plain(value, own.len(), kind))
}

/// `LinearAttention`: a state of each head, decayed, corrected and read token by token.
pub(super) fn linear<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let count = |name: &str| usize::try_from(op.int(name, 0)).ok().filter(|&count| count > 0);
    let (Some(many), Some(few)) = (count("q_num_heads"), count("kv_num_heads")) else {
        return refused!("found no numbers of heads, wanted q_num_heads and kv_num_heads");
    };
    let (q, k, v) = (i.extents_of(op, 0)?, i.extents_of(op, 1)?, i.extents_of(op, 2)?);
    let (&[batch, tokens, q_wide], &[_, _, k_wide], &[_, _, v_wide]) = (&q[..], &k[..], &v[..]) else {
        return refused!("found {q:?}, {k:?} and {v:?}, wanted rank 3");
    };
    let (depth, wide, group) = (k_wide / few, v_wide / few, many / few);
    if k_wide != few * depth || v_wide != few * wide || many != few * group || q_wide != many * depth {
        return refused!(
            "found {q:?}, {k:?} and {v:?} for {many} and {few} heads, wanted features that the heads share"
        );
    }
    if tokens > MAX_TOKENS {
        return refused!("found {tokens} tokens, wanted at most {MAX_TOKENS}");
    }
    let (decays, corrects) = match op.text("update_rule", "gated_delta")? {
        "linear" => (false, false),
        "gated" => (true, false),
        "delta" => (false, true),
        "gated_delta" => (true, true),
        other => return refused!("found update_rule {other:?}"),
    };
    let scale = match op.float("scale", 0.0) {
        0.0 => 1.0 / (depth as f32).sqrt(),
        scale => scale,
    };
    let mut state = if op.has(3) { i.slot(op, 3)? } else { i.filled(&[batch, few, depth, wide], 0.0)? };
    let decay = match decays {
        true => {
            let slot = i.slot(op, 4)?;
            Some(i.apply("decay", F::Exp, &[slot.into()])?)
        }
        false => None,
    };
    let rate = if corrects { Some(i.slot(op, 5)?) } else { None };
    let (q, k, v) = (i.slot(op, 0)?, i.slot(op, 1)?, i.slot(op, 2)?);
    // One token's part of an input, in other dimensions.
    let token =
        |i: &mut Import<'a>, slot: &Operand, at: usize, target: &[usize]| -> Result<Operand, Reason> {
            let last = i.shape(slot)?.last().copied().unwrap_or(1);
            let part = cut(i, "token", slot.clone(), &[(0, batch, 1), (at, 1, 1), (0, last, 1)])?;
            i.with_extents("token", part, target)
        };
    let mut rows = Vec::with_capacity(tokens);
    for at in 0..tokens {
        let query = token(i, &q, at, &[batch, few, group, depth])?;
        let key = token(i, &k, at, &[batch, few, 1, depth])?;
        let mut value = token(i, &v, at, &[batch, few, 1, wide])?;
        if let Some(decay) = &decay {
            let each = i.shape(decay)?.last() == Some(&few) && depth != 1;
            let decay = token(i, decay, at, &[batch, few, if each { 1 } else { depth }, 1])?;
            state = i.apply("decayed", F::Mul, &[state.into(), decay.into()])?;
        }
        if let Some(rate) = &rate {
            let known = product(i, "known", key.clone(), state.clone())?;
            let missing = i.apply("missing", F::Sub, &[value.into(), known.into()])?;
            let heads = if i.shape(rate)?.last() == Some(&few) { few } else { 1 };
            let rate = token(i, rate, at, &[batch, heads, 1, 1])?;
            value = i.apply("update", F::Mul, &[missing.into(), rate.into()])?;
        }
        let key = swapped(i, key)?;
        let outer = i.apply("outer", F::Mul, &[key.into(), value.into()])?;
        state = i.apply("state", F::Add, &[state.into(), outer.into()])?;
        let read = product(i, "read", query, state.clone())?;
        rows.push(i.with_extents("row", read, &[batch, 1, many * wide])?);
    }
    let all = if rows.len() == 1 { rows.swap_remove(0) } else { i.joined("rows", rows, 1)? };
    let y = i.apply("", F::Mul, &[all.into(), scale.into()])?;
    i.set(op, 0, y)?;
    i.set(op, 1, state)
}
