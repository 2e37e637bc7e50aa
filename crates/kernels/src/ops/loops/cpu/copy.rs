//! Copies of elements at regular places along several dimensions.

/// Rows of a transpose that are moved at once: those of a cache line of the source.
const SIDE: usize = 16;

/// Elements of a run that is copied without a call.
const SHORT: usize = 8;

/// How elements of the source follow each other along a dimension.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step<'a> {
    Stride(i64),
    /// Each element's distance from the first place of all.
    Table(&'a [i64]),
}

impl Step<'_> {
    fn at(&self, place: usize) -> i64 {
        match self {
            Step::Stride(stride) => stride * place as i64,
            Step::Table(table) => table.get(place).copied().unwrap_or_default(),
        }
    }
}

/// A dimension of what is copied: how many places, and how far each is from the one before in the source and in the target.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent<'a> {
    pub(super) count: usize,
    pub(super) from: Step<'a>,
    pub(super) to: usize,
}

impl<'a> Extent<'a> {
    pub(super) const ONE: Extent<'a> = Extent { count: 1, from: Step::Stride(0), to: 1 };

    /// Both dimensions as one, if their places follow each other.
    fn with_inner(&self, inner: &Extent<'a>) -> Option<Extent<'a>> {
        let (Step::Stride(outer), Step::Stride(own)) = (self.from, inner.from) else { return None };
        let follows = outer == own * inner.count as i64 && self.to == inner.to * inner.count;
        follows.then(|| Extent { count: self.count * inner.count, ..*inner })
    }
}

/// Copies elements of `src` from `first` on to `dst` from `at` on, along dimensions of which the last one is the innermost.
/// Nothing is copied from beyond the source.
pub(super) fn copy((src, first): (&[f32], i64), dims: &mut [Extent<'_>], (dst, at): (&mut [f32], usize)) {
    let mut rank = 0_usize;
    for place in 0..dims.len() {
        let own = dims[place];
        if own.count == 1 && matches!(own.from, Step::Stride(_)) {
            continue;
        }
        let last = rank.checked_sub(1).map(|last| dims[last]);
        match last.and_then(|last| last.with_inner(&own)) {
            Some(both) => dims[rank - 1] = both,
            None => {
                dims[rank] = own;
                rank += 1;
            }
        }
    }
    let dims = &dims[..rank];
    let (outer, inner) = dims.split_at(rank.saturating_sub(2));
    let [lines, line] = match *inner {
        [lines, line] => [lines, line],
        [line] => [Extent::ONE, line],
        _ => [Extent::ONE; 2],
    };
    let count: usize = outer.iter().map(|dim| dim.count).product();
    for plane in 0..count {
        let (mut rest, mut from, mut to) = (plane, first, at);
        for dim in outer.iter().rev() {
            let place = rest % dim.count;
            rest /= dim.count;
            from += dim.from.at(place);
            to += dim.to * place;
        }
        let whole = match (lines.from, line.from) {
            (Step::Stride(apart), Step::Stride(1))
                if line.to == 1 && (lines.to >= line.count || lines.count == 1) =>
            {
                runs(src, (from, apart), [lines.count, line.count], dst, (to, lines.to.max(line.count)))
            }
            (Step::Stride(1), Step::Stride(step)) if line.to == 1 && step > 0 && lines.to > 0 => transposed(
                src,
                (from, step.unsigned_abs() as usize),
                [lines.count, line.count],
                dst,
                (to, lines.to),
            ),
            _ => {
                for place in 0..lines.count {
                    copied(src, from + lines.from.at(place), &line, dst, to + lines.to * place);
                }
                Some(())
            }
        };
        if whole.is_none() {
            return;
        }
    }
}

/// Runs of elements, each `apart` from the one before in the source, and `pitch` in the target.
fn runs(
    src: &[f32],
    (first, apart): (i64, i64),
    [count, len]: [usize; 2],
    dst: &mut [f32],
    (at, pitch): (usize, usize),
) -> Option<()> {
    let lines = dst.get_mut(at..)?.chunks_mut(pitch.max(1)).take(count);
    for (place, line) in lines.enumerate() {
        let from = usize::try_from(first + apart * place as i64).ok()?;
        let (src, dst) = (src.get(from..from + len)?, line.get_mut(..len)?);
        if len > SHORT {
            dst.copy_from_slice(src);
        } else {
            dst.iter_mut().zip(src).for_each(|(slot, value)| *slot = *value);
        }
    }
    Some(())
}

/// One line of elements.
fn copied(src: &[f32], first: i64, line: &Extent<'_>, dst: &mut [f32], at: usize) {
    let element = |from: i64| usize::try_from(from).ok().and_then(|from| src.get(from)).copied();
    if line.to == 1 {
        let Some(dst) = dst.get_mut(at..at + line.count) else { return };
        match line.from {
            Step::Stride(1) => {
                let Some(first) = usize::try_from(first).ok() else { return };
                let Some(src) = src.get(first..first + dst.len()) else { return };
                dst.copy_from_slice(src);
            }
            Step::Stride(0) => dst.fill(element(first).unwrap_or_default()),
            Step::Stride(step) => {
                let Some(first) = usize::try_from(first).ok() else { return };
                let apart = step.unsigned_abs() as usize;
                let slots = dst.iter_mut();
                if step > 0 {
                    let values = src.get(first..).unwrap_or_default().iter().step_by(apart);
                    slots.zip(values).for_each(|(slot, value)| *slot = *value);
                } else {
                    let values = src.get(..=first).unwrap_or_default().iter().rev().step_by(apart);
                    slots.zip(values).for_each(|(slot, value)| *slot = *value);
                }
            }
            Step::Table(table) => {
                for (slot, place) in dst.iter_mut().zip(table) {
                    *slot = element(first + place).unwrap_or_default();
                }
            }
        }
        return;
    }
    for place in 0..line.count {
        if let (Some(slot), Some(value)) =
            (dst.get_mut(at + line.to * place), element(first + line.from.at(place)))
        {
            *slot = value;
        }
    }
}

/// Rows that are columns of the source: neighbours in it are rows of the target, `pitch` apart, and rows of it, `step` apart,
/// are columns.
fn transposed(
    src: &[f32],
    (first, step): (i64, usize),
    [rows, columns]: [usize; 2],
    dst: &mut [f32],
    (at, pitch): (usize, usize),
) -> Option<()> {
    let first = usize::try_from(first).ok()?;
    for row in (0..rows).step_by(SIDE) {
        let count = SIDE.min(rows - row);
        let own = dst.get_mut(at + row * pitch..)?.get_mut(..(count - 1) * pitch + columns)?;
        for column in 0..columns {
            let from = first + step * column + row;
            let values = src.get(from..from + count)?;
            let slots = own.get_mut(column..)?.iter_mut().step_by(pitch);
            slots.zip(values).for_each(|(slot, value)| *slot = *value);
        }
    }
    Some(())
}

/// Gives elements of `dst` from `at` on a value, along dimensions of these counts and distances.
pub(super) fn fill(value: f32, dims: &[(usize, usize)], dst: &mut [f32], at: usize) {
    match dims {
        [] => {
            if let Some(slot) = dst.get_mut(at) {
                *slot = value;
            }
        }
        [(count, 1)] => {
            if let Some(own) = dst.get_mut(at..at + count) {
                own.fill(value);
            }
        }
        [(count, step), inner @ ..] => {
            for place in 0..*count {
                fill(value, inner, dst, at + place * step);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_where_counting_finds_them() {
        let src: Vec<f32> = (0..4000).map(|at| at as f32).collect();
        let table = [5, 0, 7, 1, 100, 3, 3, 8, 2];
        for counts in [[1, 9, 17], [3, 8, 8], [2, 19, 5], [4, 1, 9]] {
            for from in [[100, 10, 1], [1, 100, 7], [90, 1, 30], [0, 1, 100], [40, -1, 3], [7, 0, 0]] {
                for (to, with_table) in
                    [([400, 20, 1], false), ([1, 80, 4], false), ([400, 20, 1], true), ([400, 1, 20], false)]
                {
                    let step = |dim: usize| match (with_table, dim) {
                        (true, 1) if counts[1] <= table.len() => Step::Table(&table[..counts[1]]),
                        _ => Step::Stride(from[dim]),
                    };
                    let mut dims: Vec<Extent<'_>> = (0..3)
                        .map(|dim| Extent { count: counts[dim], from: step(dim), to: to[dim] })
                        .collect();
                    let mut wanted = vec![-1.0; 2000];
                    for place in 0..counts.iter().product() {
                        let at =
                            [place / counts[2] / counts[1], place / counts[2] % counts[1], place % counts[2]];
                        let element: i64 = (0..3).map(|dim| dims[dim].from.at(at[dim])).sum();
                        let slot: usize = (0..3).map(|dim| to[dim] * at[dim]).sum();
                        wanted[slot] = src[usize::try_from(element + 200).expect("within")];
                    }
                    let mut found = vec![-1.0; 2000];
                    copy((&src, 200), &mut dims, (&mut found, 0));
                    assert!(found == wanted, "{counts:?} {from:?} {to:?} {with_table}");
                }
            }
        }
    }
}
