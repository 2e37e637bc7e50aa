//! `GroupQueryAttention` of com.microsoft: heads of queries share those of keys and values, which are kept from one run
//! to the next.
//!
//! `total_sequence_length` is known while the file is read: it decides how many places the caches have behind a run.
//! `seqlens_k` is not: what is read and written where batches have different numbers of places follows its values at
//! each run. Of one batch, and in the first run, the total says how many places came before.

use super::import::{Import, Op};
use crate::model::build::{
    Angles, Heads, Kind, Lengths, Operand, Past, Reach, Rule, appended, appended_each, attend, columns,
    converted, index_of_each, is_kept, kept_places, kept_with, known_places, merged, part_of, places_from,
    root_mean_square, turned,
};
use crate::model::constant::elements_of;
use crate::model::reason::Reason;
use crate::ops::elementwise::Function as F;

type Done = Result<(), Reason>;

/// The inputs by their names.
const PAST: [usize; 2] = [3, 4];
const LENGTHS: usize = 5;
const TOTAL: usize = 6;
const ANGLES: [usize; 2] = [7, 8];
const PLACES: usize = 9;
const BIAS: usize = 10;
const SINK: usize = 11;
const SCALES: [usize; 2] = [12, 13];
const NORMS: [usize; 2] = [14, 15];
const ROWS: usize = 16;

/// Heads, at most.
const MAX_HEADS: usize = 1 << 16;

/// The extents of a run.
#[derive(Clone, Copy)]
struct Extents {
    batch: usize,
    rows: usize,
    /// Places in all.
    total: usize,
}

/// Where the places of the run lie.
enum Begin {
    /// Behind as many in each batch.
    Known(usize),
    /// Behind another number of places in each.
    Each(Lengths),
}

pub(super) fn grouped<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    check(op)?;
    let count =
        |name: &str| usize::try_from(op.int(name, 0)).ok().filter(|&count| count <= MAX_HEADS).unwrap_or(0);
    let heads = [count("num_heads"), count("kv_num_heads")];
    let [mut q, mut k, v] = inputs(i, op, heads)?;
    let own = i.shape(&q)?;
    let (batch, rows, depth) = (own[0], own[1], own[3]);
    let held = match op.has(PAST[0]) {
        true => i.extents_of(op, PAST[0])?.get(2).copied().unwrap_or(0),
        false => 0,
    };
    let kept = match op.has(PAST[0]) {
        true => i.slot(op, PAST[0]).and_then(|cache| kept_places(i, &cache))?,
        false => None,
    };
    // A cache that the graph keeps has all places that there ever are; how many are filled a run says.
    let total = match kept {
        Some(places) => places,
        None => total(i, op, rows)?,
    };
    let extents = Extents { batch, rows, total };
    // Of one batch the total says the same.
    let ends = if kept.is_some() || batch > 1 || op.has(ROWS) { Some(ends(i, op, batch)?) } else { None };
    let begin = begin(i, op, extents, ends.as_ref())?;
    q = normalised(i, op, q, (NORMS[0], "q_norm_epsilon"))?;
    k = normalised(i, op, k, (NORMS[1], "k_norm_epsilon"))?;
    if op.flag("do_rotary", false) {
        let at = places(i, op, extents, &begin)?;
        let tables = [i.slot(op, ANGLES[0])?, i.slot(op, ANGLES[1])?];
        let pairs = i.shape(&tables[0])?.last().copied().unwrap_or(0);
        let angles = Angles::new(i, tables, Some(&at), (pairs, op.flag("rotary_interleaved", false)))?;
        q = turned(i, q, &angles)?;
        k = turned(i, k, &angles)?;
    }
    let q = i.transposed(q, &[0, 2, 1, 3])?;
    let mut kept = Vec::new();
    for (index, new) in [k, v].into_iter().enumerate() {
        let new = i.transposed(new, &[0, 2, 1, 3])?;
        let present = present(i, op, index, new, &begin, [held, total.max(held)])?;
        kept.push(part_of(i, "places", &present, 2, [0, total])?);
        i.set(op, 1 + index, present)?;
    }
    let Ok([k, v]) = <[Operand; 2]>::try_from(kept) else { return refused!("found no keys and values") };
    let (causal, window) = (op.flag("causal", true), op.int("local_window_size", -1));
    let reach = Reach {
        rows,
        keys: total,
        past: match &begin {
            Begin::Known(past) => Past::Known(*past),
            Begin::Each(lengths) => Past::Each(&lengths.past),
        },
        before: usize::try_from(window - 1).ok(),
        behind: causal.then_some(0),
        ends: ends.as_ref().filter(|_| rows > 1 || !causal),
    };
    // Behind the last key there may be none within a window.
    let attends = !op.has(BIAS) && (reach.before.is_none() || reach.ends.is_none());
    let bias = if op.has(BIAS) { Some(bias(i, op, total)?) } else { None };
    let sink = sink(i, op, heads[0])?;
    let scale = match op.float("scale", 0.0) {
        0.0 => 1.0 / (depth as f32).sqrt(),
        scale => scale,
    };
    let rule = Rule { scale, softcap: op.float("softcap", 0.0), bias, reach: Some(reach), attends, sink };
    let output = attend(i, "heads", Heads { q, k, v }, rule)?;
    let output = merged(i, "", output)?;
    i.set(op, 0, output)
}

