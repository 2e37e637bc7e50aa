//! Calls of drivers that fail, one after the other: each must come back as an error that says what failed, lose
//! nothing, and leave the device, or the one that is opened in its place, in order.
//!
//! Stand-ins before the drivers (`opencl.c`, `vulkan.c`), which the tests compile, make one call fail, or all from one
//! on. What is tried is printed with its outcome. `DIPTYCH_FAULTS=full` tries every call of every function; otherwise it
//! is one in the middle and the last, and of some kinds one in the middle.

#![cfg(all(feature = "opencl", feature = "wgpu", target_os = "linux"))]

mod driver;
mod files;
mod life;
mod sweep;

use std::process::Command;

/// Tells a child which driver it is to try.
const CHILD: &str = "DIPTYCH_FAULTS_CHILD";

/// Tries `driver` in a process of its own, with these variables: what a driver takes with it is that process.
fn tried(driver: &str, variables: &[(&str, &str)]) {
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "child", "--nocapture", "--include-ignored"])
        .env(CHILD, driver)
        .envs(variables.iter().copied())
        .output()
        .expect("a child");
    println!("{}", String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
}

/// What the children do; nothing when the tests run.
#[test]
#[ignore = "started by the other tests"]
fn child() {
    match std::env::var(CHILD).as_deref() {
        Ok("opencl") => sweep::opencl(),
        Ok("vulkan") => sweep::vulkan(),
        Ok("disk") => files::disk(),
        Ok("clock") => files::clock(),
        Ok("home") => files::home(),
        Ok("keeper") => files::keeper(),
        Ok("runner") => files::runner(),
        _ => {}
    }
}

#[test]
fn every_call_of_opencl_may_fail() {
    let Some(library) = driver::built("opencl") else { return };
    tried("opencl", &[("DIPTYCH_OPENCL_LIBRARY", library.to_str().expect("a path"))]);
}

#[test]
fn every_call_of_vulkan_may_fail() {
    let Some(library) = driver::built("vulkan") else { return };
    let folder = driver::described(&library);
    tried(
        "vulkan",
        &[
            ("VK_LAYER_PATH", folder.to_str().expect("a path")),
            ("VK_INSTANCE_LAYERS", driver::LAYER),
            (driver::LIBRARY, library.to_str().expect("a path")),
        ],
    );
}
