//! One op, ready to run on a device on operands that its caller writes and reads in place.
//!
//! A plan is made of a graph, whose inputs and outputs are rows of f32 that each run is given and gives. Here they are buffers that
//! stay, in memory of the caller's choice, and a result may be an operand too.

use super::memory::DeviceMemory;
use super::progress::Teller;
use super::resources::{allocate, dispatches, kernels};
use super::segment_plan::SegmentPlan;
use crate::context::Engine;
use crate::device::{Device, Memory, Recording, Slice};
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::host::HostTensor;
use crate::lower::{Program, Work};
use crate::ops::{Op, Role};
use crate::options::SessionOptions;
use crate::task::{block_on, both};
use std::sync::Arc;
use std::time::Duration;

/// An op on a device, with its operands.
#[derive(Debug)]
pub(crate) struct OpRun {
    engine: Engine,
    /// All but the constants, the results among them.
    operands: Vec<(Operand, Slice)>,
    /// Makes images of operands that the kernel reads so.
    images: Option<Recording>,
    recording: Recording,
    /// The kernel's label.
    pub(crate) kernel: String,
    /// What decided on the kernel, in words.
    pub(crate) source: String,
}

impl OpRun {
    /// Allocates the operands in `memory`, compiles the kernel that `asked` decides on under the op's name, and records its run.
    pub(crate) fn new(
        engine: Engine,
        op: &Arc<dyn Op>,
        constants: &[(Operand, HostTensor)],
        memory: Memory,
        asked: &SessionOptions,
    ) -> Result<Self> {
        let device = engine.device()?;
        let program = Program::of_op(op, constants, memory, asked, device.info())?;
        let planned = DeviceMemory::of(&program, &SegmentPlan::of(&program)?, false);
        let teller = &Teller::new(&|_| {});
        let allocated = allocate(device, &program, &planned, None, teller);
        let (resources, kernels) = block_on(both(allocated, kernels(device, &program, None, teller)))?;
        let images = dispatches(&program.setup, &kernels.setup, &resources)?;
        let images = if images.is_empty() { None } else { Some(device.record(&images)?) };
        let recording = device.record(&dispatches(&program.steps, &kernels.steps, &resources)?)?;
        let (kernel, source) = match &program.steps[..] {
            [step] => match &step.work {
                Work::Device { launch, .. } => (launch.spec.label(), step.from.clone()),
                Work::Host { .. } => return Err(Error::Internal(format!("{} on the CPU", op.name()))),
            },
            steps => return Err(Error::Internal(format!("{} steps of one op", steps.len()))),
        };
        let infos = op.operands().into_iter().filter(|info| info.role != Role::Constant);
        let operands =
            infos.zip(&program.inputs).map(|(info, part)| Ok((info.operand, resources.slice(part)?)));
        let operands = operands.collect::<Result<_>>()?;
        Ok(OpRun { engine, operands, images, recording, kernel, source })
    }

    pub(crate) fn device(&self) -> Result<&dyn Device> {
        self.engine.device()
    }

    /// Where an operand lies.
    pub(crate) fn operand(&self, operand: Operand) -> Option<&Slice> {
        self.operands.iter().find(|(own, _)| *own == operand).map(|(_, slice)| slice)
    }

    /// Has the kernel see what was written to the operands, where it reads images of them.
    pub(crate) fn written(&self) -> Result<()> {
        self.images.as_ref().map_or(Ok(()), |images| self.device()?.submit(images))
    }

    /// Submits a run.
    pub(crate) fn run(&self) -> Result<()> {
        self.device()?.submit(&self.recording)
    }

    /// Runs once: the time of the kernel on the device's clock.
    pub(crate) fn time(&self) -> Result<Duration> {
        Ok(self.device()?.time(&self.recording)?.iter().sum())
    }
}
