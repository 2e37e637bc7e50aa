//! Results as Arrow arrays.

use crate::rows::Row;
use datafusion::arrow::array::{ArrayRef, Float32Array, Int64Array, ListArray, StringArray, StructArray};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::error::{DataFusionError, Result};
use diptych::HostTensor;
use diptych_decode::Pose;
use diptych_decode::skeleton::NAMES;
use std::sync::Arc;

/// An output of a network, by its name.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) name: String,
    pub(crate) values: HostTensor,
}

fn structure<const N: usize>(fields: [(&str, DataType); N]) -> Fields {
    fields.into_iter().map(|(name, kind)| Field::new(name, kind, true)).collect()
}

fn item(kind: DataType) -> FieldRef {
    Arc::new(Field::new_list_field(kind, true))
}

fn list(kind: DataType) -> DataType {
    DataType::List(item(kind))
}

fn keypoint() -> Fields {
    let number = DataType::Float32;
    structure([("name", DataType::Utf8), ("x", number.clone()), ("y", number.clone()), ("score", number)])
}

fn pose() -> Fields {
    structure([("score", DataType::Float32), ("keypoints", list(DataType::Struct(keypoint())))])
}

fn output() -> Fields {
    let (shape, values) = (list(DataType::Int64), list(DataType::Float32));
    structure([("name", DataType::Utf8), ("shape", shape), ("values", values)])
}

/// The type of `pose(image)`.
pub(crate) fn poses_type() -> DataType {
    result_type("poses", pose())
}

/// The type of `infer(network, image)`.
pub(crate) fn outputs_type() -> DataType {
    result_type("outputs", output())
}

fn result_type(name: &str, of: Fields) -> DataType {
    DataType::Struct(structure([(name, list(DataType::Struct(of))), ("error", DataType::Utf8)]))
}

/// Where lists of these lengths begin.
fn offsets(lengths: impl IntoIterator<Item = usize>) -> Result<OffsetBuffer<i32>> {
    let (mut offsets, mut end) = (vec![0], 0i32);
    for length in lengths {
        let next = i32::try_from(length).ok().and_then(|length| end.checked_add(length));
        end = next.ok_or_else(|| {
            let text = "the results of one batch of rows have more than 2147483647 values: set a smaller \
                        datafusion.execution.batch_size";
            DataFusionError::ResourcesExhausted(text.to_owned())
        })?;
        offsets.push(end);
    }
    Ok(OffsetBuffer::new(ScalarBuffer::from(offsets)))
}

/// Lists of these lengths of `values`.
fn lists(
    lengths: impl IntoIterator<Item = usize>,
    values: ArrayRef,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let list = ListArray::try_new(item(values.data_type().clone()), offsets(lengths)?, values, nulls)?;
    Ok(Arc::new(list))
}

/// The column of the results: null of a null; else the list or the error, the other one null.
fn results<T>(fields: Fields, rows: &[Row<Vec<T>>], values: ArrayRef) -> Result<ArrayRef> {
    let found = |row: &Row<Vec<T>>| match row {
        Some(Ok(list)) => Some(list.len()),
        _ => None,
    };
    let lengths = rows.iter().map(|row| found(row).unwrap_or(0));
    let nulls = rows.iter().map(|row| found(row).is_some()).collect::<Vec<bool>>();
    let list = lists(lengths, values, Some(NullBuffer::from(nulls)))?;
    let errors: StringArray = rows
        .iter()
        .map(|row| match row {
            Some(Err(error)) => Some(error.as_str()),
            _ => None,
        })
        .collect();
    let nulls = NullBuffer::from(rows.iter().map(Option::is_some).collect::<Vec<bool>>());
    Ok(Arc::new(StructArray::try_new(fields, vec![list, Arc::new(errors)], Some(nulls))?))
}

fn fields(kind: DataType) -> Result<Fields> {
    match kind {
        DataType::Struct(fields) => Ok(fields),
        other => Err(DataFusionError::Internal(format!("found the result type {other}, wanted a struct"))),
    }
}

/// All values of the rows that have any.
fn values<T>(rows: &[Row<Vec<T>>]) -> Vec<&T> {
    rows.iter().flatten().flatten().flatten().collect()
}

/// The column of `pose(image)`.
pub(crate) fn poses(rows: &[Row<Vec<Pose>>]) -> Result<ArrayRef> {
    let found = values(rows);
    let keypoints = || found.iter().flat_map(|pose| &pose.keypoints);
    let names = found.iter().flat_map(|_| NAMES);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(names)),
        Arc::new(Float32Array::from_iter_values(keypoints().map(|keypoint| keypoint.x))),
        Arc::new(Float32Array::from_iter_values(keypoints().map(|keypoint| keypoint.y))),
        Arc::new(Float32Array::from_iter_values(keypoints().map(|keypoint| keypoint.score))),
    ];
    let parts = Arc::new(StructArray::try_new(keypoint(), columns, None)?);
    let parts = lists(found.iter().map(|pose| pose.keypoints.len()), parts, None)?;
    let scores = Arc::new(Float32Array::from_iter_values(found.iter().map(|pose| pose.score)));
    let poses = Arc::new(StructArray::try_new(pose(), vec![scores, parts], None)?);
    results(fields(poses_type())?, rows, poses)
}

/// The column of `infer(network, image)`.
pub(crate) fn outputs(rows: &[Row<Vec<Output>>]) -> Result<ArrayRef> {
    let found = values(rows);
    let shapes = found.iter().map(|output| output.values.dims());
    let extents = shapes.clone().flat_map(|dims| dims.extents().to_vec()).map(|extent| extent as i64);
    let extents = Arc::new(Int64Array::from_iter_values(extents));
    let mut numbers = Vec::new();
    for output in &found {
        numbers.extend_from_slice(&output.values.to_f32());
    }
    let numbers = Arc::new(Float32Array::from(numbers));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(found.iter().map(|output| &output.name))),
        lists(shapes.clone().map(|dims| dims.extents().len()), extents, None)?,
        lists(shapes.map(|dims| dims.elements()), numbers, None)?,
    ];
    let outputs = Arc::new(StructArray::try_new(output(), columns, None)?);
    results(fields(outputs_type())?, rows, outputs)
}
