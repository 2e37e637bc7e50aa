//! Attention: `softmax(scale Q K^T + bias) V` of each head.

use super::builder::Builder;
use super::masks::{MASKED, Past, Reach};
use super::moves::{columns, spread};
use super::operand::{Mapped, Operand};
use super::products::{product, swapped};
use super::reductions::reduced;
use crate::emit::Bits;
use crate::graph::{AttentionInputs, Value};
use crate::model::constant::Constant;
use crate::model::reason::Reason;
use crate::ops::attention::Attention;
use crate::ops::elementwise::Function;
use crate::ops::reduce::Reduction;

/// Queries, keys and values as batch, head, place, feature.
pub(crate) struct Heads {
    pub(crate) q: Operand,
    pub(crate) k: Operand,
    pub(crate) v: Operand,
}

/// What is added to the products, and what is done to them.
pub(crate) struct Rule<'o> {
    pub(crate) scale: f32,
    pub(crate) softcap: f32,
    pub(crate) bias: Option<Operand>,
    /// Which keys a query attends by its place.
    pub(crate) reach: Option<Reach<'o>>,
    /// Whether each query is known to attend some key.
    pub(crate) attends: bool,
    /// A product with a key that has no value, of each head: `1 heads 1 1`.
    pub(crate) sink: Option<Operand>,
}

/// What comes of it.
pub(crate) struct Attended {
    pub(crate) output: Operand,
    /// The products; with the soft bound; with the bias; behind the softmax.
    pub(crate) products: [Operand; 4],
}

/// `batch place (head feature)` as `batch head place feature`.
pub(crate) fn split(b: &mut Builder, slot: Operand, heads: usize) -> Result<Operand, Reason> {
    let own = b.shape(&slot)?;
    match own[..] {
        [_, _, _, _] => Ok(slot),
        [batch, places, wide] if heads > 0 && wide.is_multiple_of(heads) => {
            let slot = b.with_extents("heads", slot, &[batch, places, heads, wide / heads])?;
            b.transposed(slot, &[0, 2, 1, 3])
        }
        _ => refused!(
            "found {own:?} for {heads} heads, wanted rank 3 of features that the heads share, or rank 4"
        ),
    }
}

/// The inverse of [`split`].
pub(crate) fn merged(b: &mut Builder, part: &str, slot: Operand) -> Result<Operand, Reason> {
    let own = b.shape(&slot)?;
    let &[batch, heads, places, wide] = &own[..] else { return refused!("found {own:?}, wanted heads") };
    let slot = b.transposed(slot, &[0, 2, 1, 3])?;
    b.with_extents(part, slot, &[batch, places, heads * wide])
}

/// The attention of `heads`, as one node.
pub(crate) fn attend(b: &mut Builder, part: &str, heads: Heads, rule: Rule<'_>) -> Result<Operand, Reason> {
    if rule.sink.is_some() {
        return attend_openly(b, part, heads, rule).map(|attended| attended.output);
    }
    let kind = b.mapped(heads.q.clone())?.kind;
    let [query, key, value] = [value_of(b, heads.q)?, value_of(b, heads.k)?, value_of(b, heads.v)?];
    let Rule { scale, softcap, bias, reach, .. } = rule;
    let mut options =
        Attention { scale: Some(Bits(scale)), softcap: Bits(softcap.max(0.0)), ..Attention::default() };
    let mut inputs = AttentionInputs::default();
    if let Some(bias) = bias {
        inputs.bias = Some(value_of(b, bias)?);
    }
    if let Some(reach) = &reach {
        (options.before, options.behind) = reach.needed();
        if let Some(ends) = reach.ends {
            inputs.ends = Some(value_of(b, ends.clone())?);
        }
        match reach.past {
            // Nothing is counted from the first query.
            _ if options.before.is_none() && options.behind.is_none() => {}
            Past::Known(past) => options.begin = past,
            Past::Each(past) => inputs.begins = Some(value_of(b, past.clone())?),
        }
    }
    let value = b.add(part, |graph, name| graph.attention(name, [query, key, value], inputs, options))?;
    Ok(Operand::Value(Mapped::plain(value, 4, kind)))
}

/// A slot as a value whose axes are in order.
fn value_of(b: &mut Builder, slot: Operand) -> Result<Value, Reason> {
    let mapped = b.mapped(slot)?;
    b.logical(&mapped)
}

