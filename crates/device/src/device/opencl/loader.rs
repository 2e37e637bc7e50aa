//! Finds the OpenCL library at run time; nothing is linked.
//!
//! | tried, in this order | when |
//! |---|---|
//! | the one that was chosen, in code or by `DIPTYCH_OPENCL_LIBRARY` | then nothing else |
//! | the entries of `OPENCL_DYLIB_PATH`, separated by `;` | if set: the variable of the `cl3` crate |
//! | the platform's usual names | always |
//! | vendors' own paths | on Linux and Android |
//!
//! Drivers on phones seldom come with the loader of the Khronos group, so the vendor's library is
//! opened by its path, as Paddle-Lite's `CLWrapper` does.

use super::call::Runtime;
use super::lock;
use crate::device::options::environment;
use crate::error::{Error, Result};
use std::sync::{Mutex, OnceLock};

/// Where `cl3`, which an application may use too, looks for its library before [`CL3_DEFAULT`].
const CL3_CHOICE: &str = "OPENCL_DYLIB_PATH";

/// What `cl3` opens without it.
const CL3_DEFAULT: &str = if cfg!(target_os = "windows") {
    "OpenCL.dll"
} else if cfg!(target_os = "macos") {
    "/System/Library/Frameworks/OpenCL.framework/OpenCL"
} else {
    "libOpenCL.so.1"
};

/// Names the system's loader finds.
const USUAL: &[&str] = if cfg!(any(target_os = "windows", target_os = "macos")) {
    &[CL3_DEFAULT]
} else if cfg!(target_os = "android") {
    &["libOpenCL.so"]
} else {
    &[CL3_DEFAULT, "libOpenCL.so"]
};

/// Vendors' libraries, below `lib64` or `lib`.
const VENDOR: &[&str] = if cfg!(target_os = "android") {
    &["libOpenCL.so", "libPVROCL.so", "libGLES_mali.so", "egl/libGLES_mali.so"]
} else {
    &[]
};

/// Folders of [`VENDOR`].
const VENDOR_FOLDERS: &[&str] = if cfg!(target_pointer_width = "64") {
    &["/system/vendor/lib64", "/vendor/lib64", "/system/lib64"]
} else {
    &["/system/vendor/lib", "/vendor/lib", "/system/lib"]
};

/// What boards with Mali GPUs call the library that holds OpenCL.
const BOARDS: &[&str] =
    if cfg!(target_os = "linux") { &["libmali.so.1", "libmali.so", "libPVROCL.so.1"] } else { &[] };

/// The functions without which no kernel can be run.
const REQUIRED: &[&str] = &[
    "clGetPlatformIDs",
    "clGetDeviceIDs",
    "clGetDeviceInfo",
    "clCreateContext",
    "clCreateCommandQueue",
    "clCreateBuffer",
    "clCreateSubBuffer",
    "clCreateProgramWithSource",
    "clBuildProgram",
    "clGetProgramBuildInfo",
    "clCreateKernel",
    "clSetKernelArg",
    "clEnqueueNDRangeKernel",
    "clEnqueueReadBuffer",
    "clEnqueueWriteBuffer",
    "clEnqueueMapBuffer",
    "clEnqueueUnmapMemObject",
    "clFlush",
    "clFinish",
    "clWaitForEvents",
    "clGetEventProfilingInfo",
];

/// The loaded library: what it was opened as, and its functions.
#[derive(Clone, Copy)]
pub(super) struct Loaded {
    pub(super) path: &'static str,
    pub(super) runtime: &'static Runtime,
}

/// What was loaded: a process has one library.
static LOADED: OnceLock<Loaded> = OnceLock::new();

/// The library, if it is loaded.
pub(super) fn loaded() -> Option<&'static Loaded> {
    LOADED.get()
}

/// The OpenCL library, found and loaded at the first call: `choice`, or what is found.
///
/// # Errors
/// [`Error::OpenClLibrary`] with the answer for each path that was tried; [`Error::Unsupported`] if
/// another one than `choice` is loaded already, because a process has one.
pub(super) fn load(choice: Option<&str>) -> Result<Loaded> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one = lock(&ONE_AT_A_TIME);
    match (loaded(), choice) {
        (Some(loaded), Some(choice)) if loaded.path != choice => Err(Error::unsupported(
            format!("the OpenCL library {choice}"),
            format!("this process has loaded {}", loaded.path),
        )),
        (Some(loaded), _) => Ok(*loaded),
        (None, _) => {
            let loaded = find(choice).map_err(|tried| Error::OpenClLibrary { tried })?;
            Ok(*LOADED.get_or_init(|| loaded))
        }
    }
}

