//! What is tuned while a session is built.

use crate::context::Context;
use crate::error::Result;
use crate::graph::Graph;
use crate::options::SessionOptions;
use crate::tune::db::SharedDatabase;
#[cfg(feature = "cpu")]
use crate::{
    clock::Instant,
    sync::lock,
    tune::db::{LOCK_WAIT, is_held},
    tune::journal::Journal,
    tune_network::Tuner,
};
#[cfg(feature = "cpu")]
use std::sync::Arc;
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
    let start = Instant::now();
    let mut tuner = tuner.precision(options.precision);
    // Another process may hold a lock: waiting takes no more than a part of the budget.
    let usual = lock(database).set_patience(Some((budget / 4).min(LOCK_WAIT)));
    let journal = journal_of(database);
    let tuned = async {
        if let Some(journal) = journal? {
            tuner = tuner.journal(journal);
        }
        let mut tuner = tuner.budget(budget.saturating_sub(start.elapsed()));
        #[cfg(not(target_family = "wasm"))]
        let report = tuner.tune(graph)?;
        #[cfg(target_family = "wasm")]
        let report = tuner.tune_async(graph, |_| {}).await?;
        if report.unsaved > 0 {
            tracing::warn!("{} rows of the tuner are in this process's memory only", report.unsaved);
        }
        Ok(())
    };
    let tuned = tuned.await;
    lock(database).set_patience(usual);
    tuned
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
    let mut database = lock(database);
    let Some(file) = database.file() else { return Ok(None) };
    let folder = file.parent().unwrap_or(std::path::Path::new("")).to_owned();
    match Journal::open(folder, &mut database) {
        Err(error) if is_held(&error) => {
            tracing::warn!("the tuner works without a journal: {error}");
            Ok(None)
        }
        journal => journal.map(Some),
    }
}
