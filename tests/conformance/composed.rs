//! Problems of all ops' examples that are an op with a nest before it or a function behind it, or that read or write integers of 32 bits.

use crate::cases::Breadth;
use crate::problem::Problem;
use diptych::Precision;
use diptych_kernels::ops;

/// Each problem with its name.
pub(crate) fn rows() -> Vec<(String, Problem, Breadth)> {
    let mut rows = Vec::new();
    for precision in [Precision::F32, Precision::F16Storage] {
        for entry in ops::all() {
            let examples = (entry.examples)(precision).expect("examples");
            for problem in examples.into_iter().map(Problem::from) {
                let of_integers = problem.operands().iter().any(|info| !info.dtype.is_float());
                let [before, behind] = [" from ", " then"].map(|word| problem.problem_key().contains(word));
                let before = before || entry.name == "gemm_rows";
                if before || behind || of_integers && precision == Precision::F32 {
                    let name = format!("{} {} {precision}", entry.name, problem.problem_key());
                    // The kernels that take a nest offer tiles for it that no other row may have.
                    let breadth = if before { Breadth::Tiles } else { Breadth::Variants };
                    rows.push((name, problem, breadth));
                }
            }
        }
        // Few rows and many, and columns that no work-group has all invocations for.
        let entry = ops::all().iter().find(|entry| entry.name == "gemm_rows").expect("the op");
        for extents in
            [[1, 8, 4], [2, 36, 20], [5, 96, 52], [17, 16, 256], [33, 128, 36], [64, 32, 64], [16, 272, 8]]
        {
            let problem = (entry.numbers.op)(&extents, None, precision).expect("extents");
            let name = format!("{} of {extents:?} {precision}", entry.name);
            rows.push((name, problem, Breadth::Tiles));
        }
    }
    rows
}
