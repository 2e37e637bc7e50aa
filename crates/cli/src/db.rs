//! `diptych db`: the tuner's record, shown, merged and exported.

use crate::output::say;
use crate::table;
use crate::tune::record;
use anyhow::{Context as _, Result, ensure};
use clap::{Subcommand, ValueEnum};
use diptych::internals::tune::db::{Database, Filter, MergePolicy, Row, Verdict};
use diptych::internals::tune::key::DeviceKey;
use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Option<Verb>,

    #[command(flatten)]
    show: Show,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Show the winners of each device and the kernels that are flaky there, or every row: what `diptych db` alone does.
    Show(Show),
    /// Add the rows of other records to this one.
    Merge(Merge),
    /// Write rows as JSON lines, to be merged elsewhere or shipped.
    Export(Export),
}

/// Which record.
#[derive(Debug, clap::Args)]
struct RecordPath {
    /// The record: a directory or a file [default: the platform's cache directory, or
    /// DIPTYCH_CACHE_DIR].
    #[arg(long, value_name = "DIR|FILE")]
    db: Option<PathBuf>,
}

/// Which rows.
#[derive(Debug, clap::Args)]
struct Rows {
    /// Rows of this op only.
    #[arg(long)]
    op: Option<String>,
    /// Rows of devices only whose name, family, driver or API contains this.
    #[arg(long)]
    device: Option<String>,
}

#[derive(Debug, clap::Args)]
struct Show {
    #[command(flatten)]
    place: RecordPath,
    #[command(flatten)]
    rows: Rows,
    /// Show losers and failures too, with their reasons.
    #[arg(long)]
    all: bool,
    /// Print JSON: a list of rows.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Merge {
    /// The records to add: directories or files.
    #[arg(required = true, value_name = "DIR|FILE")]
    from: Vec<PathBuf>,
    #[command(flatten)]
    place: RecordPath,
    /// Which of two rows with one key is kept.
    #[arg(long, value_enum, default_value_t = Policy::Newest)]
    policy: Policy,
    /// Mark measured rows as imported, with this note.
    #[arg(long, value_name = "NOTE")]
    imported: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Policy {
    /// The newer.
    Newest,
    /// The one of this record.
    Ours,
    /// The one that is added.
    Theirs,
}

impl From<Policy> for MergePolicy {
    fn from(policy: Policy) -> Self {
        match policy {
            Policy::Newest => MergePolicy::Newest,
            Policy::Ours => MergePolicy::Ours,
            Policy::Theirs => MergePolicy::Theirs,
        }
    }
}

#[derive(Debug, clap::Args)]
struct Export {
    #[command(flatten)]
    place: RecordPath,
    #[command(flatten)]
    rows: Rows,
    /// Winners only.
    #[arg(long)]
    winners: bool,
    /// Make tables for whole GPU families of the winners, marked as shipped with this note.
    #[arg(long, value_name = "NOTE")]
    family: Option<String>,
    /// Write to this file, which is replaced, instead of standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) fn main(arguments: &Arguments) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    let show = |stdout: &mut dyn Write, show: &Show| -> Result<()> {
        let database = read(&show.place.path()?)?;
        let text = self::show(&database.export(&show.rows.filter(false)), show)?;
        Ok(writeln!(stdout, "{text}")?)
    };
    match &arguments.verb {
        None => show(&mut stdout, &arguments.show)?,
        Some(Verb::Show(own)) => show(&mut stdout, own)?,
        Some(Verb::Merge(merge)) => self::merge(merge)?,
        Some(Verb::Export(export)) => {
            let database = read(&export.place.path()?)?.export(&export.rows.filter(export.winners));
            let database = match &export.family {
                Some(note) => database.family_tables(note),
                None => database,
            };
            match &export.out {
                Some(path) => database.replace(path)?,
                None => database.write(&mut stdout)?,
            }
            say(format_args!("{} rows", database.len()));
        }
    }
    Ok(stdout.flush()?)
}

impl RecordPath {
    fn path(&self) -> Result<PathBuf> {
        Ok(match &self.db {
            Some(path) => path.clone(),
            None => Database::default_dir()?,
        })
    }
}

impl Rows {
    fn filter(&self, winners: bool) -> Filter {
        Filter { op: self.op.clone(), device: self.device.clone(), winners }
    }
}

/// The record at `path`; what was wrong with its file goes to standard error.
fn read(path: &Path) -> Result<Database> {
    ensure!(path.exists(), "{}: found no tuning record, wanted a directory or a .jsonl file", path.display());
    let database = Database::load(path)?;
    warn(path, &database);
    Ok(database)
}

