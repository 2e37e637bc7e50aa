//! What `quantized_gemm` is, and its kernels.

use super::{OP, QuantizedGemmOp, Zeros, cpu, oracle, row, tiled};
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dtype::{DType, Precision};
use crate::emit::{Epilogue, Operand};
use crate::error::Result;
use crate::ops::definition::Definition;
use crate::ops::gemm::{Gemm, GemmOp};
use crate::ops::halves::{self, Reach, Reaches};
use crate::ops::kernel::Kernel;
use crate::ops::operands::{OperandInfo, Operands, Role, get};
use crate::ops::plan::Choice;
use crate::ops::reference::{Reference, Sum};
use crate::ops::spec::extent;
use crate::ops::{convolution, expected, problem};
use crate::shape::Shape;
use crate::sorted;
use std::borrow::Cow;

/// What covers that magnitudes were summed in f32.
const ROUNDED: f64 = 1.001;

impl Definition for QuantizedGemmOp {
    const NAME: &'static str = OP;
    const ROWS: bool = true;
    const HALVES: bool = true;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&row::Row, &tiled::Tiled]
    }

    fn packing(&self) -> Option<String> {
        Some(format!("n{}", self.n))
    }

    fn problem_key(&self) -> String {
        let QuantizedGemmOp { m, n, k, bits, .. } = *self;
        let mut text = format!("m{m} n{n} k{k} bits{bits}");
        if self.blocks() > 1 {
            text.push_str(&format!(" block{}", self.block));
        }
        text.push_str(match self.zeros {
            Zeros::Same(_) => "",
            Zeros::Floats => " zeros",
            Zeros::Packed => " packed-zeros",
        });
        if self.rounded {
            text.push_str(" rounded");
        }
        text + &problem::epilogue(&self.epilogue)
    }

    fn precision(&self) -> Precision {
        self.precision
    }

    fn flops(&self) -> u64 {
        [self.m, self.n, self.k].iter().fold(2, |flops: u64, &extent| flops.saturating_mul(extent as u64))
    }

    fn dst_depth(&self) -> u32 {
        extent(self.n.div_ceil(4))
    }

    fn operands(&self) -> Vec<OperandInfo> {
        let matrix = |operand: Operand, columns: usize, dtype: DType| {
            OperandInfo::new(operand, Shape::nhwc(1, 1, self.n, columns), Role::Input).of(dtype)
        };
        let mut operands = vec![
            OperandInfo::new(Operand::Src, self.src.shape(), Role::Input),
            matrix(Operand::Weights, self.words(), DType::U32),
            matrix(Operand::Scales, self.blocks(), DType::F32),
        ];
        match self.zeros {
            Zeros::Same(_) => {}
            Zeros::Floats => operands.push(matrix(Operand::Zeros, self.blocks(), DType::F32)),
            Zeros::Packed => operands.push(matrix(Operand::Zeros, self.zero_words(), DType::U32)),
        }
        operands.extend(convolution::extras(&self.epilogue, self.n, self.dst.shape()));
        operands.push(OperandInfo::new(Operand::Dst, self.dst.shape(), Role::Output));
        operands
    }

    fn pack(&self, choice: &Choice, _operand: Operand, data: &[f32]) -> Vec<f32> {
        self.pack_columns(choice, data)
    }

    fn epilogue(&self) -> Epilogue {
        self.epilogue
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        let rows: Vec<usize> = (0..self.m).collect();
        self.oracle_rows(operands, &rows)
    }

    fn oracle_rows(&self, operands: &Operands<'_>, rows: &[usize]) -> Reference {
        Reference::Sum(oracle::oracle(self, operands, rows))
    }

    /// The magnitudes are the product of `x` and the unpacked weights without their signs.
    fn expected(&self, operands: &Operands<'_>) -> Result<Reference> {
        let dst = OperandInfo::new(Operand::Dst, self.dst.shape(), Role::Output);
        let mut sum = Sum::begin(self.terms(), &self.epilogue, operands, &dst);
        // Of rows that are not rounded.
        let exact = QuantizedGemmOp { rounded: false, ..*self };
        sum.value = expected::on_cpu(&exact, operands)?.into_iter().map(f64::from).collect();
        let options = Gemm { transpose_b: true, ..Gemm::default() };
        let bias = self.epilogue.bias;
        let plain = GemmOp::new(self.m, self.n, self.k, 1, &options, bias, false, Precision::F32)?;
        let weights = oracle::Weights::of(self, operands);
        let places = (0..self.n).flat_map(|n| (0..self.k).map(move |k| [n, k]));
        let weights: Vec<f32> = places.map(|[n, k]| weights.at(n, k).abs() as f32).collect();
        let absolute = |operand: Operand| {
            let values = get(operands, operand)?;
            Some(Cow::Owned(values.iter().map(|value| value.abs()).collect::<Vec<f32>>()))
        };
        let own = [
            (Operand::A, absolute(Operand::Src)),
            (Operand::B, Some(Cow::Owned(weights))),
            (Operand::Bias, absolute(Operand::Bias)),
        ];
        let own = sorted::map(own.into_iter().filter_map(|(operand, values)| Some((operand, values?))));
        let magnitude = expected::on_cpu(&plain, &own)?;
        sum.magnitude = magnitude.into_iter().map(|magnitude| ROUNDED * f64::from(magnitude)).collect();
        Ok(Reference::Sum(sum))
    }

    fn cpu(&self, constants: &Operands<'_>, _shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>> {
        Ok(Box::new(cpu::QuantizedKernel::new(self, constants)?))
    }

    fn reach(&self, inputs: &Reaches<'_>, constants: &Operands<'_>) -> Reach {
        let most = f64::from(self.mask());
        let weight = match self.zeros {
            Zeros::Same(zero) => f64::from(zero.0.abs()).max((most - f64::from(zero.0)).abs()),
            Zeros::Floats => most + inputs(Operand::Zeros).magnitude(),
            Zeros::Packed => most,
        };
        let [src, scale] = [Operand::Src, Operand::Scales].map(|operand| inputs(operand).magnitude());
        let sum = self.k as f64 * src * scale * weight;
        halves::finished(&self.epilogue, Reach::around(sum), inputs, constants)
    }
}

impl QuantizedGemmOp {
    /// Terms of a sum, as its bound counts them: a weight passes two roundings before the product, the difference to the zero
    /// point and the scale, and a block's sum may be scaled as a whole.
    pub(super) const fn terms(&self) -> usize {
        self.k + 3
    }
}
