//! Products with a normalisation that is stored with what it reads, with a softmax whose rows another matrix has, with windows of
//! rows, and with the place of the largest element.

use super::{GemmRowsOp, OP};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::{Activation, Bits};
use crate::error::{Error, Result};
use crate::ops::elementwise::Function;
use crate::ops::examples::Numbers;
use crate::ops::gemm::{Gemm, GemmOp};
use crate::ops::loops::{Index, LoopsOp, Nest, Node, NodeId, Nodes, OperandSet, element};
use crate::ops::op::Op;
use crate::ops::reduce::Reduction;
use std::sync::Arc;

/// `x / sqrt(mean((x - mean(x))^2) + epsilon)` with the mean taken off, along the axes of `over`.
fn normalised(nodes: &mut Nodes, x: NodeId, over: u32) -> NodeId {
    let mean = nodes.reduce(Reduction::Mean, x, over);
    let difference = nodes.apply(Function::Sub, &[x, mean]);
    let square = nodes.apply(Function::Square, &[difference]);
    let variance = nodes.reduce(Reduction::Mean, square, over);
    let epsilon = nodes.number(0.125);
    let sum = nodes.apply(Function::Add, &[variance, epsilon]);
    let deviation = nodes.apply(Function::Sqrt, &[sum]);
    nodes.apply(Function::Div, &[difference, deviation])
}

/// Rows of `n` columns, normalised, scaled and moved by a number for each column, and the rows themselves.
fn normalisation(m: usize, n: usize) -> Result<Nest> {
    let (rows, row, vector) = (vec![m, n], Dims::new(&[m, n])?, Dims::new(&[n])?);
    let mut nodes = Nodes::default();
    let x = nodes.read(1, element(&rows));
    let normal = normalised(&mut nodes, x, 0b10);
    let [scale, bias] = [0, 2].map(|source| nodes.read(source, Index::axis(1)));
    let scaled = nodes.apply(Function::Mul, &[normal, scale]);
    let moved = nodes.apply(Function::Add, &[scaled, bias]);
    let nest = Nest::new(rows, vec![0, 1], vec![vector, row, vector], nodes, moved, row)?;
    nest.keeping(1, row).ok_or_else(|| Error::Internal("a normalisation that keeps no row".to_owned()))
}

/// Shares of rows times a gate, column by column.
fn shares(m: usize, n: usize) -> Result<Nest> {
    let rows = [m, n];
    let mut nodes = Nodes::default();
    let x = nodes.read(0, element(&rows));
    let largest = nodes.reduce(Reduction::Max, x, 0b10);
    let difference = nodes.apply(Function::Sub, &[x, largest]);
    let power = nodes.apply(Function::Exp, &[difference]);
    let sum = nodes.reduce(Reduction::Sum, power, 0b10);
    let share = nodes.apply(Function::Div, &[power, sum]);
    let gate = nodes.read(1, element(&rows));
    let gated = nodes.apply(Function::Mul, &[share, gate]);
    let dims = Dims::new(&rows)?;
    Nest::new(rows.to_vec(), vec![1, 0], vec![dims; 2], nodes, gated, Dims::new(&[n, m])?)
}

/// Pixels of a map of `windows` by `windows` windows of three by three, normalised and window by window, and a window of the pixels
/// before they were.
fn windows(windows: usize, n: usize) -> Result<Nest> {
    // Windows down and across, pixels down and across.
    let extents = vec![windows, windows, 3, 3, n];
    let width = (3 * windows * n) as i64;
    let at = Index::axis(4)
        .plus(&Index::axis(3), n as i64)
        .plus(&Index::axis(1), 3 * n as i64)
        .plus(&Index::axis(2), width)
        .plus(&Index::axis(0), 3 * width);
    let map = Dims::new(&[3 * windows, 3 * windows, n])?;
    let mut nodes = Nodes::default();
    let x = nodes.read(0, at);
    let normal = normalised(&mut nodes, x, 1 << 4);
    let nest = Nest::new(
        extents.clone(),
        (0..5).collect(),
        vec![map],
        nodes,
        normal,
        Dims::new(&[windows * windows, 9, n])?,
    )?;
    nest.keeping(0, map).ok_or_else(|| Error::Internal("windows that keep no pixel".to_owned()))
}

/// The place of the largest element of each row.
fn largest(m: usize, n: usize) -> Result<Nest> {
    let rows = vec![m, n];
    let mut nodes = Nodes::default();
    let of = nodes.read(0, element(&rows));
    let place = nodes.add(Node::Place(Index::axis(1)));
    let found = Node::Reduce { reduction: Reduction::Max, of, over: 0b10, place: Some(place) };
    let found = nodes.add(found);
    Nest::new(rows, vec![0], vec![Dims::new(&[m, n])?], nodes, found, Dims::new(&[m])?)
}

/// A product and a nest that reads it as source `source`.
fn both(product: GemmOp, nest: Nest, source: usize) -> Result<GemmRowsOp> {
    let nest = LoopsOp::new(Arc::new(nest), OperandSet::ALL, OperandSet::NONE, product.precision)?;
    GemmRowsOp::new(product, &nest, source)
}