fn warn(path: &Path, database: &Database) {
    let report = database.load_report();
    if report.inactive + report.extended + report.foreign + report.damaged > 0 || report.torn {
        say(format_args!("{}: {report}", path.display()));
    }
}

fn merge(arguments: &Merge) -> Result<()> {
    let mut others = Vec::new();
    for path in &arguments.from {
        let other = read(path).with_context(|| format!("{}", path.display()))?;
        others.push(match &arguments.imported {
            Some(note) => other.marked(diptych::internals::tune::db::Origin::Imported, note),
            None => other,
        });
    }
    let path = arguments.place.path()?;
    let (mut database, _) = record(Some(&path))?;
    warn(&path, &database);
    let before = database.len();
    for other in &others {
        database.merge_and_save(other, arguments.policy.into())?;
    }
    say(format_args!("{}: {before} rows, now {}", path.display(), database.len()));
    Ok(())
}

/// A table for each device, or a JSON list.
fn show(database: &Database, arguments: &Show) -> Result<String> {
    let shown = |row: &&Row| arguments.all || row.verdict == Verdict::Winner || row.flaky().is_some();
    let rows: Vec<&Row> = database.rows().filter(shown).collect();
    if arguments.json {
        return Ok(serde_json::to_string_pretty(&rows)?);
    }
    let mut text = String::new();
    let mut device: Option<&DeviceKey> = None;
    let mut table = new_table();
    for row in rows {
        if device != Some(&row.key.device) {
            finish(&mut text, device, &table)?;
            device = Some(&row.key.device);
            table = new_table();
        }
        table.add(cells(row));
    }
    finish(&mut text, device, &table)?;
    match device {
        Some(_) => Ok(text.trim_end().to_owned()),
        None if arguments.all => Ok("no rows".to_owned()),
        None => Ok("no winners (--all shows every row)".to_owned()),
    }
}

fn new_table() -> table::Rows<7> {
    let heads = ["problem", "choice", "verdict", "median", "p10 to p90", "of default", "from"];
    table::Rows::new(heads).numbers(&[3, 4, 5])
}

fn finish(text: &mut String, device: Option<&DeviceKey>, table: &table::Rows<7>) -> Result<()> {
    if let Some(device) = device {
        writeln!(text, "{device}\n{}\n", table.text())?;
    }
    Ok(())
}

fn cells(row: &Row) -> [String; 7] {
    let none = || "-".to_owned();
    let time = row.time.as_ref();
    let from = &row.from;
    let note = if from.note.is_empty() { String::new() } else { format!(": {}", from.note) };
    [
        row.key.problem.to_string(),
        row.key.choice.to_string(),
        verdict(row),
        time.map_or_else(none, |time| microseconds(time.median_ns)),
        time.map_or_else(none, |time| {
            format!("{} to {}", microseconds(time.p10_ns), microseconds(time.p90_ns))
        }),
        time.and_then(|time| time.ratio()).map_or_else(none, |ratio| format!("{ratio:.3}")),
        format!("{} {}{note}", from.origin, date(from.unix_ms)),
    ]
}

/// What came of a row's candidate, and in how many runs its output was the same.
fn verdict(row: &Row) -> String {
    match row.repeats {
        Some(repeats) if repeats.differed == 0 => format!("{}, {} equal runs", row.verdict, repeats.runs),
        Some(_) => row.reason(),
        None => row.verdict.to_string(),
    }
}

fn microseconds(nanoseconds: u64) -> String {
    format!("{:.2} us", nanoseconds as f64 / 1e3)
}

