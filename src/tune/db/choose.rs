//! What a shared record has for an op on a device.

use super::{Database, Source};
use crate::layout::Layout;
use crate::limits::Limits;
use crate::ops::{Choice, Op};
use crate::tune::key::{DeviceKey, Key, ProblemKey, SourceHash};
use crate::tune::work_group::{WorkGroup, table, untuned_in};
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
    ///
    /// Where there is none, and what an untuned session runs is on record as wrong, flaky or failing, the first kernel and
    /// tile that is not, with the table's work-group.
    #[doc(hidden)]
    pub fn choose(&self, device: &DeviceKey, op: &dyn Op, layout: Layout, limits: &Limits) -> Option<Chosen> {
        let problem = ProblemKey::in_layout(op, layout);
        let source = |choice: &Choice| SourceHash::of_kernel(op, choice, limits).ok();
        let Some(found) = self.lookup(device, &problem, &source) else {
            return self.instead(device, op, layout, limits);
        };
        let time = found.row.time.map(|time| Duration::from_nanos(time.median_ns));
        Some(Chosen { choice: found.choice, from: found.from, time, open: found.row.open })
    }
}

impl Database {
    /// What takes the place of an untuned choice that is on record as one that must not be used.
    fn instead(&self, device: &DeviceKey, op: &dyn Op, layout: Layout, limits: &Limits) -> Option<Chosen> {
        let problem = ProblemKey::in_layout(op, layout);
        // Without such a row nothing is planned here.
        self.tried(device, &problem).find(|row| row.verdict.bars())?;
        let bars = |choice: &Choice| {
            let source = SourceHash::of_kernel(op, choice, limits).ok();
            let row = self.get(&Key::new(device, &problem, *choice, source))?;
            row.verdict.bars().then(|| row.reason())
        };
        let why = bars(&untuned_in(op, WorkGroup::Table, layout, limits).ok()?)?;
        let kernels = op.kernels();
        let choice = kernels.space(limits).into_iter().find_map(|(kernel, tile)| {
            let choice = kernel.choice(tile, table(kernel, tile, limits)).with_layout(layout);
            let usable = kernel.serves(layout) && kernel.fits(&choice, limits).is_ok();
            (usable && bars(&choice).is_none()).then_some(choice)
        })?;
        Some(Chosen { choice, from: Source::InPlaceOfDefault { why }, time: None, open: true })
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
