//! Interleaved rounds: every subject once, in shuffled order, again and again. A drift of the
//! clocks or another process then falls on all alike.

use super::row::{Note, Row};
use super::subject::Subject;
use std::time::{Duration, Instant};

/// Samples that a row has at least, whatever they cost.
pub(super) const LEAST: u32 = 5;

/// How long to go on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    /// Samples of each row, at most.
    pub(super) rounds: u32,
    /// Time for each subject; after it, it has no more samples than [`LEAST`].
    pub(super) each: Duration,
}

/// Times `subjects`; returns their rows, and a note for each that failed midway.
pub(super) fn run(
    subjects: Vec<Box<dyn Subject + '_>>,
    effort: Effort,
    mut progress: impl FnMut(u32),
) -> (Vec<Row>, Vec<Note>) {
    let mut lanes: Vec<(Box<dyn Subject + '_>, Duration)> =
        subjects.into_iter().map(|subject| (subject, Duration::ZERO)).collect();
    let mut notes = Vec::new();
    let mut state = 0x9e37_79b9_u32;
    for round in 0..effort.rounds {
        progress(round);
        let mut order: Vec<usize> =
            (0..lanes.len()).filter(|&lane| round < LEAST || lanes[lane].1 < effort.each).collect();
        if order.is_empty() {
            break;
        }
        // Fisher and Yates, with a generator of xorshift kind.
        for last in (1..order.len()).rev() {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            order.swap(last, state as usize % (last + 1));
        }
        let mut failed = Vec::new();
        for lane in order {
            let (subject, spent) = &mut lanes[lane];
            let start = Instant::now();
            if let Err(error) = subject.round() {
                failed.push(lane);
                notes.extend(subject.rows().first().map(|row| Note {
                    suite: row.suite.clone(),
                    case: row.case.clone(),
                    backend: row.device.backend.clone(),
                    text: format!("failed in round {}: {error:#}", round + 1),
                    failure: true,
                }));
            }
            *spent += start.elapsed();
        }
        failed.sort_unstable();
        for lane in failed.into_iter().rev() {
            lanes.remove(lane);
        }
    }
    let mut rows: Vec<Row> = lanes.iter().flat_map(|(subject, _)| subject.rows()).collect();
    rows.iter_mut().for_each(Row::summarise);
    (rows, notes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::row::tests::row;
    use std::cell::RefCell;

    struct Fake<'l> {
        name: usize,
        log: &'l RefCell<Vec<usize>>,
        row: Row,
        lasts: usize,
    }

    impl Subject for Fake<'_> {
        fn round(&mut self) -> anyhow::Result<()> {
            self.log.borrow_mut().push(self.name);
            anyhow::ensure!(self.row.samples.len() < self.lasts, "broken");
            self.row.samples.push(self.name as f64);
            Ok(())
        }

        fn rows(&self) -> Vec<Row> {
            vec![self.row.clone()]
        }
    }

    #[test]
    fn every_round_has_everyone_once_and_a_failure_leaves() {
        let log = RefCell::new(Vec::new());
        let fake = |name: usize, lasts| -> Box<dyn Subject + '_> {
            Box::new(Fake { name, log: &log, row: row(&name.to_string(), &[]), lasts })
        };
        let effort = Effort { rounds: 8, each: Duration::from_secs(60) };
        let (rows, notes) = run(vec![fake(0, 99), fake(1, 3), fake(2, 99), fake(3, 99)], effort, |_| {});
        assert_eq!(rows.iter().map(|row| row.samples.len()).collect::<Vec<_>>(), [8, 8, 8]);
        assert_eq!((notes.len(), notes[0].case.as_str()), (1, "1"));
        assert!(notes[0].failure && notes[0].text.contains("round 4: broken"), "{}", notes[0].text);
        let log = log.into_inner();
        let mut orders = Vec::new();
        for round in log[..16].chunks(4) {
            let mut everyone = round.to_vec();
            everyone.sort_unstable();
            assert_eq!(everyone, [0, 1, 2, 3]);
            orders.push(round.to_vec());
        }
        orders.dedup();
        assert!(orders.len() > 1, "the order is shuffled: {orders:?}");
    }

    #[test]
    fn what_is_slow_stops_at_the_least() {
        let log = RefCell::new(Vec::new());
        let slow: Box<dyn Subject + '_> =
            Box::new(Fake { name: 0, log: &log, row: row("0", &[]), lasts: 99 });
        let (rows, _) = run(vec![slow], Effort { rounds: 20, each: Duration::ZERO }, |_| {});
        assert_eq!(rows[0].samples.len(), LEAST as usize);
    }
}