/// The UTC date of a time in milliseconds since 1970-01-01.
///
/// Days are counted from 0000-03-01, so that a leap day ends its year (Hinnant, *chrono-compatible
/// low-level date algorithms*, `civil_from_days`).
fn date(unix_ms: u64) -> String {
    let days = unix_ms / 86_400_000 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use diptych::Choice;
    use diptych::internals::tune::Repeats;
    use diptych::internals::tune::db::Timing;
    use diptych::internals::tune::key::{Key, ProblemKey, SourceHash};

    fn row(gpu: &str, x: u32, verdict: Verdict) -> Row {
        let device = DeviceKey {
            gpu: gpu.to_owned(),
            family: "NVIDIA".to_owned(),
            driver: "580.95".to_owned(),
            api: "Vulkan".to_owned(),
        };
        let problem = ProblemKey {
            op: "pointwise".to_owned(),
            shape: "n1 h9 w9 c8 o8".to_owned(),
            precision: "f32".to_owned(),
            layout: "c4".to_owned(),
        };
        let choice = Choice::new("micro", [4, 2, 1], [x, 8, 1]);
        let key = Key::new(&device, &problem, choice, Some(SourceHash::of("text")));
        let time = Timing {
            median_ns: 18_400,
            p10_ns: 18_300,
            p90_ns: 18_700,
            samples: 40,
            default_ns: Some(36_800),
        };
        let mut row = Row::measured(key, verdict, Some(time));
        row.from.unix_ms = 1_763_695_800_000;
        row
    }

    fn database() -> Database {
        let mut database = Database::in_memory();
        let failed = Verdict::Failed { reason: "no registers left".to_owned() };
        database
            .append_all([
                row("H200", 32, Verdict::Winner),
                row("H200", 16, failed),
                row("T4", 8, Verdict::Loser),
            ])
            .expect("memory takes all");
        database
    }

    fn shown(all: bool, json: bool) -> String {
        let rows = Rows { op: None, device: None };
        let database = database().export(&rows.filter(false));
        show(&database, &Show { place: RecordPath { db: None }, rows, all, json }).expect("shown")
    }

    #[test]
    fn winners_are_shown_and_the_rest_with_reasons_on_request() {
        let text = shown(false, false);
        for words in [
            "H200 (Vulkan, 580.95)",
            "pointwise n1 h9 w9 c8 o8 f32 c4",
            "micro tile 4x2x1 work-group (32,8,1)",
            "18.40 us",
            "0.500",
            "measured 2025-11-21",
        ] {
            assert!(text.contains(words), "no {words:?} in\n{text}");
        }
        assert!(!text.contains("T4") && !text.contains("registers"), "{text}");
        let text = shown(true, false);
        assert!(text.contains("T4 (Vulkan, 580.95)") && text.contains("failed: no registers left"), "{text}");
    }

    #[test]
    fn flaky_kernels_are_named_with_how_often_they_differed() {
        let mut database = database();
        let wrong = Verdict::Wrong { detail: "element 3 is 5, wanted 4".to_owned() };
        let repeats = |differed| Some(Repeats { differed, runs: 64 });
        database
            .append_all([
                row("A840", 8, wrong).with_repeats(repeats(7)),
                row("A840", 16, Verdict::Winner).with_repeats(repeats(0)),
            ])
            .expect("memory takes all");
        let text = |json| {
            let rows = Rows { op: None, device: None };
            show(&database, &Show { place: RecordPath { db: None }, rows, all: false, json }).expect("shown")
        };
        for words in
            ["flaky: its output differed in 7 of 64 runs: element 3 is 5, wanted 4", "winner, 64 equal runs"]
        {
            assert!(text(false).contains(words), "no {words:?} in\n{}", text(false));
        }
        let rows: Vec<Row> = serde_json::from_str(&text(true)).expect("JSON");
        assert_eq!(rows.iter().filter(|row| row.flaky().is_some()).count(), 1);
        assert_eq!(rows.len(), 3, "two winners, and what is flaky");
    }

    #[test]
    fn json_is_a_list_of_rows() {
        let rows: Vec<Row> = serde_json::from_str(&shown(true, true)).expect("JSON");
        assert_eq!(rows, database().rows().cloned().collect::<Vec<_>>());
    }

    #[test]
    fn merge_adds_and_a_missing_record_is_named() {
        let directory = tempfile::tempdir().expect("a directory");
        let other = directory.path().join("other.jsonl");
        database().replace(&other).expect("written");
        let into = directory.path().join("mine");
        let arguments = |from: &Path| Merge {
            from: vec![from.to_owned()],
            place: RecordPath { db: Some(into.clone()) },
            policy: Policy::Newest,
            imported: Some("a friend".to_owned()),
        };
        merge(&arguments(&other)).expect("merged");
        merge(&arguments(&other)).expect("merged again");
        let merged = read(&into).expect("a record");
        assert_eq!(merged.len(), 3);
        assert!(merged.rows().all(|row| row.from.note == "a friend"));
        let missing = directory.path().join("missing.jsonl");
        let error = merge(&arguments(&missing)).expect_err("no such file");
        assert!(format!("{error:#}").contains("missing.jsonl: found no tuning record"), "{error:#}");
    }

    #[test]
    fn dates_are_utc_days() {
        for (days, wanted) in
            [(0, "1970-01-01"), (11_016, "2000-02-29"), (11_017, "2000-03-01"), (20_453, "2025-12-31")]
        {
            assert_eq!(date(days * 86_400_000), wanted);
        }
        assert!(!date(u64::MAX).is_empty());
    }
}