/// Queries or keys, normalised where the operator has weights for it.
fn normalised<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    slot: Operand,
    (weights, option): (usize, &str),
) -> Result<Operand, Reason> {
    if !op.has(weights) {
        return Ok(slot);
    }
    let epsilon = op.float(option, op.float("qk_norm_epsilon", 1e-6));
    let weights = i.slot(op, weights)?;
    root_mean_square(i, "normal", slot, &[3], epsilon, Some(weights))
}

/// The keys (`index` 0) or values of earlier runs with the new ones behind them: `held` places before, `extent` after.
fn present<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    index: usize,
    new: Operand,
    begin: &Begin,
    [held, extent]: [usize; 2],
) -> Result<Operand, Reason> {
    let cache = if op.has(PAST[index]) { Some(i.slot(op, PAST[index])?) } else { None };
    let part = if index == 0 { "keys" } else { "values" };
    match begin {
        Begin::Known(past) => appended(i, part, cache, *past, new, (Some(extent), false)),
        Begin::Each(lengths) if cache.as_ref().is_some_and(|cache| is_kept(i, cache)) => {
            let cache = cache.ok_or("found no cache")?;
            kept_with(i, part, &cache, new, Some(lengths.past.clone()))
        }
        Begin::Each(lengths) => {
            let index = index_of_each(i, lengths, held, extent)?;
            appended_each(i, part, cache, new, &index)
        }
    }
}

/// What is added to the scores of so many keys.
fn bias<'a>(i: &mut Import<'a>, op: &Op<'a>, total: usize) -> Result<Operand, Reason> {
    let bias = i.slot(op, BIAS)?;
    match i.shape(&bias)?.last() {
        Some(&wide) if wide > total => columns(i, "bias", &bias, 0, total),
        _ => Ok(bias),
    }
}

/// A further score of each head, which stands for no key.
fn sink<'a>(i: &mut Import<'a>, op: &Op<'a>, heads: usize) -> Result<Option<Operand>, Reason> {
    Ok(match (op.has(SINK), op.int("smooth_softmax", 0) > 0) {
        (true, _) => {
            let sink = i.slot(op, SINK)?;
            Some(i.with_extents("sink", sink, &[1, heads, 1, 1])?)
        }
        (false, true) => Some(i.filled(&[1, 1, 1, 1], 0.0)?),
        (false, false) => None,
    })
}

/// How many places there are in all.
fn total<'a>(i: &mut Import<'a>, op: &Op<'a>, rows: usize) -> Result<usize, Reason> {
    let total = i.integers(op, TOTAL)?;
    let known = total.first().and_then(|&total| usize::try_from(total).ok()).filter(|&total| total >= rows);
    Ok(known.ok_or_else(|| format!("found {total:?} places in all, wanted at least {rows}"))?)
}

/// Refuses what is not computed.
fn check(op: &Op<'_>) -> Done {
    for option in ["k_quant_type", "v_quant_type"] {
        let found = op.text(option, "NONE")?;
        if found != "NONE" {
            return refused!("found {option} {found:?}, wanted caches of floats");
        }
    }
    if SCALES.iter().any(|&index| op.has(index)) {
        return refused!("found scales of caches, wanted caches of floats");
    }
    if op.flag("sliding_window_cache", false) {
        return refused!("found caches of a window (sliding_window_cache), wanted ones of all places");
    }
    if op.writes(3) {
        return refused!("found an output of products (qk_output), wanted none");
    }
    let window = op.int("local_window_size", -1);
    if window == 0 || window > 0 && !op.flag("causal", true) {
        return refused!("found a window of {window} keys, wanted one of some before the query, or none");
    }
    Ok(())
}

