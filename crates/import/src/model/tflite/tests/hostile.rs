//! Damaged and hostile files: an error or a graph, soon, and never a panic.

use super::files::shared;
use super::writer::{FileSpec, OptionsSpec, Window, code};
use diptych::tflite::from_bytes;
use std::time::{Duration, Instant};

/// A network that uses every part of the loader.
fn rich() -> FileSpec {
    let mut file = FileSpec::stem();
    let w16 = file.half_constant("w16", &[6, 1, 1, 4]);
    let widened = file.map("widened", &[6, 1, 1, 4]);
    file.op(code("DEQUANTIZE"), &[w16], &[widened], OptionsSpec::None);
    let middle = file.map("middle", &[1, 4, 4, 6]);
    file.op(code("CONV_2D"), &[3, widened], &[middle], OptionsSpec::Conv2d(Window::default()));
    let activated = file.map("activated", &[1, 4, 4, 6]);
    file.op(code("LEAKY_RELU"), &[middle], &[activated], OptionsSpec::LeakyRelu(0.1));
    let taps = file.constant("taps", &[1, 3, 3, 12]);
    let out = file.map("out", &[1, 4, 4, 12]);
    let options = OptionsSpec::Depthwise(Window { dilation: [2, 1], ..Default::default() }, 2);
    file.op(code("DEPTHWISE_CONV_2D"), &[activated, taps], &[out], options);
    file.outputs = vec![out];
    file.tensors[0].signature = Some(vec![1, 8, 8, 3]);
    file.signature = Some([vec![("picture", 0)], vec![("result", out as u32)]]);
    file.description = Some("a network that uses every part of the loader");
    file
}

/// Deterministic noise (splitmix64).
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

#[test]
fn the_undamaged_file_loads() {
    assert_eq!(from_bytes(&rich().bytes()).expect("a valid file").nodes().len(), 4);
}

#[test]
fn every_truncation_is_an_error() {
    let bytes = rich().bytes();
    // The writer ends the file with what it wrote first, an operator code; the last bytes may be
    // its padding, without which the file is still whole.
    for length in 0..bytes.len() - 8 {
        assert!(from_bytes(&bytes[..length]).is_err(), "{length} of {} bytes", bytes.len());
    }
}

#[test]
fn corrupted_bytes_never_panic() {
    let bytes = rich().bytes();
    let start = Instant::now();
    // Every byte, with values that make lengths, offsets and indices small, large and negative.
    for position in 0..bytes.len() {
        for value in [0, 1, 2, 4, 0x7f, 0x80, 0xfe, 0xff, bytes[position] ^ 1, bytes[position] ^ 0x40] {
            let mut damaged = bytes.clone();
            damaged[position] = value;
            let _ = from_bytes(&damaged);
        }
    }
    let mut noise = Noise(1);
    for _ in 0..20_000 {
        let mut damaged = bytes.clone();
        for _ in 0..=noise.below(6) {
            let position = noise.below(damaged.len());
            damaged[position] = noise.next() as u8;
        }
        let _ = from_bytes(&damaged);
    }
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

#[test]
fn damaged_operators_never_panic() {
    let mut noise = Noise(3);
    let start = Instant::now();
    for (name, file) in super::operators::files() {
        let bytes = file.bytes();
        let from = Instant::now();
        for _ in 0..250 {
            let mut damaged = bytes.clone();
            for _ in 0..=noise.below(4) {
                let position = noise.below(damaged.len());
                // Half of them small numbers, which pass for indices, axes and extents.
                let value = noise.next();
                damaged[position] = if value & 256 == 0 { (value % 8) as u8 } else { value as u8 };
            }
            let _ = from_bytes(&damaged);
        }
        assert!(from.elapsed() < Duration::from_secs(20), "{name}: {:?}", from.elapsed());
    }
    assert!(start.elapsed() < Duration::from_secs(300), "{:?}", start.elapsed());
}

#[test]
fn damaged_posenet_never_panics() {
    let Some(path) = shared("posenet/posenet_mobilenet_v1_075_257x257_os16_f32.tflite") else { return };
    let bytes = std::fs::read(path).expect("a readable file");
    for length in (0..512).chain((0..bytes.len()).step_by(9973)) {
        assert!(from_bytes(&bytes[..length]).is_err(), "{length} of {} bytes", bytes.len());
    }
    // Constants are not looked into: damage the rest, which is everything but long runs of them.
    let mut noise = Noise(2);
    let mut damaged = bytes.clone();
    let start = Instant::now();
    for _ in 0..200 {
        let near = if noise.next() & 1 == 0 { 0 } else { bytes.len().saturating_sub(24 << 10) };
        let position = near + noise.below((24 << 10).min(bytes.len() - near));
        damaged[position] = noise.next() as u8;
        let _ = from_bytes(&damaged);
        damaged[position] = bytes[position];
    }
    assert!(start.elapsed() < Duration::from_secs(300), "{:?}", start.elapsed());
}

#[test]
fn shared_parts_cannot_stand_for_more_than_the_file_holds() {
    // 3000 operators of one list of inputs each: fine. The same through one list of 10,000: refused.
    let mut file = FileSpec::stem();
    let template = file.ops[0].clone();
    file.ops[0].inputs = vec![0; 10_000];
    for _ in 0..3000 {
        file.ops.push(template.clone());
    }
    let whole = file.bytes();
    assert!(from_bytes(&whole).is_err());

    // The writer cannot alias vectors, so point every operator's list at the long one by hand.
    let mut aliased = whole.clone();
    let long = find(&aliased, &10_000u32.to_le_bytes());
    let short: Vec<u8> = [3i32, 0, 1, 2].iter().flat_map(|value| value.to_le_bytes()).collect();
    let mut patched = 0;
    for field in (0..aliased.len() - 4).step_by(4) {
        let offset = u32::from_le_bytes(aliased[field..field + 4].try_into().expect("four bytes")) as usize;
        let target = field.saturating_add(offset);
        if offset > 0 && aliased.get(target..target + 16) == Some(&short[..]) && long > field {
            let to_long = (long - field) as u32;
            aliased[field..field + 4].copy_from_slice(&to_long.to_le_bytes());
            patched += 1;
        }
    }
    assert!(patched >= 1000, "{patched} lists were redirected");
    let start = Instant::now();
    let text = from_bytes(&aliased).expect_err("a hostile file").to_string();
    assert!(text.contains("add up to more than"), "{text}");
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

fn find(bytes: &[u8], pattern: &[u8; 4]) -> usize {
    bytes.chunks(4).position(|chunk| chunk == pattern).expect("the pattern") * 4
}
