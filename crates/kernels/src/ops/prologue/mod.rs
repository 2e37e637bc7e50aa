//! An op that computes one of its inputs while it reads it, as one kernel
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `r0`, ... (`read0`, ...) | as the sources of the nest | rows, or feature maps in slices of four channels |
//! | the op's operands but for `x` | | |
//!
//! `y = op(x, ...)` with `x = nest(r0, ...)`. The [`Nest`](super::loops::Nest) gives each element of `x` by itself: it moves
//! elements and computes functions of them, and reduces nothing. Kernels of the op call it in f32 where they would load four
//! elements of `x`, so that `x` is never stored; what several work-groups load is computed by each of them.
//!
//! Such an op has the name of the op whose texts it runs.

mod cpu;
mod examples;
mod kernel;
mod op;
mod operator;

pub(super) use examples::before;
pub use operator::Prologue;

use super::loops::LoopsOp;
use super::op::Op;
use super::operands::OperandInfo;
use crate::emit::Operand;
use crate::error::{Error, Result};
use std::sync::Arc;

/// An op with a nest that gives one of its inputs.
#[derive(Debug, Clone)]
pub struct PrologueOp {
    op: Arc<dyn Op>,
    /// The input that the nest gives.
    operand: Operand,
    /// The nest, whose sources are [`Operand::Read`].
    nest: Arc<LoopsOp>,
}

impl PrologueOp {
    /// `op` with `nest` in the place of its input `operand`.
    ///
    /// # Errors
    /// If `op` has no such input, or `nest` is none that gives four elements of such an input by themselves.
    fn new(op: Arc<dyn Op>, operand: Operand, nest: LoopsOp) -> Result<Self> {
        let refuse = |found: String, wanted: String| {
            Err(Error::unsupported(op.name(), format!("{found}, wanted {wanted}")))
        };
        let input = op.operands().into_iter().find(|info| info.operand == operand && !info.role.writes());
        let Some(input) = input else {
            return refuse(
                format!("no input {}", operand.name()),
                "an input that a nest can give".to_owned(),
            );
        };
        if !nest.gives_vectors() {
            let wanted = "one that gives four elements in rows without a reduction".to_owned();
            return refuse(
                "a nest of reductions, integers, single elements or slices of channels".to_owned(),
                wanted,
            );
        }
        let found = nest.elements();
        if found != input.elements() || input.pitch != input.shape.c {
            return refuse(
                format!("a nest of {found} elements"),
                format!("{} of {}, packed", input.elements(), operand.name()),
            );
        }
        let nest = nest.with_sources(|place| Operand::Read(place as u8));
        Ok(PrologueOp { op, operand, nest: Arc::new(nest) })
    }

    /// What is read of the nest's sources.
    fn reads(&self) -> Vec<OperandInfo> {
        let nest: &dyn Op = &*self.nest;
        nest.operands().into_iter().filter(|info| !info.role.writes()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims::Dims;
    use crate::dtype::Precision;
    use crate::ops::expected::on_cpu;
    use crate::ops::gemm::{Gemm, GemmOp};
    use crate::ops::op::Answer;
    use crate::ops::operands::Operands;
    use crate::ops::update_slice::{UpdateSlice, UpdateSliceOp};
    use std::borrow::Cow;

    /// Values of `op`'s operands; places are 1.
    fn values(op: &dyn Op) -> Operands<'static> {
        let each = op.operands().into_iter().filter(|info| info.operand != Operand::C);
        let each = each.enumerate().map(|(order, info)| {
            let number = |at: usize| ((at * 7919 + order * 104_729) % 1009) as f32 / 504.5 - 1.0;
            let place = f32::from_bits(1);
            let is_place = info.operand == Operand::Arg(1);
            let values: Vec<f32> =
                (0..info.elements()).map(|at| if is_place { place } else { number(at) }).collect();
            (info.operand, Cow::Owned(values))
        });
        each.collect()
    }

    #[test]
    fn what_an_op_computes_is_what_it_would_be_given() {
        let dims = |extents: &[usize]| Dims::new(extents).expect("small");
        let places = dims(&[1]);
        let update = UpdateSliceOp::new(dims(&[2, 7, 8]), dims(&[2, 2, 8]), places, UpdateSlice { axis: 1 })
            .expect("it fits");
        let product =
            GemmOp::new(3, 8, 20, 2, &Gemm::default(), true, true, Precision::F32).expect("it fits");
        let ops: [(Arc<dyn Op>, Operand); 2] =
            [(Arc::new(product), Operand::A), (Arc::new(update), Operand::Arg(0))];
        for (op, operand) in ops {
            for both in before(&op, operand).expect("nests") {
                let given = values(&*both);
                let found = both.reference(&given, Answer::Exact).expect("its operands");
                let own = both.as_any().downcast_ref::<PrologueOp>().expect("what it is");
                let nest: &dyn Op = &*own.nest;
                let reads = given.iter().filter(|(operand, _)| matches!(operand, Operand::Read(_)));
                let reads: Operands<'_> = reads.map(|(operand, values)| (*operand, values.clone())).collect();
                let computed = nest.reference(&reads, Answer::Exact).expect("its sources");
                let computed: Vec<f32> = computed.value().iter().map(|&value| value as f32).collect();
                let mut apart: Operands<'_> = given
                    .iter()
                    .filter(|(operand, _)| !matches!(operand, Operand::Read(_)))
                    .map(|(operand, values)| (*operand, values.clone()))
                    .collect();
                apart.insert(operand, Cow::Owned(computed));
                let wanted = op.reference(&apart, Answer::Exact).expect("its operands");
                let on_cpu = on_cpu(&*both, &given).expect("it runs");
                assert_eq!((found.value().len(), on_cpu.len()), (wanted.value().len(), wanted.value().len()));
                for (place, &value) in wanted.value().iter().enumerate() {
                    let bound = found.tolerance(place, Precision::F32);
                    assert!(value.is_finite() && bound.is_finite(), "{place}: {value} +- {bound}");
                    assert!((found.value()[place] - value).abs() <= 1e-12, "{place}: {value}");
                    let off = (f64::from(on_cpu[place]) - value).abs();
                    assert!(off <= bound, "{place}: {off} of {bound}");
                }
            }
        }
    }
}
