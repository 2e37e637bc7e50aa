//! The plugin's file, as GStreamer finds it.

use std::path::PathBuf;
use std::process::Command;

/// What cargo built for these tests, beside them.
fn library() -> PathBuf {
    let program = std::env::current_exe().expect("the test's path");
    let folder = program.parent().expect("a folder");
    let name = format!("{}gstdiptych{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    folder.join(name)
}

#[test]
fn gst_inspect_shows_the_elements() {
    let library = library();
    assert!(library.is_file(), "{} is not there", library.display());
    let registry = tempfile::tempdir().expect("a folder");
    let inspect = |what: &str| {
        let shown = Command::new("gst-inspect-1.0")
            .arg(what)
            .env("GST_PLUGIN_PATH", library.parent().expect("a folder"))
            .env("GST_REGISTRY", registry.path().join("registry.bin"))
            .output()
            .expect("gst-inspect-1.0");
        assert!(shown.status.success(), "{what}: {}", String::from_utf8_lossy(&shown.stderr));
        String::from_utf8_lossy(&shown.stdout).into_owned()
    };
    let plugin = inspect("diptych");
    for element in ["diptychinfer", "diptychdecode", "diptychoverlay"] {
        assert!(plugin.contains(&format!("{element}: Diptych ")), "{plugin}");
    }
    assert!(plugin.contains("3 features") && plugin.contains(env!("CARGO_PKG_VERSION")), "{plugin}");
    let infer = inspect("diptychinfer");
    for text in ["NV12", "letterbox", "splitf16", "GstBaseTransform", "tuning-time"] {
        assert!(infer.contains(text), "{infer}");
    }
    assert!(inspect("diptychdecode").contains("yolo-pose"));
    assert!(inspect("diptychoverlay").contains("GstVideoFilter"));
}
