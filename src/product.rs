//! A matrix product made ready to run, its operands in memory that the host can reach.

use crate::context::{Context, Engine};
use crate::cpu::CpuKernel;
use crate::device::{Buffer, Device, Dispatch, Memory, Recording, Resource, compile_planned};
use crate::dtype::{DType, Precision};
use crate::emit::{Element, Operand};
use crate::error::{Error, Result};
use crate::host::HostTensor;
use crate::layout::Layout;
use crate::ops::convert::ConvertOp;
use crate::ops::gemm::GemmOp;
use crate::ops::{Choice, Op};
use crate::options::Tuning;
use crate::shape::Shape;
use crate::tune::db;
use crate::tune::key::DeviceKey;
use crate::tune::work_group::{WorkGroup, untuned};
use std::sync::{Mutex, PoisonError};
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
    Device {
        engine: Engine,
        buffers: Vec<(Operand, Buffer)>,
        memory: Memory,
        /// Makes the image of B, where the kernel reads one.
        image: Option<Recording>,
        recording: Recording,
    },
    Cpu {
        kernel: Box<dyn CpuKernel>,
        operands: Mutex<Vec<(Operand, Vec<f32>)>>,
    },
}

/// Elements that an operand of `op` holds.
fn elements(op: &GemmOp, operand: Operand) -> usize {
    match operand {
        Operand::A => op.elements_a(),
        Operand::B => op.elements_b(),
        _ => op.elements_c(),
    }
}

