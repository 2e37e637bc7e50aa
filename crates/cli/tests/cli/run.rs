//! `diptych run` on the bundled network, made small: how its kernels are picked, as a profile reports it.

use crate::network::{SIDE, small_network};
use crate::npy;
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

/// The network and a grey picture for it, in a folder of theirs.
struct Files {
    folder: tempfile::TempDir,
    model: PathBuf,
    grey: PathBuf,
}

impl Files {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        let (model, grey) = (small_network(folder.path()), folder.path().join("grey.npy"));
        npy::write(&grey, &[1, SIDE, SIDE, 3], &vec![0.5; SIDE * SIDE * 3]);
        Files { folder, model, grey }
    }

    /// `diptych run --profile` on the picture.
    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_diptych"));
        command.arg("run").arg(&self.model).args(["--profile", "--input"]).arg(&self.grey);
        command
    }
}

/// `diptych run` with these words at the end.
fn run(files: &Files, backend: &str, words: &[&str]) -> Output {
    files.command().args(["--backend", backend]).args(words).output().expect("the program starts")
}

/// What `diptych run` prints with these words, on standard error and output; it must succeed.
fn report(files: &Files, backend: &str, words: &[&str]) -> String {
    let output = run(files, backend, words);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{backend} {words:?}: {errors}");
    errors + &String::from_utf8_lossy(&output.stdout)
}

