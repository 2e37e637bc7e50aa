//! Convolutions on every backend: `cargo bench --features criterion --bench ops`, or `-- depthwise` for some.

mod backends;
mod problems;

use anyhow::Result;

fn main() -> Result<()> {
    let mut criterion = backends::criterion();
    let mut group = criterion.benchmark_group("ops");
    problems::run(&mut group, &problems::suites::layers()?)?;
    group.finish();
    criterion.final_summary();
    Ok(())
}
