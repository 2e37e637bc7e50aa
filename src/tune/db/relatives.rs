//! What is known of problems like one that is to be tuned.

use super::lookup::NEAR;
use super::{Database, Verdict};
use crate::ops::Choice;
use crate::sorted;
use crate::tune::key::{DeviceKey, ProblemKey, TUNER_VERSION};

/// How much a time under another API counts.
const OTHER_API_WEIGHT: f64 = 0.7;

/// A choice that was timed for a problem like the one that was asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Relative {
    /// The choice. Whether it fits the problem that was asked for is not known.
    pub choice: Choice,
    /// `ln` of its time over the best one's of its problem.
    pub behind: f64,
    /// How much it says: 1 for the same problem on this device, half of that for one twice as large
    /// ([`ProblemKey::distance`]), less under another API.
    pub weight: f64,
    /// How far its problem is ([`ProblemKey::distance`]).
    pub distance: f64,
    /// Whether it was timed under another API: the kernel that was is another text.
    pub other_api: bool,
}

impl Database {
    /// The choices that were timed for `problem` and for near ones ([`NEAR`]) on `device` or on the
    /// same GPU under another API: those that say most first, and of one problem the fastest first.
    ///
    /// They are hints for a search. Their kernels may have changed since, so none is to be used
    /// without being timed.
    #[doc(hidden)]
    pub fn relatives(&self, device: &DeviceKey, problem: &ProblemKey) -> Vec<Relative> {
        let mut found = Vec::new();
        for ((other, near), group) in &self.groups {
            let api = match other {
                other if other == device => 1.0,
                other if other.api != device.api && other.same_gpu(device) => OTHER_API_WEIGHT,
                _ => continue,
            };
            let Some(distance) = problem.distance(near).filter(|&distance| distance <= NEAR) else {
                continue;
            };
            let timed: Vec<(Choice, f64)> = group
                .values()
                .map(|entry| &entry.row)
                .filter(|row| row.key.tuner == TUNER_VERSION)
                .filter(|row| matches!(row.verdict, Verdict::Winner | Verdict::Loser))
                .filter_map(|row| {
                    let choice = row.key.choice.resolve(&problem.op)?;
                    Some((choice, row.time?.ratio()?.max(1e-9).ln()))
                })
                .collect();
            let best = timed.iter().map(|(_, time)| *time).fold(f64::INFINITY, f64::min);
            found.extend(timed.into_iter().map(|(choice, time)| Relative {
                choice,
                behind: time - best,
                weight: api * (-distance).exp2(),
                distance,
                other_api: other.api != device.api,
            }));
        }
        let compare =
            |a: &Relative, b: &Relative| b.weight.total_cmp(&a.weight).then(a.behind.total_cmp(&b.behind));
        sorted::sort(&mut found, compare);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::db::tests::{device, problem, row};

    #[test]
    fn near_problems_and_the_other_api_say_something_and_strangers_nothing() {
        let here = device("NVIDIA H200", "580", "Vulkan");
        let opencl = device("NVIDIA H200", "580 CL", "OpenCL");
        let stranger = device("NVIDIA T4", "580", "Vulkan");
        let timed = |device: &DeviceKey, width, x, verdict, time: u64| {
            let mut row = row(device, width, x, "text", verdict, 1);
            let timing = row.time.get_or_insert(crate::tune::db::Timing {
                median_ns: time,
                p10_ns: time,
                p90_ns: time,
                samples: 5,
                default_ns: None,
            });
            (timing.median_ns, timing.default_ns) = (time, Some(1000));
            row
        };
        let mut database = Database::in_memory();
        database
            .append_all([
                timed(&here, 16, 1, Verdict::Loser, 800),
                timed(&here, 16, 2, Verdict::Winner, 400),
                timed(&opencl, 8, 3, Verdict::Winner, 700),
                timed(&stranger, 8, 4, Verdict::Winner, 100),
                timed(&here, 512, 5, Verdict::Winner, 100),
                timed(&here, 16, 6, Verdict::Crashed, 100),
            ])
            .expect("memory takes all");
        let found = database.relatives(&here, &problem(8));
        let told: Vec<(u32, f64, f64, bool)> = found
            .iter()
            .map(|hint| (hint.choice.work_group[0], hint.behind, hint.weight, hint.other_api))
            .collect();
        assert_eq!(told, [(3, 0.0, 0.7, true), (2, 0.0, 0.5, false), (1, 2f64.ln(), 0.5, false)]);
    }
}
