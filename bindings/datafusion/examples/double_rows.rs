//! Ballista 55.0 gives rows twice if an executor dies while a later stage of a query has results. Nothing here is
//! Diptych's; `double_rows.md` says what happens.
//!
//! `cargo run -p diptych-datafusion --example double_rows` starts a scheduler and two executors as processes, runs a
//! query of two stages, kills an executor that has results of the second one, and counts the rows. It fails if any came twice.

use ballista::prelude::{SessionConfigExt as _, SessionContextExt as _};
use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::extension::ballista_scalar_functions;
use ballista_core::registry::BallistaFunctionRegistry;
use ballista_core::utils::default_session_builder;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::start_server;
use datafusion::arrow::array::{Array as _, AsArray as _, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::execution::{FunctionRegistry as _, SessionState, SessionStateBuilder};
use datafusion::logical_expr::{ColumnarValue, ScalarUDF, Volatility, create_udf};
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const ROWS: i64 = 240;

/// A function that returns its argument after 80 ms for each row: a stage must take long enough to be interrupted.
fn slow() -> ScalarUDF {
    let sleep = |arguments: &[ColumnarValue]| {
        let [number] = arguments else { return datafusion::common::exec_err!("slow takes a number") };
        let rows = if let ColumnarValue::Array(array) = number { array.len() } else { 1 };
        std::thread::sleep(Duration::from_millis(80) * rows as u32);
        Ok(number.clone())
    };
    create_udf("slow", vec![DataType::Int64], DataType::Int64, Volatility::Volatile, Arc::new(sleep))
}

async fn scheduler(port: u16) -> Result<()> {
    let config = SchedulerConfig {
        external_host: "127.0.0.1".to_owned(),
        bind_host: "127.0.0.1".to_owned(),
        bind_port: port,
        scheduling_policy: TaskSchedulingPolicy::PullStaged,
        executor_timeout_seconds: 8,
        expire_dead_executor_interval_seconds: 2,
        ..SchedulerConfig::default()
    };
    let build = |session: SessionConfig| -> datafusion::error::Result<SessionState> {
        let mut state = default_session_builder(session)?;
        state.register_udf(Arc::new(slow()))?;
        Ok(state)
    };
    let config = config.with_override_session_builder(Arc::new(build));
    let cluster = BallistaCluster::new_from_config(&config).await?;
    start_server(cluster, (Ipv4Addr::LOCALHOST, port).into(), Arc::new(config)).await?;
    Ok(())
}

async fn executor(scheduler: u16, port: u16, folder: &str) -> Result<()> {
    let mut registry = BallistaFunctionRegistry::default();
    for function in ballista_scalar_functions() {
        registry.scalar_functions.insert(function.name().to_owned(), function);
    }
    registry.scalar_functions.insert("slow".to_owned(), Arc::new(slow()));
    let config = ExecutorProcessConfig {
        bind_host: "127.0.0.1".to_owned(),
        external_host: Some("127.0.0.1".to_owned()),
        port,
        scheduler_host: "127.0.0.1".to_owned(),
        scheduler_port: scheduler,
        scheduler_connect_timeout_seconds: 30,
        vcores: 2,
        task_scheduling_policy: TaskSchedulingPolicy::PullStaged,
        work_dir: Some(folder.to_owned()),
        override_function_registry: Some(Arc::new(registry)),
        ..ExecutorProcessConfig::default()
    };
    start_executor_process(Arc::new(config)).await?;
    Ok(())
}

/// A process of this program that ends with it.
struct Process(Child);

impl Process {
    fn start(words: &[&str]) -> Result<Self> {
        Ok(Process(Command::new(std::env::current_exe()?).args(words).spawn()?))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

async fn listening(port: u16) {
    while tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_err() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Of how many stages an executor has results: `FOLDER/JOB/STAGE`.
fn stages(folder: &Path) -> usize {
    let entries = |path: &Path| std::fs::read_dir(path).into_iter().flatten().flatten();
    let all = entries(folder).flat_map(|job| entries(&job.path()).collect::<Vec<_>>());
    all.filter(|stage| stage.file_name().to_str().is_some_and(|name| name.parse::<u32>().is_ok())).count()
}

async fn query(url: &str, file: &str, sql: &str) -> Result<Vec<RecordBatch>> {
    let config = SessionConfig::new_with_ballista()
        .with_ballista_adaptive_query_planner(false)
        .with_target_partitions(12)
        .with_batch_size(4)
        .set_usize("datafusion.optimizer.repartition_file_min_size", 1);
    let state = SessionStateBuilder::new().with_config(config).with_default_features().build();
    let context = SessionContext::remote_with_state(url, state).await?;
    context.register_udf(slow());
    context.register_parquet("numbers", file, ParquetReadOptions::default()).await?;
    Ok(context.sql(sql).await?.collect().await?)
}

async fn reproduce() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("double-rows-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let file = folder.join("numbers.parquet").display().to_string();
    let local = SessionContext::new();
    local.sql("SET datafusion.execution.parquet.max_row_group_size = 20").await?.collect().await?;
    let numbers = local.sql(&format!("SELECT value AS id FROM generate_series(1, {ROWS})")).await?;
    numbers.write_parquet(&file, DataFrameWriteOptions::new().with_single_file_output(true), None).await?;

    let port = free_port()?;
    let _scheduler = Process::start(&["scheduler", &port.to_string()])?;
    listening(port).await;
    let mut executors = Vec::new();
    for number in 0..2 {
        let (own, work) = (free_port()?, folder.join(format!("executor-{number}")).display().to_string());
        std::fs::create_dir_all(&work)?;
        executors.push(Process::start(&["executor", &port.to_string(), &own.to_string(), &work])?);
        listening(own).await;
    }

    let url = format!("df://127.0.0.1:{port}");
    let sql = "SELECT id, slow(once) AS twice FROM
        (SELECT id, max(once) AS once FROM (SELECT id, slow(id) AS once FROM numbers) GROUP BY id)";
    let rows = tokio::spawn(async move { query(&url, &file, sql).await });
    // Once it has results of the second stage.
    while stages(&folder.join("executor-0")) < 2 && !rows.is_finished() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // A task takes 1.6 s: it has read what it needs of the others by then, and has not come to its end.
    tokio::time::sleep(Duration::from_millis(700)).await;
    println!("an executor dies; the query is {}", if rows.is_finished() { "over" } else { "under way" });
    drop(executors.remove(0));
    let rows = rows.await??;
    let mut copies: BTreeMap<i64, usize> = BTreeMap::new();
    for batch in &rows {
        for id in batch.column(0).as_primitive::<Int64Type>().values() {
            *copies.entry(*id).or_default() += 1;
        }
    }
    let twice = copies.values().filter(|&&count| count > 1).count();
    println!("{ROWS} rows in the table, {} found, {twice} of them more than once", copies.len());
    std::fs::remove_dir_all(&folder)?;
    if twice == 0 { Ok(()) } else { Err(format!("{twice} rows came more than once").into()) }
}

#[tokio::main]
async fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match &words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["scheduler", port] => scheduler(port.parse()?).await,
        ["executor", scheduler, port, folder] => executor(scheduler.parse()?, port.parse()?, folder).await,
        _ => reproduce().await,
    }
}
