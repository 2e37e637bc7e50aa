//! An op on Burn's tensors.

use crate::cpu::CpuOp;
use crate::row::Row;
use crate::subject::{Subject, Target};
use crate::suites;
use anyhow::{Result, anyhow, bail, ensure};
use burn::tensor::module::conv2d;
use burn::tensor::ops::ConvOptions;
use burn::tensor::{Device, DeviceKind, Tensor, TensorData};
use diptych::Shape;
use diptych_emit::emit::Operand;
use diptych_kernels::ops::conv2d::Conv2dOp;
use diptych_kernels::ops::depthwise::DepthwiseOp;
use diptych_kernels::ops::gemm::GemmOp;
use diptych_kernels::ops::pointwise::PointwiseOp;
use diptych_kernels::ops::{Convolution, Op};
use std::sync::Arc;
use std::time::{Duration, Instant};

const ENGINE: &str = "Burn 0.22.1 (CubeCL 0.11)";
/// About how long a sample lasts.
const SAMPLE: Duration = Duration::from_millis(20);

/// Burn's default Vulkan device.
pub(crate) fn device() -> Device {
    Device::vulkan(DeviceKind::DefaultDevice)
}

enum Operands {
    Product(Tensor<3>, Tensor<3>),
    Convolution(Tensor<4>, Tensor<4>, Option<Tensor<1>>, ConvOptions<2>),
}

impl Operands {
    /// Launches the op. What it gives is freed when its launch was.
    fn launch(&self) -> Vec<Tensor<1>> {
        match self {
            Operands::Product(a, b) => vec![a.clone().matmul(b.clone()).flatten(0, 2)],
            Operands::Convolution(x, weights, bias, options) => {
                let y = conv2d(x.clone(), weights.clone(), bias.clone(), options.clone());
                vec![y.flatten(0, 3)]
            }
        }
    }
}

/// An op on Burn's tensors, checked and warmed up.
pub(crate) struct BurnOp {
    device: Device,
    operands: Operands,
    row: Row,
}

/// `n h w c` to `n c h w`.
fn nchw(shape: Shape, nhwc: &[f32]) -> Vec<f32> {
    let Shape { n, h, w, c } = shape;
    let places = (0..n * c * h * w).map(|index| {
        let (row, x) = (index / w, index % w);
        let (plane, y) = (row / h, row % h);
        c * (w * (h * (plane / c) + y) + x) + plane % c
    });
    places.map(|place| nhwc.get(place).copied().unwrap_or(f32::NAN)).collect()
}

fn convolution(conv: &Convolution, depthwise: bool, cpu: &CpuOp, device: &Device) -> Result<Operands> {
    let (x, y) = (conv.input, conv.output);
    let [kh, kw] = conv.kernel;
    // Zeros before come with the shape; those after are what the windows reach beyond the input.
    let padding = std::array::from_fn(|axis| {
        let (input, output) = ([x.h, x.w][axis], [y.h, y.w][axis]);
        let reach = (output - 1) * conv.stride[axis] + (conv.kernel[axis] - 1) * conv.dilation[axis] + 1;
        (conv.before[axis], reach.saturating_sub(input + conv.before[axis]))
    });
    // Depthwise weights are stored `1 kh kw oc`, the others `oc kh kw c`.
    let (stored, groups) = match depthwise {
        true => (Shape::nhwc(1, kh, kw, y.c), x.c),
        false => (Shape::nhwc(y.c, kh, kw, x.c), 1),
    };
    let weights = nchw(stored, &cpu.operands[&Operand::Weights]);
    let tensor =
        |values: Vec<f32>, shape: [usize; 4]| Tensor::<4>::from_data(TensorData::new(values, shape), device);
    let bias = cpu.operands.get(&Operand::Bias);
    let bias = bias.map(|bias| Tensor::from_data(TensorData::new(bias.to_vec(), [bias.len()]), device));
    Ok(Operands::Convolution(
        tensor(nchw(x, &cpu.operands[&Operand::Src]), [x.n, x.c, x.h, x.w]),
        tensor(weights, [y.c, x.c / groups, kh, kw]),
        bias,
        ConvOptions { stride: conv.stride, padding, dilation: conv.dilation, groups },
    ))
}

