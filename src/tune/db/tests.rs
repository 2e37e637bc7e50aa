use super::*;
use crate::dtype::Precision;
use crate::layout::Layout;
use crate::limits::Limits;
use crate::ops::Choice;
use crate::ops::pointwise::{Pointwise, PointwiseOp};
use crate::shape::Shape;
use crate::tune::key::TUNER_VERSION;
use crate::tune::repeat::Repeats;
use crate::tune::work_group::{WorkGroup, untuned_in};
use proptest::prelude::*;

pub(super) fn device(gpu: &str, driver: &str, api: &str) -> DeviceKey {
    let (family, gpu, driver) = ("NVIDIA".into(), gpu.into(), driver.into());
    DeviceKey { gpu, family, driver, api: api.into() }
}

pub(super) fn problem(width: u32) -> ProblemKey {
    let shape = format!("n1 h8 w{width} c16 o16 bias");
    ProblemKey { op: "pointwise".into(), shape, precision: "f32".into(), layout: "c4".into() }
}

/// A row of the kernel with text `text` and a work-group of `x` invocations, measured at `unix_ms`.
pub(super) fn row(device: &DeviceKey, width: u32, x: u32, text: &str, verdict: Verdict, unix_ms: u64) -> Row {
    let choice =
        ChoiceKey { variant: "micro".into(), tile: [4, 2, 1], work_group: [x, 1, 1], layout: "c4".into() };
    let key = Key {
        device: device.clone(),
        problem: problem(width),
        choice,
        source: Some(SourceHash::of(text)),
        tuner: TUNER_VERSION,
    };
    let time =
        Timing { median_ns: 1000 + u64::from(x), p10_ns: 900, p90_ns: 1200, samples: 9, default_ns: None };
    let from = Provenance { unix_ms, ..Provenance::measured() };
    Row { key, verdict, time: Some(time), open: false, repeats: None, from }
}

fn text(database: &Database) -> String {
    let mut out = Vec::new();
    database.write(&mut out).expect("memory takes all");
    String::from_utf8(out).expect("text")
}

fn of(rows: impl IntoIterator<Item = Row>) -> Database {
    let mut database = Database::in_memory();
    database.append_all(rows).expect("memory takes all");
    database
}

fn read(bytes: &[u8]) -> Database {
    let mut database = Database::in_memory();
    database.read(bytes).expect("memory gives all");
    database
}

fn h200() -> DeviceKey {
    device("NVIDIA H200", "580", "Vulkan")
}

fn verdicts() -> Vec<Verdict> {
    vec![
        Verdict::Winner,
        Verdict::Loser,
        Verdict::Wrong { detail: "y[3]: found 1, wanted 2".into() },
        Verdict::Rejected { reason: "work-group of 2048".into() },
        Verdict::Failed { reason: "line 1\n\"quoted\"\n\u{1F600}".into() },
        Verdict::Crashed,
        Verdict::TimedOut,
    ]
}

#[test]
fn what_is_written_is_read_and_one_row_is_one_line() {
    let database =
        of(verdicts().into_iter().zip(1..).map(|(verdict, x)| row(&h200(), 8, x, "a", verdict, 5)));
    let lines = text(&database);
    assert_eq!(lines.lines().count(), verdicts().len());
    let again = read(lines.as_bytes());
    assert_eq!(text(&again), lines);
    assert_eq!(again.bytes, lines.len() as u64);
    assert_eq!(again.load_report(), &LoadReport { rows: verdicts().len(), ..Default::default() });
}

#[test]
fn the_line_of_a_row_is_the_documented_one() {
    let mut row = row(&h200(), 8, 32, "", Verdict::Winner, 1_763_695_800_000);
    row.from.crate_version = "0.1.0".into();
    let wanted = concat!(
        r#"{"key":{"device":{"gpu":"NVIDIA H200","family":"NVIDIA","driver":"580","api":"Vulkan"},"#,
        r#""problem":{"op":"pointwise","shape":"n1 h8 w8 c16 o16 bias","precision":"f32","layout":"c4"},"#,
        r#""choice":{"variant":"micro","tile":[4,2,1],"work_group":[32,1,1]},"#,
        r#""source":"af1349b9f5f9a1a6a0404dea36dcc949","tuner":1},"verdict":"winner","#,
        r#""time":{"median_ns":1032,"p10_ns":900,"p90_ns":1200,"samples":9},"#,
        r#""from":{"origin":"measured","crate":"0.1.0","unix_ms":1763695800000}}"#
    );
    assert_eq!(row.line().expect("a line"), wanted);
}

