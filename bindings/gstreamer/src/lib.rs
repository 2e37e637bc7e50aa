//! A plugin for GStreamer: elements that run neural networks on video frames with [Diptych](diptych), decode what the networks
//! found, and draw it.
//!
//! | element | does |
//! |---|---|
//! | `diptychinfer` | runs a network on each frame, on Vulkan, OpenCL or the CPU; its outputs are metadata of the buffer ([`TensorMeta`]) |
//! | `diptychdecode` | makes boxes, keypoints and masks of the outputs: `GstVideoRegionOfInterestMeta`, and a tensor for the mask |
//! | `diptychoverlay` | draws them |
//!
//! The README has pipelines and all properties. As a library in Rust the crate has what reads the metadata:
//!
//! ```
//! use gstdiptych::gst;
//! use gstdiptych::regions;
//!
//! # fn frame(buffer: &gst::BufferRef) {
//! for region in regions(buffer) {
//!     println!("{} at {:?}, {} points", region.label, region.area, region.points.len());
//! }
//! # }
//! ```

#![warn(missing_docs, unreachable_pub)]
#![warn(clippy::expect_used, clippy::panic, clippy::todo, clippy::unimplemented, clippy::unwrap_used)]

pub use gst;

#[cfg(feature = "v1_24")]
mod analytics;
mod decode;
mod failure;
mod infer;
mod overlay;
mod planes;
mod tensors;

pub use decode::{Decode, MASK, OutputFormat, Point, REGIONS, Region, regions};
pub use infer::{FrameFit, Infer, NetworkPrecision};
pub use overlay::Overlay;
pub use tensors::{Tensor, TensorMeta, Tensors, View, offsets};

/// The programs of the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Pads that are always there, for these caps.
fn pad_templates(caps: &gst::Caps) -> Vec<gst::PadTemplate> {
    let pads = [("sink", gst::PadDirection::Sink), ("src", gst::PadDirection::Src)];
    let templates = pads
        .map(|(name, direction)| gst::PadTemplate::new(name, direction, gst::PadPresence::Always, caps).ok());
    templates.into_iter().flatten().collect()
}

/// Removes `GstVideoCropMeta` from what upstream is offered, as the elements do not read it.
fn refuse_crops(query: &mut gst::query::Allocation) {
    while let Some(place) = query.find_allocation_meta::<gst_video::VideoCropMeta>() {
        query.remove_nth_allocation_meta(place);
    }
}

/// Registers the elements in a program that has this crate linked, instead of loading the plugin's file.
///
/// ```
/// gstdiptych::gst::init()?;
/// gstdiptych::register()?;
/// assert!(gstdiptych::gst::ElementFactory::find("diptychinfer").is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If GStreamer refuses to.
///
/// A program that reads [`TensorMeta`] or [`regions`] has to call this. Elements that GStreamer loads from the plugin's file have
/// metadata of another copy of this crate, which are read as `gstdiptych.h` says.
pub fn register() -> Result<(), gst::glib::BoolError> {
    plugin::plugin_register_static()
}

mod plugin {
    use gst::glib;

    fn plugin_init(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
        crate::infer::register(plugin)?;
        crate::decode::register(plugin)?;
        crate::overlay::register(plugin)
    }

    gst::plugin_define!(
        diptych,
        "Neural networks on Vulkan, OpenCL and the CPU",
        plugin_init,
        concat!(env!("CARGO_PKG_VERSION"), "-", env!("COMMIT_ID")),
        // GStreamer takes licences by name, and has "MIT/X11" for the first of the two.
        "MIT/X11",
        env!("CARGO_PKG_NAME"),
        env!("CARGO_PKG_NAME"),
        "https://crates.io/crates/gst-plugin-diptych",
        env!("BUILD_REL_DATE")
    );
}
