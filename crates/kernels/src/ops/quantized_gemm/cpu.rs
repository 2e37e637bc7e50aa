//! The product with quantized weights on the CPU. Few rows are multiplied with integers as these are unpacked; for many, some
//! columns are unpacked at a time into a worker's scratch.

use super::planes::{Dot, Lanes, Packed, Planes, ROWS, RowZeros, Unpack};
use super::{OP, QuantizedGemmOp, Zeros, packing};
use crate::cpu::arch::Arch;
use crate::cpu::blocks::{cut_product, with_scratch};
use crate::cpu::bytes::Vectors;
use crate::cpu::bytes::rounded::{PackedRow, RoundedRow};
use crate::cpu::finish::{After, Finish};
use crate::cpu::micro::Rows;
use crate::cpu::panels::Panels;
use crate::cpu::shelf::Shelf;
use crate::cpu::tail::Tail;
use crate::cpu::tile::{Cut, Tile, for_each_tile};
use crate::cpu::workers::{each, workers};
use crate::cpu::{CpuKernel, check_len, given, input, output};
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::operands::Operands;

/// Rows from which unpacked columns are multiplied as floats.
const MANY: usize = 16;

/// Values that a worker unpacks at a time, and columns of these at least.
const UNPACKED: usize = 128 * 1024;
const LEAST_COLUMNS: usize = 32;

/// A product with the constants of its epilogue, to run on the CPU as often as wanted.
#[derive(Debug, Clone)]
pub(super) struct QuantizedKernel {
    op: QuantizedGemmOp,
    tail: Tail,
    arch: Arch,
    planes: Planes,
    vectors: Vectors,
}

/// What a run is given.
#[derive(Clone, Copy)]
struct Inputs<'a> {
    words: &'a [u32],
    scales: &'a [f32],
    zeros: Option<&'a [f32]>,
}

impl QuantizedKernel {
    /// Takes the constants of the epilogue.
    pub(super) fn new(op: &QuantizedGemmOp, constants: &Operands<'_>) -> Result<Self> {
        let arch = Arch::new();
        let planes = Planes {
            bits: op.bits,
            k: op.k,
            words: op.words(),
            block_words: op.block_words(),
            blocks: op.blocks(),
            lanes: arch.dispatch(Lanes),
        };
        let tail = Tail::of(OP, &op.epilogue, op.n, constants)?;
        Ok(QuantizedKernel { op: *op, tail, arch, planes, vectors: Vectors::new() })
    }

