//! Ctrl-C, for commands that write files.

use anyhow::{Context as _, Result};
use signal_hook::consts::SIGINT;
use signal_hook::flag;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The exit code of a program that SIGINT ended, by the shells' convention.
pub(crate) const EXIT_CODE: u8 = 130;

/// Whether Ctrl-C was pressed.
#[derive(Debug, Clone)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From now on the first Ctrl-C is only noted; the second ends the program at once.
    pub(crate) fn watch() -> Result<Self> {
        let pressed = Arc::new(AtomicBool::new(false));
        // In this order, because the first asks whether the second has noted one already.
        flag::register_conditional_shutdown(SIGINT, EXIT_CODE.into(), Arc::clone(&pressed))
            .and_then(|_| flag::register(SIGINT, Arc::clone(&pressed)))
            .context("watching for Ctrl-C")?;
        Ok(Interrupt(pressed))
    }

    pub(crate) fn pressed(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The error of a command that Ctrl-C ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted; what was found is in the record, and the same command goes on from there")
    }
}

impl std::error::Error for Interrupted {}
