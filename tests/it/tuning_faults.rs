//! The tuner against candidates that take the process with them, hang, or are wrong but fast, and
//! against Ctrl-C: on the devices of this machine, from end to end.
//!
//! A device that stands before the real one changes what becomes of one kernel. The children are
//! this test's own program, started again with `DIPTYCH_FAULT_CHILD` set, and `diptych tune`.

use diptych::internals::tune::db::{Database, Row, Verdict};
use diptych::internals::tune::journal::Journal;
use diptych::internals::tune::{Bench, OpBench, Outcome, Search, work_group};
use diptych::{Backend, Choice, Context, DType, Depthwise, Memory, Precision, Result, Shape, Tuner};
use diptych_device::device::{
    Buffer, Device, DeviceInfo, Dispatch, Image, Pending, Pipeline, Recording, Slice,
};
use diptych_emit::emit::KernelSource;
use diptych_kernels::ops::Op;
use diptych_kernels::ops::depthwise::DepthwiseOp;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const CHILD: &str = "DIPTYCH_FAULT_CHILD";

/// What becomes of the planted kernel.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    /// Its compiler takes the process with it.
    AbortsInCompiler,
    /// It takes the process with it as it first runs.
    AbortsRunning,
    /// It never comes back.
    Hangs,
    /// It leaves out most of the sum.
    WrongButFast,
    /// It and all others are compiled once [`GATE`] is free.
    Waits,
}

/// Held while nothing is to be compiled.
static GATE: Mutex<()> = Mutex::new(());

/// A device with one bad kernel, known by its label.
#[derive(Debug)]
struct Planted {
    device: Arc<dyn Device>,
    fault: Fault,
    label: String,
}

impl Planted {
    /// Before `recording` runs, which may have the bad kernel in it.
    fn strike(&self, recording: &Recording) {
        if !recording.labels().contains(&self.label) {
            return;
        }
        match self.fault {
            Fault::AbortsRunning => std::process::abort(),
            Fault::Hangs => {
                say("hangs");
                loop {
                    std::thread::sleep(Duration::from_secs(1));
                }
            }
            Fault::AbortsInCompiler | Fault::WrongButFast | Fault::Waits => {}
        }
    }
}

impl Device for Planted {
    fn info(&self) -> &DeviceInfo {
        self.device.info()
    }

    fn alloc(&self, bytes: u64, memory: Memory) -> Result<Buffer> {
        self.device.alloc(bytes, memory)
    }

    fn alloc_image(&self, width: usize, height: usize, dtype: DType) -> Result<Image> {
        self.device.alloc_image(width, height, dtype)
    }

    fn write(&self, slice: &Slice, bytes: &[u8]) -> Result<()> {
        self.device.write(slice, bytes)
    }

    fn read(&self, slice: &Slice) -> Result<Vec<u8>> {
        self.device.read(slice)
    }

    fn map(&self, buffer: &Buffer, access: &mut dyn FnMut(&mut [u8])) -> Result<()> {
        self.device.map(buffer, access)
    }

    fn compile(&self, source: &KernelSource) -> Result<Pipeline> {
        self.device.compile(source)
    }

    unsafe fn compile_unchecked(&self, source: &KernelSource) -> Result<Pipeline> {
        if self.fault == Fault::Waits {
            drop(GATE.lock());
        }
        let bad = source.label == self.label;
        if bad && self.fault == Fault::AbortsInCompiler {
            std::process::abort();
        }
        if bad && self.fault == Fault::WrongButFast {
            let all = "ky < KERNEL_H";
            assert!(source.text.contains(all), "{}", source.text);
            let text = source.text.replace(all, "ky < 1u");
            // SAFETY: promised by the caller; fewer rows of the window are read.
            return unsafe { self.device.compile_unchecked(&KernelSource { text, ..source.clone() }) };
        }
        // SAFETY: promised by the caller.
        unsafe { self.device.compile_unchecked(source) }
    }

    fn record(&self, dispatches: &[Dispatch]) -> Result<Recording> {
        self.device.record(dispatches)
    }

    fn submit(&self, recording: &Recording) -> Result<()> {
        self.strike(recording);
        self.device.submit(recording)
    }

    fn wait(&self) -> Result<()> {
        self.device.wait()
    }

    fn run(
        &self,
        writes: &[(&Slice, &[u8])],
        recording: &Recording,
        reads: &[&Slice],
    ) -> Result<Vec<Vec<u8>>> {
        self.strike(recording);
        self.device.run(writes, recording, reads)
    }

    fn start(
        &self,
        writes: &[(&Slice, &[u8])],
        recording: &Recording,
        reads: &[&Slice],
    ) -> Result<Box<dyn Pending>> {
        self.strike(recording);
        self.device.start(writes, recording, reads)
    }

