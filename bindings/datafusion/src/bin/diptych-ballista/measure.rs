//! Pictures a second: a plain loop, DataFusion in this process, and a cluster on this machine.

use crate::demo::{spread, table};
use crate::device::Networks;
use crate::{local, pictures};
use anyhow::{Context as _, Result, ensure};
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::prelude::{SessionConfig, SessionContext};
use diptych_datafusion::plain::{Times, plain};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// How many pictures.
    #[arg(long, default_value_t = 512)]
    count: u32,
    /// How often each is measured, in turns; the median counts.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// The devices of the cluster, each an executor's; the first one is that of the loop and of DataFusion.
    #[arg(long, num_args = 1.., default_values = ["auto"])]
    devices: Vec<String>,
    /// A folder for pictures and results, which stays.
    #[arg(long, default_value = "target/diptych-ballista")]
    folder: PathBuf,
    #[command(flatten)]
    networks: Networks,
}

/// People in all pictures.
fn sql(condition: &str) -> String {
    format!(
        "SELECT CAST(sum(cardinality(found['poses'])) AS BIGINT)
         FROM (SELECT pose(image) AS found FROM pictures {condition})"
    )
}

pub async fn run(arguments: Arguments) -> Result<()> {
    ensure!(arguments.count > 0 && arguments.rounds > 0, "found no pictures or rounds");
    let folder = std::path::absolute(&arguments.folder)?;
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let file = folder.join("measured.parquet");
    pictures::write(&file, arguments.count, None, 16)?;
    let people = pictures::people()?;
    let encoded = (0..arguments.count).map(|id| pictures::picture(&people, id));
    let encoded = encoded.collect::<Result<Vec<_>>>()?;
    let first = arguments.devices.first().context("--devices: found none")?;

    let (mut loops, mut local, mut cluster) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..arguments.rounds {
        loops.push(looped(&arguments, first, &encoded).await?);
        let people = loops.last().map_or(0, |times: &Times| times.people);
        local.push(in_process(&arguments, first, &file, people).await?);
        cluster.push(clustered(&arguments, &folder, &file, people).await?);
    }
    let of = |time: fn(&Times) -> Duration| median(loops.iter().map(time).collect());
    let executors = arguments.devices.len();
    let rows = [
        ("decoding alone".to_owned(), of(|times| times.decoding)),
        ("network alone".to_owned(), of(|times| times.network)),
        ("reading of outputs alone".to_owned(), of(|times| times.reading)),
        ("plain loop, all at once".to_owned(), of(|times| times.all)),
        ("DataFusion".to_owned(), median(local)),
        (format!("Ballista, executors: {executors}"), median(cluster)),
    ];
    let all = of(|times| times.all).as_secs_f64();
    println!("{} pictures on {}", arguments.count, arguments.devices.join(", "));
    for (name, time) in rows {
        let seconds = time.as_secs_f64();
        let rate = f64::from(arguments.count) / seconds;
        println!("{name:30} {seconds:8.3} s {rate:10.1} pictures/s {:7.3} of the loop", all / seconds);
    }
    Ok(())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

async fn looped(arguments: &Arguments, device: &str, encoded: &[Vec<u8>]) -> Result<Times> {
    let (options, encoded) = (arguments.networks.options(device)?, encoded.to_vec());
    Ok(tokio::task::spawn_blocking(move || plain(options, &encoded)).await??)
}

/// Runs the query once on a few pictures, then measures it.
async fn queried(context: &SessionContext, file: &Path, people: usize) -> Result<Duration> {
    table(context, file).await?;
    context.sql(&sql("WHERE id < 16")).await?.collect().await?;
    let start = Instant::now();
    let found = context.sql(&sql("")).await?.collect().await?;
    let time = start.elapsed();
    let found: i64 =
        found.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>()).flatten().sum();
    // Devices and batches differ in the last bits, and so may who is sure enough to count.
    let apart = usize::try_from(found)?.abs_diff(people);
    ensure!(apart <= people / 50, "found {found} people, the loop {people}");
    Ok(time)
}

async fn in_process(arguments: &Arguments, device: &str, file: &Path, people: usize) -> Result<Duration> {
    let models = arguments.networks.open(device).await?;
    let config: SessionConfig = spread(1).with_target_partitions(2);
    let context = SessionContext::new_with_config(config);
    diptych_datafusion::register(&context, &models);
    queried(&context, file, people).await
}

async fn clustered(arguments: &Arguments, folder: &Path, file: &Path, people: usize) -> Result<Duration> {
    let program = std::env::current_exe().context("this program's path")?;
    let words = arguments.networks.words();
    let cluster = local::Cluster::start(&program, folder, &arguments.devices, &words).await?;
    let config = spread(arguments.devices.len());
    let context = diptych_datafusion::cluster::connect(&cluster.url(), config).await?;
    queried(&context, file, people).await
}
