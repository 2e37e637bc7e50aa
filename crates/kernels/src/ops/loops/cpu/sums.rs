//! Sums of what simple functions give of the values of a tile, as vectors.

use super::along::{Beside, Term, Terms, along, next_of};
use super::reductions::{Into, Sum, below};
use crate::vector::exp;
use pulp::NullaryFnOnce;

/// What is added of each value.
#[derive(Clone, Copy)]
pub(super) enum Summands<'a> {
    /// Its square.
    Squares,
    /// Its product with another value.
    Products(&'a [f32]),
    /// Its difference from one value for each row, or for each column.
    Differences(&'a [f32]),
    /// The power of that.
    Powers(&'a [f32]),
    /// The square of that difference.
    Deviations(&'a [f32]),
    /// The square of what its difference from the first one differs from the second one.
    DeviationsOfDifferences([&'a [f32]; 2]),
}

/// Adds what values of a tile give to what is known.
pub(super) struct Summed<'a> {
    pub(super) summands: Summands<'a>,
    pub(super) values: &'a [f32],
    pub(super) into: Into<'a>,
}

macro_rules! terms {
    ($($name:ident |$value:ident, $a:ident, $b:ident| $term:expr;)*) => {
        $(
            #[derive(Clone, Copy)]
            struct $name;

            impl Term for $name {
                #[inline(always)]
                fn of($value: f32, [$a, $b]: [f32; 2]) -> f32 {
                    $term
                }
            }
        )*
    };
}

terms! {
    Square |value, _a, _b| value * value;
    Difference |value, a, _b| value - a;
    Power |value, a, _b| exp(value - a);
    Deviation |value, a, _b| (value - a) * (value - a);
    DeviationOfDifference |value, a, b| (value - a - b) * (value - a - b);
}

/// Products of the numbers of a row with others.
#[derive(Clone, Copy)]
struct Products<'a>(&'a [f32], &'a [f32]);

impl Terms for Products<'_> {
    #[inline(always)]
    fn len(self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn term(self, place: usize) -> f32 {
        self.0[place] * self.1[place]
    }

    #[inline(always)]
    fn next<const COUNT: usize>(self, first: usize) -> [f32; COUNT] {
        let (values, others) = (next_of::<COUNT>(self.0, first), next_of::<COUNT>(self.1, first));
        let mut next = [0.0; COUNT];
        for place in 0..COUNT {
            next[place] = values[place] * others[place];
        }
        next
    }
}

impl NullaryFnOnce for Summed<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Summed { summands, values, into } = self;
        match into {
            Into::Rows(found) => {
                let len = values.len() / found.len().max(1);
                for row in 0..found.len() {
                    let places = row * len..(row + 1) * len;
                    let own = &values[places.clone()];
                    let part = match summands {
                        Summands::Squares => along::<Sum, _>(0.0, Beside(own, [0.0; 2], Square)),
                        Summands::Products(others) => along::<Sum, _>(0.0, Products(own, &others[places])),
                        Summands::Differences(from) => {
                            along::<Sum, _>(0.0, Beside(own, [from[row], 0.0], Difference))
                        }
                        Summands::Powers(from) => along::<Sum, _>(0.0, Beside(own, [from[row], 0.0], Power)),
                        Summands::Deviations(from) => {
                            along::<Sum, _>(0.0, Beside(own, [from[row], 0.0], Deviation))
                        }
                        Summands::DeviationsOfDifferences([a, b]) => {
                            along::<Sum, _>(0.0, Beside(own, [a[row], b[row]], DeviationOfDifference))
                        }
                    };
                    found[row] += f64::from(part);
                }
            }
            Into::Columns(parts, width) => {
                let into = (&mut *parts, width);
                match summands {
                    Summands::Squares => below::<Sum, Square>(0.0, values, [&[]; 2], into),
                    Summands::Products(others) => products_below(values, others, into),
                    Summands::Differences(from) => {
                        below::<Sum, Difference>(0.0, values, [from, &[]], into);
                    }
                    Summands::Powers(from) => {
                        below::<Sum, Power>(0.0, values, [from, &[]], into);
                    }
                    Summands::Deviations(from) => {
                        below::<Sum, Deviation>(0.0, values, [from, &[]], into);
                    }
                    Summands::DeviationsOfDifferences(from) => {
                        below::<Sum, DeviationOfDifference>(0.0, values, from, into);
                    }
                }
            }
        }
    }
}

/// Adds the products of blocks of rows to the part of each of their columns, of which `width` lie side by side.
#[inline(always)]
fn products_below(values: &[f32], others: &[f32], (parts, width): (&mut [f32], usize)) {
    let width = width.max(1);
    let each = values.len() / parts.len().max(1);
    for row in 0..values.len() / width {
        let places = row * width..(row + 1) * width;
        let (own, others) = (&values[places.clone()], &others[places]);
        let first = row / each.max(1) * width;
        let parts = &mut parts[first..first + width];
        for column in 0..width {
            parts[column] += own[column] * others[column];
        }
    }
}