    fn time(&self, recording: &Recording) -> Result<Vec<Duration>> {
        self.strike(recording);
        self.device.time(recording)
    }
}

const APIS: [&str; 2] = ["wgpu", "opencl"];

fn open(api: &str) -> Option<Arc<dyn Device>> {
    let backend = if api == "wgpu" { Backend::Wgpu } else { Backend::OpenCl };
    match Context::builder().backend(backend).without_kernel_cache().open() {
        Ok(context) => context.shared_device(),
        Err(error) if std::env::var_os("DIPTYCH_REQUIRE_DEVICES").is_some() => {
            panic!("{api} is required: {error}")
        }
        Err(error) => {
            println!("skipping {api}: {error}");
            None
        }
    }
}

/// Few kernels, so that all are tried soon; most of the work is in the window, which a wrong kernel
/// can leave out.
fn problem() -> Arc<dyn Op> {
    let (input, weights) = (Shape::nhwc(1, 32, 32, 64), Shape::nhwc(1, 7, 7, 64));
    let op = DepthwiseOp::new(input, weights, &Depthwise::default(), true, false, Precision::F32);
    Arc::new(op.expect("a valid op"))
}

/// The candidate that is planted: not the default, and one that every search tries.
fn planted(device: &dyn Device) -> Choice {
    let (limits, problem) = (&device.info().limits, problem());
    let kernel = problem.kernel("direct").expect("a kernel");
    kernel.choice([1, 1, 1], work_group::table(&*kernel, [1, 1, 1], limits))
}

fn say(text: &str) {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "child: {text}").expect("a parent");
    stdout.flush().expect("a parent");
}

fn plant(device: Arc<dyn Device>, fault: Fault) -> Planted {
    let launch = problem().plan(&planted(&*device), &device.info().limits).expect("a kernel");
    Planted { device, fault, label: launch.spec.label() }
}

/// A tuner of the problem on a device with a bad kernel, with the record in `directory`.
fn tuner(device: Arc<dyn Device>, fault: Fault, directory: &Path) -> Tuner {
    let mut database = Database::open(directory).expect("opened");
    let journal = Journal::open(directory, &mut database).expect("a journal");
    let database = Arc::new(Mutex::new(database));
    let mut tuner = Tuner::on(Arc::new(plant(device, fault)));
    tuner = tuner.database(database).journal(journal).search(Search::Fast);
    tuner.begin_problem("planted", problem()).expect("lined up");
    tuner
}

/// What the children do; nothing when the tests run.
#[test]
#[ignore = "started by the other tests"]
fn child() {
    let Ok(role) = std::env::var(CHILD) else { return };
    let (api, fault) = role.split_once(' ').expect("an API and a fault");
    let fault = match fault {
        "compile" => Fault::AbortsInCompiler,
        "run" => Fault::AbortsRunning,
        _ => Fault::Hangs,
    };
    let directory = Database::default_dir().expect("the directory is set");
    let device = open(api).expect("the parent opened it too");
    tuner(device, fault, &directory).finish(|_| {}).expect("tuned");
    say("finished");
}

fn start(api: &str, fault: &str, directory: &Path) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "tuning_faults::child", "--nocapture", "--include-ignored"])
        .env(CHILD, format!("{api} {fault}"))
        .env("DIPTYCH_CACHE_DIR", directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a child")
}

fn crashed(directory: &Path) -> Vec<Row> {
    let database = Database::open(directory).expect("opened");
    database.rows().filter(|row| row.verdict == Verdict::Crashed).cloned().collect()
}

/// Starts a child that the planted kernel kills, then one that must survive. Where kernels are
/// compiled ahead, the first death leaves several suspects, and a second child dies of the one.
fn survive(api: &str, fault: &str, directory: &Path) {
    for start_number in 1.. {
        assert!(start_number <= 3, "{api} {fault}: it dies again and again");
        let known = !crashed(directory).is_empty();
        let wanted = known.then_some("finished");
        let mut child = start(api, fault, directory);
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let said = lines.find_map(|line| Some(line.ok()?.split_once("child: ")?.1.to_owned()));
        if said.as_deref() == Some("hangs") {
            child.kill().expect("killed");
        }
        let status = child.wait().expect("gone");
        assert_eq!(said.as_deref().filter(|said| *said != "hangs"), wanted, "{api} {fault}");
        assert_eq!(status.success(), wanted.is_some(), "{api} {fault}");
        if known {
            return;
        }
        // What the process did not survive becomes rows when the journal is next opened.
        let mut database = Database::open(directory).expect("opened");
        Journal::open(directory, &mut database).expect("a journal");
    }
}

