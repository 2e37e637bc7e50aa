//! The transposed convolution on the CPU: each output row is a sum of input rows, each times the weights of one
//! row of taps, whose results are moved to where they belong and added.

use super::{OP, TransposedConv2dOp};
use crate::cpu::arch::Arch;
use crate::cpu::blocks::{independent_rows, with_scratch};
use crate::cpu::finish::{After, Finish};
use crate::cpu::micro::Rows;
use crate::cpu::panels::Panels;
use crate::cpu::shelf::Shelf;
use crate::cpu::tail::Tail;
use crate::cpu::tile::Tile;
use crate::cpu::workers::each;
use crate::cpu::{CpuKernel, check_len, given, input, output};
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::operands::{Operands, need};
use pulp::{Simd, WithSimd};

/// A transposed convolution, to run on the CPU as often as wanted.
#[derive(Debug, Clone)]
pub(super) struct Transposed {
    op: TransposedConv2dOp,
    /// For each row of taps a matrix whose columns are tap after tap the output channels.
    panels: Vec<Panels>,
    /// Whether each output pixel has one tap of one input pixel, in order: then the products are the output.
    apart: bool,
    tail: Tail,
    arch: Arch,
}

impl Transposed {
    /// Lays out the weights (`oc kh kw c`).
    pub(super) fn new(op: &TransposedConv2dOp, constants: &Operands<'_>, shelf: Shelf<'_>) -> Result<Self> {
        let ([kh, kw], depth, outputs) = (op.0.kernel, op.0.input.c, op.0.output.c);
        let weights = need(OP, constants, Operand::Weights)?;
        check_len(OP, "weights", weights.len(), outputs * kh * kw * depth)?;
        let tail = Tail::of(OP, &op.0.epilogue, outputs, constants)?;
        let (x, y) = (op.0.input, op.0.output);
        let apart = op.0.kernel == op.0.stride
            && op.0.before == [0, 0]
            && (y.h, y.w) == (x.h * kh, x.w * kw)
            && !op.0.epilogue.residual.is_some();
        let all = Tail::repeated(OP, &op.0.epilogue, &tail, kw)?;
        let panels = (0..kh).map(|a| {
            let columns = (0..kw).flat_map(|b| (0..outputs).map(move |o| (o * kh + a) * kw + b));
            let rows = || {
                let of = |tap| weights.get(tap * depth..(tap + 1) * depth).unwrap_or_default();
                columns.flat_map(of).copied().collect::<Vec<f32>>()
            };
            let name = format!("row {a} of {kh}");
            if apart {
                all.panels(depth, [0, kw * outputs], rows, (shelf, &name))
            } else {
                Panels::new([depth, kw * outputs], rows, None, (shelf, &name))
            }
        });
        let panels = panels.collect();
        Ok(Transposed { op: *op, panels, apart, tail, arch: Arch::new() })
    }

    /// Output row `row` of all images.
    fn row(&self, row: usize, src: &[f32], dst: &mut [f32], scratch: &mut [f32]) {
        let (x, y, kw) = (self.op.0.input, self.op.0.output, self.op.0.kernel[1]);
        let columns = kw * y.c;
        if self.apart {
            let Some(panels) = self.panels.get(row % y.h % self.panels.len()) else { return };
            let first = (row / y.h * x.h + row % y.h / self.panels.len()) * x.w * x.c;
            let mut tile = Tile::Rows { data: dst, columns };
            let finish = self.tail.finish(None, columns);
            panels.multiply(self.pixels(src, first), 0..columns, &mut tile, 0, finish);
            if self.tail.in_registers().is_none() {
                self.tail.apply(dst, y.c, None);
            }
            return;
        }
        dst.fill(0.0);
        for (tap, panels) in self.panels.iter().enumerate() {
            let Some(source) = self.op.source(0, row % y.h, tap) else { continue };
            let rows = self.pixels(src, (row / y.h * x.h + source) * x.w * x.c);
            let finish = Finish { after: After::Nothing, residual: None, first: false, stride: columns };
            let mut tile = Tile::Rows { data: scratch, columns };
            panels.multiply(rows, 0..columns, &mut tile, 0, finish);
            self.arch.dispatch(Add { of: self, scratch, dst });
        }
    }

    /// A row of input pixels, whose first value is `first`.
    fn pixels<'a>(&self, src: &'a [f32], first: usize) -> Rows<'a> {
        let x = self.op.0.input;
        Rows { src, first, lines: 1, line_stride: 0, per_line: x.w, row_stride: x.c, taps: &[0], values: x.c }
    }

    /// Adds the products of each pixel to the outputs that they belong to.
    #[inline(always)]
    fn add(&self, scratch: &[f32], dst: &mut [f32]) {
        let (y, kw) = (self.op.0.output, self.op.0.kernel[1]);
        let (stride, before) = (self.op.0.stride[1], self.op.0.before[1]);
        for (pixel, products) in scratch.chunks_exact(kw * y.c).enumerate() {
            // Neighbouring taps are neighbours in the output too.
            let first = pixel * stride;
            let skipped = before.saturating_sub(first).min(kw);
            let place = (first + skipped).saturating_sub(before).min(y.w);
            let taken = (kw - skipped).min(y.w - place);
            let products = products.get(skipped * y.c..(skipped + taken) * y.c).unwrap_or_default();
            let sums = dst.get_mut(place * y.c..(place + taken) * y.c).unwrap_or_default();
            if sums.len() == products.len() {
                for index in 0..sums.len() {
                    sums[index] += products[index];
                }
            }
        }
    }
}

/// [`Transposed::add`].
struct Add<'a> {
    of: &'a Transposed,
    scratch: &'a [f32],
    dst: &'a mut [f32],
}

impl WithSimd for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        self.of.add(self.scratch, self.dst);
    }
}

impl CpuKernel for Transposed {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let (src, residual) = (input(OP, inputs, Operand::Src)?, given(inputs, Operand::Residual));
        let dst = output(OP, outputs, Operand::Dst)?;
        let (x, y) = (self.op.0.input, self.op.0.output);
        check_len(OP, "src", src.len(), x.elements())?;
        check_len(OP, "dst", dst.len(), y.elements())?;
        self.tail.check_residual(residual, y.elements())?;
        let (row_values, products) = (y.w * y.c, x.w * self.op.0.kernel[1] * y.c);
        let taps = self.op.0.kernel[0].div_ceil(self.op.0.stride[0]);
        let block = independent_rows(y.n * y.h, taps * products * x.c / 8);
        each(dst.chunks_mut(block * row_values).enumerate(), |(index, dst)| {
            with_scratch(products, |scratch| {
                for (offset, dst) in dst.chunks_exact_mut(row_values).enumerate() {
                    let row = index * block + offset;
                    self.row(row, src, dst, scratch);
                    let residual = residual.and_then(|all| all.get(row * row_values..(row + 1) * row_values));
                    if !self.apart {
                        self.tail.apply(dst, y.c, residual);
                    }
                }
            });
        });
        Ok(())
    }
}
