//! Two simple functions one behind the other, as vectors.

use super::functions::Argument;
use crate::ops::elementwise::Function;
use pulp::NullaryFnOnce;
use std::ops::Range;

/// `second(first(a, b), c)` for each value of `a`.
pub(super) struct Paired<'a> {
    pub(super) functions: [Function; 2],
    pub(super) arguments: [Argument<'a>; 3],
    pub(super) out: &'a mut [f32],
}

/// What an argument is within a row.
#[derive(Clone, Copy)]
enum OfRow<'a> {
    Each(&'a [f32]),
    Single(f32),
}

#[inline(always)]
fn of_row<'a>(argument: Argument<'a>, row: usize, places: &Range<usize>) -> OfRow<'a> {
    match argument {
        Argument::Each(values) => OfRow::Each(values.get(places.clone()).unwrap_or_default()),
        Argument::Single(single) => OfRow::Single(single),
        Argument::Rows(rows) => OfRow::Single(rows.get(row).copied().unwrap_or_default()),
        Argument::Columns(columns) => OfRow::Each(columns),
    }
}

trait Simple {
    fn of(a: f32, b: f32) -> f32;
}

struct Sum;
struct Difference;
struct Product;

impl Simple for Sum {
    #[inline(always)]
    fn of(a: f32, b: f32) -> f32 {
        a + b
    }
}

impl Simple for Difference {
    #[inline(always)]
    fn of(a: f32, b: f32) -> f32 {
        a - b
    }
}

impl Simple for Product {
    #[inline(always)]
    fn of(a: f32, b: f32) -> f32 {
        a * b
    }
}

impl NullaryFnOnce for Paired<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Paired { functions, arguments, out } = self;
        let [Argument::Each(a), b, c] = arguments else { return };
        let len = match (b, c) {
            (Argument::Rows(rows), _) | (_, Argument::Rows(rows)) => out.len() / rows.len().max(1),
            (Argument::Columns(columns), _) | (_, Argument::Columns(columns)) => columns.len(),
            _ => out.len(),
        };
        for row in 0..out.len() / len.max(1) {
            let places = row * len..(row + 1) * len;
            let (b, c) = (of_row(b, row, &places), of_row(c, row, &places));
            let Some(a) = a.get(places.clone()) else { return };
            by_first(functions, a, b, c, &mut out[places]);
        }
    }
}

#[inline(always)]
fn by_first(functions: [Function; 2], a: &[f32], b: OfRow<'_>, c: OfRow<'_>, out: &mut [f32]) {
    let [first, second] = functions;
    match first {
        Function::Add => by_second::<Sum>(second, a, b, c, out),
        Function::Sub => by_second::<Difference>(second, a, b, c, out),
        Function::Mul => by_second::<Product>(second, a, b, c, out),
        _ => {}
    }
}

#[inline(always)]
fn by_second<F: Simple>(second: Function, a: &[f32], b: OfRow<'_>, c: OfRow<'_>, out: &mut [f32]) {
    match second {
        Function::Add => both::<F, Sum>(a, b, c, out),
        Function::Sub => both::<F, Difference>(a, b, c, out),
        Function::Mul => both::<F, Product>(a, b, c, out),
        _ => {}
    }
}

#[inline(always)]
fn both<F: Simple, G: Simple>(a: &[f32], b: OfRow<'_>, c: OfRow<'_>, out: &mut [f32]) {
    let len = out.len();
    let Some(a) = a.get(..len) else { return };
    match (b, c) {
        (OfRow::Each(b), OfRow::Each(c)) => {
            let (Some(b), Some(c)) = (b.get(..len), c.get(..len)) else { return };
            for place in 0..len {
                out[place] = G::of(F::of(a[place], b[place]), c[place]);
            }
        }
        (OfRow::Each(b), OfRow::Single(c)) => {
            let Some(b) = b.get(..len) else { return };
            for place in 0..len {
                out[place] = G::of(F::of(a[place], b[place]), c);
            }
        }
        (OfRow::Single(b), OfRow::Each(c)) => {
            let Some(c) = c.get(..len) else { return };
            for place in 0..len {
                out[place] = G::of(F::of(a[place], b), c[place]);
            }
        }
        (OfRow::Single(b), OfRow::Single(c)) => {
            for place in 0..len {
                out[place] = G::of(F::of(a[place], b), c);
            }
        }
    }
}
