//! Tests of what `benches/` shares, which has no place for them.

use super::cpu::CpuOp;
use super::suites::{bytes, layer, layers, name, product, products};
use anyhow::Result;
use diptych::Precision;
use diptych_emit::emit::Operand;
use diptych_kernels::ops::Op;
use std::collections::BTreeSet;
use std::sync::Arc;

#[test]
fn every_case_is_valid_and_has_a_name_of_its_own() {
    let cases: Vec<Arc<dyn Op>> =
        products().expect("products").into_iter().chain(layers().expect("layers")).collect();
    let names: BTreeSet<String> = cases.iter().map(|op| name(&**op)).collect();
    assert_eq!(names.len(), cases.len(), "{names:?}");
    assert!(names.contains("pointwise_f32 n1 h9 w9 c1024 o1024 bias relu6"), "{names:?}");
    assert!(names.contains("gemm_f16s m4096 n4096 k4096"), "{names:?}");
}

#[test]
fn bytes_count_each_operand_once() {
    let bytes_of = |problem: Result<Arc<dyn Op>>| bytes(&*problem.expect("a problem"));
    assert_eq!(bytes_of(product((1, 8, 4, 1), Precision::F32)), 4 * (4 + 32 + 8));
    assert_eq!(bytes_of(product((1, 8, 4, 1), Precision::F16Storage)), 2 * (4 + 32 + 8));
    let depthwise = layer(("depthwise", &[1, 4, 4, 8, 8, 3, 3, 2]), Precision::F32);
    assert_eq!(bytes_of(depthwise), 4 * (4 * 4 * 8 + 9 * 8 + 2 * 2 * 8 + 8));
    let dense = layer(("conv2d", &[1, 4, 4, 8, 16, 3, 3, 1]), Precision::F16Storage);
    assert_eq!(bytes_of(dense), 2 * (16 * 8 + 16 * 9 * 8 + 16 * 16) + 4 * 16);
}

#[test]
fn the_cpus_right_results_pass_and_wrong_ones_are_reported() {
    let f32 = Precision::F32;
    for problem in [
        product((5, 7, 3, 2), f32),
        layer(("pointwise", &[1, 3, 3, 5, 6]), f32),
        layer(("conv2d", &[1, 5, 5, 3, 4, 3, 3, 2]), f32),
        layer(("depthwise", &[1, 4, 4, 8, 8, 3, 3, 1]), f32),
    ] {
        let mut op = CpuOp::new(problem.expect("a problem")).expect("an op");
        op.check().expect("right");
        // The oracle is shown another bias than the kernel was made with.
        if let Some(bias) = op.operands.get_mut(&Operand::Bias) {
            bias.to_mut().iter_mut().for_each(|bias| *bias += 1.0);
            let error = op.check().expect_err("wrong").to_string();
            assert!(error.starts_with("wrong: element"), "{error}");
        }
    }
}

#[test]
fn a_wrong_row_of_a_product_is_reported() {
    // Of the second so large that three rows are checked.
    for extents in [(5, 7, 3, 2), (5, 1 << 13, 1 << 12, 1)] {
        let mut op = CpuOp::new(product(extents, Precision::F32).expect("a product")).expect("an op");
        op.check().expect("right");
        // A result that does not belong to the operands: the last row of the last matrix.
        let a = op.operands.get_mut(&Operand::A).expect("A").to_mut();
        *a.last_mut().expect("elements") += 1.0;
        assert!(op.compare().expect_err("wrong").to_string().starts_with("wrong: element"));
    }
}
