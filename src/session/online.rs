//! What is tuned while a session is built.

use crate::context::Context;
use crate::error::Result;
use crate::graph::Graph;
use crate::options::SessionOptions;
use crate::tune::db::SharedDatabase;
#[cfg(feature = "cpu")]
use crate::{tune::journal::Journal, tuner::Tuner};
#[cfg(feature = "cpu")]
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// Tunes the problems of `graph` for at most this long.
#[cfg(feature = "cpu")]
pub(super) async fn tuned(
    context: &Context,
    graph: &Graph,
    options: &SessionOptions,
    database: &SharedDatabase,
    budget: Duration,
) -> Result<()> {
    let tuner = Tuner::new(context)?.database(Arc::clone(database));
    let mut tuner = tuner.precision(options.precision).budget(budget);
    if let Some(journal) = journal_of(database)? {
        tuner = tuner.journal(journal);
    }
    #[cfg(not(target_family = "wasm"))]
    tuner.tune(graph)?;
    #[cfg(target_family = "wasm")]
    tuner.tune_async(graph, |_| {}).await?;
    Ok(())
}

/// The CPU computes what the tuner compares kernels with.
#[cfg(not(feature = "cpu"))]
pub(super) async fn tuned(
    _: &Context,
    _: &Graph,
    _: &SessionOptions,
    _: &SharedDatabase,
    _: Duration,
) -> Result<()> {
    Err(crate::error::Error::without_cpu("Tuning::Online"))
}

/// The journal beside the record's file, if it has one: a candidate that takes the application with
/// it is skipped at the next start.
#[cfg(feature = "cpu")]
fn journal_of(database: &SharedDatabase) -> Result<Option<Journal>> {
    let mut database = database.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(file) = database.file() else { return Ok(None) };
    let folder = file.parent().unwrap_or(std::path::Path::new("")).to_owned();
    Ok(Some(Journal::open(folder, &mut database)?))
}
