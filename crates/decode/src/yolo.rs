//! YOLO: rows or columns of a bounding box and scores, or of a bounding box, a score and keypoints.

use crate::detection::{Detection, Keypoint, Limits, centred, non_maximum_suppression};
use crate::error::Result;
use crate::output::Output;

/// How the rows of a YOLO's output are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Row {
    /// Centre, width, height, a score for each class.
    Scores,
    /// Centre, width, height, the probability that there is any thing, a score for each class that is multiplied with it.
    Objectness,
    /// Left, top, right, bottom, score, class: the file itself has applied non-maximum suppression.
    Suppressed,
    /// Centre, width, height, score, and x, y and score of each keypoint.
    Keypoints,
}

/// The boxes of an output of rows, or of columns where there are more of these: each is a box. In pixels of a picture of height
/// and width.
///
/// | columns | rows | a row is |
/// |---|---|---|
/// | 6 | 1000 at most | left, top, right, bottom, score, class |
/// | other | | centre x, centre y, width, height, in outputs of rows the probability of any thing, a score for each class |
///
/// Where the classes have names, the number of `labels` decides whether there is a probability of any thing; else it is 0. Where
/// the coordinates of all boxes whose scores count are at most 2 they are shares of the picture, else its pixels.
///
/// # Errors
/// If the output has other extents; with what was found.
pub fn decode(
    output: &Output<'_>,
    size: [usize; 2],
    labels: usize,
    limits: &Limits,
) -> Result<Vec<Detection>> {
    let (count, length, in_columns) = extents(output)?;
    let row = match length {
        6 if count <= 1000 && !in_columns => Row::Suppressed,
        _ if labels > 0 && length == 4 + labels => Row::Scores,
        _ if labels > 0 && length == 5 + labels => Row::Objectness,
        _ if labels > 0 => {
            let wanted = format!("rows of 4 or 5 numbers and {labels}, one for each label");
            return Err(output.refused(&wanted));
        }
        _ if in_columns && length > 4 => Row::Scores,
        _ if !in_columns && length > 5 => Row::Objectness,
        _ => return Err(output.refused("rows of a box and scores")),
    };
    read(output, size, row, limits)
}

/// The boxes with keypoints of an output of rows, or of columns where there are more of these: centre x, centre y, width, height,
/// score, and x, y and score of each keypoint. Coordinates are as [`decode`] has them.
///
/// # Errors
/// If the output has other extents; with what was found.
pub fn decode_poses(output: &Output<'_>, size: [usize; 2], limits: &Limits) -> Result<Vec<Detection>> {
    let (_, length, _) = extents(output)?;
    if length <= 5 || !(length - 5).is_multiple_of(3) {
        return Err(output.refused("rows of a box, a score, and three numbers for each keypoint"));
    }
    read(output, size, Row::Keypoints, limits)
}

/// How many boxes there are, how many numbers each has, and whether a box is a column.
fn extents(output: &Output<'_>) -> Result<(usize, usize, bool)> {
    match *output.of_one() {
        [rows, columns] if rows.checked_mul(columns) != Some(output.values.len()) => {
            Err(output.refused(&format!("extents of its {} values", output.values.len())))
        }
        [rows, columns] if rows < columns => Ok((columns, rows, true)),
        [rows, columns] => Ok((rows, columns, false)),
        _ => Err(output.refused("1xNxC or 1xCxN")),
    }
}

