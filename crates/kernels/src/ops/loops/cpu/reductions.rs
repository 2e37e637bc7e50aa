//! Reductions of the values of a tile, as vectors.

use super::along::{Beside, Plain, Term, along};
use crate::ops::reduce::Reduction;
use pulp::NullaryFnOnce;

/// Values of short rows of columns that are joined at once.
const WIDE: usize = 64;

/// Rows of columns that are joined at once.
const ROWS: usize = 4;

/// How two numbers become one: those of a vector, and what was found of vectors.
pub(super) trait Join {
    /// Whether numbers are joined faster if a NaN may be lost.
    const LOSES: bool;

    fn join(a: f32, b: f32) -> f32;
    fn found(a: f64, b: f64) -> f64;

    /// Two numbers together, or the other one beside a NaN if it [`Join::LOSES`] that.
    #[inline(always)]
    fn quick(a: f32, b: f32) -> f32 {
        Self::join(a, b)
    }

    /// Four numbers together.
    #[inline(always)]
    fn four(a: f32, b: f32, c: f32, d: f32) -> f32 {
        let all = Self::quick(Self::quick(a, b), Self::quick(c, d));
        let lost = Self::LOSES && (a.is_nan() | b.is_nan() | c.is_nan() | d.is_nan());
        if lost { f32::NAN } else { all }
    }
}

macro_rules! joins {
    ($($name:ident |$a:ident, $b:ident| $both:expr $(, $quick:expr)?;)*) => {
        $(
            pub(super) struct $name;

            impl Join for $name {
                const LOSES: bool = joins!(@loses $($quick)?);

                #[inline(always)]
                fn join($a: f32, $b: f32) -> f32 {
                    $both
                }

                #[inline(always)]
                fn found($a: f64, $b: f64) -> f64 {
                    $both
                }

                $(
                    #[inline(always)]
                    fn quick($a: f32, $b: f32) -> f32 {
                        $quick
                    }
                )?
            }
        )*
    };
    (@loses $quick:expr) => { true };
    (@loses) => { false };
}

// A NaN stays one. The first of two truths is one already, or becomes one when it is joined to another.
joins! {
    Sum |a, b| a + b;
    Product |a, b| a * b;
    Max |a, b| if a > b || a.is_nan() { a } else { b }, if a > b { a } else { b };
    Min |a, b| if a < b || a.is_nan() { a } else { b }, if a < b { a } else { b };
    Any |a, b| if b != 0.0 { 1.0 } else { a };
    All |a, b| if b == 0.0 { 0.0 } else { a };
}

/// What two numbers are together.
pub(in crate::ops::loops) fn joined(reduction: Reduction, a: f64, b: f64) -> f64 {
    match reduction {
        Reduction::Sum | Reduction::Mean => Sum::found(a, b),
        Reduction::Product => Product::found(a, b),
        Reduction::Max => Max::found(a, b),
        Reduction::Min => Min::found(a, b),
        Reduction::Any => Any::found(a, b),
        Reduction::All => All::found(a, b),
    }
}

/// What is done with one way to join numbers.
trait ByJoin {
    fn all<J: Join>(self);
}

#[inline(always)]
fn by(reduction: Reduction, what: impl ByJoin) {
    match reduction {
        Reduction::Sum | Reduction::Mean => what.all::<Sum>(),
        Reduction::Product => what.all::<Product>(),
        Reduction::Max => what.all::<Max>(),
        Reduction::Min => what.all::<Min>(),
        Reduction::Any => what.all::<Any>(),
        Reduction::All => what.all::<All>(),
    }
}

/// Where the values of a tile go.
pub(super) enum Into<'a> {
    /// What was found of each row, to which its values are joined.
    Rows(&'a mut [f64]),
    /// The part of each column, to which its values are joined, and how many of these columns lie side by side.
    Columns(&'a mut [f32], usize),
}

/// Joins the values of a tile to what is known.
pub(super) struct Reduced<'a> {
    pub(super) reduction: Reduction,
    pub(super) values: &'a [f32],
    pub(super) into: Into<'a>,
}

impl NullaryFnOnce for Reduced<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        by(self.reduction, self);
    }
}

impl ByJoin for Reduced<'_> {
    #[inline(always)]
    fn all<J: Join>(self) {
        let Reduced { reduction, values, into } = self;
        match into {
            Into::Columns(parts, width) => {
                below::<J, Plain>(reduction.first(), values, [&[]; 2], (parts, width));
            }
            Into::Rows(found) => {
                let (first, len) = (reduction.first(), values.len() / found.len().max(1));
                for row in 0..found.len() {
                    let own = Beside(&values[row * len..(row + 1) * len], [0.0; 2], Plain);
                    found[row] = J::found(found[row], f64::from(along::<J, _>(first, own)));
                }
            }
        }
    }
}

