//! The dictionaries' texts.

use std::sync::OnceLock;

/// The words of the dictionary of TensorFlow Lite files.
pub fn tflite() -> &'static [&'static str] {
    static LIST: OnceLock<Vec<&str>> = OnceLock::new();
    LIST.get_or_init(|| words(include_str!("../../dictionaries/tflite.dict")))
}

/// The words of the dictionary of ONNX files.
pub fn onnx() -> &'static [&'static str] {
    static LIST: OnceLock<Vec<&str>> = OnceLock::new();
    LIST.get_or_init(|| words(include_str!("../../dictionaries/onnx.dict")))
}

/// The words of the dictionary of WGSL.
pub fn wgsl() -> &'static [&'static str] {
    static LIST: OnceLock<Vec<&str>> = OnceLock::new();
    LIST.get_or_init(|| words(include_str!("../../dictionaries/wgsl.dict")))
}

/// The entries without escapes.
fn words(dictionary: &str) -> Vec<&str> {
    let quoted = |line| str::strip_prefix(line, '"')?.strip_suffix('"');
    dictionary.lines().filter_map(quoted).filter(|word| !word.contains('\\')).collect()
}
