//! What some drivers need while kernels are timed: what follows from the quirks in the table of known faults
//! (`limits/faults/table.rs`).
//!
//! Source: TensorFlow Lite's `cl_command_queue.cc` (`GetBestWorkGroupIndex`).
//!
//! | quirk | what is done |
//! |---|---|
//! | events can be wrong | wait after each launch; a sample has at least 5 runs, those above 100 s or under a tenth of the average are dropped |
//! | memory grows with the events in flight | wait for every 8th |
//! | one program is compiled at a time | nothing is compiled ahead |
//! | a kernel keeps a pool of its trial launches | make kernels anew after tuning |
//!
//! Drivers that run kernels on the CPU compile on the cores that run them: there nothing is compiled ahead either.

use crate::device::DeviceInfo;
use crate::limits::faults::{Faults, Quirk};
use std::time::Duration;

/// A time that no kernel takes.
const MAX_PLAUSIBLE_TIME: Duration = Duration::from_secs(100);

/// Runs of one sample where events can be wrong: one bad event among them is distinguished.
const MIN_RUNS: u32 = 5;

/// Kernels compiled ahead of need at most.
const MAX_COMPILED_AHEAD: usize = 12;

/// How many kernels to compile side by side ahead of need, on a machine with this many cores.
pub fn compilers(info: &DeviceInfo, cores: usize) -> usize {
    let one_at_a_time = info.limits.faults.has(Quirk::CompilesOneAtATime);
    if one_at_a_time || info.is_cpu { 0 } else { cores.saturating_sub(1).min(MAX_COMPILED_AHEAD) }
}

/// How to time on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Policy {
    /// Times may be wrong and are filtered.
    pub filter: bool,
    /// Launches that may be in flight at once; none is no limit.
    pub in_flight: Option<u32>,
    /// Kernels are made anew after tuning.
    pub recreate: bool,
}

impl Policy {
    /// What follows from a device's faults.
    pub fn of(faults: Faults) -> Self {
        let filter = faults.has(Quirk::UnreliableEvents);
        let eighth = faults.has(Quirk::WaitEveryEighthEvent).then_some(8);
        Policy {
            filter,
            in_flight: if filter { Some(1) } else { eighth },
            recreate: faults.has(Quirk::RecreateKernelAfterTuning),
        }
    }

    /// Runs of one sample, where `wanted` would do on a clock without quirks.
    pub fn runs(&self, wanted: u32) -> u32 {
        if self.filter { wanted.max(MIN_RUNS) } else { wanted }
    }

    /// Whether to wait after launch number `launch`, counted from 1.
    pub fn waits_after(&self, launch: u32) -> bool {
        self.in_flight.is_some_and(|period| period > 0 && launch.is_multiple_of(period))
    }

    /// Which times are to be believed: all of them, or without quirk-ridden ones. The average is
    /// that of the times up to 100 s.
    pub fn trusted(&self, times: &[Duration]) -> Vec<bool> {
        if !self.filter {
            return vec![true; times.len()];
        }
        let sane: Vec<f64> =
            times.iter().filter(|time| **time < MAX_PLAUSIBLE_TIME).map(Duration::as_secs_f64).collect();
        let average = sane.iter().sum::<f64>() / sane.len().max(1) as f64;
        times.iter().map(|time| *time < MAX_PLAUSIBLE_TIME && time.as_secs_f64() >= 0.1 * average).collect()
    }

    /// The average of the times that are to be believed, if there are any.
    pub fn average(&self, times: &[Duration]) -> Option<Duration> {
        let kept: Vec<Duration> = self
            .trusted(times)
            .into_iter()
            .zip(times)
            .filter(|(trusted, _)| *trusted)
            .map(|(_, time)| *time)
            .collect();
        let count = u32::try_from(kept.len()).ok().filter(|count| *count > 0)?;
        Some(kept.iter().sum::<Duration>() / count)
    }

    /// The index of the shortest believable time: the rule that the seed's tuner picks a work-group
    /// by.
    pub fn fastest(&self, times: &[Duration]) -> Option<usize> {
        let trusted = self.trusted(times);
        (0..times.len()).filter(|&index| trusted[index]).min_by_key(|&index| (times[index], index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::faults::Identified;
    use crate::limits::{Family, MaliArchitecture};

    fn policy(family: Family) -> Policy {
        Policy::of(Faults::of(&Identified { family, name: "", api: "OpenCL", driver: "" }))
    }

    fn milliseconds(times: &[u64]) -> Vec<Duration> {
        times.iter().map(|&time| Duration::from_millis(time)).collect()
    }

    #[test]
    fn each_family_has_its_policy() {
        let none = Policy::default();
        assert_eq!(policy(Family::Nvidia), none);
        assert_eq!(policy(Family::Adreno(630)), none);
        assert_eq!(policy(Family::Adreno(330)), Policy { filter: true, in_flight: Some(1), recreate: false });
        assert_eq!(
            policy(Family::Mali(MaliArchitecture::Bifrost)),
            Policy { filter: false, in_flight: Some(8), recreate: true }
        );
    }

    #[test]
    fn adreno_3xx_drops_absurd_times_and_those_under_a_tenth_of_the_average() {
        let adreno = policy(Family::Adreno(330));
        // The average of the first four is 7.525 s.
        let times = milliseconds(&[10_000, 12_000, 100, 8_000, 200_000]);
        assert_eq!(adreno.trusted(&times), [true, true, false, true, false]);
        assert_eq!(adreno.fastest(&times), Some(3));
        assert_eq!(adreno.average(&times), Some(Duration::from_secs(10)));
        assert_eq!(policy(Family::Adreno(630)).fastest(&times), Some(2));
        assert_eq!(adreno.fastest(&milliseconds(&[150_000])), None);
        // A tenth of the average is kept: the rule is `time >= 0.1 average`.
        let edge = milliseconds(&[1, 19]);
        assert_eq!(adreno.fastest(&edge), Some(0));
    }

    /// A driver whose memory grows with each event in flight, and a pool that each kernel keeps.
    #[derive(Default)]
    struct FakeDriver {
        in_flight: u32,
        most_in_flight: u32,
        kernel_pool: u32,
    }

    impl FakeDriver {
        fn tune(&mut self, policy: Policy, launches: u32) {
            for launch in 1..=launches {
                self.in_flight += 1;
                self.kernel_pool += 1;
                self.most_in_flight = self.most_in_flight.max(self.in_flight);
                if policy.waits_after(launch) {
                    self.in_flight = 0;
                }
            }
            if policy.recreate {
                self.kernel_pool = 0;
            }
        }
    }

    #[test]
    fn mali_never_has_more_than_eight_events_in_flight_and_sheds_its_pool() {
        for (family, most, pool) in [
            (Family::Mali(MaliArchitecture::Valhall), 8, 0),
            (Family::Adreno(330), 1, 100),
            (Family::Nvidia, 100, 100),
        ] {
            let mut driver = FakeDriver::default();
            driver.tune(policy(family), 100);
            assert_eq!((driver.most_in_flight, driver.kernel_pool), (most, pool), "{family}");
        }
    }

    #[test]
    fn unreliable_events_ask_for_several_runs() {
        assert_eq!(policy(Family::Adreno(330)).runs(1), 5);
        assert_eq!(policy(Family::Adreno(330)).runs(64), 64);
        assert_eq!(policy(Family::Nvidia).runs(1), 1);
    }
}
