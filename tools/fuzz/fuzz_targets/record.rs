#![no_main]

use diptych_fuzz::{checks, targets};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::record(bytes));
libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| {
    targets::reword(&[], data, size, most, seed)
});
