//! The library from outside, each part in a module.
//!
//! One program, because each test program links the whole library.

mod attention;
mod awaited;
mod batch;
mod book;
mod browser_texts;
#[cfg(all(feature = "onnx", feature = "tflite"))]
mod caches;
mod calibrated;
#[cfg(all(feature = "onnx", feature = "tflite"))]
mod cases;
mod chains;
mod chosen;
mod composed;
mod cpu_runs;
mod custom;
mod dispatches;
mod facts;
mod fastest;
mod flaky;
mod forms;
#[cfg(feature = "onnx")]
mod generated;
mod glu;
mod graph;
mod half_rows;
mod half_states;
mod heads;
mod idioms;
mod integers;
mod known_faults;
mod layers;
mod lost;
mod machine;
mod memory;
mod mlps;
mod moves;
mod on_cpu;
mod one_row;
mod open;
mod open_graphs;
#[cfg(all(feature = "onnx", feature = "tflite"))]
mod operators;
mod oracle;
mod picks;
mod pool;
mod precision;
mod product_rows;
mod promises;
mod public_api;
mod quantized;
mod quantized_operators;
mod random;
#[cfg(feature = "onnx")]
mod random_files;
mod read_rows;
mod reductions;
mod replay;
mod samples;
mod session;
mod slices;
mod sound;
mod squeezes;
mod states;
mod step_choices;
mod structure;
mod threads;
mod time_limit;
mod together;
mod tune;
mod tuner;
mod tuning_faults;
mod tuning_record;
mod validated;
mod without_elements;

#[path = "../models/absent.rs"]
mod absent;

#[cfg(all(feature = "onnx", feature = "tflite"))]
#[path = "../posenet/npy.rs"]
mod shared_npy;
