//! Clusters of processes on this machine, some of which are killed.

use crate::local::Cluster;
use crate::lost::wgpu;
use crate::pictures;
use crate::results::{Found, config, copies, found, local, models, options, query, same, table};
use ballista_core::config::TaskSchedulingPolicy;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use datafusion::arrow::array::RecordBatch;
use datafusion::prelude::SessionContext;
use diptych::Backend;
use diptych_datafusion::cluster;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

const PROGRAM: &str = env!("CARGO_BIN_EXE_diptych-ballista");

/// How long anything may take here.
const LIMIT: Duration = Duration::from_secs(300);

async fn start(folder: &Path, devices: &[&str]) -> Cluster {
    with(folder, devices, &[]).await
}

/// A cluster whose executors have further words.
async fn with(folder: &Path, devices: &[&str], further: &[&str]) -> Cluster {
    let devices: Vec<String> = devices.iter().map(|&device| device.to_owned()).collect();
    let words: Vec<String> = ["--batch", "4"].iter().chain(further).map(|&word| word.to_owned()).collect();
    Cluster::start(Path::new(PROGRAM), folder, &devices, &words).await.unwrap()
}

async fn connect(cluster: &Cluster, file: &Path) -> SessionContext {
    let context = cluster::connect(&cluster.url(), config()).await.unwrap();
    table(&context, file).await;
    context
}

