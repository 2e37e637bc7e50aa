//! Sessions: how they are opened, and how they run.

use crate::onnx::{Extent::Fixed, Extent::Open, F32, File, I64};
use crate::{environment, on, session};
use ort::AsPointer;
use ort::ep::{CPU, ExecutionProvider};
use ort::logging::LogLevel;
use ort::memory::Allocator;
use ort::session::builder::{AutoDevicePolicy, PrepackedWeights, SessionBuilder};
use ort::session::{OutputSelector, RunOptions, Session};
use ort::value::Tensor;
use std::ffi::CStr;
use std::sync::{Arc, Mutex};

/// y = x W + b, and its negative, for rows of two numbers.
fn linear() -> File {
    File::new()
        .input("x", F32, &[Open("batch"), Fixed(2)])
        .floats("w", &[2, 2], &[1.0, 2.0, 3.0, 4.0])
        .floats("b", &[2], &[0.5, -0.5])
        .node("MatMul", &["x", "w"], &["product"])
        .node("Add", &["product", "b"], &["y"])
        .node("Neg", &["y"], &["minus"])
        .output("y", F32, &[Open("batch"), Fixed(2)])
        .output("minus", F32, &[Open("batch"), Fixed(2)])
}

fn row(session: &mut Session, x: [f32; 2]) -> Vec<f32> {
    let x = Tensor::from_array(([1usize, 2], x.to_vec())).expect("a tensor");
    let outputs = session.run(ort::inputs!["x" => x]).expect("a run");
    outputs["y"].try_extract_tensor::<f32>().expect("floats").1.to_vec()
}

#[test]
fn a_network_is_the_same_on_each_device() {
    for device in ["cpu", "wgpu", "opencl", "auto"] {
        let mut session = on(device).commit_from_memory(&linear().build()).expect("a session");
        assert_eq!(row(&mut session, [1.0, 10.0]), [31.5, 41.5], "{device}");
        assert_eq!(row(&mut session, [0.0, 0.0]), [0.5, -0.5], "{device}");
    }
}

#[test]
fn open_extents_are_decided_by_each_run() -> ort::Result<()> {
    let mut session = session(linear());
    assert_eq!(session.inputs()[0].dtype().to_string(), "Tensor<f32>(batch, 2)");
    for batch in [1usize, 3, 2, 3] {
        let x = Tensor::from_array(([batch, 2], vec![1.0f32; 2 * batch]))?;
        let outputs = session.run(ort::inputs![x])?;
        let (shape, values) = outputs["y"].try_extract_tensor::<f32>()?;
        assert_eq!((&**shape, values), (&[batch as i64, 2][..], &*[4.5f32, 5.5].repeat(batch)));
    }
    let mut fixed = on("cpu").with_dimension_override("batch", 2)?.commit_from_memory(&linear().build())?;
    assert_eq!(fixed.inputs()[0].dtype().to_string(), "Tensor<f32>(2, 2)");
    let error = fixed.run(ort::inputs![Tensor::from_array(([1usize, 2], vec![1.0f32; 2]))?]).map(drop);
    assert!(error.expect_err("one row").message().contains("found"));
    Ok(())
}

#[test]
fn an_initializer_that_is_an_input_may_be_given() -> ort::Result<()> {
    let file = linear().input("b", F32, &[Fixed(2)]);
    let mut session = session(file);
    assert_eq!(session.inputs().len(), 1);
    let initializers = session.overridable_initializers();
    assert_eq!((initializers.len(), initializers[0].name()), (1, "b"));
    assert_eq!(initializers[0].dtype().to_string(), "Tensor<f32>(2)");
    assert_eq!(row(&mut session, [1.0, 1.0]), [4.5, 5.5]);
    Ok(())
}

