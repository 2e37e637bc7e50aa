//! The fuzzers' targets on what they begin with, on what they found, and on some thousand changes of it.
//!
//! `scripts/fuzz` lets libFuzzer drive the same targets, for as long as one wants.

#![cfg(all(feature = "tflite", feature = "onnx", feature = "cpu", feature = "shaders"))]

#[expect(dead_code, reason = "what only the fuzzers use")]
#[path = "../tools/fuzz/src/common/mod.rs"]
mod fuzz;

use fuzz::mutate::{Format, cross, mutate};
use fuzz::noise::Noise;
use fuzz::{checks, flatbuffer, protobuf, seeds, tokens, words};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[global_allocator]
static HEAP: fuzz::heap::Counting = fuzz::heap::Counting;

/// How long it may take to read one input, or to refuse it: the fuzzers hold it to 5 s in an optimised build. This one
/// is hardly optimised, and other tests run beside it.
const LONGEST: Duration = Duration::from_secs(60);

/// Changes of each kind of input, in a test without `DIPTYCH_FUZZ`, which says another number.
fn changes(usual: usize) -> usize {
    std::env::var("DIPTYCH_FUZZ").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/fuzz").join(name)
}

/// Checks one input, within the time.
fn checked(what: &str, input: &[u8], check: &dyn Fn(&[u8])) {
    let start = Instant::now();
    check(input);
    let took = start.elapsed();
    assert!(took < LONGEST, "{what}: {took:?} for {}", input.escape_ascii());
}

/// Checks the inputs, what was found before, and `count` changes.
fn replay(target: &str, inputs: &[Vec<u8>], count: usize, check: &dyn Fn(&[u8]), change: Change) {
    assert!(!inputs.is_empty(), "{target} has inputs to begin with");
    for (number, input) in inputs.iter().enumerate() {
        checked(&format!("{target} {number}"), input, check);
    }
    for found in seeds::within(&folder("findings").join(target)) {
        checked(target, &found, check);
    }
    let mut noise = Noise::new(15);
    for number in 0..changes(count) {
        let (Some(input), Some(other)) = (noise.of(inputs).cloned(), noise.of(inputs).cloned()) else {
            break;
        };
        checked(&format!("change {number} of {target}"), &change(&input, &other, &mut noise), check);
    }
}

type Change<'a> = &'a dyn Fn(&[u8], &[u8], &mut Noise) -> Vec<u8>;

/// Changes by the fields of a format.
fn fields<'a>(format: &'a Format) -> impl Fn(&[u8], &[u8], &mut Noise) -> Vec<u8> + 'a {
    |input, other, noise| {
        let changed = match noise.once_in(4) {
            true => cross(format, input, other, noise),
            false => mutate(format, input, noise),
        };
        changed.unwrap_or_else(|| bytes(input, other, noise))
    }
}

/// Changes of words.
fn texts(words: &[&str]) -> impl Fn(&[u8], &[u8], &mut Noise) -> Vec<u8> {
    move |input, _, noise| tokens::mutate(&String::from_utf8_lossy(input), words, noise).into_bytes()
}

/// Changes of single bytes, or the end of another input.
fn bytes(input: &[u8], other: &[u8], noise: &mut Noise) -> Vec<u8> {
    let mut changed = input.to_vec();
    if noise.once_in(4) {
        changed.truncate(noise.below(input.len() + 1));
        changed.extend_from_slice(&other[noise.below(other.len() + 1)..]);
    }
    for _ in 0..noise.below(6) {
        let place = noise.below(changed.len());
        if let Some(byte) = changed.get_mut(place) {
            *byte = noise.next() as u8;
        }
    }
    changed
}

/// The inputs with what they are after a seed's words are read: most of them must be valid.
fn runs(inputs: &[Vec<u8>], read: fn(&[u8]) -> Option<diptych::Graph>) {
    let run = inputs.iter().filter(|input| read(input).is_some_and(|graph| checks::run(&graph))).count();
    assert!(run * 10 > inputs.len() * 8, "{run} of {} run", inputs.len());
}

#[test]
fn tflite() {
    let inputs = seeds::within(&folder("seeds/tflite"));
    let written = inputs.iter().filter_map(|input| (flatbuffer::FORMAT.read)(input));
    let again: Vec<Vec<u8>> = written.map(|tree| (flatbuffer::FORMAT.write)(&tree)).collect();
    runs(&again, checks::tflite);
    replay("tflite", &inputs, 2000, &|input| drop(checks::tflite(input)), &fields(&flatbuffer::FORMAT));
    replay("run_tflite", &inputs, 400, &checks::run_tflite, &fields(&flatbuffer::FORMAT));
}

#[test]
fn onnx() {
    let inputs = seeds::onnx();
    runs(&inputs, checks::onnx);
    replay("onnx", &inputs, 2000, &|input| drop(checks::onnx(input)), &fields(&protobuf::FORMAT));
    replay("run_onnx", &inputs, 400, &checks::run_onnx, &fields(&protobuf::FORMAT));
}

/// Files of the tests whose extents each run decides, and decoders with caches.
#[test]
fn open_onnx() {
    let named = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.ends_with(".onnx") && ["open_", "kept_", "steps_"].iter().any(|begin| name.starts_with(begin))
    };
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(cases).expect("cases").flatten().map(|entry| entry.path()).filter(named).collect();
    paths.sort();
    let inputs: Vec<Vec<u8>> = paths
        .iter()
        .map(|path| std::fs::read(path).expect("a case"))
        .filter(|bytes| bytes.len() < 40_000)
        .collect();
    let found: Vec<[bool; 2]> = inputs.iter().map(|input| checks::open_onnx(input)).collect();
    let run = found.iter().filter(|[ran, _]| *ran).count();
    assert!(run * 3 > inputs.len(), "{run} of {} run", inputs.len());
    assert!(found.iter().any(|[_, kept]| *kept), "none with caches");
    let check = |input: &[u8]| {
        checks::open_onnx(input);
    };
    replay("open_onnx", &inputs, 300, &check, &fields(&protobuf::FORMAT));
}

#[test]
fn graphs() {
    replay("graph", &seeds::graphs(), 400, &checks::build_and_run, &bytes);
}

#[test]
fn records() {
    replay("record", &seeds::records(), 1000, &checks::record, &texts(&[]));
    replay("record", &seeds::records(), 500, &checks::record, &bytes);
}

#[test]
fn shaders() {
    replay("shader", &seeds::shaders(), 300, &checks::shader, &texts(words::wgsl()));
}

#[cfg(feature = "disk")]
#[test]
fn cached_kernels() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut whole = b"diptych kernel 2".to_vec();
    whole.extend([7; 48]);
    replay("cache", &[whole], 1000, &|input| checks::cache(folder.path(), input), &bytes);
}

/// The check would see it.
#[test]
fn what_takes_more_memory_is_counted() {
    let ((), peak) = fuzz::heap::bounded(1 << 20, || drop(std::hint::black_box(vec![0u8; 1 << 16])));
    assert!((1 << 16..1 << 17).contains(&peak), "{peak}");
}