#[test]
fn a_flaky_row_is_wrong_to_those_who_do_not_know_how_often() {
    let repeats = Repeats { differed: 3, runs: 64 };
    let wrong = Verdict::Wrong { detail: "element 3 is 5, wanted 4".into() };
    let flaky = row(&h200(), 8, 1, "today", wrong.clone(), 5).with_repeats(Some(repeats));
    let steady = Repeats { differed: 0, runs: 64 };
    let winner = row(&h200(), 8, 2, "today", Verdict::Winner, 5).with_repeats(Some(steady));
    let written = text(&of([flaky.clone(), winner.clone()]));
    assert!(written.contains(r#""repeats":{"differed":3,"runs":64}"#), "{written}");
    let database = read(written.as_bytes());
    assert_eq!(database.rows().cloned().collect::<Vec<_>>(), [flaky.clone(), winner.clone()]);
    assert_eq!(database.load_report().extended, 0);
    assert_eq!((flaky.flaky(), winner.flaky()), (Some(repeats), None));
    let reason = "flaky: its output differed in 3 of 64 runs: element 3 is 5, wanted 4";
    assert_eq!(flaky.reason(), reason);
    // A version without the field reads what is left, and does not use the kernel either; a row of such a version has none.
    for line in written.lines() {
        let mut value: serde_json::Value = serde_json::from_str(line).expect("JSON");
        value.as_object_mut().expect("an object").remove("repeats").expect("a field of its own");
        let old: Row = serde_json::from_value(value).expect("a row");
        assert_eq!((old.repeats, old.flaky()), (None, None));
        assert_eq!(old.verdict.bars(), old.verdict == wrong, "{}", old.verdict);
    }
}

#[test]
fn a_default_on_record_as_flaky_is_replaced_where_nothing_else_is_known() {
    let (limits, layout) = (Limits::webgpu(), Layout::C4);
    let (input, weights) = (Shape::nhwc(1, 9, 9, 64), Shape::nhwc(64, 1, 1, 64));
    let op = PointwiseOp::new(input, weights, &Pointwise::default(), true, false, Precision::F32);
    let op = op.expect("a pointwise");
    let default = untuned_in(&op, WorkGroup::Table, layout, &limits).expect("a default");
    let mut database = Database::in_memory();
    assert_eq!(database.choose(&h200(), &op, layout, &limits), None);
    let mut bar = |choice: Choice, differed| {
        let source = SourceHash::of_kernel(&op, &choice, &limits).ok();
        let key = Key::new(&h200(), &ProblemKey::in_layout(&op, layout), choice, source);
        let row = Row::measured(key, Verdict::Wrong { detail: "other bits".into() }, None);
        database.append(row.with_repeats(Some(Repeats { differed, runs: 64 }))).expect("memory takes all");
        database.choose(&h200(), &op, layout, &limits)
    };
    let first = bar(default, 1).expect("a kernel in its place");
    assert_ne!(first.choice, default);
    let Source::InPlaceOfDefault { why } = &first.from else { panic!("{:?}", first.from) };
    assert!(why.starts_with("flaky: its output differed in 1 of 64 runs"), "{why}");
    let second = bar(first.choice, 64).expect("another kernel in its place");
    assert!(second.choice != default && second.choice != first.choice, "{:?}", second.choice);
    // What is wrong and is no default changes nothing elsewhere.
    assert_eq!(database.choose(&device("NVIDIA T4", "580", "Vulkan"), &op, layout, &limits), None);
}

#[test]
fn a_file_torn_at_any_byte_loses_its_last_row_at_most() {
    let database = of((1..4).map(|x| row(&h200(), 8, x, "a", Verdict::Failed { reason: "é\n".into() }, 5)));
    let whole = text(&database);
    for end in 0..=whole.len() {
        let torn = &whole.as_bytes()[..end];
        let complete = torn.iter().filter(|&&byte| byte == b'\n').count();
        let rest = torn.iter().rev().take_while(|&&byte| byte != b'\n').count();
        let database = read(torn);
        // A row that lacks nothing but its line's end is whole.
        let last_is_whole = end < whole.len() && rest > 0 && whole.as_bytes()[end] == b'\n';
        assert_eq!(database.len(), complete + usize::from(last_is_whole), "torn at {end}");
        assert_eq!(database.load_report().torn, rest > 0 && !last_is_whole, "torn at {end}");
    }
}

#[test]
fn an_append_after_a_torn_line_loses_nothing_more() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join(FILE);
    let line = row(&h200(), 8, 1, "a", Verdict::Loser, 5).line().expect("a line");
    let next = row(&h200(), 8, 2, "a", Verdict::Winner, 6);
    for end in (0..=line.len()).rev() {
        std::fs::write(&path, &line[..end]).expect("written");
        let mut database = Database::open(directory.path()).expect("opened");
        database.append(next.clone()).expect("appended");
        let database = Database::open(directory.path()).expect("opened");
        let wanted = if end == line.len() { 2 } else { 1 };
        let report = LoadReport { rows: wanted, ..Default::default() };
        assert_eq!((database.len(), database.load_report()), (wanted, &report), "torn at {end}");
    }
}

#[test]
fn lines_of_other_versions_are_kept_and_damaged_ones_are_counted() {
    let known = row(&h200(), 8, 1, "a", Verdict::Loser, 5).line().expect("a line");
    let extended = row(&h200(), 8, 2, "a", Verdict::Loser, 5).line().expect("a line").replacen(
        r#""gpu":"#,
        r#""pci":"10de:2335","gpu":"#,
        1,
    );
    let inactive = known.replace("micro", "of_tomorrow");
    let foreign = known.replace(r#""loser""#, r#"{"tied":{"with":3}}"#);
    let mut bytes = [&known, &extended, &inactive, &foreign, "{not json", &known, ""].join("\n").into_bytes();
    bytes.extend(b"\xff\xfe\n\n\n");
    bytes.extend(vec![b'x'; 3 << 20]);
    bytes.push(b'\n');
    let database = read(&bytes);
    let report = LoadReport {
        rows: 4,
        superseded: 1,
        inactive: 1,
        extended: 1,
        foreign: 1,
        damaged: 3,
        ..Default::default()
    };
    assert_eq!(database.load_report(), &report, "{}", database.load_report());
    let saved = text(&database);
    for line in [&known, &extended, &inactive, &foreign] {
        assert_eq!(saved.lines().filter(|saved| saved == line).count(), 1, "{line}\nin\n{saved}");
    }
    assert_eq!(saved.lines().count(), 4);
    assert_eq!(saved.len() as u64, database.bytes);
}

#[test]
fn what_is_no_record_is_refused_and_left_as_it_is() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("other.jsonl");
    let picture = include_bytes!("../../../tests/data/posenet_figures.png");
    for other in [
        &picture[..],
        b"# Notes\n\nNothing is tuned.\n",
        b"{\n  \"name\": \"package\"\n}\n",
        b"{\"kind\":\"row\",\"key\":7}\n",
        b"[1, 2]\n",
        b"{\"key\"\n",
        b"\n\nx",
        &[0; 4096],
    ] {
        std::fs::write(&path, other).expect("written");
        for opened in [Database::open_file(&path), Database::load(&path)] {
            let error = opened.expect_err("no record").to_string();
            assert!(error.contains("other.jsonl: found a file without rows"), "{error}");
        }
        Database::in_memory().save(&path).expect_err("no record to add to");
        assert_eq!(std::fs::read(&path).expect("the file"), other);
    }
    let line = row(&h200(), 8, 1, "a", Verdict::Loser, 5).line().expect("a line");
    let tied = line.replace(r#""loser""#, r#"{"tied":{"with":3}}"#);
    for (record, rows) in [
        (String::new(), 0),
        (" \n\n".to_owned(), 0),
        (line[..5].to_owned(), 0),
        (line.replacen("micro", "mic\u{1}ro", 1) + "\n", 0),
        (tied + "\n", 0),
        ("damaged\n".to_owned() + &line + "\n", 1),
    ] {
        std::fs::write(&path, &record).expect("written");
        assert_eq!(Database::open_file(&path).expect(&record).len(), rows, "{record:?}");
    }
}

#[cfg(unix)]
#[test]
fn pipes_and_devices_are_no_records() {
    let directory = tempfile::tempdir().expect("a directory");
    let pipe = directory.path().join(FILE);
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo starts").success());
    for opened in [Database::open(directory.path()), Database::load(&pipe)] {
        let error = opened.expect_err("a pipe").to_string();
        assert!(error.ends_with("tuning.jsonl: found a pipe, wanted a regular file"), "{error}");
    }
    let error = Database::open_file("/dev/zero").expect_err("a device").to_string();
    assert_eq!(error, "/dev/zero: found a character device, wanted a regular file");
    let path = directory.path().join("locked.jsonl");
    std::fs::rename(&pipe, directory.path().join("locked.jsonl.lock")).expect("renamed");
    let mut database = Database::open_file(&path).expect("no file yet");
    let error = database.append(row(&h200(), 8, 1, "a", Verdict::Loser, 5)).expect_err("a pipe");
    assert!(error.to_string().contains("found a pipe"), "{error}");
}

#[test]
fn saving_keeps_the_rows_that_others_appended_meanwhile() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut first = Database::open(directory.path()).expect("opened");
    let mut second = Database::open(directory.path()).expect("opened");
    first.append(row(&h200(), 8, 1, "a", Verdict::Winner, 5)).expect("appended");
    second.append(row(&h200(), 8, 2, "a", Verdict::Loser, 5)).expect("appended");
    let path = first.file().expect("a file").to_owned();
    first.save(&path).expect("saved");
    assert_eq!(first.len(), 2);
    assert_eq!(Database::load(directory.path()).expect("loaded").len(), 2);
    let left: Vec<_> = std::fs::read_dir(directory.path()).expect("listed").collect();
    assert_eq!(left.len(), 2, "the file and its lock: {left:?}");
}

#[test]
fn threads_lose_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let directory = directory.path();
            scope.spawn(move || {
                let mut database = Database::open(directory).expect("opened");
                for x in 0..25 {
                    let row = row(&h200(), thread + 1, x, "a", Verdict::Loser, 5);
                    database.append(row).expect("appended");
                    if x % 10 == 9 {
                        database.compact().expect("compacted");
                    }
                }
            });
        }
    });
    let database = Database::open(directory.path()).expect("opened");
    assert_eq!(database.len(), 200);
    assert_eq!((database.load_report().damaged, database.load_report().torn), (0, false));
}