/// The attention of `heads`, as a node for each step: so the products between the steps are values of the graph too.
pub(crate) fn attend_openly(
    b: &mut Builder,
    part: &str,
    heads: Heads,
    mut rule: Rule<'_>,
) -> Result<Attended, Reason> {
    if let Some(reach) = &rule.reach
        && let Some(more) = reach.bias(b)?
    {
        rule.bias = Some(with_bias(b, rule.bias, more)?);
    }
    let (q, k) = (b.shape(&heads.q)?, b.shape(&heads.k)?);
    let (&[batch, many, rows, depth], &[_, few, keys, _]) = (&q[..], &k[..]) else {
        return refused!("found {q:?} and {k:?}, wanted heads");
    };
    if few == 0 || !many.is_multiple_of(few) {
        return refused!("found {many} heads of queries for {few} of keys, wanted a multiple");
    }
    // Heads of queries that share one of keys are rows of one product.
    let shared = many != few;
    let turned = swapped(b, heads.k)?;
    let mut q = b.apply("scaled", Function::Mul, &[heads.q.into(), rule.scale.into()])?;
    if shared {
        q = b.with_extents("queries", q, &[batch, few, many / few * rows, depth])?;
    }
    let mut products = product(b, "products", q, turned)?;
    if shared {
        products = b.with_extents("products", products, &[batch, many, rows, keys])?;
    }
    let plain = products.clone();
    if rule.softcap > 0.0 {
        let below = b.apply("below", Function::Mul, &[products.into(), (1.0 / rule.softcap).into()])?;
        let bounded = b.apply("bounded", Function::Tanh, &[below.into()])?;
        products = b.apply("soft", Function::Mul, &[bounded.into(), rule.softcap.into()])?;
    }
    let soft = products.clone();
    if let Some(bias) = &rule.bias {
        products = b.apply("biased", Function::Add, &[products.into(), bias.clone().into()])?;
    }
    let biased = products.clone();
    let mut shares = match rule.sink {
        None => {
            let shares = b.softmax("shares", products)?;
            attending(b, shares, rule.bias.filter(|_| !rule.attends))?
        }
        // No row is without something to attend.
        Some(sink) => {
            let sink = spread(b, sink, &[batch, many, rows, 1])?;
            let all = b.joined("sink", vec![products, sink], 3)?;
            let all = b.softmax("all", all)?;
            columns(b, "shares", &all, 0, keys)?
        }
    };
    let products = [plain, soft, biased, shares.clone()];
    if shared {
        shares = b.with_extents("rows", shares, &[batch, few, many / few * rows, keys])?;
    }
    let mut output = product(b, if shared { "sums" } else { part }, shares, heads.v)?;
    if shared {
        let wide = b.shape(&output)?.last().copied().unwrap_or(1);
        output = b.with_extents(part, output, &[batch, many, rows, wide])?;
    }
    Ok(Attended { output, products })
}

/// Shares of keys; 0 for a query that attends none, which has no result.
fn attending(b: &mut Builder, shares: Operand, bias: Option<Operand>) -> Result<Operand, Reason> {
    let Some(bias) = bias.filter(may_mask_rows) else { return Ok(shares) };
    let most = match b.shape(&bias)?.len().checked_sub(1) {
        Some(last) => reduced(b, "most", bias, Reduction::Max, &[last], true)?,
        None => bias,
    };
    let attends = b.apply("attends", Function::Greater, &[most.into(), MASKED.into()])?;
    b.apply("shares", Function::Select, &[attends.into(), shares.into(), 0.0.into()])
}

/// Whether a row of the bias may mask everything.
fn may_mask_rows(bias: &Operand) -> bool {
    match bias {
        Operand::Value(_) => true,
        Operand::Constant(Constant::Integers(_), _) => false,
        Operand::Constant(Constant::Floats(tensor), _) => {
            let keys = tensor.dims().extents().last().copied().unwrap_or(1).max(1);
            tensor.to_nhwc().chunks(keys).any(|row| row.iter().all(|&value| value == MASKED))
        }
    }
}

/// A bias on top of another.
pub(crate) fn with_bias(b: &mut Builder, bias: Option<Operand>, more: Operand) -> Result<Operand, Reason> {
    match bias {
        None => Ok(more),
        Some(bias) => b.apply("bias", Function::Add, &[bias.into(), more.into()]),
    }
}