fn find(choice: Option<&str>) -> std::result::Result<Loaded, Vec<String>> {
    let for_cl3 = environment(CL3_CHOICE);
    let mut tried = Vec::new();
    for path in candidates(choice, for_cl3.as_deref()) {
        match open(&path) {
            Ok(runtime) => {
                return Ok(Loaded { path: String::leak(path), runtime: Box::leak(Box::new(runtime)) });
            }
            Err(answer) => tried.push(format!("{path}: {answer}")),
        }
    }
    Err(tried)
}

/// The functions of the library at `path`, if it has what kernels need.
fn open(path: &str) -> std::result::Result<Runtime, String> {
    probe(path)?;
    // SAFETY: as in `probe`, which has opened it. Test: `the_usual_library_is_found`.
    unsafe { Runtime::load(path) }.map_err(|error| with_causes(&error))
}

/// Every path to try, in order, without repetitions.
fn candidates(choice: Option<&str>, for_cl3: Option<&str>) -> Vec<String> {
    if let Some(path) = choice {
        return vec![path.to_owned()];
    }
    let listed = for_cl3.into_iter().flat_map(|list| list.split(';')).filter(|path| !path.is_empty());
    let usual = USUAL.iter().chain(BOARDS).copied().map(str::to_owned);
    let vendor = VENDOR_FOLDERS
        .iter()
        .flat_map(|folder| VENDOR.iter().map(move |library| format!("{folder}/{library}")));
    let mut paths: Vec<String> = Vec::new();
    for path in listed.map(str::to_owned).chain(usual).chain(vendor) {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

/// Opens `path` and looks for the functions in it.
fn probe(path: &str) -> std::result::Result<(), String> {
    // SAFETY: opening a library runs its initialisers. The paths are those of OpenCL drivers, or
    // were given by the user to be run. Test: `the_usual_library_is_found`.
    let library = unsafe { libloading::Library::new(path) }.map_err(|error| with_causes(&error))?;
    let missing: Vec<&str> = REQUIRED
        .iter()
        .copied()
        .filter(|name| {
            // SAFETY: the address is only looked up, never called nor read through.
            unsafe { library.get::<*const ()>(name.as_bytes()) }.is_err()
        })
        .collect();
    if !missing.is_empty() {
        return Err(format!("opened, but lacks {}", missing.join(", ")));
    }
    // Drivers do not take well to being unloaded and loaded again, so this one stays.
    std::mem::forget(library);
    Ok(())
}

/// An error with what lies beneath it: the system's own sentence is among the causes.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chosen_library_is_the_only_candidate() {
        assert_eq!(candidates(Some("/a/b"), Some("/c")), ["/a/b"]);
    }

    #[test]
    fn the_list_for_cl3_comes_before_the_usual_names_and_nothing_twice() {
        let paths = candidates(None, Some("/c;;libOpenCL.so;/c"));
        assert_eq!(paths.first().map(String::as_str), Some("/c"));
        assert_eq!(paths.get(1).map(String::as_str), Some("libOpenCL.so"));
        for name in USUAL {
            assert_eq!(paths.iter().filter(|path| path == name).count(), 1, "{name} in {paths:?}");
        }
    }

    #[test]
    fn a_probe_says_why_it_failed() {
        assert!(probe("/nonexistent/libOpenCL.so").is_err_and(|answer| answer.contains("nonexistent")));
        if cfg!(all(target_os = "linux", target_env = "gnu")) {
            assert!(probe("libc.so.6").is_err_and(|answer| answer.contains("lacks clGetPlatformIDs")));
        }
    }

    #[test]
    fn the_usual_library_is_found() {
        match load(environment("DIPTYCH_OPENCL_LIBRARY").as_deref()) {
            Ok(loaded) => assert!(!loaded.path.is_empty()),
            Err(error) if std::env::var_os("DIPTYCH_REQUIRE_DEVICES").is_some() => panic!("{error}"),
            Err(error) => println!("skipped: {error}"),
        }
    }
}