#[test]
fn a_database_stays_within_its_bounds_and_keeps_the_newest() {
    let directory = tempfile::tempdir().expect("a directory");
    for bounds in
        [Bounds { max_rows: 40, max_bytes: 1 << 20 }, Bounds { max_rows: 1 << 20, max_bytes: 16_000 }]
    {
        let path = directory.path().join(format!("{}.jsonl", bounds.max_rows));
        let mut database = Database::open_file(&path).expect("opened").with_bounds(bounds);
        for step in 0..300u32 {
            // Five candidates of each problem, one problem after the other.
            let row = row(&h200(), 1 + step / 5, step % 5, "a", Verdict::Loser, u64::from(step));
            database.append(row).expect("appended");
            let length = std::fs::metadata(&path).expect("the file").len();
            assert!(length <= bounds.max_bytes, "{length} bytes at {step}");
            assert!(database.len() <= bounds.max_rows, "{} rows at {step}", database.len());
        }
        let loaded = Database::load(&path).expect("loaded");
        assert_eq!(text(&loaded), text(&database));
        assert!(loaded.len() >= 20, "{} rows of {bounds:?}", loaded.len());
        let oldest = loaded.rows().map(|row| row.from.unix_ms).min().expect("rows");
        assert_eq!(300 - oldest, loaded.len() as u64, "the newest, without gaps");
    }
}

