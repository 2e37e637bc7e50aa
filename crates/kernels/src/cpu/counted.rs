//! Kernels to count the instructions of, where there is an emulator but no machine: `scripts/arm --count`.

use super::aligned::Aligned;
use super::bytes::channels::Channels;
use super::bytes::lookup::{Table, look_up, look_up_plain};
use super::bytes::tile::{Bytes, PANEL, PIXELS, Tile};
use super::bytes::{Finish, Vectors};
use super::finish::{self, After};
use super::micro::Rows;
use super::panels::Panels;
use super::shelf::Shelf;
use crate::dtype::DType;
use crate::word;
use std::hint::black_box;

/// Words of a pixel of 256 channels.
const DEPTH: usize = 64;

/// Words of bytes that look random.
fn words(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        i64::from(state.rotate_left(11))
    };
    word::of_integers(DType::U32, (0..count).map(|_| next()))
}

/// The bytes of `pixels` pixels of 256 channels, multiplied with `panels` panels of weights.
fn tile(vectors: Vectors, [pixels, panels]: [usize; 2], rounds: usize) -> Vec<u8> {
    let (src, weights) = (words(PIXELS * DEPTH, 1), words(panels * PANEL * DEPTH, 2));
    let weights = Aligned::from(&weights[..]);
    let mut bias = vec![0; panels * PANEL];
    for (at, word) in weights.iter().enumerate() {
        let own = word.to_bits().to_le_bytes().map(|byte| i32::from(byte.cast_signed()));
        bias[at / (DEPTH * PANEL) * PANEL + at % PANEL] += vectors.lacking(own.iter().sum());
    }
    let scale = vec![1e-4; bias.len()];
    let finish = Finish { bias: &bias, scale: &scale, bounds: [-128, 127], zero: 128 };
    let mut found = Bytes::default();
    for _ in 0..rounds {
        let first = std::array::from_fn(|pixel| pixel * DEPTH);
        let tile = Tile { src: &src, first, pixels, lines: &[0], len: DEPTH, weights: &weights, panels };
        black_box(tile).finish(vectors, finish, 0, &mut found);
    }
    found.concat()
}

/// The bytes of a pixel of 64 channels, from windows of nine.
fn channels(vectors: Vectors, rounds: usize) -> Vec<u8> {
    let (weights, src) = (words(9 * 16, 3), words(12 * 16, 4));
    let (bias, scale) = (vec![0; 64], vec![1e-3; 64]);
    let finish = Finish { bias: &bias, scale: &scale, bounds: [-128, 127], zero: 128 };
    let channels = Channels::with_vectors([9, 64], &weights, finish, vectors);
    let taps: Vec<&[u8]> = src.chunks(16).map(super::bytes::bytes).collect();
    let mut found = vec![0; 64];
    for _ in 0..rounds {
        channels.pixel(black_box(&taps), &mut found);
    }
    found
}

/// 1024 bytes of a table.
fn looked_up(is_plain: bool, rounds: usize) -> Vec<u8> {
    let (table, src): (Table, _) = (std::array::from_fn(|at| (at * 37 + 11) as u8), words(256, 5));
    let mut found = vec![0; 1024];
    let function = if is_plain { look_up_plain } else { look_up };
    for _ in 0..rounds {
        function(&table, super::bytes::bytes(black_box(&src)), &mut found);
    }
    found
}

/// The product of `48 x 256` and `256 x 64` numbers, which are whole, so that it is exact.
fn product(is_plain: bool, rounds: usize) -> Vec<u8> {
    let [rows, depth, columns] = [48, 256, 64];
    let numbers = |len: usize| -> Vec<f32> { (0..len).map(|at| (at * 7 % 11) as f32 - 5.0).collect() };
    let (src, weights) = (numbers(rows * depth), numbers(depth * columns));
    let mut found = vec![0.0; rows * columns];
    if is_plain {
        for _ in 0..rounds {
            found.fill(0.0);
            for (sums, row) in found.chunks_mut(columns).zip(black_box(&src).chunks(depth)) {
                for (value, weights) in row.iter().zip(weights.chunks(columns)) {
                    sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += value * weight);
                }
            }
        }
    } else {
        let turned: Vec<f32> =
            (0..columns * depth).map(|at| weights[at % depth * columns + at / depth]).collect();
        let panels = Panels::new([depth, columns], || &turned[..], None, (Shelf::default(), ""));
        let finish = finish::Finish { after: After::Nothing, residual: None, first: false, stride: columns };
        for _ in 0..rounds {
            let rows = Rows {
                src: black_box(&src),
                first: 0,
                lines: 1,
                line_stride: 0,
                per_line: rows,
                row_stride: depth,
                taps: &[0],
                values: depth,
            };
            let mut tile = super::tile::Tile::Rows { data: &mut found, columns };
            panels.multiply(rows, 0..columns, &mut tile, 0, finish);
        }
    }
    bytemuck::cast_slice(&found).to_vec()
}

/// What `kernel` gives with vectors of a name, after so many rounds; nothing if the machine has no such vectors.
fn run(kernel: &str, vectors: &str, rounds: usize) -> Option<Vec<u8>> {
    let of = Vectors::all().into_iter().find(|own| format!("{own:?}").to_lowercase() == vectors);
    let is_plain = vectors == "plain";
    match kernel {
        "tile" => of.map(|of| tile(of, [PIXELS, 2], rounds)),
        "row" => of.map(|of| tile(of, [1, 4], rounds)),
        "channels" => of.map(|of| channels(of, rounds)),
        "lookup" => of.map(|_| looked_up(is_plain, rounds)),
        "product" => of.map(|_| product(is_plain, rounds)),
        _ => None,
    }
}

#[test]
fn counted_kernels_give_what_plain_loops_give() {
    for kernel in ["tile", "row", "channels", "lookup", "product"] {
        let plain = run(kernel, "plain", 1).expect("plain loops run everywhere");
        assert!(plain.windows(2).any(|pair| pair[0] != pair[1]), "{kernel}: {plain:?}");
        for vectors in Vectors::all() {
            let found = run(kernel, &format!("{vectors:?}").to_lowercase(), 1);
            assert!(found.as_deref() == Some(&plain[..]), "{kernel}, {vectors:?}");
        }
    }
}

/// `DIPTYCH_COUNTED` is kernel, vectors and rounds.
#[test]
#[ignore = "for scripts/arm, which counts its instructions"]
fn one_kernel() {
    let asked = std::env::var("DIPTYCH_COUNTED").expect("DIPTYCH_COUNTED names a kernel");
    let words: Vec<&str> = asked.split_whitespace().collect();
    let [kernel, vectors, rounds] = words[..] else { panic!("{asked}: kernel, vectors and rounds") };
    let rounds = rounds.parse().expect("a number of rounds");
    assert!(run(kernel, vectors, rounds).is_some(), "{asked}: no such kernel, or no such vectors here");
}
