//! `Attention`: `softmax(scale Q K^T + bias) V` of each head.

use super::import::{Import, Op};
use crate::model::build::{
    Attended, Heads, Kind, MASKED, Operand, Past, Reach, Rule, appended, attend, attend_openly, bias_of,
    converted, merged, split,
};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;

type Done = Result<(), Reason>;

/// The standard operator, of version 23 on.
pub(super) fn attention<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let count = |name: &str| usize::try_from(op.int(name, 0)).unwrap_or(0);
    let (q, k, v) = (i.slot(op, 0)?, i.slot(op, 1)?, i.slot(op, 2)?);
    let flat = i.shape(&q)?.len() == 3;
    let q = split(i, q, count("q_num_heads"))?;
    let (mut k, mut v) = (split(i, k, count("kv_num_heads"))?, split(i, v, count("kv_num_heads"))?);
    let mut past = 0;
    if op.has(4) && op.has(5) {
        past = i.extents_of(op, 4)?.get(2).copied().unwrap_or(0);
        let (before_k, before_v) = (i.slot(op, 4)?, i.slot(op, 5)?);
        k = appended(i, "keys", Some(before_k), past, k, (None, false))?;
        v = appended(i, "values", Some(before_v), past, v, (None, false))?;
    }
    i.set(op, 1, k.clone())?;
    i.set(op, 2, v.clone())?;
    let own = i.shape(&q)?;
    let (rows, depth) = (own[2], own[3]);
    let columns = i.shape(&k)?[2];
    let bias = if op.has(3) { Some(mask(i, op, columns)?) } else { None };
    let ends = match op.has(6) {
        true => {
            let ends = i.slot(op, 6)?;
            let ends = converted(i, ends, Kind::F32)?;
            Some(i.with_extents("lengths", ends, &[own[0], 1])?)
        }
        false => None,
    };
    // How far the queries are behind the first key.
    let offset = match &ends {
        Some(ends) => Some(i.apply("offset", Function::Sub, &[ends.clone().into(), (rows as f32).into()])?),
        None => None,
    };
    let window = |name: &str| usize::try_from(op.int(name, -1)).ok();
    let reach = Reach {
        rows,
        keys: columns,
        past: offset.as_ref().map_or(Past::Known(past), Past::Each),
        before: window("left_window_size"),
        behind: if op.flag("is_causal", false) { Some(0) } else { window("right_window_size") },
        ends: ends.as_ref(),
    };
    let attends = !op.has(3) && reach.attends();
    let rule = Rule {
        scale: op.float("scale", 1.0 / (depth as f32).sqrt()),
        softcap: op.float("softcap", 0.0),
        bias,
        reach: Some(reach),
        attends,
        sink: None,
    };
    let part = if flat { "heads" } else { "" };
    let heads = Heads { q, k, v };
    let mut output =
        if op.writes(3) { attended_openly(i, op, part, heads, rule)? } else { attend(i, part, heads, rule)? };
    if flat {
        output = merged(i, "", output)?;
    }
    i.set(op, 0, output)
}

/// What the mask adds to the scores of so many keys.
fn mask<'a>(i: &mut Import<'a>, op: &Op<'a>, columns: usize) -> Result<Operand, Reason> {
    let mask = i.slot(op, 3)?;
    let mask = bias_of(i, mask)?;
    // Keys that the mask does not know are not attended.
    let extents = i.shape(&mask)?;
    let known = extents.last().copied().unwrap_or(columns);
    if known >= columns {
        return Ok(mask);
    }
    let mut more = extents.clone();
    if let Some(last) = more.last_mut() {
        *last = columns - known;
    }
    let more = i.filled(&more, MASKED)?;
    i.joined("mask", vec![mask, more], extents.len() - 1)
}

/// An attention that gives its scores too, as they are at one of four stages.
fn attended_openly<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    part: &str,
    heads: Heads,
    rule: Rule<'_>,
) -> Result<Operand, Reason> {
    let Attended { output, products: [plain, soft, biased, shares] } = attend_openly(i, part, heads, rule)?;
    let wanted = match op.int("qk_matmul_output_mode", 0) {
        0 => plain,
        1 => soft,
        2 => biased,
        3 => shares,
        other => return refused!("found qk_matmul_output_mode {other}, wanted 0 to 3"),
    };
    i.set(op, 3, wanted)?;
    Ok(output)
}
