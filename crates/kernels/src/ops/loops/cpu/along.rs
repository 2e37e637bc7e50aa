//! One value of each row of a tile, as vectors: what comes of its numbers, joined.
#![expect(
    clippy::needless_range_loop,
    reason = "whether iterators are inlined into code for an instruction set depends on the profile"
)]

use super::reductions::Join;

/// Parts that are kept apart, for vectors of the CPU and for their error.
const LANES: usize = 16;

/// Values of a row that are joined to these at once.
const RUN: usize = 4 * LANES;

/// From this length on a row has as many parts as that, so that one is not waited for.
const LONG: usize = 4 * RUN;

/// What a reduction takes of a value, given up to two numbers of its row, such as a mean.
pub(super) trait Term: Copy {
    fn of(value: f32, beside: [f32; 2]) -> f32;
}

#[derive(Clone, Copy)]
pub(super) struct Plain;

impl Term for Plain {
    #[inline(always)]
    fn of(value: f32, _: [f32; 2]) -> f32 {
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

/// Terms of the numbers of a row, each beside the numbers of that row.
#[derive(Clone, Copy)]
pub(super) struct Beside<'a, T>(pub(super) &'a [f32], pub(super) [f32; 2], pub(super) T);

impl<T: Term> Terms for Beside<'_, T> {
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
    let len = row.len();
    if len < LANES {
        let mut part = first;
        for place in 0..len {
            part = J::join(part, row.term(place));
        }
        return part;
    }
    let (mut lanes, mut begin) = ([first; LANES], 0);
    if len >= LONG && !J::LOSES {
        let mut parts = [first; RUN];
        while begin + RUN <= len {
            let run: [f32; RUN] = row.next(begin);
            for lane in 0..RUN {
                parts[lane] = J::join(parts[lane], run[lane]);
            }
            begin += RUN;
        }
        for lane in 0..LANES {
            lanes[lane] =
                J::four(parts[lane], parts[lane + LANES], parts[lane + 2 * LANES], parts[lane + 3 * LANES]);
        }
    }
    while begin + RUN <= len {
        let run: [f32; RUN] = row.next(begin);
        for lane in 0..LANES {
            let all = J::four(run[lane], run[lane + LANES], run[lane + 2 * LANES], run[lane + 3 * LANES]);
            lanes[lane] = J::join(lanes[lane], all);
        }
        begin += RUN;
    }
    while begin + LANES <= len {
        let next: [f32; LANES] = row.next(begin);
        for lane in 0..LANES {
            lanes[lane] = J::join(lanes[lane], next[lane]);
        }
        begin += LANES;
    }
    if begin < len {
        let mut rest = [first; LANES];
        for place in begin..len {
            rest[place - begin] = row.term(place);
        }
        for lane in 0..LANES {
            lanes[lane] = J::join(lanes[lane], rest[lane]);
        }
    }
    one_of::<J>(lanes)
}

/// One value of all parts.
#[inline(always)]
fn one_of<J: Join>(lanes: [f32; LANES]) -> f32 {
    let [a, b, c, d] = halved::<J, 8, 4>(halved::<J, LANES, 8>(lanes));
    let all = J::quick(J::quick(a, c), J::quick(b, d));
    let mut lost = false;
    for lane in 0..if J::LOSES { LANES } else { 0 } {
        lost |= lanes[lane].is_nan();
    }
    if lost { f32::NAN } else { all }
}

/// Each part with the one that is half of them behind it.
#[inline(always)]
fn halved<J: Join, const ALL: usize, const HALF: usize>(lanes: [f32; ALL]) -> [f32; HALF] {
    let mut half = [0.0; HALF];
    for lane in 0..HALF {
        half[lane] = J::quick(lanes[lane], lanes[lane + HALF]);
    }
    half
}
