//! One line of the record: a candidate, what came of it, and where that was learnt.

use crate::tune::key::{Key, SourceHash, TUNER_VERSION};
use crate::tune::repeat::Repeats;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The longest reason that is kept, in bytes: compilers can be talkative.
const MAX_REASON_BYTES: usize = 2000;

/// What came of a candidate.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The choice for this problem.
    Winner,
    /// Right, but not the choice.
    Loser,
    /// Its output was not the oracle's.
    Wrong {
        /// The first element that differs, with both values.
        detail: String,
    },
    /// It breaks a constraint of the kernel or the device; nothing was run.
    Rejected {
        /// The constraint, with its values.
        reason: String,
    },
    /// It did not compile, or the driver refused to run it.
    Failed {
        /// The compiler's or driver's words.
        reason: String,
    },
    /// The process did not survive it.
    Crashed,
    /// One of several that were under way when the process died. It is tried again, alone.
    Suspect,
    /// It ran past its time limit.
    TimedOut,
}

impl Verdict {
    /// Whether the candidate must not be tried again: it cannot run, or its result is wrong.
    pub fn bars(&self) -> bool {
        !matches!(self, Verdict::Winner | Verdict::Loser | Verdict::Suspect)
    }

    /// Its name: `winner`, `loser`, `wrong` and so on.
    pub fn name(&self) -> &'static str {
        match self {
            Verdict::Winner => "winner",
            Verdict::Loser => "loser",
            Verdict::Wrong { .. } => "wrong",
            Verdict::Rejected { .. } => "rejected",
            Verdict::Failed { .. } => "failed",
            Verdict::Crashed => "crashed",
            Verdict::Suspect => "suspect",
            Verdict::TimedOut => "timed out",
        }
    }

    /// Why, where there is more to say than the name.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Verdict::Wrong { detail: text }
            | Verdict::Rejected { reason: text }
            | Verdict::Failed { reason: text } => Some(text),
            _ => None,
        }
    }

    fn reason_mut(&mut self) -> Option<&mut String> {
        match self {
            Verdict::Wrong { detail: text }
            | Verdict::Rejected { reason: text }
            | Verdict::Failed { reason: text } => Some(text),
            _ => None,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason() {
            Some(reason) => write!(f, "{}: {reason}", self.name()),
            None => f.write_str(self.name()),
        }
    }
}

/// How long a candidate took, in nanoseconds of its clock per launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Timing {
    /// The median of the samples.
    pub median_ns: u64,
    /// A tenth of the samples are below this.
    pub p10_ns: u64,
    /// A tenth of the samples are above this.
    pub p90_ns: u64,
    /// How many measurements there were.
    pub samples: u32,
    /// The median of the problem's default choice, measured in the same rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_ns: Option<u64>,
}

impl Timing {
    /// The time as a share of the default's: below 1 is faster.
    pub fn ratio(&self) -> Option<f64> {
        let default = self.default_ns.filter(|&default| default > 0)?;
        Some(self.median_ns as f64 / default as f64)
    }
}

/// How a row came to be in a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Part of a table that came with an application or a crate.
    Shipped,
    /// From an imported file.
    Imported,
    /// Measured by the tuner that wrote it.
    Measured,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Origin::Shipped => "shipped",
            Origin::Imported => "imported",
            Origin::Measured => "measured",
        })
    }
}

/// Where a row was learnt. Nothing in it names a host or a person.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Provenance {
    /// How it came here.
    pub origin: Origin,
    /// More about it, such as the name of the table it was shipped in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// The version of this crate that measured it.
    #[serde(rename = "crate")]
    pub crate_version: String,
    /// When it was measured, in milliseconds since 1970-01-01 UTC.
    pub unix_ms: u64,
}

impl Provenance {
    /// Measured now, by this version of the crate.
    pub fn measured() -> Self {
        Provenance {
            origin: Origin::Measured,
            note: String::new(),
            crate_version: env!("CARGO_PKG_VERSION").to_owned(),
            unix_ms: crate::clock::since_1970(),
        }
    }
}

/// A row: one candidate for one problem on one device.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Row {
    /// What the verdict depends on.
    pub key: Key,
    /// What came of the candidate.
    pub verdict: Verdict,
    /// How long it took; none for one that was not timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Timing>,
    /// Whether its search was cut short: a winner that counts until the search goes on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open: bool,
    /// How often its output was looked at again, and differed. A row whose output differed is [`Verdict::Wrong`], also for
    /// versions that do not know this field; those older than the field have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<Repeats>,
    /// Where this was learnt.
    pub from: Provenance,
}

impl Row {
    /// A row measured now. Reasons longer than 2000 bytes are cut.
    pub fn measured(key: Key, verdict: Verdict, time: Option<Timing>) -> Self {
        Row { key, verdict, time, open: false, repeats: None, from: Provenance::measured() }.shortened()
    }

    /// Sets whether the row's search was cut short.
    #[must_use]
    pub fn with_open(mut self, open: bool) -> Self {
        self.open = open;
        self
    }

    /// Sets how often the row's output was checked again, and how often it differed.
    #[must_use]
    pub fn with_repeats(mut self, repeats: Option<Repeats>) -> Self {
        self.repeats = repeats;
        self
    }

    /// How often the output differed, of a candidate that is flaky.
    pub fn flaky(&self) -> Option<Repeats> {
        self.repeats.filter(|repeats| repeats.differed > 0)
    }

    /// The verdict with what is noted about it.
    pub fn reason(&self) -> String {
        let verdict = match (self.flaky(), self.verdict.reason()) {
            (Some(repeats), Some(detail)) => format!("flaky: {repeats}: {detail}"),
            (Some(repeats), None) => format!("flaky: {repeats}"),
            (None, _) => self.verdict.to_string(),
        };
        match self.from.note.as_str() {
            "" => verdict,
            note => format!("{verdict}: {note}"),
        }
    }

    /// The row with its reason and note cut to what a database keeps.
    pub(super) fn shortened(mut self) -> Self {
        if let Some(reason) = self.verdict.reason_mut() {
            cut(reason);
        }
        cut(&mut self.from.note);
        self
    }

    /// Whether the row still holds: of this tuner version, and of a kernel text that is still
    /// `source`.
    pub(super) fn holds(&self, source: SourceHash) -> bool {
        self.key.tuner == TUNER_VERSION && self.key.source == Some(source)
    }

    /// The row as its line, without the line's end.
    pub(super) fn line(&self) -> crate::Result<String> {
        serde_json::to_string(self).map_err(|error| crate::Error::Internal(format!("a row: {error}")))
    }
}

pub(super) fn cut(text: &mut String) {
    if text.len() > MAX_REASON_BYTES {
        let mut end = MAX_REASON_BYTES - '…'.len_utf8();
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('…');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_reasons_are_cut_between_characters() {
        for length in MAX_REASON_BYTES - 5..MAX_REASON_BYTES + 5 {
            let mut text = format!("{}é{}", "x".repeat(length - 6), "y".repeat(10));
            cut(&mut text);
            assert!(text.len() <= MAX_REASON_BYTES && text.ends_with(['…', 'y']), "{length}: {}", text.len());
        }
    }

    #[test]
    fn a_ratio_needs_a_default_that_took_time() {
        let timing = Timing { median_ns: 50, p10_ns: 40, p90_ns: 60, samples: 9, default_ns: Some(100) };
        assert_eq!(timing.ratio(), Some(0.5));
        assert_eq!(Timing { default_ns: None, ..timing }.ratio(), None);
        assert_eq!(Timing { default_ns: Some(0), ..timing }.ratio(), None);
    }
}
