//! Where the rows of an attention's operands lie.

use super::OP;
use crate::dims::Dims;
use crate::emit::Operand;
use crate::error::{Error, Result};

/// Queries and keys, at most.
const MOST_PLACES: usize = 1 << 29;

/// The extents of an attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sizes {
    pub batch: usize,
    /// Heads of keys.
    pub heads: usize,
    /// Heads of queries that share a head of keys.
    pub group: usize,
    /// Queries of a head.
    pub rows: usize,
    pub keys: usize,
    /// Features of a query and of a key.
    pub depth: usize,
    /// Features of a value.
    pub width: usize,
}

impl Sizes {
    /// Whether some operand has no elements.
    pub(super) fn are_empty(&self) -> bool {
        let Sizes { batch, heads, group, rows, keys, depth, width } = *self;
        [batch, heads, group, rows, keys, depth, width].contains(&0)
    }

    pub(super) fn check(&self) -> Result<()> {
        let Sizes { batch, heads, group, rows, keys, depth, width } = *self;
        let all = [batch, heads, group, rows, keys, depth, width];
        let most = i32::MAX as usize;
        let product =
            |extents: &[usize]| extents.iter().try_fold(1usize, |all, extent| all.checked_mul(*extent));
        let [query, score, key] = [
            product(&[batch, heads, group, rows, depth.max(width)]),
            product(&[batch, heads, group, rows, keys]),
            product(&[batch, heads, keys, depth.max(width)]),
        ];
        // Of scores there are as many as wanted: they lie nowhere.
        let reached = [query, key].iter().all(|count| count.is_some_and(|count| count <= most));
        if all.contains(&0) || !reached || score.is_none() || keys.max(rows) > MOST_PLACES {
            let found = format!(
                "{batch} x {heads} x {group} heads of {rows} queries and {keys} keys, {depth} and {width} features"
            );
            return Err(Error::shape(
                OP,
                found,
                "at least 1 of each, and elements that 32-bit indices reach",
            ));
        }
        Ok(())
    }

    /// Batches, heads of keys, heads that share one, places, and features of `operand`.
    pub(super) fn of(&self, operand: Operand) -> [usize; 5] {
        let Sizes { batch, heads, group, rows, keys, depth, width } = *self;
        match operand {
            Operand::Query => [batch, heads, group, rows, depth],
            Operand::Key => [batch, heads, 1, keys, depth],
            Operand::Value => [batch, heads, 1, keys, width],
            _ => [batch, heads, group, rows, width],
        }
    }
}

/// Where rows lie: element `d` of a row at `first + d` and the steps times the places along batch, head of keys, head that
/// shares it, and place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RowStrides {
    #[doc(hidden)]
    pub first: usize,
    #[doc(hidden)]
    pub steps: [usize; 4],
}

impl RowStrides {
    /// Where element 0 of a row lies.
    pub(crate) fn at(&self, [b, h, g, row]: [usize; 4]) -> usize {
        let [batch, head, group, place] = self.steps;
        self.first + b * batch + h * head + g * group + row * place
    }

    /// Whether every row begins at a multiple of `unit` elements.
    pub(crate) fn is_whole(&self, unit: usize) -> bool {
        self.first.is_multiple_of(unit) && self.steps.iter().all(|step| step.is_multiple_of(unit))
    }

    /// Steps along axes of one element are of no account.
    pub(super) fn reduced(&self, extents: [usize; 5]) -> RowStrides {
        let mut steps = self.steps;
        for (step, extent) in steps.iter_mut().zip(extents) {
            if extent == 1 {
                *step = 0;
            }
        }
        RowStrides { first: self.first, steps }
    }

    /// Refuses rows that do not lie within `dims`.
    pub(super) fn within(&self, operand: Operand, extents: [usize; 5], dims: &Dims) -> Result<()> {
        let [.., features] = extents;
        let mut last = self.first.checked_add(features - 1);
        for (step, extent) in self.steps.iter().zip(extents) {
            last = step.checked_mul(extent - 1).and_then(|way| last?.checked_add(way));
        }
        if last.is_some_and(|last| last < dims.elements() && last <= i32::MAX as usize) {
            return Ok(());
        }
        let found = format!("{} of {dims}", operand.name());
        Err(Error::shape(OP, found, format!("rows {self:?} of {extents:?} within it")))
    }

    /// Refuses rows that do not fill `dims`, each of its elements once.
    pub(super) fn fills(&self, extents: [usize; 5], dims: &Dims) -> Result<()> {
        self.within(Operand::Dst, extents, dims)?;
        let [.., features] = extents;
        let mut axes: Vec<(usize, usize)> =
            self.steps.into_iter().zip(extents).filter(|(_, extent)| *extent > 1).collect();
        crate::sorted::sort_by_key(&mut axes, |axis| axis.0);
        let mut filled = features;
        for (step, extent) in axes {
            if step != filled {
                let wanted = format!("rows {self:?} of {extents:?} that fill it");
                return Err(Error::shape(OP, format!("a result of {dims}"), wanted));
            }
            filled *= extent;
        }
        if self.first != 0 || filled != dims.elements() {
            return Err(Error::shape(OP, format!("a result of {dims}"), format!("{filled} elements")));
        }
        Ok(())
    }
}

/// Where the numbers lie that are added to scores, or mask them: the steps along batch, head of keys, head that shares
/// it, query and key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Added {
    pub steps: [usize; 5],
}

impl Added {
    /// The place of numbers of extents `batch heads places keys`, of which each is 1 or the attention's.
    pub(crate) fn broadcast(operand: Operand, sizes: &Sizes, dims: &Dims) -> Result<Self> {
        let Sizes { batch, heads, group, rows, keys, .. } = *sizes;
        let wanted = [batch, heads * group, rows, keys];
        let mut extents = [1; 4];
        let rank = dims.rank();
        let fits = rank <= 4 && {
            extents[4 - rank..].copy_from_slice(dims.extents());
            extents.iter().zip(wanted).all(|(&extent, wanted)| extent == 1 || extent == wanted)
        };
        if !fits {
            let wanted =
                format!("one that spreads to {}x{}x{}x{}", wanted[0], wanted[1], wanted[2], wanted[3]);
            return Err(Error::shape(OP, format!("a {} of {dims}", operand.name()), wanted));
        }
        let [b, h, m, n] = extents;
        let step = |extent: usize, inner: usize| if extent == 1 { 0 } else { inner };
        let head = step(h, m * n);
        Ok(Added { steps: [step(b, h * m * n), head * group, head, step(m, n), step(n, 1)] })
    }

    pub(super) fn at(&self, places: [usize; 5]) -> usize {
        self.steps.iter().zip(places).map(|(step, place)| step * place).sum()
    }

    pub(super) fn within(&self, operand: Operand, sizes: &Sizes, dims: &Dims) -> Result<()> {
        let Sizes { batch, heads, group, rows, keys, .. } = *sizes;
        let ways = self.steps.iter().zip([batch, heads, group, rows, keys]);
        let last = ways
            .map(|(step, extent)| step.checked_mul(extent - 1))
            .try_fold(0usize, |all, way| all.checked_add(way?));
        match last {
            Some(last) if last < dims.elements() => Ok(()),
            _ => Err(Error::shape(
                OP,
                format!("a {} of {dims}", operand.name()),
                format!("{self:?} within it"),
            )),
        }
    }
}
