//! The whole on this machine.

use crate::device::Networks;
use crate::{local, pictures};
use anyhow::{Context as _, Result};
use datafusion::arrow::array::RecordBatch;
use datafusion::datasource::MemTable;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A Parquet file with the columns `id` and `image`; unless said, one is made.
    #[arg(long)]
    pictures: Option<PathBuf>,
    /// Pictures of the file that is made.
    #[arg(long, default_value_t = 128)]
    count: u32,
    /// The devices, each an executor's: auto, wgpu, opencl or cpu, or a PCI address, a UUID, a number or a part of a name.
    #[arg(long, num_args = 1.., default_values = ["auto", "cpu"])]
    devices: Vec<String>,
    /// A folder for results and logs, which stays.
    #[arg(long, default_value = "target/diptych-ballista")]
    folder: PathBuf,
    /// Counts each picture once, by its `id`, should an executor die while the query runs and rows come twice.
    #[arg(long)]
    unique: bool,
    #[command(flatten)]
    networks: Networks,
}

/// How a query over pictures is spread: each row group by itself, a few pictures in memory at a time.
pub fn spread(executors: usize) -> SessionConfig {
    SessionConfig::new()
        .with_target_partitions(8 * executors.max(1))
        .with_batch_size(64)
        .set_usize("datafusion.optimizer.repartition_file_min_size", 1)
}

/// The pictures as the table `pictures`.
pub async fn table(context: &SessionContext, file: &Path) -> Result<()> {
    let path = std::path::absolute(file)?;
    let path = path.to_str().context("the path of the pictures: wanted UTF-8")?;
    context.register_parquet("pictures", path, ParquetReadOptions::default()).await?;
    Ok(())
}

pub async fn run(arguments: Arguments) -> Result<()> {
    let folder = std::path::absolute(&arguments.folder)?;
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let file = match &arguments.pictures {
        Some(file) => file.clone(),
        None => {
            let file = folder.join("pictures.parquet");
            pictures::write(&file, arguments.count, Some(16), 8)?;
            file
        }
    };
    let program = std::env::current_exe().context("this program's path")?;
    let words = arguments.networks.words();
    let cluster = local::Cluster::start(&program, &folder, &arguments.devices, &words).await?;
    for executor in 0..arguments.devices.len() {
        print!("{}", std::fs::read_to_string(folder.join(format!("executor-{executor}.log")))?);
    }
    let config = spread(arguments.devices.len());
    let context = diptych_datafusion::cluster::connect(&cluster.url(), config).await?;
    table(&context, &file).await?;
    let start = Instant::now();
    let rows = "SELECT id, cardinality(found['poses']) AS people, found['error'] AS error
        FROM (SELECT id, pose(image) AS found FROM pictures)";
    let sums = "SELECT count(*) AS pictures, sum(people) AS people, count(error) AS unreadable";
    if arguments.unique {
        let rows = context.sql(rows).await?.collect().await?;
        let once = diptych_datafusion::unique(&rows, "id")?;
        let count = |batches: &[RecordBatch]| batches.iter().map(RecordBatch::num_rows).sum::<usize>();
        println!("{} rows, {} of them twice", count(&rows), count(&rows) - count(&once));
        // The sums are taken here: those of the cluster would be of all rows.
        let local = SessionContext::new();
        let schema = once.first().context("no picture")?.schema();
        local.register_table("found", Arc::new(MemTable::try_new(schema, vec![once])?))?;
        local.sql(&format!("{sums} FROM found")).await?.show().await?;
    } else {
        context.sql(&format!("{sums} FROM ({rows})")).await?.show().await?;
    }
    println!("after {:.1} s", start.elapsed().as_secs_f64());
    let sql = "SELECT id, pose(image)['poses'][1]['score'] AS score,
            pose(image)['poses'][1]['keypoints'][1] AS nose, pose(image)['error'] AS error
        FROM pictures WHERE id < 16 ORDER BY id";
    context.sql(sql).await?.show().await?;
    Ok(())
}
