//! One life of an application for each fault, and a table of what came of them.

use crate::driver::{Driver, Fault, LIBRARY};
use crate::life::{self, Life, Open, Results};
use diptych::{Backend, Context, Error};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// What a driver answers, and how it is to be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// No memory.
    Memory,
    /// What it says of a text that it does not take.
    Compile,
    /// The device is gone, with this call and all behind it.
    Lost,
}

/// What came of the faults of one function.
#[derive(Debug, Default)]
struct Row {
    calls: u64,
    tried: u64,
    /// Nobody noticed: there was another way to the same results.
    survived: u64,
    /// The call was not reached.
    missed: u64,
    errors: BTreeMap<String, u64>,
}

/// The variant of an error, and the call that it names.
fn path(error: &Error) -> String {
    match cause(error) {
        Error::Driver { call, .. } => format!("Driver({call})"),
        Error::OutOfMemory { call, .. } => format!("OutOfMemory({call})"),
        Error::DeviceLost { .. } => "DeviceLost".to_owned(),
        Error::Compile { .. } => "Compile".to_owned(),
        Error::NoDevice { .. } => "NoDevice".to_owned(),
        Error::Unsupported { what, .. } => format!("Unsupported({what})"),
        Error::Reject { .. } => "Reject".to_owned(),
        Error::Internal(text) => panic!("an internal error: {text}"),
        other => format!("{other}"),
    }
}

/// Which of `count` calls of a function are to fail.
fn chosen(name: &str, kind: Kind, count: u64, brief: bool) -> Vec<u64> {
    let mut chosen = match kind {
        _ if std::env::var("DIPTYCH_FAULTS").is_ok_and(|value| value == "full") => (1..=count).collect(),
        // What only asks or gives back is alike.
        Kind::Memory if !brief && !name.starts_with("clRelease") && !name.starts_with("clGet") => {
            vec![count / 2 + 1, count]
        }
        _ => vec![count / 2 + 1],
    };
    chosen.retain(|call| (1..=count).contains(call));
    chosen.dedup();
    chosen
}

/// Faults that end the process, from which call on, and whose they are.
const FATAL: &[(&str, u64, &str)] = &[(
    "vkCreateSemaphore",
    3,
    "wgpu-hal 30.0.1 destroys the other semaphore twice if it gets none for a queue's second submission \
     (`RelaySemaphores::advance`)",
)];

/// Errors that are met at least: of an API, some twenty functions are without which nothing runs.
const LEAST: u64 = 15;

struct Sweep<'a> {
    driver: &'a Driver,
    open: &'a Open<'a>,
    life: fn(&'a Driver, &'a Open<'a>) -> Life<'a>,
    /// Whether an error says what was wrong with a function.
    says: fn(&str, Kind, &Error) -> bool,
    /// What was made since calls are counted, and is not released.
    kept: fn(&Driver) -> Vec<(String, i64)>,
    wanted: Results,
    rows: BTreeMap<(String, Kind), Row>,
    /// Faults after which something was wrong.
    failures: Vec<String>,
}

