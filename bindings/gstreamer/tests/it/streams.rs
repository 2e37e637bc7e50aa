//! Formats, batches, events and copies, with networks that give their picture back.

use crate::small::{Net, write};
use crate::{buffer, harness, init, rgb};
use diptych::{Colours, Dims, Fit, Frame, FrameLayout, Frames, Framing, PixelFormat};
use gst::prelude::*;
use gstdiptych::{MASK, TensorMeta, gst, regions};
use image::{Rgb, RgbImage};

/// A picture with a gradient each way.
fn gradient(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| Rgb([(20 * x) as u8, (30 * y) as u8, 200 - (10 * x) as u8]))
}

/// The numbers of the only output.
fn numbers(buffer: &gst::BufferRef) -> Vec<f32> {
    let meta = buffer.meta::<TensorMeta>().expect("tensors");
    let tensors = meta.tensors();
    assert_eq!(tensors.all().len(), 1);
    assert_eq!(tensors.all()[0].name, "same");
    tensors.all()[0].data.to_f32().to_vec()
}

/// The numbers of the only output, rounded: they are pixels that were divided and multiplied by 255.
fn rounded(buffer: &gst::BufferRef) -> Vec<f32> {
    numbers(buffer).into_iter().map(f32::round).collect()
}

#[test]
fn packed_formats_are_read_alike_and_channels_lie_in_planes() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = write(&folder.path().join("small.onnx"), &Net::Floats, &[1, 3, 5, 7]);
    let picture = gradient(7, 5);
    let pixels = || picture.pixels().map(|pixel| pixel.0);
    let padded = |order: [usize; 4]| -> Vec<u8> {
        pixels().flat_map(|[r, g, b]| order.map(|place| [r, g, b, 77][place])).collect()
    };
    // Red, green and blue after each other.
    let wanted: Vec<f32> =
        (0..3).flat_map(|channel| pixels().map(move |pixel| f32::from(pixel[channel]))).collect();
    let cases = [
        ("RGB", rgb(&picture)),
        ("RGBA", padded([0, 1, 2, 3])),
        ("RGBx", padded([0, 1, 2, 3])),
        ("BGRA", padded([2, 1, 0, 3])),
        ("BGRx", padded([2, 1, 0, 3])),
    ];
    for (format, bytes) in cases {
        let line = format!("diptychinfer model={model} backend=cpu range=<0,255>");
        let mut harness = harness(&line, format, [7, 5]);
        let out = harness.push_and_pull(buffer(bytes, 0)).expect(format);
        for (place, (found, wanted)) in numbers(&out).into_iter().zip(&wanted).enumerate() {
            assert!((found - wanted).abs() < 1e-3, "{format}, {place}: {found}, wanted {wanted}");
        }
        let meta = out.meta::<TensorMeta>().expect("tensors");
        assert_eq!(meta.tensors().all()[0].data.dims().extents(), [1, 3, 5, 7]);
        assert!(meta.tensors().is_planar());
        assert_eq!(meta.view().frame_place([3.5, 2.5]), [3.5, 2.5]);
    }
}

#[test]
fn gpus_run_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = write(&folder.path().join("small.onnx"), &Net::Floats, &[1, 3, 5, 7]);
    let picture = gradient(7, 5);
    let green: Vec<f32> = picture.pixels().map(|pixel| f32::from(pixel[1])).collect();
    for (backend, api) in [("vulkan", diptych::Backend::Wgpu), ("opencl", diptych::Backend::OpenCl)] {
        if let Err(error) = diptych::Context::new(api) {
            assert!(std::env::var_os("DIPTYCH_REQUIRE_DEVICES").is_none(), "{error}");
            println!("skipped: {error}");
            continue;
        }
        let line = format!("diptychinfer name=infer model={model} backend={backend} range=<0,255>");
        let mut harness = harness(&line, "RGB", [7, 5]);
        let out = harness.push_and_pull(buffer(rgb(&picture), 0)).expect(backend);
        assert_eq!(rounded(&out)[35..70], green, "{backend}");
        let device = harness.find_element("diptychinfer").expect("the element");
        let device = device.property::<Option<String>>("device").expect("a device");
        assert!(!device.starts_with("cpu"), "{backend}: {device}");
    }
}

#[test]
fn luma_and_chroma_are_what_the_library_makes_of_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = write(&folder.path().join("small.onnx"), &Net::Floats, &[1, 3, 8, 8]);
    // NV12 of 12 x 6 pixels, of full range and BT.709: GStreamer pads nothing here.
    let bytes: Vec<u8> = (0..12 * 9).map(|place| (place * 37 % 251) as u8).collect();
    let line =
        format!("diptychinfer model={model} backend=cpu range=<0,1> fit=letterbox border=<0.5,0.25,0.75>");
    let mut harness = harness(&line, "NV12,colorimetry=1:3:5:1,chroma-site=mpeg2", [12, 6]);
    let out = harness.push_and_pull(buffer(bytes.clone(), 0)).expect("a frame");

    let layout = FrameLayout::new(PixelFormat::Nv12, [12, 6]).expect("a layout");
    let layout = layout.matrix(diptych::ColourMatrix::Bt709).range(diptych::ColourRange::Full);
    let layout = layout.siting(diptych::ChromaSiting::Left);
    let framing = Framing::new([12, 6], [8, 8]).expect("a framing").fit(Fit::Letterbox);
    let frames = [(Frame::new(&bytes[..], layout), framing)];
    let colours = Colours::default().border([0.5, 0.25, 0.75, 1.0]);
    let wanted = Frames::new(&frames, colours).to_tensor(Dims::new(&[1, 3, 8, 8]).expect("dimensions"));
    assert_eq!(numbers(&out), *wanted.expect("a tensor").to_f32());
    assert_eq!(numbers(&out)[0], 0.5, "the border");
    // The frame's left edge is the picture's, two rows down.
    assert_eq!(out.meta::<TensorMeta>().expect("tensors").view().frame_place([0.0, 2.0]), [0.0, 0.0]);
}

