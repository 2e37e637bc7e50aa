//! The programs of graphs on a device.

use crate::context::Engine;
#[cfg(target_family = "wasm")]
use crate::error::Error;
use crate::error::Result;
use crate::graph::Graph;
#[cfg(not(target_family = "wasm"))]
use crate::lower::Written;
use crate::lower::{CompiledKernels, Program};
use crate::options::SessionOptions;
use crate::shape::Shape;

/// The program of a graph on a device. `known`: kernels that are compiled for other extents of the graph.
pub(super) fn lowered(
    engine: &Engine,
    graph: &Graph,
    options: &SessionOptions,
    known: Option<&CompiledKernels>,
) -> Result<Program> {
    let device = engine.device()?;
    #[cfg(not(target_family = "wasm"))]
    let changes = |shape: Shape| crate::lower::change_times(device, shape, options.precision);
    #[cfg(target_family = "wasm")]
    let changes =
        |_: Shape| Err(Error::unsupported("feature maps in images", "WebGPU's kernels take buffers"));
    Program::of(graph, options, device.info(), &changes, known)
}

/// [`lowered`] with what the units write as outputs behind the graph's.
#[cfg(not(target_family = "wasm"))]
pub(super) fn lowered_with_written(
    engine: &Engine,
    graph: &Graph,
    options: &SessionOptions,
) -> Result<(Program, Vec<Written>)> {
    let device = engine.device()?;
    let changes = |shape: Shape| crate::lower::change_times(device, shape, options.precision);
    Program::with_written(graph, options, device.info(), &changes)
}
