//! Progress of long work, on stderr and only if that is a terminal.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// Does `work` under a spinner that says what is going on; it is gone afterwards.
pub fn spinner<T>(what: &'static str, work: impl FnOnce() -> T) -> T {
    let spinner = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_message(what);
    spinner.enable_steady_tick(Duration::from_millis(100));
    let result = work();
    spinner.finish_and_clear();
    result
}

/// A bar for `count` steps; clear it when done.
pub fn bar(what: &'static str, count: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(count), ProgressDrawTarget::stderr()).with_message(what);
    match ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// A bar over frames, and under it a line for each stage with its latest time and its rate.
#[derive(Debug)]
pub struct Stages {
    all: MultiProgress,
    bar: ProgressBar,
    lines: Vec<ProgressBar>,
}

impl Stages {
    /// A line for each name; `count` frames, where that is known.
    pub fn new(names: &'static [&'static str], count: Option<u64>) -> Self {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let frames = all.add(match count {
            Some(count) => bar("frames", count),
            None => ProgressBar::no_length().with_message("frames"),
        });
        let line = |name: &&'static str| {
            let line = all.add(ProgressBar::no_length().with_prefix(*name));
            match ProgressStyle::with_template("  {prefix:8} {msg}") {
                Ok(style) => line.with_style(style),
                Err(_) => line,
            }
        };
        let lines = names.iter().map(line).collect();
        Stages { all, bar: frames, lines }
    }

    /// One frame more, with the time of each stage.
    pub fn show(&self, times: &[Duration]) {
        self.bar.inc(1);
        for (line, time) in self.lines.iter().zip(times) {
            let seconds = time.as_secs_f64();
            line.set_message(format!("{:9.3} ms {:9.1} fps", seconds * 1e3, 1.0 / seconds.max(1e-9)));
        }
    }

    /// Takes everything away again.
    pub fn clear(&self) {
        // Nothing is lost where the terminal is gone.
        let _ = self.all.clear();
    }
}
