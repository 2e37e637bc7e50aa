//! Reductions of the values of a tile, as vectors.
#![expect(
    clippy::needless_range_loop,
    reason = "whether iterators are inlined into code for an instruction set depends on the profile"
)]

use crate::ops::reduce::Reduction;
use pulp::NullaryFnOnce;

/// Parts that are kept apart, for vectors of the CPU and for their error.
const LANES: usize = 32;

/// Values of short rows of columns that are joined at once.
const WIDE: usize = 64;

/// From this length on a row has twice as many.
const LONG: usize = 512;

/// How two numbers become one: those of a vector, and what was found of vectors.
pub(super) trait Join {
    fn join(a: f32, b: f32) -> f32;
    fn found(a: f64, b: f64) -> f64;
}

macro_rules! joins {
    ($($name:ident |$a:ident, $b:ident| $both:expr;)*) => {
        $(
            pub(super) struct $name;

            impl Join for $name {
                #[inline(always)]
                fn join($a: f32, $b: f32) -> f32 {
                    $both
                }

                #[inline(always)]
                fn found($a: f64, $b: f64) -> f64 {
                    $both
                }
            }
        )*
    };
}

// A NaN stays one.
joins! {
    Sum |a, b| a + b;
    Product |a, b| a * b;
    Max |a, b| if a > b || a.is_nan() { a } else { b };
    Min |a, b| if a < b || a.is_nan() { a } else { b };
    Any |a, b| u8::from(a != 0.0 || b != 0.0).into();
    All |a, b| u8::from(a != 0.0 && b != 0.0).into();
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
    /// The part of each column, to which its values are joined.
    Columns(&'a mut [f32]),
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
            Into::Columns(parts) => {
                let columns = parts.len();
                let rows = values.len() / columns.max(1);
                // Rows of few columns are one run, so that a part is not waited for at each of them.
                let wide = WIDE / columns.max(1) * columns;
                let mut done = 0;
                if wide > columns {
                    let (mut run, count) = ([reduction.first(); WIDE], values.len() / wide);
                    let run = &mut run[..wide];
                    for place in 0..count {
                        let own = &values[place * wide..(place + 1) * wide];
                        for lane in 0..wide {
                            run[lane] = J::join(run[lane], own[lane]);
                        }
                    }
                    for lane in 0..wide {
                        parts[lane % columns] = J::join(parts[lane % columns], run[lane]);
                    }
                    done = count * wide / columns;
                }
                for row in done..rows {
                    let row = &values[row * columns..(row + 1) * columns];
                    for column in 0..columns {
                        parts[column] = J::join(parts[column], row[column]);
                    }
                }
            }
            Into::Rows(found) => {
                let (first, len) = (reduction.first(), values.len() / found.len().max(1));
                for row in 0..found.len() {
                    let part =
                        along::<J, _>(first, BesideOne(&values[row * len..(row + 1) * len], 0.0, Plain));
                    found[row] = J::found(found[row], f64::from(part));
                }
            }
        }
    }
}

/// Joins the parts of columns to what was found of each, and begins them anew.
pub(super) struct Collected<'a> {
    pub(super) reduction: Reduction,
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
        let Some(parts) = self.parts.get_mut(..self.found.len()) else { return };
        for place in 0..parts.len() {
            self.found[place] = J::found(self.found[place], f64::from(parts[place]));
            parts[place] = first;
        }
    }
}

/// What was found becomes the values of a reduction: a mean is divided by how many there were.
pub(super) struct Finished<'a> {
    pub(super) found: &'a [f64],
    pub(super) by: f64,
    pub(super) values: &'a mut [f32],
}

impl NullaryFnOnce for Finished<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Finished { found, by, values } = self;
        let Some(values) = values.get_mut(..found.len()) else { return };
        for place in 0..values.len() {
            values[place] = (found[place] / by) as f32;
        }
    }
}

/// What is joined of a number, beside another one.
pub(super) trait Term: Copy {
    fn of(value: f32, other: f32) -> f32;
}

#[derive(Clone, Copy)]
pub(super) struct Plain;

impl Term for Plain {
    #[inline(always)]
    fn of(value: f32, _: f32) -> f32 {
        value
    }
}

/// Terms of a row, some neighbours at once.
pub(super) trait Terms: Copy {
    fn len(self) -> usize;
    fn term(self, place: usize) -> f32;
    /// The terms from `first` on; of zeros where there are not as many.
    fn next<const COUNT: usize>(self, first: usize) -> [f32; COUNT];
}

/// Numbers of `values` from `first` on; zeros where there are not as many.
#[inline(always)]
pub(super) fn next_of<const COUNT: usize>(values: &[f32], first: usize) -> &[f32; COUNT] {
    values.get(first..).and_then(|values| values.first_chunk()).unwrap_or(&[0.0; COUNT])
}

/// Terms of the numbers of a row, each beside the number of that row.
#[derive(Clone, Copy)]
pub(super) struct BesideOne<'a, T>(pub(super) &'a [f32], pub(super) f32, pub(super) T);

impl<T: Term> Terms for BesideOne<'_, T> {
    #[inline(always)]
    fn len(self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn term(self, place: usize) -> f32 {
        T::of(self.0[place], self.1)
    }

    #[inline(always)]
    fn next<const COUNT: usize>(self, first: usize) -> [f32; COUNT] {
        let (values, mut next) = (next_of::<COUNT>(self.0, first), [0.0; COUNT]);
        for place in 0..COUNT {
            next[place] = T::of(values[place], self.1);
        }
        next
    }
}

/// One value of a row.
#[inline(always)]
pub(super) fn along<J: Join, N: Terms>(first: f32, row: N) -> f32 {
    if row.len() >= LONG {
        return one_of::<J>(halved::<J, 32, 16>(halved::<J, 64, 32>(lanes::<J, N, 64>(first, row))));
    }
    if row.len() >= LANES {
        return one_of::<J>(halved::<J, LANES, 16>(lanes::<J, N, LANES>(first, row)));
    }
    let mut part = first;
    for place in 0..row.len() {
        part = J::join(part, row.term(place));
    }
    part
}

/// Parts of a row side by side.
#[inline(always)]
fn lanes<J: Join, N: Terms, const COUNT: usize>(first: f32, row: N) -> [f32; COUNT] {
    let mut lanes = [first; COUNT];
    let whole = row.len() / COUNT * COUNT;
    for begin in (0..whole).step_by(COUNT) {
        let next: [f32; COUNT] = row.next(begin);
        for lane in 0..COUNT {
            lanes[lane] = J::join(lanes[lane], next[lane]);
        }
    }
    for place in whole..row.len() {
        lanes[place - whole] = J::join(lanes[place - whole], row.term(place));
    }
    lanes
}

/// One value of sixteen parts.
#[inline(always)]
fn one_of<J: Join>(lanes: [f32; 16]) -> f32 {
    let [a, b, c, d] = halved::<J, 8, 4>(halved::<J, 16, 8>(lanes));
    J::join(J::join(a, c), J::join(b, d))
}

/// Each part with the one that is half of them behind it.
#[inline(always)]
fn halved<J: Join, const ALL: usize, const HALF: usize>(lanes: [f32; ALL]) -> [f32; HALF] {
    let mut half = [0.0; HALF];
    for lane in 0..HALF {
        half[lane] = J::join(lanes[lane], lanes[lane + HALF]);
    }
    half
}