#[test]
fn one_large_problem_keeps_its_winner_and_compaction_drops_the_retired() {
    let mut rows: Vec<_> =
        (0..100).map(|x| row(&h200(), 8, x, "a", Verdict::Loser, 10 + u64::from(x))).collect();
    rows[0].verdict = Verdict::Winner;
    let mut database = of(rows.clone()).with_bounds(Bounds { max_rows: 20, max_bytes: 1 << 20 });
    database.compact().expect("compacted");
    assert_eq!(database.len(), 15);
    assert!(database.get(&rows[0].key).is_some() && database.get(&rows[99].key).is_some());

    let mut old = row(&h200(), 8, 1, "a", Verdict::Winner, 5);
    old.key.tuner = TUNER_VERSION - 1;
    let changed =
        [row(&h200(), 8, 2, "old", Verdict::Winner, 5), row(&h200(), 8, 2, "new", Verdict::Loser, 6)];
    let mut database = of([old].into_iter().chain(changed.clone()));
    assert_eq!(database.len(), 3);
    database.compact().expect("compacted");
    assert_eq!(database.rows().collect::<Vec<_>>(), [&changed[1]]);
}

#[test]
fn a_shipped_table_is_of_the_newest_winners() {
    let (small, large) = (device("NVIDIA T4", "1", "Vulkan"), device("NVIDIA H200", "2", "Vulkan"));
    let database = of([
        row(&small, 8, 1, "a", Verdict::Winner, 5),
        row(&large, 8, 2, "a", Verdict::Winner, 6),
        row(&large, 8, 3, "a", Verdict::Loser, 7),
        row(&large, 9, 4, "a", Verdict::Winner, 1),
    ]);
    let table = database.family_tables("spring fleet");
    let found: Vec<_> = table.rows().map(|row| (row.key.choice.work_group[0], row.from.origin)).collect();
    assert_eq!(found, [(2, Origin::Shipped), (4, Origin::Shipped)]);
    assert!(table.rows().all(|row| row.key.device.is_family() && row.from.note == "spring fleet"));

    let mut mine = of([row(&large, 8, 2, "a", Verdict::Loser, 6)]);
    mine.import(&database, "a friend");
    // Equally old: what was measured here stays.
    let kept = mine.rows().find(|row| row.key.choice.work_group[0] == 2).expect("the row");
    assert_eq!((&kept.verdict, kept.from.origin), (&Verdict::Loser, Origin::Measured));
    assert_eq!(mine.rows().filter(|row| row.from.note == "a friend").count(), 3);
    let again = text(&mine);
    mine.import(&database, "a friend");
    assert_eq!(text(&mine), again);
}

