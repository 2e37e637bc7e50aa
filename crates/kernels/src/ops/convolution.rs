//! What `conv2d`, `depthwise` and `pointwise` share: a window over a feature map.

use super::operands::{self, OperandInfo, Operands, Role};
use super::reference::Sum;
use super::row_place::RowPlace;
use crate::dtype::Precision;
use crate::emit::{Activation, Epilogue, Operand, Residual};
use crate::error::{Error, Result};
use crate::shape::{Axis, Border, Padding, Shape};

/// A convolution of concrete shapes.
///
/// `y[n, i, j, o] = sum over a, b, k of
///     x[n, i*stride_h - before_h + a*dilation_h, j*stride_w - before_w + b*dilation_w, g*I + k]
///     * w[o, a, b, k]`, what `border` says outside the input, where `I = input channels / groups` and
/// `g = o / (output channels / groups)` is the group of output channel `o`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Convolution {
    /// Shape of the input.
    pub input: Shape,
    /// Shape of the output.
    pub output: Shape,
    /// Taps along height and width.
    pub kernel: [usize; 2],
    /// Step of the window along height and width.
    pub stride: [usize; 2],
    /// Distance between taps along height and width.
    pub dilation: [usize; 2],
    /// Elements above and to the left of the input.
    pub before: [usize; 2],
    /// What those are.
    pub border: Border,
    /// Groups of channels that do not mix.
    pub groups: usize,
    /// What happens to the sum.
    pub epilogue: Epilogue,
    /// Storage and arithmetic.
    pub precision: Precision,
    /// Where the input lies within a value of rows, if it does: then the output lies in rows too, and so does a residual.
    pub rows: Option<RowPlace>,
}

/// What an oracle of a convolution reads: host slices in the public NHWC layouts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inputs<'a> {
    /// The input, `n h w c`.
    pub(super) src: &'a [f32],
    /// The weights, in the op's public layout.
    pub(super) weights: &'a [f32],
    /// One value per output channel; `None` adds nothing.
    pub(super) bias: Option<&'a [f32]>,
    /// One PReLU slope per output channel; `None` is a slope of 0.
    pub(super) slope: Option<&'a [f32]>,
    /// Added after the activation, `n oh ow oc`; `None` adds nothing.
    pub(super) residual: Option<&'a [f32]>,
}

impl<'a> Inputs<'a> {
    /// The oracle's inputs among `operands`, which were checked.
    pub(super) fn of(operands: &'a Operands<'_>) -> Self {
        let get = |operand| operands::get(operands, operand);
        Inputs {
            src: get(Operand::Src).unwrap_or_default(),
            weights: get(Operand::Weights).unwrap_or_default(),
            bias: get(Operand::Bias),
            slope: get(Operand::Slope),
            residual: get(Operand::Residual),
        }
    }
}

/// A window's options, as the public option structs give them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WindowOptions {
    pub(crate) stride: [usize; 2],
    pub(crate) dilation: [usize; 2],
    pub(crate) padding: Padding,
    pub(crate) border: Border,
}

impl Convolution {
    /// All that its kernels pack constants by, in words: neither the maps' height and width nor the batch.
    pub(in crate::ops) fn packing(&self) -> String {
        let Convolution { kernel, groups, precision, .. } = self;
        format!("c{} o{} {kernel:?} {groups} {precision:?}", self.input.c, self.output.c)
    }

    /// Checks the shapes and works out the output's.
    #[expect(clippy::too_many_arguments, reason = "the parts of a problem, each op's own")]
    pub(crate) fn new(
        op: &'static str,
        input: Shape,
        kernel: [usize; 2],
        output_channels: usize,
        groups: usize,
        options: WindowOptions,
        epilogue: Epilogue,
        precision: Precision,
    ) -> Result<Self> {
        input.check_or_empty(op)?;
        if groups == 0 || !input.c.is_multiple_of(groups) || !output_channels.is_multiple_of(groups) {
            return Err(Error::shape(
                op,
                format!("{groups} groups of {} input and {output_channels} output channels", input.c),
                "groups that divide both",
            ));
        }
        let rows = options.padding.window(
            op,
            Axis::Height,
            input.h,
            kernel[0],
            options.stride[0],
            options.dilation[0],
        )?;
        let columns = options.padding.window(
            op,
            Axis::Width,
            input.w,
            kernel[1],
            options.stride[1],
            options.dilation[1],
        )?;
        let output = Shape::nhwc(input.n, rows.output, columns.output, output_channels);
        output.check_or_empty(op)?;
        for (axis, window, extent) in [(Axis::Height, rows, input.h), (Axis::Width, columns, input.w)] {
            let place = usize::from(axis == Axis::Width);
            let span = (kernel[place] - 1) * options.dilation[place] + 1;
            let reached = window.output.saturating_sub(1) * options.stride[place] + span;
            let after = reached.saturating_sub(extent + window.before);
            if let Some(most) = options.border.most(extent)
                && window.before.max(after) > most
            {
                let found =
                    format!("{} elements before and {after} after {extent} along {axis}", window.before);
                return Err(Error::shape(op, found, format!("at most {most} ({:?})", options.border)));
            }
        }
        Ok(Convolution {
            input,
            output,
            kernel,
            stride: options.stride,
            dilation: options.dilation,
            before: [rows.before, columns.before],
            border: options.border,
            groups,
            epilogue,
            // No convolution has a kernel for matrix units.
            precision: precision.without_matrix_units(),
            rows: None,
        })
    }

