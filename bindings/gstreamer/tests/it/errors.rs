//! What is told where something does not fit.

use crate::small::{Net, SIDE, write};
use crate::{init, posenet};
use gst::prelude::*;
use gstdiptych::gst;

/// The message of a pipeline that has to fail: domain's kind and text.
fn refused(line: &str) -> (gst::glib::Error, String) {
    init();
    let line = format!(
        "videotestsrc num-buffers=2 ! video/x-raw,width=32,height=24 ! videoconvert ! {line} ! fakesink"
    );
    let pipeline = gst::parse::launch(&line).expect("a pipeline").downcast::<gst::Pipeline>().expect("one");
    let _ = pipeline.set_state(gst::State::Playing);
    let bus = pipeline.bus().expect("a bus");
    let kinds = [gst::MessageType::Eos, gst::MessageType::Error];
    let message = bus.timed_pop_filtered(gst::ClockTime::from_seconds(60), &kinds).expect("a message");
    pipeline.set_state(gst::State::Null).expect("stopped");
    match message.view() {
        gst::MessageView::Error(error) => (error.error(), error.error().message().to_owned()),
        _ => panic!("no error: {line}"),
    }
}

#[test]
fn the_message_names_what_was_found_and_wanted() {
    let folder = tempfile::tempdir().expect("a folder");
    let floats = write(&folder.path().join("floats.onnx"), &Net::Floats, &[1, 3, 8, 8]);
    let two = write(&folder.path().join("two.onnx"), &Net::Two, &[1, 3, 8, 8]);
    let line = write(&folder.path().join("line.onnx"), &Net::Floats, &[1, 8]);
    let open = write(&folder.path().join("open.onnx"), &Net::Floats, &[1, 3, 0, 0]);
    let bytes = write(&folder.path().join("bytes.onnx"), &Net::Bytes, &[1, 3, 8, 8]);
    let fixed = write(&folder.path().join("fixed.onnx"), &Net::Floats, &[2, 3, 8, 8]);
    let posenet = posenet();
    let square = write(&folder.path().join("square.onnx"), &Net::Floats, &[1, 3, SIDE, SIDE]);
    let cases: [(String, &[&str]); 16] = [
        (
            format!("model={square} backend=cpu range=<0,1> input-width=8 input-height=6"),
            &["found ", "wanted ", "one extent for both, \"side\""],
        ),
        (format!("model={floats} backend=gpu:cpu range=<0,1>"), &["backend: found no GPU, wanted one"]),
        (
            format!("model={floats} backend=fastest kernel-cache=k range=<0,1>"),
            &["kernel-cache: found \"k\", wanted none with backend=fastest"],
        ),
        ("backend=cpu".to_owned(), &["model: found none, wanted the path"]),
        (
            format!("model={floats} backend=vulkan:"),
            &["backend: found \"vulkan:\", wanted auto, gpu, vulkan"],
        ),
        (
            format!("model={floats} backend=cpu"),
            &["floats.onnx does not say the range", "range=\"<low,high>\""],
        ),
        (format!("model={floats} backend=cpu range=<0>"), &["range: found [0.0], wanted 2 numbers"]),
        (format!("model={floats} backend=cpu range=<0,1> std=<1,1,1>"), &["range: found mean or std too"]),
        (format!("model={floats} backend=cpu mean=<0,0,0>"), &["mean, std: found one of them"]),
        (
            format!("model={floats} backend=cpu range=<0,1> outputs=mask"),
            &["outputs: found \"mask\"", "same"],
        ),
        (
            format!("model={floats} backend=cpu range=<0,1> input-width=9"),
            &["input-width: found 9, wanted 8", "floats.onnx"],
        ),
        (
            format!("model={two} backend=cpu range=<0,1>"),
            &["inputs: found \"picture\", \"other\", wanted one"],
        ),
        (format!("model={line} backend=cpu range=<0,1>"), &["found f32 of 1x8, wanted NxHxWxC or NxCxHxW"]),
        (format!("model={open} backend=cpu range=<0,1>"), &["input-height: found none", "open2"]),
        (format!("model={bytes} backend=cpu range=<0,1>"), &["found numbers, wanted none", "takes u8"]),
        (
            format!("model={fixed} backend=cpu range=<0,1> batch=3"),
            &["batch: found 3, wanted 2", "fixed.onnx"],
        ),
    ];
    for (properties, wanted) in cases {
        let (_, text) = refused(&format!("diptychinfer {properties}"));
        for part in wanted {
            assert!(text.contains(part), "{properties}: {text:?}, wanted {part:?}");
        }
    }
    let (error, text) = refused(&format!("diptychinfer model={posenet}.not backend=cpu"));
    assert!(
        error.matches(gst::ResourceError::NotFound) && text.contains("posenet_figures.tflite.not"),
        "{text}"
    );
    let (error, _) = refused(&format!("diptychinfer model={floats} backend=cpu"));
    assert!(error.matches(gst::ResourceError::Settings));
    // A decoder that is given other outputs than those it is told.
    let line =
        format!("diptychinfer model={floats} backend=cpu range=<0,1> name=small ! diptychdecode format=ssd");
    let (error, text) = refused(&line);
    assert!(error.matches(gst::StreamError::WrongType), "{error}");
    assert!(text.contains("small: found outputs \"same\" 1x3x8x8, wanted boxes"), "{text}");
    let (_, text) = refused(&format!(
        "diptychinfer model={floats} backend=cpu range=<0,1> ! diptychdecode labels=none.txt"
    ));
    assert!(text.starts_with("labels: none.txt: "), "{text}");
}

#[test]
fn each_property_reads_back() {
    init();
    let infer = gst::ElementFactory::make("diptychinfer").build().expect("the element");
    let texts =
        [("model", "a.onnx"), ("backend", "cpu"), ("outputs", "a,b"), ("record", "r"), ("kernel-cache", "k")];
    for (name, text) in texts {
        infer.set_property(name, text);
        assert_eq!(infer.property::<String>(name), text, "{name}");
    }
    for name in ["range", "mean", "std", "border"] {
        infer.set_property_from_str(name, "<1,-0.5>");
        let found = infer.property::<gst::Array>(name);
        let found: Vec<f64> = found.as_slice().iter().map(|one| one.get().expect("a number")).collect();
        assert_eq!(found, [1.0, -0.5], "{name}");
    }
    for name in ["batch", "input-width", "input-height", "threads"] {
        infer.set_property(name, 7u32);
        assert_eq!(infer.property::<u32>(name), 7, "{name}");
    }
    for name in ["bgr", "dequantize"] {
        infer.set_property(name, true);
        assert!(infer.property::<bool>(name), "{name}");
    }
    for (name, nicks) in [
        ("fit", &["stretch", "letterbox", "crop"][..]),
        ("precision", &["f32", "auto", "tf32", "splitf16", "f16s", "f16"]),
    ] {
        for (number, nick) in nicks.iter().enumerate() {
            infer.set_property_from_str(name, nick);
            let value = infer.property_value(name);
            let (_, found) = gst::glib::EnumValue::from_value(&value).expect("an enumeration");
            assert_eq!((found.nick(), found.value()), (*nick, number as i32), "{name}");
        }
    }
    infer.set_property("tuning-time", 1.5f64);
    assert_eq!(infer.property::<f64>("tuning-time"), 1.5);
    let all = infer.list_properties();
    let own = all.iter().filter(|property| property.owner_type() == infer.type_()).count();
    assert_eq!(own, 19, "each is tried here but device, which is read");
}