/// Bytes of an operand of `op` on a device: whole words, as bindings are.
fn stored_bytes(op: &GemmOp, operand: Operand) -> u64 {
    (elements(op, operand) * op.precision.storage().bytes()).next_multiple_of(4) as u64
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
        let mut operands = vec![Operand::A, Operand::B];
        if op.epilogue.residual.is_some() {
            operands.push(Operand::Residual);
        }
        operands.push(Operand::C);
        let Some(device) = context.device() else {
            if op.precision.storage() != DType::F32 {
                return Err(Error::unsupported(
                    format!("a matrix product in {} on the CPU", op.precision),
                    "the CPU stores and computes in f32",
                ));
            }
            let constants = [(Operand::Bias, bias), (Operand::Slope, slope)].into_iter();
            let constants =
                constants.filter_map(|(operand, values)| Some((operand, values?.into()))).collect();
            let zeros = |&operand: &Operand| (operand, vec![0.0; elements(&op, operand)]);
            let runner = Runner::Cpu {
                kernel: op.cpu(&constants)?,
                operands: Mutex::new(operands.iter().map(zeros).collect()),
            };
            let (kernel, source) = ("cpu_gemm_f32".to_owned(), "cpu".to_owned());
            return Ok(MatrixProduct { op, kernel, source, runner });
        };
        let limits = &device.info().limits;
        let (choice, source) = match options.choice {
            Some(choice) => (choice, "by hand".to_owned()),
            None => {
                let record = options.tuning.database().cloned().or_else(|| context.record());
                let key = DeviceKey::of(device.info());
                let found =
                    record.and_then(|record| db::choose(&record, &key, &op, op.record_layout(), limits));
                match found {
                    Some(found) => (found.choice, found.from.to_string()),
                    None => (untuned(&op, options.work_group, limits)?, "rule".to_owned()),
                }
            }
        };
        let kernel = op.kernel(choice.variant)?;
        let launch = kernel.plan(&choice, limits)?;
        let mut buffers = Vec::with_capacity(operands.len());
        for operand in operands {
            buffers.push((operand, device.alloc(stored_bytes(&op, operand), options.memory)?));
        }
        let (mut image, mut resources) = (None, Vec::new());
        for binding in &launch.spec.interface.bindings {
            let constant = match binding.operand {
                Operand::Bias => bias,
                Operand::Slope => slope,
                _ => None,
            };
            let own = buffers.iter().find(|(operand, _)| *operand == binding.operand);
            resources.push(match (constant, own, binding.element) {
                (Some(data), _, _) => upload(device, &kernel.pack(&choice, binding.operand, data)?)?,
                (None, Some((_, rows)), Element::Image2d(_)) => {
                    let (recording, resource) = image_of(device, &op, rows)?;
                    image = Some(recording);
                    resource
                }
                (None, Some((_, buffer)), _) => buffer.into(),
                (None, None, _) => {
                    return Err(Error::Internal(format!("gemm binds {}", binding.operand.name())));
                }
            });
        }
        let pipeline = compile_planned(device, &launch.spec.render_written(limits.dialect)?)?;
        let (params, groups) = (launch.params.clone(), launch.groups());
        let recording = device.record(&[Dispatch { pipeline, resources, params, groups }])?;
        let (engine, memory) = (context.engine.clone(), options.memory);
        let runner = Runner::Device { engine, buffers, memory, image, recording };
        Ok(MatrixProduct { op, kernel: launch.spec.label(), source, runner })
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
            Runner::Device { engine, buffers, memory, image, .. } => {
                let device = engine.device()?;
                let buffer = buffers.iter().find(|(own, _)| *own == operand);
                let (_, buffer) = buffer.ok_or_else(|| self.missing(operand))?;
                match memory {
                    Memory::HostVisible => map(device, buffer, wanted, dtype, fill)?,
                    _ => {
                        let mut data = vec![0.0f32; wanted];
                        fill(&mut data);
                        let mut bytes = dtype.encode(&data);
                        bytes.resize(stored_bytes(&self.op, operand) as usize, 0);
                        device.write(&buffer.slice(0, bytes.len() as u64)?, &bytes)?;
                    }
                }
                match (operand, image) {
                    (Operand::B, Some(recording)) => device.submit(recording),
                    _ => Ok(()),
                }
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
            Runner::Device { engine, buffers, memory, .. } => {
                let device = engine.device()?;
                let buffer = buffers.iter().find(|(own, _)| *own == operand);
                let (_, buffer) = buffer.ok_or_else(|| self.missing(operand))?;
                match memory {
                    Memory::HostVisible => map(device, buffer, wanted, dtype, |data| look(data)),
                    _ => {
                        let bytes = device.read(&buffer.slice(0, stored_bytes(&self.op, operand))?)?;
                        Ok(look(&dtype.decode(&bytes[..wanted * dtype.bytes()])))
                    }
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
            Runner::Device { engine, recording, .. } => engine.device()?.submit(recording),
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
            Runner::Device { engine, recording, .. } => Ok(engine.device()?.time(recording)?.iter().sum()),
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

fn upload(device: &dyn Device, data: &[f32]) -> Result<Resource> {
    let buffer = device.alloc(4 * data.len() as u64, Memory::Device)?;
    device.write(&buffer.slice(0, 4 * data.len() as u64)?, bytemuck::cast_slice(data))?;
    Ok((&buffer).into())
}

/// The image of a row-major B, and the recording that fills it from the buffer.
fn image_of(device: &dyn Device, op: &GemmOp, rows: &Buffer) -> Result<(Recording, Resource)> {
    if op.precision.storage() != DType::F32 {
        return Err(Error::unsupported(
            format!("gemm image2d in {}", op.precision),
            "the image is made from rows of f32",
        ));
    }
    if op.ldb != op.n {
        return Err(Error::unsupported(
            format!("gemm image2d with ldb {} and n {}", op.ldb, op.n),
            "the image is made from packed rows",
        ));
    }
    let limits = &device.info().limits;
    let shape = Shape::nhwc(if op.shared_b { 1 } else { op.batch }, op.k, 1, op.n);
    let [width, height] = Layout::image_extent(&shape);
    let image = device.alloc_image(width, height, DType::F32)?;
    let convert = ConvertOp::new(shape, Layout::Nhwc, Layout::Image2d, Precision::F32)?;
    let choice = untuned(&convert, WorkGroup::Table, limits)?;
    let launch = convert.kernel(choice.variant)?.plan(&choice, limits)?;
    let dispatch = Dispatch {
        pipeline: compile_planned(device, &launch.spec.render_written(limits.dialect)?)?,
        resources: vec![rows.into(), (&image).into()],
        params: launch.params.clone(),
        groups: launch.groups(),
    };
    Ok((device.record(&[dispatch])?, (&image).into()))
}

impl Context {
    /// `alpha * op(A) * op(B) + beta * C` of packed matrices (see [`Shape::matrix`]), with the
    /// activation of `options`. For repeated products of one shape use [`MatrixProduct`]. The kernel is that of the tuner's
    /// record, where the context has one ([`Context::use_record`]).
    ///
    /// ```
    /// use diptych::{Backend, Context, Gemm, HostTensor};
    ///
    /// let context = Context::new(Backend::Cpu)?;
    /// let a = HostTensor::matrix(1, 1, 2, vec![1.0, 2.0])?;
    /// let b = HostTensor::matrix(1, 2, 2, vec![1.0, 0.0, 0.0, 1.0])?;
    /// let c = context.gemm(&a, &b, None, &Gemm::default())?;
    /// assert_eq!(*c.to_f32(), [1.0, 2.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the shapes do not fit each other, `beta` is not 0 and there is no `c`, or a leading
    /// dimension is given.
    pub fn gemm(
        &self,
        a: &HostTensor,
        b: &HostTensor,
        c: Option<&HostTensor>,
        options: &crate::Gemm,
    ) -> Result<HostTensor> {
        let beta = options.beta;
        let product = crate::Gemm { beta: crate::Bits(0.0), ..*options };
        let mut op = GemmOp::of_matrices(a.shape(), b.shape(), &product, false, false, Precision::F32)?;
        op.beta = beta;
        let result = Shape::matrix(op.batch, op.m, op.n);
        match c {
            Some(c) if c.shape() != result => {
                return Err(Error::shape("gemm", format!("C {}", c.shape()), format!("C {result}")));
            }
            None if beta.0 != 0.0 => {
                return Err(Error::shape("gemm", format!("beta {} and no C", beta.0), "a C to scale"));
            }
            _ => {}
        }
        let product = MatrixProduct::new(self, op, None, None, ProductOptions::default())?;
        let fill = |operand, tensor: &HostTensor| {
            product.write(operand, |data| data.copy_from_slice(&tensor.to_nhwc()))
        };
        fill(Operand::A, a)?;
        fill(Operand::B, b)?;
        if let Some(c) = c {
            fill(Operand::C, c)?;
        }
        product.run()?;
        product.read(Operand::C, |data| HostTensor::new(result, data.to_vec()))?
    }
}