    /// What a convolution with weights of this shape reads and writes.
    pub(super) fn operands(&self, weights: Shape) -> Vec<OperandInfo> {
        let mut operands = vec![
            OperandInfo::new(
                Operand::Src,
                self.rows.map_or(self.input, |rows| Shape::nhwc(1, 1, 1, rows.elements)),
                Role::Input,
            ),
            OperandInfo::new(Operand::Weights, weights, Role::Constant),
        ];
        operands.extend(extras(&self.epilogue, self.output.c, self.output));
        operands.push(OperandInfo::new(Operand::Dst, self.output, Role::Output));
        operands
    }

    /// The convolution without activation and residual.
    pub(super) const fn plain(&self) -> Self {
        let epilogue =
            Epilogue { bias: self.epilogue.bias, activation: Activation::None, residual: Residual::None };
        Convolution { epilogue, ..*self }
    }

    /// The convolution in another precision. None has a kernel for matrix units.
    pub(super) const fn with_precision(&self, precision: Precision) -> Self {
        Convolution { precision: precision.without_matrix_units(), ..*self }
    }

    /// Terms of a sum without the bias.
    pub const fn terms(&self) -> usize {
        self.kernel[0] * self.kernel[1] * self.group_inputs()
    }

    /// A sum without results: see [`Sum::begin`].
    pub(super) fn sum(&self, operands: &Operands<'_>) -> Sum {
        let destination = OperandInfo::new(Operand::Dst, self.output, Role::Output);
        Sum::begin(self.terms(), &self.epilogue, operands, &destination)
    }

    /// Input channels that one output channel reads.
    pub const fn group_inputs(&self) -> usize {
        self.input.c / self.groups
    }

    /// Output channels of one group.
    pub const fn group_outputs(&self) -> usize {
        self.output.c / self.groups
    }

    /// Floating-point operations: two for each product, borders counted as if inside.
    pub const fn flops(&self) -> u64 {
        2 * self.output.elements() as u64 * self.terms() as u64
    }

    /// The input coordinate of tap `tap` of output `out` along axis 0 (height) or 1 (width); none of a zero
    /// outside the input.
    pub fn source(&self, axis: usize, out: usize, tap: usize) -> Option<usize> {
        let extent = [self.input.h, self.input.w][axis];
        let at = out * self.stride[axis] + tap * self.dilation[axis];
        self.border.coordinate(at as isize - self.before[axis] as isize, extent)
    }
}

/// Refuses weights of `[oc, kh, kw, c]` that are empty, or more than 32-bit indices reach once channels are
/// padded to whole slices.
pub(super) fn check_weights(op: &'static str, [oc, kh, kw, c]: [usize; 4]) -> Result<()> {
    let padded = [oc.div_ceil(4), 4, kh, kw, c.div_ceil(4), 4];
    let elements = padded.iter().try_fold(1usize, |product, &extent| product.checked_mul(extent));
    if elements.is_some_and(|elements| (1..=i32::MAX as usize).contains(&elements)) {
        return Ok(());
    }
    Err(Error::shape(
        op,
        format!("weights of {oc} x {kh} x {kw} x {c}"),
        format!("1 to {} elements, channels in whole slices of four (32-bit indices)", i32::MAX),
    ))
}

/// The operands of an epilogue: constants of `channels` values each, and a residual of shape `output`.
pub(super) fn extras(epilogue: &Epilogue, channels: usize, output: Shape) -> Vec<OperandInfo> {
    let bias = epilogue.bias.then_some(OperandInfo::vector(Operand::Bias, channels));
    let slope =
        (epilogue.activation == Activation::PRelu).then_some(OperandInfo::vector(Operand::Slope, channels));
    let residual =
        epilogue.residual.is_some().then_some(OperandInfo::new(Operand::Residual, output, Role::Input));
    [bias, slope, residual].into_iter().flatten().collect()
}
