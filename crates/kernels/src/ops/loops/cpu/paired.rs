//! Two functions one behind the other, and what scales a normalisation, as vectors.

use super::functions::Argument;
use crate::ops::elementwise::Function;
use crate::vector::exp;
use pulp::NullaryFnOnce;
use std::ops::Range;

/// `second(first(a, b), c)` for each value of `a`, or the power of `first(a, b)`.
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
        Argument::Columns(columns) => OfRow::Each(columns.of_row(row)),
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
        let Paired { functions: [first, second], arguments, out } = self;
        let [Argument::Each(a), b, c] = arguments else { return };
        let Some(a) = a.get(..out.len()) else { return };
        let of = Lines { a, b, c };
        match first {
            Function::Add => by_second::<Sum>(second, of, out),
            Function::Sub => by_second::<Difference>(second, of, out),
            Function::Mul => by_second::<Product>(second, of, out),
            _ => {}
        }
    }
}

/// The arguments of all rows.
#[derive(Clone, Copy)]
struct Lines<'a> {
    a: &'a [f32],
    b: Argument<'a>,
    c: Argument<'a>,
}

/// The places of a row where arguments are as these, of as many in all.
#[inline(always)]
fn line(arguments: &[Argument<'_>], len: usize) -> usize {
    let mut line = len;
    for argument in arguments {
        line = match argument {
            Argument::Rows(rows) => len / rows.len().max(1),
            Argument::Columns(columns) => columns.width,
            _ => line,
        };
    }
    line.max(1)
}

#[inline(always)]
fn by_second<F: Simple>(second: Function, of: Lines<'_>, out: &mut [f32]) {
    match second {
        Function::Add => both::<F, Sum>(of, out),
        Function::Sub => both::<F, Difference>(of, out),
        Function::Mul => both::<F, Product>(of, out),
        Function::Exp => power::<F>(of, out),
        _ => {}
    }
}

#[inline(always)]
fn power<F: Simple>(Lines { a, b, .. }: Lines<'_>, out: &mut [f32]) {
    let len = line(&[b], out.len());
    for row in 0..out.len() / len {
        let places = row * len..(row + 1) * len;
        let (a, out) = (&a[places.clone()], &mut out[places.clone()]);
        match of_row(b, row, &places) {
            OfRow::Each(b) => {
                let Some(b) = b.get(..len) else { return };
                for place in 0..len {
                    out[place] = exp(F::of(a[place], b[place]));
                }
            }
            OfRow::Single(b) => {
                for place in 0..len {
                    out[place] = exp(F::of(a[place], b));
                }
            }
        }
    }
}

#[inline(always)]
fn both<F: Simple, G: Simple>(Lines { a, b, c }: Lines<'_>, out: &mut [f32]) {
    let len = line(&[b, c], out.len());
    for row in 0..out.len() / len {
        let places = row * len..(row + 1) * len;
        let (a, out) = (&a[places.clone()], &mut out[places.clone()]);
        match (of_row(b, row, &places), of_row(c, row, &places)) {
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
}

/// `((a - b) - c) * d`, or `((a - b) - c) * d * e + f`, for each value of `a`.
pub(super) struct Normalised<'a> {
    pub(super) arguments: [Argument<'a>; 6],
    pub(super) out: &'a mut [f32],
}

impl NullaryFnOnce for Normalised<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Normalised { arguments: [a, others @ ..], out } = self;
        let Argument::Each(a) = a else { return };
        let len = line(&others, out.len());
        for row in 0..out.len() / len {
            let places = row * len..(row + 1) * len;
            let [b, c, d, e, f] = others;
            let (b, c) = (of_row(b, row, &places), of_row(c, row, &places));
            let (d, e, f) = (of_row(d, row, &places), of_row(e, row, &places), of_row(f, row, &places));
            let (Some(a), out) = (a.get(places.clone()), &mut out[places]) else { return };
            let a = &a[..len];
            match (b, c, d) {
                (OfRow::Single(b), OfRow::Single(c), OfRow::Single(d)) => match (e, f) {
                    (OfRow::Single(e), OfRow::Single(f)) => {
                        for place in 0..len {
                            out[place] = (a[place] - b - c) * d * e + f;
                        }
                    }
                    (OfRow::Each(e), OfRow::Each(f)) => {
                        let (Some(e), Some(f)) = (e.get(..len), f.get(..len)) else { continue };
                        for place in 0..len {
                            out[place] = (a[place] - b - c) * d * e[place] + f[place];
                        }
                    }
                    _ => {}
                },
                (OfRow::Each(b), OfRow::Each(c), OfRow::Each(d)) => {
                    let (Some(b), Some(c), Some(d)) = (b.get(..len), c.get(..len), d.get(..len)) else {
                        continue;
                    };
                    match (e, f) {
                        (OfRow::Single(e), OfRow::Single(f)) => {
                            for place in 0..len {
                                out[place] = (a[place] - b[place] - c[place]) * d[place] * e + f;
                            }
                        }
                        (OfRow::Each(e), OfRow::Each(f)) => {
                            let (Some(e), Some(f)) = (e.get(..len), f.get(..len)) else { continue };
                            for place in 0..len {
                                out[place] =
                                    (a[place] - b[place] - c[place]) * d[place] * e[place] + f[place];
                            }
                        }
                        _ => {}
                    }
                }
                _ => {}
            }
        }
    }
}