#[test]
fn filters_look_at_the_op_and_any_name_of_the_device() {
    let database = of([
        row(&h200(), 8, 1, "a", Verdict::Winner, 5),
        row(&h200(), 8, 2, "a", Verdict::Loser, 5),
        row(&device("NVIDIA T4", "580", "OpenCL"), 8, 3, "a", Verdict::Loser, 5),
    ]);
    let count = |op: Option<&str>, device: Option<&str>, winners| {
        let filter = Filter { op: op.map(str::to_owned), device: device.map(str::to_owned), winners };
        database.export(&filter).len()
    };
    assert_eq!(count(None, None, false), 3);
    assert_eq!(count(Some("pointwise"), Some("h200"), false), 2);
    assert_eq!(count(Some("point"), None, false), 0);
    assert_eq!(count(None, Some("opencl"), false), 1);
    assert_eq!(count(None, None, true), 1);
}

fn any_row() -> impl Strategy<Value = Row> {
    let verdict = proptest::sample::select(verdicts());
    (0..3u32, 1..3u32, 0..3u32, 0..2u8, verdict, 0..4u64, any::<bool>()).prop_map(
        |(driver, width, x, text, verdict, time, shipped)| {
            let device = device("NVIDIA H200", &driver.to_string(), "Vulkan");
            let mut row = row(&device, width, x, &text.to_string(), verdict, time);
            if shipped {
                row.from.origin = Origin::Shipped;
            }
            row
        },
    )
}

fn any_rows() -> impl Strategy<Value = Vec<Row>> {
    proptest::collection::vec(any_row(), 0..12)
}

