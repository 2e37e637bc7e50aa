//! Boxes: files that end in `TFLite_Detection_PostProcess`, and the networks that are called YOLO.

use super::found::{Detection, Keypoint, suppress};
use super::outputs::Map;
use super::{Limits, OutputFormat};
use crate::failure::Failure;

/// The boxes of a file that has chosen one of many itself, in shares of its picture: top, left, bottom, right in `areas`.
pub(super) fn ssd(
    areas: &[f32],
    classes: &[f32],
    scores: &[f32],
    count: usize,
    [width, height]: [f32; 2],
    limits: &Limits,
) -> Vec<Detection> {
    let found = areas.chunks_exact(4).zip(classes).zip(scores).take(count);
    let detections = found.filter_map(|((area, &class), &score)| {
        let &[top, left, bottom, right] = area else { return None };
        let area = [left * width, top * height, right * width, bottom * height];
        let class = class.max(0.0) as usize;
        (score >= limits.threshold).then_some(Detection { score, class, area, points: Vec::new() })
    });
    detections.filter(Detection::is_finite).take(limits.count).collect()
}

/// How the rows of a YOLO's output are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Row {
    /// Centre, width, height, a score for each class.
    Scores,
    /// Centre, width, height, the probability that there is any thing, a score for each class that is multiplied with it.
    Objectness,
    /// Left, top, right, bottom, score, class: the file has chosen one of many itself.
    Chosen,
    /// Centre, width, height, score, and x, y and score of each point.
    Points,
}

