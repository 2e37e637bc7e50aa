//! MoveNet: rows of keypoints in shares of the picture.

use crate::detection::{Detection, Keypoint, Limits, non_maximum_suppression};
use crate::error::Result;
use crate::output::Output;
use crate::skeleton::PARTS;

/// The people, in pixels of a picture of height and width.
///
/// | output | a row is |
/// |---|---|
/// | 1x1x17x3 | y, x and score of one of the keypoints of the only person |
/// | 1xNx56 | y, x and score of each keypoint of a person, then top, left, bottom and right of the box, and the person's score |
///
/// Keypoints are in the order of [`crate::skeleton::NAMES`].
///
/// # Errors
/// If the output has other extents; with what was found.
pub fn decode(output: &Output<'_>, [height, width]: [usize; 2], limits: &Limits) -> Result<Vec<Detection>> {
    let [height, width] = [height as f32, width as f32];
    let keypoints = |row: &[f32]| -> Vec<Keypoint> {
        let points = row.chunks_exact(3).take(PARTS);
        points.map(|point| Keypoint { x: point[1] * width, y: point[0] * height, score: point[2] }).collect()
    };
    let people = match *output.of_one() {
        [1, 17, 3] => {
            let keypoints = keypoints(&output.values);
            let score = keypoints.iter().map(|keypoint| keypoint.score).sum::<f32>() / PARTS as f32;
            vec![Detection::of_keypoints(score, keypoints)]
        }
        [_, 56] => {
            let person = |row: &[f32]| Detection {
                score: row[55],
                class: 0,
                bounding_box: [row[52] * width, row[51] * height, row[54] * width, row[53] * height],
                keypoints: keypoints(row),
            };
            output.values.chunks_exact(56).map(person).collect()
        }
        _ => return Err(output.refused("1x1x17x3 or 1xNx56")),
    };
    let people = people.into_iter().filter(|person| person.score >= limits.score_threshold).collect();
    Ok(non_maximum_suppression(people, limits.iou_threshold, limits.count))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { score_threshold: 0.15, iou_threshold: 0.5, count: 10 };

    #[test]
    fn rows_are_shares_of_the_picture() {
        let row: Vec<f32> = (0..17).flat_map(|part| [0.5, part as f32 / 16.0, 0.75]).collect();
        let read = |extents: &[usize], values: Vec<f32>| {
            decode(&Output::new("out", extents, values), [32, 64], &LIMITS)
        };
        let found = read(&[1, 1, 17, 3], row.clone()).expect("one");
        assert_eq!((found.len(), found[0].score, found[0].bounding_box), (1, 0.75, [0.0, 16.0, 64.0, 16.0]));
        assert_eq!(found[0].keypoints[8], Keypoint { x: 32.0, y: 16.0, score: 0.75 });
        let several = [row, vec![0.25, 0.125, 0.75, 0.875, 0.9], vec![0.0; 56]].concat();
        let found = read(&[1, 2, 56], several).expect("one of two");
        assert_eq!((found.len(), found[0].score, found[0].bounding_box), (1, 0.9, [8.0, 8.0, 56.0, 24.0]));
        assert!(read(&[1, 17, 3], vec![0.0; 51]).is_err());
    }
}
