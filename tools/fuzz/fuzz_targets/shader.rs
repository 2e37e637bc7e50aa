#![no_main]

use diptych_fuzz::{checks, targets, words};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::shader(bytes));
libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| {
    targets::reword(words::wgsl(), data, size, most, seed)
});
