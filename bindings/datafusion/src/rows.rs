//! Pictures of a column through a network: decoded on several threads while the device runs.

use crate::models::{Models, Ready};
use crate::network::Loaded;
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::error::{DataFusionError, Result};
use diptych::HostTensor;
use futures::stream::{self, StreamExt, TryStreamExt};

/// What becomes of a row: nothing of a null, else what the network found or why the picture could not be used.
pub(crate) type Row<T> = Option<std::result::Result<T, String>>;

/// What a run's outputs mean for a picture of this width and height.
pub(crate) type Meaning<T> = fn(&Loaded, Vec<HostTensor>, (u32, u32)) -> anyhow::Result<T>;

/// The types of a column of pictures.
pub(crate) const PICTURES: [DataType; 3] = [DataType::Binary, DataType::LargeBinary, DataType::BinaryView];

/// The picture of a row, unless it is null.
fn picture(pictures: &dyn Array, row: usize) -> Result<Option<&[u8]>> {
    if pictures.is_null(row) {
        return Ok(None);
    }
    let value = match pictures.data_type() {
        DataType::Binary => pictures.as_binary_opt::<i32>().map(|column| column.value(row)),
        DataType::LargeBinary => pictures.as_binary_opt::<i64>().map(|column| column.value(row)),
        DataType::BinaryView => pictures.as_binary_view_opt().map(|column| column.value(row)),
        _ => None,
    };
    value.map(Some).ok_or_else(|| {
        DataFusionError::Execution(format!("found pictures of {}, wanted Binary", pictures.data_type()))
    })
}

/// Runs each picture through the network of its row, several at a time, and gives the results in the rows' order.
///
/// # Errors
/// What [`Models::failed`] makes of an error of the device. A picture that cannot be used is none.
pub(crate) async fn run<T: Send + 'static>(
    models: &Models,
    networks: Vec<Option<Ready>>,
    pictures: ArrayRef,
    meaning: Meaning<T>,
) -> Result<Vec<Row<T>>> {
    let rows = networks.into_iter().enumerate().map(|(row, network)| {
        let pictures = ArrayRef::clone(&pictures);
        async move {
            match network {
                Some(network) => one(models, network, pictures, row, meaning).await,
                None => Ok(None),
            }
        }
    });
    stream::iter(rows).buffered(models.in_flight()).try_collect().await
}

async fn one<T: Send + 'static>(
    models: &Models,
    ready: Ready,
    pictures: ArrayRef,
    row: usize,
    meaning: Meaning<T>,
) -> Result<Row<T>> {
    let network = ready.network.clone();
    let prepare = move || -> Result<Row<(HostTensor, (u32, u32))>> {
        let picture = picture(&pictures, row)?;
        Ok(picture.map(|picture| network.prepare(picture).map_err(|error| sentence(&error))))
    };
    let (input, size) = match models.on_a_thread(prepare).await {
        Ok(Ok(Some(Ok(prepared)))) => prepared,
        Ok(Ok(Some(Err(error)))) => return Ok(Some(Err(error))),
        Ok(Ok(None)) => return Ok(None),
        Ok(Err(error)) => return Err(error),
        Err(error) => return panicked("the picture's decoder", error),
    };
    let outputs = ready.batch.run_async([(ready.network.input.name.as_str(), input)]).await;
    let outputs = outputs.map_err(|error| models.failed(&ready, error))?;
    let network = ready.network;
    let meant = models.on_a_thread(move || meaning(&network, outputs, size)).await;
    match meant {
        Ok(meant) => Ok(Some(meant.map_err(|error| sentence(&error)))),
        Err(error) => panicked("the reading of the outputs", error),
    }
}

/// A panic concerns its row alone; where the runtime ends, so does the query.
fn panicked<T>(what: &str, error: tokio::task::JoinError) -> Result<Row<T>> {
    if error.is_panic() {
        return Ok(Some(Err(format!("{what} panicked"))));
    }
    Err(DataFusionError::ExecutionJoin(Box::new(error)))
}

/// An error and its causes.
fn sentence(error: &anyhow::Error) -> String {
    format!("{error:#}")
}
