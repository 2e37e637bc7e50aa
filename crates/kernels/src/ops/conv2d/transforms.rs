//! The transforms of minimal filtering, in f64.

use crate::emit::winograd::Minimal;
use crate::ops::convolution::Convolution;

/// `rows * x * rows^T` by rows; `x` is square, its side the length of a row.
pub(super) fn both_sides(rows: &[Vec<f64>], x: &[f64]) -> Vec<f64> {
    let dot = |left: &[f64], right: &[f64]| left.iter().zip(right).map(|(a, b)| a * b).sum::<f64>();
    let side = rows.first().map_or(0, Vec::len);
    let half = rows.iter().map(|row| {
        let column = |j: usize| row.iter().zip(x.chunks_exact(side)).map(|(a, line)| a * line[j]).sum();
        (0..side).map(column).collect::<Vec<f64>>()
    });
    half.flat_map(|left| rows.iter().map(move |row| dot(&left, row))).collect()
}

/// `G w G^T` of each filter: `[position][input channel][output channel]`.
pub(super) fn transformed(problem: &Convolution, minimal: &Minimal, data: &[f32]) -> Vec<f64> {
    let rows: Vec<Vec<f64>> = minimal.filter.iter().map(|row| row.to_vec()).collect();
    let (inputs, outputs) = (problem.input.c, problem.output.c);
    let mut out = vec![0.0; rows.len().pow(2) * inputs * outputs];
    for (o, window) in data.chunks_exact(9 * inputs).enumerate() {
        for k in 0..inputs {
            let taps: [f64; 9] = std::array::from_fn(|tap| f64::from(window[tap * inputs + k]));
            for (position, value) in both_sides(&rows, &taps).into_iter().enumerate() {
                out[(position * inputs + k) * outputs + o] = value;
            }
        }
    }
    out
}
