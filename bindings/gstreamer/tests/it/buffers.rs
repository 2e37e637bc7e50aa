//! Buffers that lie otherwise than their caps say, pools, and streams that change or begin again.

use crate::small::{Net, write};
use crate::{buffer, harness, init, rgb};
use diptych::{Dims, HostTensor};
use gst::prelude::*;
use gst_video::{VideoCropMeta, VideoFormat, VideoFrameFlags, VideoMeta};
use gstdiptych::{Tensor, TensorMeta, Tensors, View, gst, regions};
use image::{Rgb, RgbImage};
use std::path::Path;
use std::sync::Arc;

/// A network that gives its picture of these extents back.
fn same(folder: &Path, [width, height]: [u8; 2]) -> String {
    write(&folder.join("small.onnx"), &Net::Floats, &[1, 3, height, width])
}

/// The numbers of the first output.
fn numbers(buffer: &gst::BufferRef) -> Vec<f32> {
    let meta = buffer.meta::<TensorMeta>().expect("tensors");
    meta.tensors().all()[0].data.to_f32().iter().map(|number| number.round()).collect()
}

/// A picture in the corner of a frame of 24 x 8 pixels, whose rows are 80 bytes long and begin at byte 16.
fn padded(picture: &RgbImage) -> gst::Buffer {
    init();
    let mut bytes = vec![99; 16 + 8 * 80];
    for (x, y, pixel) in picture.enumerate_pixels() {
        let place = 16 + 80 * y as usize + 3 * x as usize;
        bytes[place..place + 3].copy_from_slice(&pixel.0);
    }
    let mut buffer = buffer(bytes, 0);
    let target = buffer.get_mut().expect("the only reference");
    let (flags, format) = (VideoFrameFlags::empty(), VideoFormat::Rgb);
    VideoMeta::add_full(target, flags, format, 24, 8, &[16], &[80]).expect("metadata");
    buffer
}

#[test]
fn strides_offsets_and_padding_are_those_of_the_metadata() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = same(folder.path(), [8, 2]);
    let colours = [[200, 10, 10], [10, 200, 10], [10, 10, 200]];
    let picture = RgbImage::from_fn(16, 4, |x, _| Rgb(colours[[0, 1, 1, 2][x as usize / 4]]));
    let line = format!(
        "diptychinfer model={model} backend=cpu range=<0,1> ! diptychdecode ! diptychoverlay mask-opacity=1"
    );
    let drawn = |buffer: gst::Buffer, first: usize, row: usize| -> Vec<Vec<u8>> {
        let mut harness = harness(&line, "RGB", [16, 4]);
        let out = harness.push_and_pull(buffer).expect("a frame");
        let bytes = out.map_readable().expect("bytes");
        (0..4).map(|y| bytes[first + row * y..][..48].to_vec()).collect()
    };
    let found = drawn(padded(&picture), 16, 80);
    assert_eq!(found, drawn(buffer(rgb(&picture), 0), 0, 48));
    assert_ne!(found[0][45..], picture.as_raw()[45..48], "nothing was drawn");
}

#[test]
fn metadata_of_more_bytes_than_there_are_reach_no_other_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = same(folder.path(), [8, 2]);
    let short = || {
        let mut buffer = padded(&RgbImage::from_pixel(16, 4, Rgb([1; 3])));
        buffer.get_mut().expect("the only reference").set_size(120);
        buffer
    };
    let mut refusing =
        harness(&format!("diptychinfer model={model} backend=cpu range=<0,1>"), "RGB", [16, 4]);
    let bus = gst::Bus::new();
    refusing.find_element("diptychinfer").expect("the element").set_bus(Some(&bus));
    assert_eq!(refusing.push(short()), Err(gst::FlowError::Error));
    let message = bus.pop_filtered(&[gst::MessageType::Error]).expect("a message");
    let gst::MessageView::Error(error) = message.view() else { panic!("{message:?}") };
    let text = error.error().to_string();
    assert!(text.contains("104 bytes") && text.contains("16 x 4"), "{text}");
    // A box that covers the frame is drawn as far as there are bytes.
    let mut drawing = harness("diptychoverlay line-width=8", "RGB", [16, 4]);
    let mut buffer = short();
    let row = HostTensor::new(Dims::new(&[1, 6]).expect("small"), vec![0.0, 0.0, 1.0, 1.0, 0.9, 0.0]);
    let data = row.expect("a row");
    let tensor = Tensor { name: gstdiptych::REGIONS.to_owned(), data, labels: Arc::default() };
    let view = View { input: [8, 2], frame: [16, 4], to_frame: [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]] };
    let target = buffer.get_mut().expect("the only reference");
    TensorMeta::add(target, Tensors::new("test", false, vec![tensor]), view);
    let out = drawing.push_and_pull(buffer).expect("a frame");
    assert_ne!(out.map_readable().expect("bytes")[16..19], [1; 3]);
}