impl<'a> Sweep<'a> {
    fn new(
        driver: &'a Driver,
        open: &'a Open<'a>,
        life: fn(&'a Driver, &'a Open<'a>) -> Life<'a>,
        says: fn(&str, Kind, &Error) -> bool,
        kept: fn(&Driver) -> Vec<(String, i64)>,
    ) -> Self {
        // Once for what is kept from one life to the next, and once to be counted.
        driver.begin();
        life(driver, open);
        driver.begin();
        let first = life(driver, open);
        assert!(first.met.is_empty(), "{:?}", first.met);
        Sweep {
            driver,
            open,
            life,
            says,
            kept,
            wanted: first.results,
            rows: BTreeMap::new(),
            failures: Vec::new(),
        }
    }

    /// Tries the faults that `codes` has for a function's name, one call of each if it is to be `brief`.
    fn all(&mut self, brief: bool, codes: &dyn Fn(&str) -> Vec<(Kind, i32)>) {
        let counts: Vec<u64> = (0..self.driver.names.len()).map(|at| self.driver.calls(at)).collect();
        for (function, calls) in counts.into_iter().enumerate() {
            let name = self.driver.names[function].clone();
            for (kind, code) in codes(&name) {
                for call in chosen(&name, kind, calls, brief) {
                    if let Some((.., why)) =
                        FATAL.iter().find(|(fatal, from, _)| *fatal == name && call >= *from)
                    {
                        println!("{name}, call {call} of {calls}: not tried: {why}");
                        continue;
                    }
                    let fault = Fault { function, call, code, for_good: kind == Kind::Lost };
                    self.one(&name, kind, calls, fault);
                }
            }
        }
        self.print();
        assert!(self.failures.is_empty(), "{:#?}", self.failures);
        // If the stand-in is not before the driver, nothing fails.
        let met: u64 = self.rows.values().flat_map(|row| row.errors.values()).sum();
        assert!(met >= LEAST, "{met} errors, wanted at least {LEAST}");
    }

    fn one(&mut self, name: &str, kind: Kind, calls: u64, fault: Fault) {
        let what = format!("{name}, call {} of {calls}, {kind:?}", fault.call);
        // For whoever reads what a process that ended left.
        eprintln!("{what}");
        self.driver.begin();
        self.driver.arm(fault);
        let life = match catch_unwind(AssertUnwindSafe(|| (self.life)(self.driver, self.open))) {
            Ok(life) => life,
            Err(_) => {
                self.driver.disarm();
                self.failures.push(what);
                return;
            }
        };
        let fired = self.driver.fired() || !life.met.is_empty();
        if life.results != self.wanted {
            eprintln!("other results, after {:?}", life.met);
            self.failures.push(what.clone());
        }
        let kept = (self.kept)(self.driver);
        if !kept.is_empty() {
            self.failures.push(format!("{what}: left behind: {kept:?}"));
        }
        let row = self.rows.entry((name.to_owned(), kind)).or_default();
        row.calls = calls;
        row.tried += 1;
        row.missed += u64::from(!fired);
        row.survived += u64::from(fired && life.met.is_empty());
        for met in &life.met {
            eprintln!("    {}: {}", met.stage, met.error);
            if !(self.says)(name, kind, &met.error) {
                self.failures.push(format!("{what}: another error: {}", met.error));
            }
            *row.errors.entry(path(&met.error)).or_default() += 1;
        }
    }

    fn print(&self) {
        println!(
            "{:<32} {:<8} {:>6} {:>6} {:>9} {:>7}  errors",
            "function", "fault", "calls", "tried", "no error", "missed"
        );
        for ((name, kind), row) in &self.rows {
            let errors: Vec<String> =
                row.errors.iter().map(|(path, count)| format!("{count} x {path}")).collect();
            let kind = format!("{kind:?}");
            println!(
                "{name:<32} {kind:<8} {:>6} {:>6} {:>9} {:>7}  {}",
                row.calls,
                row.tried,
                row.survived,
                row.missed,
                errors.join(", ")
            );
        }
        let mut paths: BTreeMap<&str, u64> = BTreeMap::new();
        for (path, count) in self.rows.values().flat_map(|row| &row.errors) {
            *paths.entry(path).or_default() += count;
        }
        println!("each error, and how often it was met:");
        for (path, count) in paths {
            println!("{count:>6} {path}");
        }
    }
}

type Lived = for<'a> fn(&'a Driver, &'a Open<'a>) -> Life<'a>;

/// What is done with a device, and whether one call of each function has to do.
const LIVES: [(Lived, bool); 2] = [(life::of_runs, false), (life::of_sessions, true)];

/// A device of `backend`, its kernels kept in a folder if one is given.
fn opened(backend: Backend, kept: Option<&Path>) -> diptych::Result<Context> {
    let builder = Context::builder().backend(backend);
    match kept {
        Some(folder) => builder.kernel_cache(folder).open(),
        None => builder.without_kernel_cache().open(),
    }
}

