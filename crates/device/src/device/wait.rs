//! Waits for a device that block their thread or are awaited, whichever the caller may.

use super::{Device, Recording, Slice};
use crate::error::Result;
use std::time::Duration;

/// How the device is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// The thread is the caller's to block: what is awaited is ready at once.
    #[cfg(not(target_family = "wasm"))]
    Blocks,
    /// It is not.
    Awaits,
}

impl Wait {
    pub async fn run(
        self,
        device: &dyn Device,
        writes: &[(&Slice, &[u8])],
        recording: &Recording,
        reads: &[&Slice],
    ) -> Result<Vec<Vec<u8>>> {
        match self {
            #[cfg(not(target_family = "wasm"))]
            Wait::Blocks => device.run(writes, recording, reads),
            Wait::Awaits => device.run_async(writes, recording, reads).await,
        }
    }

    pub async fn read(self, device: &dyn Device, slice: &Slice) -> Result<Vec<u8>> {
        match self {
            #[cfg(not(target_family = "wasm"))]
            Wait::Blocks => device.read(slice),
            Wait::Awaits => device.read_async(slice).await,
        }
    }

    pub async fn wait(self, device: &dyn Device) -> Result<()> {
        match self {
            #[cfg(not(target_family = "wasm"))]
            Wait::Blocks => device.wait(),
            Wait::Awaits => device.wait_async().await,
        }
    }

    pub async fn time(self, device: &dyn Device, recording: &Recording) -> Result<Vec<Duration>> {
        match self {
            #[cfg(not(target_family = "wasm"))]
            Wait::Blocks => device.time(recording),
            Wait::Awaits => device.time_async(recording).await,
        }
    }
}
