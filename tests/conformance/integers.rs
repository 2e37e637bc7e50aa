//! Problems of integers of 32 bits: those of all ops' examples that read or write them.

use crate::cases::Breadth;
use crate::problem::Problem;
use diptych::Precision;
use diptych_kernels::ops;

/// Each problem with its name.
pub(crate) fn rows() -> Vec<(String, Problem, Breadth)> {
    let mut rows = Vec::new();
    for entry in ops::all() {
        let examples = (entry.examples)(Precision::F32).expect("examples");
        for problem in examples.into_iter().map(Problem::from) {
            if problem.operands().iter().any(|info| !info.dtype.is_float()) {
                let name = format!("{} {}", entry.name, problem.problem_key());
                rows.push((name, problem, Breadth::Variants));
            }
        }
    }
    rows
}
