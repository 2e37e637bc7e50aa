//! Names the shared library for the linker: programs want the version whose functions they were compiled against, so that
//! a library of another one is not taken in its place. Versions with the same first number that is not 0 go together.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name| std::env::var(name).unwrap_or_default();
    let (major, minor) = (variable("CARGO_PKG_VERSION_MAJOR"), variable("CARGO_PKG_VERSION_MINOR"));
    let version = if major == "0" { format!("{major}.{minor}") } else { major };
    match variable("CARGO_CFG_TARGET_OS").as_str() {
        "linux" | "freebsd" | "netbsd" | "openbsd" | "dragonfly" => {
            println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libdiptych_c.so.{version}");
        }
        "macos" => {
            println!("cargo::rustc-cdylib-link-arg=-Wl,-install_name,@rpath/libdiptych_c.{version}.dylib");
        }
        // Android takes no names with versions from a package; Windows has none.
        _ => {}
    }
}
