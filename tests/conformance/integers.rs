//! Problems of all ops' examples that read or write integers of 32 bits, or that are an op with a nest before it or a function behind it.

use crate::cases::Breadth;
use crate::problem::Problem;
use diptych::Precision;
use diptych_kernels::ops::{self, Op};

/// Each problem with its name.
pub(crate) fn rows() -> Vec<(String, Problem, Breadth)> {
    let mut rows = Vec::new();
    for precision in [Precision::F32, Precision::F16Storage] {
        for entry in ops::all() {
            let examples = (entry.examples)(precision).expect("examples");
            for problem in examples.into_iter().map(Problem::from) {
                let of_integers = problem.operands().iter().any(|info| !info.dtype.is_float());
                if is_composed(&*problem) || of_integers && precision == Precision::F32 {
                    let name = format!("{} {} {precision}", entry.name, problem.problem_key());
                    rows.push((name, problem, Breadth::Variants));
                }
            }
        }
    }
    rows
}

/// Whether a nest comes before an op, or a function behind it.
fn is_composed(op: &dyn Op) -> bool {
    let key = op.problem_key();
    key.contains(" then") || key.contains(" from ")
}
