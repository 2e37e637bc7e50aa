//! The tuner's record against processes that are killed.
//!
//! The children are this test's own program, started again with `DIPTYCH_RECORD_CHILD` set.

use diptych::Choice;
use diptych::internals::tune::db::{Database, Row, Verdict};
use diptych::internals::tune::journal::{Journal, Phase};
use diptych::internals::tune::key::{DeviceKey, Key, ProblemKey, SourceHash};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const CHILD: &str = "DIPTYCH_RECORD_CHILD";

fn key(writer: u32, number: u32) -> Key {
    let device = DeviceKey {
        gpu: "Some GPU".to_owned(),
        family: "unknown".to_owned(),
        driver: "1.2".to_owned(),
        api: "Vulkan".to_owned(),
    };
    let problem = ProblemKey {
        op: "pointwise".to_owned(),
        shape: format!("n1 h{writer} w{number} c4 o4"),
        precision: "f32".to_owned(),
        layout: "c4".to_owned(),
    };
    let choice = Choice::new("direct", [1, 1, 1], [8, 8, 1]);
    Key::new(&device, &problem, choice, Some(SourceHash::of("text")))
}

/// Starts `role` on the record in `directory`.
fn start(role: &str, directory: &Path, writer: u32) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "tuning_record::child", "--nocapture", "--include-ignored"])
        .env(CHILD, format!("{role} {writer}"))
        .env("DIPTYCH_CACHE_DIR", directory)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child")
}

/// The next line that the child itself printed.
fn answer(lines: &mut impl Iterator<Item = std::io::Result<String>>) -> String {
    let mut own = lines.map(|line| line.expect("a line"));
    own.find_map(|line| line.split_once("child: ").map(|(_, text)| text.to_owned())).unwrap_or_default()
}

fn say(text: &str) {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "child: {text}").expect("a parent");
    stdout.flush().expect("a parent");
}

/// What the children do; nothing when the tests run.
#[test]
#[ignore = "started by the other tests"]
fn child() {
    let Ok(role) = std::env::var(CHILD) else { return };
    let (role, writer) = role.split_once(' ').expect("a role and a number");
    let writer: u32 = writer.parse().expect("a number");
    let directory = Database::default_dir().expect("the directory is set");
    let mut database = Database::open(&directory).expect("opened");
    match role {
        "append-forever" | "append" => {}
        _ => {
            let journal = Journal::open(&directory, &mut database).expect("a journal");
            let done = journal.begin(Phase::Compile, &key(writer, 1)).expect("begun");
            let hangs = journal.begin(Phase::Run, &key(writer, 2)).expect("begun");
            done.finish().expect("struck");
            say("under way");
            match role {
                "abort" => std::process::abort(),
                "several" => {
                    let _ahead = journal.begin(Phase::Compile, &key(writer, 3)).expect("begun");
                    std::process::abort()
                }
                "panic" => {
                    std::panic::set_hook(Box::new(|_| {}));
                    let panicked = std::thread::spawn(move || {
                        let _trial = hangs;
                        panic!("in the driver");
                    })
                    .join();
                    assert!(panicked.is_err());
                }
                _ => loop {
                    std::thread::sleep(Duration::from_secs(1));
                },
            }
            return;
        }
    }
    let last = if role == "append" { 60 } else { u32::MAX };
    for number in 1..=last {
        database.append(Row::measured(key(writer, number), Verdict::Loser, None)).expect("appended");
        say(&number.to_string());
        if role == "append" && number % 20 == 0 {
            database.compact().expect("compacted");
        }
    }
}

#[test]
fn a_kill_in_mid_write_loses_at_most_the_row_being_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut wanted = 0;
    for writer in 1..=12 {
        let mut child = start("append-forever", directory.path(), writer);
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let before = answer(&mut lines);
        assert_eq!(before, "1", "the child appends");
        std::thread::sleep(Duration::from_micros(500 * u64::from(writer)));
        child.kill().expect("killed");
        child.wait().expect("gone");
        let mut reported = 1;
        while let Ok(number) = answer(&mut lines).parse() {
            reported = number;
        }
        let database = Database::open(directory.path()).expect("opened");
        let found =
            database.rows().filter(|row| row.key.problem.shape.contains(&format!("h{writer} "))).count();
        // The child may have been killed between appending a row and telling so.
        assert!(found == reported || found == reported + 1, "reported {reported} rows, found {found}");
        assert_eq!(database.load_report().damaged, 0, "{}", database.load_report());
        wanted += found;
        assert_eq!(database.len(), wanted, "the rows of the children before are all there");
    }
}

#[test]
fn processes_that_write_at_once_lose_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let children: Vec<Child> = (1..=2).map(|writer| start("append", directory.path(), writer)).collect();
    for child in children {
        let output = child.wait_with_output().expect("its output");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    let database = Database::open(directory.path()).expect("opened");
    assert_eq!(database.len(), 120);
    assert_eq!(database.load_report().damaged, 0, "{}", database.load_report());
}

