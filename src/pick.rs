//! Which kernel runs a node: by the user's order of preference, or by measured time.
//!
//! A [`Place`] says where and how a kernel may run: target, precision, layout. [`Pick::Preference`]
//! grades every kernel against every place of a list, the first place being the most wanted:
//!
//! ```text
//! score(kernel, place) = (target same) M + (precision same) M/2 + (layout same) M/4,
//!                        doubled if the node's tensors are stored as the kernel's
//! grade(kernel) = max over places i of n: score(kernel, place i) * (n - i) / n
//! ```
//!
//! with `M = 2^31 - 1` and whole divisions. The kernel of the highest grade wins, the first of
//! several; for one kernel, the first of several places counts.
//!
//! Source: `KernelGrade` of Paddle-Lite's `static_kernel_pick_pass.h`, as described in ysh329's
//! *paddlelite底层backend的kernel选择策略* (2020). Its prose gives precision 1/4 and layout 1/8;
//! its code divides by the enumerators `1 << 1` and `1 << 2`, and the code is followed here: 1/2
//! and 1/4. Its shortened code compares places for equality; as in the file itself, a place that
//! leaves something open matches anything there, and a tensor of undecided storage any kernel.
//! Grades are compared as exact integers, where the source rounds to `float`.

mod candidates;
pub(crate) mod network;

pub(crate) use candidates::{on_cpu, on_device};

use crate::dtype::{DType, Precision};
use crate::error::{Error, Result};
use crate::layout::Layout;
use std::cmp::Reverse;
use std::fmt;
use std::time::Duration;

/// What runs a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Target {
    /// WGSL through wgpu.
    Wgpu,
    /// OpenCL C through OpenCL.
    OpenCl,
    /// The CPU.
    Cpu,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Target::Wgpu => "wgpu",
            Target::OpenCl => "opencl",
            Target::Cpu => "cpu",
        })
    }
}

/// Where and how a node may run, for [`crate::Picking::Preference`]. A field that is `None` allows anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Place {
    /// What runs it.
    pub target: Option<Target>,
    /// Storage and arithmetic.
    pub precision: Option<Precision>,
    /// How its feature maps, or the right matrix of a product, lie in memory.
    pub layout: Option<Layout>,
}

impl Place {
    /// A place of exactly this target, precision and layout.
    ///
    /// ```
    /// use diptych::{Layout, Picking, Place, Precision, SessionOptions, Target};
    ///
    /// // Images before buffers, where there is OpenCL.
    /// let images = Place::new(Target::OpenCl, Precision::F32, Layout::Image2d);
    /// let options = SessionOptions { pick: Picking::Preference(vec![images]), ..Default::default() };
    /// # let _ = options;
    /// ```
    pub const fn new(target: Target, precision: Precision, layout: Layout) -> Self {
        Place { target: Some(target), precision: Some(precision), layout: Some(layout) }
    }
}

/// A kernel, and where and how it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct KernelPlace {
    /// The op that it computes.
    pub op: &'static str,
    /// The kernel variant.
    pub variant: &'static str,
    /// What runs it.
    pub target: Target,
    /// Storage and arithmetic.
    pub precision: Precision,
    /// How its feature maps, or the right matrix of a product, lie in memory. Of a conversion, the
    /// layout that it writes.
    pub layout: Layout,
}

impl fmt::Display for KernelPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let KernelPlace { op, variant, target, precision, layout } = self;
        write!(f, "{op}_{variant} ({target}, {precision}, {layout})")
    }
}

/// A kernel that is considered for a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// The kernel.
    pub kernel: KernelPlace,
    /// What it reads its input as, and what it stores its output as.
    pub tensors: [DType; 2],
    /// Why it cannot serve the node, if it cannot.
    pub obstacle: Option<String>,
}

/// How the tensors of a node are stored already; `None` where that is still open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Tensors {
    /// The input.
    pub input: Option<DType>,
    /// The output.
    pub output: Option<DType>,
}

impl Tensors {
    fn stored_as(self, [input, output]: [DType; 2]) -> bool {
        self.input.is_none_or(|found| found == input) && self.output.is_none_or(|found| found == output)
    }
}

/// How a kernel is picked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum Pick {
    /// By the grade against these places, the most wanted first. A target that no place has is not
    /// used: a list without the CPU never falls back to it.
    Preference(Vec<Place>),
    /// By time: each kernel with a measured time, or `None` where it gave no right answer. Of
    /// several times of one kernel the shortest counts. A kernel that is not listed is not used.
    Measured(Vec<(KernelPlace, Option<Duration>)>),
}

/// How well a kernel suits its best place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Grade {
    /// The score at that place, without the place's weight.
    pub score: u64,
    /// The place's index in the list of `places`.
    pub place: usize,
    /// The length of that list.
    pub places: usize,
    /// Whether target, precision, layout and the node's tensors are the same.
    pub same: [bool; 4],
}

/// The score of the same target; see [`self`].
const SAME_TARGET_SCORE: u64 = i32::MAX as u64;

impl Grade {
    /// The score times the place's weight, `(n - i) / n`.
    pub(crate) fn value(&self) -> f64 {
        self.weighted() as f64 / self.places.max(1) as f64
    }

