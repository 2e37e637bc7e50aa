//! Scattering to places that are computed at each run: on the CPU, because updates of one element are taken in order.

use super::import::{Import, Op};
use crate::error::Error;
use crate::model::build::axis;
use crate::model::reason::Reason;

type Done = Result<(), Reason>;

/// Where updates belong: behind a first element, as rows of indices say.
pub(super) struct Places {
    /// The first element of each update, before its indices are counted.
    pub(super) first: Vec<usize>,
    /// Of each index of a row: the extent that it counts, and the elements from one to the next.
    pub(super) columns: Vec<(usize, usize)>,
    /// Elements of an update.
    pub(super) inner: usize,
}

/// What becomes of an element and an update of it.
#[derive(Clone, Copy)]
enum Combine {
    Replace,
    Add,
    Mul,
    Max,
    Min,
}

impl Combine {
    fn of(self, old: f32, new: f32) -> f32 {
        match self {
            Combine::Replace => new,
            Combine::Add => old + new,
            Combine::Mul => old * new,
            Combine::Max => old.max(new),
            Combine::Min => old.min(new),
        }
    }
}

impl Places {
    /// Where update `index` begins, by its row of indices.
    fn begin(&self, index: usize, row: &[f32]) -> Result<usize, Reason> {
        let mut place = self.first[index];
        for (&index, &(extent, step)) in row.iter().zip(&self.columns) {
            place += axis(index as i64, extent)? * step;
        }
        Ok(place)
    }
}

/// Writes the data with the updates at these places.
pub(super) fn scattered<'a>(i: &mut Import<'a>, op: &Op<'a>, own: &[usize], places: Places) -> Done {
    let combine = match op.text("reduction", "none")? {
        "none" => Combine::Replace,
        "add" => Combine::Add,
        "mul" => Combine::Mul,
        "max" => Combine::Max,
        "min" => Combine::Min,
        other => return refused!("found reduction {other:?}"),
    };
    let updates: usize = i.extents_of(op, 2)?.iter().product();
    if Some(updates) != places.first.len().checked_mul(places.inner) {
        let wanted = places.first.len().saturating_mul(places.inner);
        return refused!("found {updates} elements of updates, wanted {wanted}");
    }
    let kind = i.kind_of(op, 0)?;
    let inputs = (0..3).map(|index| i.slot(op, index)).collect::<Result<Vec<_>, _>>()?;
    let narrow = kind.narrow().filter(|_| matches!(combine, Combine::Add | Combine::Mul));
    let part = if narrow.is_some() { "scattered" } else { "" };
    let written = i.hosted(part, "scatter", inputs, &[own.to_vec()], move |inputs, outputs| {
        let ([data, indices, updates], [dst]) = (inputs, outputs) else { return Ok(()) };
        dst.copy_from_slice(data);
        let rows = indices.chunks_exact(places.columns.len().max(1));
        for (index, (row, update)) in rows.zip(updates.chunks_exact(places.inner.max(1))).enumerate() {
            let beyond = |found: String| Error::input("scattered indices", found, "places within the data");
            let begin = places.begin(index, row).map_err(|reason| beyond(reason.into()))?;
            let target = dst.get_mut(begin..begin + places.inner);
            let target = target.ok_or_else(|| beyond(format!("an update at element {begin}")))?;
            target.iter_mut().zip(update).for_each(|(old, &new)| *old = combine.of(*old, new));
        }
        Ok(())
    })?;
    for slot in written {
        let slot = match narrow {
            Some(narrow) => crate::model::build::wrapped(i, narrow, slot.of_kind(kind))?,
            None => slot.of_kind(kind),
        };
        i.set(op, 0, slot)?;
    }
    Ok(())
}
