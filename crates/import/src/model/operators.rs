//! The operators that the loaders read, for the book's table of them.

/// Domain and name of each operator of ONNX; the domain of the standard ones is empty.
#[cfg(feature = "onnx")]
pub fn onnx_names() -> Vec<(&'static str, &'static str)> {
    super::onnx::operators()
}

/// The name of each operator of TensorFlow Lite. That of a custom one is as its file has it.
#[cfg(feature = "tflite")]
pub fn tflite_names() -> Vec<&'static str> {
    super::tflite::operators()
}
