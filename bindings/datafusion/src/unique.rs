//! Rows that a cluster gave more than once.

use datafusion::arrow::array::{BooleanArray, RecordBatch};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::error::{DataFusionError, Result};
use std::collections::HashSet;

/// The first row of each value of the column `key`, in their order. Null is a value.
///
/// Ballista 55 may give rows twice where an executor dies while a later stage of a query has results. A query whose rows
/// have a key of their own gets each of them once so; counts and sums are right if they are taken of these rows.
///
/// ```
/// use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
/// use std::sync::Arc;
///
/// let rows = |ids: Vec<i64>| {
///     let ids: ArrayRef = Arc::new(Int64Array::from(ids));
///     RecordBatch::try_from_iter([("id", ids)])
/// };
/// let unique = diptych_datafusion::unique(&[rows(vec![3, 1])?, rows(vec![1, 2, 3])?], "id")?;
/// assert_eq!(unique, [rows(vec![3, 1])?, rows(vec![2])?]);
/// # Ok::<(), datafusion::error::DataFusionError>(())
/// ```
///
/// # Errors
/// If a batch has no such column, or the column is of other types in other batches.
pub fn unique(batches: &[RecordBatch], key: &str) -> Result<Vec<RecordBatch>> {
    let mut seen = HashSet::new();
    let mut converter: Option<RowConverter> = None;
    let mut all = Vec::with_capacity(batches.len());
    for batch in batches {
        let column = batch.column_by_name(key).ok_or_else(|| {
            let schema = batch.schema();
            let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            DataFusionError::Plan(format!("no column {key:?} to tell rows by, found {}", names.join(", ")))
        })?;
        let converter = match &mut converter {
            Some(converter) => converter,
            None => converter.insert(RowConverter::new(vec![SortField::new(column.data_type().clone())])?),
        };
        let rows = converter.convert_columns(std::slice::from_ref(column))?;
        let first: Vec<bool> = rows.iter().map(|row| seen.insert(row.owned())).collect();
        let kept = filter_record_batch(batch, &BooleanArray::from(first))?;
        if kept.num_rows() > 0 {
            all.push(kept);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{ArrayRef, Int64Array, StringArray};
    use std::sync::Arc;

    fn batch(names: &[Option<&str>], numbers: &[i64]) -> RecordBatch {
        let names: ArrayRef = Arc::new(StringArray::from(names.to_vec()));
        let numbers: ArrayRef = Arc::new(Int64Array::from(numbers.to_vec()));
        RecordBatch::try_from_iter([("name", names), ("number", numbers)]).expect("as many")
    }

    #[test]
    fn the_first_row_of_each_key_stays_with_its_other_columns() {
        let batches = [
            batch(&[Some("b"), None, Some("b")], &[1, 2, 3]),
            batch(&[None, Some("b")], &[4, 5]),
            batch(&[Some("a")], &[6]),
        ];
        let found = unique(&batches, "name").expect("a key");
        assert_eq!(found, [batch(&[Some("b"), None], &[1, 2]), batch(&[Some("a")], &[6])]);
        assert_eq!(unique(&batches, "number").expect("a key"), batches);
        assert!(unique(&[], "name").expect("nothing").is_empty());
    }

    #[test]
    fn a_column_that_is_not_there_is_refused_with_those_that_are() {
        let error = unique(&[batch(&[None], &[1])], "id").expect_err("no such column").to_string();
        assert!(error.contains("\"id\"") && error.contains("name, number"), "{error}");
    }
}
