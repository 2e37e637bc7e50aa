//! Disks that are full or fail, folders that cannot be written, clocks that jump, processes that are killed or stopped.

use crate::driver::{self, Driver, Fault};
use crate::life;
use diptych::internals::tune::db::{Database, Row, Verdict};
use diptych::internals::tune::journal::{Journal, Phase};
use diptych::internals::tune::key::{DeviceKey, Key, ProblemKey, SourceHash};
use diptych::{Backend, Choice, Context, Error};
use diptych_device::device::cache::{CacheKey, KernelCache};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Tells a child the folder below which files fail.
const FOLDER: &str = "FAULTS_FOLDER";

/// No space on the device, an error of input or output, a file system that is read only, too many open files.
const CODES: [(&str, i32); 4] = [("ENOSPC", 28), ("EIO", 5), ("EROFS", 30), ("EMFILE", 24)];

fn key(number: u32) -> Key {
    let device = DeviceKey {
        gpu: "Some GPU".to_owned(),
        family: "unknown".to_owned(),
        driver: "1.2".to_owned(),
        api: "Vulkan".to_owned(),
    };
    let problem = ProblemKey {
        op: "pointwise".to_owned(),
        shape: format!("n1 h1 w{number} c4 o4"),
        precision: "f32".to_owned(),
        layout: "c4".to_owned(),
    };
    let choice = Choice::new("direct", [1, 1, 1], [8, 8, 1]);
    Key::new(&device, &problem, choice, Some(SourceHash::of("text")))
}

fn row(number: u32) -> Row {
    Row::measured(key(number), Verdict::Loser, None)
}

/// What is done with files once: rows of a record, a journal, a kernel that is kept. A fault is over when it was met,
/// and what failed is done again.
struct Files<'a> {
    folder: &'a Path,
    driver: Option<&'a Driver>,
    met: Vec<(&'static str, Error)>,
}

impl Files<'_> {
    fn stage<T>(&mut self, stage: &'static str, mut work: impl FnMut() -> diptych::Result<T>) -> T {
        let error = match work() {
            Ok(done) => return done,
            Err(error) => error,
        };
        let driver = self.driver.unwrap_or_else(|| panic!("{stage} failed without a fault: {error}"));
        assert!(driver.fired(), "{stage} failed without a fault: {error}");
        assert!(matches!(error, Error::Io { .. }), "{stage}: {error:?}");
        driver.disarm();
        self.met.push((stage, error));
        work().unwrap_or_else(|error| panic!("{stage} fails again after {:?}: {error}", self.met))
    }

    /// Gives whether the fault was met where nobody said so.
    fn all(&mut self) -> bool {
        let folder = self.folder;
        let mut record = self.stage("open a record", || Database::open(folder));
        for number in 0..3 {
            self.stage("append a row", || record.append(row(number)));
        }
        self.stage("compact a record", || record.compact());
        let journal = self.stage("open a journal", || Journal::open(folder, &mut record));
        let trial = self.stage("begin a trial", || journal.begin(Phase::Run, &key(9)));
        if let Err(error) = trial.finish() {
            let driver = self.driver.expect("a fault");
            assert!(driver.fired(), "{error}");
            driver.disarm();
            self.met.push(("end a trial", error));
        }
        drop(journal);
        self.stage("append a row", || record.append(row(3)));
        let text = self.stage("open a record", || Database::open(folder));
        let cache = KernelCache::within(folder);
        let kept = CacheKey::of(&["a kernel"]);
        // What cannot be kept is no error: it is compiled again.
        cache.put(kept, b"compiled");
        let before = cache.get(kept);
        assert!(before.as_deref().is_none_or(|bytes| bytes == b"compiled"), "{before:?}");
        let fired = self.driver.is_some_and(|driver| {
            let fired = driver.fired();
            driver.disarm();
            fired
        });
        cache.put(kept, b"compiled");
        assert_eq!(cache.get(kept).as_deref(), Some(&b"compiled"[..]), "after {:?}", self.met);
        drop((record, text));
        // Each row that was reported as written is there; of one that was not, at most its beginning was.
        let record = Database::open(folder).expect("a record");
        let found = (0..4).filter(|number| record.get(&key(*number)).is_some()).count();
        assert_eq!(found, 4, "after {:?}: {}", self.met, record.load_report());
        let failed = self.met.iter().filter(|(stage, _)| *stage == "append a row").count();
        assert!(record.load_report().damaged <= failed, "after {:?}: {}", self.met, record.load_report());
        fired
    }
}

/// Every call of the file system fails once.
pub(crate) fn disk() {
    let library = std::env::var("LD_PRELOAD").expect("the stand-in");
    let driver = Driver::load(Path::new(&library));
    let all = std::env::var(FOLDER).expect("a folder");
    let mut number = 0;
    let mut life = |fault: Option<Fault>| {
        number += 1;
        let folder = Path::new(&all).join(number.to_string());
        std::fs::create_dir(&folder).expect("a folder");
        driver.begin();
        if let Some(fault) = fault {
            driver.arm(fault);
        }
        let mut files = Files { folder: &folder, driver: Some(&driver), met: Vec::new() };
        let fired = files.all();
        (files.met, fired)
    };
    // Counted as they are until the calls that are made once more.
    life(None);
    let mut rows: BTreeMap<(String, &str), (u64, u64, Vec<String>)> = BTreeMap::new();
    for function in 0..driver.names.len() {
        let name = driver.names[function].clone();
        for (word, code) in CODES {
            // Until one is not reached any more.
            for call in 1.. {
                eprintln!("{name}, call {call}, {word}");
                let (met, fired) = life(Some(Fault { function, call, code, for_good: name == "write" }));
                let (tried, errors, stages) = rows.entry((name.clone(), word)).or_default();
                let reached = fired || !met.is_empty();
                if !reached || call > 60 {
                    break;
                }
                *tried += 1;
                *errors += u64::from(!met.is_empty());
                stages.extend(met.into_iter().map(|(stage, _)| stage.to_owned()));
                stages.sort();
                stages.dedup();
            }
        }
    }
    println!("{:<10} {:<8} {:>6} {:>7}  where", "function", "fault", "tried", "errors");
    for ((name, word), (tried, errors, stages)) in &rows {
        println!("{name:<10} {word:<8} {tried:>6} {errors:>7}  {}", stages.join(", "));
    }
    let tried: u64 = rows.values().map(|(tried, ..)| tried).sum();
    assert!(tried > 100, "{tried} faults");
}

