//! What the fuzzers and the test of their corpus share: what is done with an input, and how inputs are made of others.
//!
//! | module | what |
//! |---|---|
//! | `checks` | what each target does with an input |
//! | `graph` | a graph that bytes describe |
//! | `heap` | how much memory that took |
//! | `tree`, `mutate` | a file as fields within fields, and changes to them |
//! | `flatbuffer`, `protobuf` | TensorFlow Lite and ONNX files as such |
//! | `tokens` | a text as words, and changes to them |
//! | `seeds`, `words` | files to begin with, and the dictionaries |
//! | `noise` | numbers that only a seed decides |

pub mod checks;
pub mod flatbuffer;
pub mod graph;
pub mod heap;
pub mod mutate;
pub mod noise;
pub mod protobuf;
pub mod seeds;
pub mod tokens;
pub mod tree;
pub mod words;
