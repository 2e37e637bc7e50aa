//! Where the kernels come from: the rule, the tuner's record, or a tuning run of its own.

use crate::options::Options;
use crate::progress;
use anyhow::{Context as _, Result, bail};
use diptych::{Backend, Context, Database, Graph, Journal, Session, Tuner, Tuning};
use signal_hook::consts::SIGINT;
use signal_hook::flag;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What `--db` and `--tune` ask for. Tunes first where that is asked.
pub fn tuning(options: &Options, context: &Context, graph: &Graph) -> Result<Tuning> {
    if options.db.is_none() && options.tune.is_none() {
        return Ok(Tuning::Default);
    }
    if context.info().backend == Backend::Cpu && options.tune.is_none() {
        eprintln!("posenet: the CPU has one kernel for each op; the record is not read");
        return Ok(Tuning::Default);
    }
    let folder = match &options.db {
        Some(Some(folder)) => folder.clone(),
        _ => Database::default_dir()?,
    };
    let mut database = Database::open(&folder).with_context(|| record(&folder))?;
    let Some(budget) = options.tune else {
        return Ok(Tuning::Database(Arc::new(Mutex::new(database))));
    };
    let tuner = Tuner::new(context)?.budget(budget);
    let journal = Journal::open(&folder, &mut database).with_context(|| record(&folder))?;
    let database = Arc::new(Mutex::new(database));
    let mut tuner = tuner.database(Arc::clone(&database)).journal(journal);
    tuner.begin(graph)?;
    // The first Ctrl-C ends the tuning with what was found, and blames no candidate.
    let interrupted = Arc::new(AtomicBool::new(false));
    flag::register_conditional_shutdown(SIGINT, 130, Arc::clone(&interrupted))?;
    flag::register(SIGINT, Arc::clone(&interrupted))?;
    let bar = progress::bar("tuning", 0);
    loop {
        let now = tuner.step(Duration::from_millis(50))?;
        bar.set_length(now.problems as u64);
        bar.set_position(now.visited as u64);
        if interrupted.load(Ordering::Relaxed) {
            tuner.cancel()?;
            bail!("interrupted; what was found is in {}", record(&folder));
        }
        if now.is_finished() {
            break;
        }
    }
    bar.finish_and_clear();
    // From here on nothing is left behind: the next Ctrl-C ends the program at once.
    interrupted.store(true, Ordering::Relaxed);
    let report = tuner.report();
    let (found, seconds) = (report.problems.len(), report.spent.as_secs_f64());
    eprintln!("posenet: tuned {found} problems in {seconds:.1} s; {}", record(&folder));
    Ok(Tuning::Database(database))
}

fn record(folder: &Path) -> String {
    format!("the record in {}", folder.display())
}

/// How many of the network's nodes run by the record.
pub fn describe(session: &Session) -> String {
    let nodes: Vec<_> = session.steps().into_iter().filter(|step| step.op != "convert").collect();
    let by_rule = nodes.iter().filter(|step| step.source == "rule").count();
    format!("{} of {} nodes run as the record says", nodes.len() - by_rule, nodes.len())
}
