//! A matrix product made ready to run, its operands in memory that the host can reach.

use crate::context::Context;
use crate::cpu::CpuKernel;
use crate::device::{Buffer, Device, Memory};
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::host::HostTensor;
use crate::ops::gemm::GemmOp;
use crate::ops::{Choice, Op};
use crate::options::{SessionOptions, Tuning};
use crate::session::OpRun;
use crate::shape::Shape;
use crate::tune::work_group::WorkGroup;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How a product runs.
#[derive(Debug, Clone, Default)]
pub struct ProductOptions {
    /// Where A, B, C and the residual lie. [`Memory::HostVisible`] is filled and read in place,
    /// without a copy (Shimanskiy, *Matrix Multiply on Adreno GPUs*, 2016, part 2).
    pub memory: Memory,
    /// The kernel; by the tuner's record or by rule if `None`.
    pub choice: Option<Choice>,
    /// The tuner's record. [`Tuning::Default`] is that of the context ([`Context::use_record`]); where there is none, or it has
    /// nothing for the product, the rule decides. A product is not tuned while it is made: [`Tuning::Online`] only asks.
    pub tuning: Tuning,
    /// Where the work-group comes from, if the kernel is chosen by rule.
    pub work_group: WorkGroup,
}

/// `C = f(alpha * op(A) * op(B) + beta * C + bias) + R` on operands that live with the product.
///
/// ```
/// use diptych::Operand::{A, B, C};
/// use diptych::{Backend, Context, MatrixProduct, Precision};
///
/// let context = Context::new(Backend::Auto)?;
/// let product = MatrixProduct::of(&context, [2, 2], [2, 3], Precision::F32)?;
/// product.write(A, |a| a.copy_from_slice(&[1.0, 2.0, 3.0, 4.0]))?;
/// product.write(B, |b| b.copy_from_slice(&[1.0, 0.0, 2.0, 0.0, 1.0, 3.0]))?;
/// product.run()?;
/// product.read(C, |c| assert_eq!(c, [1.0, 2.0, 8.0, 3.0, 4.0, 18.0]))?;
/// # Ok::<(), diptych::Error>(())
/// ```
#[derive(Debug)]
pub struct MatrixProduct {
    op: GemmOp,
    kernel: String,
    source: String,
    runner: Runner,
}

#[derive(Debug)]
enum Runner {
    Device { run: OpRun, memory: Memory },
    Cpu { kernel: Box<dyn CpuKernel>, operands: Mutex<Vec<(Operand, Vec<f32>)>> },
}

/// Elements that an operand of `op` holds.
fn elements(op: &GemmOp, operand: Operand) -> usize {
    match operand {
        Operand::A => op.elements_a(),
        Operand::B => op.elements_b(),
        _ => op.elements_c(),
    }
}

impl MatrixProduct {
    /// `C = A B` of row-major matrices of these rows and columns, by the kernel of the context's record
    /// ([`Context::use_record`]), or of the rule.
    ///
    /// ```
    /// use diptych::{Backend, Context, MatrixProduct, Precision};
    ///
    /// let context = Context::new(Backend::Cpu)?;
    /// let product = MatrixProduct::of(&context, [1, 2], [2, 1], Precision::F32)?;
    /// assert_eq!((product.op().m(), product.op().n(), product.op().k()), (1, 1, 2));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `A` has not as many columns as `B` has rows; also those of [`MatrixProduct::new`].
    pub fn of(context: &Context, a: [usize; 2], b: [usize; 2], precision: Precision) -> Result<Self> {
        let [a, b] = [a, b].map(|[rows, columns]| Shape::matrix(1, rows, columns));
        let op = GemmOp::of_matrices(a, b, &crate::Gemm::default(), false, false, precision)?;
        Self::new(context, op, None, None, ProductOptions::default())
    }

