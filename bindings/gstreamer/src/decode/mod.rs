//! `diptychdecode`: what the outputs of networks mean.
//!
//! | file | does |
//! |---|---|
//! | `outputs` | tells networks by their outputs |
//! | `boxes`, `poses`, `masks` | outputs to what was found, in pixels of the network's picture |
//! | `found` | what that is, and one of several that are about the same thing |
//! | `regions` | from there to the buffer's metadata, and from these to the application |
//! | `imp` | the element |

mod boxes;
mod found;
mod imp;
mod masks;
mod outputs;
mod poses;
mod regions;

use crate::failure::Failure;
use crate::tensors::{Tensors, View};
use boxes::{ssd, yolo};
use found::{Found, Mask};
use gst::glib;
use gst::prelude::*;
use outputs::{Map, list};
pub use regions::{MASK, Point, REGIONS, Region, regions};

glib::wrapper! {
    /// The element `diptychdecode`.
    pub struct Decode(ObjectSubclass<imp::Decode>) @extends gst_base::BaseTransform, gst::Element, gst::Object;
}

pub(crate) fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    OutputFormat::static_type().mark_as_plugin_api(gst::PluginAPIFlags::empty());
    gst::Element::register(Some(plugin), "diptychdecode", gst::Rank::NONE, Decode::static_type())
}

/// What a network's outputs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstDiptychOutputFormat")]
#[repr(i32)]
pub enum OutputFormat {
    /// What they look like.
    #[default]
    #[enum_value(name = "What the outputs look like", nick = "auto")]
    Auto = 0,
    /// Boxes, classes, scores and their count.
    #[enum_value(name = "Boxes, classes, scores and their count: TFLite_Detection_PostProcess", nick = "ssd")]
    Ssd = 1,
    /// Rows or columns of a box and scores.
    #[enum_value(name = "Rows or columns of a box and scores: YOLO", nick = "yolo")]
    Yolo = 2,
    /// Rows or columns of a box, a score, and three numbers for each point.
    #[enum_value(name = "Rows or columns of a box, a score and points: YOLO for poses", nick = "yolo-pose")]
    YoloPose = 3,
    /// Heatmaps of 17 parts with offsets.
    #[enum_value(name = "Heatmaps of 17 parts, offsets and displacements: PoseNet", nick = "posenet")]
    Posenet = 4,
    /// Rows of 17 points.
    #[enum_value(name = "Rows of 17 points: MoveNet", nick = "movenet")]
    Movenet = 5,
    /// A map of scores for each class.
    #[enum_value(name = "A map of scores for each class, or of classes", nick = "segmentation")]
    Segmentation = 6,
}

/// The parts of a person in the order of PoseNet, MoveNet and COCO's data set.
pub(crate) const PARTS: [&str; 17] = [
    "nose",
    "left_eye",
    "right_eye",
    "left_ear",
    "right_ear",
    "left_shoulder",
    "right_shoulder",
    "left_elbow",
    "right_elbow",
    "left_wrist",
    "right_wrist",
    "left_hip",
    "right_hip",
    "left_knee",
    "right_knee",
    "left_ankle",
    "right_ankle",
];

/// What counts as found.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// The least score, from 0 to 1.
    threshold: f32,
    /// Boxes that overlap by more are about the same thing.
    overlap: f32,
    /// How many at most.
    count: usize,
}

/// Reads a network's outputs. `labels` are as many as there are classes that have names.
fn read(
    tensors: &Tensors,
    view: &View,
    format: OutputFormat,
    labels: usize,
    limits: &Limits,
) -> Result<Found, Failure> {
    let format = match format {
        OutputFormat::Auto => outputs::recognise(tensors)?,
        format => format,
    };
    let all = tensors.all();
    let size = view.input.map(|extent| extent as f32);
    let one = || match all {
        [tensor] => Ok(tensor),
        _ => Err(Failure::model(format!("{}: found outputs {}, wanted one", tensors.network(), list(all)))),
    };
    let mut detections = match format {
        OutputFormat::Auto | OutputFormat::Ssd => {
            let [areas, classes, scores, count] = in_order(all).ok_or_else(|| {
                let (found, wanted) = (list(all), "boxes 1xNx4, classes 1xN, scores 1xN and a count");
                Failure::model(format!("{}: found outputs {found}, wanted {wanted}", tensors.network()))
            })?;
            let count = count.values.first().copied().unwrap_or_default().max(0.0) as usize;
            ssd(&areas.values, &classes.values, &scores.values, count, size, limits)
        }
        OutputFormat::Yolo | OutputFormat::YoloPose => yolo(&Map::of(one()?), size, labels, format, limits)?,
        OutputFormat::Posenet => poses::PoseNet::of(tensors, view.input)?.people(limits),
        OutputFormat::Movenet => poses::movenet(&Map::of(one()?), size, limits)?,
        OutputFormat::Segmentation => {
            return masks::mask(one()?, tensors.is_planar(), limits.threshold).map(Found::Mask);
        }
    };
    detections.retain(found::Detection::is_finite);
    detections.sort_by(|a, b| b.score.total_cmp(&a.score));
    Ok(Found::Detections(detections))
}

/// Boxes, classes, scores and count: classes and scores by their names if these say which they are, else in this order.
fn in_order(all: &[crate::tensors::Tensor]) -> Option<[Map<'_>; 4]> {
    let mut maps: Vec<Map<'_>> = all.iter().map(Map::of).collect();
    let mut take = |wanted: &dyn Fn(&Map<'_>) -> bool| {
        let place = maps.iter().position(wanted)?;
        Some(maps.remove(place))
    };
    let areas = take(&|map| matches!(*map.extents, [_, 4]))?;
    let count = take(&|map| matches!(*map.extents, [1]) && map.name.contains("num"))
        .or_else(|| take(&|map| matches!(*map.extents, [1])))?;
    let is_row = |map: &Map<'_>| map.extents.len() == 1;
    let scores = take(&|map| is_row(map) && map.name.to_ascii_lowercase().contains("score"));
    let classes = take(&is_row)?;
    let scores = scores.or_else(|| take(&is_row))?;
    Some([areas, classes, scores, count])
}
