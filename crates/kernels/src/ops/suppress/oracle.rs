//! Each box in turn, in f64.

use super::{NONE, SuppressOp};
use crate::ops::reference::Reference;

/// How far a score may be off for each time that it was multiplied by what an overlap gives: a few roundings of
/// an exponential and of the areas.
const OF_A_FACTOR: f64 = 1e-5;

/// The corners with the smaller and with the larger coordinates, and the area.
fn sides(corners: &[f32]) -> ([f64; 2], [f64; 2], f64) {
    let at = |index: usize| f64::from(corners[index]);
    let low = [at(0).min(at(2)), at(1).min(at(3))];
    let high = [at(0).max(at(2)), at(1).max(at(3))];
    (low, high, (high[0] - low[0]) * (high[1] - low[1]))
}

fn overlap(a: &[f32], b: &[f32]) -> f64 {
    let ((low_a, high_a, area_a), (low_b, high_b, area_b)) = (sides(a), sides(b));
    if area_a <= 0.0 || area_b <= 0.0 {
        return 0.0;
    }
    let side = |axis: usize| (high_a[axis].min(high_b[axis]) - low_a[axis].max(low_b[axis])).max(0.0);
    let common = side(0) * side(1);
    common / (area_a + area_b - common)
}

/// The result: exact where no score is changed.
pub(super) fn oracle(op: &SuppressOp, boxes: &[f32], scores: &[f32]) -> Reference {
    let options = op.options;
    let [_, n] = op.extents();
    let (mut value, mut bound) = (Vec::new(), Vec::new());
    for (row, scores) in scores.chunks(n).enumerate() {
        let boxes: Vec<&[f32]> = op.boxes_of(boxes, row).chunks(4).collect();
        let least = f64::from(options.score.0);
        let keeps = |score: f64| if options.strict { score > least } else { score >= least };
        let candidate = |&score: &f32| Some(f64::from(score)).filter(|&score| keeps(score));
        let mut left: Vec<Option<f64>> = scores.iter().map(candidate).collect();
        for _ in 0..options.count {
            let mut best: Option<(usize, f64)> = None;
            for (place, score) in left.iter().enumerate() {
                if let Some(score) = *score
                    && best.is_none_or(|(_, best)| score > best)
                {
                    best = Some((place, score));
                }
            }
            let Some((place, score)) = best else {
                value.extend([-1.0, 0.0]);
                continue;
            };
            value.extend([place as f64, score]);
            for other in 0..n {
                let overlap = overlap(boxes[place], boxes[other]);
                let most = f64::from(options.overlap.0);
                let over = if options.strict { overlap >= most } else { overlap > most || other == place };
                let sigma = f64::from(options.sigma.0);
                let factor = if sigma > 0.0 { (-0.5 / sigma * overlap * overlap).exp() } else { 1.0 };
                left[other] = left[other].filter(|_| !over).map(|score| score * factor);
                if factor != 1.0 {
                    left[other] = left[other].filter(|&score| score > least);
                }
            }
        }
        value.extend(left.iter().map(|score| score.unwrap_or(f64::from(NONE))));
    }
    let changes = if options.sigma.0 > 0.0 { options.count as f64 * OF_A_FACTOR } else { 0.0 };
    bound.extend(
        value.iter().map(|value| if *value <= f64::from(NONE) { 0.0 } else { changes * value.abs() }),
    );
    Reference::Bounded { value, bound }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims::Dims;
    use crate::emit::Bits;
    use crate::ops::suppress::Suppress;

    const BOXES: [f32; 16] = [0.0, 0.0, 2.0, 2.0, 2.0, 2.5, 0.0, 0.5, 0.0, 8.0, 2.0, 9.0, 5.0, 5.0, 5.0, 6.0];

    fn of(strict: bool, sigma: f32, scores: [f32; 4]) -> Vec<f64> {
        let options =
            Suppress { count: 3, overlap: Bits(0.5), score: Bits(0.25), sigma: Bits(sigma), strict };
        let dims = |extents: &[usize]| Dims::new(extents).expect("small");
        let op = SuppressOp::new(dims(&[1, 4, 4]), dims(&[1, 4]), options).expect("fits");
        oracle(&op, &BOXES, &scores).value().to_vec()
    }

    #[test]
    fn what_overlaps_a_better_box_is_not_chosen() {
        // Boxes 0 and 1 share 3 of 5.
        let none = f64::from(NONE);
        let left = [none; 4];
        let found = of(false, 0.0, [0.5, 0.75, 0.25, 0.125]);
        assert_eq!(found, [&[1.0, 0.75, 2.0, 0.25, -1.0, 0.0][..], &left].concat());
        // Above the threshold alone; a box without an area is chosen again and again.
        let found = of(true, 0.0, [0.5, 0.25, 0.25, 0.375]);
        assert_eq!(found, [&[0.0, 0.5, 3.0, 0.375, 3.0, 0.375][..], &[none, none, none, 0.375]].concat());
    }

    #[test]
    fn boxes_that_do_not_fit_are_refused() {
        let dims = |extents: &[usize]| Dims::new(extents).expect("small");
        let options = |count, overlap| Suppress {
            count,
            overlap: Bits(overlap),
            score: Bits(0.0),
            sigma: Bits(0.0),
            strict: false,
        };
        for (boxes, scores, options) in [
            (&[1, 4, 5][..], &[1, 4][..], options(1, 0.5)),
            (&[1, 4, 4], &[1, 5], options(1, 0.5)),
            (&[2, 4, 4], &[3, 4], options(1, 0.5)),
            (&[1, 4, 4], &[1, 4], options(0, 0.5)),
            (&[1, 4, 4], &[1, 4], options(1, f32::NAN)),
        ] {
            assert!(SuppressOp::new(dims(boxes), dims(scores), options).is_err(), "{boxes:?} {scores:?}");
        }
    }
}
