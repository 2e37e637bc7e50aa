//! Model files to graphs.

pub mod tflite;