proptest! {
    #[test]
    fn merging_is_idempotent_commutative_and_associative(a in any_rows(), b in any_rows(), c in any_rows()) {
        let (a, b, c) = (of(a), of(b), of(c));
        let merged = |parts: &[&Database]| {
            let mut all = Database::in_memory();
            for part in parts {
                all.merge(part, MergePolicy::Newest);
            }
            text(&all)
        };
        prop_assert_eq!(merged(&[&a, &a]), text(&a));
        prop_assert_eq!(merged(&[&a, &b]), merged(&[&b, &a]));
        prop_assert_eq!(merged(&[&a, &b, &c]), merged(&[&c, &b, &a]));
        // Two files are merged by putting one after the other.
        let joined = text(&a) + &text(&b);
        prop_assert_eq!(text(&read(joined.as_bytes())), merged(&[&a, &b]));
    }

    #[test]
    fn the_policies_keep_what_they_say(a in any_rows(), b in any_rows()) {
        let (a, b) = (of(a), of(b));
        for (policy, first, second) in [(MergePolicy::Ours, &a, &b), (MergePolicy::Theirs, &b, &a)] {
            let mut all = a.clone();
            all.merge(&b, policy);
            for row in all.rows() {
                prop_assert_eq!(Some(row), first.get(&row.key).or_else(|| second.get(&row.key)));
            }
            prop_assert_eq!(all.bytes, text(&all).len() as u64);
        }
    }

    #[test]
    fn damaged_files_never_panic(rows in any_rows(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = text(&of(rows)).into_bytes();
        if !bytes.is_empty() {
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let database = read(&bytes);
            prop_assert_eq!(text(&read(text(&database).as_bytes())), text(&database));
        }
    }
}

#[test]
fn of_thousands_of_rows_only_the_problem_s_winner_is_asked_for_its_text() {
    let rows = (1..=100).flat_map(|width| {
        (1..=50).map(move |x| {
            let verdict = if x == 7 { Verdict::Winner } else { Verdict::Loser };
            row(&h200(), width, x, "today", verdict, 5)
        })
    });
    let folder = tempfile::tempdir().expect("a folder");
    of(rows).save(folder.path().join(FILE)).expect("saved");
    let database = Database::open(folder.path()).expect("opened");
    assert_eq!(database.len(), 5000);
    let texts = std::cell::Cell::new(0);
    for width in 1..=100 {
        let today = |_: &crate::Choice| {
            texts.set(texts.get() + 1);
            Some(SourceHash::of("today"))
        };
        let found = database.lookup(&h200(), &problem(width), &today).expect("a winner");
        assert_eq!((found.choice.work_group[0], found.from), (7, Source::Exact));
    }
    assert_eq!(texts.get(), 100, "a text is rendered for it, which costs more than the lookup");
}

#[test]
fn a_lock_that_another_holds_delays_nobody_for_long_and_loses_no_row() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut database = Database::open(directory.path()).expect("opened");
    database.append(row(&h200(), 8, 1, "a", Verdict::Winner, 1)).expect("appended");
    let path = database.file().expect("a file").to_owned();
    let held = file::lock(&path, Duration::ZERO).expect("free");
    database.set_patience(Some(Duration::from_millis(50)));
    let start = std::time::Instant::now();
    for x in 2..=40 {
        database.append(row(&h200(), 8, x, "a", Verdict::Loser, 1)).expect("in memory");
    }
    // The first one waits, the others know better.
    assert!(start.elapsed() >= Duration::from_millis(50) && start.elapsed() < Duration::from_secs(5));
    assert_eq!((database.len(), database.unsaved()), (40, 39));
    let error = database.save(&path).expect_err("the lock is held");
    assert!(is_held(&error) && error.to_string().contains("tuning.jsonl.lock"), "{error}");
    assert_eq!(Database::open(directory.path()).expect("opened").len(), 1);
    drop(held);
    database.append(row(&h200(), 8, 41, "a", Verdict::Loser, 1)).expect("appended");
    assert_eq!((database.unsaved(), database.patience()), (0, Duration::from_millis(50)));
    assert_eq!(Database::open(directory.path()).expect("opened").len(), 41);
}

#[test]
fn good_rows_behind_any_amount_of_damage_are_kept() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("record");
    let good =
        text(&of([row(&h200(), 8, 1, "a", Verdict::Winner, 1), row(&h200(), 8, 2, "a", Verdict::Loser, 1)]));
    let lines = "no row\n".repeat(400_000);
    let line = format!("{}\n", "x".repeat(3 << 20));
    for damage in [&lines, &line, &format!("{line}{lines}{line}")] {
        std::fs::write(&path, format!("{damage}{good}")).expect("written");
        let database = Database::open_file(&path).expect("a record");
        assert_eq!(database.len(), 2);
        assert!(database.load_report().damaged > 0);
        std::fs::write(&path, damage).expect("written");
        let error = Database::open_file(&path).expect_err("no record").to_string();
        assert!(error.contains("a file without rows"), "{error}");
    }
}

/// A verdict on a network of `name`, measured at `unix_ms`.
fn network(name: &str, driver: &str, unix_ms: u64) -> NetworkRow {
    let key = NetworkKey {
        device: vec![device("NVIDIA H200", driver, "Vulkan")],
        cpu: "x86_64, 16 threads".into(),
        candidates: vec!["wgpu".into(), "cpu".into()],
        network: name.into(),
        precision: "f32".into(),
        crate_version: "0.1.0".into(),
    };
    let time = |candidate: &str, device: &str, median_ns| NetworkTime {
        candidate: candidate.into(),
        device: device.into(),
        median_ns,
        runs: 5,
        reason: String::new(),
    };
    let times = vec![time("wgpu", "NVIDIA H200", Some(102_000)), time("cpu", "", Some(unix_ms))];
    let mut row = NetworkRow::measured(key, times);
    row.from = Provenance { unix_ms, crate_version: "0.1.0".into(), ..row.from };
    row
}

