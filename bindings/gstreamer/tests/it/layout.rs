//! The header for C says what the plugin writes.

use std::process::Command;

#[test]
fn the_header_has_the_plugins_layout() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("layout.c");
    let program = folder.path().join("layout");
    let meta = [
        "network",
        "input_width",
        "input_height",
        "frame_width",
        "frame_height",
        "to_frame",
        "n_tensors",
        "tensors",
        "shared",
    ];
    let tensor = ["name", "type", "rank", "dims", "data", "size"];
    let line = |of: &str, fields: &[&str]| {
        let fields = fields.iter().map(|field| format!("printf(\"%zu \", offsetof({of}, {field}));"));
        format!("{} printf(\"%zu\\n\", sizeof({of}));", fields.collect::<String>())
    };
    let text = format!(
        "#include <gstdiptych.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {{ {} {} \
         gst_init(NULL, NULL); printf(\"%d\\n\", gst_buffer_get_diptych_tensor_meta(gst_buffer_new()) == NULL); return 0; }}\n",
        line("GstDiptychTensorMeta", &meta),
        line("GstDiptychTensor", &tensor)
    );
    std::fs::write(&source, text).expect("a file");
    let flags = Command::new("pkg-config")
        .args(["--cflags", "--libs", "gstreamer-1.0"])
        .output()
        .expect("pkg-config");
    let flags = String::from_utf8(flags.stdout).expect("flags");
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include");
    let compiler = std::env::var("CC").unwrap_or("cc".to_owned());
    let built = Command::new(compiler)
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", include])
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .args(flags.split_whitespace())
        .output()
        .expect("a C compiler");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let printed = Command::new(&program).output().expect("the program");
    let printed = String::from_utf8(printed.stdout).expect("text");
    let (meta, tensor) = gstdiptych::offsets();
    let text = |numbers: &[usize]| numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    assert_eq!(printed, format!("{}\n{}\n1\n", text(&meta), text(&tensor)));
}
