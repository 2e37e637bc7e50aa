//! `y = A^T [(G g) * (B^T d)]`: the transforms of the minimal filtering F(m, 3), which gives `m`
//! neighbouring results of a three-tap filter `g` over `m + 2` inputs `d` with `m + 2` products.
//! In two dimensions each transform is applied along both axes.
//!
//! | | products for each result, 3x3 | largest constant of `B^T`, of `A^T` |
//! |---|---|---|
//! | F(2x2, 3x3) | 4 instead of 9 | 1, 1 |
//! | F(4x4, 3x3) | 2.25 instead of 9 | 5, 8 |
//!
//! Lavin and Gray, *Fast Algorithms for Convolutional Neural Networks*, 2016, sections 4.1 to 4.3.
//! The kernels' text and the bound on their error are made from the same matrices.

/// The matrices of F(m, 3), by rows.
#[derive(Debug)]
pub struct Minimal {
    /// `B^T`, of `m + 2` rows: what inputs are multiplied by.
    pub input: &'static [&'static [i32]],
    /// `G`, of `m + 2` rows: what filters are multiplied by.
    pub filter: &'static [[f64; 3]],
    /// `A^T`, of `m` rows: what products are multiplied by.
    pub output: &'static [&'static [i32]],
}

static F2: Minimal = Minimal {
    input: &[&[1, 0, -1, 0], &[0, 1, 1, 0], &[0, -1, 1, 0], &[0, 1, 0, -1]],
    filter: &[[1.0, 0.0, 0.0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0.0, 0.0, 1.0]],
    output: &[&[1, 1, 1, 0], &[0, 1, -1, -1]],
};

static F4: Minimal = Minimal {
    input: &[
        &[4, 0, -5, 0, 1, 0],
        &[0, -4, -4, 1, 1, 0],
        &[0, 4, -4, -1, 1, 0],
        &[0, -2, -1, 2, 1, 0],
        &[0, 2, -1, -2, 1, 0],
        &[0, 4, 0, -5, 0, 1],
    ],
    filter: &[
        [1.0 / 4.0, 0.0, 0.0],
        [-1.0 / 6.0, -1.0 / 6.0, -1.0 / 6.0],
        [-1.0 / 6.0, 1.0 / 6.0, -1.0 / 6.0],
        [1.0 / 24.0, 1.0 / 12.0, 1.0 / 6.0],
        [1.0 / 24.0, -1.0 / 12.0, 1.0 / 6.0],
        [0.0, 0.0, 1.0],
    ],
    output: &[&[1, 1, 1, 1, 1, 0], &[0, 1, -1, 2, -2, 0], &[0, 1, 1, 4, 4, 0], &[0, 1, -1, 8, -8, 1]],
};

impl Minimal {
    /// F(2, 3) or F(4, 3), by the number of results.
    pub fn of(results: usize) -> Option<&'static Minimal> {
        match results {
            2 => Some(&F2),
            4 => Some(&F4),
            _ => None,
        }
    }
}

/// The sum of the variables `<prefix>0`, `<prefix>1` and so on with the factors of row `row` of `B^T`
/// (`which` is `input`) or `A^T` (`output`) of F(`results`, 3). `suffix` types a literal.
pub(crate) fn sum(
    which: &str,
    results: usize,
    row: usize,
    prefix: &str,
    suffix: &str,
) -> Result<String, String> {
    let rows = Minimal::of(results).and_then(|minimal| match which {
        "input" => Some(minimal.input),
        "output" => Some(minimal.output),
        _ => None,
    });
    let factors = rows.and_then(|rows| rows.get(row));
    let factors = factors.ok_or_else(|| format!("no row {row} of the {which} of F({results}, 3)"))?;
    let mut sum = String::new();
    for (index, &factor) in factors.iter().enumerate().filter(|(_, factor)| **factor != 0) {
        sum.push_str(match (sum.is_empty(), factor < 0) {
            (true, false) => "",
            (true, true) => "-",
            (false, false) => " + ",
            (false, true) => " - ",
        });
        if factor.abs() != 1 {
            sum.push_str(&format!("{}.0{suffix} * ", factor.abs()));
        }
        sum.push_str(&format!("{prefix}{index}"));
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Small integers and the multiples of 1/24 in `G` are exact enough for equality to 1e-12.
    #[test]
    fn the_matrices_filter() {
        for results in [2, 4] {
            let minimal = Minimal::of(results).expect("the matrices");
            let d: Vec<f64> = (0..results + 2).map(|i| (i * i % 7) as f64 - 2.5).collect();
            let g = [3.0, -1.0, 0.5];
            let dot =
                |row: &[i32], x: &[f64]| row.iter().zip(x).map(|(&a, &b)| f64::from(a) * b).sum::<f64>();
            let products: Vec<f64> = minimal
                .input
                .iter()
                .zip(minimal.filter)
                .map(|(row, taps)| dot(row, &d) * taps.iter().zip(&g).map(|(a, b)| a * b).sum::<f64>())
                .collect();
            for (i, row) in minimal.output.iter().enumerate() {
                let wanted: f64 = (0..3).map(|tap| g[tap] * d[i + tap]).sum();
                assert!((dot(row, &products) - wanted).abs() < 1e-12, "F({results}, 3), result {i}");
            }
        }
        assert!(Minimal::of(3).is_none());
    }

    #[test]
    fn sums_are_written_with_their_factors() {
        assert_eq!(sum("input", 2, 2, "d", "f").as_deref(), Ok("-d1 + d2"));
        assert_eq!(sum("input", 4, 0, "t", "h").as_deref(), Ok("4.0h * t0 - 5.0h * t2 + t4"));
        assert_eq!(sum("output", 4, 3, "m", "f").as_deref(), Ok("m1 - m2 + 8.0f * m3 - 8.0f * m4 + m5"));
        assert!(sum("output", 2, 2, "m", "f").is_err() && sum("filter", 2, 0, "m", "f").is_err());
    }
}
