//! Functions of values of a tile, as vectors: of an argument for each place, or of a single one.
#![expect(
    clippy::needless_range_loop,
    reason = "whether iterators are inlined into code for an instruction set depends on the profile"
)]

use crate::ops::elementwise::Function;
use crate::vector::{at_least, at_most};
use pulp::NullaryFnOnce;

/// An argument: a value for each place, for all, for each row of places, or for each column.
#[derive(Debug, Clone, Copy)]
pub(super) enum Argument<'a> {
    Each(&'a [f32]),
    Single(f32),
    Rows(&'a [f32]),
    Columns(&'a [f32]),
}

impl<'a> Argument<'a> {
    #[inline(always)]
    const fn each(self) -> &'a [f32] {
        match self {
            Argument::Each(values) => values,
            _ => &[],
        }
    }
}

/// Whether a function of a value for each place and one of fewer values has a loop of its own.
pub(super) const fn takes_single(function: Function) -> bool {
    use Function::{Add, Clamp, Div, Maximum, Minimum, Mul, Sub};
    matches!(function, Add | Clamp | Div | Maximum | Minimum | Mul | Sub)
}

/// A function of each of its arguments' values.
pub(super) struct Applied<'a> {
    pub(super) function: Function,
    pub(super) arguments: [Argument<'a>; 3],
    pub(super) out: &'a mut [f32],
}

/// The functions that take a single argument.
macro_rules! with_single {
    ($own:ident, $out:ident, |$value:ident| $first:expr, $second:expr) => {
        with_single!(@each $own, $out, |$value| $first, $second,
            Add |a, b| a + b,
            Sub |a, b| a - b,
            Mul |a, b| a * b,
            Maximum |a, b| if a > b || a.is_nan() { a } else { b },
            Minimum |a, b| if a < b || a.is_nan() { a } else { b })
    };
    (@each $own:ident, $out:ident, |$value:ident| $first:expr, $second:expr,
        $($name:ident |$a:ident, $b:ident| $result:expr),*) => {
        match $own {
            $(Function::$name => {
                for index in 0..$out.len() {
                    let $value = index;
                    let ($a, $b): (f32, f32) = ($first, $second);
                    $out[index] = $result;
                }
            })*
            _ => {}
        }
    };
}

impl NullaryFnOnce for Applied<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Applied { function, arguments, out } = self;
        match arguments {
            [Argument::Each(values), Argument::Single(low), Argument::Single(high)] => {
                let Some(values) = values.get(..out.len()) else { return };
                for index in 0..out.len() {
                    out[index] = at_most(at_least(values[index], low), high);
                }
            }
            [Argument::Each(values), Argument::Single(single), _] => first(function, values, single, out),
            [Argument::Single(single), Argument::Each(values), _] => second(function, single, values, out),
            [Argument::Each(values), Argument::Rows(rows), _] => {
                let len = out.len() / rows.len().max(1);
                for row in 0..rows.len() {
                    let own = row * len..(row + 1) * len;
                    first(function, &values[own.clone()], rows[row], &mut out[own]);
                }
            }
            [Argument::Rows(rows), Argument::Each(values), _] => {
                let len = out.len() / rows.len().max(1);
                for row in 0..rows.len() {
                    let own = row * len..(row + 1) * len;
                    second(function, rows[row], &values[own.clone()], &mut out[own]);
                }
            }
            [Argument::Each(values), Argument::Columns(columns), _] => {
                let len = columns.len().max(1);
                for row in 0..out.len() / len {
                    let own = row * len..(row + 1) * len;
                    function.each([&values[own.clone()], columns, &[]], &mut out[own]);
                }
            }
            [Argument::Columns(columns), Argument::Each(values), _] => {
                let len = columns.len().max(1);
                for row in 0..out.len() / len {
                    let own = row * len..(row + 1) * len;
                    function.each([columns, &values[own.clone()], &[]], &mut out[own]);
                }
            }
            [a, b, c] => function.each([a.each(), b.each(), c.each()], out),
        }
    }
}

/// A function of values and a single one.
#[inline(always)]
fn first(function: Function, values: &[f32], single: f32, out: &mut [f32]) {
    let Some(values) = values.get(..out.len()) else { return };
    let (mut function, mut single) = (function, single);
    if function == Function::Div {
        // A product takes a fraction of the time, where the reciprocal is as precise as others.
        let reciprocal = 1.0 / single;
        if !(single.is_normal() && reciprocal.is_normal()) {
            for index in 0..out.len() {
                out[index] = values[index] / single;
            }
            return;
        }
        (function, single) = (Function::Mul, reciprocal);
    }
    with_single!(function, out, |index| values[index], single);
}

/// A function of a single value and others.
#[inline(always)]
fn second(function: Function, single: f32, values: &[f32], out: &mut [f32]) {
    let Some(values) = values.get(..out.len()) else { return };
    if function == Function::Div {
        for index in 0..out.len() {
            out[index] = single / values[index];
        }
        return;
    }
    with_single!(function, out, |index| single, values[index]);
}

/// One value, one for each row, or one for each column, at all places.
pub(super) struct Spread<'a> {
    pub(super) values: &'a [f32],
    pub(super) columns: bool,
    pub(super) out: &'a mut [f32],
}

impl NullaryFnOnce for Spread<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Spread { values, columns, out } = self;
        let rows = values.len();
        let len = out.len() / rows.max(1);
        for place in 0..if columns { len } else { 0 } {
            let own = &mut out[place * rows..(place + 1) * rows];
            own.copy_from_slice(values);
        }
        for row in 0..if columns { 0 } else { rows } {
            let (own, value) = (&mut out[row * len..(row + 1) * len], values[row]);
            for place in 0..len {
                own[place] = value;
            }
        }
    }
}
