//! `diptych compile` on the devices of this machine, and its page.

use diptych::{Backend, Context};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

const MODEL: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/posenet/data/posenet_figures.tflite");

fn compile(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_diptych"));
    command.arg("compile").args(words).output().expect("the program starts")
}

fn text(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout.clone()).expect("text")
}

/// The APIs that have a device here; a missing one is printed, or fails if devices are required.
fn apis() -> Vec<&'static str> {
    let has = |api: &&str| {
        let backend = api.parse::<Backend>().expect("an API");
        match Context::builder().backend(backend).without_kernel_cache().open() {
            Ok(_) => true,
            Err(error) if std::env::var("DIPTYCH_REQUIRE_DEVICES").is_ok_and(|value| value == "1") => {
                panic!("{api} is required: {error}")
            }
            Err(error) => {
                println!("skipping {api}: {error}");
                false
            }
        }
    };
    ["wgpu", "opencl"].into_iter().filter(has).collect()
}

/// What became of each kernel.
fn outcomes(report: &Value) -> Vec<&str> {
    let kernels = report["kernels"].as_array().expect("kernels");
    let outcome = |kernel: &Value| {
        let found = kernel["outcome"].as_object().expect("an outcome").keys().next().expect("one").clone();
        match found.as_str() {
            "compiled" => "compiled",
            _ => "not compiled",
        }
    };
    kernels.iter().map(outcome).collect()
}

#[test]
fn a_networks_kernels_are_compiled_and_the_page_shows_both_apis() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut files = Vec::new();
    for api in apis() {
        let report = text(&compile(&[MODEL, "--backend", api, "--json", "--deny", "failures"]));
        let report: Value = serde_json::from_str(&report).expect("JSON");
        assert!(outcomes(&report).len() > 5, "{api}: {report}");
        assert!(outcomes(&report).iter().all(|outcome| *outcome == "compiled"), "{api}: {report}");
        // PoCL answers OpenCL's questions; lavapipe may have no more to say than that it takes a kernel.
        if api == "opencl" {
            let told = &report["kernels"][0]["outcome"]["compiled"]["programs"][0]["statistics"];
            let names: Vec<&str> = told
                .as_array()
                .expect("statistics")
                .iter()
                .filter_map(|told| told["name"].as_str())
                .collect();
            assert!(names.contains(&"CL_KERNEL_WORK_GROUP_SIZE"), "{names:?}");
        }
        let uses = report["uses"].as_array().expect("uses");
        assert!(uses.iter().all(|used| used["subject"] == "posenet_figures.tflite"), "{uses:?}");
        let file = folder.path().join(format!("{api}.json"));
        std::fs::write(&file, report.to_string()).expect("written");
        files.push((file, report["device"]["name"].as_str().expect("a name").to_owned()));
    }
    if files.is_empty() {
        return;
    }
    let page = folder.path().join("page.html");
    let mut words = vec!["--report", page.to_str().expect("text")];
    for (file, _) in &files {
        words.extend(["--with", file.to_str().expect("text")]);
    }
    assert_eq!(text(&compile(&words)), "");
    let page = std::fs::read_to_string(page).expect("a page");
    for (_, device) in &files {
        let shown = device.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        assert!(page.contains(&shown), "no {device}");
    }
    for foreign in ["<script", "src=", "@import", "<link"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
}

#[test]
fn the_space_of_an_op_has_more_than_an_untuned_session_and_says_what_does_not_fit() {
    for api in apis() {
        let report = |words: &[&str]| -> Value {
            let words = [&["--op", "copy", "--backend", api, "--json"], words].concat();
            serde_json::from_str(&text(&compile(&words))).expect("JSON")
        };
        let (untuned, space) = (report(&[]), report(&["--space"]));
        let count = |report: &Value| report["kernels"].as_array().expect("kernels").len();
        assert!(count(&space) > 2 * count(&untuned), "{api}: {} of {}", count(&untuned), count(&space));
        assert!(outcomes(&space).iter().all(|outcome| *outcome == "compiled"), "{api}");
        let marked = |report: &Value| {
            report["uses"].as_array().expect("uses").iter().filter(|used| used["untuned"] == true).count()
        };
        assert_eq!(marked(&untuned), marked(&space), "{api}");
    }
}

