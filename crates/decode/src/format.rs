//! Networks that are recognised by their outputs.

use crate::detection::{Detection, Limits};
use crate::error::{Error, Result};
use crate::output::{Output, list};
use crate::posenet::{self, PictureInput, PoseNet, Settings};
use crate::segmentation::Mask;
use crate::{movenet, segmentation, ssd, yolo};

/// A person's score is at least this share of the score that a keypoint needs to be a person's first.
const POSE_OF_KEYPOINT: f32 = 0.3;

/// What a network's outputs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Boxes, classes, scores and their count: `TFLite_Detection_PostProcess`.
    Ssd,
    /// Rows or columns of a box and scores.
    Yolo,
    /// Rows or columns of a box, a score, and three numbers for each keypoint.
    YoloPose,
    /// Heatmaps of 17 parts with offsets and displacements.
    PoseNet,
    /// Rows of 17 keypoints.
    MoveNet,
    /// A map of scores for each class, or of classes.
    Segmentation,
}

/// The outputs of a run.
#[derive(Debug, Clone)]
pub struct Outputs<'a> {
    /// What errors call the network.
    pub network: &'a str,
    /// The outputs in the model's order.
    pub all: Vec<Output<'a>>,
    /// Whether maps have their channels before height and width, as in ONNX files.
    pub planar: bool,
    /// Height and width of the network's picture, in pixels.
    pub size: [usize; 2],
}

/// What a network found in a picture.
#[derive(Debug, Clone, PartialEq)]
pub enum Decoded {
    /// Things with bounding boxes, the highest score first.
    Detections(Vec<Detection>),
    /// A class for each pixel.
    Mask(Mask),
}

impl<'a> Outputs<'a> {
    /// The names and extents of all outputs, in words.
    fn list(&self) -> String {
        list(self.all.iter().map(|output| (output.name, output.extents.as_slice())))
    }

    fn refused(&self, wanted: &str) -> Error {
        Error::new(format!("{}: found outputs {}, wanted {wanted}", self.network, self.list()))
    }

    /// What the outputs look like.
    ///
    /// # Errors
    /// If they are those of no network that is known; with what they are.
    pub fn recognise(&self) -> Result<Format> {
        let shapes: Vec<&[usize]> = self.all.iter().map(Output::of_one).collect();
        let channels = |shape: &[usize]| match *shape {
            [c, _, _] if self.planar => c,
            [_, _, c] => c,
            _ => 0,
        };
        Ok(match *shapes.as_slice() {
            [[_, 4], [_], [_], [_]] => Format::Ssd,
            [[1, 17, 3] | [6, 56]] => Format::MoveNet,
            [[56, boxes]] if *boxes > 56 => Format::YoloPose,
            [[rows, columns]] if *rows.max(columns) > 4 && *rows.min(columns) > 4 => Format::Yolo,
            [[_, _, _]] => Format::Segmentation,
            ref shapes if shapes.iter().filter(|shape| channels(shape) == 17).count() == 1 => Format::PoseNet,
            _ => {
                return Err(self
                    .refused("those of a detector, a pose or a segmentation; name the format if they are"));
            }
        })
    }

    fn one(&self) -> Result<&Output<'a>> {
        match self.all.as_slice() {
            [output] => Ok(output),
            _ => Err(self.refused("one")),
        }
    }

    /// Boxes, classes, scores and count: classes and scores by their names if these say which they are, else in this order.
    fn in_order(&self) -> Option<[&Output<'a>; 4]> {
        let mut left: Vec<&Output<'a>> = self.all.iter().collect();
        let mut take = |wanted: &dyn Fn(&Output<'_>) -> bool| {
            let place = left.iter().position(|output| wanted(output))?;
            Some(left.remove(place))
        };
        let boxes = take(&|output| matches!(*output.of_one(), [_, 4]))?;
        let count = take(&|output| matches!(*output.of_one(), [1]) && output.name.contains("num"))
            .or_else(|| take(&|output| matches!(*output.of_one(), [1])))?;
        let is_row = |output: &Output<'_>| output.of_one().len() == 1;
        let scores = take(&|output| is_row(output) && output.name.to_ascii_lowercase().contains("score"));
        let classes = take(&is_row)?;
        let scores = scores.or_else(|| take(&is_row))?;
        Some([boxes, classes, scores, count])
    }

    fn posenet(&self, limits: &Limits) -> Result<Vec<Detection>> {
        let input = PictureInput { name: String::new(), planar: self.planar, size: self.size };
        let ports: Vec<_> = self.all.iter().map(Output::port).collect();
        let heads = PoseNet::new(input, &ports)?.heads(&self.all)?;
        let min_pose_score = limits.score_threshold * POSE_OF_KEYPOINT;
        let poses = if heads.has_displacements() && limits.count > 1 {
            let min_root_score = limits.score_threshold;
            let settings =
                Settings { max_poses: limits.count, min_root_score, min_pose_score, ..Settings::default() };
            posenet::multi(&heads, &settings)?
        } else {
            vec![posenet::single(&heads)]
        };
        let poses = poses.iter().filter(|pose| pose.score >= min_pose_score);
        Ok(poses.map(|pose| pose.detection()).collect())
    }
}

