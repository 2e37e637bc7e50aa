//! Files that are not part of the repository: tests that read them pass without them, and say so.

use std::io::Write as _;
use std::path::Path;
use std::sync::Once;

static SAID: Once = Once::new();

/// Says, once for a program of tests, that some of them looked at nothing. Not by `println!`, which the harness shows for
/// failures alone.
pub fn say(path: &Path) {
    SAID.call_once(|| {
        let path = path.display();
        let told =
            format!("skipped: tests that read {path}, which is not there (DIPTYCH_SHARED names its folder)");
        // Where nobody reads it, there is nobody to tell.
        let _ = writeln!(std::io::stderr(), "{told}");
    });
}
