//! `Attention` and what belongs to it: `softmax(scale Q K^T + bias) V` of each head.

use super::import::{Import, Op};
use crate::model::build::{Arg, Kind, Operand, cut, product, reduced, swapped};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use crate::ops::reduce::Reduction;

type Done = Result<(), Reason>;

/// What is added where a query does not attend a key. No finite number does: of a row of the least ones the softmax is
/// the mean.
const MASKED: f32 = f32::NEG_INFINITY;

/// Queries, keys and values as batch, head, place, feature.
pub(super) struct Heads {
    pub(super) q: Operand,
    pub(super) k: Operand,
    pub(super) v: Operand,
}

/// What is added to the products, and what is done to them.
pub(super) struct Rule {
    pub(super) scale: f32,
    pub(super) softcap: f32,
    pub(super) bias: Option<Operand>,
}

/// What comes of it.
pub(super) struct Attended {
    pub(super) output: Operand,
    /// The products; with the soft bound; with the bias; behind the softmax.
    products: [Operand; 4],
}

/// `batch place (head feature)` as `batch head place feature`.
pub(super) fn split(i: &mut Import<'_>, slot: Operand, heads: usize) -> Result<Operand, Reason> {
    let own = i.shape(&slot)?;
    match own[..] {
        [_, _, _, _] => Ok(slot),
        [batch, places, wide] if heads > 0 && wide.is_multiple_of(heads) => {
            let slot = i.with_extents("heads", slot, &[batch, places, heads, wide / heads])?;
            i.transposed(slot, &[0, 2, 1, 3])
        }
        _ => refused!(
            "found {own:?} for {heads} heads, wanted rank 3 of features that the heads share, or rank 4"
        ),
    }
}

/// The inverse of [`split`].
pub(super) fn merged(i: &mut Import<'_>, part: &str, slot: Operand) -> Result<Operand, Reason> {
    let own = i.shape(&slot)?;
    let &[batch, heads, places, wide] = &own[..] else { return refused!("found {own:?}, wanted heads") };
    let slot = i.transposed(slot, &[0, 2, 1, 3])?;
    i.with_extents(part, slot, &[batch, places, heads * wide])
}

pub(super) fn attend(i: &mut Import<'_>, part: &str, heads: Heads, rule: Rule) -> Result<Attended, Reason> {
    let (q, k) = (i.shape(&heads.q)?, i.shape(&heads.k)?);
    let (&[batch, many, rows, depth], &[_, few, columns, _]) = (&q[..], &k[..]) else {
        return refused!("found {q:?} and {k:?}, wanted heads");
    };
    if few == 0 || !many.is_multiple_of(few) {
        return refused!("found {many} heads of queries for {few} of keys, wanted a multiple");
    }
    // Heads of queries that share one of keys are rows of one product.
    let shared = many != few;
    let turned = swapped(i, heads.k)?;
    let mut q = i.apply("scaled", Function::Mul, &[heads.q.into(), rule.scale.into()])?;
    if shared {
        q = i.with_extents("queries", q, &[batch, few, many / few * rows, depth])?;
    }
    let mut products = product(i, "products", q, turned)?;
    if shared {
        products = i.with_extents("products", products, &[batch, many, rows, columns])?;
    }
    let plain = products.clone();
    if rule.softcap > 0.0 {
        let below = i.apply("below", Function::Mul, &[products.into(), (1.0 / rule.softcap).into()])?;
        let bounded = i.apply("bounded", Function::Tanh, &[below.into()])?;
        products = i.apply("soft", Function::Mul, &[bounded.into(), rule.softcap.into()])?;
    }
    let soft = products.clone();
    if let Some(bias) = &rule.bias {
        products = i.apply("biased", Function::Add, &[products.into(), bias.clone().into()])?;
    }
    let biased = products.clone();
    let mut shares = i.softmax("shares", products)?;
    if let Some(bias) = rule.bias.filter(may_mask_rows) {
        // A query that attends nothing has no result.
        let most = match i.shape(&bias)?.len().checked_sub(1) {
            Some(last) => reduced(i, "most", bias, Reduction::Max, &[last], true)?,
            None => bias,
        };
        let attends = i.apply("attends", Function::Greater, &[most.into(), MASKED.into()])?;
        shares = i.apply("shares", Function::Select, &[attends.into(), shares.into(), 0.0.into()])?;
    }
    let mut left = shares.clone();
    if shared {
        left = i.with_extents("rows", left, &[batch, few, many / few * rows, columns])?;
    }
    let mut output = product(i, if shared { "sums" } else { part }, left, heads.v)?;
    if shared {
        let wide = i.shape(&output)?.last().copied().unwrap_or(1);
        output = i.with_extents(part, output, &[batch, many, rows, wide])?;
    }
    Ok(Attended { output, products: [plain, soft, biased, shares] })
}

/// Whether a row of the bias may mask everything.
fn may_mask_rows(bias: &Operand) -> bool {
    match bias {
        Operand::Value(_) => true,
        Operand::Constant(constant, _) => {
            let columns = constant.extents().last().copied().unwrap_or(1).max(1);
            let masked = |value: f32| value == MASKED;
            match constant {
                crate::model::constant::Constant::Floats(tensor) => {
                    tensor.to_nhwc().chunks(columns).any(|row| row.iter().all(|&value| masked(value)))
                }
                crate::model::constant::Constant::Integers(_) => false,
            }
        }
    }
}

