//! What a network is made from: a model, a record of tuned kernels, a precision.

use crate::arrays::Array;
use crate::errors::exception;
use diptych::internals::package;
use diptych::{
    Context, Database, Dims, FastestOptions, LoadOptions, ModelFile, Precision, SessionOptions,
    SharedDatabase,
};
use pyo3::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// A model: a file, or a file's bytes.
#[derive(FromPyObject)]
pub(crate) enum Source {
    Bytes(Vec<u8>),
    Path(PathBuf),
}

impl Source {
    /// The file, whose inputs' extents each run decides where it leaves them open. With caches, outputs that are caches are
    /// read beside those that were chosen.
    pub(crate) fn open(self, options: &LoadOptions, caches: bool) -> PyResult<ModelFile> {
        let file = match self {
            Source::Bytes(bytes) => {
                let bytes: Arc<[u8]> = bytes.into();
                package::read(options, caches, |load| ModelFile::from_bytes(Arc::clone(&bytes), load))
            }
            Source::Path(path) => package::read(options, caches, |load| ModelFile::load(&path, load)),
        };
        file.map_err(exception)
    }
}

/// Extents that are fixed although the file leaves them open, inputs that are known beforehand, whether quantised operators are
/// computed with floats, the outputs that are wanted if not all are, how many threads read it, and files that hold its weights.
pub(crate) fn load_options(
    dimensions: BTreeMap<String, usize>,
    values: BTreeMap<String, Array<'_>>,
    dequantize: bool,
    outputs: BTreeSet<String>,
    threads: Option<NonZeroUsize>,
    files: BTreeMap<String, Vec<u8>>,
) -> PyResult<LoadOptions> {
    let tensor = |(name, array): (String, Array<'_>)| {
        let dims = Dims::new(array.shape()).map_err(exception)?;
        Ok((name, array.elements()?.tensor(dims).map_err(exception)?))
    };
    let values = values.into_iter().map(tensor).collect::<PyResult<_>>()?;
    let files = files.into_iter().map(|(name, bytes)| (name, bytes.into())).collect();
    Ok(LoadOptions { dimensions, values, dequantize, outputs, threads, files, ..LoadOptions::default() })
}

/// The tuner's record, and the folder in which it is kept. With an empty path that is the user's, without one it is in
/// memory.
pub(crate) fn database(record: Option<PathBuf>) -> PyResult<(SharedDatabase, Option<PathBuf>)> {
    let directory = match record {
        Some(path) if path.as_os_str().is_empty() => Some(Database::default_dir().map_err(exception)?),
        record => record,
    };
    let database = match &directory {
        Some(directory) => Database::open(directory).map_err(exception)?,
        None => Database::in_memory(),
    };
    Ok((Arc::new(Mutex::new(database)), directory))
}

/// The device that runs the file's network the fastest, by measurement.
pub(crate) fn fastest(
    file: &ModelFile,
    f16: bool,
    database: &SharedDatabase,
    cpu_threads: Option<NonZeroUsize>,
) -> PyResult<Context> {
    let precision = if f16 { Precision::F16Storage } else { Precision::F32 };
    let tuning = diptych::Tuning::Database(Arc::clone(database));
    let session = SessionOptions { precision, tuning, cpu_threads, ..Default::default() };
    let options = FastestOptions { session, ..Default::default() };
    file.fastest(&options).map(|fastest| fastest.context).map_err(exception)
}
