//! The PoseNet example and its networks: its modules' own unit tests, real networks, the bundled one.
//!
//! One program, because each test program links the whole library.
#![cfg(feature = "tflite")]
#![expect(dead_code, reason = "the example's modules are included whole; the tests use parts of them")]

mod bundled;
mod networks;
mod parts;

mod npy;

#[path = "../models/absent.rs"]
mod absent;

#[path = "../../examples/posenet/compare.rs"]
mod compare;
#[path = "../../examples/posenet/draw.rs"]
mod draw;
#[path = "../../examples/posenet/evaluate.rs"]
mod evaluate;
#[path = "../../examples/posenet/film.rs"]
mod film;
#[path = "../../examples/posenet/model.rs"]
mod model;
#[path = "../../examples/posenet/network.rs"]
mod network;
#[path = "../../examples/posenet/options.rs"]
mod options;
#[path = "../../examples/posenet/report.rs"]
mod report;
#[path = "../../examples/posenet/tuning.rs"]
mod tuning;

#[path = "../../examples/shared/canvas.rs"]
mod canvas;
#[path = "../../examples/shared/frames.rs"]
mod frames;
#[path = "../../examples/shared/print.rs"]
mod print;
#[path = "../../examples/shared/progress.rs"]
mod progress;
#[path = "../../examples/shared/tables.rs"]
mod tables;