#[test]
fn outputs_are_chosen_and_written_where_they_are_wanted() -> ort::Result<()> {
    let mut session = session(linear());
    let x = || Tensor::from_array(([1usize, 2], vec![1.0f32, 0.0]));
    let options = RunOptions::new()?.with_outputs(OutputSelector::no_default().with("minus"));
    {
        let outputs = session.run_with_options(ort::inputs![x()?], &options)?;
        assert_eq!(
            (outputs.len(), outputs["minus"].try_extract_tensor::<f32>()?.1),
            (1, &[-1.5f32, -1.5][..])
        );
    }
    let place = Tensor::<f32>::new(&Allocator::default(), [1usize, 2])?;
    let selector = OutputSelector::default().without("minus").preallocate("y", place);
    let options = RunOptions::new()?.with_outputs(selector);
    for _ in 0..2 {
        let outputs = session.run_with_options(ort::inputs![x()?], &options)?;
        assert_eq!((outputs.len(), outputs["y"].try_extract_tensor::<f32>()?.1), (1, &[1.5f32, 1.5][..]));
    }
    let options = RunOptions::new()?.with_outputs(OutputSelector::no_default().with("z"));
    let error = session.run_with_options(ort::inputs![x()?], &options).map(drop).expect_err("no such output");
    assert_eq!(error.message(), "output: found \"z\", wanted one of y, minus");
    Ok(())
}

#[test]
fn options_of_runs_are_kept() -> ort::Result<()> {
    environment();
    let mut options = RunOptions::new()?.with_tag("third")?;
    assert_eq!(options.tag()?, "third");
    options.set("disable_synchronize_execution_providers", "1")?;
    assert_eq!(options.get("disable_synchronize_execution_providers").as_deref(), Some("1"));
    assert_eq!(options.get("other"), None);
    options.set_log_level(LogLevel::Error)?;
    options.set_log_verbosity(3)?;
    assert_eq!((options.log_level()?, options.log_verbosity()?), (LogLevel::Error, 3));
    let error = options.set("run.diptych.rest", "1").expect_err("no such entry");
    assert_eq!(error.message(), "run.diptych.rest: found \"1\", wanted run.diptych.reset with 0 or 1");

    let mut session = session(linear());
    let x = || Tensor::from_array(([1usize, 2], vec![1.0f32, 0.0]));
    options.terminate()?;
    let error = session.run_with_options(ort::inputs![x()?], &options).map(drop).expect_err("ended");
    assert_eq!(error.message(), "the application terminated runs with these options");
    options.unterminate()?;
    session.run_with_options(ort::inputs![x()?], &options)?;
    Ok(())
}

#[test]
fn options_without_an_effect_are_taken() -> ort::Result<()> {
    environment();
    let weights = PrepackedWeights::new();
    let mut session = on("cpu")
        .with_intra_threads(1)?
        .with_inter_threads(2)?
        .with_parallel_execution(true)?
        .with_memory_pattern(false)?
        .with_deterministic_compute(true)?
        .with_log_id("a session")?
        .with_log_verbosity(2)?
        .with_prepacked_weights(&weights)?
        .with_intra_op_spinning(false)?
        .commit_from_memory(&linear().build())?;
    assert_eq!(row(&mut session, [1.0, 1.0]), [4.5, 5.5]);
    session.set_workload_type(ort::session::WorkloadType::Efficient)?;
    Ok(())
}

/// The lines that a session logs from a level on. None of the environment's.
fn lines(builder: SessionBuilder, level: Option<LogLevel>) -> ort::Result<Vec<String>> {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let said = Arc::clone(&lines);
    let mut builder = builder.with_logger(Arc::new(
        move |level: LogLevel, _: &str, id: &str, _: &str, message: &str| {
            said.lock().unwrap().push(format!("{level:?} {id} {message}"));
        },
    ))?;
    if let Some(level) = level {
        builder = builder.with_log_level(level)?;
    }
    // Options are copied with their level.
    builder.clone().commit_from_memory(&linear().build())?;
    Ok(std::mem::take(&mut *lines.lock().unwrap()))
}

