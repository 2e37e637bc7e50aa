//! Whole numbers that depend on the places along the axes of a nest: where elements are read.
//!
//! An index is a sum of terms: places along axes, quotients and remainders of indices, each times a factor. It is kept as
//! simple as the extents of the axes allow, so that two indices that are equal mostly look alike, and what is composed of a
//! reshape and its inverse is the place that it began with:
//!
//! | | becomes | where |
//! |---|---|---|
//! | `(n a + r) / n`, `(n a + r) % n` | `a`, `r` | `0 <= r < n` |
//! | `x / a / b`, `x % (a b) % b`, `x % (a b) / b` | `x / (a b)`, `x % b`, `x / b % a` | |
//! | `n (x / n) + x % n` | `x` | |
//! | `(g x + s) / (g n)`, `(g x + s) % (g n)` | `x / n`, `g (x % n) + s` | `0 <= s < g` |

pub(in crate::ops) use super::term::{Mirror, Term};
use crate::sorted;
use std::collections::BTreeMap;

/// The axes that an index depends on, a bit for each.
pub(in crate::ops) type AxisSet = u32;

/// A sum of terms, each times a factor that is not 0, and a number.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(in crate::ops) struct Index {
    pub(super) terms: BTreeMap<Term, i64>,
    pub(super) constant: i64,
}

fn divisor(a: i64, b: i64) -> i64 {
    if b == 0 { a.abs() } else { divisor(b, a % b) }
}

impl Index {
    pub(in crate::ops) const fn number(constant: i64) -> Self {
        Index { terms: BTreeMap::new(), constant }
    }

    pub(in crate::ops) fn axis(axis: usize) -> Self {
        Index::term(Term::Axis(axis as u8))
    }

    pub(super) fn term(term: Term) -> Self {
        Index { terms: BTreeMap::from([(term, 1)]), constant: 0 }
    }

    pub(in crate::ops) const fn terms(&self) -> &BTreeMap<Term, i64> {
        &self.terms
    }

    pub(in crate::ops) const fn constant(&self) -> i64 {
        self.constant
    }

