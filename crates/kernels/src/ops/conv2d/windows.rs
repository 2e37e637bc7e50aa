//! The general convolution on the CPU: a product of each group's weights with the windows, read where they
//! lie between rows padded with zeros.

use crate::cpu::blocks::{cut_panels, with_scratch};
use crate::cpu::micro::Rows;
use crate::cpu::panels::Panels;
use crate::cpu::shelf::Shelf;
use crate::cpu::tail::Tail;
use crate::cpu::tile::for_each_tile;
use crate::cpu::workers::{each, workers};
use crate::cpu::{CpuKernel, check_len, given, input, output};
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::convolution::Convolution;
use crate::shape::Border;

/// The general convolution.
///
/// The rows of the input that a block of output lines reads are copied between zeros, or what else lies there, where
/// windows hang over; then neighbouring windows of a line are a fixed step apart, and their values, tap after
/// tap, at fixed distances from a window's first.
#[derive(Debug, Clone)]
pub(crate) struct Windows {
    op: &'static str,
    conv: Convolution,
    /// Rows and columns that the windows span, zeros included.
    span: [usize; 2],
    padded: bool,
    /// Distance from a window's first value to each run of neighbouring values, and their number.
    taps: Vec<usize>,
    values: usize,
    /// One for each group.
    panels: Vec<Panels>,
    tail: Tail,
}

impl CpuKernel for Windows {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let (src, residual) = (input(self.op, inputs, Operand::Src)?, given(inputs, Operand::Residual));
        self.convolve(src, residual, output(self.op, outputs, Operand::Dst)?)
    }
}

impl Windows {
    /// `weights` is `oc kh kw c/groups`, its length checked.
    pub(crate) fn new(
        op: &'static str,
        conv: Convolution,
        weights: &[f32],
        tail: Tail,
        shelf: Shelf<'_>,
    ) -> Self {
        let Convolution { input, output, kernel, stride, dilation, before, groups, .. } = conv;
        let (inputs, outputs) = (conv.group_inputs(), conv.group_outputs());
        let span = |axis: usize, outputs: usize| {
            (outputs - 1) * stride[axis] + (kernel[axis] - 1) * dilation[axis] + 1
        };
        let span = [span(0, output.h), span(1, output.w)];
        let padded = before != [0, 0] || span[0] > input.h || span[1] > input.w;
        let row_values = if padded { span[1] } else { input.w } * input.c;
        // Neighbouring taps of an ungrouped convolution are one run of memory.
        let together = groups == 1 && dilation[1] == 1;
        let runs = if together { 1 } else { kernel[1] };
        let tap = |a, b| a * dilation[0] * row_values + b * dilation[1] * input.c;
        let taps = (0..kernel[0]).flat_map(|a| (0..runs).map(move |b| tap(a, b))).collect();
        let depth = kernel[0] * kernel[1] * inputs;
        let panels = weights.chunks_exact(depth * outputs).enumerate().map(|(group, weights)| {
            let name = format!("group {group}");
            tail.panels(depth, [group * outputs, outputs], || weights, (shelf, &name))
        });
        let panels = panels.collect();
        let values = if together { kernel[1] * inputs } else { inputs };
        Windows { op, conv, span, padded, taps, values, panels, tail }
    }

    fn convolve(&self, src: &[f32], residual: Option<&[f32]>, dst: &mut [f32]) -> Result<()> {
        let Convolution { input, output, .. } = self.conv;
        check_len(self.op, "src", src.len(), input.elements())?;
        check_len(self.op, "dst", dst.len(), output.elements())?;
        self.tail.check_residual(residual, output.elements())?;

        let (input, output) = (input.elements() / input.n, output.elements() / output.n);
        let image = |(n, (dst, src)): (usize, (&mut [f32], &[f32]))| {
            let residual = residual.and_then(|residual| residual.get(n * output..));
            self.image(src, residual, dst);
        };
        let images = dst.chunks_mut(output).zip(src.chunks(input)).enumerate();
        // Few images have more parts than there are images.
        if self.conv.output.n < workers() {
            images.for_each(image)
        } else {
            each(images, image)
        }
        Ok(())
    }

