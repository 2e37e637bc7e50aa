//! How far a tuning run is, and what it found, node by node.

use crate::layout::Layout;
use crate::ops::Choice;
use crate::tune::Trial;
use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

/// How far a tuner is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TunerProgress {
    /// Problems that are over: their search is at its end, or the time is.
    pub done: usize,
    /// Problems with a verdict, which a search that goes on may change.
    pub visited: usize,
    /// Problems there are.
    pub problems: usize,
    /// Candidates tried of the present problem.
    pub tried: usize,
    /// Candidates of the present problem.
    pub candidates: usize,
}

impl TunerProgress {
    /// Whether everything is tuned.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Function, Graph, Shape, Term, Tuner};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 8, 8, 4))?;
    /// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// # graph.output(double)?;
    /// # let context = Context::new(Backend::Auto)?;
    /// # let Ok(mut tuner) = Tuner::new(&context) else { return Ok::<(), diptych::Error>(()) };
    /// tuner.begin(&graph)?;
    /// while !tuner.step(std::time::Duration::from_millis(20))?.is_finished() {
    ///     println!("{} problems are done", tuner.report().problems.len());
    /// }
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn is_finished(&self) -> bool {
        self.done == self.problems
    }
}

/// The verdict on one problem, and the nodes it serves.
#[derive(Debug, Clone, PartialEq)]
pub struct ProblemReport {
    /// The nodes of this problem.
    pub nodes: Vec<String>,
    /// The op.
    pub op: &'static str,
    /// The problem, as the record's key has it.
    pub problem: String,
    /// The layout of the feature maps.
    pub layout: Layout,
    /// What an untuned session runs.
    pub default: Choice,
    /// What to run: the default where nothing is significantly faster. None if no candidate gives
    /// the right result.
    pub choice: Option<Choice>,
    /// The default's median time.
    pub default_time: Option<Duration>,
    /// The choice's median time.
    pub time: Option<Duration>,
    /// The default's time over the choice's, free of the clock's drift.
    pub speed_up: f64,
    /// The interval of the speed-up, where the default was beaten.
    pub interval: Option<[f64; 2]>,
    /// Whether the budget or a cancellation ended its search early: the next tuner goes on with it.
    pub cut_short: bool,
    /// Time spent.
    pub spent: Duration,
    /// Every candidate that was looked at, with its outcome.
    #[doc(hidden)]
    pub trials: Vec<Trial>,
}

/// The most candidates of a problem that are listed as failed.
const MAX_FAILURES: usize = 5;

impl ProblemReport {
    /// The default's and the choice's times, as often as there are nodes.
    fn times(&self, nodes: u32) -> Option<(Duration, Duration)> {
        Some((self.default_time?.checked_mul(nodes)?, self.time?.checked_mul(nodes)?))
    }

    fn title(&self) -> String {
        match self.layout {
            Layout::C4 => format!("{} {}", self.op, self.problem),
            layout => format!("{} {} {layout}", self.op, self.problem),
        }
    }

    /// Its row in a table.
    #[doc(hidden)]
    pub fn cells(&self) -> [String; 7] {
        let choice = match &self.choice {
            Some(choice) if *choice == self.default => format!("default: {choice}"),
            Some(choice) => choice.to_string(),
            None => "none gives the right result".to_owned(),
        };
        [
            self.nodes.len().to_string(),
            self.title(),
            self.trials.len().to_string(),
            microseconds(self.default_time),
            microseconds(self.time),
            format!("{:.2}", self.speed_up),
            format!("{choice}{}", if self.cut_short { " (cut short)" } else { "" }),
        ]
    }

    /// What is said of a default whose output was not always the same, and of what takes its place.
    #[doc(hidden)]
    pub fn flaky_default(&self) -> Option<String> {
        let default = self.trials.iter().find(|trial| trial.choice == self.default)?;
        let repeats = default.repeats.filter(|repeats| repeats.differed > 0)?;
        let instead = match &self.choice {
            Some(choice) if *choice != self.default => format!("{choice} takes its place"),
            _ => "no kernel that is steady was found in its place".to_owned(),
        };
        Some(format!("the default {} is flaky: {repeats}; {instead}", self.default))
    }

    /// What is said of a flaky default, then a line for each of the first candidates that failed, and for how many more did.
    #[doc(hidden)]
    pub fn failures(&self) -> Vec<String> {
        let failed: Vec<&Trial> = self.trials.iter().filter(|trial| trial.outcome.is_defect()).collect();
        let mut lines: Vec<String> = failed
            .iter()
            .take(MAX_FAILURES)
            .map(|trial| format!("{}: {}", trial.choice, trial.outcome))
            .collect();
        if let Some(more) = failed.len().checked_sub(MAX_FAILURES).filter(|more| *more > 0) {
            lines.push(format!("and {more} more that failed"));
        }
        self.flaky_default()
            .into_iter()
            .chain(lines)
            .map(|line| format!("{}: {line}", self.title()))
            .collect()
    }
}

