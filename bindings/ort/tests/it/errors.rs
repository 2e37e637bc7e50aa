//! What goes wrong comes back with the library's whole text.

use crate::onnx::{Extent::Fixed, F32, File, I64};
use crate::{environment, on, session};
use ort::value::Tensor;
use ort::{AsPointer, ErrorCode};
use std::ptr::{null, null_mut};

fn relu() -> File {
    File::new().input("x", F32, &[Fixed(2)]).node("Relu", &["x"], &["y"]).output("y", F32, &[Fixed(2)])
}

#[test]
fn models_that_are_none_are_refused() {
    let error = |bytes: &[u8]| on("cpu").commit_from_memory(bytes).map(drop).expect_err("no model");
    let text = error(b"\x08\x08 no model").message().to_owned();
    assert!(text.starts_with("model: "), "{text}");
    let unknown = relu().node("Frobnicate", &["y"], &["z"]).output("z", F32, &[Fixed(2)]);
    let error = error(&unknown.build());
    assert!(error.message().contains("Frobnicate"), "{error}");
    assert_eq!(error.code(), ErrorCode::InvalidGraph);
    let mut format = vec![0u8; 64];
    format[4..8].copy_from_slice(b"ORTM");
    let error = on("cpu").commit_from_memory(&format).map(drop).expect_err("another format");
    assert_eq!(
        error.message(),
        "a model in ONNX Runtime's own format is not supported: give the ONNX file that it was made of"
    );
    assert_eq!(error.code(), ErrorCode::NotImplemented);
}

