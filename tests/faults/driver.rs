//! The stand-ins: compiled, loaded and told what is to fail.

use libloading::Library;
use std::ffi::{CStr, c_char, c_int, c_long};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The name of the Vulkan layer.
pub(crate) const LAYER: &str = "VK_LAYER_DIPTYCH_faults";

/// Tells a child where the layer is that the loader has loaded.
pub(crate) const LIBRARY: &str = "DIPTYCH_FAULTS_LAYER";

/// The stand-in of this name, compiled; nothing, and a word about it, without a C compiler.
pub(crate) fn built(name: &str) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/faults/{name}.c"));
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("libdiptych_faults_{name}.so"));
    let behind: &[&str] = match name {
        "opencl" => &["-Wl,--no-as-needed", "-l:libOpenCL.so.1", "-ldl"],
        _ => &["-ldl"],
    };
    let output = Command::new("cc")
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-fvisibility=hidden"])
        .arg("-o")
        .arg(&library)
        .arg(source)
        .args(behind)
        .arg("-lpthread")
        .output();
    match output {
        Ok(output) if output.status.success() => Some(library),
        Ok(output) => panic!("{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) if std::env::var_os("DIPTYCH_REQUIRE_DEVICES").is_some() => panic!("cc: {error}"),
        Err(error) => {
            println!("skipped, without a C compiler: {error}");
            None
        }
    }
}

/// Writes what Vulkan's loader is to know of the layer, and gives the folder.
pub(crate) fn described(library: &Path) -> PathBuf {
    let folder = library.with_extension("d");
    std::fs::create_dir_all(&folder).expect("a folder");
    let layer = serde_json::json!({
        "file_format_version": "1.1.2",
        "layer": {
            "name": LAYER,
            "type": "GLOBAL",
            "library_path": library,
            "api_version": "1.3.0",
            "implementation_version": "1",
            "description": "calls that fail",
        }
    });
    std::fs::write(folder.join("faults.json"), layer.to_string()).expect("written");
    folder
}

/// A stand-in that is loaded.
pub(crate) struct Driver {
    begin: unsafe extern "C" fn(),
    arm: unsafe extern "C" fn(c_int, c_long, c_int, c_int),
    fired: unsafe extern "C" fn() -> c_int,
    calls: unsafe extern "C" fn(c_int) -> c_long,
    made: unsafe extern "C" fn(c_int) -> c_long,
    /// Its functions.
    pub(crate) names: Vec<String>,
    _library: Library,
}

/// A call that is to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The function's place in [`Driver::names`].
    pub(crate) function: usize,
    /// Which call of it, from 1 on.
    pub(crate) call: u64,
    pub(crate) code: i32,
    /// Whether all calls fail from there on.
    pub(crate) for_good: bool,
}

impl Driver {
    /// The stand-in in this file.
    pub(crate) fn load(path: &Path) -> Self {
        // SAFETY: the library is one of the two beside this file, whose functions are declared as below; it has nothing
        // that runs when it is loaded.
        unsafe {
            let library = Library::new(path).expect("the stand-in");
            let count =
                *library.get::<unsafe extern "C" fn() -> c_int>(b"faults_functions").expect("a count");
            let name =
                *library.get::<unsafe extern "C" fn(c_int) -> *const c_char>(b"faults_name").expect("names");
            let names = (0..count()).map(|at| CStr::from_ptr(name(at)).to_string_lossy().into_owned());
            Driver {
                begin: *library.get(b"faults_begin").expect("faults_begin"),
                arm: *library.get(b"faults_arm").expect("faults_arm"),
                fired: *library.get(b"faults_fired").expect("faults_fired"),
                calls: *library.get(b"faults_calls").expect("faults_calls"),
                made: *library.get(b"faults_made").expect("faults_made"),
                names: names.collect(),
                _library: library,
            }
        }
    }

    /// Counts calls from now on; none is to fail.
    pub(crate) fn begin(&self) {
        self.disarm();
        // SAFETY: it has no arguments.
        unsafe { (self.begin)() }
    }

    /// Makes a call fail.
    pub(crate) fn arm(&self, fault: Fault) {
        // SAFETY: it takes any numbers, and compares the function with its own.
        unsafe {
            (self.arm)(fault.function as c_int, fault.call as c_long, fault.code, fault.for_good.into())
        }
    }

    /// No call is to fail.
    pub(crate) fn disarm(&self) {
        // SAFETY: as above.
        unsafe { (self.arm)(-1, 0, 0, 0) }
    }

    /// Whether the call has failed.
    pub(crate) fn fired(&self) -> bool {
        // SAFETY: it has no arguments.
        unsafe { (self.fired)() != 0 }
    }

    /// The place of a function.
    pub(crate) fn place(&self, name: &str) -> usize {
        self.names.iter().position(|own| own == name).expect("a function")
    }

    /// How often a function was called with success.
    pub(crate) fn made(&self, function: usize) -> u64 {
        assert!(function < self.names.len(), "a function's place");
        // SAFETY: the place is that of a function.
        unsafe { (self.made)(function as c_int) as u64 }
    }

    /// How often a function was called.
    pub(crate) fn calls(&self, function: usize) -> u64 {
        assert!(function < self.names.len(), "a function's place");
        // SAFETY: the place is that of a function.
        unsafe { (self.calls)(function as c_int) as u64 }
    }
}
