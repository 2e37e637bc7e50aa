//! An application's kernel as an op.

use super::host::HostKernel;
use super::{Custom, NO_SHADER, OP, VARIANT};
use crate::cpu::CpuKernel;
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::{Body, Epilogue, Interface, KernelSpec, Operand, Scalar};
use crate::error::{Error, Result};
use crate::layout::{Form, Layout};
use crate::limits::Limits;
use crate::ops::plan::{Choice, Launch, Op, Sealed, check_axes, check_work_group};
use crate::ops::{OperandInfo, Operands, Reference};
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

impl Sealed for CustomOp {}

impl Op for CustomOp {
    fn name(&self) -> &'static str {
        OP
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn operands(&self) -> Vec<OperandInfo> {
        self.operands.clone()
    }

    fn form(&self, _operand: Operand, _choice: &Choice) -> Option<Form> {
        Some(Form::Rows)
    }

    fn oracle(&self, _operands: &Operands<'_>) -> Result<Reference> {
        Err(Error::unsupported(self.custom.name.as_ref(), "only the application knows its result"))
    }

    fn cpu(&self, _constants: &Operands<'_>) -> Result<Box<dyn CpuKernel>> {
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

    fn cpu_obstacle(&self) -> Option<&'static str> {
        self.custom.host.is_none().then_some("it is a shader, and has no Custom::on_cpu")
    }

    fn device_obstacle(&self) -> Option<&'static str> {
        self.custom.shader.is_none().then_some(NO_SHADER)
    }

    fn with_precision(&self, _precision: Precision) -> Arc<dyn Op> {
        Arc::new(self.clone())
    }

    fn record_layout(&self) -> Layout {
        Layout::Nhwc
    }

    fn untunable(&self) -> Option<&'static str> {
        Some("an application's kernel is as it is")
    }

    fn problem_key(&self) -> String {
        let operand = |info: &OperandInfo| info.shape.to_string();
        let operands: Vec<String> = self.operands.iter().map(operand).collect();
        format!("{} {}", self.custom.name, operands.join(" "))
    }

    fn precision(&self) -> Precision {
        Precision::F32
    }

    fn flops(&self) -> u64 {
        0
    }

    fn space(&self, _limits: &Limits) -> Vec<(&'static str, [u32; 3])> {
        self.custom.shader.iter().map(|_| (VARIANT, [1, 1, 1])).collect()
    }

    fn grid(&self, _variant: &str, _tile: [u32; 3]) -> [u32; 3] {
        self.grid
    }

    fn work_groups(&self, _variant: &str, _tile: [u32; 3]) -> Vec<[u32; 3]> {
        self.custom.shader.iter().map(|shader| shader.reflection.work_group).collect()
    }

    fn dst_depth(&self) -> u32 {
        1
    }

    fn fits(&self, choice: &Choice, limits: &Limits) -> Result<()> {
        let label = format!("{OP}_{}", self.custom.name);
        let Some(shader) = &self.custom.shader else {
            return Err(Error::Reject { kernel: label, reason: NO_SHADER.to_owned() });
        };
        if choice.variant != VARIANT || choice.work_group != shader.reflection.work_group {
            let reason = format!("its work-group is {:?}", shader.reflection.work_group);
            return Err(Error::Reject { kernel: label, reason });
        }
        check_work_group(&label, choice.work_group, limits)?;
        check_axes(&label, choice.work_group, self.grid, limits)
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
            body: Body::default(),
            interface: self.interface.clone(),
            template: None,
            foreign: self.custom.shader.as_ref().map(|shader| shader.foreign.clone()),
        };
        Ok(Launch { spec, params: self.params.clone(), grid: self.grid })
    }

    fn pack(&self, _choice: &Choice, operand: Operand, _data: &[f32]) -> Result<Vec<f32>> {
        Err(Error::Internal(format!("{OP} has no constant operand {}", operand.name())))
    }
}