#[test]
fn files_that_are_not_there_are_named() {
    let error = on("cpu").commit_from_file("no/such/model.onnx").map(drop).expect_err("no file");
    assert_eq!(error.code(), ErrorCode::NoSuchFile);
    assert!(error.message().contains("no/such/model.onnx"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_pipe_is_no_model() {
    let pipe = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("pipe-{}", std::process::id()));
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo starts");
    assert!(made.success());
    let (send, receive) = std::sync::mpsc::channel();
    let path = pipe.clone();
    // Nobody writes into the pipe: opening it would wait for ever.
    std::thread::spawn(move || send.send(on("cpu").commit_from_file(path).map(drop)));
    let found = receive.recv_timeout(std::time::Duration::from_secs(60));
    std::fs::remove_file(&pipe).expect("removed");
    let error = found.expect("an end").expect_err("no file");
    assert!(error.message().contains("found a pipe, wanted a regular file"), "{error}");
}

#[test]
fn inputs_that_do_not_fit_are_refused() -> ort::Result<()> {
    let mut session = session(relu());
    let two = || Tensor::from_array(([2usize], vec![1.0f32, -1.0]));
    let mut error = |inputs: Vec<(&str, ort::session::SessionInputValue<'static>)>| {
        let error = session.run(inputs).map(drop).expect_err("wrong inputs");
        assert_eq!(error.code(), ErrorCode::InvalidArgument);
        error.message().to_owned()
    };
    assert_eq!(error(vec![]), "input \"x\": found nothing, wanted a tensor");
    assert_eq!(error(vec![("z", two()?.into())]), "input: found \"z\", wanted one of x");
    let twice = vec![("x", two()?.into()), ("x", two()?.into())];
    assert_eq!(error(twice), "input \"x\": found several tensors, wanted one");
    let three = Tensor::from_array(([3usize], vec![1.0f32; 3]))?;
    assert_eq!(error(vec![("x", three.into())]), "input \"x\": found shape 3, wanted a tensor of 2");
    let seven = Tensor::from_array(([1usize; 7], vec![1.0f32]))?;
    let text = error(vec![("x", seven.into())]);
    assert!(text.contains("rank 7") || text.contains("7"), "{text}");
    Ok(())
}

#[test]
fn numbers_of_another_type_must_be_the_inputs_own() -> ort::Result<()> {
    let file = File::new()
        .input("at", I64, &[Fixed(1)])
        .floats("table", &[3], &[5.0, 6.0, 7.0])
        .node("Gather", &["table", "at"], &["y"])
        .output("y", F32, &[Fixed(1)]);
    let mut session = session(file);
    let outputs = session.run(ort::inputs![Tensor::from_array(([1usize], vec![2i32]))?])?;
    assert_eq!(outputs["y"].try_extract_tensor::<f32>()?.1, [7.0]);
    drop(outputs);
    let half = Tensor::from_array(([1usize], vec![0.5f32]))?;
    let error = session.run(ort::inputs![half]).map(drop).expect_err("no integer");
    assert!(error.message().contains("0.5"), "{error}");
    Ok(())
}

#[test]
fn devices_and_entries_that_are_none_are_refused() {
    let refused = |key: &str, value: &str| {
        let builder = ort::session::Session::builder(environment()).expect("options");
        builder.with_config_entry(key, value).map(drop).expect_err("no such entry").message().to_owned()
    };
    assert!(refused("session.diptych.backend", "cpu:1").contains("wanted auto, gpu, cpu, wgpu or opencl"));
    assert!(refused("session.diptych.speed", "1").contains("wanted one of backend, caches"));
    let layout = ort::session::builder::GqaValueLayout::BNHS;
    for (key, refused) in [
        ("session.gqa_value_layout", on("cpu").with_gqa_value_layout(layout)),
        ("session.disable_cpu_ep_fallback", on("cpu").with_disable_cpu_fallback()),
        ("session.set_denormal_as_zero", on("cpu").with_flush_to_zero()),
        ("ep.enable_weightless", on("cpu").with_weightless()),
    ] {
        let error = refused.map(drop).expect_err(key);
        assert_eq!(error.code(), ErrorCode::NotImplemented);
        assert!(error.message().starts_with(&format!("the entry {key} with the value ")), "{error}");
    }
    let error = on("opencl:99").commit_from_memory(&relu().build()).map(drop).expect_err("no device");
    assert_eq!(error.code(), ErrorCode::ExecutionProviderFailure);
    assert!(error.message().contains("no OpenCL device"), "{error}");
}

#[test]
fn loading_can_be_canceled() {
    let mut builder = on("cpu");
    builder.canceler().cancel().expect("a flag");
    let error = builder.commit_from_memory(&relu().build()).map(drop).expect_err("canceled");
    assert_eq!(error.code(), ErrorCode::ModelLoadCanceled);
}

#[test]
fn functions_that_are_not_offered_say_so() -> ort::Result<()> {
    let error = on("cpu").with_profiling("profile").map(drop).expect_err("no such function");
    assert_eq!(
        error.message(),
        "ONNX Runtime's function EnableProfiling is not supported: diptych-ort's README says which functions there are"
    );
    assert_eq!(error.code(), ErrorCode::NotImplemented);
    // The options are still there.
    let mut builder =
        on("cpu").with_extensions().map(drop).map_or_else(|error| error.recover(), |()| on("cpu"));
    builder.commit_from_memory(&relu().build())?;
    let error = on("cpu").with_operator_library("ops.so").map(drop).expect_err("no such function");
    assert!(error.message().contains("RegisterCustomOpsLibrary_V2"), "{error}");
    assert!(Tensor::from_string_array(([1usize], &["text"][..])).is_err());
    assert!(ort::session::Adapter::from_file("lora", None).is_err());
    assert_eq!(session(relu()).opset_for_domain(""), None);
    assert_eq!(environment().devices().count(), 0);
    Ok(())
}

#[test]
fn null_is_an_error_where_it_is_none_of_the_values() {
    environment();
    let api = ort::api();
    let session = session(relu());
    let mut count = 0;
    let mut name = null_mut();
    let mut opened = null_mut();
    // SAFETY: NULL is what these calls check for; everything else is of this table and alive.
    let statuses = unsafe {
        [
            (api.SessionGetInputCount)(null(), &raw mut count),
            (api.SessionGetInputCount)(session.ptr(), null_mut()),
            (api.SessionGetInputName)(session.ptr(), 0, null_mut(), &raw mut name),
            (api.SessionGetInputName)(session.ptr(), 5, session.allocator().ptr().cast_mut(), &raw mut name),
            (api.CreateSession)(environment().ptr(), null(), null(), &raw mut opened),
            (api.CreateSessionFromArray)(environment().ptr(), null(), 5, null(), null_mut()),
            (api.CreateTensorAsOrtValue)(
                null_mut(),
                null(),
                1,
                ort::sys::ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                null_mut(),
            ),
            (api.Run)(null_mut(), null(), null(), null(), 1, null(), 1, null_mut()),
            (api.GetBoundOutputValues)(null(), null_mut(), null_mut(), null_mut()),
            (api.AddSessionConfigEntry)(null_mut(), null(), null()),
        ]
    };
    for status in statuses {
        assert!(!status.0.is_null());
        // SAFETY: the status was made by this table and is released once.
        unsafe {
            assert_eq!((api.GetErrorCode)(status.0), ort::sys::OrtErrorCode::ORT_INVALID_ARGUMENT);
            (api.ReleaseStatus)(status.0);
        }
    }
    // SAFETY: NULL is allowed in all of these.
    unsafe {
        (api.ReleaseSession)(null_mut());
        (api.ReleaseValue)(null_mut());
        (api.ReleaseStatus)(null_mut());
        (api.ReleaseAllocator)(null_mut());
        (api.ClearBoundInputs)(null_mut());
        assert_eq!((api.GetErrorCode)(null()), ort::sys::OrtErrorCode::ORT_OK);
    }
}
