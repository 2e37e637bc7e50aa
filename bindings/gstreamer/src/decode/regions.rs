//! What was found as metadata: `GstVideoRegionOfInterestMeta` with parameters, and a tensor of ours.
//!
//! Places are shares of the frame, so that they hold where the frame is scaled.

use crate::tensors::{Tensor, TensorMeta, Tensors, View};
use diptych::{Dims, HostTensor};
use diptych_decode::skeleton::{COCO_NAMES, PARTS};
use diptych_decode::{Detection, Mask, classification};
use gst_video::VideoRegionOfInterestMeta;
use std::sync::Arc;

/// The name of the tensor that a mask is: of u8 and the dimensions height and width, a class for each place. It covers the
/// network's whole picture, whatever its extents are.
pub const MASK: &str = "diptych.mask";

/// The name of the tensor that what was found is: of f32, a row for each. A row is left, top, right, bottom, score, class, and x, y
/// and score of each point; places are shares of the frame's width and height.
pub const REGIONS: &str = "diptych.regions";

/// The name of the parameter that a box has, as in Intel's DL Streamer.
const DETECTION: &str = "detection";

/// The name of the parameter that the points of a box have.
const KEYPOINTS: &str = "keypoints";

/// A point of something that was found, such as a wrist.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// What it is; empty if that is not known.
    pub name: String,
    /// Where, in shares of the frame's width and height, which it may lie beyond.
    pub place: [f64; 2],
    /// How sure the network is, from 0 to 1.
    pub score: f64,
}

/// Something that was found in a frame.
#[derive(Debug, Clone, PartialEq)]
pub struct Region {
    /// What it is.
    pub label: String,
    /// The number that the network has for the class.
    pub class: u32,
    /// How sure the network is, from 0 to 1.
    pub score: f64,
    /// Left, top, right, bottom in shares of the frame's width and height, which it may reach beyond.
    pub area: [f64; 4],
    /// Its points.
    pub points: Vec<Point>,
}

/// What `diptychdecode` found in the frame of a buffer, the surest first.
///
/// It is read from the tensors [`REGIONS`]: GStreamer 1.22 drops the parameters of `GstVideoRegionOfInterestMeta` where a frame is
/// converted or scaled.
pub fn regions(buffer: &gst::BufferRef) -> Vec<Region> {
    let mut regions = Vec::new();
    for meta in buffer.iter_meta::<TensorMeta>() {
        for tensor in meta.tensors().all().iter().filter(|tensor| tensor.name == REGIONS) {
            let (numbers, width) = (tensor.data.to_f32(), tensor.data.dims().extents().last().copied());
            let rows = numbers.chunks_exact(width.unwrap_or(1).max(1));
            regions.extend(rows.filter_map(|row| region(row, &tensor.labels)));
        }
    }
    regions
}

/// What the class of a number is called, among things with so many points.
fn label(labels: &[String], class: usize, points: usize) -> String {
    match classification::label(labels, class) {
        Some(label) => label.to_owned(),
        None if points == PARTS => "person".to_owned(),
        None => class.to_string(),
    }
}

fn region(row: &[f32], labels: &[String]) -> Option<Region> {
    let &[left, top, right, bottom, score, class, ref points @ ..] = row else { return None };
    let count = points.len() / 3;
    let point = |(index, point): (usize, &[f32])| Point {
        name: if count == PARTS { COCO_NAMES[index].to_owned() } else { String::new() },
        place: [point[0].into(), point[1].into()],
        score: point[2].into(),
    };
    Some(Region {
        label: label(labels, class as usize, count),
        class: class as u32,
        score: score.into(),
        area: [left, top, right, bottom].map(f64::from),
        points: points.chunks_exact(3).enumerate().map(point).collect(),
    })
}

