//! The kernel of `separable`.
//!
//! The window's weights are packed as `[slice][kh][kw][4]`, as `depthwise` has them; the weights as
//! the rows of a matrix, `[input slice][lane][slice][4]`, as `pointwise`'s `split` has them, with the
//! rows of one slice of zeros behind the last, which stand for all slices beyond it.

use super::{FIRST, OP, SECOND, SeparableOp, cpu, oracle};
use crate::cpu::CpuKernel;
use crate::dtype::{DType, Precision};
use crate::emit::{Access, Element, Epilogue, KernelSpec, Operand, Scalar, Value};
use crate::error::Result;
use crate::layout::Form;
use crate::limits::{Family, Limits};
use crate::ops::convolution::{self, Convolution};
use crate::ops::depthwise::DepthwiseOp;
use crate::ops::expected;
use crate::ops::operands::{self, OperandInfo, Operands, Renamed as _, Role};
use crate::ops::plan::{Choice, Launch, Op};
use crate::ops::pointwise::PointwiseOp;
use crate::ops::problem;
use crate::ops::reference::Reference;
use crate::ops::spec::{self, extent, unsigned};
use crate::shape::Shape;
use std::any::Any;
use std::sync::Arc;

/// Input channels up to which it may be faster than its halves: `session/fusing.rs` has the figures.
const MOST_CHANNELS: usize = 128;

/// The most taps of a window, and the most rows that a strip of outputs reads: they are registers.
const MAX_TAPS: usize = 25;
const MAX_ROWS: usize = 16;

/// Rows of a strip and output slices per invocation, the most useful first.
const TILES: [[u32; 2]; 7] = [[3, 2], [2, 2], [3, 1], [2, 1], [4, 1], [1, 2], [1, 1]];

/// Layers that share a sum.
const LAYERS: [u32; 5] = [1, 2, 4, 8, 16];

impl Op for SeparableOp {
    fn name(&self) -> &'static str {
        OP
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn operands(&self) -> Vec<OperandInfo> {
        let (window, product) = (&self.depthwise, &self.pointwise);
        let [kernel_h, kernel_w] = window.kernel;
        let bias = window.epilogue.bias;
        let mut operands = vec![
            OperandInfo::new(Operand::Src, window.input, Role::Input),
            OperandInfo::new(
                Operand::Window,
                Shape::nhwc(1, kernel_h, kernel_w, window.input.c),
                Role::Constant,
            ),
        ];
        operands.extend(bias.then_some(OperandInfo::vector(Operand::WindowBias, window.output.c)));
        let weights = Shape::nhwc(product.output.c, 1, 1, product.input.c);
        operands.extend(product.operands(weights).into_iter().filter(|info| info.operand != Operand::Src));
        operands
    }

    fn form(&self, operand: Operand, choice: &Choice) -> Option<Form> {
        convolution::form(operand, choice)
    }

    fn oracle(&self, operands: &Operands<'_>) -> Result<Reference> {
        operands::check(self, operands)?;
        Ok(Reference::Sum(oracle::oracle(self, operands)))
    }

    fn expected(&self, operands: &Operands<'_>) -> Result<Reference> {
        operands::check(self, operands)?;
        let (first, problem) = (DepthwiseOp(self.depthwise), &self.pointwise);
        let between = first.expected(&operands.renamed(FIRST))?;
        let off = |index| expected::tolerance(&between, None, index, problem.precision);
        let offs: Vec<f64> = (0..between.value().len()).map(off).collect();
        let mut second = operands.renamed(SECOND);
        // The second half reads the first one's result, and brings along by how far that may be off.
        let unbiased = PointwiseOp(Convolution { epilogue: Epilogue::default(), ..*problem });
        let carried = expected::carried(&unbiased, Operand::Src, &offs, &second)?;
        second.insert(Operand::Src, between.value().iter().map(|&value| value as f32).collect());
        let (op, plain) = (PointwiseOp(*problem), PointwiseOp(problem.plain()));
        expected::of_sum(&op, &plain, problem.terms(), &problem.epilogue, &second, carried)
    }

    fn worth_tuning(&self, limits: &Limits) -> bool {
        limits.family != Family::CpuDriver && self.depthwise.input.c <= MOST_CHANNELS
    }

    fn cpu(&self, constants: &Operands<'_>) -> Result<Box<dyn CpuKernel>> {
        Ok(Box::new(cpu::SeparableKernel::new(self, constants)?))
    }

    fn with_precision(&self, precision: Precision) -> Arc<dyn Op> {
        Arc::new(SeparableOp {
            depthwise: self.depthwise.with_precision(precision),
            pointwise: self.pointwise.with_precision(precision),
        })
    }

