//! `diptychinfer`: a network on each frame.
//!
//! | file | does |
//! |---|---|
//! | `settings` | the properties |
//! | `engine` | a model on a device |
//! | `picture` | a video frame as the library takes it |
//! | `imp` | the element: caps, batches, events, latency |

mod engine;
mod imp;
mod picture;
mod settings;

use gst::glib;
use gst::prelude::*;
pub use settings::{FrameFit, NetworkPrecision};

glib::wrapper! {
    /// The element `diptychinfer`.
    pub struct Infer(ObjectSubclass<imp::Infer>) @extends gst_base::BaseTransform, gst::Element, gst::Object;
}

pub(crate) fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    FrameFit::static_type().mark_as_plugin_api(gst::PluginAPIFlags::empty());
    NetworkPrecision::static_type().mark_as_plugin_api(gst::PluginAPIFlags::empty());
    gst::Element::register(Some(plugin), "diptychinfer", gst::Rank::NONE, Infer::static_type())
}
