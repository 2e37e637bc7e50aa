//! An application's kernel as an op.

use super::host::HostKernel;
use super::{Custom, NO_SHADER, OP, Shader, VARIANT};
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::{Body, Epilogue, Interface, KernelSpec, Operand, Scalar};
use crate::error::{Error, Result};
use crate::layout::{Form, Layout};
use crate::limits::Limits;
use crate::ops::bound::{BoundKernel, Kernels};
use crate::ops::effort::Effort;
use crate::ops::halves::Reaches;
use crate::ops::kernel::{Offer, Ordinary, VariantEntry, offers};
use crate::ops::op::{Answer, Op, Purpose, Sealed};
use crate::ops::operands::{OperandInfo, Operands};
use crate::ops::plan::{Choice, Launch, check_axes, check_work_group};
use crate::ops::reference::Reference;
use std::any::Any;
use std::sync::Arc;

/// An application's kernel for inputs of concrete dimensions.
#[derive(Debug, Clone)]
pub(super) struct CustomOp {
    pub(super) custom: Custom,
    /// Of the outputs.
    pub(super) dims: Vec<Dims>,
    pub(super) operands: Vec<OperandInfo>,
    pub(super) interface: Interface,
    pub(super) params: Vec<Scalar>,
    pub(super) grid: [u32; 3],
}

impl CustomOp {
    fn reject<T>(&self, reason: impl Into<String>) -> Result<T> {
        Err(Error::Reject { kernel: format!("{OP}_{}", self.custom.name), reason: reason.into() })
    }
}

impl Sealed for CustomOp {}

impl Op for CustomOp {
    fn name(&self) -> &'static str {
        OP
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn problem_key(&self) -> String {
        let operand = |info: &OperandInfo| info.shape.to_string();
        let operands: Vec<String> = self.operands.iter().map(operand).collect();
        format!("{} {}", self.custom.name, operands.join(" "))
    }

    fn operands(&self) -> Vec<OperandInfo> {
        self.operands.clone()
    }

    fn precision(&self) -> Precision {
        Precision::F32
    }

    fn flops(&self) -> u64 {
        0
    }

    fn reference(&self, _operands: &Operands<'_>, _answer: Answer<'_>) -> Result<Reference> {
        Err(Error::unsupported(self.custom.name.as_ref(), "only the application knows its result"))
    }

    fn cpu_on(&self, _constants: &Operands<'_>, _shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>> {
        match &self.custom.host {
            Some(run) => Ok(Box::new(HostKernel {
                name: Arc::clone(&self.custom.name),
                run: Arc::clone(run),
                operands: self.operands.clone(),
            })),
            None => {
                let reason = "it is a shader, and has no Custom::on_cpu";
                Err(Error::unsupported(format!("kernel {:?} on the CPU", self.custom.name), reason))
            }
        }
    }

    fn obstacle(&self, purpose: Purpose) -> Option<&'static str> {
        match purpose {
            Purpose::Cpu => self.custom.host.is_none().then_some("it is a shader, and has no Custom::on_cpu"),
            Purpose::Device => self.custom.shader.is_none().then_some(NO_SHADER),
            Purpose::Tuning => Some("an application's kernel is as it is"),
        }
    }

    /// Only the application knows where it divides by what it reads.
    fn is_singular(&self, _inputs: &Reaches<'_>) -> bool {
        true
    }

    fn record_layout(&self) -> Layout {
        Layout::Nhwc
    }

    fn kernels(&self) -> Kernels<'_> {
        Kernels::new(self.kernel(VARIANT).ok())
    }

    fn kernel(&self, name: &str) -> Result<Box<dyn BoundKernel + '_>> {
        match &self.custom.shader {
            Some(shader) if name == VARIANT => Ok(Box::new(CustomKernel { op: self, shader })),
            Some(_) => self.reject(format!("it has no kernel {name}")),
            None => self.reject(NO_SHADER),
        }
    }
}

/// The kernel that the application wrote.
#[derive(Debug)]
struct CustomKernel<'a> {
    op: &'a CustomOp,
    shader: &'a Shader,
}

impl BoundKernel for CustomKernel<'_> {
    /// Its text is the application's.
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl(VARIANT, "").with_ordinary(Ordinary::Size(self.shader.reflection.work_group))
    }

    fn offers(&self, _limits: &Limits) -> Vec<Offer> {
        offers(0, [[1, 1, 1]])
    }

    fn grid(&self, _tile: [u32; 3]) -> [u32; 3] {
        self.op.grid
    }

    fn work_groups(&self, _tile: [u32; 3]) -> Vec<[u32; 3]> {
        vec![self.shader.reflection.work_group]
    }

    fn dst_depth(&self) -> u32 {
        1
    }

    fn form(&self, _operand: Operand, _choice: &Choice) -> Option<Form> {
        Some(Form::Rows)
    }

    fn joins(&self, _choice: &Choice) -> Option<Vec<(Operand, usize)>> {
        None
    }

    fn untuned(&self, _limits: &Limits) -> bool {
        true
    }

    fn counted(&self, _choice: &Choice) -> u64 {
        self.op.grid.iter().map(|&extent| u64::from(extent)).product()
    }

    fn effort(&self, _choice: &Choice, _limits: &Limits) -> Option<Effort> {
        None
    }

    fn estimate(&self, _choice: &Choice, _limits: &Limits) -> Option<f64> {
        None
    }

    fn fits(&self, choice: &Choice, limits: &Limits) -> Result<()> {
        let own = self.shader.reflection.work_group;
        if choice.work_group != own {
            return self.op.reject(format!("its work-group is {own:?}"));
        }
        let label = format!("{OP}_{}", self.op.custom.name);
        check_work_group(&label, own, limits)?;
        check_axes(&label, own, self.op.grid, limits)
    }

    fn plan(&self, choice: &Choice, limits: &Limits) -> Result<Launch> {
        self.fits(choice, limits)?;
        let spec = KernelSpec {
            folded: None,
            copies: None,
            op: OP,
            variant: VARIANT,
            constants: Vec::new(),
            tile: [1, 1, 1],
            work_group: choice.work_group,
            precision: Precision::F32,
            native_half: false,
            between: None,
            epilogue: Epilogue::default(),
            function: None,
            prologue: None,
            body: Body::default(),
            interface: self.op.interface.clone(),
            template: None,
            foreign: Some(self.shader.foreign.clone()),
        };
        Ok(Launch { spec, params: self.op.params.clone(), grid: self.op.grid })
    }

    fn pack(&self, _choice: &Choice, operand: Operand, _data: &[f32]) -> Result<Vec<f32>> {
        Err(Error::Internal(format!("{OP} has no constant operand {}", operand.name())))
    }

    fn reference(&self, _operands: &Operands<'_>, reference: Reference) -> Result<Reference> {
        Ok(reference)
    }
}