/// What a mask adds: of booleans nothing where it is true, of numbers themselves.
fn bias_of(i: &mut Import<'_>, mask: Operand) -> Result<Operand, Reason> {
    match mask.kind() {
        Kind::Bool => i
            .apply("mask", Function::Select, &[mask.into(), 0.0.into(), MASKED.into()])
            .map(|slot| slot.of_kind(Kind::F32)),
        _ => Ok(mask),
    }
}

/// A bias on top of another.
pub(super) fn with_bias(
    i: &mut Import<'_>,
    bias: Option<Operand>,
    more: Operand,
) -> Result<Option<Operand>, Reason> {
    Ok(Some(match bias {
        None => more,
        Some(bias) => i.apply("bias", Function::Add, &[bias.into(), more.into()])?,
    }))
}

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
        if past > 0 {
            let (before_k, before_v) = (i.slot(op, 4)?, i.slot(op, 5)?);
            k = i.joined("keys", vec![before_k, k], 2)?;
            v = i.joined("values", vec![before_v, v], 2)?;
        }
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
        bias = with_bias(i, bias, more)?;
    }
    let rule = Rule {
        scale: op.float("scale", 1.0 / (depth as f32).sqrt()),
        softcap: op.float("softcap", 0.0),
        bias,
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

/// `RotaryEmbedding`: pairs of features turned by an angle of their place.
pub(super) fn rotary<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    // The operator of com.microsoft has the places in front of the angles.
    let [cosines, sines, places] = if op.node.domain.is_empty() { [1, 2, 3] } else { [2, 3, 1] };
    let x = i.slot(op, 0)?;
    let shape = i.shape(&x)?;
    let (x, flat) = match shape[..] {
        [batch, rows, wide] => {
            let heads = usize::try_from(op.int("num_heads", 0)).ok().filter(|&heads| heads > 0);
            let angles = i.extents_of(op, cosines)?.last().copied().unwrap_or(1).max(1);
            let heads = heads.unwrap_or(wide / (2 * angles).max(1)).max(1);
            (i.with_extents("heads", x, &[batch, rows, heads, wide / heads])?, true)
        }
        [_, _, _, _] => (i.transposed(x, &[0, 2, 1, 3])?, false),
        _ => return refused!("found an input of {shape:?}, wanted rank 3 or 4"),
    };
    let own = i.shape(&x)?;
    let (batch, rows, heads, wide) = (own[0], own[1], own[2], own[3]);
    let turned =
        usize::try_from(op.int("rotary_embedding_dim", 0)).ok().filter(|&turned| turned > 0).unwrap_or(wide);
    let half = turned / 2;
    let angle = |i: &mut Import<'a>, index: usize| -> Result<Operand, Reason> {
        let table = i.slot(op, index)?;
        if !op.has(places) {
            return i.with_extents("angles", table, &[batch, rows, 1, half]);
        }
        let indices = i.mapped(op, places)?;
        let indices = i.logical(&indices)?;
        let table = i.mapped_slot(table, None)?;
        let table = i.logical(&table)?;
        let value = i.add("angles", |graph, name| graph.gather(name, table, indices, 0, 0))?;
        let count = i.dims(value)?.elements() / half.max(1);
        let slot =
            Operand::Value(crate::model::build::Mapped::plain(value, i.dims(value)?.rank(), Kind::F32));
        i.with_extents("angles", slot, &[count / rows.max(1), rows, 1, half])
    };
    let (cosine, sine) = (angle(i, cosines)?, angle(i, sines)?);
    let interleaved = op.flag("interleaved", false);
    let range = |first: usize, count: usize, step: i64| {
        [(0, batch, 1), (0, rows, 1), (0, heads, 1), (first, count, step)]
    };
    let (a, b) = match interleaved {
        true => (range(0, half, 2), range(1, half, 2)),
        false => (range(0, half, 1), range(half, half, 1)),
    };
    let (a, b) = (cut(i, "a", x.clone(), &a)?, cut(i, "b", x.clone(), &b)?);
    let mut term = |function, parts: [(&Operand, &Operand); 2]| -> Result<Operand, Reason> {
        let [one, two] = parts
            .map(|(angle, x)| i.apply("turned", Function::Mul, &[angle.clone().into(), x.clone().into()]));
        i.apply("sum", function, &[one?.into(), two?.into()])
    };
    let real = term(Function::Sub, [(&cosine, &a), (&sine, &b)])?;
    let imaginary = term(Function::Add, [(&sine, &a), (&cosine, &b)])?;
    let mut result = if interleaved {
        let pair = [real, imaginary].map(|slot| i.with_extents("pair", slot, &[batch, rows, heads, half, 1]));
        let [real, imaginary] = pair;
        let both = i.joined("pairs", vec![real?, imaginary?], 4)?;
        i.with_extents("features", both, &[batch, rows, heads, turned])?
    } else {
        i.joined("features", vec![real, imaginary], 3)?
    };
    if turned < wide {
        let rest = cut(i, "rest", x, &range(turned, wide - turned, 1))?;
        result = i.joined("all", vec![result, rest], 3)?;
    }
    let result = match flat {
        true => i.with_extents("", result, &shape)?,
        false => i.transposed(result, &[0, 2, 1, 3])?,
    };
    i.set(op, 0, result)
}
