//! A body that comes at a least rate.

use std::io::{Error, ErrorKind, Read, Result};
use std::time::{Duration, Instant};

/// Bytes a second, on average over each period: a line of the oldest modems brings more.
const LEAST_RATE: f64 = 1000.0;

/// A reader that fails where what it reads comes more slowly than [`LEAST_RATE`] for a whole period. Without it a server that
/// sends a byte now and then is read without an end, as each read ends in time.
pub(crate) struct Paced<R> {
    from: R,
    period: Duration,
    /// How long was read in this period, and how much came. What the caller does meanwhile is no fault of the server's.
    spent: Duration,
    came: u64,
}

impl<R> Paced<R> {
    pub(crate) fn new(from: R, period: Duration) -> Self {
        Paced { from, period, spent: Duration::ZERO, came: 0 }
    }
}

impl<R: Read> Read for Paced<R> {
    fn read(&mut self, to: &mut [u8]) -> Result<usize> {
        let begin = Instant::now();
        let count = self.from.read(to)?;
        self.spent += begin.elapsed();
        self.came += count as u64;
        if count > 0 && self.spent >= self.period {
            let (came, time) = (self.came, self.spent);
            let wanted = (LEAST_RATE * time.as_secs_f64()) as u64;
            if came < wanted {
                let text = format!(
                    "timeout: found {came} bytes in {time:.1?}, wanted at least {wanted}, 1 kB a second"
                );
                return Err(Error::new(ErrorKind::TimedOut, text));
            }
            (self.spent, self.came) = (Duration::ZERO, 0);
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives so many bytes at each read, after a pause.
    struct Drip(usize, Duration);

    impl Read for Drip {
        fn read(&mut self, to: &mut [u8]) -> Result<usize> {
            std::thread::sleep(self.1);
            let count = self.0.min(to.len());
            to[..count].fill(7);
            Ok(count)
        }
    }

    #[test]
    fn what_comes_too_slowly_is_an_error() {
        let (pause, period) = (Duration::from_millis(10), Duration::from_millis(200));
        let mut all = Vec::new();
        let error = Paced::new(Drip(1, pause), period).read_to_end(&mut all).expect_err("too slow");
        assert!(error.to_string().contains("wanted at least 2"), "{error}");
        assert!((1..=20).contains(&all.len()), "{}", all.len());
        // A rest that is short is no fault, nor is a reader that is asked seldom.
        let mut rest = Paced::new(std::io::Cursor::new([1, 2, 3]), Duration::ZERO);
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(rest.read(&mut [0; 8]).map_err(|error| error.to_string()), Ok(3));
        assert_eq!(rest.read(&mut [0; 8]).map_err(|error| error.to_string()), Ok(0));
    }

    #[test]
    fn what_comes_fast_enough_goes_on() {
        let mut steady = Paced::new(Drip(1000, Duration::from_millis(10)), Duration::from_millis(50));
        for _ in 0..20 {
            assert_eq!(steady.read(&mut [0; 4096]).expect("in time"), 1000);
        }
    }
}
