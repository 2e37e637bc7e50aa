//! An executor, which has one device.

use crate::device::Networks;
use anyhow::{Context as _, Result, ensure};
use ballista_core::config::TaskSchedulingPolicy;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The scheduler, as HOST:PORT.
    #[arg(long, default_value = "localhost:50050")]
    scheduler: String,
    /// Where to listen.
    #[arg(long, default_value = "127.0.0.1")]
    bind: IpAddr,
    /// Under which name others reach it; unless said, the address from which it calls the scheduler.
    #[arg(long)]
    external_host: Option<String>,
    /// Where others fetch its results.
    #[arg(long, default_value_t = 50051)]
    port: u16,
    /// A folder for its results, which is made if it is missing.
    #[arg(long)]
    work_dir: PathBuf,
    /// Tasks at the same time. While one reads its next pictures, others keep the device busy.
    #[arg(long, default_value_t = 2)]
    tasks: usize,
    /// auto, wgpu, opencl or cpu, or a PCI address, a UUID, a number or a part of its name, alone or behind `wgpu:` or
    /// `opencl:`.
    #[arg(long, default_value = "auto")]
    device: String,
    #[command(flatten)]
    networks: Networks,
}

pub async fn run(arguments: Arguments) -> Result<()> {
    let wanted = || format!("--scheduler: found {:?}, wanted HOST:PORT", arguments.scheduler);
    let (host, port) = arguments.scheduler.rsplit_once(':').with_context(wanted)?;
    ensure!(arguments.tasks > 0, "--tasks: found 0, wanted at least 1");
    std::fs::create_dir_all(&arguments.work_dir)
        .with_context(|| format!("cannot make the folder {}", arguments.work_dir.display()))?;
    let work_dir = arguments.work_dir.to_str().context("--work-dir: wanted UTF-8")?;
    let models = arguments.networks.open(&arguments.device).await?;
    println!("executor on port {}: {}", arguments.port, models.context().info());
    let config = ExecutorProcessConfig {
        bind_host: arguments.bind.to_string(),
        external_host: arguments.external_host.clone(),
        port: arguments.port,
        scheduler_host: host.to_owned(),
        scheduler_port: port.parse().with_context(wanted)?,
        scheduler_connect_timeout_seconds: 30,
        vcores: arguments.tasks,
        task_scheduling_policy: TaskSchedulingPolicy::PullStaged,
        work_dir: Some(work_dir.to_owned()),
        ..ExecutorProcessConfig::default()
    };
    let config = diptych_datafusion::cluster::executor(config, &models);
    start_executor_process(Arc::new(config)).await.context("the executor")
}