/// What DataFusion finds in this process, on the CPU.
async fn wanted(file: &Path) -> BTreeMap<i64, Found> {
    let context = local(&models(options(Backend::Cpu)).await, file).await;
    found(&query(&context, "SELECT id, pose(image) FROM pictures").await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_finds_what_datafusion_finds() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pictures.parquet");
    pictures::write(&file, 48, Some(7), 4).unwrap();
    let wanted = wanted(&file).await;
    let other = if wgpu().is_some() { "wgpu" } else { "cpu" };
    let cluster = start(folder.path(), &["cpu", other]).await;
    let context = connect(&cluster, &file).await;
    let rows = query(&context, "SELECT id, pose(image) FROM pictures").await.unwrap();
    same(&wanted, &found(&rows));
    for executor in 0..2 {
        assert!(stages(&cluster.work_dir(executor)) > 0, "executor {executor} had no task");
    }
    // The function in the second stage, behind a shuffle.
    let sql = "SELECT id, pose(image) FROM
        (SELECT id, first_value(image) AS image FROM pictures GROUP BY id) ORDER BY id";
    same(&wanted, &found(&query(&context, sql).await.unwrap()));
    let sql = "SELECT channels, count(*) FROM
        (SELECT infer('pose', image)['outputs'][1]['shape'][4] AS channels FROM pictures) GROUP BY channels";
    assert_eq!(query(&context, sql).await.unwrap().iter().map(|batch| batch.num_rows()).sum::<usize>(), 2);
    let error = query(&context, "SELECT infer('/etc/passwd', image) FROM pictures").await.unwrap_err();
    assert!(error.to_string().contains("there is no network"), "{error}");
}

fn entries(path: &Path) -> Vec<std::fs::DirEntry> {
    std::fs::read_dir(path).into_iter().flatten().flatten().collect()
}

/// The stages of which an executor has results: `work_dir/JOB/STAGE`.
fn of_stages(work_dir: &Path) -> Vec<PathBuf> {
    let jobs = entries(work_dir);
    let stages = jobs.iter().flat_map(|job| entries(&job.path()));
    let is_stage = |name: &str| name.parse::<usize>().is_ok();
    let stages = stages.filter(|stage| stage.file_name().to_str().is_some_and(is_stage));
    stages.map(|stage| stage.path()).collect()
}

/// Of how many stages an executor has results.
fn stages(work_dir: &Path) -> usize {
    of_stages(work_dir).len()
}

/// Of how many tasks an executor has results, the one that it works on included.
fn tasks(work_dir: &Path) -> usize {
    of_stages(work_dir).iter().map(|stage| entries(stage).len()).sum()
}

type Rows = JoinHandle<datafusion::error::Result<Vec<RecordBatch>>>;

/// Waits until an executor has `count` of something in the folder of its results, while a query is under way.
async fn until(rows: &Rows, cluster: &Cluster, executor: usize, of: fn(&Path) -> usize, count: usize) {
    let start = Instant::now();
    loop {
        let found = of(&cluster.work_dir(executor));
        if found >= count {
            return;
        }
        assert!(!rows.is_finished(), "the query is over, and executor {executor} has {found} of {count}");
        assert!(start.elapsed() < LIMIT, "executor {executor} has {found} of {count}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_executor_is_killed_in_the_middle_of_a_stage() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pictures.parquet");
    pictures::write(&file, 96, Some(7), 4).unwrap();
    let wanted = wanted(&file).await;
    let mut cluster = start(folder.path(), &["cpu", "cpu"]).await;
    let context = connect(&cluster, &file).await;
    let rows = tokio::spawn(async move { query(&context, "SELECT id, pose(image) FROM pictures").await });
    until(&rows, &cluster, 0, stages, 1).await;
    assert!(!rows.is_finished());
    cluster.kill(0).await.unwrap();
    let rows = tokio::time::timeout(LIMIT, rows).await.unwrap().unwrap().unwrap();
    same(&wanted, &found(&rows));
}

/// It has written what it found for a shuffle, of which nothing was read yet; another has it to do again.
#[tokio::test(flavor = "multi_thread")]
async fn an_executor_is_killed_before_its_shuffled_rows_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pictures.parquet");
    pictures::write(&file, 96, Some(7), 4).unwrap();
    let wanted = wanted(&file).await;
    // One task after the other: with the second task begun, the first has come to its end.
    let mut cluster = with(folder.path(), &["cpu", "cpu"], &["--tasks", "1"]).await;
    let context = connect(&cluster, &file).await;
    let sql = "SELECT id, pose(image) FROM pictures ORDER BY id";
    let rows = tokio::spawn(async move { query(&context, sql).await });
    until(&rows, &cluster, 0, tasks, 2).await;
    assert!(!rows.is_finished() && stages(&cluster.work_dir(0)) == 1 && stages(&cluster.work_dir(1)) == 1);
    cluster.kill(0).await.unwrap();
    let rows = tokio::time::timeout(LIMIT, rows).await.unwrap().unwrap().unwrap();
    same(&wanted, &found(&rows));
}

/// Pictures that are looked at, shuffled by their number, and looked at again.
const TWICE: &str = "SELECT id, pose(image), score FROM
    (SELECT id, first_value(image) AS image, max(score) AS score FROM
        (SELECT id, image, pose(image)['poses'][1]['score'] AS score FROM pictures) GROUP BY id)";

/// Kills an executor once it has begun the second stage of a query: no row is missing, and none is wrong. How many come
/// twice depends on what the other one had reported by then.
async fn killed_after_a_shuffle(sql: String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pictures.parquet");
    pictures::write(&file, 96, Some(7), 4).unwrap();
    let wanted = wanted(&file).await;
    let mut cluster = start(folder.path(), &["cpu", "cpu"]).await;
    let context = connect(&cluster, &file).await;
    let rows = tokio::spawn(async move { query(&context, &sql).await });
    until(&rows, &cluster, 0, stages, 2).await;
    assert!(!rows.is_finished());
    cluster.kill(0).await.unwrap();
    let rows = tokio::time::timeout(LIMIT, rows).await.unwrap().unwrap().unwrap();
    let copies = copies(&rows);
    let nth = |nth: usize| -> BTreeMap<i64, Found> {
        copies.iter().filter_map(|(&id, copies)| Some((id, copies.get(nth)?.clone()))).collect()
    };
    same(&wanted, &nth(0));
    let second = nth(1);
    same(&wanted.clone().into_iter().filter(|(id, _)| second.contains_key(id)).collect(), &second);
    assert!(nth(2).is_empty(), "rows came three times");
    println!("{} of {} rows came twice", second.len(), copies.len());
    same(&wanted, &found(&diptych_datafusion::unique(&rows, "id").unwrap()));
}

/// What was shuffled is lost, and so are results of the stage that reads it; a third stage puts them in order.
///
/// Ballista 55.0 begins that stage anew with all its tasks, and takes back of its earlier results only those of the lost
/// executor: what others had reported stays among the inputs of the next stage, and comes again
/// (`StaticExecutionGraph::reset_stages_internal`).
#[tokio::test(flavor = "multi_thread")]
async fn no_row_is_lost_if_an_executor_is_killed_after_a_shuffle() {
    killed_after_a_shuffle(format!("{TWICE} ORDER BY id")).await;
}

/// An executor is killed that has results of a query's last stage, which are listed as they come (`output_locations`) and never
/// taken back.
#[tokio::test(flavor = "multi_thread")]
async fn no_row_is_lost_if_an_executor_is_killed_that_has_results_of_the_last_stage() {
    killed_after_a_shuffle(TWICE.to_owned()).await;
}

/// The device is lost before the first task; Ballista gives the tasks again, and the executor has opened it anew.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_device_is_tried_again() {
    let Some(backend) = wgpu() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pictures.parquet");
    pictures::write(&file, 24, Some(7), 4).unwrap();
    let wanted = wanted(&file).await;
    let cluster = start(folder.path(), &[]).await;
    let models = models(options(backend)).await;
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let config = ExecutorProcessConfig {
        external_host: Some("127.0.0.1".to_owned()),
        port,
        scheduler_host: "127.0.0.1".to_owned(),
        scheduler_port: cluster.url().rsplit_once(':').unwrap().1.parse().unwrap(),
        scheduler_connect_timeout_seconds: 30,
        vcores: 1,
        work_dir: Some(folder.path().to_str().unwrap().to_owned()),
        task_scheduling_policy: TaskSchedulingPolicy::PullStaged,
        ..ExecutorProcessConfig::default()
    };
    let executor = tokio::spawn(start_executor_process(Arc::new(cluster::executor(config, &models))));
    let context = connect(&cluster, &file).await;
    models.context().wgpu().unwrap().0.destroy();
    let rows = query(&context, "SELECT id, pose(image) FROM pictures");
    let rows = tokio::time::timeout(LIMIT, rows).await.unwrap().unwrap();
    same(&wanted, &found(&rows));
    assert_eq!(models.opened(), 2);
    executor.abort();
}