/// A device's own words, for people.
#[test]
fn kernels_are_listed_with_what_the_driver_says() {
    for api in apis() {
        let listed = text(&compile(&["--op", "copy", "--backend", api]));
        for words in ["device ", "told by ", "compiled", "instructions", "copy_rows_f32"] {
            assert!(listed.contains(words), "{api}: no {words:?} in {listed}");
        }
        let told =
            listed.contains("not told by this driver") || listed.contains("KERNEL") || listed.contains("VK_");
        assert!(
            told || listed.contains("clGetKernelWorkGroupInfo") || listed.contains("-cl-nv-verbose"),
            "{listed}"
        );
    }
}

#[test]
fn wrong_usage_and_files_are_refused_with_the_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let (none, page) = (folder.path().join("none.json"), folder.path().join("page.html"));
    let text = |path: &Path| path.to_str().expect("text").to_owned();
    let (none, page) = (text(&none), text(&page));
    for (words, wanted) in [
        (&[][..], "nothing to compile"),
        (&["--with", &none][..], "nothing to compile"),
        (&["--with", &none, "--report", &page][..], "none.json"),
        (&["--op", "lstm"][..], "depthwise"),
    ] {
        let output = compile(words);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains(wanted), "{words:?}: {errors}");
    }
    if let Some(api) = apis().first() {
        let output = compile(&["no/such.tflite", "--backend", api]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains("no/such.tflite"), "{errors}");
    }
}

/// The devices of `scripts/drivers` that are to be tried, by name: what `scripts/test --drivers` says.
#[test]
fn untuned_sessions_compile_for_gpus_that_are_not_there() {
    let Ok(devices) = std::env::var("DIPTYCH_TEST_DRIVERS") else {
        println!("skipped: DIPTYCH_TEST_DRIVERS names no device of scripts/drivers");
        return;
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut failures = Vec::new();
    for device in devices.split_whitespace() {
        for precision in ["f32", "f16s"] {
            for subject in [&[MODEL][..], &["--op", "all"]] {
                let mut command = Command::new(root.join("scripts/drivers"));
                command.args(["run", device, env!("CARGO_BIN_EXE_diptych"), "compile"]).args(subject);
                command.args(["--precision", precision, "--backend", "wgpu"]);
                // What each is known to spill is listed in the book.
                let may_spill = subject[0] != MODEL && KNOWN_TO_SPILL.contains(&device);
                let deny = if may_spill { "failures" } else { "failures,spills" };
                let output = command.args(["--deny", deny]).output().expect("scripts/drivers starts");
                if !output.status.success() {
                    let errors = String::from_utf8_lossy(&output.stderr);
                    let listed = String::from_utf8_lossy(&output.stdout);
                    failures.push(format!("{device} {precision}: {errors}\n{listed}"));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n\n"));
}

/// Devices on which kernels that untuned sessions run for examples spill: products of matrices that are kept in few bits.
const KNOWN_TO_SPILL: [&str; 5] = ["mali-g52", "mali-g310", "mali-g610", "v3d-4.2", "v3d-7.1"];

/// PanVK's driver for the Mali G52 has not passed the conformance tests.
#[test]
fn a_driver_that_is_not_conformant_is_opened_by_name_alone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let script = |words: &[&str]| {
        let mut command = Command::new(root.join("scripts/drivers"));
        command.args(words).output().expect("scripts/drivers starts")
    };
    let there = std::env::var("DIPTYCH_TEST_DRIVERS").is_ok()
        && text(&script(&["list"])).lines().any(|device| device == "mali-g52");
    if !there {
        println!("skipped: DIPTYCH_TEST_DRIVERS is not set, or scripts/drivers has no mali-g52");
        return;
    }
    let run = |words: &[&str]| {
        // The script names it.
        let start = ["run", "mali-g52", "env", "-u", "DIPTYCH_WGPU_ADAPTER", env!("CARGO_BIN_EXE_diptych")];
        script(&[&start, words].concat())
    };
    let listed = text(&run(&["devices"]));
    assert!(
        listed.contains("Mali-G52 (Vulkan): its driver did not pass Vulkan's conformance tests"),
        "{listed}"
    );
    let refused = run(&["compile", "--op", "copy", "--backend", "wgpu"]);
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && errors.contains("conformance tests"), "{errors}");
    let named = text(&run(&["compile", "--op", "copy", "--device", "wgpu:g52"]));
    assert!(named.contains("copy_rows_f32"), "{named}");
}
