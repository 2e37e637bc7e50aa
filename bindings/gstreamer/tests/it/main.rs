//! The elements in pipelines: the bundled network on drawn people, and small networks that are written here.

mod buffers;
mod errors;
mod layout;
mod people;
mod plugin;
mod small;
mod streams;

use gst_check::Harness;
use gstdiptych::gst;
use image::RgbImage;
use std::path::{Path, PathBuf};
use std::sync::Once;

/// Registers the elements once.
fn init() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        gst::init().expect("GStreamer");
        gstdiptych::register().expect("the elements");
    });
}

/// A file of the repository.
fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The bundled network, which knows drawn people.
fn posenet() -> String {
    file("examples/posenet/data/posenet_figures.tflite").display().to_string()
}

/// Three drawn people, 640 x 480.
fn people() -> RgbImage {
    image::open(file("examples/posenet/data/people.png")).expect("the bundled picture").into_rgb8()
}

/// A pipeline whose frames the test gives and takes.
fn harness(elements: &str, format: &str, [width, height]: [u32; 2]) -> Harness {
    init();
    let mut harness = Harness::new_parse(elements);
    let caps = format!("video/x-raw,format={format},width={width},height={height},framerate=25/1");
    harness.set_src_caps(caps.parse().expect("caps"));
    harness
}

/// The n-th frame of a stream.
fn buffer(bytes: Vec<u8>, number: u64) -> gst::Buffer {
    let mut buffer = gst::Buffer::from_mut_slice(bytes);
    let target = buffer.get_mut().expect("the only reference");
    target.set_pts(gst::ClockTime::from_mseconds(40 * number));
    target.set_duration(gst::ClockTime::from_mseconds(40));
    buffer
}

/// A picture's bytes as RGB, whose rows GStreamer pads to four bytes.
fn rgb(picture: &RgbImage) -> Vec<u8> {
    let row = 3 * picture.width() as usize;
    let rows = picture.as_raw().chunks_exact(row);
    rows.flat_map(|row| {
        row.iter().copied().chain(std::iter::repeat_n(0, row.len().next_multiple_of(4) - row.len()))
    })
    .collect()
}
