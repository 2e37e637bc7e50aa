//! The scheduler.

use anyhow::{Context as _, Result};
use ballista_core::config::TaskSchedulingPolicy;
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::start_server;
use std::net::SocketAddr;
use std::sync::Arc;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Where to listen.
    #[arg(long, default_value = "127.0.0.1:50050")]
    listen: SocketAddr,
    /// Under which name executors and clients reach it.
    #[arg(long, default_value = "localhost")]
    external_host: String,
    /// After how many seconds of silence an executor counts as lost, and its work is given to others. Busy ones are heard
    /// of every 5 seconds.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(6..))]
    executor_timeout: u64,
}

pub async fn run(arguments: Arguments) -> Result<()> {
    let config = SchedulerConfig {
        external_host: arguments.external_host,
        bind_host: arguments.listen.ip().to_string(),
        bind_port: arguments.listen.port(),
        // Executors ask for tasks. Where the scheduler pushes them, it counts an executor's free places itself, and
        // does not get those back that a stage had which is begun again because another executor was lost.
        scheduling_policy: TaskSchedulingPolicy::PullStaged,
        executor_timeout_seconds: arguments.executor_timeout,
        expire_dead_executor_interval_seconds: (arguments.executor_timeout / 4).max(1),
        no_executors_grace_period_seconds: arguments.executor_timeout,
        ..SchedulerConfig::default()
    };
    let config = diptych_datafusion::cluster::scheduler(config);
    let cluster = BallistaCluster::new_from_config(&config).await?;
    start_server(cluster, arguments.listen, Arc::new(config)).await.context("the scheduler")
}
