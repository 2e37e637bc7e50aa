//! The example `vision`: its modules' own unit tests, and each task from picture to result.
//!
//! One program, because each test program links the whole library.
#![cfg(feature = "tflite")]
#![expect(dead_code, reason = "the example's modules are included whole; the tests use parts of them")]

mod tasks;

#[path = "../../examples/vision/detectors.rs"]
mod detectors;
#[path = "../../examples/vision/draw.rs"]
mod draw;
#[path = "../../examples/vision/film.rs"]
mod film;
#[path = "../../examples/vision/fit.rs"]
mod fit;
#[path = "../../examples/vision/found.rs"]
mod found;
#[path = "../../examples/vision/hand.rs"]
mod hand;
#[path = "../../examples/vision/ink.rs"]
mod ink;
#[path = "../../examples/vision/network.rs"]
mod network;
#[path = "../../examples/vision/options.rs"]
mod options;
#[path = "../../examples/vision/reader.rs"]
mod reader;
#[path = "../../examples/vision/segment.rs"]
mod segment;
#[path = "../../examples/vision/style.rs"]
mod style;

#[path = "../../examples/shared/canvas.rs"]
mod canvas;
#[path = "../../examples/shared/figures.rs"]
mod figures;
#[path = "../../examples/shared/frames.rs"]
mod frames;
#[path = "../../examples/shared/print.rs"]
mod print;
#[path = "../../examples/shared/progress.rs"]
mod progress;
#[path = "../../examples/shared/tables.rs"]
mod tables;
