//! `CONV_2D` and `DEPTHWISE_CONV_2D` to nodes.

use super::import::{Import, Op};
use super::names::{self, builtin};
use super::tensors::Reason;
use crate::emit::Activation;
use crate::graph::{Extras, Value};
use crate::host::HostTensor;
use crate::ops::conv2d::Conv2d;
use crate::ops::depthwise::Depthwise;
use crate::ops::pointwise::Pointwise;
use crate::shape::Padding;

/// The options that both convolutions have.
struct Options {
    padding: Padding,
    stride: [usize; 2],
    dilation: [usize; 2],
    activation: Activation,
    /// The channel multiplier of a depthwise convolution; 0 where the file leaves it to the shapes.
    multiplier: i32,
}

impl<'a> Import<'a> {
    pub(super) fn convolution(&mut self, op: &Op<'a>) -> Result<(), Reason> {
        let (x, weights, bias) = match op.inputs[..] {
            [x, weights] => (x, weights, -1),
            [x, weights, bias] => (x, weights, bias),
            _ => return Err(format!("found {} inputs, wanted 2 or 3", op.inputs.len())),
        };
        let [output] = op.outputs[..] else {
            return Err(format!("found {} outputs, wanted 1", op.outputs.len()));
        };
        let mut options = options(op)?;
        let x = self.value(x)?;
        let weights = self.constant(weights)?;
        let weights = self.tensors.constant(weights, &mut self.budget)?;
        let bias = match bias {
            -1 => None,
            bias => {
                let bias = self.constant(bias)?;
                Some(self.tensors.vector(bias, &mut self.budget)?)
            }
        };

        let sum = self.tensors.position(output)?;
        let declared = self.tensors.feature_map(sum)?;
        self.check_unwritten(sum)?;
        let mut written = sum;
        if options.activation == Activation::None
            && let Some((activation, after)) = self.following_activation(sum)?
        {
            options.activation = activation;
            written = after;
            self.check_unwritten(written)?;
            let after = self.tensors.feature_map(written)?;
            if after != declared {
                return Err(format!(
                    "{}: found shape {after} after the activation, wanted {declared}",
                    self.tensors.describe(written)
                ));
            }
        }
        let extras = Extras { bias, ..Default::default() };
        let value = self.insert(op, x, weights, extras, &options, written)?;
        let computed = self.graph.shape(value).map_err(|error| error.to_string())?;
        if computed != declared {
            return Err(format!(
                "{}: found shape {declared}, wanted {computed}, which follows from the input and the options",
                self.tensors.describe(sum)
            ));
        }
        self.written(written, value);
        Ok(())
    }

    fn insert(
        &mut self,
        op: &Op<'a>,
        x: Value,
        weights: HostTensor,
        extras: Extras,
        options: &Options,
        written: usize,
    ) -> Result<Value, Reason> {
        let Options { padding, stride, dilation, activation, multiplier } = *options;
        let input = self.graph.shape(x).map_err(|error| error.to_string())?;
        let shape = weights.shape();
        let name = self.unique_name(written)?;
        let value = if op.code == builtin::DEPTHWISE_CONV_2D {
            let channels = usize::try_from(multiplier).ok().and_then(|m| m.checked_mul(input.c));
            if multiplier != 0 && channels != Some(shape.c) {
                return Err(format!(
                    "found depth_multiplier {multiplier} for {} input channels and weights {shape}, \
                     wanted weights of input channels x multiplier",
                    input.c
                ));
            }
            let options = Depthwise { stride, dilation, padding, activation };
            self.graph.depthwise(&name, x, weights, extras, options)
        } else {
            // Weights are `oc kh kw c/groups`, and never empty; the file does not store the groups.
            let groups = input.c / shape.c.max(1);
            if groups == 0 || groups * shape.c != input.c {
                return Err(format!(
                    "found weights {shape} (oc kh kw c/groups) for input {input}, \
                     wanted channels that divide the input's"
                ));
            }
            if [shape.h, shape.w] == [1, 1] && stride == [1, 1] && groups == 1 {
                self.graph.pointwise(&name, x, weights, extras, Pointwise { activation })
            } else {
                let options = Conv2d { stride, dilation, padding, groups, activation };
                self.graph.conv2d(&name, x, weights, extras, options)
            }
        };
        value.map_err(|error| error.to_string())
    }
}

fn options(op: &Op<'_>) -> Result<Options, Reason> {
    let (padding, strides, dilations, activation, multiplier) = if op.code == builtin::DEPTHWISE_CONV_2D {
        let table = op.table.depthwise().ok_or_else(|| missing(op, "DepthwiseConv2DOptions"))?;
        let strides = [table.stride_h(), table.stride_w()];
        let dilations = [table.dilation_h(), table.dilation_w()];
        (table.padding(), strides, dilations, table.activation(), table.multiplier())
    } else {
        let table = op.table.conv2d().ok_or_else(|| missing(op, "Conv2DOptions"))?;
        let strides = [table.stride_h(), table.stride_w()];
        let dilations = [table.dilation_h(), table.dilation_w()];
        (table.padding(), strides, dilations, table.activation(), 0)
    };
    Ok(Options {
        padding: match padding {
            0 => Padding::Same,
            1 => Padding::Valid,
            other => return Err(format!("found padding {other}, wanted 0 (SAME) or 1 (VALID)")),
        },
        stride: positive("stride", strides)?,
        dilation: positive("dilation", dilations)?,
        activation: names::fused(activation)?,
        multiplier,
    })
}

fn missing(op: &Op<'_>, wanted: &str) -> Reason {
    format!("found options of type {}, wanted {wanted}", op.table.options_type())
}

fn positive(what: &str, [h, w]: [i32; 2]) -> Result<[usize; 2], Reason> {
    match (usize::try_from(h), usize::try_from(w)) {
        (Ok(h), Ok(w)) if h > 0 && w > 0 => Ok([h, w]),
        _ => Err(format!("found {what} {h} along height and {w} along width, wanted at least 1")),
    }
}