/// Decodes the outputs of a run, in pixels of the network's picture. Without a `format` it is the one that the outputs look
/// like. `labels` is how many classes have names; 0 if that is not known.
///
/// # Errors
/// If the outputs are not those of the format; with what was found and wanted.
pub fn decode(
    outputs: &Outputs<'_>,
    format: Option<Format>,
    labels: usize,
    limits: &Limits,
) -> Result<Decoded> {
    let format = match format {
        Some(format) => format,
        None => outputs.recognise()?,
    };
    let size = outputs.size;
    let mut detections = match format {
        Format::Ssd => {
            let in_order = outputs.in_order();
            let [boxes, classes, scores, count] = in_order
                .ok_or_else(|| outputs.refused("boxes 1xNx4, classes 1xN, scores 1xN and a count"))?;
            let count = count.values.first().map_or(0, |count| count.max(0.0) as usize);
            ssd::decode(&boxes.values, &classes.values, &scores.values, count, size, limits)
        }
        Format::Yolo => yolo::decode(outputs.one()?, size, labels, limits)?,
        Format::YoloPose => yolo::decode_poses(outputs.one()?, size, limits)?,
        Format::PoseNet => outputs.posenet(limits)?,
        Format::MoveNet => {
            let least = Limits { score_threshold: limits.score_threshold * POSE_OF_KEYPOINT, ..*limits };
            movenet::decode(outputs.one()?, size, &least)?
        }
        Format::Segmentation => {
            let mask = segmentation::decode(outputs.one()?, outputs.planar, limits.score_threshold)?;
            return Ok(Decoded::Mask(mask));
        }
    };
    detections.retain(Detection::is_finite);
    detections.sort_by(|a, b| b.score.total_cmp(&a.score));
    Ok(Decoded::Detections(detections))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outputs(shapes: &[&[usize]], planar: bool) -> Outputs<'static> {
        let output = |shape: &&[usize]| Output::new("out", shape, vec![0.0; shape.iter().product()]);
        Outputs { network: "infer", all: shapes.iter().map(output).collect(), planar, size: [100; 2] }
    }

    #[test]
    fn networks_are_recognised_by_their_outputs() {
        let cases: [(&[&[usize]], bool, Format); 9] = [
            (&[&[1, 10, 4], &[1, 10], &[1, 10], &[1]], false, Format::Ssd),
            (&[&[1, 84, 8400]], true, Format::Yolo),
            (&[&[1, 25200, 85]], true, Format::Yolo),
            (&[&[1, 56, 8400]], true, Format::YoloPose),
            (&[&[1, 1, 17, 3]], false, Format::MoveNet),
            (&[&[1, 6, 56]], false, Format::MoveNet),
            (&[&[1, 257, 257, 21]], false, Format::Segmentation),
            (&[&[1, 9, 9, 17], &[1, 9, 9, 34], &[1, 9, 9, 32], &[1, 9, 9, 32]], false, Format::PoseNet),
            (&[&[1, 17, 9, 9], &[1, 34, 9, 9]], true, Format::PoseNet),
        ];
        for (shapes, planar, wanted) in cases {
            assert_eq!(outputs(shapes, planar).recognise().ok(), Some(wanted), "{shapes:?}");
        }
        let refused = outputs(&[&[1, 1001]], false).recognise().expect_err("a classifier").to_string();
        assert!(refused.starts_with("infer: found outputs \"out\" 1x1001, wanted "), "{refused}");
    }

    #[test]
    fn outputs_of_another_format_are_refused_with_their_extents() {
        let classifier = outputs(&[&[1, 1001]], false);
        for format in [
            Format::Ssd,
            Format::Yolo,
            Format::YoloPose,
            Format::PoseNet,
            Format::MoveNet,
            Format::Segmentation,
        ] {
            let refused = decode(&classifier, Some(format), 0, &Limits::default());
            let refused = refused.expect_err("a classifier").to_string();
            assert!(refused.contains("1x1001") && refused.contains("wanted"), "{format:?}: {refused}");
        }
    }

    #[test]
    fn outputs_of_a_detector_are_told_apart_by_their_names() {
        let row = |name, values: [f32; 2]| Output::new(name, &[1, 2], values.to_vec());
        let all = vec![
            row("StatefulPartitionedCall:scores", [0.9, 0.1]),
            Output::new("boxes", &[1, 2, 4], vec![0.1, 0.2, 0.3, 0.4, 0.0, 0.0, 1.0, 1.0]),
            Output::new("num_detections", &[1], vec![2.0]),
            row("classes", [17.0, 3.0]),
        ];
        let outputs = Outputs { network: "ssd", all, planar: false, size: [10, 100] };
        let found = decode(&outputs, Some(Format::Ssd), 0, &Limits::default()).expect("a detector");
        let Decoded::Detections(found) = found else { panic!("no detections: {found:?}") };
        assert_eq!((found.len(), found[0].class, found[0].score), (1, 17, 0.9));
        assert_eq!(found[0].bounding_box, [20.0, 1.0, 40.0, 3.0]);
    }

    #[test]
    fn what_is_not_finite_is_not_found() {
        let all = vec![
            Output::new("heatmap", &[1, 9, 9, 17], vec![f32::NAN; 81 * 17]),
            Output::new("offset", &[1, 9, 9, 34], vec![0.0; 81 * 34]),
        ];
        let outputs = Outputs { network: "pose", all, planar: false, size: [257; 2] };
        let found = decode(&outputs, None, 0, &Limits::default()).expect("a PoseNet");
        assert_eq!(found, Decoded::Detections(Vec::new()));
    }
}