/// An output of rows, or of columns where there are more of these: each is a box.
///
/// | columns | rows | a row is |
/// |---|---|---|
/// | 6 | 1000 at most | left, top, right, bottom, score, class |
/// | other | | centre x, centre y, width, height, in outputs of rows the probability of any thing, a score for each class |
///
/// Where the classes have names, their number decides whether there is a probability of any thing. Where the numbers of
/// all boxes whose scores count are at most 2 they are shares of the network's picture, else its pixels.
pub(super) fn yolo(
    map: &Map<'_>,
    size: [f32; 2],
    labels: usize,
    format: OutputFormat,
    limits: &Limits,
) -> Result<Vec<Detection>, Failure> {
    let &[rows, columns] = map.extents.as_slice() else { return Err(map.refused("1xNxC or 1xCxN")) };
    let (count, length, is_turned) =
        if rows < columns { (columns, rows, true) } else { (rows, columns, false) };
    let row = match format {
        OutputFormat::YoloPose if length > 5 && (length - 5).is_multiple_of(3) => Row::Points,
        OutputFormat::YoloPose => {
            return Err(map.refused("rows of a box, a score, and three numbers for each point"));
        }
        _ if length == 6 && count <= 1000 && !is_turned => Row::Chosen,
        _ if labels > 0 && length == 4 + labels => Row::Scores,
        _ if labels > 0 && length == 5 + labels => Row::Objectness,
        _ if labels > 0 => {
            return Err(map.refused(&format!("rows of 4 or 5 numbers and {labels}, one for each label")));
        }
        _ if is_turned && length > 4 => Row::Scores,
        _ if !is_turned && length > 5 => Row::Objectness,
        _ => return Err(map.refused("rows of a box and scores")),
    };
    let at = |index: usize, column: usize| {
        let place = if is_turned { column * count + index } else { index * length + column };
        map.values.get(place).copied().unwrap_or(f32::NAN)
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
            Row::Chosen => (at(index, 5).max(0.0) as usize, at(index, 4)),
            Row::Points => (0, at(index, 4)),
        };
        let is_found = score >= limits.threshold && place(index).into_iter().all(f32::is_finite);
        is_found.then_some((index, class, score))
    };
    let counted: Vec<(usize, usize, f32)> = (0..count).filter_map(counts).collect();
    let largest = counted.iter().flat_map(|&(index, ..)| place(index)).map(f32::abs).fold(0.0, f32::max);
    let [x_scale, y_scale] = if largest <= 2.0 { size } else { [1.0; 2] };
    let detection = |(index, class, score): (usize, usize, f32)| {
        let [a, b, c, d] = place(index);
        let area = match row {
            Row::Chosen => [a, b, c, d],
            _ => [a - c / 2.0, b - d / 2.0, a + c / 2.0, b + d / 2.0],
        };
        let [left, top, right, bottom] = area;
        let area = [left * x_scale, top * y_scale, right * x_scale, bottom * y_scale];
        let points = if row == Row::Points { 5..length } else { 0..0 };
        let points = points.step_by(3).map(|column| Keypoint {
            x: at(index, column) * x_scale,
            y: at(index, column + 1) * y_scale,
            score: at(index, column + 2),
        });
        Detection { score, class, area, points: points.collect() }
    };
    let detections: Vec<Detection> = counted.into_iter().map(detection).collect();
    // What the file has chosen itself is not chosen from again.
    let most = if row == Row::Chosen { 1.0 } else { limits.overlap };
    Ok(suppress(detections, most, limits.count))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { threshold: 0.5, overlap: 0.4, count: 10 };

    fn map<'a>(extents: &[usize], values: &'a [f32]) -> Map<'a> {
        Map { name: "out", extents: extents.to_vec(), values: values.into() }
    }

    fn read(extents: &[usize], values: &[f32], labels: usize) -> Vec<Detection> {
        yolo(&map(extents, values), [100.0, 50.0], labels, OutputFormat::Yolo, &LIMITS).expect("a YOLO")
    }

    #[test]
    fn a_files_own_choice_is_taken_as_it_is() {
        let areas = [0.1, 0.2, 0.3, 0.4, 0.0, 0.0, 1.0, 1.0, 0.5, 0.5, 0.6, 0.6];
        let found = ssd(&areas, &[17.0, 0.0, 3.0], &[0.9, 0.2, 0.8], 2, [100.0, 10.0], &LIMITS);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].area, found[0].class), ([20.0, 1.0, 40.0, 3.0], 17));
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
        let found: Vec<_> = found.iter().map(|found| (found.score, found.class, found.area)).collect();
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
        let found = yolo(&map(&[6, 7], &turned), [100.0, 50.0], 0, OutputFormat::Yolo, &limits);
        let found = found.expect("a YOLO");
        assert_eq!((found.len(), found[0].score), (1, 0.9));
        for (found, wanted) in found[0].area.iter().zip([40.0, 15.0, 60.0, 35.0]) {
            assert!((found - wanted).abs() < 1e-4, "{found}, wanted {wanted}");
        }
        let areas = [f32::NAN, 0.2, 0.3, 0.4, 0.1, 0.2, 0.3, 0.4];
        let found = ssd(&areas, &[1.0, 2.0], &[0.9, 0.8], 2, [100.0, 10.0], &limits);
        assert_eq!(found.iter().map(|found| found.class).collect::<Vec<_>>(), [2]);
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
        for (found, wanted) in found[0].area.iter().zip([40.0, 15.0, 60.0, 35.0]) {
            assert!((found - wanted).abs() < 1e-4, "{found}, wanted {wanted}");
        }
        // With four labels there is none.
        assert_eq!(read(&[9, 8], &rows, 4)[0].score, 0.8);
    }

    #[test]
    fn chosen_boxes_and_points_are_read() {
        let rows = [[10.0, 5.0, 30.0, 25.0, 0.9, 7.0], [11.0, 5.0, 30.0, 25.0, 0.8, 7.0]].concat();
        let rows = [rows, vec![0.0; 6 * 6]].concat();
        let found = read(&[8, 6], &rows, 0);
        assert_eq!((found.len(), found[0].class, found[0].area), (2, 7, [10.0, 5.0, 30.0, 25.0]));

        let row = [20.0, 20.0, 10.0, 10.0, 0.9, 18.0, 19.0, 0.7, 22.0, 23.0, 0.6];
        let rows = [row.to_vec(), vec![0.0; 11 * 11]].concat();
        let pose = |values: &[f32], extents: &[usize]| {
            yolo(&map(extents, values), [100.0; 2], 0, OutputFormat::YoloPose, &LIMITS)
        };
        let found = pose(&rows, &[12, 11]).expect("two points");
        assert_eq!(found[0].points[1], Keypoint { x: 22.0, y: 23.0, score: 0.6 });
        let refused = pose(&[0.0; 120], &[12, 10]).expect_err("no points").text;
        assert!(refused.contains("\"out\"") && refused.contains("12x10"), "{refused}");
    }
}