    /// Allocates the operands and compiles the kernel. `bias` and `slope` hold one value per
    /// column, and are wanted exactly where [`GemmOp::epilogue`] says so.
    ///
    /// ```
    /// use diptych::{Activation, Backend, Context, Gemm, GemmOp, MatrixProduct, Precision, ProductOptions, Shape};
    ///
    /// let options = Gemm { activation: Activation::Relu, transpose_b: true, ..Default::default() };
    /// let (a, b) = (Shape::matrix(1, 5, 3), Shape::matrix(1, 2, 3));
    /// let op = GemmOp::of_matrices(a, b, &options, true, false, Precision::F32)?;
    /// let context = Context::new(Backend::Cpu)?;
    /// let product = MatrixProduct::new(&context, op, Some(&[0.5, 0.5]), None, ProductOptions::default())?;
    /// product.run()?;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the precision stores halves and the context is the CPU, `bias` or `slope` do not fit the epilogue, no kernel serves
    /// the product on this device, or the API has no host-visible memory that kernels can use.
    pub fn new(
        context: &Context,
        op: GemmOp,
        bias: Option<&[f32]>,
        slope: Option<&[f32]>,
        options: ProductOptions,
    ) -> Result<Self> {
        let wants_slope = op.epilogue.activation == crate::emit::Activation::PRelu;
        if op.epilogue.bias != bias.is_some() || wants_slope != slope.is_some() {
            return Err(Error::shape(
                "gemm",
                format!("bias {}, slope {}", bias.is_some(), slope.is_some()),
                format!("bias {}, slope {wants_slope}, as the epilogue says", op.epilogue.bias),
            ));
        }
        if context.device().is_none() {
            return Self::on_cpu(op, bias, slope);
        }
        let of_columns = |(operand, values): (Operand, Option<&[f32]>)| {
            values.map(|values| Ok((operand, HostTensor::vector(values.to_vec())?)))
        };
        let constants = [(Operand::Bias, bias), (Operand::Slope, slope)].into_iter().filter_map(of_columns);
        let constants = constants.collect::<Result<Vec<_>>>()?;
        let ProductOptions { memory, choice, tuning, work_group } = options;
        let record = tuning.database().cloned().or_else(|| context.record());
        let own: Arc<dyn Op> = Arc::new(op);
        let asked = SessionOptions {
            work_group,
            tuning: record.map_or(Tuning::Default, Tuning::Database),
            choices: choice.map(|choice| (own.name().to_owned(), choice)).into_iter().collect(),
            ..SessionOptions::default()
        };
        let run = OpRun::new(context.engine.clone(), &own, &constants, memory, &asked)?;
        let (kernel, source) = (run.kernel.clone(), run.source.clone());
        Ok(MatrixProduct { op, kernel, source, runner: Runner::Device { run, memory } })
    }

    /// [`MatrixProduct::new`] on the CPU.
    fn on_cpu(op: GemmOp, bias: Option<&[f32]>, slope: Option<&[f32]>) -> Result<Self> {
        if op.precision.storage() != DType::F32 {
            return Err(Error::unsupported(
                format!("a matrix product in {} on the CPU", op.precision),
                "the CPU stores and computes in f32",
            ));
        }
        let constants = [(Operand::Bias, bias), (Operand::Slope, slope)].into_iter();
        let constants = constants.filter_map(|(operand, values)| Some((operand, values?.into()))).collect();
        let residual = op.epilogue.residual.is_some().then_some(Operand::Residual);
        let operands = [Operand::A, Operand::B].into_iter().chain(residual).chain([Operand::C]);
        let zeros = |operand: Operand| (operand, vec![0.0; elements(&op, operand)]);
        let runner =
            Runner::Cpu { kernel: op.cpu(&constants)?, operands: Mutex::new(operands.map(zeros).collect()) };
        let (kernel, source) = ("cpu_gemm_f32".to_owned(), "cpu".to_owned());
        Ok(MatrixProduct { op, kernel, source, runner })
    }

