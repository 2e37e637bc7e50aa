//! Writes the seeds of each target into a folder of its name: `seeds FOLDER`.

use diptych::Graph;
use diptych_fuzz::{checks, seeds};
use std::path::Path;

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "seeds".to_owned());
    let tflite = seeds::within(&Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds/tflite"));
    let onnx = seeds::onnx();
    let runs = |read: fn(&[u8]) -> Option<Graph>, files: &[Vec<u8>]| {
        files.iter().filter(|file| read(file).is_some_and(|graph| checks::run(&graph))).count()
    };
    println!("{} of {} TensorFlow Lite files run", runs(checks::tflite, &tflite), tflite.len());
    println!("{} of {} ONNX files run", runs(checks::onnx, &onnx), onnx.len());
    let cache = vec![b"diptych kernel 2".to_vec()];
    for (target, files) in [
        ("tflite", &tflite),
        ("run_tflite", &tflite),
        ("onnx", &onnx),
        ("run_onnx", &onnx),
        ("graph", &seeds::graphs()),
        ("record", &seeds::records()),
        ("shader", &seeds::shaders()),
        ("cache", &cache),
        ("npy", &seeds::npy()),
    ] {
        let folder = Path::new(&folder).join(target);
        std::fs::create_dir_all(&folder)?;
        for (index, file) in files.iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{index:04}")), file)?;
        }
        println!("{}: {} files", folder.display(), files.len());
    }
    Ok(())
}
