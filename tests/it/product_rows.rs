//! What is reduced of a product's rows, as a part of the product.

use crate::one_row::{Stored, check, count, product, tensor};
use diptych::{
    Bits, Dims, Function, Graph, HostTensor, Precision, Rewrite, Softmax, Value, nn::AxisRange, nn::Normalize,
};

/// What reads the rows of a product.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Behind {
    /// A normalisation, to which the rows are added.
    Normalisation,
    /// A softmax, whose rows are columns then.
    Shares,
    /// A normalisation of windows of two by two of a map of four by six.
    Windows,
}

/// `behind` the product of `x`, rows of 16, with weights of 32 columns.
fn rows(graph: &mut Graph, x: Value, m: usize, stored: Stored, behind: Behind) -> diptych::Result<Value> {
    let y = product(graph, "product", x, [16, 32], stored, true)?;
    let normalised = |graph: &mut Graph, y: Value| {
        let options = Normalize { axes: vec![-1], epsilon: Bits(1e-3), centred: true };
        graph.normalize("normal", y, options, Some(tensor(&[32], 4)), Some(tensor(&[32], 6)))
    };
    match behind {
        Behind::Normalisation => {
            let other = graph.input("other", Dims::new(&[m, 32])?)?;
            let sum = graph.elementwise("sum", Function::Add, &[y.into(), other.into()])?;
            let normal = normalised(graph, sum)?;
            graph.elementwise("both", Function::Add, &[normal.into(), sum.into()])
        }
        Behind::Shares => {
            let shares = graph.softmax("shares", y, Softmax::default())?;
            graph.transpose("columns", shares, &[1, 0])
        }
        Behind::Windows => {
            let normal = normalised(graph, y)?;
            let map = graph.reshape("map", normal, &[2, 2, 3, 2, 32].map(Into::into))?;
            graph.transpose("windows", map, &[0, 2, 1, 3, 4])
        }
    }
}

#[test]
fn what_is_reduced_of_a_products_rows_is_a_part_of_it() -> diptych::Result<()> {
    for stored in [Stored::Floats, Stored::Transposed, Stored::Halves] {
        for behind in [Behind::Normalisation, Behind::Shares, Behind::Windows] {
            let m = 24;
            let mut graph = Graph::new();
            let x = graph.input("x", Dims::new(&[m, 16])?)?;
            let y = rows(&mut graph, x, m, stored, behind)?;
            graph.output(y)?;
            let inputs = |run: usize| {
                let mut all = vec![("x", tensor(&[m, 16], run as u32 + 3))];
                if behind == Behind::Normalisation {
                    all.push(("other", tensor(&[m, 32], run as u32 + 7)));
                }
                all
            };
            check(&graph, Rewrite::ProductRows, &inputs, &|ops, precision: Precision, without| {
                // Kernels read whole vec4s of what lies as it is.
                let wanted = usize::from(!without && stored != Stored::Transposed);
                assert_eq!(count(ops, "gemm_rows"), wanted, "{stored:?} {behind:?} {precision}: {ops:?}");
            })?;
        }
    }
    Ok(())
}

#[test]
fn rows_behind_a_move_are_those_that_it_gives() -> diptych::Result<()> {
    for (way, extents) in [("slice", [40, 16]), ("transpose", [16, 24]), ("gather", [40, 16])] {
        let mut graph = Graph::new();
        let x = graph.input("x", Dims::new(&extents)?)?;
        let part = match way {
            "slice" => graph.strided_slice("part", x, &[AxisRange::new(8, 32), AxisRange::ALL])?,
            "transpose" => graph.transpose("part", x, &[1, 0])?,
            _ => {
                let rows: Vec<i32> = (0..24).map(|row| (row * 7 + 3) % 40).collect();
                let rows = graph.constant("rows", HostTensor::of(Dims::new(&[24])?, rows)?);
                graph.gather("part", x, rows, 0, 0)?
            }
        };
        let y = rows(&mut graph, part, 24, Stored::Floats, Behind::Normalisation)?;
        graph.output(y)?;
        let inputs = |run: usize| {
            vec![("x", tensor(&extents, run as u32 + 3)), ("other", tensor(&[24, 32], run as u32 + 7))]
        };
        check(&graph, Rewrite::ProductRows, &inputs, &|ops, precision: Precision, without| {
            assert_eq!(count(ops, "gemm_rows"), usize::from(!without), "{way} {precision}: {ops:?}");
        })?;
    }
    Ok(())
}
