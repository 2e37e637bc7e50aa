//! Real files, which are not part of the repository.

use crate::shape::Shape;
use diptych::tflite::load;
use std::path::PathBuf;

/// A file below `DIPTYCH_SHARED` (`../shared` by default), if it is there.
pub(super) fn shared(path: &str) -> Option<PathBuf> {
    let root = std::env::var_os("DIPTYCH_SHARED").map_or_else(|| PathBuf::from("../shared"), PathBuf::from);
    let file = root.join(path);
    if file.exists() {
        return Some(file);
    }
    println!("skipped: {} is not there", file.display());
    None
}

#[test]
fn posenet_loads_with_its_31_convolutions() {
    const MODELS: [(&str, usize, usize, &str); 3] = [
        ("posenet_mobilenet_v1_100_257x257_f32.tflite", 257, 9, "MobilenetV1/"),
        ("posenet_mobilenet_v1_075_257x257_os16_f32.tflite", 257, 17, ""),
        ("posenet_mobilenet_v1_075_513x513_os16_f32.tflite", 513, 33, ""),
    ];
    for (file, input, output, prefix) in MODELS {
        let Some(path) = shared(&format!("posenet/{file}")) else { return };
        let graph = load(path).expect(file);
        assert_eq!(graph.nodes().len(), 31, "{file}");
        let count = |op| graph.nodes().iter().filter(|node| node.operator().name() == op).count();
        assert_eq!((count("conv2d"), count("depthwise"), count("pointwise")), (1, 13, 17), "{file}");
        let [image] = graph.inputs() else { panic!("{file}: {} inputs", graph.inputs().len()) };
        assert_eq!(graph.shape(*image).ok(), Some(Shape::nhwc(1, input, input, 3)), "{file}");
        assert_eq!(graph.name(*image).ok(), Some("sub_2"), "{file}");
        let outputs: Vec<(String, Shape)> = graph
            .outputs()
            .iter()
            .map(|&value| {
                (graph.name(value).expect("a name").to_owned(), graph.shape(value).expect("a shape"))
            })
            .collect();
        let wanted = [("heatmap", 17), ("offset", 34), ("displacement_fwd", 32), ("displacement_bwd", 32)];
        assert_eq!(outputs.len(), wanted.len(), "{file}");
        for (head, channels) in wanted {
            let Some((name, shape)) = outputs.iter().find(|(name, _)| name.contains(head)) else {
                panic!("{file}: no {head} among {outputs:?}");
            };
            assert!(name.starts_with(prefix), "{file}: {name}");
            assert_eq!(*shape, Shape::nhwc(1, output, output, channels), "{file}: {name}");
        }
    }
}

#[cfg(unix)]
#[test]
fn pipes_and_devices_are_no_models() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("model.tflite");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo starts").success());
    let error = load(&pipe).expect_err("a pipe").to_string();
    assert!(error.ends_with("model.tflite: found a pipe, wanted a regular file"), "{error}");
    let error = load("/dev/zero").expect_err("a device").to_string();
    assert_eq!(error, "/dev/zero: found a character device, wanted a regular file");
}
