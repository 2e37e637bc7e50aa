//! The bundled network, small.

use std::path::{Path, PathBuf};

/// The side of a picture for [`small_network`].
pub(crate) const SIDE: usize = 65;

/// The bundled network for pictures of [`SIDE`] by [`SIDE`] pixels, as a file in `folder`.
pub(crate) fn small_network(folder: &Path) -> PathBuf {
    let path = folder.join("small.tflite");
    std::fs::write(&path, network_for(SIDE)).expect("written");
    path
}

/// The bundled network for pictures of `side` by `side` pixels: all its steps, and the less work.
fn network_for(side: usize) -> Vec<u8> {
    let mut bytes = include_bytes!("../../../../examples/posenet/data/posenet_figures.tflite").to_vec();
    let [own, other] = [257, side as i32].map(|side| [1, side, side, 3].map(i32::to_le_bytes).concat());
    let shapes = bytes.windows(own.len()).enumerate().filter(|(_, part)| **part == own);
    let places: Vec<usize> = shapes.map(|(at, _)| at).collect();
    let &[at] = &places[..] else { panic!("the input's shape is at {places:?}") };
    bytes[at..at + other.len()].copy_from_slice(&other);
    bytes
}