#[test]
fn what_a_process_did_not_survive_is_known_at_the_next_start() {
    for role in ["abort", "hang", "panic"] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut child = start(role, directory.path(), 7);
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        assert_eq!(answer(&mut lines), "under way", "{role}");
        let mut database = Database::open(directory.path()).expect("opened");
        if role == "hang" {
            let _journal = Journal::open(directory.path(), &mut database).expect("a journal");
            assert_eq!(database.len(), 0, "a live process has not crashed");
            child.kill().expect("killed");
        }
        child.wait().expect("gone");
        let journal = Journal::open(directory.path(), &mut database).expect("a journal");
        let rows: Vec<&Row> = database.rows().collect();
        assert_eq!(rows.len(), 1, "{role}");
        assert_eq!((&rows[0].key, &rows[0].verdict), (&key(7, 2), &Verdict::Crashed), "{role}");
        assert_eq!(rows[0].from.note, "the process ended while running it", "{role}");
        assert!(database.get(&key(7, 2)).is_some_and(|row| row.verdict.bars()));
        drop(journal);
        // Known for good, and reported once.
        let mut database = Database::open(directory.path()).expect("opened");
        assert_eq!(database.len(), 1, "{role}");
        Journal::open(directory.path(), &mut database).expect("a journal");
        let text = std::fs::read_to_string(directory.path().join("tuning.jsonl")).expect("the file");
        assert_eq!(text.lines().count(), 1, "{role}");
    }
}

#[test]
fn of_several_under_way_none_is_condemned() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut child = start("several", directory.path(), 7);
    child.wait().expect("gone");
    let mut database = Database::open(directory.path()).expect("opened");
    Journal::open(directory.path(), &mut database).expect("a journal");
    assert_eq!(database.len(), 2);
    for (number, phase) in [(2, "running"), (3, "compiling")] {
        let row = database.get(&key(7, number)).expect("a row");
        assert_eq!(row.verdict, Verdict::Suspect);
        assert!(!row.verdict.bars(), "it is tried again, alone");
        assert_eq!(row.from.note, format!("the process ended while {phase} it, with 1 more under way"));
    }
}

#[test]
fn a_clean_end_leaves_no_journal() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut database = Database::open(directory.path()).expect("opened");
    let journal = Journal::open(directory.path(), &mut database).expect("a journal");
    let second = Journal::open(directory.path(), &mut database).expect("another of this process");
    journal.begin(Phase::Compile, &key(1, 1)).expect("begun").finish().expect("struck");
    // An error on the way drops the trial, which strikes it.
    drop(second.begin(Phase::Run, &key(1, 2)).expect("begun"));
    drop((journal, second));
    let files: Vec<_> = std::fs::read_dir(directory.path().join("journal"))
        .expect("the folder")
        .map(|file| file.expect("a file").file_name())
        .collect();
    assert_eq!(files, ["lock"]);
    assert!(database.is_empty());
}

#[test]
fn a_record_kept_as_text_is_the_same_record() {
    let mut record = Database::in_memory();
    for number in 0..3 {
        record.append(Row::measured(key(1, number), Verdict::Winner, None)).expect("in memory");
    }
    let text = record.text().expect("text");
    assert_eq!(text.lines().count(), 3);
    let again = Database::from_text(&text);
    assert_eq!(again.rows().collect::<Vec<_>>(), record.rows().collect::<Vec<_>>());
    assert!(again.file().is_none());
    // A line cut off, one that is no JSON, and one of another version, which is kept.
    let damaged = format!("{}\nnot JSON\n{{\"key\":{{\"later\":1}}}}\n", &text[..text.len() - 10]);
    let read = Database::from_text(&damaged);
    assert_eq!(read.len(), 2);
    assert!(read.text().expect("text").contains("later"));
    assert!(Database::from_text("").is_empty());
}

#[test]
fn a_session_that_tunes_waits_for_a_lock_within_its_budget() {
    use diptych::{Backend, Context, Graph, HostTensor, Session, SessionOptions, Shape, Tuning};
    let Ok(context) = Context::builder().backend(Backend::OpenCl).without_kernel_cache().open() else {
        println!("skipping: no OpenCL device");
        return;
    };
    let mut graph = Graph::new();
    let x = graph.input("x", Shape::nhwc(1, 8, 8, 4)).expect("an input");
    let weights = HostTensor::new(Shape::nhwc(8, 1, 1, 4), vec![0.5; 32]).expect("weights");
    let y = graph.pointwise("only", x, weights, Default::default(), Default::default()).expect("a node");
    graph.output(y).expect("an output");
    for lock in ["tuning.jsonl.lock", "journal/lock"] {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(directory.path().join("journal")).expect("a folder");
        let held = std::fs::File::create(directory.path().join(lock)).expect("a lock");
        held.lock().expect("free");
        let database = Arc::new(Mutex::new(Database::open(directory.path()).expect("opened")));
        let tuning = Tuning::Online { database: Arc::clone(&database), budget: Duration::from_millis(500) };
        let options = SessionOptions { tuning, ..SessionOptions::default() };
        let start = std::time::Instant::now();
        let mut session = Session::new(&context, &graph, options).expect("a session");
        // Without a bound it would never return.
        println!("{lock}: {:?}", start.elapsed());
        assert!(start.elapsed() < Duration::from_secs(20), "{lock}: {:?}", start.elapsed());
        let x = HostTensor::new(Shape::nhwc(1, 8, 8, 4), vec![1.0; 256]).expect("an input");
        assert_eq!(session.run(&[("x", &x)]).expect("a run")[0].to_f32()[0], 2.0, "{lock}");
        let rows = database.lock().expect("no panic").len();
        let unsaved = database.lock().expect("no panic").unsaved();
        assert!(rows > 0, "{lock}");
        assert_eq!(unsaved > 0, lock == "tuning.jsonl.lock", "{lock}: {unsaved} of {rows}");
    }
}