    /// The product's extents and options.
    ///
    /// ```
    /// use diptych::{Backend, Context, MatrixProduct, Precision};
    ///
    /// let context = Context::new(Backend::Cpu)?;
    /// let product = MatrixProduct::of(&context, [1, 2], [2, 1], Precision::F32)?;
    /// assert_eq!(product.op().batch(), 1);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn op(&self) -> &GemmOp {
        &self.op
    }

    /// The kernel's label.
    ///
    /// ```
    /// use diptych::{Backend, Context, MatrixProduct, Precision};
    ///
    /// let context = Context::new(Backend::Cpu)?;
    /// let product = MatrixProduct::of(&context, [1, 2], [2, 1], Precision::F32)?;
    /// println!("{}", product.kernel());
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn kernel(&self) -> &str {
        &self.kernel
    }

    /// Why it is this kernel: `by hand`, `rule`, or which row of the tuner's record it is from, as
    /// [`Step::source`](crate::Step::source) says it.
    ///
    /// ```
    /// use diptych::{Backend, Context, MatrixProduct, Precision};
    ///
    /// let context = Context::new(Backend::Cpu)?;
    /// let product = MatrixProduct::of(&context, [1, 2], [2, 1], Precision::F32)?;
    /// assert_eq!(product.source(), "cpu");
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn source(&self) -> &str {
        &self.source
    }

    fn missing(&self, operand: Operand) -> Error {
        Error::input("matrix product", operand.name(), "mat_a, mat_b, mat_c, or residual if it has one")
    }

    /// Lets `fill` write an operand's elements in their stored order. In host-visible memory it sees
    /// what the matrix held, and in f32 it fills the matrix in place; otherwise it fills zeros that
    /// are then uploaded. In f16 the values are rounded to nearest.
    ///
    /// ```
    /// use diptych::Operand::{A, B, C};
    /// use diptych::{Backend, Context, MatrixProduct, Precision};
    ///
    /// let context = Context::new(Backend::Cpu)?;
    /// let product = MatrixProduct::of(&context, [1, 2], [2, 1], Precision::F32)?;
    /// product.write(A, |a| a.copy_from_slice(&[1.0, 2.0]))?;
    /// product.write(B, |b| b.copy_from_slice(&[3.0, 4.0]))?;
    /// product.run()?;
    /// product.read(C, |c| assert_eq!(c, [11.0]))?;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the product has no such operand, or the driver fails.
    pub fn write(&self, operand: Operand, fill: impl FnOnce(&mut [f32])) -> Result<()> {
        let (wanted, dtype) = (elements(&self.op, operand), self.op.precision.storage());
        match &self.runner {
            Runner::Cpu { operands, .. } => {
                let mut operands = operands.lock().unwrap_or_else(PoisonError::into_inner);
                let own = operands.iter_mut().find(|(own, _)| *own == operand);
                fill(&mut own.ok_or_else(|| self.missing(operand))?.1);
                Ok(())
            }
            Runner::Device { run, memory } => {
                let device = run.device()?;
                let own = run.operand(operand).ok_or_else(|| self.missing(operand))?;
                match memory {
                    Memory::HostVisible => map(device, &own.buffer, wanted, dtype, fill)?,
                    _ => {
                        let mut data = vec![0.0f32; wanted];
                        fill(&mut data);
                        let mut bytes = dtype.encode(&data);
                        bytes.resize(own.bytes() as usize, 0);
                        device.write(own, &bytes)?;
                    }
                }
                if operand == Operand::B { run.written() } else { Ok(()) }
            }
        }
    }

    /// Waits for the runs so far and lets `look` read an operand, in place if it is in f32 and in
    /// host-visible memory. What was never written is zero.
    ///
    /// ```
    /// use diptych::Operand::{A, B, C};
    /// use diptych::{Backend, Context, MatrixProduct, Precision};
    ///
    /// let context = Context::new(Backend::Cpu)?;
    /// let product = MatrixProduct::of(&context, [1, 2], [2, 1], Precision::F32)?;
    /// product.write(A, |a| a.copy_from_slice(&[1.0, 2.0]))?;
    /// product.write(B, |b| b.copy_from_slice(&[3.0, 4.0]))?;
    /// product.run()?;
    /// product.read(C, |c| assert_eq!(c, [11.0]))?;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the product has no such operand, or the driver fails.
    pub fn read<T>(&self, operand: Operand, look: impl FnOnce(&[f32]) -> T) -> Result<T> {
        let (wanted, dtype) = (elements(&self.op, operand), self.op.precision.storage());
        match &self.runner {
            Runner::Cpu { operands, .. } => {
                let operands = operands.lock().unwrap_or_else(PoisonError::into_inner);
                let own = operands.iter().find(|(own, _)| *own == operand);
                Ok(look(&own.ok_or_else(|| self.missing(operand))?.1))
            }
            Runner::Device { run, memory } => {
                let device = run.device()?;
                let own = run.operand(operand).ok_or_else(|| self.missing(operand))?;
                match memory {
                    Memory::HostVisible => map(device, &own.buffer, wanted, dtype, |data| look(data)),
                    _ => Ok(look(&dtype.decode(&device.read(own)?[..wanted * dtype.bytes()]))),
                }
            }
        }
    }

    /// Computes C. On a GPU this submits and returns; [`MatrixProduct::read`] waits.
    ///
    /// ```
    /// use diptych::Operand::{A, B, C};
    /// use diptych::{Backend, Context, MatrixProduct, Precision};
    ///
    /// let context = Context::new(Backend::Cpu)?;
    /// let product = MatrixProduct::of(&context, [1, 2], [2, 1], Precision::F32)?;
    /// product.write(A, |a| a.copy_from_slice(&[1.0, 2.0]))?;
    /// product.write(B, |b| b.copy_from_slice(&[3.0, 4.0]))?;
    /// product.run()?;
    /// product.read(C, |c| assert_eq!(c, [11.0]))?;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the driver fails.
    pub fn run(&self) -> Result<()> {
        match &self.runner {
            Runner::Device { run, .. } => run.run(),
            Runner::Cpu { kernel, operands } => {
                let mut operands = operands.lock().unwrap_or_else(PoisonError::into_inner);
                // C is last.
                let Some(((operand, c), inputs)) = operands.split_last_mut() else {
                    return Err(Error::Internal("a product without operands".to_owned()));
                };
                let inputs: Vec<(Operand, &[f32])> =
                    inputs.iter().map(|(operand, values)| (*operand, values.as_slice())).collect();
                kernel.run(&inputs, &mut [(*operand, c)])
            }
        }
    }

    /// Runs once and returns the kernel's time on the device's clock (the host's, on the CPU).
    ///
    /// ```
    /// use diptych::{Backend, Context, MatrixProduct, Precision};
    ///
    /// let context = Context::new(Backend::Cpu)?;
    /// let product = MatrixProduct::of(&context, [1, 2], [2, 1], Precision::F32)?;
    /// println!("{:?}", product.time()?);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the device has no clock or the driver fails.
    pub fn time(&self) -> Result<Duration> {
        match &self.runner {
            Runner::Device { run, .. } => run.time(),
            Runner::Cpu { .. } => {
                let start = crate::clock::Instant::now();
                self.run().map(|()| start.elapsed())
            }
        }
    }
}

/// `access` on the first `elements` values of a host-visible buffer: in place, or on copies of
/// halves.
fn map<T>(
    device: &dyn Device,
    buffer: &Buffer,
    elements: usize,
    dtype: DType,
    access: impl FnOnce(&mut [f32]) -> T,
) -> Result<T> {
    let (mut access, mut result) = (Some(access), None);
    device.map(buffer, &mut |bytes| {
        let stored = bytes.get_mut(..dtype.bytes() * elements);
        if dtype == DType::F16 {
            if let (Some(access), Some(stored)) = (access.take(), stored) {
                let mut values = dtype.decode(stored);
                result = Some(access(&mut values));
                stored.copy_from_slice(&dtype.encode(&values));
            }
            return;
        }
        let floats = stored.map(bytemuck::try_cast_slice_mut);
        if let (Some(access), Some(Ok(floats))) = (access.take(), floats) {
            result = Some(access(floats));
        }
    })?;
    result.ok_or_else(|| Error::Internal("mapped memory is not whole, aligned floats".to_owned()))
}
