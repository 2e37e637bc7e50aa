//! What an op with a nest in the place of an input is.

use super::PrologueOp;
use super::cpu::PrologueOnCpu;
use super::kernel::PrologueKernel;
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::error::Result;
use crate::layout::Layout;
use crate::ops::bound::{BoundKernel, Kernels};
use crate::ops::halves::{Reach, Reaches};
use crate::ops::op::{Answer, Op, Purpose, Sealed};
use crate::ops::operands::{self, OperandInfo, Operands};
use crate::ops::reference::Reference;
use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

impl Sealed for PrologueOp {}

impl PrologueOp {
    /// The operands of the op alone, with `given` as the one that the nest gives.
    fn of_op<'a>(&self, operands: &Operands<'a>, given: Vec<f32>) -> Operands<'a> {
        let mut own: Operands<'a> = operands
            .iter()
            .filter(|(operand, _)| !matches!(operand, Operand::Read(_)))
            .map(|(operand, values)| (*operand, values.clone()))
            .collect();
        own.insert(self.operand, Cow::Owned(given));
        own
    }

    /// How far each result may be off where each element that the nest gives is off by as much as `errors` say: of a sum the sum of
    /// these times the weights, of what is moved these.
    fn carried(&self, errors: Vec<f32>, operands: &Operands<'_>, answer: Answer<'_>) -> Result<Vec<f64>> {
        let mut own = self.of_op(operands, errors);
        for info in self.op.operands() {
            let stays = matches!(info.operand, Operand::Weights | Operand::B | Operand::Slope)
                || info.operand == self.operand
                || info.dtype != DType::F32;
            if let (Some(values), false) = (own.get_mut(&info.operand), stays) {
                *values = Cow::Owned(vec![0.0; values.len()]);
            }
        }
        Ok(match self.op.reference(&own, answer)? {
            Reference::Sum(sum) => sum.magnitude,
            Reference::Bounded { value, .. } => value,
        })
    }
}

impl Op for PrologueOp {
    fn name(&self) -> &'static str {
        self.op.name()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn words(&self) -> Option<String> {
        Some(format!("{} of {:?} {:?}", self.op.words()?, self.operand, self.nest))
    }

    fn packing(&self) -> Option<String> {
        self.op.packing()
    }

    fn problem_key(&self) -> String {
        let nest: &dyn Op = &*self.nest;
        format!("{} {} from {}", self.op.problem_key(), self.operand.name(), nest.problem_key())
    }

    fn operands(&self) -> Vec<OperandInfo> {
        let mut infos = self.op.operands();
        if let Some(at) = infos.iter().position(|info| info.operand == self.operand) {
            infos.splice(at..=at, self.reads());
        }
        infos
    }

    fn precision(&self) -> Precision {
        self.op.precision()
    }

    fn flops(&self) -> u64 {
        let nest: &dyn Op = &*self.nest;
        self.op.flops() + nest.flops()
    }

    fn reference(&self, operands: &Operands<'_>, answer: Answer<'_>) -> Result<Reference> {
        operands::check(self.op.name(), &Op::operands(self), operands)?;
        let nest: &dyn Op = &*self.nest;
        let of_nest = match answer {
            Answer::Quick => Answer::Quick,
            Answer::Exact | Answer::Rows(_) => Answer::Exact,
        };
        let reads = operands.iter().filter(|(operand, _)| matches!(operand, Operand::Read(_)));
        let reads: Operands<'_> = reads.map(|(operand, values)| (*operand, values.clone())).collect();
        let found = nest.reference(&reads, of_nest)?;
        let given: Vec<f32> = found.value().iter().map(|&value| value as f32).collect();
        let errors = given.iter().zip(found.value()).enumerate().map(|(index, (&near, &exact))| {
            // One more for the rounding of the bound itself.
            let bound = found.tolerance(index, self.op.precision()) + (f64::from(near) - exact).abs();
            (bound * (1.0 + f64::from(f32::EPSILON))) as f32
        });
        let carried = self.carried(errors.collect(), operands, answer)?;
        match self.op.reference(&self.of_op(operands, given), answer)? {
            Reference::Sum(mut sum) => {
                sum.carried = carried;
                Ok(Reference::Sum(sum))
            }
            Reference::Bounded { value, mut bound } => {
                bound.iter_mut().zip(carried).for_each(|(bound, carried)| *bound += carried);
                Ok(Reference::Bounded { value, bound })
            }
        }
    }

    fn cpu_on(&self, constants: &Operands<'_>, shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>> {
        Ok(Box::new(PrologueOnCpu::new(self, constants, shelf)?))
    }

    fn obstacle(&self, purpose: Purpose) -> Option<&'static str> {
        self.op.obstacle(purpose)
    }

    fn halves(&self) -> bool {
        self.op.halves()
    }

    fn reach(&self, inputs: &Reaches<'_>, constants: &Operands<'_>) -> Reach {
        let given = |operand| if operand == self.operand { Reach::ALL } else { inputs(operand) };
        self.op.reach(&given, constants)
    }

    fn is_singular(&self, _inputs: &Reaches<'_>) -> bool {
        true
    }

    fn in_place(&self) -> Option<(Arc<dyn Op>, Operand)> {
        let (op, operand) = self.op.in_place()?;
        (operand != self.operand)
            .then(|| (Arc::new(PrologueOp { op, ..self.clone() }) as Arc<dyn Op>, operand))
    }

    fn usual(&self, operand: Operand, noise: Vec<f32>) -> Vec<f32> {
        match operand {
            Operand::Read(_) => noise,
            _ => self.op.usual(operand, noise),
        }
    }

    fn record_layout(&self) -> Layout {
        self.op.record_layout()
    }

    fn kernels(&self) -> Kernels<'_> {
        let names: Vec<&'static str> = self.op.kernels().iter().map(BoundKernel::name).collect();
        Kernels::new(names.into_iter().filter_map(|name| self.kernel(name).ok()))
    }

    fn kernel(&self, name: &str) -> Result<Box<dyn BoundKernel + '_>> {
        Ok(Box::new(PrologueKernel { op: self, kernel: self.op.kernel(name)? }))
    }
}
