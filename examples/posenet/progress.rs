//! Progress of long work, on stderr and only if that is a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
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
