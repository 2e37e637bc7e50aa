//! A matrix product on the best device of this machine: `cargo run --release --example hello_gemm`.
//!
//! Options: the size n (default 1024), the backend (auto, wgpu, opencl, cpu), and the precision (f32;
//! tf32 and splitf16: f32 that matrix units may round; f16s: operands stored in f16, sums in f32; f16).

use diptych::emit::Operand;
use diptych::ops::gemm::GemmOp;
use diptych::{Backend, Context, Gemm, MatrixProduct, Precision, ProductOptions};
use std::time::{Duration, Instant};

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let n: usize = arguments.next().map_or(Ok(1024), |text| text.parse())?;
    let backend: Backend = arguments.next().map_or(Ok(Backend::Auto), |text| text.parse())?;
    let context = Context::new(backend)?;
    let precision = match arguments.next().as_deref() {
        None | Some("f32") => Precision::F32,
        Some("tf32") => Precision::Tf32,
        Some("splitf16") => Precision::SplitF16,
        Some("f16s") => Precision::F16Storage,
        Some("f16") => Precision::F16,
        Some(other) => anyhow::bail!("precision {other:?}, wanted f32, tf32, splitf16, f16s or f16"),
    };
    println!("{}", context.info());

    let op = GemmOp::new(n, n, n, 1, &Gemm::default(), false, false, precision)?;
    let product = MatrixProduct::new(&context, op, None, None, ProductOptions::default())?;
    println!("kernel {}", product.kernel());

    // A[i, j] = (i + j) mod 1000 and B the identity with a doubled diagonal, so that C = 2 A, which
    // halves hold exactly.
    let index_sum = |i: usize| ((i / n + i % n) % 1000) as f32;
    product.write(Operand::A, |a| a.iter_mut().enumerate().for_each(|(i, x)| *x = index_sum(i)))?;
    product.write(Operand::B, |b| b.iter_mut().step_by(n + 1).for_each(|x| *x = 2.0))?;
    product.run()?;
    let wrong = product
        .read(Operand::C, |c| c.iter().enumerate().filter(|&(i, &x)| x != 2.0 * index_sum(i)).count())?;
    anyhow::ensure!(wrong == 0, "{wrong} of {} results are wrong", n * n);

    let mut times: Vec<Duration> = (0..21)
        .map(|_| match product.time() {
            Ok(time) => Ok(time),
            // No clock on the device: the host's, submission and wait included.
            Err(diptych::Error::Unsupported { .. }) => {
                let start = Instant::now();
                product.run()?;
                product.read(Operand::C, |_| start.elapsed())
            }
            Err(error) => Err(error),
        })
        .collect::<diptych::Result<_>>()?;
    times.sort();
    let median = times[times.len() / 2];
    let rate = 2.0 * (n as f64).powi(3) / median.as_secs_f64() / 1e9;
    println!("C = 2 A holds; {n}^3 in {median:.1?} (median of {}), {rate:.1} GFLOP/s", times.len());
    Ok(())
}