    /// Calls `work` with row `n` of the weights. Zero points that are packed are unpacked into `spare`.
    fn with_row<T>(
        &self,
        inputs: Inputs<'_>,
        n: usize,
        spare: &mut Vec<f32>,
        work: impl FnOnce(Packed<'_>) -> T,
    ) -> T {
        let op = &self.op;
        let zeros = match (op.zeros, inputs.zeros) {
            (Zeros::Floats, Some(zeros)) => RowZeros::Each(part(zeros, n, op.blocks())),
            (Zeros::Packed, Some(zeros)) => {
                let row = part(zeros, n, op.zero_words());
                spare.clear();
                spare.extend((0..op.blocks()).map(|block| packing::unpacked(op.bits, row, block) as f32));
                RowZeros::Each(spare)
            }
            (Zeros::Same(zero), _) => RowZeros::Same(zero.0),
            (_, None) => RowZeros::Same(f32::NAN),
        };
        let scales = part(inputs.scales, n, op.blocks());
        work(Packed { words: part(inputs.words, n, op.words()), scales, zeros })
    }

    /// Whether the difference of an integer and a zero point is exact, and the zero point added to 2^23 too.
    fn is_whole(&self) -> bool {
        match self.op.zeros {
            Zeros::Same(zero) => zero.0.fract() == 0.0 && zero.0.abs() < 65536.0,
            Zeros::Floats => false,
            Zeros::Packed => true,
        }
    }

    /// `R` rows, laid out side by side, times the columns of a tile from `first` on.
    fn columns<const R: usize>(
        &self,
        inputs: Inputs<'_>,
        x: &[f32],
        [row, first]: [usize; 2],
        tile: &mut Tile<'_>,
    ) {
        let (mut spare, whole) = (Vec::new(), self.is_whole());
        for index in 0..tile.row(row).len() {
            let sums = self.with_row(inputs, first + index, &mut spare, |weights| {
                self.arch.dispatch(Dot::<R> { planes: self.planes, x, weights, whole })
            });
            for (at, sum) in sums.into_iter().enumerate() {
                if let Some(slot) = tile.row(row + at).get_mut(index) {
                    *slot = sum;
                }
            }
        }
    }

    /// Few rows, which are laid out in `scratch`.
    fn few(&self, inputs: Inputs<'_>, x: &[f32], scratch: &mut [f32], dst: &mut [f32]) {
        let op = &self.op;
        let row = self.planes.row();
        let side = |first: usize| if op.m - first == 1 { 1 } else { ROWS };
        let mut rest = &mut *scratch;
        for first in (0..op.m).step_by(ROWS) {
            let (to, more) = rest.split_at_mut((side(first) * row).min(rest.len()));
            self.planes.lay_out(x.get(first * op.k..).unwrap_or_default(), side(first), to);
            rest = more;
        }
        let scratch = &*scratch;
        let cut = Cut {
            rows: op.m,
            columns: cut_product(1, op.k * op.m.next_multiple_of(ROWS) / ROWS, op.n).columns,
        };
        for_each_tile(dst, op.n, cut, |[_, column], mut tile| {
            let mut rest = scratch;
            for first in (0..op.m).step_by(ROWS) {
                let (x, more) = rest.split_at((side(first) * row).min(rest.len()));
                match side(first) {
                    1 => self.columns::<1>(inputs, x, [first, column], &mut tile),
                    _ => self.columns::<ROWS>(inputs, x, [first, column], &mut tile),
                }
                rest = more;
            }
        });
    }

    /// Few rows, which are rounded to bytes.
    fn rounded(&self, inputs: Inputs<'_>, x: &[f32], dst: &mut [f32]) {
        let op = &self.op;
        let rows: Vec<RoundedRow> = x.chunks(op.k).map(|x| RoundedRow::new(x, op.bits, op.words())).collect();
        let columns = cut_product(1, op.k * op.m.next_multiple_of(ROWS) / ROWS, op.n).columns;
        for_each_tile(dst, op.n, Cut { rows: op.m, columns }, |[_, column], mut tile| {
            let mut spare = Vec::new();
            for index in 0..tile.row(0).len() {
                self.with_row(inputs, column + index, &mut spare, |weights| {
                    let same;
                    let zeros = match weights.zeros {
                        RowZeros::Each(zeros) => zeros,
                        RowZeros::Same(zero) => {
                            same = [zero];
                            &same[..]
                        }
                    };
                    let (words, scales) = (weights.words, weights.scales);
                    let own = PackedRow { words, block_words: self.planes.block_words, scales, zeros };
                    for (row, x) in rows.iter().enumerate() {
                        if let Some(slot) = tile.row(row).get_mut(index) {
                            *slot = self.vectors.packed_product(own, x);
                        }
                    }
                });
            }
        });
    }

    /// Many rows, which are laid out in `scratch`.
    fn many(&self, inputs: Inputs<'_>, x: &[f32], scratch: &mut [f32], dst: &mut [f32]) {
        let op = &self.op;
        let row = self.planes.row();
        each(scratch.chunks_mut(row).zip(x.chunks(op.k)), |(to, x)| self.planes.lay_out(x, 1, to));
        let rows = Rows {
            src: scratch,
            first: 0,
            lines: 1,
            line_stride: 0,
            per_line: op.m,
            row_stride: row,
            taps: &[0],
            values: row,
        };
        let most = (UNPACKED / row).max(LEAST_COLUMNS);
        let columns = op.n.div_ceil(4 * workers()).clamp(LEAST_COLUMNS, most).next_multiple_of(LEAST_COLUMNS);
        let cut = Cut { rows: op.m, columns };
        for_each_tile(dst, op.n, cut, |[_, column], mut tile| {
            let count = tile.row(0).len();
            let unpack = || {
                let (mut spare, mut weights) = (Vec::new(), vec![0.0; count * row]);
                for (index, to) in weights.chunks_exact_mut(row).enumerate() {
                    self.with_row(inputs, column + index, &mut spare, |weights| {
                        self.arch.dispatch(Unpack { planes: self.planes, weights, to });
                    });
                }
                weights
            };
            let panels = Panels::new([row, count], unpack, None, (Shelf::default(), ""));
            let finish = Finish { after: After::Nothing, residual: None, first: false, stride: op.n };
            panels.multiply(rows, 0..count, &mut tile, 0, finish);
        });
    }
}

/// Row `n` of rows of so many values.
fn part<T>(values: &[T], n: usize, count: usize) -> &[T] {
    values.get(n * count..(n + 1) * count).unwrap_or_default()
}

impl CpuKernel for QuantizedKernel {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let op = &self.op;
        let of = |operand: Operand, wanted: usize| {
            let values = input(OP, inputs, operand)?;
            check_len(OP, operand.name(), values.len(), wanted)?;
            Ok(values)
        };
        let x = of(Operand::Src, op.m * op.k)?;
        let words = bytemuck::cast_slice(of(Operand::Weights, op.n * op.words())?);
        let scales = of(Operand::Scales, op.n * op.blocks())?;
        let zeros = match op.zeros {
            Zeros::Same(_) => None,
            Zeros::Floats => Some(of(Operand::Zeros, op.n * op.blocks())?),
            Zeros::Packed => Some(of(Operand::Zeros, op.n * op.zero_words())?),
        };
        let residual = given(inputs, Operand::Residual);
        self.tail.check_residual(residual, op.m * op.n)?;
        let dst = output(OP, outputs, Operand::Dst)?;
        check_len(OP, "dst", dst.len(), op.m * op.n)?;
        let own = Inputs { words, scales, zeros };
        if op.rounded && op.m < MANY && self.vectors.has_packed() {
            self.rounded(own, x, dst);
        } else {
            with_scratch(op.m.next_multiple_of(ROWS) * self.planes.row(), |scratch| {
                if op.m < MANY {
                    return self.few(own, x, scratch, dst);
                }
                self.many(own, x, scratch, dst);
            });
        }
        let rows = op.m.div_ceil(workers());
        let parts = dst.chunks_mut(rows * op.n).enumerate();
        each(parts, |(index, dst)| {
            let residual = residual.map(|all| all.get(index * rows * op.n..).unwrap_or_default());
            self.tail.apply(dst, op.n, residual);
        });
        Ok(())
    }
}
