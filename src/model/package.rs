//! What the packages for other languages have in common.

use super::ModelFile;
use crate::context::Context;
use crate::dtype::Precision;
use crate::error::Result;
use diptych_import::model::LoadOptions;
use std::collections::BTreeSet;

/// A file by a function that reads it. With caches, outputs that are caches are read beside those that the options choose.
///
/// # Errors
/// Those of the function.
pub fn read(
    options: &LoadOptions,
    caches: bool,
    load: impl Fn(&LoadOptions) -> Result<ModelFile>,
) -> Result<ModelFile> {
    if !caches || options.outputs.is_empty() {
        return load(options);
    }
    let whole = load(&LoadOptions { outputs: BTreeSet::new(), ..options.clone() })?;
    let mut own = options.clone();
    own.outputs.extend(whole.cache_pairs().into_iter().map(|(output, _)| output));
    load(&own)
}

/// The precision where halves may be used (`f16`): they are computed in where every device but the CPU does that, and stored
/// otherwise.
pub fn precision(f16: bool, contexts: &[Context]) -> Precision {
    let mut devices = contexts.iter().filter_map(|context| context.info().device.as_ref()).peekable();
    let halves = devices.peek().is_some() && devices.all(|device| device.limits.native_half);
    match (f16, halves) {
        (false, _) => Precision::F32,
        (true, false) => Precision::F16Storage,
        (true, true) => Precision::F16,
    }
}
