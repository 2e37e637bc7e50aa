//! Products with matrices of integers of few bits, which are taken as they are.

use super::after::finished;
use super::builder::Builder;
use super::operand::{Mapped, Operand};
use super::quantised_matrix::Packed;
use crate::emit::Activation;
use crate::graph::Extras;
use crate::host::HostTensor;
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use crate::ops::quantized_gemm::QuantizedGemm;

/// `f(x W^T + bias)` of packed weights: `x` is `... columns`.
pub(crate) fn packed_product(
    b: &mut Builder,
    x: Operand,
    weights: &Packed,
    bias: Option<Operand>,
    after: Option<Function>,
) -> Result<Operand, Reason> {
    let shape = b.shape(&x)?;
    if shape.last() != Some(&weights.columns) {
        let Packed { rows, columns, .. } = weights;
        return refused!(
            "found rows {shape:?} for weights {rows}x{columns}, wanted rows of {columns} elements"
        );
    }
    let (own, summand) = match bias {
        Some(Operand::Constant(constant, _))
            if constant.elements() == weights.rows && constant.extents().last() == Some(&weights.rows) =>
        {
            let list = constant.floats(&mut b.budget)?.to_nhwc().into_owned();
            (Some(HostTensor::vector(list)?), None)
        }
        other => (None, other),
    };
    let mapped = b.mapped(x)?;
    let value = b.logical(&mapped)?;
    let (rank, kind) = (shape.len(), mapped.kind);
    finished(b, summand, after, |b, activation: Activation| {
        let options = QuantizedGemm { activation, ..weights.options };
        let extras = Extras { bias: own, ..Extras::default() };
        let matrix = weights.matrix.clone();
        let value = b.add("", |graph, name| graph.quantized_gemm(name, value, matrix, extras, options))?;
        Ok(Operand::Value(Mapped::plain(value, rank, kind)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::budget::Budget;
    use crate::model::build::quantised_matrix::{Quantised, Shared};
    use crate::model::constant::Constant;
    use diptych::Session;

    const EXTENTS: [usize; 2] = [16, 32];

    /// Each way to share scales, with as many scales and zero points.
    fn all(bits: usize, zeros: bool) -> Vec<Quantised> {
        let shared = [
            Shared::All,
            Shared::Index(0),
            Shared::Index(1),
            Shared::Block { axis: 0, size: 8 },
            Shared::Block { axis: 1, size: 16 },
            Shared::Block { axis: 1, size: 40 },
        ];
        let of = |shared: Shared| {
            let count = match shared {
                Shared::All => 1,
                Shared::Index(axis) => EXTENTS[axis],
                Shared::Block { axis, size } => EXTENTS[axis].div_ceil(size) * EXTENTS[1 - axis],
            };
            let integer = |index: usize| (index * 37 % (1 << bits)) as u8;
            let integers = (0..EXTENTS[0] * EXTENTS[1]).map(integer).collect();
            let scales = (0..count).map(|index| 0.25 + index as f32 / 8.0).collect();
            let zeros = zeros.then(|| (0..count).map(|index| integer(3 * index + 1)).collect());
            Quantised::new(EXTENTS, bits, integers, shared, scales, zeros).expect("as many")
        };
        shared.map(of).into()
    }

    fn floats(quantised: &Quantised) -> Vec<f32> {
        let Ok(Constant::Floats(tensor)) = quantised.floats() else { panic!("no floats") };
        tensor.to_nhwc().into_owned()
    }

    #[test]
    fn products_with_packed_weights_are_those_of_the_floats() {
        for (bits, zeros) in [(2, true), (4, false), (4, true), (8, true)] {
            for (number, quantised) in all(bits, zeros).into_iter().enumerate() {
                let turned = quantised.turned().expect("as many");
                let own = floats(&quantised);
                let at = |row: usize, column: usize| own[row * EXTENTS[1] + column];
                for (index, found) in floats(&turned).into_iter().enumerate() {
                    assert_eq!(found, at(index % EXTENTS[0], index / EXTENTS[0]), "{number}");
                }
                for axis in 0..2 {
                    let packed = quantised.packed(axis);
                    // Weights of an output that share a scale are neighbours, and those of a word have one.
                    let can = [[true, true], [true, false], [false, true], [false, bits > 2], [true, false]];
                    let wanted = can.get(number).unwrap_or(&can[4])[axis];
                    assert_eq!(packed.is_some(), wanted, "{number} along {axis}, {bits} bits");
                    let Some(packed) = packed else { continue };
                    let (rows, columns) = (EXTENTS[axis], EXTENTS[1 - axis]);
                    assert_eq!((packed.rows, packed.columns), (rows, columns));
                    let mut b = Builder::new(Budget::new(1 << 20), 0, crate::model::prepared);
                    let x: Vec<f32> = (0..columns).map(|index| (index % 5) as f32 - 2.0).collect();
                    let dims = crate::dims::Dims::new(&[1, columns]).expect("small");
                    let input = b.graph.input("x", dims).expect("an input");
                    let operand = Operand::Value(Mapped::plain(input, 2, crate::model::build::Kind::F32));
                    let y = packed_product(&mut b, operand, &packed, None, None).expect("a product");
                    let y = b.mapped(y).expect("a value").value;
                    b.graph.output(y).expect("an output");
                    let session = Session::on_cpu(&b.graph).expect("a session");
                    let x = HostTensor::new(dims, x).expect("as many");
                    let y = session.compute(&[("x", &x)]).expect("a run");
                    for (row, found) in y[0].to_f32().iter().enumerate() {
                        let weight =
                            |column: usize| if axis == 0 { at(row, column) } else { at(column, row) };
                        let wanted: f32 = (0..columns).map(|k| x.to_f32()[k] * weight(k)).sum();
                        assert!((found - wanted).abs() <= 1e-3 * wanted.abs().max(1.0), "{found} {wanted}");
                    }
                }
            }
        }
    }
}