#[test]
fn the_cpu_picks_by_rule_or_preference_and_refuses_the_rest() {
    let files = Files::new();
    for (pick, wanted) in [
        ("rule", "the only kernel"),
        ("preference=cpu", "preference: grade 3.500 at place 1 of 1"),
        ("preference=opencl,any", "preference: grade 1.750 at place 2 of 2"),
    ] {
        let report = report(&files, "cpu", &["--pick", pick]);
        assert!(report.contains(wanted), "{pick}: {report}");
    }
    for (pick, wanted) in
        [("measured", "wanted --db"), ("preference=opencl", "no place of the preference has target cpu")]
    {
        let output = run(&files, "cpu", &["--pick", pick]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{pick}: {errors}");
        assert!(errors.contains(wanted), "{pick}: {errors}");
    }
}

#[test]
fn an_extent_that_is_not_open_is_refused() {
    let files = Files::new();
    let output = run(&files, "cpu", &["--dimension", "image.1=320"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && errors.contains("image.1"), "{errors}");
    let output = run(&files, "cpu", &["--dimension", "batch"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && errors.contains("NAME=EXTENT"), "{errors}");
}

/// The APIs of this machine, and whether feature maps can be images there.
fn devices() -> Vec<(String, bool)> {
    let output = Command::new(env!("CARGO_BIN_EXE_diptych")).args(["devices", "--json"]).output();
    let listed: Vec<Value> = serde_json::from_slice(&output.expect("the list").stdout).expect("a list");
    let mut found: Vec<(String, bool)> = Vec::new();
    for entry in listed.iter().filter(|entry| entry["device"].is_object()) {
        let backend = entry["backend"].as_str().expect("a backend");
        if matches!(backend, "wgpu" | "opencl") && found.iter().all(|(known, _)| known != backend) {
            found.push((backend.to_owned(), !entry["device"]["max_image"].is_null()));
        }
    }
    if std::env::var_os("DIPTYCH_REQUIRE_DEVICES").is_some() {
        assert_eq!(found.len(), 2, "{listed:?}");
    }
    found
}

#[test]
fn a_device_picks_by_preference_and_by_measured_times() {
    let files = Files::new();
    for (name, images) in devices() {
        let report_by = |words: &[&str]| report(&files, &name, words);
        let preferred = report_by(&["--pick", "preference=image2d,any"]);
        let grade = if images { "preference: grade 3.500" } else { "preference: grade 3.000" };
        assert!(preferred.contains(&format!("{grade} at place 1 of 2")), "{name}: {preferred}");
        assert_eq!(preferred.contains("image2d"), images, "{name}: {preferred}");

        // How times on record decide does not depend on the API; with images there is more to decide.
        if !images {
            continue;
        }
        let record = files.folder.path().join(&name);
        let tuned = Command::new(env!("CARGO_BIN_EXE_diptych"))
            .arg("tune")
            .arg(&files.model)
            .args(["--search", "table", "--layouts", "c4,image2d", "--backend", &name, "--db"])
            .arg(&record)
            .output()
            .expect("the program starts");
        assert!(tuned.status.success(), "{name}: {}", String::from_utf8_lossy(&tuned.stderr));
        let record = record.to_str().expect("text");
        let measured = report_by(&["--pick", "measured", "--db", record]);
        assert!(measured.contains("measured: "), "{name}: {measured}");
        assert!(measured.contains("changes of layout not counted"), "{name}: {measured}");
    }
}

/// What `tune` found counts for runs that name no record, unless they are to be untuned.
#[test]
fn a_run_takes_kernels_from_the_users_own_record() {
    let files = Files::new();
    for (name, _) in devices() {
        let home = files.folder.path().join(format!("{name} home"));
        let own = |mut command: Command| {
            command.env("XDG_CACHE_HOME", &home).env("HOME", &home).env("LOCALAPPDATA", &home);
            let output = command.output().expect("the program starts");
            let told = [&output.stdout[..], &output.stderr].concat();
            let told = String::from_utf8_lossy(&told).into_owned();
            assert!(output.status.success(), "{name}: {told}");
            told
        };
        let run = |words: &[&str]| {
            let mut command = files.command();
            command.args(["--backend", &name]).args(words);
            own(command).contains("measured")
        };
        assert!(!run(&[]), "{name}");
        let mut tune = Command::new(env!("CARGO_BIN_EXE_diptych"));
        tune.arg("tune").arg(&files.model).args(["--search", "table", "--backend", &name]);
        own(tune);
        assert!(run(&[]) && !run(&["--untuned"]), "{name}");
    }
}

/// A device is named by a flag or, where none is, by the environment; both say so, and neither falls back.
#[test]
fn a_device_is_named_by_flag_or_environment() {
    let files = Files::new();
    let run = |flags: &[&str], variables: &[(&str, &str)]| {
        let mut command = files.command();
        command.args(flags).env_remove("DIPTYCH_DEVICE").envs(variables.iter().copied());
        let output = command.output().expect("the program starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (flags, variables, wanted) in [
        (&["--device", "cpu"][..], &[("DIPTYCH_DEVICE", "opencl")][..], "the CPU was asked for)"),
        (&[], &[("DIPTYCH_DEVICE", "cpu")], "the CPU was asked for, as DIPTYCH_DEVICE says)"),
        // What names another backend than the one that is asked for does not count.
        (&["--backend", "cpu"], &[("DIPTYCH_DEVICE", "wgpu:7")], "the CPU was asked for)"),
    ] {
        let (code, errors) = run(flags, variables);
        assert!(code == Some(0) && errors.contains(wanted), "{flags:?} {variables:?}: {errors}");
    }
    for (flags, variables, wanted) in [
        (&["--device", "ff:ff.9"][..], &[][..], "name contains \"ff:ff.9\""),
        (&["--device", "ffff:ff:1f.7"], &[], "PCI address ffff:ff:1f.7"),
        (
            &[],
            &[("DIPTYCH_DEVICE", "GPU-00000000-0000-0000-0000-00000000000f")],
            "the device with UUID GPU-0000",
        ),
        (&[], &[("DIPTYCH_DEVICE", "opencl:")], "DIPTYCH_DEVICE: found \"opencl:\""),
        (&["--backend", "wgpu"], &[("DIPTYCH_DEVICE", "77")], "device number 77"),
    ] {
        let (code, errors) = run(flags, variables);
        assert!(code == Some(1) && errors.contains(wanted), "{flags:?} {variables:?}: {errors}");
    }
    let (code, errors) = run(&["--device", "cpu", "--backend", "cpu"], &[]);
    assert!(code == Some(2) && errors.contains("--backend"), "{errors}");
    for (backend, _) in devices() {
        let of = format!("{backend}:0");
        for (flags, variables) in [(vec!["--device", &of], vec![]), (vec![], vec![("DIPTYCH_DEVICE", &*of)])]
        {
            // It is not a GPU of NVIDIA's, so that it is seen.
            let hidden: Vec<_> = variables.into_iter().chain([("CUDA_VISIBLE_DEVICES", "")]).collect();
            let (code, errors) = run(&flags, &hidden);
            let wanted = format!("{backend} was asked for: device number 0");
            assert!(code == Some(0) && errors.contains(&wanted), "{flags:?} {hidden:?}: {errors}");
        }
    }
}

/// `diptych run` of the small network on the CPU with these words, which must succeed: both outputs.
fn on_cpu(files: &Files, words: &[&str]) -> [String; 2] {
    let mut command = Command::new(env!("CARGO_BIN_EXE_diptych"));
    let output = command.arg("run").arg(&files.model).args(["--backend", "cpu"]).args(words).output();
    let output = output.expect("the program starts");
    let [out, errors] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{words:?}: {errors}");
    [out, errors]
}

/// The fastest backend is measured at the first run, and found in the record by the next ones and by `inspect`.
#[test]
fn the_fastest_backend_is_measured_once() {
    let files = Files::new();
    let record = files.folder.path().join("record");
    let of = |command: &str, words: &[&str]| {
        let mut run = Command::new(env!("CARGO_BIN_EXE_diptych"));
        run.arg(command).arg(&files.model).args(words);
        run.env_remove("DIPTYCH_DEVICE").env("DIPTYCH_CACHE_DIR", &record);
        let output = run.output().expect("the program starts");
        let [out, errors] =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        (output.status.code(), out + &errors)
    };
    let fastest = ["--backend", "fastest"];
    let (code, measured) = of("run", &fastest);
    assert!(code == Some(0) && measured.contains("; measured now)"), "{measured}");
    let list = |text: &str| {
        let from = text.find("the fastest of ").expect("a verdict");
        text[from..from + text[from..].find("; ").expect("its end")].to_owned()
    };
    for backend in ["wgpu ", "opencl ", "cpu "] {
        assert!(list(&measured).contains(backend), "no {backend} in: {measured}");
    }
    let (code, known) = of("run", &fastest);
    assert!(code == Some(0) && known.contains("; from the record)"), "{known}");
    assert_eq!(list(&known), list(&measured));
    let (code, anew) = of("run", &["--backend", "fastest", "--anew"]);
    assert!(code == Some(0) && anew.contains("; measured now)"), "{anew}");
    let (code, inspected) = of("inspect", &fastest);
    assert!(code == Some(0) && inspected.contains("; from the record)"), "{inspected}");
    for (words, wanted) in [
        (&["--anew"][..], "wanted --backend fastest too"),
        (&["--backend", "fastest", "--precision", "auto", "--calibrate"], "measures without a calibration"),
    ] {
        let (code, errors) = of("run", words);
        assert!(code == Some(1) && errors.contains(wanted), "{words:?}: {errors}");
    }
    // What the environment names is what runs.
    let mut named = Command::new(env!("CARGO_BIN_EXE_diptych"));
    named.arg("run").arg(&files.model).args(fastest);
    let output = named.env("DIPTYCH_DEVICE", "cpu").env("DIPTYCH_CACHE_DIR", &record).output();
    let errors = String::from_utf8_lossy(&output.expect("the program starts").stderr).into_owned();
    assert!(errors.contains("the fastest of cpu ") && errors.contains("; measured now)"), "{errors}");
}

#[test]
fn times_have_a_warm_up_and_percentiles() {
    let files = Files::new();
    let [_, errors] = on_cpu(&files, &["--runs", "4", "--warmup", "2"]);
    assert!(errors.contains(", 2 for warm-up, then 4 runs: fastest "), "{errors}");
    assert!(errors.contains(" ms, p90 ") && errors.contains(" ms, p99 "), "{errors}");
    let [json, _] = on_cpu(&files, &["--duration", "0.05", "--json", "--profile"]);
    let report: Value = serde_json::from_str(&json).expect("JSON");
    let times: Vec<f64> =
        report["times_ms"].as_array().expect("times").iter().filter_map(Value::as_f64).collect();
    let counted = &times[1..];
    assert!(times.iter().sum::<f64>() >= 45.0, "{times:?}");
    let least = counted.iter().copied().fold(f64::INFINITY, f64::min);
    let (median, p99) = (report["median_ms"].as_f64(), report["p99_ms"].as_f64());
    if !counted.is_empty() {
        assert!(median >= Some(least) && p99 >= median, "{report}");
    }
    let steps = report["profile"]["steps"].as_array().expect("steps");
    assert_eq!(Some(steps.len() as u64), report["steps"].as_u64());
}

/// A picture of three channels becomes the luma of an input of one, and not its red.
#[test]
fn a_coloured_picture_is_grey_for_an_input_of_one_channel() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = folder.path().join("one_channel.onnx");
    std::fs::write(&model, crate::onnx::absolute(&[1, 4, 4, 1])).expect("written");
    let picture = folder.path().join("red.png");
    image::RgbImage::from_pixel(4, 4, image::Rgb([255, 0, 0])).save(&picture).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_diptych"));
    command.arg("run").arg(&model).args(["--backend", "cpu", "--json", "--image"]).arg(&picture);
    // The file does not say what numbers a picture's bytes are.
    let refused = command.output().expect("the program starts");
    let errors = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(1) && errors.contains("wanted --range BLACK,WHITE"), "{errors}");
    let output = command.args(["--range", "0,1"]).output().expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let found = &report["outputs"][0];
    let (least, most) = (found["min"].as_f64().expect("a number"), found["max"].as_f64().expect("a number"));
    // BT.601 says 0.299, BT.709 0.2126.
    assert!(least == most && (0.2..0.31).contains(&least), "{found}");
}

#[test]
fn the_most_likely_classes_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let [model, input, labels] = ["model.onnx", "x.npy", "labels.txt"].map(|name| folder.path().join(name));
    std::fs::write(&model, crate::onnx::absolute(&[1, 6])).expect("written");
    npy::write(&input, &[1, 6], &[0.1, 0.7, -0.01, 0.0, 0.2, 0.15]);
    std::fs::write(&labels, "ant\nbee\ncat\ndog\neel\nfox\n").expect("written");
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_diptych"));
        command.arg("run").arg(&model).args(["--backend", "cpu", "--input"]).arg(&input).args(words);
        command.output().expect("the program starts")
    };
    let labels = labels.to_str().expect("text");
    let output = run(&["--labels", labels]);
    let text = String::from_utf8_lossy(&output.stdout);
    let classes: Vec<&str> = text.lines().skip(1).map(str::trim).collect();
    let wanted = [
        "class 1, bee: 0.700000",
        "class 4, eel: 0.200000",
        "class 5, fox: 0.150000",
        "class 0, ant: 0.100000",
        "class 2, cat: 0.010000",
    ];
    assert_eq!(classes, wanted, "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&run(&["--top", "1", "--json"]).stdout).expect("JSON");
    let first = &report["outputs"][0]["classes"][0];
    assert_eq!((first[0]["index"].as_u64(), first[0]["name"].is_null()), (Some(1), true), "{first}");
    assert_eq!(first.as_array().map(Vec::len), Some(1));
    std::fs::write(labels, "ant\nbee\n").expect("written");
    let errors = run(&["--labels", labels]).stderr;
    let errors = String::from_utf8_lossy(&errors);
    assert!(errors.contains("found 2 lines, wanted one for each class"), "{errors}");
}

/// What a file is told of itself that it does not know is refused, whatever its format.
#[test]
fn values_and_signatures_that_a_model_does_not_have_are_refused() {
    let files = Files::new();
    let onnx = files.folder.path().join("product.onnx");
    std::fs::write(&onnx, crate::onnx::product()).expect("written");
    for (model, words, wanted) in [
        (&files.model, ["--value", "nope=1"], "found a value for input \"nope\""),
        (&onnx, ["--value", "nope=1"], "found a value for input \"nope\""),
        (&files.model, ["--signature", "nope"], "found no signature \"nope\""),
        (&onnx, ["--signature", "nope"], "signature \"nope\""),
        (&files.model, ["--open-input", "nope"], "input \"nope\""),
    ] {
        for command in ["run", "inspect"] {
            let mut started = Command::new(env!("CARGO_BIN_EXE_diptych"));
            let output = started.arg(command).arg(model).args(["--backend", "cpu"]).args(words).output();
            let output = output.expect("the program starts");
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{command} {words:?}: {errors}");
            assert!(errors.contains(wanted), "{command} {words:?}: {errors}");
        }
    }
    // A value that the file has an input for is a constant, and no input any longer.
    let output = Command::new(env!("CARGO_BIN_EXE_diptych"))
        .arg("run")
        .arg(&onnx)
        .args(["--backend", "cpu", "--json", "--value", "k=2,3"])
        .output()
        .expect("the program starts");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["inputs"].as_array().map(Vec::len), Some(1), "{report}");
}

/// Inputs of 2 GB for a program that may have 1.5 GB of addresses: a network that cannot be read is refused before they are
/// made, and where it can be, that there is no memory for them is an error.
#[cfg(unix)]
#[test]
fn large_inputs_are_refused_where_memory_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = folder.path().join("wide.onnx");
    let extents = [2, 127, 127, 127, 127];
    for (bytes, words) in [
        (crate::onnx::of_itself(&extents), "y"),
        (crate::onnx::absolute(&extents), "wanted 2081157128 bytes for random numbers"),
    ] {
        std::fs::write(&model, bytes).expect("written");
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -v 1572864; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_diptych"), "run"]);
        let output = command.arg(&model).args(["--backend", "cpu"]).output().expect("the program starts");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains(words), "{errors}");
    }
}
