//! What a shared record has for an op on a device.

use super::{Database, Source};
use crate::layout::Layout;
use crate::limits::Limits;
use crate::ops::{Choice, Op};
use crate::tune::key::{DeviceKey, ProblemKey, SourceHash};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A record shared by tuners and sessions.
///
/// ```
/// use diptych::{Database, SessionOptions, SharedDatabase, Tuning};
/// use std::sync::{Arc, Mutex};
///
/// let database: SharedDatabase = Arc::new(Mutex::new(Database::in_memory()));
/// let options = SessionOptions { tuning: Tuning::Database(database), ..Default::default() };
/// ```
pub type SharedDatabase = Arc<Mutex<Database>>;

/// A choice of the record.
#[derive(Debug, Clone, PartialEq)]
pub struct Chosen {
    /// The kernel, tile and work-group.
    pub choice: Choice,
    /// Which row it is from.
    pub from: Source,
    /// Its median time there.
    pub time: Option<Duration>,
    /// Whether the search that found it was cut short.
    pub open: bool,
}

impl Database {
    /// What is on record for `op` with its feature maps in `layout` on a device: the best of the rows
    /// whose kernel fits and is the same today ([`Database::lookup`]).
    #[doc(hidden)]
    pub fn choose(&self, device: &DeviceKey, op: &dyn Op, layout: Layout, limits: &Limits) -> Option<Chosen> {
        let found = self.lookup(device, &ProblemKey::in_layout(op, layout), &|choice| {
            SourceHash::of_kernel(op, choice, limits).ok()
        })?;
        let time = found.row.time.map(|time| Duration::from_nanos(time.median_ns));
        Some(Chosen { choice: found.choice, from: found.from, time, open: found.row.open })
    }
}

/// [`Database::choose`] of a record that others may hold.
pub(crate) fn choose(
    database: &SharedDatabase,
    device: &DeviceKey,
    op: &dyn Op,
    layout: Layout,
    limits: &Limits,
) -> Option<Chosen> {
    database.lock().unwrap_or_else(PoisonError::into_inner).choose(device, op, layout, limits)
}
