//! How long a device has been busy: a GPU that idles lowers its clock, and takes its time to raise
//! it again.
//!
//! On an NVIDIA H200 under Vulkan a depthwise convolution took 6.7 us, 16.9 us after a second of
//! idling, and 6.7 us again only after some 300 ms of unbroken work; with a short sample every
//! 20 ms the clock stayed low for good. After 200 ms without work it was
//! still high. So heat is busy time less half of the idle time, between none and [`HOT`].

use crate::clock::Instant;
use std::time::Duration;

/// Busy time after which the clock is as high as it gets.
pub(crate) const HOT: Duration = Duration::from_millis(400);

/// A device's recent work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Heat {
    level: Duration,
    /// The end of the last work.
    until: Option<Instant>,
}

impl Heat {
    /// The device worked for `busy` of the time from `from` to `to`.
    pub fn worked(&mut self, from: Instant, to: Instant, busy: Duration) {
        let idle = to.saturating_duration_since(from).saturating_sub(busy);
        self.level = (self.at(from) + busy).saturating_sub(idle / 2).min(HOT);
        self.until = Some(to);
    }

    /// The heat at `now`.
    pub fn at(&self, now: Instant) -> Duration {
        let idle = self.until.map_or(HOT, |until| now.saturating_duration_since(until));
        self.level.saturating_sub(idle / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_heats_and_idling_cools() {
        let start = Instant::now();
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let mut heat = Heat::default();
        assert_eq!(heat.at(start), Duration::ZERO);
        let whole = Duration::from_millis;
        heat.worked(at(0), at(100), whole(100));
        heat.worked(at(110), at(210), whole(100));
        assert_eq!(heat.at(at(210)), Duration::from_millis(195));
        assert_eq!(heat.at(at(300)), Duration::from_millis(150));
        // A quarter of the time: not enough to stay warm.
        heat.worked(at(300), at(400), whole(25));
        assert_eq!(heat.at(at(400)), Duration::from_micros(137_500));
        heat.worked(at(400), at(5000), whole(4600));
        assert_eq!(heat.at(at(5000)), HOT, "no hotter than hot");
        assert_eq!(heat.at(at(6000)), Duration::ZERO);
    }
}
