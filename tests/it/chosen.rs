//! Which device a context opens, where the environment says so too.

use diptych::{Backend, Context};
use std::process::Command;

/// The name of a backend that a process of its own opens.
const CHILD: &str = "DIPTYCH_TEST_CHOSEN";

#[test]
#[ignore = "run by the test below, in a process of its own"]
fn child() {
    let backend: Backend = std::env::var(CHILD).expect("a backend").parse().expect("a backend");
    match Context::new(backend) {
        Ok(context) => {
            let is_cpu = context.info().device.as_ref().is_none_or(|device| device.is_cpu);
            println!("opened on {}: {}", if is_cpu { "the CPU" } else { "a GPU" }, context.info());
        }
        Err(error) => println!("refused, no device {}: {error}", error.is_no_device()),
    }
}

/// What came of it with these variables.
fn opened(backend: &str, variables: &[(&str, &str)]) -> String {
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "chosen::child", "--include-ignored", "--nocapture"])
        .env_remove("DIPTYCH_DEVICE")
        .env(CHILD, backend)
        .envs(variables.iter().copied())
        .output()
        .expect("a process");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let outcome = said.lines().find(|line| line.contains("opened on") || line.contains("refused,"));
    outcome.unwrap_or_else(|| panic!("{backend} {variables:?}: {said}")).to_owned()
}

/// A driver that runs kernels on the CPU is no GPU, whichever variable names it.
#[test]
fn a_gpu_is_a_gpu_whatever_the_environment_says() {
    for device in ["wgpu", "opencl", "wgpu:0", "opencl:0", "0", "llvmpipe"] {
        let outcome = opened("gpu", &[("DIPTYCH_DEVICE", device)]);
        assert!(!outcome.contains("opened on the CPU"), "{device}: {outcome}");
        assert!(
            outcome.contains("opened on a GPU") || outcome.contains("no device true"),
            "{device}: {outcome}"
        );
    }
    for variable in ["DIPTYCH_WGPU_ADAPTER", "DIPTYCH_OPENCL_DEVICE"] {
        for name in ["llvmpipe", "cpu"] {
            let outcome = opened("gpu", &[("DIPTYCH_DEVICE", "wgpu"), (variable, name)]);
            assert!(!outcome.contains("opened on the CPU"), "{variable}={name}: {outcome}");
        }
    }
}

#[test]
fn an_error_names_the_backend_that_was_asked_for() {
    for backend in ["gpu", "auto"] {
        let outcome = opened(backend, &[("DIPTYCH_DEVICE", "No Such Device")]);
        assert!(outcome.contains("no device true") && outcome.contains("No Such Device"), "{outcome}");
        assert!(outcome.contains(&format!("no {backend} device")), "{outcome}");
    }
}