    fn problem_key(&self) -> String {
        let window = problem::convolution(&self.depthwise, &format!("o{}", self.pointwise.output.c));
        format!("{window} then{}", problem::epilogue(&self.pointwise.epilogue))
    }

    fn precision(&self) -> Precision {
        self.pointwise.precision
    }

    fn flops(&self) -> u64 {
        self.depthwise.flops() + self.pointwise.flops()
    }

    /// `staged` covers strips x slices x (layers * batch). A strip is `tile[0]` outputs of one column,
    /// one below the other; the tile's second extent is slices, its third the layers that share the
    /// sum over the input channels, and the work-group must be as deep.
    ///
    /// An untuned session takes the first entry that fills the device: as few layers as do.
    fn space(&self, _limits: &Limits) -> Vec<(&'static str, [u32; 3])> {
        let problem = &self.depthwise;
        let span = |rows: u32| {
            (rows as usize - 1) * problem.stride[0] + (problem.kernel[0] - 1) * problem.dilation[0] + 1
        };
        if problem.kernel[0] * problem.kernel[1] > MAX_TAPS {
            return Vec::new();
        }
        let tiles = TILES.into_iter().filter(|[rows, _]| span(*rows) <= MAX_ROWS);
        let slices = self.pointwise.input.slices();
        let layers = || LAYERS.into_iter().filter(|&layers| layers as usize <= slices);
        tiles.flat_map(|[x, y]| layers().map(move |layers| ("staged", [x, y, layers]))).collect()
    }

    fn grid(&self, _variant: &'static str, tile: [u32; 3]) -> [u32; 3] {
        let output = self.pointwise.output;
        let strips = extent(output.w) * extent(output.h).div_ceil(tile[0]);
        [strips, extent(output.slices()).div_ceil(tile[1]), tile[2] * extent(output.n)]
    }

    fn work_groups(&self, _variant: &'static str, tile: [u32; 3]) -> Vec<[u32; 3]> {
        [[8, 8], [16, 4], [8, 4], [16, 8], [16, 16], [32, 4], [4, 8], [4, 4], [8, 2], [4, 2], [2, 2]]
            .into_iter()
            .filter(|[x, y]| x * y * tile[2] <= 256)
            .map(|[x, y]| [x, y, tile[2]])
            .collect()
    }

    fn dst_depth(&self) -> u32 {
        extent(self.pointwise.output.slices())
    }

    fn fits(&self, choice: &Choice, limits: &Limits) -> Result<()> {
        let grid = self.grid(choice.variant, choice.tile.map(|extent| extent.max(1)));
        spec::check_choice(OP, choice, &self.space(limits), grid, self.precision(), limits)?;
        let (depth, layers) = (choice.work_group[2], choice.tile[2]);
        if depth != layers {
            let wanted = format!("the work-group is {depth} deep, {layers} layers need {layers}");
            return spec::reject(OP, choice, wanted);
        }
        let bytes = 4 * self.precision().accumulator().bytes() * staged(choice) as usize;
        if bytes > limits.local_memory as usize {
            let most = limits.local_memory;
            return spec::reject(OP, choice, format!("{bytes} bytes of local memory, the device has {most}"));
        }
        Ok(())
    }

    fn plan(&self, choice: &Choice, limits: &Limits) -> Result<Launch> {
        self.fits(choice, limits)?;
        let (window, output) = (&self.depthwise, self.pointwise.output);
        let params = vec![
            ("src_w", unsigned(window.input.w)),
            ("src_h", unsigned(window.input.h)),
            ("src_c4", unsigned(window.input.slices())),
            ("dst_w", unsigned(output.w)),
            ("dst_h", unsigned(output.h)),
            ("dst_c4", unsigned(output.slices())),
            ("before_h", unsigned(window.before[0])),
            ("before_w", unsigned(window.before[1])),
        ];
        let [x, y, layers] = choice.tile;
        let chunk = choice.work_group[1] * layers;
        let mut constants = spec::window_constants(window);
        let unroll = if choice.work_group[1].is_multiple_of(2) { 2 } else { 1 };
        let own = [("TILE_X", x), ("TILE_Y", y), ("SPLITS", layers), ("UNROLL", unroll)];
        constants.extend(own.map(|(name, value)| (name, Value::U32(value))));
        constants.extend([("CHUNK", Value::U32(chunk)), ("STAGED", Value::U32(staged(choice)))]);
        let mut bindings = spec::convolution_bindings(&self.pointwise, choice);
        let packed = Element::Vec4(self.precision().storage());
        bindings.insert(1, spec::binding(Operand::Window, packed, Access::Read));
        if window.epilogue.bias {
            let channel = Element::Vec4(DType::F32);
            bindings.insert(2, spec::binding(Operand::WindowBias, channel, Access::Read));
        }
        let interface = spec::interface(bindings, &params);
        let epilogue = self.pointwise.epilogue;
        let kernel = spec::kernel(OP, choice, constants, self.precision(), epilogue, interface);
        Ok(Launch {
            spec: KernelSpec { between: Some(window.epilogue), ..kernel },
            params: params.into_iter().map(|(_, value): (_, Scalar)| value).collect(),
            grid: self.grid(choice.variant, choice.tile),
        })
    }

