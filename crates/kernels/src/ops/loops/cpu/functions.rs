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
    Columns(Columns<'a>),
}

/// A value for each column of blocks of rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Columns<'a> {
    values: &'a [f32],
    /// Columns of a block, which lie side by side.
    pub(super) width: usize,
    /// Rows of a block.
    rows: usize,
}

impl<'a> Columns<'a> {
    /// The values of blocks that have so many values together.
    pub(super) fn new(values: &'a [f32], width: usize, len: usize) -> Self {
        Columns { values, width: width.max(1), rows: (len / values.len().max(1)).max(1) }
    }

    /// The values of the block of a row.
    #[inline(always)]
    pub(super) fn of_row(self, row: usize) -> &'a [f32] {
        let first = row / self.rows * self.width;
        self.values.get(first..first + self.width).unwrap_or_default()
    }
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
            [Argument::Each(values), Argument::Columns(columns), _] if function == Function::Div => {
                quotients(values, columns, out);
            }
            [Argument::Each(values), Argument::Columns(columns), _] => {
                for row in 0..out.len() / columns.width {
                    let own = row * columns.width..(row + 1) * columns.width;
                    function.each([&values[own.clone()], columns.of_row(row), &[]], &mut out[own]);
                }
            }
            [Argument::Columns(columns), Argument::Each(values), _] => {
                for row in 0..out.len() / columns.width {
                    let own = row * columns.width..(row + 1) * columns.width;
                    function.each([columns.of_row(row), &values[own.clone()], &[]], &mut out[own]);
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

/// Columns whose reciprocals are computed at once.
const RECIPROCALS: usize = 512;

/// What values are divided by those of their columns.
#[inline(always)]
fn quotients(values: &[f32], columns: Columns<'_>, out: &mut [f32]) {
    let Columns { width, rows, .. } = columns;
    for first_row in (0..out.len() / width).step_by(rows) {
        let all = columns.of_row(first_row);
        for first in (0..width).step_by(RECIPROCALS) {
            let own = &all[first..width.min(first + RECIPROCALS)];
            let (mut reciprocals, mut normal) = ([0.0; RECIPROCALS], true);
            for place in 0..own.len() {
                reciprocals[place] = 1.0 / own[place];
                normal &= own[place].is_normal() & reciprocals[place].is_normal();
            }
            for row in first_row..first_row + rows {
                let places = row * width + first..row * width + first + own.len();
                let (values, out) = (&values[places.clone()], &mut out[places]);
                if normal {
                    for place in 0..own.len() {
                        out[place] = values[place] * reciprocals[place];
                    }
                } else {
                    for place in 0..own.len() {
                        out[place] = values[place] / own[place];
                    }
                }
            }
        }
    }
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
    /// How many columns lie side by side, if there is one value for each.
    pub(super) width: Option<usize>,
    pub(super) out: &'a mut [f32],
}

impl NullaryFnOnce for Spread<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Spread { values, width, out } = self;
        if let Some(width) = width {
            let columns = Columns::new(values, width, out.len());
            for row in 0..out.len() / columns.width {
                let own = columns.of_row(row);
                out[row * columns.width..][..own.len()].copy_from_slice(own);
            }
            return;
        }
        let len = out.len() / values.len().max(1);
        for row in 0..values.len() {
            let (own, value) = (&mut out[row * len..(row + 1) * len], values[row]);
            for place in 0..len {
                own[place] = value;
            }
        }
    }
}