/// Queries, keys and values as batch, place, head, feature.
fn inputs<'a>(i: &mut Import<'a>, op: &Op<'a>, [many, few]: [usize; 2]) -> Result<[Operand; 3], Reason> {
    let x = i.slot(op, 0)?;
    let own = i.shape(&x)?;
    let packed = !op.has(1) && !op.has(2);
    let shares = if packed { many + 2 * few } else { many };
    let &[batch, rows, wide] = &own[..] else {
        return refused!("found queries of {own:?}, wanted batch, place and features");
    };
    if many == 0 || few == 0 || !many.is_multiple_of(few) || !wide.is_multiple_of(shares) {
        return refused!("found {wide} features for {many} heads that share {few}, wanted a multiple");
    }
    let depth = wide / shares;
    let [q, k, v] = match packed {
        true => {
            let mut part = |first: usize, heads: usize| columns(i, "part", &x, first * depth, heads * depth);
            [part(0, many), part(many, few), part(many + few, few)]
        }
        false => [Ok(x), i.slot(op, 1), i.slot(op, 2)],
    };
    let mut split = |slot: Result<Operand, Reason>, heads: usize| -> Result<Operand, Reason> {
        let slot = slot?;
        let own = i.shape(&slot)?;
        match own[..] {
            [of, places, wide] if of == batch && places == rows && wide.is_multiple_of(heads) => {
                i.with_extents("heads", slot, &[batch, rows, heads, wide / heads])
            }
            _ => {
                refused!("found {own:?} beside queries of {batch} batches and {rows} places, wanted as many")
            }
        }
    };
    Ok([split(q, many)?, split(k, few)?, split(v, few)?])
}

/// How many places each batch has in all: `batch 1`.
fn ends<'a>(i: &mut Import<'a>, op: &Op<'a>, batch: usize) -> Result<Operand, Reason> {
    let last = i.slot(op, LENGTHS)?;
    i.once("ends", &[&last], |b| {
        let last = converted(b, last.clone(), Kind::F32)?;
        let last = b.with_extents("lengths", last, &[batch, 1])?;
        b.apply("lengths", F::Add, &[last.into(), 1.0.into()])
    })
}

/// Where the places of the run begin.
fn begin<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    Extents { batch, rows, total }: Extents,
    ends: Option<&Operand>,
) -> Result<Begin, Reason> {
    let ends = match ends {
        Some(ends) if total > rows || op.has(ROWS) => ends.clone(),
        _ => return Ok(Begin::Known(total - rows)),
    };
    let past = match op.has(ROWS) {
        true => {
            let valid = i.slot(op, ROWS)?;
            i.once("past of rows", &[&ends, &valid], |b| {
                let valid = converted(b, valid.clone(), Kind::F32)?;
                let valid = b.with_extents("rows", valid, &[batch, 1])?;
                b.apply("past", F::Sub, &[ends.clone().into(), valid.into()])
            })?
        }
        false => i.once(&format!("past of {rows}"), &[&ends], |b| {
            let past = b.apply("past", F::Sub, &[ends.clone().into(), (rows as f32).into()])?;
            b.apply("past", F::Maximum, &[past.into(), 0.0.into()])
        })?,
    };
    Ok(Begin::Each(Lengths { past, total: ends }))
}

/// The places by which queries and keys are turned.
fn places<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    Extents { batch, rows, total }: Extents,
    begin: &Begin,
) -> Result<Operand, Reason> {
    if !op.has(PLACES) {
        return match begin {
            Begin::Known(past) => known_places(i, *past, rows),
            Begin::Each(lengths) => places_from(i, &lengths.past, rows),
        };
    }
    let given = i.slot(op, PLACES)?;
    // In the first run the first one says where all begin.
    let is_first = total == rows && !op.has(ROWS);
    i.once(&format!("places {is_first} of {rows}"), &[&given], |b| {
        if !is_first {
            return b.with_extents("places", given.clone(), &[batch, rows]);
        }
        let count = elements_of(&b.shape(&given)?)?;
        let given = b.with_extents("places", given.clone(), &[1, count])?;
        let first = columns(b, "first", &given, 0, 1)?;
        places_from(b, &first, rows)
    })
}