/// The examples in `precision`.
pub(crate) fn examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let product = |[m, n, k]: [usize; 3], options: &Gemm, [bias, residual]: [bool; 2]| {
        GemmOp::new(m, n, k, 1, options, bias, residual, precision)
    };
    let plain = Gemm::default();
    let gelu = Gemm { activation: Activation::Gelu, alpha: Bits(0.5), ..plain };
    let relu = Gemm { activation: Activation::Relu, ..plain };
    let several = GemmOp::new(7, 32, 16, 3, &plain, true, true, precision)?.with_shared_b();
    Ok(vec![
        Box::new(both(product([37, 64, 48], &plain, [true, true])?, normalisation(37, 64)?, 1)?),
        Box::new(both(product([9, 132, 20], &gelu, [true, false])?, normalisation(9, 132)?, 1)?),
        Box::new(both(several, normalisation(21, 32)?, 1)?),
        Box::new(both(product([21, 24, 12], &plain, [false; 2])?, shares(21, 24)?, 0)?),
        Box::new(both(product([36, 48, 160], &relu, [false, true])?, windows(2, 48)?, 0)?),
        Box::new(both(product([7, 100, 40], &plain, [true, false])?, largest(7, 100)?, 0)?),
    ])
}

const NAMES: &str = "m,n,k";

/// The end of a layer of a transformer, and the normalisation behind it.
pub(crate) const NUMBERS: Numbers =
    Numbers { names: NAMES, usual: &[784, 192, 768], op: |extents, _, precision| of(extents, precision) };

fn of(extents: &[usize], precision: Precision) -> Result<Arc<dyn Op>> {
    let &[m, n, k] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    let product = GemmOp::new(m, n, k, 1, &Gemm::default(), true, true, precision)?;
    Ok(Arc::new(both(product, normalisation(m, n)?, 1)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::Operand;
    use crate::ops::op::Answer;
    use crate::ops::operands::Operands;
    use std::borrow::Cow;

    /// Numbers for an operand, others for each.
    fn numbers(operand: Operand, elements: usize) -> Vec<f32> {
        let start = operand.name().bytes().map(usize::from).sum::<usize>();
        (0..elements).map(|at| ((at * 7919 + start * 104_729) % 1009) as f32 / 504.5 - 1.0).collect()
    }

    #[test]
    fn a_nest_reads_what_the_product_gives() {
        for op in examples(Precision::F32).expect("examples") {
            let own = op.as_any().downcast_ref::<GemmRowsOp>().expect("what it is");
            let infos = op.operands().into_iter().filter(|info| !info.role.writes());
            let given: Operands<'_> = infos
                .map(|info| (info.operand, Cow::Owned(numbers(info.operand, info.elements()))))
                .collect();
            let product: &dyn Op = &own.product;
            let is_of_product = |operand: &Operand| !matches!(operand, Operand::Read(_));
            let (of_product, mut reads): (Operands<'_>, Operands<'_>) =
                given.clone().into_iter().partition(|(operand, _)| is_of_product(operand));
            let found = product.reference(&of_product, Answer::Exact).expect("its operands");
            let values: Vec<f32> = found.value().iter().map(|&value| value as f32).collect();
            reads.insert(Operand::C, Cow::Owned(values));
            let nest: &dyn Op = &*own.nest;
            let wanted = nest.reference(&reads, Answer::Exact).expect("its sources");
            let found = op.reference(&given, Answer::Exact).expect("its operands");
            let on_cpu = crate::ops::expected::on_cpu(&*op, &given).expect("it runs");
            assert_eq!((on_cpu.len(), found.value().len()), (wanted.value().len(), wanted.value().len()));
            for (index, &value) in wanted.value().iter().enumerate() {
                let bound = found.tolerance(index, Precision::F32);
                assert!(
                    value.is_finite() && bound.is_finite() && bound < 1e-2,
                    "{index}: {value} +- {bound}"
                );
                assert!((found.value()[index] - value).abs() <= 1e-12, "{index}: {value}");
                assert!(
                    (f64::from(on_cpu[index]) - value).abs() <= bound,
                    "{index}: {} {value}",
                    on_cpu[index]
                );
            }
        }
    }

    #[test]
    fn a_product_refuses_rows_that_are_not_its_own() {
        let precision = Precision::F32;
        let product = GemmOp::new(24, 24, 8, 1, &Gemm::default(), false, false, precision).expect("small");
        let extents = [24, 24];
        // Rows of the transposed product, and each row of the one before it.
        let turned = Index::axis(0).plus(&Index::axis(1), 24);
        let before = Index::axis(1).plus(&Index::axis(0), 24).remainder(24 * 23, &extents);
        for at in [turned, before] {
            let mut nodes = Nodes::default();
            let x = nodes.read(0, at);
            let normal = normalised(&mut nodes, x, 0b10);
            let dims = Dims::new(&extents).expect("small");
            let nest =
                Nest::new(extents.to_vec(), vec![0, 1], vec![dims], nodes, normal, dims).expect("a nest");
            let refused = both(product, nest, 0).expect_err("another row").to_string();
            assert!(refused.contains("one row of the product"), "{refused}");
        }
    }
}