/// The device that a session is on, as its line says it.
fn device(builder: SessionBuilder) -> ort::Result<String> {
    let lines = lines(builder, Some(LogLevel::Info))?;
    assert_eq!(lines.len(), 1, "{lines:?}");
    Ok(lines[0].strip_prefix("Info tests session on ").expect("the session's line").to_owned())
}

#[test]
fn a_session_logs_from_its_level_on() -> ort::Result<()> {
    for (level, count) in [
        // The environment's level is that of errors.
        (None, 0),
        (Some(LogLevel::Verbose), 1),
        (Some(LogLevel::Info), 1),
        (Some(LogLevel::Warning), 0),
        (Some(LogLevel::Fatal), 0),
    ] {
        let lines = lines(on("cpu"), level)?;
        assert_eq!(lines.len(), count, "{level:?}: {lines:?}");
    }
    Ok(())
}

#[test]
fn providers_and_policies_choose_a_device() -> ort::Result<()> {
    assert!(CPU::is_available()?);
    let builder = || Session::builder(environment());
    for builder in [
        builder()?.with_execution_providers([CPU::default().build()])?,
        builder()?.with_auto_device(AutoDevicePolicy::PreferCPU)?,
        on("cpu"),
    ] {
        let device = device(builder)?;
        assert!(device.starts_with("cpu: "), "{device}");
    }
    let error = Session::builder(environment())?.with_auto_device(AutoDevicePolicy::PreferNPU).map(drop);
    let error = error.expect_err("no such device");
    assert_eq!(
        error.message(),
        "a policy that prefers NPUs is not supported: Diptych runs on GPUs and on the CPU"
    );
    Ok(())
}

#[test]
fn sessions_run_on_several_threads() {
    let file = linear().build();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let file = &file;
            scope.spawn(move || {
                let device = ["cpu", "wgpu"][thread % 2];
                let mut session = on(device).commit_from_memory(file).expect("a session");
                for turn in 0..5 {
                    let x = (thread * 10 + turn) as f32;
                    assert_eq!(row(&mut session, [x, 0.0]), [x + 0.5, 2.0 * x - 0.5]);
                }
            });
        }
    });
}

/// A decoder of one layer, whose keys are kept from run to run.
fn keeping() -> File {
    let past = [Fixed(1), Fixed(1), Open("past"), Fixed(2)];
    File::new()
        .input("x", F32, &[Fixed(1), Fixed(1), Open("new"), Fixed(2)])
        .input("past_key_values.0.key", F32, &past)
        .node_with("Concat", &["past_key_values.0.key", "x"], &["present.0.key"], &[("axis", 2)])
        .input("attention_mask", I64, &[Fixed(1), Open("past + new")])
        .integers("around", &[2], &[1, 3])
        .node_with("Cast", &["attention_mask"], &["floats"], &[("to", F32)])
        .node("Unsqueeze", &["floats", "around"], &["mask"])
        .node("Mul", &["present.0.key", "mask"], &["masked"])
        .integers("axes", &[1], &[2])
        .node_with("ReduceSum", &["masked", "axes"], &["sum"], &[("keepdims", 0)])
        .output("sum", F32, &[Fixed(1), Fixed(1), Fixed(2)])
        .output("present.0.key", F32, &[Fixed(1), Fixed(1), Open("all"), Fixed(2)])
}

#[test]
fn outputs_go_back_in_as_inputs() -> ort::Result<()> {
    let mut session = session(keeping());
    let mut past = Tensor::<f32>::from_array(([1usize, 1, 0, 2], Vec::new()))?.into_dyn();
    for turn in 1..=3 {
        let mask = Tensor::from_array(([1usize, turn as usize], vec![1i64; turn as usize]))?;
        let x = Tensor::from_array(([1usize, 1, 1, 2], vec![1.0f32, 10.0]))?;
        let mut outputs =
            session.run(ort::inputs!["x" => x, "past_key_values.0.key" => past, "attention_mask" => mask])?;
        let turns = turn as f32;
        assert_eq!(outputs["sum"].try_extract_tensor::<f32>()?.1, [turns, 10.0 * turns]);
        past = outputs.remove("present.0.key").expect("the keys");
        assert_eq!(past.shape()[2], turn);
    }
    Ok(())
}

