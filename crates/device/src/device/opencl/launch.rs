//! One launch of a recording.

use super::call::{Event, Kernel, Lane, Owned, Want};
use crate::error::Result;

/// One kernel object with its arguments, and how many invocations it has.
pub(super) struct Launch {
    pub(super) kernel: Owned<Kernel>,
    pub(super) global: [usize; 3],
    pub(super) local: [usize; 3],
}

impl Launch {
    /// The kernel, its invocations and those of a work-group.
    pub(super) fn parts(&self) -> (&Owned<Kernel>, &[usize; 3], &[usize; 3]) {
        (&self.kernel, &self.global, &self.local)
    }

    pub(super) fn enqueue(&self, lane: Lane<'_>, want: Want) -> Result<Option<Owned<Event>>> {
        // SAFETY: `record` set all arguments, and the recording keeps what they refer to alive;
        // the driver keeps it alive from here on. Test: `saxpy_runs`.
        unsafe { lane.kernel(&self.kernel, self.global, self.local, want) }
    }
}
