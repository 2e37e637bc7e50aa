//! Sums of what simple functions give of the values of a tile, as vectors.

use super::reductions::{Into, Numbers, Plain, Sum, along, next_of};
use pulp::NullaryFnOnce;

/// What is added of each value.
#[derive(Clone, Copy)]
pub(super) enum Summands<'a> {
    Plain,
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
                        Summands::Plain => along::<Sum, _>(0.0, Plain(own)),
                        Summands::Squares => along::<Sum, _>(0.0, Squares(own)),
                        Summands::Products(others) => along::<Sum, _>(0.0, Products(own, &others[places])),
                        Summands::Deviations(from) => along::<Sum, _>(0.0, Deviations(own, from[row])),
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
                        Summands::Plain => {
                            for column in 0..columns {
                                parts[column] += own[column];
                            }
                        }
                        Summands::Squares => {
                            for column in 0..columns {
                                parts[column] += own[column] * own[column];
                            }
                        }
                        Summands::Products(others) => {
                            let others = &others[places];
                            for column in 0..columns {
                                parts[column] += own[column] * others[column];
                            }
                        }
                        Summands::Deviations(from) => {
                            let from = &from[..columns];
                            for column in 0..columns {
                                let deviation = own[column] - from[column];
                                parts[column] += deviation * deviation;
                            }
                        }
                    }
                }
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Squares<'a>(&'a [f32]);
#[derive(Clone, Copy)]
struct Products<'a>(&'a [f32], &'a [f32]);
#[derive(Clone, Copy)]
struct Deviations<'a>(&'a [f32], f32);

impl Numbers for Squares<'_> {
    #[inline(always)]
    fn len(self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn number(self, place: usize) -> f32 {
        self.0[place] * self.0[place]
    }

    #[inline(always)]
    fn next<const COUNT: usize>(self, first: usize) -> [f32; COUNT] {
        let (values, mut next) = (next_of::<COUNT>(self.0, first), [0.0; COUNT]);
        for place in 0..COUNT {
            next[place] = values[place] * values[place];
        }
        next
    }
}

impl Numbers for Products<'_> {
    #[inline(always)]
    fn len(self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn number(self, place: usize) -> f32 {
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

impl Numbers for Deviations<'_> {
    #[inline(always)]
    fn len(self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn number(self, place: usize) -> f32 {
        let deviation = self.0[place] - self.1;
        deviation * deviation
    }

    #[inline(always)]
    fn next<const COUNT: usize>(self, first: usize) -> [f32; COUNT] {
        let (values, mut next) = (next_of::<COUNT>(self.0, first), [0.0; COUNT]);
        for place in 0..COUNT {
            let deviation = values[place] - self.1;
            next[place] = deviation * deviation;
        }
        next
    }
}