/// What a tuning run found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    /// The device.
    pub device: String,
    /// Its clock.
    pub clock: String,
    /// Problems in the order of the nodes; equal nodes share one.
    pub problems: Vec<ProblemReport>,
    /// Time spent in all.
    pub spent: Duration,
    /// Rows that the record has in memory and not in its file, because another process holds the file's lock
    /// ([`Database::unsaved`](crate::Database::unsaved)).
    pub unsaved: usize,
}

impl Report {
    /// The sum over the nodes of the default's and the choice's median times, where both are known. A node counts once: with
    /// feature maps in buffers, if it has such a problem.
    pub fn totals(&self) -> (Duration, Duration) {
        self.counted()
            .into_iter()
            .filter_map(|(problem, nodes)| problem.times(nodes))
            .fold((Duration::ZERO, Duration::ZERO), |(default, tuned), (own_default, own_tuned)| {
                (default + own_default, tuned + own_tuned)
            })
    }

    /// The problems that the sums are of, each with how many nodes it stands for.
    fn counted(&self) -> Vec<(&ProblemReport, u32)> {
        let mut seen = HashSet::new();
        let mut counted = Vec::with_capacity(self.problems.len());
        for layout in [Layout::C4, Layout::Nhwc, Layout::Image2d] {
            for problem in self.problems.iter().filter(|problem| problem.layout == layout) {
                let own = problem.nodes.iter().filter(|node| seen.insert(node.as_str())).count();
                counted.push((problem, u32::try_from(own).unwrap_or(u32::MAX)));
            }
        }
        counted
    }
}

fn microseconds(time: Option<Duration>) -> String {
    time.map_or_else(|| "-".to_owned(), |time| format!("{:.1}", time.as_secs_f64() * 1e6))
}

impl Report {
    /// The heads of [`ProblemReport::cells`].
    #[doc(hidden)]
    pub const HEADS: [&str; 7] =
        ["nodes", "problem", "tried", "default us", "tuned us", "speed-up", "choice"];

    /// The sums of both times and over which nodes, their ratio, how many searches are not at their end, and how long the
    /// tuning took.
    #[doc(hidden)]
    pub fn summary(&self) -> String {
        let (default, tuned) = self.totals();
        let counted = self.counted();
        let nodes = |timed: bool| {
            let own = counted.iter().filter(|(problem, _)| !timed || problem.times(1).is_some());
            own.map(|(_, nodes)| nodes).sum::<u32>()
        };
        let (all, timed) = (nodes(false), nodes(true));
        let times = match (timed, tuned.is_zero()) {
            (0, _) => "no node was timed".to_owned(),
            (_, true) => format!("{timed} of {all} nodes were timed, and take no time"),
            _ => format!(
                "sum over {timed} of {all} nodes: {} us untuned, {} us tuned ({:.2}x)",
                microseconds(Some(default)),
                microseconds(Some(tuned)),
                default.as_secs_f64() / tuned.as_secs_f64()
            ),
        };
        let open = self.problems.iter().filter(|problem| problem.cut_short).count();
        let open = match open {
            0 => String::new(),
            open => format!(
                "; {open} of {} searches were cut short, and go on where they are tuned again",
                self.problems.len()
            ),
        };
        let unsaved = match self.unsaved {
            0 => String::new(),
            rows => format!("; {rows} rows are not in the record's file, whose lock another process holds"),
        };
        format!("{times}{open}; tuning took {:.1} s{unsaved}", self.spent.as_secs_f64())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} ({})", self.device, self.clock)?;
        let rows: Vec<[String; 7]> = self.problems.iter().map(ProblemReport::cells).collect();
        let mut widths = Self::HEADS.map(str::len);
        for row in &rows {
            widths.iter_mut().zip(row).for_each(|(width, cell)| *width = cell.len().max(*width));
        }
        let failures = self.problems.iter().map(ProblemReport::failures);
        let lines = std::iter::once((Self::HEADS.map(str::to_owned), Vec::new()))
            .chain(rows.into_iter().zip(failures));
        for ([nodes, problem, tried, default, tuned, speed_up, choice], failures) in lines {
            let [a, b, c, d, e, g, _] = widths;
            writeln!(
                f,
                "{nodes:>a$}  {problem:b$}  {tried:>c$}  {default:>d$}  {tuned:>e$}  {speed_up:>g$}  {choice}"
            )?;
            for line in failures {
                writeln!(f, "       {line}")?;
            }
        }
        f.write_str(&self.summary())
    }
}