    fn image(&self, src: &[f32], residual: Option<&[f32]>, dst: &mut [f32]) {
        let Convolution { output, groups, .. } = self.conv;
        let (columns, outputs) = (output.c, self.conv.group_outputs());
        let depth = self.taps.len() * self.values;
        let width = self.panels.first().map_or(1, Panels::width);
        let mut cut = cut_panels(output.h * output.w, depth, outputs, width);
        // Whole lines; whole rows of all groups.
        cut.rows = cut.rows.div_ceil(output.w) * output.w;
        if groups > 1 {
            cut.columns = columns;
        }
        for_each_tile(dst, columns, cut, |[row, column], mut tile| {
            let residual = residual.and_then(|residual| residual.get(row * columns + column..));
            let finish = self.tail.finish(residual, columns);
            let part = column.min(outputs)..outputs.min(column + cut.columns);
            self.with_rows(src, row / output.w, tile.rows() / output.w, |rows| {
                for (group, panels) in self.panels.iter().enumerate() {
                    let rows = Rows { first: rows.first + group * self.conv.group_inputs(), ..rows };
                    panels.multiply(rows, part.clone(), &mut tile, group * outputs, finish);
                }
            });
            self.tail.apply_after(&mut tile, column, residual, columns);
        });
    }

    /// The windows of the first lines that `src` holds, its rows of `row_values` values.
    fn rows<'a>(&'a self, src: &'a [f32], lines: usize, row_values: usize) -> Rows<'a> {
        let Convolution { input, output, stride, .. } = self.conv;
        Rows {
            src,
            first: 0,
            lines,
            line_stride: stride[0] * row_values,
            per_line: output.w,
            row_stride: stride[1] * input.c,
            taps: &self.taps,
            values: self.values,
        }
    }

    /// Fills pixels outside of the row `source`; the first of them is number `first` of the row.
    fn outside(&self, source: &[f32], pixels: &mut [f32], first: isize) {
        let Convolution { input, border, .. } = self.conv;
        if border == Border::Zeros {
            return pixels.fill(0.0);
        }
        for (index, pixel) in pixels.chunks_exact_mut(input.c).enumerate() {
            let place = border.coordinate(first + index as isize, input.w).unwrap_or(0) * input.c;
            pixel.copy_from_slice(source.get(place..place + input.c).unwrap_or_default());
        }
    }

    /// Lends `work` the windows of `lines` output lines, `line` the first.
    fn with_rows(&self, src: &[f32], line: usize, lines: usize, work: impl FnOnce(Rows<'_>)) {
        let Convolution { input, kernel, stride, dilation, before, border, .. } = self.conv;
        let row_values = input.w * input.c;
        if !self.padded {
            let src = src.get(line * stride[0] * row_values..).unwrap_or_default();
            return work(self.rows(src, lines, row_values));
        }
        let padded_values = self.span[1] * input.c;
        let height = (lines - 1) * stride[0] + (kernel[0] - 1) * dilation[0] + 1;
        let left = (before[1] * input.c).min(padded_values);
        let kept = row_values.min(padded_values - left);
        with_scratch(height * padded_values, |scratch| {
            for (a, row) in scratch.chunks_exact_mut(padded_values).enumerate() {
                let source = border.coordinate((line * stride[0] + a) as isize - before[0] as isize, input.h);
                let source = source.and_then(|row| src.get(row * row_values..(row + 1) * row_values));
                let Some(source) = source else {
                    row.fill(0.0);
                    continue;
                };
                let (outside_before, rest) = row.split_at_mut(left);
                let (inside, outside_after) = rest.split_at_mut(kept);
                inside.copy_from_slice(&source[..kept]);
                self.outside(source, outside_before, -(before[1] as isize));
                self.outside(source, outside_after, (kept / input.c) as isize);
            }
            work(self.rows(scratch, lines, padded_values));
        });
    }
}
