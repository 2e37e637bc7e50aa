//! Refuses to build a wheel without the licences of what is compiled into it.

use std::path::Path;

/// What maturin sets for the modules that it builds.
const MATURIN: &str = "PYO3_BUILD_EXTENSION_MODULE";

fn main() {
    println!("cargo::rerun-if-env-changed={MATURIN}");
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os(MATURIN).is_none() {
        return;
    }
    // Beside this crate in a checkout; a source package has them at its root.
    let places = ["licences/THIRD-PARTY.txt", "../../licences/THIRD-PARTY.txt"];
    places.iter().for_each(|place| println!("cargo::rerun-if-changed={place}"));
    if !places.iter().any(|place| Path::new(place).exists()) {
        println!(
            "cargo::error=found no bindings/python/licences, wanted the licences of what is compiled into the module: \
             scripts/python licences writes them, and `pip wheel bindings/python` does"
        );
    }
}