#[test]
fn what_kills_the_process_is_skipped_and_never_chosen() {
    // What the tuner does about a fault does not depend on the API.
    for (api, faults) in [("wgpu", &["compile"][..]), ("opencl", &["run", "hang"])] {
        let Some(device) = open(api) else { continue };
        for &fault in faults {
            let directory = tempfile::tempdir().expect("a directory");
            survive(api, fault, directory.path());
            let rows = crashed(directory.path());
            assert_eq!(rows.len(), 1, "{api} {fault}");
            assert_eq!(rows[0].key.choice, planted(&*device).into(), "{api} {fault}");
            let wanted = if fault == "compile" { "compiling" } else { "running" };
            assert_eq!(rows[0].from.note, format!("the process ended while {wanted} it"), "{api} {fault}");
            let database = Database::open(directory.path()).expect("opened");
            let winners: Vec<&Row> = database.rows().filter(|row| row.verdict == Verdict::Winner).collect();
            assert_eq!(winners.len(), 1, "{api} {fault}");
            assert_ne!(winners[0].key.choice, rows[0].key.choice, "{api} {fault}");
            if fault != "run" {
                continue;
            }
            // The same kernel would now take this process with it: it is reported, and not tried.
            let mut tuner = tuner(Arc::clone(&device), Fault::AbortsRunning, directory.path()).retune(true);
            tuner.begin_problem("again", problem()).expect("lined up");
            let report = tuner.finish(|_| {}).expect("tuned");
            let trials = &report.problems[0].trials;
            let trial = trials.iter().find(|trial| trial.choice == planted(&*device)).expect("on record");
            let verdict = "crashed: the process ended while running it".to_owned();
            assert_eq!(trial.outcome, Outcome::Barred { verdict }, "{api}");
            assert!(report.to_string().contains("on record as crashed"), "{api}: {report}");
            assert_eq!(crashed(directory.path()).len(), 1, "{api}: reported once");
        }
    }
}

#[test]
fn a_step_returns_while_a_kernel_is_compiled() {
    for api in APIS {
        let Some(device) = open(api) else { continue };
        let directory = tempfile::tempdir().expect("a directory");
        let mut tuner = tuner(device, Fault::Waits, directory.path()).search(Search::Table);
        let closed = GATE.lock().expect("no panic");
        // Otherwise these would never return.
        for _ in 0..3 {
            let progress = tuner.step(Duration::from_millis(1)).expect("a step");
            assert_eq!((progress.done, progress.visited, progress.problems), (0, 0, 1), "{api}");
        }
        assert!(tuner.report().problems.is_empty(), "{api}");
        drop(closed);
        let report = tuner.finish(|_| {}).expect("tuned");
        assert_eq!(report.problems[0].choice, Some(report.problems[0].default), "{api}");
        assert_eq!(tuner.report(), &report, "{api}");
        // A tuner that is dropped at work waits for what it has begun.
        tuner.begin_problem("again", problem()).expect("lined up");
        tuner.step(Duration::ZERO).expect("a step");
    }
}

#[test]
fn a_wrong_kernel_is_never_chosen_however_fast() {
    // The check does not depend on the API, and PoCL compiles faster than lavapipe.
    let mut open = APIS.into_iter().rev().filter_map(|api| Some((api, open(api)?)));
    if let Some((api, device)) = open.next() {
        let bad = planted(&*device);
        let directory = tempfile::tempdir().expect("a directory");
        let mut tuner = tuner(Arc::clone(&device), Fault::WrongButFast, directory.path());
        let report = tuner.finish(|_| {}).expect("tuned");
        let found = &report.problems[0];
        assert_ne!(found.choice.expect("a choice"), bad, "{api}");
        let trial = found.trials.iter().find(|trial| trial.choice == bad).expect("tried");
        assert!(matches!(trial.outcome, Outcome::Wrong { .. }), "{api}: {}", trial.outcome);
        assert_eq!(trial.samples, 0, "{api}: it is not even timed");
        // It is fast: timed without a check, it leaves what it should be behind.
        let fastest = |device: Arc<dyn Device>| {
            let mut bench = OpBench::new(device, problem()).expect("a bench");
            bench.prepare(&bad).expect("compiled");
            (0..10).map(|_| bench.sample(&bad, 1).expect("timed")).min().expect("ten times")
        };
        let wrong = fastest(Arc::new(plant(Arc::clone(&device), Fault::WrongButFast)));
        let right = fastest(device);
        println!("{api}: {wrong:.1?} wrong, {right:.1?} right");
        assert!(wrong < right, "{api}: the planted kernel is not fast: {wrong:?}, {right:?}");
    }
}