    fn pack(&self, _choice: &Choice, operand: Operand, data: &[f32]) -> Result<Vec<f32>> {
        let (channels, slices) = (self.pointwise.input.c, self.pointwise.input.slices());
        let output = self.pointwise.output;
        match operand {
            Operand::WindowBias => {
                spec::expect_len(OP, operand, data, channels)?;
                Ok(spec::pack_channels(data, slices))
            }
            Operand::Bias | Operand::Slope => {
                spec::expect_len(OP, operand, data, output.c)?;
                Ok(spec::pack_channels(data, output.slices()))
            }
            Operand::Window => {
                let taps = self.depthwise.kernel[0] * self.depthwise.kernel[1];
                spec::expect_len(OP, operand, data, taps * channels)?;
                Ok(spec::pack_window(data, taps, channels))
            }
            Operand::Weights => {
                spec::expect_len(OP, operand, data, output.c * channels)?;
                Ok(spec::pack_rows(data, channels, output.slices(), slices + 1))
            }
            _ => spec::no_constant(OP, operand),
        }
    }
}

/// Vec4s of local memory: a strip of one slice for each invocation, or as many partial sums.
fn staged(choice: &Choice) -> u32 {
    choice.tile[0] * choice.work_group.iter().product::<u32>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::Activation;
    use crate::limits::Limits;
    use crate::ops::depthwise::{Depthwise, DepthwiseOp};
    use crate::ops::pointwise::{Pointwise, PointwiseOp};
    use crate::shape::{Padding, Shape};

    fn op(kernel: usize, stride: usize) -> SeparableOp {
        let window = Depthwise {
            stride: [stride; 2],
            padding: Padding::Same,
            activation: Activation::Relu6,
            ..Default::default()
        };
        let weights = Shape::nhwc(1, kernel, kernel, 30);
        let f32 = Precision::F32;
        let first = DepthwiseOp::new(Shape::nhwc(2, 9, 11, 30), weights, &window, true, false, f32);
        let first = first.expect("a depthwise");
        let weights = Shape::nhwc(17, 1, 1, 30);
        let second = PointwiseOp::new(first.0.output, weights, &Pointwise::default(), true, true, f32);
        SeparableOp::new(first, second.expect("a 1x1")).expect("a pair")
    }

    #[test]
    fn the_key_tells_the_two_epilogues_apart() {
        assert_eq!(
            op(3, 2).problem_key(),
            "n2 h9 w11 c30 o17 kernel3x3 stride2x2 pad1,1,1,1 bias relu6 then bias residual"
        );
    }

    #[test]
    fn the_grid_is_strips_by_slices_by_layers_of_each_image() {
        // 5 x 6 outputs in strips of three: two strips a column.
        assert_eq!(op(3, 2).grid("staged", [3, 2, 4]), [12, 3, 8]);
    }

    #[test]
    fn a_tile_that_local_memory_cannot_hold_is_refused_with_both_numbers() {
        let limits = Limits { local_memory: 8192, ..Limits::webgpu() };
        let choice = Choice::new("staged", [3, 2, 4], [8, 8, 4]);
        let text = op(3, 1).fits(&choice, &limits).expect_err("12 KiB in 8").to_string();
        assert!(text.contains("12288 bytes of local memory, the device has 8192"), "{text}");
        let shallow = Choice::new("staged", [1, 1, 4], [8, 8, 2]);
        let text = op(3, 1).fits(&shallow, &limits).expect_err("2 deep").to_string();
        assert!(text.contains("2 deep, 4 layers need 4"), "{text}");
    }

    #[test]
    fn windows_of_many_taps_have_no_kernel() {
        assert!(op(7, 1).space(&Limits::webgpu()).is_empty());
        assert!(!op(5, 1).space(&Limits::webgpu()).is_empty());
    }
}