/// What upstream is offered where downstream offers a pool of 2 buffers at least and so many at most.
fn offered(most: u32) -> (Vec<(bool, u32, u32)>, bool) {
    let folder = tempfile::tempdir().expect("a folder");
    let model = same(folder.path(), [8, 2]);
    let line = format!("diptychinfer model={model} backend=cpu range=<0,1> batch=4");
    let mut harness = harness(&line, "RGB", [16, 4]);
    let element = harness.find_element("diptychinfer").expect("the element");
    let pad = element.static_pad("src").expect("a pad");
    pad.add_probe(gst::PadProbeType::QUERY_DOWNSTREAM, move |_, info| {
        let Some(gst::QueryViewMut::Allocation(query)) = info.query_mut().map(|query| query.view_mut())
        else {
            return gst::PadProbeReturn::Ok;
        };
        query.add_allocation_pool(Some(&gst::BufferPool::new()), 192, 2, most);
        query.add_allocation_meta::<VideoMeta>(None);
        query.add_allocation_meta::<VideoCropMeta>(None);
        gst::PadProbeReturn::Handled
    });
    let caps: gst::Caps = "video/x-raw,format=RGB,width=16,height=4,framerate=25/1".parse().expect("caps");
    let mut query = gst::query::Allocation::new(Some(&caps), true);
    assert!(element.static_pad("sink").expect("a pad").query(query.query_mut()));
    assert!(query.find_allocation_meta::<VideoMeta>().is_some());
    let pools = query.allocation_pools().map(|(pool, _, least, most)| (pool.is_some(), least, most));
    (pools.collect(), query.find_allocation_meta::<VideoCropMeta>().is_some())
}

#[test]
fn a_pool_that_frames_which_wait_would_empty_is_not_offered() {
    assert_eq!(offered(3), (vec![(false, 5, 0)], false));
    assert_eq!(offered(7), (vec![(true, 5, 7)], false));
    assert_eq!(offered(0), (vec![(true, 5, 0)], false));
}

#[test]
fn who_wants_buffers_back_gets_those_that_wait() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = same(folder.path(), [8, 2]);
    let line = format!("diptychinfer model={model} backend=cpu range=<0,255> batch=3");
    let mut harness = harness(&line, "RGB", [8, 2]);
    harness.push(buffer(rgb(&RgbImage::from_pixel(8, 2, Rgb([7; 3]))), 0)).expect("taken");
    assert!(harness.try_pull().is_none());
    let element = harness.find_element("diptychinfer").expect("the element");
    element.static_pad("sink").expect("a pad").query(gst::query::Drain::new().query_mut());
    assert_eq!(numbers(&harness.try_pull().expect("it was sent on"))[0], 7.0);
}

#[test]
fn frames_before_other_caps_are_sent_on_before_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = same(folder.path(), [8, 2]);
    let line = format!("diptychinfer model={model} backend=cpu range=<0,255> batch=2");
    let mut harness = harness(&line, "RGB", [8, 2]);
    let frame = |value: u8, size: [u32; 2]| rgb(&RgbImage::from_pixel(size[0], size[1], Rgb([value; 3])));
    harness.push(buffer(frame(3, [8, 2]), 0)).expect("taken");
    let caps = "video/x-raw,format=RGB,width=16,height=4,framerate=25/1";
    harness.set_src_caps(caps.parse().expect("caps"));
    let first = harness.try_pull().expect("the frame of the old caps");
    assert_eq!((numbers(&first)[0], first.size()), (3.0, 48));
    for number in [4, 5] {
        harness.push(buffer(frame(number, [16, 4]), number.into())).expect("taken");
    }
    for number in [4.0, 5.0] {
        let out = harness.pull().expect("a frame");
        assert_eq!(
            (numbers(&out)[0], out.meta::<TensorMeta>().expect("tensors").view().frame),
            (number, [16, 4])
        );
    }
}

#[test]
fn a_stream_begins_again_and_fastest_measures_the_network_that_runs() {
    init();
    let folder = tempfile::tempdir().expect("a folder");
    let model = write(&folder.path().join("open.onnx"), &Net::Floats, &[0, 3, 0, 0]);
    let line = format!(
        "videotestsrc num-buffers=3 ! video/x-raw,format=RGB,width=16,height=4 ! diptychinfer model={model} \
         backend=fastest range=<0,1> batch=2 input-width=8 input-height=2 ! fakesink name=sink sync=false"
    );
    let pipeline = gst::parse::launch(&line).expect("a pipeline");
    let bus = pipeline.bus().expect("a bus");
    for _ in 0..2 {
        pipeline.set_state(gst::State::Playing).expect("it starts");
        let ends = [gst::MessageType::Eos, gst::MessageType::Error];
        let message = bus.timed_pop_filtered(gst::ClockTime::from_seconds(120), &ends).expect("an end");
        assert_eq!(message.type_(), gst::MessageType::Eos, "{message:?}");
        pipeline.set_state(gst::State::Null).expect("it stops");
    }
}

/// In a process of its own: a program's copy of the crate, and one of a plugin's file before it.
#[test]
fn metadata_of_another_copy_of_the_crate_are_not_read() {
    let test = "buffers::beside_another_copy";
    let program = std::env::current_exe().expect("the tests");
    let ran =
        std::process::Command::new(program).args(["--exact", test, "--ignored"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(
        ran.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

#[test]
#[ignore = "another test runs it in a process of its own"]
fn beside_another_copy() {
    gst::init().expect("GStreamer");
    let tags: [*const std::ffi::c_char; 1] = [std::ptr::null()];
    // SAFETY: both are texts of C that are only read; the list ends in NULL.
    unsafe {
        gst::ffi::gst_meta_api_type_register(c"GstDiptychTensorMetaAPI".as_ptr(), tags.as_ptr().cast_mut());
    }
    let mut buffer = padded(&RgbImage::from_pixel(16, 4, Rgb([1; 3])));
    assert!(regions(&buffer).is_empty() && buffer.meta::<TensorMeta>().is_none());
    let data = HostTensor::new(Dims::new(&[1]).expect("small"), vec![3.0]).expect("a number");
    let tensor = Tensor { name: "own".to_owned(), data, labels: Arc::default() };
    let view = View { input: [8, 2], frame: [16, 4], to_frame: [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]] };
    let target = buffer.get_mut().expect("the only reference");
    TensorMeta::add(target, Tensors::new("test", false, vec![tensor]), view);
    assert_eq!(numbers(&buffer), [3.0]);
}
