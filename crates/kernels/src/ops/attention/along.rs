//! The largest of a row's scores and the sum of their powers on the CPU, in lanes.

/// Maxima and sums that are kept apart, for vectors of the CPU.
const LANES: usize = 16;

/// The largest of `values`.
#[inline(always)]
pub(super) fn largest_of(values: &[f32]) -> f32 {
    let mut largest = f32::NEG_INFINITY;
    if values.len() < LANES {
        for &value in values {
            largest = larger(largest, value);
        }
        return largest;
    }
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] = larger(lanes[lane], chunk[lane]);
        }
    }
    for lane in 0..rest.len() {
        lanes[lane] = larger(lanes[lane], rest[lane]);
    }
    for lane in lanes {
        largest = larger(largest, lane);
    }
    largest
}

/// The sum of `values`.
#[inline(always)]
pub(super) fn sum_of(values: &[f32]) -> f32 {
    let mut sum = 0.0;
    if values.len() < LANES {
        for &value in values {
            sum += value;
        }
        return sum;
    }
    let mut lanes = [0.0; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] += chunk[lane];
        }
    }
    for lane in 0..rest.len() {
        lanes[lane] += rest[lane];
    }
    for lane in lanes {
        sum += lane;
    }
    sum
}

#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    if b > a { b } else { a }
}
