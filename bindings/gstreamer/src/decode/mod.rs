//! `diptychdecode`: what the outputs of networks mean. The crate `diptych-decode` decodes them.
//!
//! | file | does |
//! |---|---|
//! | `regions` | from there to the buffer's metadata, and from these to the application |
//! | `imp` | the element |

mod imp;
mod regions;

use crate::failure::Failure;
use crate::tensors::{Tensor, Tensors, View};
use diptych_decode::{Decoded, Format, Limits, Output, Outputs};
use gst::glib;
use gst::prelude::*;
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

impl OutputFormat {
    /// The decoder's format, unless it is to be recognised.
    fn format(self) -> Option<Format> {
        match self {
            OutputFormat::Auto => None,
            OutputFormat::Ssd => Some(Format::Ssd),
            OutputFormat::Yolo => Some(Format::Yolo),
            OutputFormat::YoloPose => Some(Format::YoloPose),
            OutputFormat::Posenet => Some(Format::PoseNet),
            OutputFormat::Movenet => Some(Format::MoveNet),
            OutputFormat::Segmentation => Some(Format::Segmentation),
        }
    }
}

/// Reads a network's outputs. `labels` are as many as there are classes that have names.
fn read(
    tensors: &Tensors,
    view: &View,
    format: OutputFormat,
    labels: usize,
    limits: &Limits,
) -> Result<Decoded, Failure> {
    let output = |tensor| {
        let Tensor { name, data, .. }: &Tensor = tensor;
        let integers = data.to_i64();
        Output { integers, ..Output::new(name, data.dims().extents(), data.to_f32()) }
    };
    let all = tensors.all().iter().map(output).collect();
    let [width, height] = view.input.map(|extent| extent as usize);
    let (network, planar) = (tensors.network(), tensors.is_planar());
    let outputs = Outputs { network, all, planar, size: [height, width] };
    Ok(diptych_decode::decode(&outputs, format.format(), labels, limits)?)
}