#[test]
fn verdicts_on_networks_are_lines_of_their_own_kind() {
    let wanted = concat!(
        r#"{"key":{"device":[{"gpu":"NVIDIA H200","family":"NVIDIA","driver":"580","api":"Vulkan"}],"#,
        r#""cpu":"x86_64, 16 threads","candidates":["wgpu","cpu"],"network":"abc","precision":"f32","crate":"0.1.0"},"#,
        r#""times":[{"candidate":"wgpu","device":"NVIDIA H200","median_ns":102000,"runs":5},"#,
        r#"{"candidate":"cpu","device":"","median_ns":7,"runs":5}],"#,
        r#""from":{"origin":"measured","crate":"0.1.0","unix_ms":7}}"#
    );
    let directory = tempfile::tempdir().expect("a directory");
    let mut database = Database::open(directory.path()).expect("opened");
    database.append_network(network("abc", "580", 7)).expect("appended");
    let path = database.file().expect("a file").to_owned();
    assert_eq!(std::fs::read_to_string(&path).expect("the file"), format!("{wanted}\n"));
    assert!(!is_row_of_candidates(wanted), "an older version would take it for a row");
    // The newer one counts, and rows and lines of another version live beside them.
    database.append_network(network("abc", "580", 9)).expect("appended");
    database.append_network(network("abc", "581", 8)).expect("appended");
    database.append(row(&h200(), 8, 1, "a", Verdict::Winner, 5)).expect("appended");
    let of_tomorrow = wanted.replace(r#""cpu":"x86"#, r#""clock":1,"cpu":"x86"#);
    let lines = std::fs::read_to_string(&path).expect("the file") + &of_tomorrow + "\n";
    std::fs::write(&path, lines).expect("written");
    let mut read = Database::open(directory.path()).expect("opened");
    let report = LoadReport { rows: 1, networks: 3, superseded: 1, foreign: 1, ..Default::default() };
    assert_eq!(read.load_report(), &report);
    assert_eq!(read.network(&network("abc", "580", 1).key), Some(&network("abc", "580", 9)));
    assert_eq!(read.network(&network("abd", "580", 1).key), None);
    assert_eq!(read.networks().count(), 2);
    // A replaced file has all of them.
    read.compact().expect("compacted");
    let kept = std::fs::read_to_string(&path).expect("the file");
    assert_eq!((kept.lines().count(), kept.len() as u64), (4, read.bytes));
    assert!(kept.contains(&of_tomorrow) && text(&super::tests::read(kept.as_bytes())) == kept);
    // What is shipped or imported has none: they are of one machine.
    assert_eq!(database.marked(Origin::Shipped, "fleet").networks().count(), 0);
    // A torn line is a record's all the same.
    std::fs::write(&path, &wanted[..60]).expect("written");
    assert!(Database::open_file(&path).expect("a record").load_report().torn);
}

/// Whether a version of the crate that knows rows of candidates alone reads this line as one.
fn is_row_of_candidates(line: &str) -> bool {
    serde_json::from_str::<Row>(line).is_ok()
}

#[test]
fn verdicts_on_networks_are_bounded_and_the_oldest_go_first() {
    let mut database = Database::in_memory();
    for number in 0..600 {
        database.append_network(network(&number.to_string(), "580", number)).expect("memory takes all");
    }
    assert_eq!(database.networks().count(), 512);
    assert_eq!(database.networks().map(|row| row.from.unix_ms).min(), Some(88));
    assert_eq!(database.bytes, text(&database).len() as u64);
    let mut small = Database::in_memory().with_bounds(Bounds { max_rows: 40, max_bytes: 1 << 20 });
    for number in 0..100 {
        small.append_network(network(&number.to_string(), "580", number)).expect("memory takes all");
        small.append(row(&h200(), number as u32 + 1, 1, "a", Verdict::Winner, number)).expect("appended");
        assert!(small.len() + small.networks().count() <= 40);
    }
    assert!(small.networks().any(|row| row.from.unix_ms == 99) && small.len() > 10, "{}", small.len());
}
