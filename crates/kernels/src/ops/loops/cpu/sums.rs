//! Sums of what simple functions give of the values of a tile, as vectors.

use super::reductions::{BesideOne, Into, Sum, Term, Terms, along, next_of};
use pulp::NullaryFnOnce;

/// What is added of each value.
#[derive(Clone, Copy)]
pub(super) enum Summands<'a> {
    /// Its square.
    Squares,
    /// Its product with another value.
    Products(&'a [f32]),
    /// The square of its difference from one value for each row, or for each column.
    Deviations(&'a [f32]),
}

/// Adds what values of a tile give to what is known.
pub(super) struct Summed<'a> {
    pub(super) summands: Summands<'a>,
    pub(super) values: &'a [f32],
    pub(super) into: Into<'a>,
}

#[derive(Clone, Copy)]
struct Product;
#[derive(Clone, Copy)]
struct Square;
#[derive(Clone, Copy)]
struct Deviation;

impl Term for Product {
    #[inline(always)]
    fn of(value: f32, other: f32) -> f32 {
        value * other
    }
}

impl Term for Square {
    #[inline(always)]
    fn of(value: f32, _: f32) -> f32 {
        value * value
    }
}

impl Term for Deviation {
    #[inline(always)]
    fn of(value: f32, other: f32) -> f32 {
        (value - other) * (value - other)
    }
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
                        Summands::Squares => along::<Sum, _>(0.0, BesideOne(own, 0.0, Square)),
                        Summands::Products(others) => along::<Sum, _>(0.0, Products(own, &others[places])),
                        Summands::Deviations(from) => {
                            along::<Sum, _>(0.0, BesideOne(own, from[row], Deviation))
                        }
                    };
                    found[row] += f64::from(part);
                }
            }
            Into::Columns(parts) => {
                let columns = parts.len();
                for row in 0..values.len() / columns.max(1) {
                    let places = row * columns..(row + 1) * columns;
                    let own = &values[places.clone()];
                    match summands {
                        Summands::Squares => add::<Square>(own, own, parts),
                        Summands::Products(others) => add::<Product>(own, &others[places], parts),
                        Summands::Deviations(from) => add::<Deviation>(own, from, parts),
                    }
                }
            }
        }
    }
}

/// Adds a term for each column to what is known of it.
#[inline(always)]
fn add<T: Term>(values: &[f32], others: &[f32], parts: &mut [f32]) {
    let (values, others) = (&values[..parts.len()], &others[..parts.len()]);
    for column in 0..parts.len() {
        parts[column] += T::of(values[column], others[column]);
    }
}
