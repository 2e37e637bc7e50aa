//! Matrix products on every backend: `cargo bench --features criterion --bench gemm`, or `-- "gemm_f32 m1024"` for some.

mod backends;
mod problems;

use anyhow::Result;
use diptych_kernels::ops::Op;
use problems::suites;
use std::sync::Arc;

/// The largest products take long to check; `diptych bench --suite gemm` has them.
const LARGEST: u64 = 1 << 32;

fn main() -> Result<()> {
    let mut criterion = backends::criterion();
    let small = |problem: &Arc<dyn Op>| problem.flops() <= LARGEST;
    let problems: Vec<Arc<dyn Op>> = suites::products()?.into_iter().filter(small).collect();
    let mut group = criterion.benchmark_group("gemm");
    problems::run(&mut group, &problems)?;
    group.finish();
    criterion.final_summary();
    Ok(())
}
