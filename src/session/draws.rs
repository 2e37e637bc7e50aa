//! Random numbers of a session whose extents each run decides: all parts of a run draw by its number, whichever plans run.

use super::Session;
use super::plans::Changing;
use crate::error::Result;
use crate::graph::{Key, key_of};

/// How many runs there were.
#[derive(Debug, Default)]
pub(super) struct Draws {
    runs: u64,
    /// The plan of the last part that ran last, and the run that it counts as the next.
    next: Option<(u64, u64)>,
}

impl Changing {
    /// The key of the run that begins.
    pub(super) fn begin_run(&mut self) -> Key {
        let key = key_of(self.options.seed, self.draws.runs);
        self.draws.runs = self.draws.runs.wrapping_add(1);
        key
    }
}

impl Session {
    /// Has the last part draw by the key of the run that was begun. A plan that runs again has counted by itself.
    pub(super) fn draw_last(&mut self, plan: u64, key: Key) -> Result<()> {
        let Some(changing) = &mut self.changing else { return Ok(()) };
        let Draws { runs, next } = &mut changing.draws;
        if next.replace((plan, *runs)) != Some((plan, runs.wrapping_sub(1))) {
            self.runner.draw_by(key)?;
        }
        Ok(())
    }
}
