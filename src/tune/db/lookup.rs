//! From the record to a choice: the best row there is, and where it came from.

use super::{Database, Entry, Group, Row, Verdict};
use crate::ops::Choice;
use crate::sorted;
use crate::tune::key::{ChoiceKey, DeviceKey, ProblemKey, SourceHash, TUNER_VERSION};
use std::fmt;

/// The farthest a near shape may be ([`ProblemKey::distance`]): extents that differ by a factor of
/// eight in all.
pub const NEAR: f64 = 3.0;

/// Where a choice came from. From the first to the last the more it is worth timing anew.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Source {
    /// This problem on this device, driver and API.
    Exact,
    /// A problem of the same kernels on this device, driver and API.
    NearShape {
        /// How far its extents are ([`ProblemKey::distance`]).
        distance: f64,
        /// Its extents.
        shape: String,
    },
    /// This problem on this GPU under another API. Whether that API's kernel has changed since is
    /// not known.
    OtherApi {
        /// The other API.
        api: String,
    },
    /// A table for the device's family.
    FamilyTable {
        /// The table's family.
        family: String,
        /// How far the table's problem is; 0 for this one.
        distance: f64,
    },
    /// No row of a choice, and one that says why the kernel's default must not be used.
    InPlaceOfDefault {
        /// What came of the default.
        why: String,
    },
    /// No row: the kernel's default.
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Exact => f.write_str("measured"),
            Source::NearShape { distance, shape } => write!(f, "near shape {shape} ({distance:.2})"),
            Source::OtherApi { api } => write!(f, "this GPU under {api}"),
            Source::FamilyTable { family, distance: 0.0 } => write!(f, "table of {family}"),
            Source::FamilyTable { family, distance } => {
                write!(f, "table of {family}, near shape ({distance:.2})")
            }
            Source::InPlaceOfDefault { why } => write!(f, "in place of the default, on record as {why}"),
            Source::Default => f.write_str("default"),
        }
    }
}

/// A row that can be used.
#[derive(Debug, Clone, PartialEq)]
pub struct Found<'a> {
    /// The row.
    pub row: &'a Row,
    /// Its choice.
    pub choice: Choice,
    /// Where it came from.
    pub from: Source,
}

/// What a lookup asks.
struct Query<'q> {
    device: &'q DeviceKey,
    problem: &'q ProblemKey,
    source: &'q dyn Fn(&Choice) -> Option<SourceHash>,
}

