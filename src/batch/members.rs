//! The devices of a batch: what each of them takes, by how fast it was seen to be, and whether it is in order.

use crate::clock::Instant;
use crate::error::Error;
use std::sync::Arc;

/// How much the latest run counts in a device's time.
const LATEST: f64 = 0.3;

/// After so many requests that went to others while it ran nothing, a device counts as twice as fast as it was seen to
/// be: what was slow once is tried again.
const FORGOTTEN: f64 = 4096.0;
/// How often it is doubled at most.
const MOST_DOUBLED: f64 = 64.0;

/// A device below this part of the fastest one's speed is slow: it need not be kept busy to the last.
const SLOW: f64 = 0.5;

/// A slow device takes this part of its share. What it has begun holds up what is read behind it, in order, while the
/// others run out of work; and its time varies more than theirs, for it may compute on the cores that serve them.
const OF_SLOW: f64 = 0.25;

/// What is thought of a device.
#[derive(Debug, Clone, Default)]
pub(super) enum Standing {
    #[default]
    Good,
    /// A run of its failed. Another device tells whose fault it was.
    Suspect,
    /// It takes nothing any more.
    Out(Arc<Error>),
}

/// A device.
#[derive(Debug, Clone, Default)]
pub(super) struct Member {
    pub(super) standing: Standing,
    /// Seconds of a request, of late.
    time: Option<f64>,
    /// Requests that went to others since its last run was over.
    passed: u64,
    /// When its last run was over.
    ended: Option<Instant>,
    /// Runs under way.
    pub(super) under_way: usize,
    /// Requests of these runs.
    requests_under_way: usize,
    /// Requests that it answered.
    pub(super) requests: u64,
}

impl Member {
    pub(super) fn is_out(&self) -> bool {
        matches!(self.standing, Standing::Out(_))
    }

    pub(super) fn is_suspect(&self) -> bool {
        matches!(self.standing, Standing::Suspect)
    }

    /// Seconds of a request, if a run was seen.
    pub(super) fn time(&self) -> Option<f64> {
        self.time
    }

    /// Requests a second, if a run was seen.
    fn speed(&self) -> Option<f64> {
        Some((self.passed as f64 / FORGOTTEN).min(MOST_DOUBLED).exp2() / self.time?)
    }
}

/// The devices of a batch.
#[derive(Debug)]
pub(super) struct Members(Vec<Member>);

impl Members {
    pub(super) fn new(count: usize) -> Self {
        Members(vec![Member::default(); count])
    }

    pub(super) fn all(&self) -> &[Member] {
        &self.0
    }

    pub(super) fn get(&self, member: usize) -> Option<&Member> {
        self.0.get(member)
    }

    pub(super) fn get_mut(&mut self, member: usize) -> Option<&mut Member> {
        self.0.get_mut(member)
    }

    /// Whether others than this one may still run something.
    pub(super) fn has_others(&self, than: usize) -> bool {
        self.0.iter().enumerate().any(|(place, member)| place != than && !member.is_out())
    }

    /// Whether others than this one have runs under way.
    pub(super) fn others_run(&self, than: usize) -> bool {
        self.0.iter().enumerate().any(|(place, member)| place != than && member.under_way > 0)
    }

    /// Requests a second of the fastest device that was seen to run.
    fn fastest(&self) -> f64 {
        let good = self.0.iter().filter(|member| matches!(member.standing, Standing::Good));
        good.filter_map(Member::speed).reduce(f64::max).unwrap_or(1.0)
    }

    /// Whether this device was seen to be slow beside the others.
    pub(super) fn is_slow(&self, member: usize) -> bool {
        self.get(member).and_then(Member::speed).is_some_and(|speed| speed < SLOW * self.fastest())
    }

