//! What `cumsum` is as an op of rows: all sums of one row per invocation.

use super::{CumSumOp, OP, oracle};
use crate::cpu::blocks::{MOVED, independent_rows};
use crate::cpu::workers::each;
use crate::dtype::DType;
use crate::emit::{Operand, Value};
use crate::ops::kernel::Constants;
use crate::ops::loops::{OpNest, OperandSet};
use crate::ops::operands::{Operands, get};
use crate::ops::reference::Reference;
use crate::ops::rows::{RowsOp, word_key};
use crate::ops::spec::{Params, unsigned};
use crate::shape::Shape;
use crate::word;

impl CumSumOp {
    /// The sums of integers, which wrap at 64 bits.
    pub(super) fn sums(&self, terms: &[i64]) -> Vec<i64> {
        let (extent, inner) = (self.extent(), self.inner());
        let mut sums = vec![0i64; terms.len()];
        for first in (0..terms.len()).filter(|place| place / inner % extent == 0) {
            let mut sum = 0i64;
            for step in 0..extent {
                let place = first + inner * if self.reverse { extent - 1 - step } else { step };
                let before = sum;
                sum = sum.wrapping_add(terms[place]);
                sums[place] = if self.exclusive { before } else { sum };
            }
        }
        sums
    }
}

impl RowsOp for CumSumOp {
    const NAME: &'static str = OP;
    const TEXT: &'static str = crate::emit::text!("../../../shaders/cumsum/rows.wgsl");

    fn problem_key(&self) -> String {
        let mut text = format!("of{} axis{}", self.dims, self.axis);
        for (told, word) in [(self.exclusive, " exclusive"), (self.reverse, " reverse")] {
            if told {
                text.push_str(word);
            }
        }
        text + &word_key(self.dtype)
    }

    fn inputs(&self) -> Vec<(Operand, Shape)> {
        vec![(Operand::Src, self.dims.shape())]
    }

    fn output(&self) -> Shape {
        self.dims.shape()
    }

    fn flops(&self) -> u64 {
        self.dims.elements() as u64
    }

    fn invocations(&self) -> usize {
        self.dims.elements() / self.extent()
    }

    fn dtype(&self, _operand: Operand) -> DType {
        self.dtype
    }

    fn params(&self) -> Params {
        vec![
            ("rows", unsigned(self.invocations())),
            ("terms", unsigned(self.extent())),
            ("inner", unsigned(self.inner())),
        ]
    }

    fn constants(&self) -> Constants {
        let flag = |told: bool| Value::U32(u32::from(told));
        vec![("EXCLUSIVE", flag(self.exclusive)), ("REVERSE", flag(self.reverse))]
    }

    fn nest(&self) -> Option<OpNest> {
        Some(OpNest::new(self.as_nest()?, vec![Operand::Src]).with_halves(OperandSet::NONE))
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        oracle::oracle(self, get(operands, Operand::Src).unwrap_or_default())
    }

    fn compute(&self, inputs: &[&[f32]], dst: &mut [f32]) {
        let &[src] = inputs else { return };
        if self.dtype != DType::F32 {
            let sums = self.sums(&word::integers(self.dtype, src));
            dst.copy_from_slice(&word::of_integers(self.dtype, sums.into_iter()));
            return;
        }
        let (extent, inner) = (self.extent(), self.inner());
        let whole = extent * inner;
        let block = independent_rows(dst.len() / whole, MOVED * whole) * whole;
        each(dst.chunks_mut(block).zip(src.chunks(block)), |(dst, src)| {
            for (dst, src) in dst.chunks_exact_mut(whole).zip(src.chunks_exact(whole)) {
                let mut sums = vec![0.0; inner];
                for step in 0..extent {
                    let at = if self.reverse { extent - 1 - step } else { step } * inner;
                    let terms = dst[at..at + inner].iter_mut().zip(&src[at..at + inner]).zip(&mut sums);
                    for ((value, term), sum) in terms {
                        let before = *sum;
                        *sum += term;
                        *value = if self.exclusive { before } else { *sum };
                    }
                }
            }
        });
    }
}