    /// The number that it is, if it depends on nothing.
    pub(in crate::ops) fn as_number(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The term that it is, without a factor and a number.
    pub(in crate::ops) fn as_term(&self) -> Option<&Term> {
        match self.terms.iter().next() {
            Some((term, 1)) if self.terms.len() == 1 && self.constant == 0 => Some(term),
            _ => None,
        }
    }

    /// `self + factor * other`.
    #[must_use]
    pub(in crate::ops) fn plus(&self, other: &Index, factor: i64) -> Index {
        let mut sum = self.clone();
        sum.add(other, factor);
        sum.tidied()
    }

    fn add(&mut self, other: &Index, factor: i64) {
        self.constant += factor * other.constant;
        for (term, own) in &other.terms {
            self.add_term(term.clone(), factor * own);
        }
    }

    fn add_term(&mut self, term: Term, factor: i64) {
        let sum = self.terms.get(&term).copied().unwrap_or_default() + factor;
        if sum == 0 {
            self.terms.remove(&term);
        } else {
            self.terms.insert(term, sum);
        }
    }

    #[must_use]
    pub(in crate::ops) fn times(&self, factor: i64) -> Index {
        Index::default().plus(self, factor)
    }

    /// Puts quotients and remainders of one index together.
    fn tidied(mut self) -> Index {
        loop {
            let remainders = self.terms.iter().filter_map(|(term, &factor)| match term {
                Term::Remainder(of, by) => Some((of, *by, factor, term)),
                _ => None,
            });
            let mut found = None;
            for (of, by, factor, term) in remainders {
                // The extents make no difference: what could be simplified by them was.
                let quotient = of.quotient_of_any(by);
                if let Some(whole) = quotient.as_term().filter(|_| quotient != **of)
                    && self.terms.get(whole) == Some(&(factor * by))
                {
                    found = Some((term.clone(), whole.clone(), (**of).clone(), factor));
                    break;
                }
                let next = self.terms.iter().find_map(|(other, &own)| match other {
                    Term::Remainder(above, more) if own == factor * by && **above == quotient => {
                        Some((other.clone(), by * more))
                    }
                    _ => None,
                });
                if let Some((other, all)) = next {
                    found =
                        Some((term.clone(), other, Index::term(Term::Remainder(of.clone(), all)), factor));
                    break;
                }
            }
            let Some((remainder, whole, sum, factor)) = found else { return self };
            self.terms.remove(&remainder);
            self.terms.remove(&whole);
            self.add(&sum, factor);
        }
    }

    /// The quotient that simplification by no extent gives.
    fn quotient_of_any(&self, by: i64) -> Index {
        match self.as_term() {
            Some(Term::Quotient(of, inner)) => Index::term(Term::Quotient(of.clone(), inner * by)),
            _ => Index::term(Term::Quotient(Box::new(self.clone()), by)),
        }
    }

    /// The least and the largest value.
    pub(in crate::ops) fn range(&self, extents: &[usize]) -> [i64; 2] {
        let mut range = [self.constant; 2];
        for (term, &factor) in &self.terms {
            let [least, most] = term.range(extents);
            let ends = [factor.saturating_mul(least), factor.saturating_mul(most)];
            range[0] = range[0].saturating_add(ends[0].min(ends[1]));
            range[1] = range[1].saturating_add(ends[0].max(ends[1]));
        }
        range
    }

    fn is_below(&self, most: i64, extents: &[usize]) -> bool {
        let [least, largest] = self.range(extents);
        least >= 0 && largest < most
    }

    /// Terms that are multiples of `by`, divided by it; and the others, with what of the number is no multiple.
    fn divided(&self, by: i64) -> (Index, Index) {
        let mut whole = Index::number(self.constant.div_euclid(by));
        let mut rest = Index::number(self.constant.rem_euclid(by));
        for (term, &factor) in &self.terms {
            if factor % by == 0 {
                whole.add_term(term.clone(), factor / by);
            } else {
                rest.add_term(term.clone(), factor);
            }
        }
        (whole, rest)
    }

    /// The index as `g * large + small` with `0 <= small < g`, for the largest such divisor `g` of `by`: `g`, `large` and `small`.
    fn split(&self, by: i64, extents: &[usize]) -> (i64, Index, Index) {
        let mut terms: Vec<(&Term, i64)> = self.terms.iter().map(|(term, &factor)| (term, factor)).collect();
        sorted::sort(&mut terms, |a, b| b.1.abs().cmp(&a.1.abs()));
        let mut common = by;
        for (count, (_, factor)) in terms.iter().enumerate() {
            common = divisor(common, *factor);
            if common == 1 {
                break;
            }
            let (large, small) = terms.split_at(count + 1);
            let sum = |terms: &[(&Term, i64)], by: i64, constant: i64| {
                let terms = terms.iter().map(|(term, factor)| ((*term).clone(), factor / by)).collect();
                Index { terms, constant }
            };
            let rest = sum(small, 1, self.constant.rem_euclid(common));
            if rest.is_below(common, extents) {
                return (common, sum(large, common, self.constant.div_euclid(common)), rest);
            }
        }
        (1, self.clone(), Index::default())
    }

    /// What it is divided by `by`, rounded down.
    pub(in crate::ops) fn quotient(&self, by: i64, extents: &[usize]) -> Index {
        if by == 1 {
            return self.clone();
        }
        let (whole, rest) = self.divided(by);
        if rest.is_below(by, extents) {
            return whole.tidied();
        }
        // The rest alone is divided where it cannot be negative.
        let (whole, rest) =
            if rest.range(extents)[0] >= 0 { (whole, rest) } else { (Index::default(), self.clone()) };
        let (common, rest, _) = rest.split(by, extents);
        let by = by / common;
        if common > 1 {
            return whole.plus(&rest.quotient(by, extents), 1);
        }
        let quotient = match rest.terms.iter().next() {
            Some((Term::Quotient(of, inner), 1)) if rest.terms.len() == 1 => {
                of.plus(&Index::number(rest.constant * inner), 1).quotient(inner * by, extents)
            }
            Some((Term::Remainder(of, all), 1))
                if rest.terms.len() == 1 && rest.constant == 0 && all % by == 0 =>
            {
                of.quotient(by, extents).remainder(all / by, extents)
            }
            _ => Index::term(Term::Quotient(Box::new(rest), by)),
        };
        whole.plus(&quotient, 1)
    }

    /// What is left of it behind multiples of `by`.
    pub(in crate::ops) fn remainder(&self, by: i64, extents: &[usize]) -> Index {
        if by == 1 {
            return Index::default();
        }
        let (_, mut rest) = self.divided(by);
        // What is left of a multiple of `by` is left of all.
        let replaced = rest.terms.iter().find_map(|(term, &factor)| match term {
            Term::Remainder(of, all) if (factor * all) % by == 0 => {
                Some((term.clone(), (**of).clone(), factor))
            }
            _ => None,
        });
        if let Some((term, of, factor)) = replaced {
            rest.terms.remove(&term);
            rest.add(&of, factor);
            return rest.remainder(by, extents);
        }
        if rest.is_below(by, extents) {
            return rest;
        }
        let [least, _] = rest.range(extents);
        if least < 0 {
            rest.constant += by * (-least).div_euclid(by) + by;
        }
        let (common, large, small) = rest.split(by, extents);
        if common > 1 {
            return small.plus(&large.remainder(by / common, extents), common);
        }
        Index::term(Term::Remainder(Box::new(rest), by))
    }

    /// The index where a guard keeps it from 0 on and below `most`.
    pub(in crate::ops) fn inside(self, most: i64, extents: &[usize]) -> Index {
        if self.is_below(most, extents) {
            return self;
        }
        if most == 1 {
            return Index::default();
        }
        let (common, large, small) = self.split(most, extents);
        if common > 1 {
            return small.plus(&large.inside(most / common, extents), common);
        }
        Index::term(Term::Inside(Box::new(self), most))
    }

    /// An index and a bound, without what is below their largest common divisor: that index is from 0 on and below that bound
    /// exactly where this one is from 0 on and below `most`.
    pub(in crate::ops) fn coarser(&self, most: i64, extents: &[usize]) -> (Index, i64) {
        match self.split(most, extents) {
            (1, ..) => (self.clone(), most),
            (common, large, _) => (large, most / common),
        }
    }

    /// The coordinate that `rule` makes of it.
    pub(in crate::ops) fn ruled(self, rule: Mirror, extent: i64, extents: &[usize]) -> Index {
        if self.is_below(extent, extents) {
            return self;
        }
        Index::term(Term::Ruled(rule, Box::new(self), extent))
    }

    /// The index with another one in the place of each axis; `extents` are of the axes of those.
    pub(in crate::ops) fn with(&self, places: &[Index], extents: &[usize]) -> Index {
        let mut sum = Index::number(self.constant);
        for (term, &factor) in &self.terms {
            let of = match term {
                Term::Axis(axis) => places.get(usize::from(*axis)).cloned().unwrap_or_default(),
                Term::Quotient(of, by) => of.with(places, extents).quotient(*by, extents),
                Term::Remainder(of, by) => of.with(places, extents).remainder(*by, extents),
                Term::Inside(of, most) => of.with(places, extents).inside(*most, extents),
                Term::Ruled(rule, of, extent) => of.with(places, extents).ruled(*rule, *extent, extents),
            };
            sum.add(&of, factor);
        }
        sum.tidied()
    }

    /// The index `by` places further along an axis, not simplified.
    pub(in crate::ops) fn shifted(&self, axis: usize, by: i64) -> Index {
        let mut sum = Index::number(self.constant);
        for (term, &factor) in &self.terms {
            let moved = |of: &Index| Box::new(of.shifted(axis, by));
            let of = match term {
                Term::Axis(own) => {
                    if usize::from(*own) == axis {
                        sum.constant += factor * by;
                    }
                    term.clone()
                }
                Term::Quotient(of, by) => Term::Quotient(moved(of), *by),
                Term::Remainder(of, by) => Term::Remainder(moved(of), *by),
                Term::Inside(of, most) => Term::Inside(moved(of), *most),
                Term::Ruled(rule, of, extent) => Term::Ruled(*rule, moved(of), *extent),
            };
            sum.add_term(of, factor);
        }
        sum
    }

    /// The axes that it depends on.
    pub(in crate::ops) fn axes(&self) -> AxisSet {
        let each = self.terms.keys().map(|term| match term {
            Term::Axis(axis) => 1 << axis,
            Term::Quotient(of, _) | Term::Remainder(of, _) | Term::Inside(of, _) | Term::Ruled(_, of, _) => {
                of.axes()
            }
        });
        each.fold(0, |all, axes| all | axes)
    }

    /// The factor of an axis, if nothing but that factor makes it depend on the axis.
    pub(in crate::ops) fn stride(&self, axis: usize) -> Option<i64> {
        self.factor(axis, false)
    }

    /// The factor of an axis at places for which every guard holds, if nothing but that factor makes it depend on the axis.
    pub(in crate::ops) fn stride_inside(&self, axis: usize) -> Option<i64> {
        self.factor(axis, true)
    }

    /// The factor of an axis; if guards hold, that of the axis in what they keep inside too.
    fn factor(&self, axis: usize, guards_hold: bool) -> Option<i64> {
        let mut sum = 0;
        for (term, factor) in &self.terms {
            let own = match term {
                Term::Axis(own) => i64::from(usize::from(*own) == axis),
                Term::Inside(of, _) if guards_hold => of.factor(axis, guards_hold)?,
                Term::Quotient(of, _)
                | Term::Remainder(of, _)
                | Term::Ruled(_, of, _)
                | Term::Inside(of, _) => match of.axes() & (1 << axis) {
                    0 => 0,
                    _ => return None,
                },
            };
            sum += factor * own;
        }
        Some(sum)
    }

    /// Its value at these places.
    pub(in crate::ops) fn value(&self, at: &[usize]) -> i64 {
        let mut sum = self.constant;
        for (term, factor) in &self.terms {
            let value = match term {
                Term::Axis(axis) => at.get(usize::from(*axis)).map_or(0, |&place| place as i64),
                Term::Quotient(of, by) => of.value(at).div_euclid(*by),
                Term::Remainder(of, by) => of.value(at).rem_euclid(*by),
                Term::Inside(of, _) => of.value(at),
                Term::Ruled(rule, of, extent) => rule.coordinate(of.value(at), *extent),
            };
            sum = sum.wrapping_add(factor.wrapping_mul(value));
        }
        sum
    }

    /// Calls `each` with this sum and with every one within it.
    pub(in crate::ops) fn sums(&self, each: &mut dyn FnMut(&Index)) {
        each(self);
        for term in self.terms.keys() {
            match term {
                Term::Axis(_) => {}
                Term::Quotient(of, _)
                | Term::Remainder(of, _)
                | Term::Inside(of, _)
                | Term::Ruled(_, of, _) => {
                    of.sums(each);
                }
            }
        }
    }

    /// Whether `guarded` holds for every index in it that is taken to be from 0 on and below a number.
    pub(in crate::ops) fn is_guarded(&self, guarded: &dyn Fn(&Index, i64) -> bool) -> bool {
        self.terms.keys().all(|term| match term {
            Term::Axis(_) => true,
            Term::Inside(of, most) => guarded(of, *most) && of.is_guarded(guarded),
            Term::Quotient(of, _) | Term::Remainder(of, _) | Term::Ruled(_, of, _) => of.is_guarded(guarded),
        })
    }

    /// Whether every number that is divided is from 0 on, as the unsigned numbers of kernels are.
    pub(in crate::ops) fn divides_unsigned(&self, extents: &[usize]) -> bool {
        self.terms.keys().all(|term| match term {
            Term::Axis(_) => true,
            Term::Quotient(of, _) | Term::Remainder(of, _) => {
                of.range(extents)[0] >= 0 && of.divides_unsigned(extents)
            }
            Term::Inside(of, _) | Term::Ruled(_, of, _) => of.divides_unsigned(extents),
        })
    }
}