/// The boxes that count, after non-maximum suppression.
fn read(
    output: &Output<'_>,
    [height, width]: [usize; 2],
    row: Row,
    limits: &Limits,
) -> Result<Vec<Detection>> {
    let (count, length, in_columns) = extents(output)?;
    let at = |index: usize, column: usize| {
        let place = if in_columns { column * count + index } else { index * length + column };
        output.values.get(place).copied().unwrap_or(f32::NAN)
    };
    let best = |index: usize, first: usize| {
        (first..length).map(|column| (column - first, at(index, column))).fold(
            (0, f32::NEG_INFINITY),
            |best, next| {
                if next.1 > best.1 { next } else { best }
            },
        )
    };
    let place = |index: usize| -> [f32; 4] { std::array::from_fn(|column| at(index, column)) };
    let counts = |index: usize| {
        let (class, score) = match row {
            Row::Scores => best(index, 4),
            Row::Objectness => {
                let (class, score) = best(index, 5);
                (class, score * at(index, 4))
            }
            Row::Suppressed => (at(index, 5).max(0.0) as usize, at(index, 4)),
            Row::Keypoints => (0, at(index, 4)),
        };
        let is_found = score >= limits.score_threshold && place(index).into_iter().all(f32::is_finite);
        is_found.then_some((index, class, score))
    };
    let counted: Vec<(usize, usize, f32)> = (0..count).filter_map(counts).collect();
    let largest = counted.iter().flat_map(|&(index, ..)| place(index)).map(f32::abs).fold(0.0, f32::max);
    let [x_scale, y_scale] = if largest <= 2.0 { [width as f32, height as f32] } else { [1.0; 2] };
    let detection = |(index, class, score): (usize, usize, f32)| {
        let [a, b, c, d] = place(index);
        let area = match row {
            Row::Suppressed => [a, b, c, d],
            _ => centred([a, b], [c, d]),
        };
        let [left, top, right, bottom] = area;
        let bounding_box = [left * x_scale, top * y_scale, right * x_scale, bottom * y_scale];
        let keypoints = if row == Row::Keypoints { 5..length } else { 0..0 };
        let keypoints = keypoints.step_by(3).map(|column| Keypoint {
            x: at(index, column) * x_scale,
            y: at(index, column + 1) * y_scale,
            score: at(index, column + 2),
        });
        Detection { score, class, bounding_box, keypoints: keypoints.collect() }
    };
    let detections: Vec<Detection> = counted.into_iter().map(detection).collect();
    // The suppression of the file is kept.
    let most = if row == Row::Suppressed { 1.0 } else { limits.iou_threshold };
    Ok(non_maximum_suppression(detections, most, limits.count))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { score_threshold: 0.5, iou_threshold: 0.4, count: 10 };

    fn output<'a>(&[rows, columns]: &[usize; 2], values: &'a [f32]) -> Output<'a> {
        Output::new("out", &[1, rows, columns], values)
    }

    fn read(extents: &[usize; 2], values: &[f32], labels: usize) -> Vec<Detection> {
        decode(&output(extents, values), [50, 100], labels, &LIMITS).expect("a YOLO")
    }

    #[test]
    fn columns_are_boxes_where_there_are_more_of_them() {
        // Seven boxes of 4 + 2 numbers; the first two overlap.
        let boxes = [
            [20.0, 20.0, 10.0, 10.0, 0.1, 0.9],
            [21.0, 20.0, 10.0, 10.0, 0.2, 0.8],
            [60.0, 20.0, 4.0, 8.0, 0.7, 0.1],
            [1.0, 1.0, 1.0, 1.0, 0.49, 0.1],
            [1.0, 1.0, 1.0, 1.0, 0.0, 0.0],
            [1.0, 1.0, 1.0, 1.0, 0.0, 0.0],
            [1.0, 1.0, 1.0, 1.0, f32::NAN, 0.0],
        ];
        let turned: Vec<f32> = (0..6).flat_map(|column| boxes.map(|row| row[column])).collect();
        let found = read(&[6, 7], &turned, 0);
        let found: Vec<_> =
            found.iter().map(|found| (found.score, found.class, found.bounding_box)).collect();
        assert_eq!(found, [(0.9, 1, [15.0, 15.0, 25.0, 25.0]), (0.7, 0, [58.0, 16.0, 62.0, 24.0])]);
    }

    #[test]
    fn rows_that_do_not_count_decide_nothing() {
        // Shares: one box counts, one has a large width and no score, and those without a place are surer than all.
        let boxes = [
            [0.5, 0.5, 0.2, 0.4, 0.1, 0.9],
            [0.5, 0.5, 2.3, 0.4, 0.1, 0.2],
            [f32::NAN, 0.5, 0.2, 0.4, 0.1, 0.95],
            [0.5, f32::INFINITY, 0.2, 0.4, 0.1, 0.99],
            [0.0; 6],
            [0.0; 6],
            [0.0; 6],
        ];
        let turned: Vec<f32> = (0..6).flat_map(|column| boxes.map(|row| row[column])).collect();
        let limits = Limits { count: 1, ..LIMITS };
        let found = decode(&output(&[6, 7], &turned), [50, 100], 0, &limits);
        let found = found.expect("a YOLO");
        assert_eq!((found.len(), found[0].score), (1, 0.9));
        for (found, wanted) in found[0].bounding_box.iter().zip([40.0, 15.0, 60.0, 35.0]) {
            assert!((found - wanted).abs() < 1e-4, "{found}, wanted {wanted}");
        }
    }

    #[test]
    fn rows_have_a_probability_of_any_thing_before_the_scores() {
        let row = [0.5, 0.5, 0.2, 0.4, 0.8, 0.1, 0.75, 0.0];
        let none = [0.0; 8];
        let rows = [row, none, none, none, none, none, none, none, none].concat();
        let found = read(&[9, 8], &rows, 0);
        assert_eq!((found.len(), found[0].class), (1, 1));
        assert!((found[0].score - 0.6).abs() < 1e-6);
        // Shares of 100 x 50 pixels.
        for (found, wanted) in found[0].bounding_box.iter().zip([40.0, 15.0, 60.0, 35.0]) {
            assert!((found - wanted).abs() < 1e-4, "{found}, wanted {wanted}");
        }
        // With four labels there is none.
        assert_eq!(read(&[9, 8], &rows, 4)[0].score, 0.8);
    }

    #[test]
    fn suppressed_boxes_and_keypoints_are_read() {
        let rows = [[10.0, 5.0, 30.0, 25.0, 0.9, 7.0], [11.0, 5.0, 30.0, 25.0, 0.8, 7.0]].concat();
        let rows = [rows, vec![0.0; 6 * 6]].concat();
        let found = read(&[8, 6], &rows, 0);
        assert_eq!((found.len(), found[0].class, found[0].bounding_box), (2, 7, [10.0, 5.0, 30.0, 25.0]));

        let row = [20.0, 20.0, 10.0, 10.0, 0.9, 18.0, 19.0, 0.7, 22.0, 23.0, 0.6];
        let rows = [row.to_vec(), vec![0.0; 11 * 11]].concat();
        let pose =
            |values: &[f32], extents: &[usize; 2]| decode_poses(&output(extents, values), [100; 2], &LIMITS);
        let found = pose(&rows, &[12, 11]).expect("two points");
        assert_eq!(found[0].keypoints[1], Keypoint { x: 22.0, y: 23.0, score: 0.6 });
        let refused = pose(&[0.0; 120], &[12, 10]).expect_err("no keypoints").to_string();
        assert!(refused.contains("\"out\"") && refused.contains("12x10"), "{refused}");
    }
}
