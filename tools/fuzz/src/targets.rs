//! What a target of libFuzzer is made of.

use crate::mutate::{Format, cross, mutate};
use crate::noise::Noise;

/// Every target allocates through it.
#[global_allocator]
static HEAP: crate::heap::Counting = crate::heap::Counting;

/// Puts `new` where libFuzzer wants it, if it is short enough.
fn put(new: Option<Vec<u8>>, data: &mut [u8], most: usize) -> Option<usize> {
    let new = new.filter(|new| new.len() <= most.min(data.len()))?;
    data[..new.len()].copy_from_slice(&new);
    Some(new.len())
}

/// Changes a file by its fields, or, once in four times, as libFuzzer does.
pub fn change(format: &Format, data: &mut [u8], size: usize, most: usize, seed: u32) -> usize {
    let mut noise = Noise::new(seed.into());
    let new = if noise.once_in(4) { None } else { mutate(format, &data[..size], &mut noise) };
    put(new, data, most).unwrap_or_else(|| libfuzzer_sys::fuzzer_mutate(data, size, most))
}

/// Joins two files by their fields; returns the length of the result, or of `one` if it is too long.
pub fn join(format: &Format, one: &[u8], other: &[u8], out: &mut [u8], seed: u32) -> usize {
    let most = out.len();
    let new = cross(format, one, other, &mut Noise::new(seed.into()));
    put(new, out, most).or_else(|| put(Some(one.to_vec()), out, most)).unwrap_or(0)
}

/// Changes a text by its words, or, once in four times, as libFuzzer does.
pub fn reword(words: &[&str], data: &mut [u8], size: usize, most: usize, seed: u32) -> usize {
    let mut noise = Noise::new(seed.into());
    let text = std::str::from_utf8(&data[..size]).ok().filter(|_| !noise.once_in(4));
    let new = text.map(|text| crate::tokens::mutate(text, words, &mut noise).into_bytes());
    put(new, data, most).unwrap_or_else(|| libfuzzer_sys::fuzzer_mutate(data, size, most))
}

/// A target for files of a format.
#[macro_export]
macro_rules! files {
    ($format:path, $check:expr) => {
        libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
            let _ = $check(bytes);
        });
        libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| {
            $crate::targets::change(&$format, data, size, most, seed)
        });
        libfuzzer_sys::fuzz_crossover!(|one: &[u8], other: &[u8], out: &mut [u8], seed: u32| {
            $crate::targets::join(&$format, one, other, out, seed)
        });
    };
}