impl Database {
    /// The choice for `problem` on `device`, from the best row there is:
    ///
    /// 1. a row of this problem on this device, driver and API;
    /// 2. the row of the nearest problem there ([`ProblemKey::distance`], at most [`NEAR`]);
    /// 3. a row of this problem on this GPU under another API ([`DeviceKey::same_gpu`]);
    /// 4. a family table's row of this problem, or of the nearest one; this API's before another's.
    ///
    /// `source` gives the hash of the kernel's text as it is today if a choice fits the problem on
    /// this device, else `None`. A row of another text (rows of another API excepted: theirs
    /// differs anyway) or tuner version is passed over, and so is a choice that is known to fail
    /// or to be wrong here. Among several winners the newest counts; `None` means the default.
    #[doc(hidden)]
    pub fn lookup(
        &self,
        device: &DeviceKey,
        problem: &ProblemKey,
        source: &dyn Fn(&Choice) -> Option<SourceHash>,
    ) -> Option<Found<'_>> {
        let query = Query { device, problem, source };
        self.exact(&query)
            .or_else(|| self.near(&query))
            .or_else(|| self.other_api(&query))
            .or_else(|| self.family_table(&query))
    }

    fn exact(&self, query: &Query<'_>) -> Option<Found<'_>> {
        let group = self.group(query.device, query.problem)?;
        self.winner(query, group, true).map(|(row, choice)| Found { row, choice, from: Source::Exact })
    }

    fn near(&self, query: &Query<'_>) -> Option<Found<'_>> {
        let first = (query.device.clone(), ProblemKey::default());
        let mut near: Vec<_> = self
            .groups
            .range(first..)
            .take_while(|((device, _), _)| device == query.device)
            .filter_map(|((_, problem), group)| {
                let distance = query.problem.distance(problem).filter(|&distance| distance <= NEAR)?;
                (problem != query.problem).then_some((distance, problem, group))
            })
            .collect();
        // Groups are in the order of their problems: of equally near ones the first counts.
        sorted::sort(&mut near, |(a, ..), (b, ..)| a.total_cmp(b));
        near.into_iter().find_map(|(distance, problem, group)| {
            let (row, choice) = self.winner(query, group, true)?;
            let from = Source::NearShape { distance, shape: problem.shape.clone() };
            Some(Found { row, choice, from })
        })
    }

    fn other_api(&self, query: &Query<'_>) -> Option<Found<'_>> {
        let mut best: Option<(&Entry, Choice)> = None;
        for ((device, problem), group) in &self.groups {
            if problem != query.problem || device.api == query.device.api || !device.same_gpu(query.device) {
                continue;
            }
            if let Some((entry, choice)) = self.winning_entry(query, group, false)
                && best.is_none_or(|(old, _)| entry.newer_than(old))
            {
                best = Some((entry, choice));
            }
        }
        best.map(|(entry, choice)| {
            let from = Source::OtherApi { api: entry.row.key.device.api.clone() };
            Found { row: &entry.row, choice, from }
        })
    }

    fn family_table(&self, query: &Query<'_>) -> Option<Found<'_>> {
        let mut tables: Vec<_> = self
            .groups
            .iter()
            .filter_map(|((device, problem), group)| {
                let family = query.device.family_rank(device)?;
                let distance = query.problem.distance(problem).filter(|&distance| distance <= NEAR)?;
                let same_api = device.api == query.device.api;
                Some((distance, family, !same_api, device, group))
            })
            .collect();
        sorted::sort(&mut tables, |a, b| a.0.total_cmp(&b.0).then_with(|| (a.1, a.2).cmp(&(b.1, b.2))));
        tables.into_iter().find_map(|(distance, _, other_api, device, group)| {
            let (row, choice) = self.winner(query, group, !other_api)?;
            let from = Source::FamilyTable { family: device.family.clone(), distance };
            Some(Found { row, choice, from })
        })
    }

    fn group(&self, device: &DeviceKey, problem: &ProblemKey) -> Option<&Group> {
        self.groups.get(&(device.clone(), problem.clone()))
    }

    fn winner<'a>(
        &'a self,
        query: &Query<'_>,
        group: &'a Group,
        same_text: bool,
    ) -> Option<(&'a Row, Choice)> {
        self.winning_entry(query, group, same_text).map(|(entry, choice)| (&entry.row, choice))
    }

    /// The newest winner of `group` that can be used; with `same_text` its kernel must be today's.
    fn winning_entry<'a>(
        &'a self,
        query: &Query<'_>,
        group: &'a Group,
        same_text: bool,
    ) -> Option<(&'a Entry, Choice)> {
        let mut best: Option<(&Entry, Choice)> = None;
        for entry in group.values() {
            let row = &entry.row;
            if row.verdict != Verdict::Winner
                || row.key.tuner != TUNER_VERSION
                || best.is_some_and(|(old, _)| !entry.newer_than(old))
            {
                continue;
            }
            let Some(choice) = row.key.choice.resolve(&query.problem.op) else { continue };
            let Some(source) = (query.source)(&choice) else { continue };
            if (same_text && !row.holds(source)) || self.barred(query, &row.key.choice, source) {
                continue;
            }
            best = Some((entry, choice));
        }
        best
    }

    /// Whether the choice is known to fail for the query's problem on its device.
    fn barred(&self, query: &Query<'_>, choice: &ChoiceKey, source: SourceHash) -> bool {
        self.group(query.device, query.problem)
            .and_then(|group| group.get(&(choice.clone(), TUNER_VERSION, Some(source))))
            .is_some_and(|entry| entry.row.verdict.bars())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::db::tests::{device, problem, row};

    /// The kernels' text today, for every choice with a work-group of less than 100.
    fn today(choice: &Choice) -> Option<SourceHash> {
        (choice.work_group[0] < 100).then(|| SourceHash::of("today"))
    }

    fn here() -> DeviceKey {
        device("NVIDIA H200", "580", "Vulkan")
    }

    fn find(rows: &[Row]) -> Option<(u32, Source)> {
        let mut database = Database::in_memory();
        database.append_all(rows.iter().cloned()).expect("memory takes all");
        let found = database.lookup(&here(), &problem(8), &today)?;
        Some((found.choice.work_group[0], found.from))
    }

    fn winner(device: &DeviceKey, width: u32, x: u32, text: &str) -> Row {
        row(device, width, x, text, Verdict::Winner, 100)
    }

    #[test]
    fn the_sources_are_tried_in_order() {
        let opencl = device("NVIDIA H200", "580 CL", "OpenCL");
        let table = DeviceKey::of_family("NVIDIA", "Vulkan");
        let other_table = DeviceKey::of_family("NVIDIA", "OpenCL");
        let near = |width, distance| Source::NearShape { distance, shape: problem(width).shape };
        let family = |distance| Source::FamilyTable { family: "NVIDIA".into(), distance };
        // From the best to the worst.
        let ladder = [
            (winner(&here(), 8, 1, "today"), Source::Exact),
            (winner(&here(), 16, 2, "today"), near(16, 1.0)),
            (winner(&here(), 2, 3, "today"), near(2, 2.0)),
            (winner(&opencl, 8, 4, "of opencl"), Source::OtherApi { api: "OpenCL".into() }),
            (winner(&table, 8, 5, "today"), family(0.0)),
            (winner(&other_table, 8, 6, "of opencl"), family(0.0)),
            (winner(&table, 4, 7, "today"), family(1.0)),
        ];
        let rows: Vec<Row> = ladder.iter().map(|(row, _)| row.clone()).collect();
        for (rung, (best, wanted)) in ladder.iter().enumerate() {
            let x = best.key.choice.work_group[0];
            assert_eq!(find(&rows[rung..]), Some((x, wanted.clone())), "rung {rung}");
        }
        assert_eq!(find(&[]), None);
    }

    #[test]
    fn what_no_longer_holds_is_passed_over() {
        let mut other_tuner = winner(&here(), 8, 1, "today");
        other_tuner.key.tuner += 1;
        let mut unknown = winner(&here(), 8, 1, "today");
        unknown.key.choice.variant = "of_tomorrow".into();
        for (why, row) in [
            ("changed kernel", winner(&here(), 8, 1, "yesterday")),
            ("changed kernel, near shape", winner(&here(), 16, 1, "yesterday")),
            ("changed driver", winner(&device("NVIDIA H200", "590", "Vulkan"), 8, 1, "today")),
            ("other GPU", winner(&device("NVIDIA T4", "580", "OpenCL"), 8, 1, "today")),
            ("does not fit", winner(&here(), 8, 100, "today")),
            ("too far", winner(&here(), 128, 1, "today")),
            ("a loser", row(&here(), 8, 1, "today", Verdict::Loser, 100)),
            ("a crash", row(&here(), 8, 1, "today", Verdict::Crashed, 100)),
            ("changed tuner", other_tuner),
            ("unknown kernel", unknown),
        ] {
            assert_eq!(find(std::slice::from_ref(&row)), None, "{why}");
        }
    }

    #[test]
    fn the_newest_winner_counts_and_a_retired_one_does_not_hide_it() {
        let rows = [
            row(&here(), 8, 1, "today", Verdict::Winner, 5),
            row(&here(), 8, 2, "today", Verdict::Winner, 6),
            row(&here(), 8, 3, "yesterday", Verdict::Winner, 7),
        ];
        assert_eq!(find(&rows), Some((2, Source::Exact)));
    }

    #[test]
    fn a_choice_that_fails_here_is_not_taken_from_elsewhere() {
        let bad = Verdict::Failed { reason: "no registers".into() };
        let rows = [
            winner(&here(), 16, 1, "today"),
            winner(&here(), 32, 2, "today"),
            row(&here(), 8, 1, "today", bad, 1),
        ];
        let (x, _) = find(&rows).expect("the next one");
        assert_eq!(x, 2);
    }

    #[test]
    fn of_equally_near_shapes_the_first_by_name_counts() {
        let rows = [winner(&here(), 4, 1, "today"), winner(&here(), 16, 2, "today")];
        // "w16" sorts before "w4".
        assert_eq!(find(&rows).map(|(x, _)| x), Some(2));
        assert_eq!(find(&[rows[1].clone(), rows[0].clone()]).map(|(x, _)| x), Some(2));
    }
}