#[test]
fn bytes_and_open_extents_and_normalisations_are_taken() {
    let folder = tempfile::tempdir().expect("a folder");
    let picture = gradient(6, 4);
    let red: Vec<f32> = picture.pixels().map(|pixel| f32::from(pixel[0])).collect();
    let first = |line: &str| {
        let mut harness = harness(line, "RGB", [6, 4]);
        let out = harness.push_and_pull(buffer(rgb(&picture), 0)).expect(line);
        numbers(&out)[..24].to_vec()
    };
    let model = write(&folder.path().join("bytes.onnx"), &Net::Bytes, &[1, 3, 4, 6]);
    assert_eq!(first(&format!("diptychinfer model={model} backend=cpu")), red);
    let model = write(&folder.path().join("open.onnx"), &Net::Floats, &[0, 3, 0, 0]);
    let line = format!(
        "diptychinfer model={model} backend=cpu input-width=6 input-height=4 mean=<-1.0,0,0> std=<0.5,1,1>"
    );
    for (found, red) in first(&line).into_iter().zip(red) {
        let wanted = (red / 255.0 + 1.0) / 0.5;
        assert!((found - wanted).abs() < 1e-5, "{found}, wanted {wanted}");
    }
}

#[test]
fn a_batch_waits_for_its_frames_and_the_last_one_is_cut_short() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = write(&folder.path().join("small.onnx"), &Net::Floats, &[1, 3, 2, 5]);
    let line = format!("diptychinfer model={model} backend=cpu range=<0,255> batch=3");
    let mut harness = harness(&line, "RGB", [5, 2]);
    let frame = |number: u8| rgb(&RgbImage::from_pixel(5, 2, Rgb([number, 0, 0])));
    harness.play();
    for number in 0..5 {
        harness.push(buffer(frame(10 * number), number.into())).expect("taken");
        let wanted = if number < 2 { 0 } else { 3 };
        assert_eq!(harness.buffers_received(), wanted, "after frame {number}");
    }
    // Two frames of 40 ms at most.
    harness.set_upstream_latency(gst::ClockTime::from_mseconds(5));
    assert_eq!(harness.query_latency(), Some(gst::ClockTime::from_mseconds(85)));
    assert!(harness.push_event(gst::event::Eos::new()));
    for number in 0..5u8 {
        let out = harness.pull().expect("a frame");
        assert_eq!(out.pts(), Some(gst::ClockTime::from_mseconds(40 * u64::from(number))));
        assert_eq!(rounded(&out)[..10], [f32::from(10 * number); 10], "frame {number}");
        assert_eq!(
            out.meta::<TensorMeta>().expect("tensors").tensors().all()[0].data.dims().extents(),
            [1, 3, 2, 5]
        );
    }
    let mut last = None;
    while let Some(event) = harness.try_pull_event() {
        last = Some(event.type_());
    }
    assert_eq!(last, Some(gst::EventType::Eos));
}

#[test]
fn a_flush_drops_what_waits() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = write(&folder.path().join("small.onnx"), &Net::Floats, &[1, 3, 2, 5]);
    let line = format!("diptychinfer model={model} backend=cpu range=<0,255> batch=2");
    let mut harness = harness(&line, "RGB", [5, 2]);
    let frame = |number: u8| rgb(&RgbImage::from_pixel(5, 2, Rgb([number; 3])));
    harness.push(buffer(frame(1), 0)).expect("taken");
    harness.push_event(gst::event::FlushStart::new());
    harness.push_event(gst::event::FlushStop::new(true));
    let segment = gst::FormattedSegment::<gst::ClockTime>::new();
    harness.push_event(gst::event::Segment::new(&segment));
    for number in 2..4 {
        harness.push(buffer(frame(number), number.into())).expect("taken");
    }
    let found: Vec<f32> = (0..2).map(|_| rounded(&harness.pull().expect("a frame"))[0]).collect();
    assert_eq!(found, [2.0, 3.0]);
    assert!(harness.try_pull().is_none());
}

