//! Nests of loops: the examples, and pairs of other ops as one.

use crate::cases::Breadth;
use crate::problem::Problem;
use diptych::Precision;
use std::sync::Arc;

/// Each problem with its name.
pub(crate) fn rows() -> Vec<(String, Problem, Breadth)> {
    let entry = diptych_kernels::ops::all().iter().find(|entry| entry.name == "loops").expect("an op");
    let mut rows: Vec<(String, Problem, Breadth)> = Vec::new();
    for precision in [Precision::F32, Precision::F16Storage] {
        for example in (entry.examples)(precision).expect("examples") {
            let name = format!("{} {precision}", example.problem_key());
            rows.push((name, Arc::from(example), Breadth::Tiles));
        }
    }
    rows
}
