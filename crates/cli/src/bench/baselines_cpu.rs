//! The baselines of the CPU backend: a copy by all threads, and chains of multiply-adds in vector
//! registers of all threads.

use super::row::Row;
use super::subject::{Subject, Target};
use anyhow::{Result, ensure};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;
use std::time::Instant;

/// Floats of each buffer of the copy.
const COPY: usize = 16 << 20;
/// Steps of the multiply-adds; each is one of every chain. Some milliseconds, so that waking the
/// threads does not count, and far fewer where nothing is optimised.
const STEPS: usize = if cfg!(debug_assertions) { 1 << 16 } else { 1 << 21 };
/// Chains that do not wait for each other: as many as hide two units of latency five.
const CHAINS: usize = 10;
const FACTOR: f32 = 0.999;
const ADDEND: f32 = 0.5;

struct Copy {
    src: Vec<f32>,
    dst: Vec<f32>,
    row: Row,
}

struct MultiplyAdd {
    row: Row,
}

/// Both, checked and warmed up, each with a first estimate.
///
/// # Errors
/// If a result is wrong.
pub(super) fn both(target: &Target) -> Result<Vec<(Box<dyn Subject>, Row)>> {
    let mut copy = Copy {
        src: (0..COPY).map(|index| (index % 8191) as f32).collect(),
        dst: vec![0.0; COPY],
        row: target.row("baseline", "copy f32", "device"),
    };
    copy.row.kernel = "cpu_copy".to_owned();
    copy.row.checked = "every element, against what was copied".to_owned();
    copy.row.bytes = 8 * COPY as u64;
    let mut fma = MultiplyAdd { row: target.row("baseline", "fma f32", "device") };
    let arch = Arch::new();
    let lanes = arch.dispatch(Chains { seed: 0.0, steps: 0 }).1;
    for (seed, steps) in [(7.0, 16), (3.0, STEPS)] {
        let found = f64::from(arch.dispatch(Chains { seed, steps }).0);
        let wanted = value(f64::from(seed), steps);
        ensure!((found - wanted).abs() <= 5e-4 * wanted.abs(), "wrong: {found}, wanted {wanted}");
    }
    fma.row.kernel = format!("cpu_fma, {lanes} lanes");
    fma.row.checked = "the first lane, against f64".to_owned();
    fma.row.flops = (2 * CHAINS * lanes * STEPS * rayon::current_num_threads()) as u64;

    copy.round()?;
    ensure!(copy.src == copy.dst, "wrong: the copy differs from its source");
    fma.round()?;
    let estimate = |row: &mut Row| {
        let mut first = row.clone();
        first.summarise();
        row.samples.clear();
        first
    };
    let rows = [estimate(&mut copy.row), estimate(&mut fma.row)];
    let [copied, multiplied] = rows;
    Ok(vec![(Box::new(copy), copied), (Box::new(fma), multiplied)])
}

/// Where a chain is after `steps`.
fn value(seed: f64, steps: usize) -> f64 {
    let (factor, addend) = (f64::from(FACTOR), f64::from(ADDEND));
    let shrunk = factor.powf(steps as f64);
    shrunk * seed + addend * (1.0 - shrunk) / (1.0 - factor)
}

/// The chains of one thread; gives the mean of their first lanes, and the lanes.
struct Chains {
    seed: f32,
    steps: usize,
}

impl WithSimd for Chains {
    type Output = (f32, usize);

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
        let (factor, addend) = (simd.splat_f32s(FACTOR), simd.splat_f32s(ADDEND));
        let mut chains = [simd.splat_f32s(std::hint::black_box(self.seed)); CHAINS];
        for _ in 0..self.steps {
            for chain in &mut chains {
                *chain = simd.mul_add_f32s(*chain, factor, addend);
            }
        }
        let first = |chain: S::f32s| bytemuck::cast_slice::<S::f32s, f32>(&[chain])[0];
        let sum: f32 = chains.into_iter().map(first).sum();
        (sum / CHAINS as f32, size_of::<S::f32s>() / 4)
    }
}

impl Subject for Copy {
    fn round(&mut self) -> Result<()> {
        let start = Instant::now();
        let part = COPY.div_ceil(rayon::current_num_threads().max(1));
        self.dst
            .par_chunks_mut(part)
            .zip(self.src.par_chunks(part))
            .for_each(|(dst, src)| dst.copy_from_slice(src));
        self.row.samples.push(start.elapsed().as_secs_f64() * 1e6);
        Ok(())
    }

    fn rows(&self) -> Vec<Row> {
        vec![self.row.clone()]
    }
}

impl Subject for MultiplyAdd {
    fn round(&mut self) -> Result<()> {
        let arch = Arch::new();
        let start = Instant::now();
        rayon::broadcast(|_| std::hint::black_box(arch.dispatch(Chains { seed: 1.0, steps: STEPS })));
        self.row.samples.push(start.elapsed().as_secs_f64() * 1e6);
        Ok(())
    }

    fn rows(&self) -> Vec<Row> {
        vec![self.row.clone()]
    }
}
