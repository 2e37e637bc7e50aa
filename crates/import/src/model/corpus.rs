//! The files that the tests write, for the fuzzers to begin with.

use std::path::Path;

/// Where they are kept, if it is set.
const VARIABLE: &str = "DIPTYCH_CORPUS_DIR";

/// The longest file that is kept.
const LONGEST: usize = 4096;

/// Keeps `file` among those of `format`, and gives it back.
pub(in crate::model) fn kept(format: &str, file: Vec<u8>) -> Vec<u8> {
    if let Some(folder) = std::env::var_os(VARIABLE).filter(|_| file.len() <= LONGEST) {
        let folder = Path::new(&folder).join(format);
        let name = &blake3::hash(&file).to_hex()[..16];
        std::fs::create_dir_all(&folder)
            .and_then(|()| std::fs::write(folder.join(name), &file))
            .expect("a corpus");
    }
    file
}
