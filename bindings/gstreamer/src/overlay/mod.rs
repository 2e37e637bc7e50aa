//! `diptychoverlay`: draws what was found.
//!
//! | file | does |
//! |---|---|
//! | `canvas` | lines and discs on a frame |
//! | `draw` | boxes, people and masks of them |
//! | `imp` | the element |

mod canvas;
mod draw;
mod imp;

use gst::glib;
use gst::prelude::*;

glib::wrapper! {
    /// The element `diptychoverlay`.
    pub struct Overlay(ObjectSubclass<imp::Overlay>)
        @extends gst_video::VideoFilter, gst_base::BaseTransform, gst::Element, gst::Object;
}

pub(crate) fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    gst::Element::register(Some(plugin), "diptychoverlay", gst::Rank::NONE, Overlay::static_type())
}