/// Joins the terms of blocks of rows to the part of each of their columns, of which `width` lie side by side. `others` has the
/// numbers of columns beside which their values are, if any.
#[inline(always)]
pub(super) fn below<J: Join, T: Term>(
    first: f32,
    values: &[f32],
    others: [&[f32]; 2],
    (parts, width): (&mut [f32], usize),
) {
    let width = width.max(1);
    let each = values.len() / parts.len().max(1) * width;
    for block in 0..parts.len() / width {
        let columns = block * width..(block + 1) * width;
        let [a, b] = others;
        let others = [a.get(columns.clone()).unwrap_or_default(), b.get(columns.clone()).unwrap_or_default()];
        let own = &values[block * each..(block + 1) * each];
        block_below::<J, T>(first, own, others, &mut parts[columns]);
    }
}

/// Joins the terms of rows to the part of each column.
#[inline(always)]
fn block_below<J: Join, T: Term>(first: f32, values: &[f32], others: [&[f32]; 2], parts: &mut [f32]) {
    let columns = parts.len();
    // Rows of few columns are one run, so that a part is not waited for at each of them.
    let beside = WIDE / columns;
    let wide = beside * columns;
    let mut done = 0;
    if beside > 1 && values.len() >= ROWS * wide {
        let (mut run, mut repeated) = ([first; WIDE], [[0.0; WIDE]; 2]);
        for place in 0..2 {
            let other = others[place];
            for row in 0..if other.len() == columns { beside } else { 0 } {
                for column in 0..columns {
                    repeated[place][row * columns + column] = other[column];
                }
            }
        }
        done = values.len() / wide * wide;
        let others = [&repeated[0][..wide], &repeated[1][..wide]];
        rows_below::<J, T>(&values[..done], others, &mut run[..wide]);
        for row in 0..beside {
            for column in 0..columns {
                parts[column] = J::join(parts[column], run[row * columns + column]);
            }
        }
    }
    rows_below::<J, T>(&values[done..], others, parts);
}

#[inline(always)]
fn rows_below<J: Join, T: Term>(values: &[f32], others: [&[f32]; 2], parts: &mut [f32]) {
    let columns = parts.len();
    let rows = values.len() / columns;
    if rows == 0 {
        return;
    }
    // Of what a term does not need nothing is read.
    let a = others[0].get(..columns).unwrap_or(&values[..columns]);
    let b = others[1].get(..columns).unwrap_or(&values[..columns]);
    for group in 0..rows / ROWS {
        let own = &values[group * ROWS * columns..(group + 1) * ROWS * columns];
        let (first, own) = own.split_at(columns);
        let (second, own) = own.split_at(columns);
        let (third, fourth) = own.split_at(columns);
        let fourth = &fourth[..columns];
        for column in 0..columns {
            let beside = [a[column], b[column]];
            let [one, two] = [T::of(first[column], beside), T::of(second[column], beside)];
            let [three, four] = [T::of(third[column], beside), T::of(fourth[column], beside)];
            parts[column] = J::join(parts[column], J::four(one, two, three, four));
        }
    }
    for row in rows / ROWS * ROWS..rows {
        let own = &values[row * columns..(row + 1) * columns];
        for column in 0..columns {
            parts[column] = J::join(parts[column], T::of(own[column], [a[column], b[column]]));
        }
    }
}

/// Joins the parts of columns to what was found of each, and begins them anew.
pub(super) struct Collected<'a> {
    pub(super) reduction: Reduction,
    /// Whether nothing was found before.
    pub(super) is_first: bool,
    pub(super) parts: &'a mut [f32],
    pub(super) found: &'a mut [f64],
}

impl NullaryFnOnce for Collected<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        by(self.reduction, self);
    }
}

impl ByJoin for Collected<'_> {
    #[inline(always)]
    fn all<J: Join>(self) {
        let first = self.reduction.first();
        let Collected { is_first, parts, found, .. } = self;
        let Some(parts) = parts.get_mut(..found.len()) else { return };
        for place in 0..parts.len() {
            let part = f64::from(parts[place]);
            found[place] = if is_first { part } else { J::found(found[place], part) };
            parts[place] = first;
        }
    }
}

/// What was found becomes the values of a reduction: a mean is divided by how many there were.
pub(super) struct Finished<'a, T> {
    pub(super) found: &'a [T],
    pub(super) by: f64,
    pub(super) values: &'a mut [f32],
}

impl<T: Copy> NullaryFnOnce for Finished<'_, T>
where
    f64: From<T>,
{
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Finished { found, by, values } = self;
        let Some(values) = values.get_mut(..found.len()) else { return };
        if by == 1.0 {
            for place in 0..values.len() {
                values[place] = f64::from(found[place]) as f32;
            }
            return;
        }
        for place in 0..values.len() {
            values[place] = (f64::from(found[place]) / by) as f32;
        }
    }
}