/// Files, and a life on each API, with a clock that is wrong.
pub(crate) fn clock() {
    let folder = tempfile::tempdir().expect("a folder");
    Files { folder: folder.path(), driver: None, met: Vec::new() }.all();
    for backend in [Backend::Cpu, Backend::OpenCl, Backend::Wgpu] {
        let context =
            Context::builder().backend(backend).kernel_cache(folder.path()).open().expect("a device");
        assert!(!life::runs(&context).is_empty());
    }
}

/// A user who cannot write anywhere.
pub(crate) fn home() {
    for backend in [Backend::Cpu, Backend::OpenCl, Backend::Wgpu] {
        let context = Context::new(backend).expect("a device");
        assert!(!life::runs(&context).is_empty());
    }
    let error = Database::default_dir().and_then(Database::open).and_then(|mut record| record.append(row(1)));
    assert!(matches!(error, Err(Error::Io { .. })), "{error:?}");
}

fn contents(number: u64) -> Vec<u8> {
    (0..20_000 + number % 7).map(|at| (at * number % 251) as u8).collect()
}

/// Keeps kernels in a folder that others use, for ever.
pub(crate) fn keeper() {
    let cache = KernelCache::within(Path::new(&std::env::var(FOLDER).expect("a folder")));
    for turn in 0u64.. {
        let number = turn % 5;
        cache.put(CacheKey::of(&[&number.to_string()]), &contents(number));
        if turn == 2 {
            say("under way");
        }
    }
}

/// Runs for a while.
pub(crate) fn runner() {
    let context = Context::builder().backend(Backend::Wgpu).without_kernel_cache().open().expect("a device");
    let other = Context::builder().backend(Backend::OpenCl).without_kernel_cache().open().expect("a device");
    let wanted = [life::runs(&context), life::runs(&other)];
    say("under way");
    for _ in 0..12 {
        assert_eq!([life::runs(&context), life::runs(&other)], wanted);
    }
}

fn say(text: &str) {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "child: {text}").expect("a parent");
    stdout.flush().expect("a parent");
}

/// A child, once it is under way.
fn under_way(role: &str, folder: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "child", "--nocapture", "--include-ignored"])
        .env(crate::CHILD, role)
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let begun = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains("child: under way")));
    assert!(begun.is_some(), "{role} has begun");
    // Its output is read on, or it would wait.
    std::thread::spawn(move || lines.for_each(drop));
    child
}

#[test]
fn every_call_of_the_file_system_may_fail() {
    let Some(library) = driver::built("disk") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let [library, folder] = [&library, folder.path()].map(|path| path.to_str().expect("a path"));
    crate::tried("disk", &[("LD_PRELOAD", library), (FOLDER, folder)]);
}

#[test]
fn the_time_of_day_may_jump() {
    let Some(library) = driver::built("disk") else { return };
    for how in ["past", "future", "jumps"] {
        crate::tried("clock", &[("LD_PRELOAD", library.to_str().expect("a path")), ("FAULTS_CLOCK", how)]);
    }
}

#[test]
fn nothing_need_be_written_to_run() {
    // No folder can be made there, by whomever. PoCL has no devices without one.
    let folder = tempfile::tempdir().expect("a folder");
    let [own, nowhere] = [folder.path().to_str().expect("a path"), "/proc/1/nowhere"];
    crate::tried("home", &[("HOME", nowhere), ("XDG_CACHE_HOME", nowhere), ("POCL_CACHE_DIR", own)]);
}

#[test]
fn kernels_that_a_killed_process_kept_are_whole_or_not_there() {
    let folder = tempfile::tempdir().expect("a folder");
    for turn in 1..=10 {
        let mut both = [under_way("keeper", folder.path()), under_way("keeper", folder.path())];
        std::thread::sleep(Duration::from_micros(700 * turn));
        both[0].kill().expect("killed");
        both[0].wait().expect("gone");
        let cache = KernelCache::within(folder.path());
        for number in 0..5u64 {
            let found = cache.get(CacheKey::of(&[&number.to_string()]));
            assert!(found.is_none_or(|found| found == contents(number)), "kernel {number}");
        }
        assert!(both[1].try_wait().expect("a child").is_none(), "the other one goes on");
        both[1].kill().expect("killed");
        both[1].wait().expect("gone");
    }
}

#[test]
fn a_process_that_was_stopped_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut child = under_way("runner", folder.path());
    for _ in 0..3 {
        for signal in ["-STOP", "-CONT"] {
            let sent = Command::new("kill").args([signal, &child.id().to_string()]).status();
            // It may be over by then.
            assert!(sent.is_ok(), "{sent:?}");
            std::thread::sleep(Duration::from_millis(150));
        }
    }
    assert!(child.wait().expect("its end").success());
}
