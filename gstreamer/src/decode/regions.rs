//! What was found as metadata that GStreamer has: `GstVideoRegionOfInterestMeta` with parameters.
//!
//! Places in the parameters are shares of the frame, so that they hold where the frame is scaled.

use super::found::Detection;
use super::{Mask, PARTS};
use crate::tensors::{Tensor, TensorMeta, Tensors, View};
use diptych::{Dims, HostTensor};
use gst_video::VideoRegionOfInterestMeta;

/// The name of the tensor that a mask is: of u8 and the dimensions height and width, a class for each place. It covers the
/// network's whole picture, whatever its extents are.
pub const MASK: &str = "diptych.mask";

/// The name of the parameter that a box has, as in Intel's DL Streamer.
const DETECTION: &str = "detection";

/// That of its points.
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
    /// The same as the network's number.
    pub class: u32,
    /// How sure the network is, from 0 to 1.
    pub score: f64,
    /// Left, top, right, bottom in shares of the frame's width and height, which it may reach beyond.
    pub area: [f64; 4],
    /// Its points.
    pub points: Vec<Point>,
}

/// What `diptychdecode` found in the frame of a buffer.
pub fn regions(buffer: &gst::BufferRef) -> Vec<Region> {
    buffer.iter_meta::<VideoRegionOfInterestMeta>().filter_map(|meta| region(&meta)).collect()
}

fn region(meta: &VideoRegionOfInterestMeta) -> Option<Region> {
    let detection = meta.param(DETECTION)?;
    let number = |name: &str| detection.get::<f64>(name).ok();
    let area = [number("x_min")?, number("y_min")?, number("x_max")?, number("y_max")?];
    let class = detection.get::<i32>("label_id").ok().and_then(|class| u32::try_from(class).ok());
    let points = meta.param(KEYPOINTS).and_then(points).unwrap_or_default();
    let (label, score) = (meta.roi_type().to_owned(), number("confidence")?);
    Some(Region { label, class: class.unwrap_or_default(), score, area, points })
}

fn points(structure: &gst::StructureRef) -> Option<Vec<Point>> {
    let numbers = |name: &str| {
        let array = structure.get::<gst::Array>(name).ok()?;
        array.as_slice().iter().map(|value| value.get::<f64>().ok()).collect::<Option<Vec<f64>>>()
    };
    let (xs, ys, scores) = (numbers("x")?, numbers("y")?, numbers("score")?);
    let names = structure.get::<gst::Array>("name").ok();
    let name = |index: usize| {
        let value = names.as_ref()?.as_slice().get(index)?;
        value.get::<String>().ok()
    };
    let points = xs.into_iter().zip(ys).zip(scores).enumerate();
    let point =
        |(index, ((x, y), score))| Point { name: name(index).unwrap_or_default(), place: [x, y], score };
    Some(points.map(point).collect())
}

/// Adds what was found to the buffer.
pub(super) fn add_detections(
    buffer: &mut gst::BufferRef,
    detections: &[Detection],
    view: &View,
    label: impl Fn(usize) -> String,
) {
    let [width, height] = view.frame.map(f64::from);
    let share = |x: f32, y: f32| {
        let [x, y] = view.frame_place([x.into(), y.into()]);
        [x / width, y / height]
    };
    for detection in detections {
        let [left, top, right, bottom] = detection.area;
        let ([left, top], [right, bottom]) = (share(left, top), share(right, bottom));
        let label = label(detection.class);
        // The rectangle has whole pixels of the frame.
        let pixel = |share: f64, extent: f64| (share * extent).clamp(0.0, extent);
        let [x, y] = [pixel(left, width), pixel(top, height)].map(|v| v.round() as u32);
        let [x_end, y_end] = [pixel(right, width), pixel(bottom, height)].map(|v| v.round() as u32);
        let rectangle = (x, y, x_end.saturating_sub(x), y_end.saturating_sub(y));
        let mut meta = VideoRegionOfInterestMeta::add(buffer, &label, rectangle);
        let parameter = gst::Structure::builder(DETECTION)
            .field("label_id", detection.class as i32)
            .field("confidence", f64::from(detection.score))
            .field("x_min", left)
            .field("y_min", top)
            .field("x_max", right)
            .field("y_max", bottom);
        meta.add_param(parameter.build());
        if !detection.points.is_empty() {
            let places = || detection.points.iter().map(|point| share(point.x, point.y));
            let scores = detection.points.iter().map(|point| f64::from(point.score));
            let mut parameter = gst::Structure::builder(KEYPOINTS)
                .field("x", gst::Array::new(places().map(|[x, _]| x)))
                .field("y", gst::Array::new(places().map(|[_, y]| y)))
                .field("score", gst::Array::new(scores));
            if detection.points.len() == PARTS.len() {
                parameter = parameter.field("name", gst::Array::new(PARTS));
            }
            meta.add_param(parameter.build());
        }
    }
}

/// Adds a mask to the buffer, as a tensor of the element `name`.
pub(super) fn add_mask(
    buffer: &mut gst::BufferRef,
    name: &str,
    mask: Mask,
    view: View,
    labels: Vec<String>,
) -> diptych::Result<()> {
    let data = HostTensor::of(Dims::new(&[mask.height, mask.width])?, mask.classes)?;
    let tensor = Tensor { name: MASK.to_owned(), data, labels };
    TensorMeta::add(buffer, Tensors::new(name, false, vec![tensor]), view);
    Ok(())
}
