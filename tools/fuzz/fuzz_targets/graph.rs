#![no_main]

use diptych_fuzz::checks;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::build_and_run(bytes));
