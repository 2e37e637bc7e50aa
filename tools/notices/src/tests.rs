//! What is written names every crate, and what is not whole is noticed.

use super::*;
use crate::tree::named;

fn package(folder: &Path) -> Package {
    let arguments =
        Arguments::try_parse_from(["notices", "write", "diptych-notices", &folder.display().to_string()]);
    let Verb::Write(package) = arguments.expect("arguments").verb else { panic!("another verb") };
    package
}

/// A crate in a folder of its own.
fn made(folder: &Path, licence: &str, files: &[(&str, &str)]) -> Crate {
    for (name, text) in files {
        fs::write(folder.join(name), text).expect("a file");
    }
    let manifest = folder.join("Cargo.toml");
    let text = serde_json::json!({ "name": "made", "version": "1.2.3", "license": licence,
        "authors": ["A. Maker"], "manifest_path": manifest, "source": "a registry" });
    serde_json::from_value(text).expect("a crate")
}

#[test]
fn every_crate_is_named_with_its_texts() {
    let folder = tempfile::tempdir().expect("a folder");
    let package = package(folder.path());
    write(&package).expect("notices");
    check(&package).expect("all of them");
    let path = folder.path().join(THIRD_PARTY);
    let text = read(&path).expect("a file");
    let lock = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock")).expect("a file");
    for name in ["anyhow", "clap", "serde_json"] {
        let version = lock.split_once(&format!("name = \"{name}\"\nversion = \"")).expect("a locked crate").1;
        let version = version.split('"').next().expect("a version");
        assert!(text.contains(&format!("\n{name} {version}: MIT OR Apache-2.0\n")), "{name} {version}");
    }
    assert!(text.contains("Permission is hereby granted") && text.contains("Apache License"), "{text}");
    // What only runs while it is built is not in it.
    assert!(!text.contains("\nsyn ") && !text.contains("diptych-notices 0"));
    fs::write(&path, text.replace("\nanyhow ", "\nsomehow ")).expect("a file");
    let error = check(&package).expect_err("a crate that is not named").to_string();
    assert!(error.contains("lacks [\"anyhow "), "{error}");
    fs::remove_file(folder.path().join("LICENSE-MIT")).expect("a file");
    assert!(check(&package).is_err());
}

#[test]
fn a_crate_without_a_text_has_that_of_its_licence_or_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let of = |licence: &str| texts::of(&made(folder.path(), licence, &[]));
    let mit = of("MIT").expect("a text");
    assert!(
        mit.len() == 1
            && mit[0]
                .contains("the authors that its manifest names: A. Maker\n\nPermission is hereby granted"),
        "{mit:?}"
    );
    assert!(!mit[0].contains("Diptych"), "{mit:?}");
    let both = of("MIT/Apache-2.0").expect("texts");
    assert!(both.len() == 2 && both[1].contains("Apache License"), "{both:?}");
    assert_eq!(of("Zlib OR MIT").expect("a text"), mit);
    for licence in ["Zlib", "MIT AND Zlib", "an unknown licence"] {
        let error = of(licence).expect_err("no text").to_string();
        assert!(error.contains(&format!("made 1.2.3 names {licence:?}")), "{error}");
    }
    // Its own text is taken before.
    let own =
        made(folder.path(), "Zlib", &[("LICENSE.md", "\nits own  \r\ntext\n\n"), ("license.rs", "code")]);
    assert_eq!(texts::of(&own).expect("a text"), ["its own\ntext"]);
}

#[test]
fn lines_of_a_tree_are_names_and_versions() {
    let found = named("a v1.2.3\n\nb-c v0.1.0+d (/folder)\na v1.2.3 (*)\n").expect("crates");
    let wanted =
        [("a", "1.2.3"), ("b-c", "0.1.0+d")].map(|(name, version)| (name.to_owned(), version.to_owned()));
    assert_eq!(found.into_iter().collect::<Vec<_>>(), wanted);
    assert!(named("something else\n").is_err());
}