    /// How many of `waiting` requests this device takes, at most `most`: its share by speed of these and of those under
    /// way, so that all are done at about the same time; of a slow device less. Nothing, if the others finish all of them
    /// before it would finish one more. A device that was not yet seen to run begins with one.
    pub(super) fn share(&self, member: usize, waiting: usize, most: usize) -> usize {
        let most = most.min(waiting);
        let good =
            || self.0.iter().enumerate().filter(|(_, member)| matches!(member.standing, Standing::Good));
        if good().count() <= 1 {
            return most;
        }
        let fastest = self.fastest();
        let speed = |member: &Member| member.speed().unwrap_or(fastest);
        let total: f64 = good().map(|(_, member)| speed(member)).sum();
        let Some(own) = self.0.get(member) else { return 0 };
        if own.time.is_none() {
            return most.min(usize::from(own.under_way == 0));
        }
        let all = waiting + good().map(|(_, member)| member.requests_under_way).sum::<usize>();
        let slow = self.is_slow(member);
        // One that is tried again takes a request, however few there are.
        let part = if slow && (own.passed as f64) < FORGOTTEN { OF_SLOW } else { 1.0 };
        let share = (part * all as f64 * speed(own) / total).round() - own.requests_under_way as f64;
        // Of the fast ones any that has nothing to do may take the last request.
        let least = if !slow && own.under_way == 0 { 1.0 } else { 0.0 };
        (share.max(least) as usize).min(most)
    }

    /// A run of `requests` begins.
    pub(super) fn begins(&mut self, member: usize, requests: usize) {
        for (place, each) in self.0.iter_mut().enumerate() {
            if place == member {
                each.under_way += 1;
                each.requests_under_way += requests;
            } else if each.under_way == 0 {
                each.passed = each.passed.saturating_add(requests as u64);
            }
        }
    }

    /// A run of `requests` is over.
    pub(super) fn ends(&mut self, member: usize, requests: usize) {
        if let Some(member) = self.get_mut(member) {
            member.under_way = member.under_way.saturating_sub(1);
            member.requests_under_way = member.requests_under_way.saturating_sub(requests);
            member.passed = 0;
        }
    }

    /// The thread of a device has ended.
    pub(super) fn has_ended(&mut self, member: usize) {
        if let Some(member) = self.get_mut(member) {
            (member.under_way, member.requests_under_way) = (0, 0);
        }
    }

