//! [Diptych](diptych) in Apache DataFusion and Ballista: networks on pictures as functions of SQL.
//!
//! | function | gives |
//! |---|---|
//! | `pose(image)` | `{poses: [{score, keypoints: [{name, x, y, score}]}], error}`, in pixels of the picture, by the network named `pose` |
//! | `infer(network, image)` | `{outputs: [{name, shape, values}], error}`, by the network of that name |
//!
//! A picture is PNG, JPEG, BMP or GIF in a binary column, and is stretched to the network's input. One that cannot be
//! read has null for its result and the reason in `error`; a null picture gives null. Where a network names several
//! people, `poses` has all of them, the surest first.
//!
//! Both are asynchronous functions: pictures are decoded on threads of their own while the device runs, and the pictures
//! of all queries and partitions of a process share runs of the network ([`diptych::Batch`]). The engine calls a
//! function once for each batch of rows, and holds its pictures meanwhile: where they are large,
//! `SET datafusion.execution.batch_size = 256`.
//!
//! The engine awaits functions in `SELECT` and `WHERE`, not in `GROUP BY`, aggregates, joins and `ORDER BY`: call them in a
//! subquery there.
//!
//! A lost device is an I/O error, which Ballista tries again; the next call opens the device anew ([`failure`]).
//!
//! ```no_run
//! use datafusion::prelude::{ParquetReadOptions, SessionContext};
//! use diptych_datafusion::{Models, Network, Options, register};
//!
//! # async fn people() -> datafusion::error::Result<()> {
//! let networks = vec![Network::figures("pose"), Network::file("classes", "mobilenet.tflite")];
//! let models = Models::open(Options { networks, ..Options::default() })?;
//! let context = SessionContext::new();
//! register(&context, &models);
//! context.register_parquet("pictures", "pictures.parquet", ParquetReadOptions::default()).await?;
//! let found = context.sql("SELECT id, pose(image)['poses'][1]['score'] AS score FROM pictures").await?;
//! found.show().await?;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]
#![warn(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[cfg(feature = "ballista")]
pub mod cluster;
mod columns;
mod failure;
mod functions;
mod models;
mod network;
#[doc(hidden)]
pub mod plain;
mod rows;
mod unique;

pub use failure::failure;
pub use functions::{functions, register};
pub use models::{Models, Options};
pub use network::{Network, Normalisation};
pub use unique::unique;
