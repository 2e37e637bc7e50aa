//! Which keys a query attends, by their places.

use super::builder::Builder;
use super::casts::converted;
use super::each::Arg;
use super::kind::Kind;
use super::operand::Operand;
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;

/// What is added where a query does not attend a key. No finite number does: of a row of the least ones the softmax is
/// the mean.
pub(crate) const MASKED: f32 = f32::NEG_INFINITY;

/// Queries at places behind `past`, and the keys around each of them that it attends.
pub(crate) struct Reach<'o> {
    /// Places of queries.
    pub(crate) rows: usize,
    /// Places of keys.
    pub(crate) keys: usize,
    /// Keys before the first query.
    pub(crate) past: Past<'o>,
    /// How many keys before its own place a query attends; without one there is no such end.
    pub(crate) before: Option<usize>,
    /// How many behind it.
    pub(crate) behind: Option<usize>,
    /// How many keys each batch has: `batch 1`.
    pub(crate) ends: Option<&'o Operand>,
}

/// How many keys there are before a query.
pub(crate) enum Past<'o> {
    Known(usize),
    /// Each batch has its own number, in a tensor `batch 1`.
    Each(&'o Operand),
}

impl Reach<'_> {
    /// Whether each query attends a key in any case: its own.
    pub(crate) fn attends(&self) -> bool {
        match self.past {
            Past::Known(past) => past + self.rows <= self.keys && self.ends.is_none(),
            Past::Each(_) => false,
        }
    }

    /// How many keys before and behind its own place a query attends, where that says something.
    pub(crate) fn needed(&self) -> (Option<usize>, Option<usize>) {
        match self.past {
            // The last query's first key, and the first one's last.
            Past::Known(past) => (
                self.before.filter(|&before| before.saturating_add(1) < past + self.rows),
                self.behind.filter(|&behind| behind.saturating_add(past + 1) < self.keys),
            ),
            Past::Each(_) => (self.before, self.behind),
        }
    }

    /// Which keys a query attends, `batch 1 query key`; nothing where it is all. Made once for all operators.
    pub(crate) fn allowed(&self, b: &mut Builder) -> Result<Option<Operand>, Reason> {
        let Reach { rows, keys, ends, .. } = *self;
        let (before, behind) = self.needed();
        if behind.is_none() && before.is_none() && ends.is_none() {
            return Ok(None);
        }
        let (past, known) = match self.past {
            Past::Known(past) => (None, past),
            Past::Each(past) => (Some(past), 0),
        };
        // Where it is known, keys are counted from the first query. Those before it are alike if all are attended, so that
        // the mask of more keys is this one with more of them.
        let (first, least) = match (past, ends, before) {
            (None, None, None) => (known, -1),
            (None, None, Some(_)) => (known, i64::MIN),
            _ => (0, i64::MIN),
        };
        let how = format!("keys of {rows} {keys} {known} {before:?} {behind:?}");
        let sources: Vec<&Operand> = past.into_iter().chain(ends).collect();
        let of_batch = |b: &mut Builder, each: &Operand| {
            let batch = b.shape(each)?.first().copied().unwrap_or(1);
            b.with_extents("of batch", each.clone(), &[batch, 1, 1, 1])
        };
        let all = b.once(&how, &sources, |b| {
            let counted = (0..keys).map(|key| (key as i64 - first as i64).max(least)).collect();
            let key: Arg = numbers(b, "key", counted, 3)?.into();
            let query: Arg = numbers(b, "query", (0..rows as i64).collect(), 2)?.into();
            let past: Option<Arg> = match past {
                None if first == known => None,
                None => Some((known as f32).into()),
                Some(past) => Some(of_batch(b, past)?.into()),
            };
            let place: Arg = match past {
                Some(past) => b.apply("place", Function::Add, &[query, past])?.into(),
                None => query,
            };
            let mut conditions = Vec::new();
            if let Some(behind) = behind {
                let last: Arg = match behind {
                    0 => place.clone(),
                    _ => b.apply("last", Function::Add, &[place.clone(), (behind as f32).into()])?.into(),
                };
                conditions.push(b.apply("allowed", Function::LessEqual, &[key.clone(), last])?);
            }
            if let Some(before) = before {
                let first = b.apply("first", Function::Sub, &[place, (before as f32).into()])?;
                conditions.push(b.apply("allowed", Function::GreaterEqual, &[key.clone(), first.into()])?);
            }
            if let Some(ends) = ends {
                let ends = of_batch(b, ends)?;
                conditions.push(b.apply("allowed", Function::Less, &[key, ends.into()])?);
            }
            let mut conditions = conditions.into_iter();
            let mut all = conditions.next().ok_or("found no condition of keys")?;
            for more in conditions {
                all = b.apply("allowed", Function::LogicalAnd, &[all.into(), more.into()])?;
            }
            Ok(all)
        })?;
        Ok(Some(all))
    }

    /// What is added to the products of queries with keys.
    pub(crate) fn bias(&self, b: &mut Builder) -> Result<Option<Operand>, Reason> {
        let Some(allowed) = self.allowed(b)? else { return Ok(None) };
        let bias = b.once("bias", &[&allowed], |b| bias_of(b, allowed.clone()))?;
        Ok(Some(bias))
    }
}

/// What a mask adds: of booleans nothing where it is true, of numbers themselves.
pub(crate) fn bias_of(b: &mut Builder, mask: Operand) -> Result<Operand, Reason> {
    match mask.kind() {
        Kind::Bool => b
            .apply("mask", Function::Select, &[mask.into(), 0.0.into(), MASKED.into()])
            .map(|slot| slot.of_kind(Kind::F32)),
        _ => Ok(mask),
    }
}

/// Numbers along an axis, as a value: a mask of all places is not computed while the file is read.
fn numbers(b: &mut Builder, part: &str, numbers: Vec<i64>, axis: usize) -> Result<Operand, Reason> {
    b.budget.spend(numbers.len().saturating_mul(8))?;
    let mut extents = vec![1; 4];
    extents[axis] = numbers.len();
    let numbers = converted(b, Operand::integers(extents, numbers), Kind::F32)?;
    b.kept(part, numbers)
}