    /// `n` times the value.
    fn weighted(&self) -> u128 {
        u128::from(self.score) * (self.places.saturating_sub(self.place) as u128)
    }

    /// The grade of `candidate` at the first of its best places.
    fn of(candidate: &Candidate, tensors: Tensors, places: &[Place]) -> Option<Grade> {
        let kernel = &candidate.kernel;
        let same_tensors = tensors.stored_as(candidate.tensors);
        let grades = places.iter().enumerate().map(|(index, place)| {
            let target = place.target.is_none_or(|target| target == kernel.target);
            let precision = place.precision.is_none_or(|precision| precision == kernel.precision);
            let layout = place.layout.is_none_or(|layout| layout == kernel.layout);
            let parts = [
                (target, SAME_TARGET_SCORE),
                (precision, SAME_TARGET_SCORE / 2),
                (layout, SAME_TARGET_SCORE / 4),
            ];
            let score: u64 = parts.into_iter().filter_map(|(same, part)| same.then_some(part)).sum();
            Grade {
                score: if same_tensors { 2 * score } else { score },
                place: index,
                places: places.len(),
                same: [target, precision, layout, same_tensors],
            }
        });
        // The first of several equal ones, which `max_by_key` would not give.
        grades.min_by_key(|grade| Reverse(grade.weighted()))
    }
}

impl fmt::Display for Grade {
    /// In units of the score of the same target.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = ["target", "precision", "layout", "tensor storage"];
        let same: Vec<&str> =
            names.into_iter().zip(self.same).filter_map(|(name, same)| same.then_some(name)).collect();
        let same = if same.is_empty() { "nothing".to_owned() } else { same.join(", ") };
        let (grade, place) = (self.value() / SAME_TARGET_SCORE as f64, self.place + 1);
        write!(f, "grade {grade:.3} at place {place} of {}: same {same}", self.places)
    }
}

/// What became of a candidate, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It was graded.
    Grade(Grade),
    /// It was timed.
    Time(Duration),
    /// It cannot be used, for this reason.
    Refused(String),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Grade(grade) => grade.fmt(f),
            Verdict::Time(time) => write!(f, "measured {:.3} us", time.as_secs_f64() * 1e6),
            Verdict::Refused(reason) => f.write_str(reason),
        }
    }
}

/// The kernel that was picked. `Display` says why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Picked {
    /// The kernel that runs the node.
    pub winner: KernelPlace,
    /// Every candidate with its verdict, the winner first, then by falling grade or rising time,
    /// then those that cannot be used.
    pub ranking: Vec<(KernelPlace, Verdict)>,
}

impl fmt::Display for Picked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (kernel, verdict)) in self.ranking.iter().enumerate() {
            let before = if index == 0 { "picked" } else { "\n   not" };
            write!(f, "{before} {kernel}: {verdict}")?;
        }
        Ok(())
    }
}

impl Pick {
    /// The kernel that runs the node whose tensors are stored as `tensors`; `node` names it in
    /// errors.
    ///
    /// # Errors
    /// If no kernel can be used; the error lists every candidate with its reason.
    pub(crate) fn pick(&self, node: &str, tensors: Tensors, candidates: &[Candidate]) -> Result<Picked> {
        let mut ranking: Vec<(KernelPlace, Verdict)> =
            candidates.iter().map(|candidate| (candidate.kernel, self.verdict(candidate, tensors))).collect();
        // Stable: of equal candidates the first stays first.
        crate::sorted::sort_by_key(&mut ranking, |(_, verdict)| match verdict {
            Verdict::Grade(grade) => (0, Reverse(grade.weighted()), Duration::ZERO),
            Verdict::Time(time) => (0, Reverse(0), *time),
            Verdict::Refused(_) => (1, Reverse(0), Duration::ZERO),
        });
        match ranking.first() {
            Some((winner, Verdict::Grade(_) | Verdict::Time(_))) => Ok(Picked { winner: *winner, ranking }),
            None => Err(Error::unsupported(node, "there is no candidate kernel")),
            Some(_) => {
                let reasons = ranking.iter().map(|(kernel, verdict)| format!("{kernel}: {verdict}"));
                Err(Error::unsupported(node, reasons.collect::<Vec<_>>().join("; ")))
            }
        }
    }

    fn verdict(&self, candidate: &Candidate, tensors: Tensors) -> Verdict {
        if let Some(obstacle) = &candidate.obstacle {
            return Verdict::Refused(obstacle.clone());
        }
        let kernel = &candidate.kernel;
        match self {
            Pick::Preference(places) => {
                let wanted = |place: &Place| place.target.is_none_or(|target| target == kernel.target);
                match Grade::of(candidate, tensors, places) {
                    Some(grade) if places.iter().any(wanted) => Verdict::Grade(grade),
                    _ => Verdict::Refused(format!("no place of the preference has target {}", kernel.target)),
                }
            }
            Pick::Measured(times) => {
                let own = || times.iter().filter(|(timed, _)| timed == kernel).map(|(_, time)| time);
                match (own().flatten().min(), own().next()) {
                    (Some(time), _) => Verdict::Time(*time),
                    (None, Some(_)) => Verdict::Refused("measured, with no valid time".to_owned()),
                    (None, None) => Verdict::Refused("not measured".to_owned()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