#[test]
fn caches_stay_in_the_session() -> ort::Result<()> {
    let builder = on("cpu").with_config_entry("session.diptych.caches", "8")?;
    let mut session = { builder }.commit_from_memory(&keeping().build())?;
    assert_eq!((session.inputs().len(), session.outputs().len()), (2, 1));
    let mut options = RunOptions::new()?;
    for (reset, wanted) in [("0", 1.0f32), ("0", 2.0), ("1", 1.0), ("0", 2.0)] {
        options.set("run.diptych.reset", reset)?;
        let x = Tensor::from_array(([1usize, 1, 1, 2], vec![1.0f32, 10.0]))?;
        let mask = Tensor::from_array(([1usize, wanted as usize], vec![1i64; wanted as usize]))?;
        let outputs = session.run_with_options(ort::inputs!["x" => x, "attention_mask" => mask], &options)?;
        assert_eq!(outputs["sum"].try_extract_tensor::<f32>()?.1, [wanted, 10.0 * wanted]);
    }
    Ok(())
}

/// Registers an execution provider by its name, as `ort`'s own providers do.
fn registered(builder: &mut SessionBuilder, name: &CStr, options: &[(&CStr, &CStr)]) -> ort::Result<()> {
    let keys: Vec<_> = options.iter().map(|(key, _)| key.as_ptr()).collect();
    let values: Vec<_> = options.iter().map(|(_, value)| value.as_ptr()).collect();
    let (keys, values) = (keys.as_ptr(), values.as_ptr());
    let append = ort::api().SessionOptionsAppendExecutionProvider;
    // SAFETY: the texts and lists live until it returns, and the options are of this table.
    let status = unsafe { append(builder.ptr_mut(), name.as_ptr(), keys, values, options.len()) };
    // SAFETY: the status is of this table, and is released by this call alone.
    unsafe { ort::Error::result_from_status(status) }
}

#[test]
fn providers_are_registered_by_their_names() -> ort::Result<()> {
    let builder = || Session::builder(environment());
    // The first one counts.
    let mut wgpu = builder()?;
    registered(
        &mut wgpu,
        c"WebGpuExecutionProvider",
        &[(c"deviceId", c"0"), (c"validationMode", c"disabled")],
    )?;
    registered(&mut wgpu, c"CPUExecutionProvider", &[])?;
    assert_eq!(row(&mut wgpu.clone().commit_from_memory(&linear().build())?, [1.0, 1.0]), [4.5, 5.5]);
    let found = device(wgpu)?;
    assert!(found.starts_with("wgpu: "), "{found}");
    let mut cpu = builder()?;
    registered(&mut cpu, c"CPUExecutionProvider", &[])?;
    registered(&mut cpu, c"DiptychExecutionProvider", &[(c"backend", c"wgpu")])?;
    let found = device(cpu)?;
    assert!(found.starts_with("cpu: "), "{found}");
    let mut own = builder()?;
    registered(&mut own, c"DiptychExecutionProvider", &[(c"backend", c"cpu"), (c"seed", c"5")])?;
    assert_eq!(row(&mut own.clone().commit_from_memory(&linear().build())?, [1.0, 1.0]), [4.5, 5.5]);
    let found = device(own)?;
    assert!(found.starts_with("cpu: "), "{found}");

    let error = registered(&mut builder()?, c"DiptychExecutionProvider", &[(c"speed", c"1")]);
    assert!(error.expect_err("no such option").message().starts_with("session.diptych.speed: found"));
    let error = registered(&mut builder()?, c"CoreMLExecutionProvider", &[]).expect_err("no such provider");
    assert_eq!(
        error.message(),
        "execution provider \"CoreMLExecutionProvider\" is not supported: this is Diptych, which has \
         DiptychExecutionProvider, WebGpuExecutionProvider, CPUExecutionProvider"
    );
    Ok(())
}