#[test]
fn copies_share_tensors_and_scaled_frames_keep_their_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = write(&folder.path().join("small.onnx"), &Net::Floats, &[1, 3, 5, 5]);
    let line = format!(
        "diptychinfer model={model} backend=cpu range=<0,255> fit=crop ! videoscale ! capsfilter \
         caps=video/x-raw,width=20,height=10"
    );
    let mut harness = harness(&line, "RGB", [10, 5]);
    let out = harness.push_and_pull(buffer(rgb(&gradient(10, 5)), 0)).expect("a frame");
    let meta = out.meta::<TensorMeta>().expect("the scaler hands it on");
    let view = meta.view();
    // The network saw 5 of 10 columns, from 2.5 on, and these are 10 of 20.
    assert_eq!(
        (view.frame, view.frame_place([0.0, 0.0]), view.frame_place([5.0, 5.0])),
        ([20, 10], [5.0, 0.0], [15.0, 10.0])
    );
    assert_eq!(view.input_place([15.0, 10.0]), [5.0, 5.0]);
    let copy = out.copy();
    let (one, two) = (meta.tensors(), copy.meta::<TensorMeta>().expect("a copy of it").tensors());
    assert!(std::ptr::eq(one.all(), two.all()), "the same memory");
    drop((one, out));
    assert_eq!(two.all()[0].data.dims().extents(), [1, 3, 5, 5]);
}

#[test]
fn a_map_of_scores_is_a_mask_that_the_overlay_paints() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = write(&folder.path().join("small.onnx"), &Net::Floats, &[1, 3, 2, 8]);
    let labels = folder.path().join("labels.txt");
    std::fs::write(&labels, "red\ngreen\nblue\n").expect("a file");
    // The strongest of red, green and blue is the class: a frame in three parts.
    let colours = [[200, 10, 10], [10, 200, 10], [10, 10, 200]];
    let picture = RgbImage::from_fn(16, 4, |x, _| Rgb(colours[[0, 1, 1, 2][x as usize / 4]]));
    let line = format!(
        "diptychinfer model={model} backend=cpu range=<0,1> ! diptychdecode labels={} name=decoder ! diptychoverlay \
         mask-opacity=1",
        labels.display()
    );
    let mut harness = harness(&line, "RGB", [16, 4]);
    let out = harness.push_and_pull(buffer(rgb(&picture), 0)).expect("a frame");
    let metas: Vec<_> = out.iter_meta::<TensorMeta>().map(|meta| meta.tensors()).collect();
    assert_eq!((metas.len(), metas[1].network()), (2, "decoder"));
    let mask = &metas[1].all()[0];
    assert_eq!((mask.name.as_str(), mask.data.dims().extents(), mask.labels.len()), (MASK, &[2, 8][..], 3));
    assert_eq!(mask.data.elements::<u8>().expect("bytes")[8..], [0, 0, 1, 1, 1, 1, 2, 2]);
    assert!(regions(&out).is_empty());
    let drawn = out.map_readable().expect("bytes");
    let pixel = |x: usize| [drawn[3 * x], drawn[3 * x + 1], drawn[3 * x + 2]];
    // The background stays; the classes have colours of their own, and a class has one.
    assert_eq!(pixel(1), colours[0]);
    assert_eq!(pixel(4), pixel(11));
    assert!(pixel(4) != colours[1] && pixel(12) != colours[2] && pixel(4) != pixel(12));
}

#[test]
fn a_pipeline_runs_to_its_end() {
    init();
    let folder = tempfile::tempdir().expect("a folder");
    let model = write(&folder.path().join("small.onnx"), &Net::Floats, &[1, 3, 16, 16]);
    let line = format!(
        "videotestsrc num-buffers=7 pattern=ball ! video/x-raw,format=I420,width=64,height=48 ! diptychinfer name=infer \
         model={model} backend=cpu range=<0,1> batch=4 ! queue ! fakesink name=sink signal-handoffs=true"
    );
    let pipeline = gst::parse::launch(&line).expect("a pipeline").downcast::<gst::Pipeline>().expect("one");
    let (count, counted) = std::sync::mpsc::channel();
    let sink = pipeline.by_name("sink").expect("the sink");
    sink.connect("handoff", false, move |values| {
        let buffer = values[1].get::<gst::Buffer>().expect("a buffer");
        let tensors = buffer.meta::<TensorMeta>().expect("tensors").tensors();
        count.send(tensors.all()[0].data.to_f32().iter().sum::<f32>()).expect("received");
        None
    });
    let infer = pipeline.by_name("infer").expect("the element");
    assert_eq!(infer.property::<Option<String>>("device"), None);
    pipeline.set_state(gst::State::Playing).expect("playing");
    let bus = pipeline.bus().expect("a bus");
    let message = bus.timed_pop_filtered(
        gst::ClockTime::from_seconds(60),
        &[gst::MessageType::Eos, gst::MessageType::Error],
    );
    assert_eq!(message.expect("an end").type_(), gst::MessageType::Eos);
    assert!(infer.property::<Option<String>>("device").expect("a device").starts_with("cpu"));
    pipeline.set_state(gst::State::Null).expect("stopped");
    drop((pipeline, sink));
    let sums: Vec<f32> = counted.try_iter().collect();
    assert_eq!(sums.len(), 7);
    assert!(sums.iter().all(|&sum| sum > 1.0), "a white ball: {sums:?}");
}