/// Adds what was found to the buffer, as regions and as a tensor of the element `name`. Gives what it added.
pub(super) fn add_detections(
    buffer: &mut gst::BufferRef,
    name: &str,
    detections: &[Detection],
    view: View,
    labels: Arc<[String]>,
) -> diptych::Result<Vec<Region>> {
    let [width, height] = view.frame.map(f64::from);
    let share = |x: f32, y: f32| {
        let [x, y] = view.frame_place([x.into(), y.into()]);
        [x / width, y / height]
    };
    let most = detections.iter().map(|detection| detection.keypoints.len()).max().unwrap_or_default();
    let mut rows = Vec::new();
    for detection in detections {
        let [left, top, right, bottom] = detection.bounding_box;
        let ([left, top], [right, bottom]) = (share(left, top), share(right, bottom));
        let label = label(&labels, detection.class, detection.keypoints.len());
        // The rectangle has whole pixels of the frame.
        let pixel = |share: f64, extent: f64| (share * extent).clamp(0.0, extent).round() as u32;
        let [x, y] = [pixel(left, width), pixel(top, height)];
        let size = [pixel(right, width).saturating_sub(x), pixel(bottom, height).saturating_sub(y)];
        let mut meta = VideoRegionOfInterestMeta::add(buffer, &label, (x, y, size[0], size[1]));
        let parameter = gst::Structure::builder(DETECTION)
            .field("label_id", detection.class as i32)
            .field("confidence", f64::from(detection.score))
            .field("x_min", left)
            .field("y_min", top)
            .field("x_max", right)
            .field("y_max", bottom);
        meta.add_param(parameter.build());
        let points = detection.keypoints.iter().map(|point| (share(point.x, point.y), point.score));
        if !detection.keypoints.is_empty() {
            let list = |of: fn(([f64; 2], f32)) -> f64| gst::Array::new(points.clone().map(of));
            let mut parameter = gst::Structure::builder(KEYPOINTS)
                .field("x", list(|([x, _], _)| x))
                .field("y", list(|([_, y], _)| y))
                .field("score", list(|(_, score)| score.into()));
            if detection.keypoints.len() == PARTS {
                parameter = parameter.field("name", gst::Array::new(COCO_NAMES));
            }
            meta.add_param(parameter.build());
        }
        rows.extend([left, top, right, bottom].map(|share| share as f32));
        rows.extend([detection.score, detection.class as f32]);
        rows.extend(points.flat_map(|([x, y], score)| [x as f32, y as f32, score]));
        rows.resize(rows.len() + 3 * (most - detection.keypoints.len()), 0.0);
    }
    // A tensor has one row at least.
    if detections.is_empty() {
        return Ok(Vec::new());
    }
    let width = 6 + 3 * most;
    let found = rows.chunks_exact(width).filter_map(|row| region(row, &labels)).collect();
    let dims = Dims::new(&[detections.len(), width])?;
    let tensor = Tensor { name: REGIONS.to_owned(), data: HostTensor::new(dims, rows)?, labels };
    TensorMeta::add(buffer, Tensors::new(name, false, vec![tensor]), view);
    Ok(found)
}

/// Adds a mask to the buffer, as a tensor of the element `name`.
pub(super) fn add_mask(
    buffer: &mut gst::BufferRef,
    name: &str,
    mask: Mask,
    view: View,
    labels: Arc<[String]>,
) -> diptych::Result<()> {
    let data = HostTensor::of(Dims::new(&[mask.height, mask.width])?, mask.classes)?;
    let tensor = Tensor { name: MASK.to_owned(), data, labels };
    TensorMeta::add(buffer, Tensors::new(name, false, vec![tensor]), view);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use diptych_decode::Keypoint;

    #[test]
    fn what_was_found_is_read_back_as_shares_of_the_frame() {
        gst::init().expect("GStreamer");
        let mut buffer = gst::Buffer::new();
        let target = buffer.get_mut().expect("the only reference");
        // A frame of 200 x 100 as a picture of 50 x 50 that saw its middle.
        let view = View { input: [50, 50], frame: [200, 100], to_frame: [[2.0, 0.0, 50.0], [0.0, 2.0, 0.0]] };
        let labels: Arc<[String]> = ["cat", ""].map(str::to_owned).into();
        let point = Keypoint { x: 25.0, y: 5.0, score: 0.5 };
        let detections = [
            Detection {
                score: 0.75,
                class: 0,
                bounding_box: [0.0, 10.0, 20.0, 30.0],
                keypoints: vec![point],
            },
            Detection {
                score: 0.5,
                class: 1,
                bounding_box: [-100.0, 0.0, 50.0, 60.0],
                keypoints: Vec::new(),
            },
        ];
        add_detections(target, "decoder", &detections, view, labels.clone()).expect("two");
        let found = regions(&buffer);
        assert_eq!((found[0].label.as_str(), found[0].score), ("cat", 0.75));
        assert_eq!(found[0].area, [0.25, 0.2, 0.45, 0.6].map(|share: f32| f64::from(share)));
        assert_eq!((found[0].points[0].place, found[0].points[0].score), ([0.5, f64::from(0.1f32)], 0.5));
        // A class without a name is a number. It reaches beyond the frame, and its rectangle does not.
        assert_eq!((found[1].label.as_str(), found[1].class, found[1].area[0]), ("1", 1, -0.75));
        let rectangles: Vec<_> =
            buffer.iter_meta::<VideoRegionOfInterestMeta>().map(|meta| meta.rect()).collect();
        assert_eq!(rectangles, [(50, 20, 40, 40), (0, 0, 150, 100)]);
        let region = buffer.iter_meta::<VideoRegionOfInterestMeta>().next().expect("one");
        let detection = region.param(DETECTION).expect("a parameter");
        assert_eq!(
            (detection.get("confidence"), detection.get("label_id"), detection.get("y_max")),
            (Ok(0.75), Ok(0), Ok(0.6))
        );
        let points = region.param(KEYPOINTS).expect("a parameter").get::<gst::Array>("x").expect("a list");
        assert_eq!(points.as_slice()[0].get(), Ok(0.5));

        let mut buffer = gst::Buffer::new();
        add_detections(buffer.get_mut().expect("the only reference"), "decoder", &[], view, labels)
            .expect("none");
        assert!(regions(&buffer).is_empty() && buffer.meta::<VideoRegionOfInterestMeta>().is_none());
    }
}