impl BurnOp {
    /// Uploads the operands, compares the result with the CPU backend's, and lets Burn autotune.
    ///
    /// # Errors
    /// If Burn fails or is wrong.
    pub(crate) fn new(target: &Target, device: &Device, problem: Arc<dyn Op>) -> Result<Self> {
        let mut cpu = CpuOp::new(Arc::clone(&problem))?;
        cpu.check()?;
        let any = problem.as_any();
        let dense = any.downcast_ref::<Conv2dOp>().map(Conv2dOp::convolution);
        let dense = dense.or_else(|| any.downcast_ref::<PointwiseOp>().map(PointwiseOp::convolution));
        let depthwise = any.downcast_ref::<DepthwiseOp>().map(DepthwiseOp::convolution);
        let (operands, wanted) = match (any.downcast_ref::<GemmOp>(), dense.or(depthwise)) {
            (Some(op), _) => {
                let tensor = |operand, rows, columns| {
                    let values = cpu.operands[&operand].to_vec();
                    Tensor::<3>::from_data(TensorData::new(values, [op.batch(), rows, columns]), device)
                };
                let (m, n, k) = (op.m(), op.n(), op.k());
                (Operands::Product(tensor(Operand::A, m, k), tensor(Operand::B, k, n)), cpu.dst.clone())
            }
            (None, Some(conv)) => {
                (convolution(conv, depthwise.is_some(), &cpu, device)?, nchw(conv.output, &cpu.dst))
            }
            (None, None) => bail!("{} is not measured on Burn", problem.name()),
        };
        let mut found = Vec::new();
        for result in operands.launch() {
            found = result
                .try_into_data()
                .map_err(|error| anyhow!("{error:?}"))?
                .try_to_vec::<f32>()
                .map_err(|error| anyhow!("{error:?}"))?;
        }
        let largest = wanted.iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
        ensure!(found.len() == wanted.len(), "wrong: {} results, wanted {}", found.len(), wanted.len());
        for (index, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
            let right = (found - wanted).abs() <= 1e-3 * largest;
            ensure!(right, "wrong: element {index} is {found}, wanted {wanted}");
        }
        let mut row = target.row("peers", &suites::name(&*problem), "wall");
        row.engine = ENGINE.to_owned();
        row.kernel = "autotuned".to_owned();
        row.chosen_by = "its autotuner".to_owned();
        row.checked = "every element, against the CPU backend: within a thousandth of the largest".to_owned();
        row.clock = "host clock around all runs and one wait".to_owned();
        row.flops = problem.flops();
        row.bytes = suites::bytes(&*problem);
        let mut burn = BurnOp { device: device.clone(), operands, row };
        burn.many(3)?;
        let estimate = burn.many(4)? / 4;
        burn.row.repeats = (SAMPLE.as_secs_f64() / estimate.as_secs_f64().max(1e-6)).clamp(1.0, 512.0) as u32;
        burn.many(burn.row.repeats)?;
        Ok(burn)
    }

    fn many(&mut self, runs: u32) -> Result<Duration> {
        let wait = |device: &Device| device.sync().map_err(|error| anyhow!("{error:?}"));
        wait(&self.device)?;
        let start = Instant::now();
        for _ in 0..runs {
            drop(self.operands.launch());
        }
        wait(&self.device)?;
        Ok(start.elapsed())
    }
}

impl Subject for BurnOp {
    fn round(&mut self) -> Result<()> {
        let time = self.many(self.row.repeats)?;
        self.row.samples.push(time.as_secs_f64() * 1e6 / f64::from(self.row.repeats));
        Ok(())
    }

    fn rows(&self) -> Vec<Row> {
        vec![self.row.clone()]
    }
}
