//! What `gemm_rows` is, and its kernels.

use super::cpu::GemmRowsOnCpu;
use super::{GemmRowsOp, OP, direct, matrix};
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dtype::Precision;
use crate::emit::{Binding, Epilogue, Operand};
use crate::error::Result;
use crate::ops::definition::Definition;
use crate::ops::kernel::Kernel;
use crate::ops::op::Op;
use crate::ops::operands::{OperandInfo, Operands};
use crate::ops::plan::Choice;
use crate::ops::reference::Reference;
use crate::ops::spec::{Params, extent};
use std::sync::Arc;

impl GemmRowsOp {
    /// The product's operands, without its result.
    fn of_product(&self) -> impl Iterator<Item = OperandInfo> {
        Definition::operands(&self.product).into_iter().filter(|info| info.operand != Operand::C)
    }
}

impl Definition for GemmRowsOp {
    const NAME: &'static str = OP;
    const ROWS: bool = true;
    const HALVES: bool = true;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&matrix::Matrix, &direct::Direct]
    }

    fn packing(&self) -> Option<String> {
        Definition::packing(&self.product)
    }

    fn problem_key(&self) -> String {
        format!("{} rows {}", Definition::problem_key(&self.product), Definition::problem_key(&*self.nest))
    }

    fn precision(&self) -> Precision {
        self.product.precision
    }

    fn flops(&self) -> u64 {
        Definition::flops(&self.product) + Definition::flops(&*self.nest)
    }

    fn dst_depth(&self) -> u32 {
        extent(self.product.n().div_ceil(4))
    }

    fn operands(&self) -> Vec<OperandInfo> {
        let [read, written] = self.nest.operands_beside(self.source);
        self.of_product().chain(read).chain(written).collect()
    }

    fn bindings(&self, _choice: &Choice) -> Vec<Binding> {
        self.product.vec4_bindings().into_iter().filter(|own| own.operand != Operand::C).collect()
    }

    fn params(&self, _choice: &Choice) -> Params {
        self.product.vec4_params()
    }

    fn pack(&self, choice: &Choice, operand: Operand, data: &[f32]) -> Vec<f32> {
        match operand {
            Operand::Read(_) => data.to_vec(),
            _ => Definition::pack(&self.product, choice, operand, data),
        }
    }

    fn epilogue(&self) -> Epilogue {
        self.product.epilogue
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        self.result(operands, &Definition::oracle(&self.product, &self.product_of(operands)))
    }

    fn others(&self) -> Vec<(Operand, Box<dyn Op>)> {
        let other = |(result, operand)| {
            let nest = Arc::new(self.nest.of_result(result)?);
            Some((operand, Box::new(GemmRowsOp { nest, ..self.clone() }) as Box<dyn Op>))
        };
        self.nest.further().filter_map(other).collect()
    }

    fn cpu(&self, constants: &Operands<'_>, shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>> {
        Ok(Box::new(GemmRowsOnCpu::new(self, constants, shelf)?))
    }
}
