//! The places of the largest or the smallest values of a tile, as vectors.

use super::along::{Beside, Plain, Terms, along, next_of};
use super::reductions::{Max, Min};
use pulp::NullaryFnOnce;

/// The best value of each row, or of each column, so far, and its place.
pub(super) struct Best<'a> {
    pub(super) values: &'a mut [f32],
    pub(super) places: &'a mut [f32],
}

/// Finds the largest values of a tile, or the smallest ones.
pub(super) struct Found<'a> {
    pub(super) largest: bool,
    /// How many columns lie side by side, if not rows are looked at.
    pub(super) width: Option<usize>,
    pub(super) values: &'a [f32],
    /// The place of each value.
    pub(super) places: &'a [f32],
    pub(super) best: Best<'a>,
}

/// The places of values of a row that are the best one.
#[derive(Clone, Copy)]
struct PlacesOf<'a> {
    best: f32,
    values: &'a [f32],
    places: &'a [f32],
}

/// The place of a value that is the best one, infinity of another.
#[inline(always)]
fn place_of(best: f32, value: f32, place: f32) -> f32 {
    // Where there is a NaN, it is the best one.
    if (value == best) | value.is_nan() { place } else { f32::INFINITY }
}

impl Terms for PlacesOf<'_> {
    #[inline(always)]
    fn len(self) -> usize {
        self.values.len()
    }

    #[inline(always)]
    fn term(self, place: usize) -> f32 {
        place_of(self.best, self.values[place], self.places[place])
    }

    #[inline(always)]
    fn next<const COUNT: usize>(self, first: usize) -> [f32; COUNT] {
        let (values, places) = (next_of::<COUNT>(self.values, first), next_of::<COUNT>(self.places, first));
        let mut next = [0.0; COUNT];
        for place in 0..COUNT {
            next[place] = place_of(self.best, values[place], places[place]);
        }
        next
    }
}

impl NullaryFnOnce for Found<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        match (self.width, self.largest) {
            (Some(width), true) => self.of_columns::<true>(width),
            (Some(width), false) => self.of_columns::<false>(width),
            (None, true) => self.of_rows::<true>(),
            (None, false) => self.of_rows::<false>(),
        }
    }
}

impl Found<'_> {
    #[inline(always)]
    fn of_rows<const LARGEST: bool>(self) {
        let Found { values, places, best, .. } = self;
        let len = values.len() / best.values.len().max(1);
        for row in 0..best.values.len() {
            let own = row * len..(row + 1) * len;
            let (values, places) = (&values[own.clone()], &places[own]);
            let terms = Beside(values, [0.0; 2], Plain);
            let value = match LARGEST {
                true => along::<Max, _>(f32::NEG_INFINITY, terms),
                false => along::<Min, _>(f32::INFINITY, terms),
            };
            let place = along::<Min, _>(f32::INFINITY, PlacesOf { best: value, values, places });
            take::<LARGEST>([value, place], &mut best.values[row], &mut best.places[row]);
        }
    }

    #[inline(always)]
    fn of_columns<const LARGEST: bool>(self, width: usize) {
        let Found { values, places, best, .. } = self;
        let width = width.max(1);
        let each = values.len() / best.values.len().max(1) * width;
        for block in 0..best.values.len() / width {
            let columns = block * width..(block + 1) * width;
            let (best, best_places) = (&mut best.values[columns.clone()], &mut best.places[columns]);
            for row in 0..each / width {
                let own = block * each + row * width..block * each + (row + 1) * width;
                let (values, places) = (&values[own.clone()], &places[own]);
                for column in 0..width {
                    let found = [values[column], places[column]];
                    take::<LARGEST>(found, &mut best[column], &mut best_places[column]);
                }
            }
        }
    }
}

/// Takes a value with its place if it is better than the best one so far: of equals the first one, and a NaN before numbers.
#[inline(always)]
fn take<const LARGEST: bool>([value, place]: [f32; 2], best: &mut f32, best_place: &mut f32) {
    let [is_nan, was_nan] = [value.is_nan(), best.is_nan()];
    let is_more = if LARGEST { value > *best } else { value < *best };
    let is_better = (is_more & !was_nan) | (is_nan & !was_nan);
    let is_alike = (value == *best) | (is_nan & was_nan);
    let takes = is_better | (is_alike & (place < *best_place));
    *best = if takes { value } else { *best };
    *best_place = if takes { place } else { *best_place };
}
