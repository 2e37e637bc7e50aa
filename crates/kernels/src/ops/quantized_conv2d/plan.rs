//! What `quantized_conv2d` is, and its kernels.

use super::{QuantizedConv2d, QuantizedConv2dOp, cpu, direct, matrix, oracle};
use crate::cpu::CpuKernel;
use crate::error::Result;
use crate::ops::byte_windows::ByteOptions;
use crate::ops::bytes::LANES;
use crate::ops::kernel::Kernel;
use crate::ops::operands::Operands;
use crate::ops::reference::Reference;
use crate::shape::Shape;

impl ByteOptions for QuantizedConv2d {
    fn kernels() -> &'static [&'static dyn Kernel<QuantizedConv2dOp>] {
        &[&matrix::MatrixPtx, &direct::Direct]
    }

    fn op(&self, [input, weights]: [Shape; 2]) -> Result<QuantizedConv2dOp> {
        QuantizedConv2dOp::new(input, weights, self)
    }

    fn weights(op: &QuantizedConv2dOp) -> Shape {
        let [h, w] = op.windows.kernel;
        Shape::nhwc(op.channels, h, w, op.windows.input.c)
    }

    fn channels(op: &QuantizedConv2dOp) -> String {
        format!("o{}", op.channels)
    }

    fn flops(op: &QuantizedConv2dOp) -> u64 {
        let windows = &op.windows;
        let pixels = (windows.output.elements() / windows.output.c) as u64;
        2 * pixels * op.channels as u64 * (LANES * windows.terms()) as u64
    }

    fn oracle(op: &QuantizedConv2dOp, operands: &Operands<'_>) -> Reference {
        oracle::oracle(op, operands)
    }

    fn cpu(op: &QuantizedConv2dOp, constants: &Operands<'_>) -> Result<Box<dyn CpuKernel>> {
        cpu::kernel(op, constants)
    }
}
