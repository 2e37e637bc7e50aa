//! The texts that a browser can be given: every kernel of every example with the limits that WebGPU has.
//!
//! `DIPTYCH_TEXTS=DIR` writes them there, for `scripts/web tint`, which compiles them with the compiler of Chromium.

use diptych::{Layout, Limits, Precision};
use diptych_kernels::ops;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Where the texts are written, all of them; else there is one work-group of each kernel and tile.
fn folder() -> Option<PathBuf> {
    std::env::var_os("DIPTYCH_TEXTS").filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

/// Work-groups of kernels that are made for none.
const GROUPS: [[u32; 3]; 2] = [[8, 4, 1], [3, 5, 2]];

/// What a browser's device offers at most: halves, neither subgroups nor matrices.
fn limits() -> Limits {
    let mut limits = Limits::webgpu();
    limits.native_half = true;
    limits.local_memory = 32768;
    limits
}

/// Text by label. Texts of one label differ in their constants, and each is there.
fn texts(all: bool) -> BTreeMap<String, String> {
    let limits = limits();
    let mut texts = BTreeMap::new();
    for precision in [Precision::F32, Precision::F16Storage, Precision::F16] {
        for entry in ops::all() {
            for op in (entry.examples)(precision).expect("examples are valid") {
                let kernels = op.kernels();
                for (kernel, tile) in kernels.space(&limits) {
                    let made_for = kernel.work_groups(tile);
                    let groups = if made_for.is_empty() { GROUPS.to_vec() } else { made_for };
                    for &layout in kernel.entry().layouts.iter().filter(|&&layout| layout != Layout::Image2d)
                    {
                        let choices =
                            groups.iter().map(|&group| kernel.choice(tile, group).with_layout(layout));
                        let fitting = choices.filter(|choice| kernel.fits(choice, &limits).is_ok());
                        for choice in fitting.take(if all { usize::MAX } else { 1 }) {
                            let launch = kernel.plan(&choice, &limits).expect("a plan");
                            let source = launch.spec.render(limits.dialect).expect("a text");
                            let mut name = source.label.to_string();
                            let mut number = 1;
                            while texts.get(&name).is_some_and(|known| *known != source.text) {
                                number += 1;
                                name = format!("{}_{number}", source.label);
                            }
                            texts.insert(name, source.text);
                        }
                    }
                }
            }
        }
    }
    texts
}

/// The floats that a text has with an exponent of ten.
fn floats(text: &str) -> impl Iterator<Item = f64> {
    let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || ".+-".contains(letter)));
    words
        .filter_map(|word| word.strip_suffix('f').filter(|word| word.contains('e')))
        .filter_map(|word| word.trim_start_matches(['+', '-']).parse().ok())
}

#[test]
fn texts_for_browsers_ask_for_halves_and_nothing_else() {
    let folder = folder();
    let texts = texts(folder.is_some());
    assert!(texts.len() > 500, "only {} texts", texts.len());
    for (name, text) in &texts {
        let asked = text.lines().filter(|line| line.starts_with("enable ") || line.starts_with("requires "));
        for line in asked {
            assert_eq!(line, "enable f16;", "{name}");
        }
        assert!(!text.contains("subgroup"), "{name}");
        for number in floats(text) {
            // Tint refuses what naga rounds, such as the shortest decimal of the largest float.
            assert!(number.abs() <= f64::from(f32::MAX), "{name}: {number} is no f32");
        }
    }
    if let Some(folder) = folder {
        std::fs::create_dir_all(&folder).expect("a folder");
        for (name, text) in &texts {
            std::fs::write(folder.join(format!("{name}.wgsl")), text).expect("a file");
        }
        println!("{} texts in {}", texts.len(), folder.display());
    }
}
