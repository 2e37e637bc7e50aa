//! Matrix products on every backend: `cargo bench --bench gemm`, or `-- "gemm_f32 m1024"` for some.

mod backends;
mod problems;

use anyhow::Result;
use diptych::tune::Problem;
use problems::suites;

/// The largest products take long to check; `diptych bench --suite gemm` has them.
const LARGEST: u64 = 1 << 32;

fn main() -> Result<()> {
    let mut criterion = backends::criterion();
    let small = |problem: &Problem| problem.op().flops() <= LARGEST;
    let problems: Vec<Problem> = suites::products()?.into_iter().filter(small).collect();
    let mut group = criterion.benchmark_group("gemm");
    problems::run(&mut group, &problems)?;
    group.finish();
    criterion.final_summary();
    Ok(())
}
