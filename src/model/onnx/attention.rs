//! `Attention`: `softmax(scale Q K^T + bias) V` of each head.

use super::import::{Import, Op};
use crate::model::build::{
    Arg, Attended, Heads, MASKED, Operand, Rule, attend, bias_of, merged, split, with_bias,
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
        k = i.joined("keys", vec![before_k, k], 2)?;
        v = i.joined("values", vec![before_v, v], 2)?;
    }
    i.set(op, 1, k.clone())?;
    i.set(op, 2, v.clone())?;
    let own = i.shape(&q)?;
    let (rows, depth) = (own[2], own[3]);
    let columns = i.shape(&k)?[2];
    let mut bias = None;
    if op.has(3) {
        let mask = i.slot(op, 3)?;
        let mut mask = bias_of(i, mask)?;
        // Keys that the mask does not know are not attended.
        let extents = i.shape(&mask)?;
        let known = extents.last().copied().unwrap_or(columns);
        if known < columns {
            let mut more = extents.clone();
            if let Some(last) = more.last_mut() {
                *last = columns - known;
            }
            let more = i.filled(&more, MASKED)?;
            mask = i.joined("mask", vec![mask, more], extents.len() - 1)?;
        }
        bias = Some(mask);
    }
    let lengths = if op.has(6) { Some(i.slot(op, 6)?) } else { None };
    // How far the queries are behind the first key.
    let offset: Arg = match &lengths {
        Some(lengths) => {
            let batch = own[0];
            let lengths = i.with_extents("lengths", lengths.clone(), &[batch, 1, 1, 1])?;
            i.apply("offset", Function::Sub, &[lengths.into(), (rows as f32).into()])?.into()
        }
        None => Operand::integers(Vec::new(), vec![past as i64]).into(),
    };
    let (key, query): (Arg, Arg) = (i.counted(columns, 1, 2)?.into(), i.counted(rows, 0, 2)?.into());
    let place: Arg = i.apply("place", Function::Add, &[query, offset])?.into();
    let (left, right) = (op.int("left_window_size", -1), op.int("right_window_size", -1));
    let mut allowed = Vec::new();
    if op.flag("is_causal", false) {
        allowed.push(i.apply("allowed", Function::LessEqual, &[key.clone(), place.clone()])?);
    }
    if left >= 0 {
        let first = i.apply("first", Function::Sub, &[place.clone(), (left as f32).into()])?;
        allowed.push(i.apply("allowed", Function::GreaterEqual, &[key.clone(), first.into()])?);
    }
    if right >= 0 {
        let last = i.apply("last", Function::Add, &[place, (right as f32).into()])?;
        allowed.push(i.apply("allowed", Function::LessEqual, &[key.clone(), last.into()])?);
    }
    if let Some(lengths) = lengths {
        let lengths = i.with_extents("lengths", lengths, &[own[0], 1, 1, 1])?;
        allowed.push(i.apply("allowed", Function::Less, &[key, lengths.into()])?);
    }
    for mask in allowed {
        let more = bias_of(i, mask)?;
        bias = Some(with_bias(i, bias, more)?);
    }
    let rule = Rule {
        scale: op.float("scale", 1.0 / (depth as f32).sqrt()),
        softcap: op.float("softcap", 0.0),
        bias,
        attends: false,
        sink: None,
    };
    let part = if flat { "heads" } else { "" };
    let Attended { mut output, products } = attend(i, part, Heads { q, k, v }, rule)?;
    if flat {
        output = merged(i, "", output)?;
    }
    i.set(op, 0, output)?;
    if op.writes(3) {
        let [plain, soft, biased, shares] = products;
        let wanted = match op.int("qk_matmul_output_mode", 0) {
            0 => plain,
            1 => soft,
            2 => biased,
            3 => shares,
            other => return refused!("found qk_matmul_output_mode {other}, wanted 0 to 3"),
        };
        i.set(op, 3, wanted)?;
    }
    Ok(())
}
