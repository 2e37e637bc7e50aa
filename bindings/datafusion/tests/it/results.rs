//! Results of `pose` as plain values, and contexts to have them from.

use datafusion::arrow::array::{Array, AsArray, RecordBatch, StructArray};
use datafusion::arrow::datatypes::{Float32Type, Int64Type};
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use diptych::{Backend, Context};
use diptych_datafusion::{Models, Network, Options, register};
use std::collections::BTreeMap;
use std::path::Path;

/// A person: the score, and the parts as x, y and score.
#[derive(Debug, Clone, PartialEq)]
pub struct Person {
    pub score: f32,
    pub parts: Vec<[f32; 3]>,
}

/// A row of `pose`.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    Null,
    People(Vec<Person>),
    Unreadable(String),
}

/// The column of `pose` beside that of `id`, each row once.
pub fn found(batches: &[RecordBatch]) -> BTreeMap<i64, Found> {
    let once = |(id, mut copies): (i64, Vec<Found>)| {
        assert_eq!(copies.len(), 1, "row {id} came {} times", copies.len());
        (id, copies.remove(0))
    };
    copies(batches).into_iter().map(once).collect()
}

/// The column of `pose` beside that of `id`, each row as often as it came.
pub fn copies(batches: &[RecordBatch]) -> BTreeMap<i64, Vec<Found>> {
    let mut all: BTreeMap<i64, Vec<Found>> = BTreeMap::new();
    for batch in batches {
        let ids = batch.column(0).as_primitive::<Int64Type>();
        let results = batch.column(1).as_struct();
        for row in 0..batch.num_rows() {
            all.entry(ids.value(row)).or_default().push(of_row(results, row));
        }
    }
    all
}

fn of_row(results: &StructArray, row: usize) -> Found {
    if results.is_null(row) {
        return Found::Null;
    }
    let (poses, errors) = (results.column(0).as_list::<i32>(), results.column(1).as_string::<i32>());
    if poses.is_null(row) {
        return Found::Unreadable(errors.value(row).to_owned());
    }
    assert!(errors.is_null(row), "row {row} has a result and an error");
    let poses = poses.value(row);
    let poses = poses.as_struct();
    let people = (0..poses.len()).map(|pose| {
        let parts = poses.column(1).as_list::<i32>().value(pose);
        let number = |column: usize, part: usize| {
            parts.as_struct().column(column).as_primitive::<Float32Type>().value(part)
        };
        let parts = (0..parts.len()).map(|part| [1, 2, 3].map(|column| number(column, part)));
        Person { score: poses.column(0).as_primitive::<Float32Type>().value(pose), parts: parts.collect() }
    });
    Found::People(people.collect())
}

/// Checks that two results are the same but for what devices and batches differ by: places by a hundredth of a pixel.
pub fn same(wanted: &BTreeMap<i64, Found>, other: &BTreeMap<i64, Found>) {
    assert_eq!(wanted.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>(), "the rows");
    for (id, one) in wanted {
        let other = &other[id];
        let (Found::People(one), Found::People(other)) = (one, other) else {
            assert_eq!(one, other, "row {id}");
            continue;
        };
        assert_eq!(one.len(), other.len(), "people of row {id}");
        for (a, b) in one.iter().zip(other) {
            assert!((a.score - b.score).abs() < 1e-4, "row {id}: {a:?} {b:?}");
            let apart = a.parts.iter().flatten().zip(b.parts.iter().flatten()).map(|(a, b)| (a - b).abs());
            assert!(apart.fold(0.0, f32::max) < 0.01, "row {id}: {a:?} {b:?}");
        }
    }
}

/// The networks that tests know: the bundled one, as `pose` and as `other`.
pub fn options(backend: Backend) -> Options {
    let device = Context::builder().backend(backend);
    let networks = vec![Network::figures("pose"), Network::figures("other")];
    Options { device, networks, max_batch: 4, ..Options::default() }
}

pub async fn models(options: Options) -> Models {
    tokio::task::spawn_blocking(|| Models::open(options)).await.unwrap().unwrap()
}

/// A context that spreads a file's row groups over partitions.
pub fn config() -> SessionConfig {
    SessionConfig::new()
        .with_target_partitions(4)
        .with_batch_size(16)
        .set_usize("datafusion.optimizer.repartition_file_min_size", 1)
}

pub async fn local(models: &Models, file: &Path) -> SessionContext {
    let context = SessionContext::new_with_config(config());
    register(&context, models);
    table(&context, file).await;
    context
}

pub async fn table(context: &SessionContext, file: &Path) {
    let path = file.to_str().unwrap();
    context.register_parquet("pictures", path, ParquetReadOptions::default()).await.unwrap();
}

pub async fn query(context: &SessionContext, sql: &str) -> datafusion::error::Result<Vec<RecordBatch>> {
    context.sql(sql).await?.collect().await
}