    /// A run of `requests` that began then has answered them.
    pub(super) fn answered(&mut self, member: usize, requests: usize, begun: Instant) {
        let Some(member) = self.get_mut(member) else { return };
        member.requests = member.requests.saturating_add(requests as u64);
        // While one run is under way the next one waits for it.
        let since = member.ended.map_or(begun, |ended| ended.max(begun));
        let time = since.elapsed().as_secs_f64().max(1e-9) / requests.max(1) as f64;
        member.time = Some(member.time.map_or(time, |known| known + LATEST * (time - known)));
        member.ended = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(times: &[Option<f64>]) -> Members {
        Members(times.iter().map(|&time| Member { time, ..Member::default() }).collect())
    }

    fn shares(members: &Members, waiting: usize, most: usize) -> Vec<usize> {
        (0..members.0.len()).map(|member| members.share(member, waiting, most)).collect()
    }

    #[test]
    fn who_is_faster_takes_more() {
        let equal = members(&[Some(1e-3); 4]);
        assert_eq!(shares(&equal, 32, 8), [8; 4]);
        assert_eq!(shares(&equal, 16, 8), [4; 4]);
        // The last ones go to whoever comes.
        assert_eq!(shares(&equal, 1, 8), [1; 4]);
        assert_eq!(shares(&equal, 0, 8), [0; 4]);
        let unequal = members(&[Some(2e-3), Some(3e-3), Some(1.0)]);
        assert_eq!(shares(&unequal, 20, 64), [12, 8, 0]);
        assert_eq!(shares(&unequal, 1, 64), [1, 1, 0]);
        // With enough of them the slowest helps, too, with a quarter of its share.
        assert_eq!(shares(&unequal, 1000, 1000), [599, 400, 0]);
        assert_eq!(shares(&unequal, 4000, 4000), [2397, 1598, 1]);
        assert_eq!([0, 1, 2].map(|member| unequal.is_slow(member)), [false, false, true]);
        assert_eq!(shares(&members(&[Some(5.0)]), 9, 8), [8]);
    }

    #[test]
    fn what_is_under_way_is_a_part_of_the_share() {
        let mut members = members(&[Some(2e-3), Some(3e-3)]);
        assert_eq!(shares(&members, 100, 100), [60, 40]);
        members.begins(1, 40);
        assert_eq!(shares(&members, 60, 100), [60, 0]);
        members.begins(0, 50);
        assert_eq!(shares(&members, 10, 100), [10, 0]);
        // Another ten times as many: again two fifths, less what it has.
        // The first one was passed over once, and counts as a little faster.
        assert_eq!(shares(&members, 910, 1000), [552, 358]);
        members.ends(1, 40);
        assert_eq!(shares(&members, 30, 100), [0, 30]);
        // The last request is for who has nothing to do.
        let mut equal = self::members(&[Some(1e-3); 2]);
        equal.begins(0, 8);
        assert_eq!(shares(&equal, 1, 8), [0, 1]);
    }

    #[test]
    fn who_was_not_seen_to_run_begins_with_one_request() {
        let mut members = members(&[None, Some(1e-3)]);
        assert_eq!(shares(&members, 8, 8), [1, 4]);
        members.begins(0, 1);
        assert_eq!(shares(&members, 9, 8), [0, 5]);
        assert_eq!(shares(&self::members(&[None, None]), 8, 8), [1, 1]);
        // The only one has nobody to leave anything to.
        assert_eq!(shares(&self::members(&[None]), 8, 8), [8]);
    }

    #[test]
    fn who_is_not_in_order_leaves_its_share_to_the_others() {
        let mut members = members(&[Some(1.0), Some(1.0), Some(1.0)]);
        members.0[1].standing = Standing::Out(Arc::new(Error::Internal("lost".to_owned())));
        assert_eq!((members.share(0, 8, 8), members.share(2, 8, 8)), (4, 4));
        members.0[2].standing = Standing::Suspect;
        assert_eq!(members.share(0, 8, 8), 8);
        assert!(members.has_others(0) && !members.others_run(0));
        members.0[2].standing = members.0[1].standing.clone();
        assert!(!members.has_others(0) && members.has_others(2));
    }

    #[test]
    fn who_was_slow_once_is_tried_again() {
        let mut members = members(&[Some(1e-3), Some(1.0)]);
        assert_eq!(members.share(1, 8, 8), 0);
        for _ in 0..10_000 {
            members.begins(0, 8);
            members.ends(0, 8);
        }
        assert!(members.share(1, 8, 8) > 0);
        members.begins(1, 1);
        members.ends(1, 1);
        assert_eq!(members.share(1, 8, 8), 0);
        // While it runs, however long that takes, it is as slow as it was seen to be.
        members.begins(1, 1);
        for _ in 0..1_000_000 {
            members.begins(0, 8);
            members.ends(0, 8);
        }
        assert_eq!((members.share(0, 8, 8), members.share(1, 8, 8)), (8, 0));
        members.ends(1, 1);
        for _ in 0..1_000_000 {
            members.begins(0, 8);
            members.ends(0, 8);
        }
        assert!(members.share(1, 128, 8) > 4);
    }

    #[test]
    fn a_time_is_that_of_a_request_while_the_device_was_busy() {
        let mut members = members(&[None]);
        let begun = Instant::now();
        std::thread::sleep(std::time::Duration::from_millis(20));
        members.answered(0, 2, begun);
        let first = members.0[0].time.expect("a time");
        assert!(first >= 0.01, "{first}");
        // Its twin was under way at the same time, and was over at once.
        members.answered(0, 2, begun);
        assert!(members.0[0].time.expect("a time") < first);
        assert_eq!(members.0[0].requests, 4);
    }
}
