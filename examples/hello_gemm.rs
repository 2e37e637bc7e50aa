//! A matrix product on the best device of this machine: `cargo run --release --example hello_gemm`.
//!
//! Options: the size n (default 1024), the backend (auto, wgpu, opencl, cpu), and the precision (f32;
//! tf32 and splitf16: f32 that matrix units may round; f16s: operands stored in f16, sums in f32; f16).

use diptych::Operand::{A, B, C};
use diptych::{Backend, Context, MatrixProduct, Precision};
use std::time::{Duration, Instant};

/// `A[i, j]` and `B[i, j]`: small whole numbers of mean zero, whose products and sums every precision
/// holds exactly.
fn a(i: usize, j: usize) -> f32 {
    ((i + j) % 7) as f32 - 3.0
}

fn b(i: usize, j: usize) -> f32 {
    ((i + 2 * j) % 5) as f32 - 2.0
}

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let n: usize = arguments.next().map_or(Ok(1024), |text| text.parse())?;
    let backend: Backend = arguments.next().map_or(Ok(Backend::Auto), |text| text.parse())?;
    let precision = precision(arguments.next().as_deref())?;

    let context = Context::new(backend)?;
    println!("{}", context.info());

    // C = A B, n x n each.
    let product = MatrixProduct::of(&context, [n, n], [n, n], precision)?;
    println!("kernel {}", product.kernel());
    product.write(A, |elements| fill(elements, n, a))?;
    product.write(B, |elements| fill(elements, n, b))?;
    product.run()?;

    let (i, j) = (n / 2, n / 3);
    let found = product.read(C, |c| c[i * n + j])?;
    let wanted: f32 = (0..n).map(|k| a(i, k) * b(k, j)).sum();
    anyhow::ensure!(found == wanted, "C[{i}, {j}] is {found}, wanted {wanted}");

    let time = median((0..21).map(|_| time(&product)).collect::<diptych::Result<_>>()?);
    let rate = 2.0 * (n as f64).powi(3) / time.as_secs_f64() / 1e9;
    println!("C = A B, C[{i}, {j}] = {found}; {n}^3 in {time:.1?} (median of 21), {rate:.1} GFLOP/s");
    Ok(())
}

/// Fills a row-major matrix of `n` columns.
fn fill(elements: &mut [f32], n: usize, value: fn(usize, usize) -> f32) {
    for (i, row) in elements.chunks_mut(n).enumerate() {
        for (j, element) in row.iter_mut().enumerate() {
            *element = value(i, j);
        }
    }
}

/// One product's time on the device's clock; without one on the host's, submission and wait included.
fn time(product: &MatrixProduct) -> diptych::Result<Duration> {
    match product.time() {
        Err(diptych::Error::Unsupported { .. }) => {
            let start = Instant::now();
            product.run()?;
            product.read(C, |_| start.elapsed())
        }
        time => time,
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn precision(name: Option<&str>) -> anyhow::Result<Precision> {
    Ok(match name {
        None | Some("f32") => Precision::F32,
        Some("tf32") => Precision::Tf32,
        Some("splitf16") => Precision::SplitF16,
        Some("f16s") => Precision::F16Storage,
        Some("f16") => Precision::F16,
        Some(other) => anyhow::bail!("precision {other:?}, wanted f32, tf32, splitf16, f16s or f16"),
    })
}