/// What went wrong, wherever that was.
fn cause(error: &Error) -> &Error {
    match error.without_node() {
        Error::Shared { source, .. } => cause(source),
        error => error,
    }
}

/// OpenCL's objects, by the functions that make, keep and release them.
fn objects(driver: &Driver) -> Vec<(String, i64)> {
    let kinds: [(&str, &[&str]); 6] = [
        ("Context", &["clCreateContext", "clRetainContext"]),
        ("CommandQueue", &["clCreateCommandQueue", "clRetainCommandQueue"]),
        ("MemObject", &["clCreateBuffer", "clCreateSubBuffer", "clCreateImage", "clRetainMemObject"]),
        ("Program", &["clCreateProgramWithSource", "clCreateProgramWithBinary"]),
        ("Kernel", &["clCreateKernel"]),
        ("CommandBufferKHR", &["clCreateCommandBufferKHR"]),
    ];
    let made = |name: &str| driver.made(driver.place(name)) as i64;
    let left = kinds.map(|(kind, creating)| {
        let created: i64 = creating.iter().map(|name| made(name)).sum();
        let release = driver.place(&format!("clRelease{kind}"));
        (kind.to_owned(), created - driver.calls(release) as i64)
    });
    left.into_iter().filter(|(_, left)| *left != 0).collect()
}

pub(crate) fn opencl() {
    let library = std::env::var("DIPTYCH_OPENCL_LIBRARY").expect("the stand-in");
    let driver = Driver::load(Path::new(&library));
    let open = |kept: Option<&Path>| opened(Backend::OpenCl, kept);
    let says = |name: &str, kind, error: &Error| match (kind, cause(error)) {
        (Kind::Lost, error) => error.is_device_lost(),
        (Kind::Compile, Error::Compile { .. }) => true,
        (Kind::Memory, Error::OutOfMemory { call, .. }) => *call == name,
        // What was tried, and what came of it.
        (Kind::Memory, Error::NoDevice { tried, .. }) => tried.iter().any(|tried| tried.contains(name)),
        _ => false,
    };
    let codes = |name: &str| {
        let object = name.starts_with("clCreate") && !name.contains("Context");
        let mut codes = vec![(Kind::Memory, if object { -4 } else { -6 })];
        if name == "clBuildProgram" {
            codes.push((Kind::Compile, -11));
        }
        if name.starts_with("clEnqueue") || ["clFlush", "clFinish", "clWaitForEvents"].contains(&name) {
            codes.push((Kind::Lost, -36));
        }
        codes
    };
    for (life, brief) in LIVES {
        Sweep::new(&driver, &open, life, says, objects).all(brief, &codes);
    }
}

pub(crate) fn vulkan() {
    let library = std::env::var(LIBRARY).expect("the layer");
    let driver = Driver::load(Path::new(&library));
    let open = |kept: Option<&Path>| opened(Backend::Wgpu, kept);
    let says = |name: &str, kind, error: &Error| match (kind, cause(error)) {
        (Kind::Lost, error) => error.is_device_lost(),
        (Kind::Memory, Error::OutOfMemory { .. }) => true,
        // wgpu takes memory that cannot be mapped for the end of its device.
        (Kind::Memory, Error::DeviceLost { reason, .. }) => reason.contains("emory") || name == "vkMapMemory",
        (Kind::Memory, Error::NoDevice { tried, .. }) => !tried.is_empty(),
        _ => false,
    };
    let codes = |name: &str| {
        // VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_DEVICE_LOST
        let mut codes = vec![(Kind::Memory, if name == "vkAllocateMemory" { -2 } else { -1 })];
        if name.starts_with("vkQueue") || name.starts_with("vkWait") {
            codes.push((Kind::Lost, -4));
        }
        codes
    };
    for (life, brief) in LIVES {
        Sweep::new(&driver, &open, life, says, |_| Vec::new()).all(brief, &codes);
    }
}
