//! What an op with a function behind it is.

use super::cpu::FollowedOnCpu;
use super::kernel::FollowedKernel;
use super::{FollowedOp, operand};
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::layout::Layout;
use crate::ops::bound::{BoundKernel, Kernels};
use crate::ops::halves::{Reach, Reaches};
use crate::ops::op::{Answer, Op, Purpose, Sealed};
use crate::ops::operands::{self, OperandInfo, Operands};
use crate::ops::reference::Reference;
use std::any::Any;
use std::sync::Arc;

impl Sealed for FollowedOp {}

impl FollowedOp {
    /// The operands of the op alone.
    fn of_op<'a>(&self, operands: &Operands<'a>) -> Operands<'a> {
        let own = self.op.operands();
        let is_own = |operand: &Operand| own.iter().any(|info| info.operand == *operand);
        operands
            .iter()
            .filter(|(operand, _)| is_own(operand))
            .map(|(own, values)| (*own, values.clone()))
            .collect()
    }

    /// What the function gives of `reference`, which has all rows of the result, or those that `answer` names.
    fn followed(
        &self,
        reference: &Reference,
        operands: &Operands<'_>,
        answer: Answer<'_>,
    ) -> Result<Reference> {
        let (precision, width) = (self.op.precision(), self.result()?.shape.c.max(1));
        let values = |place: usize| operands.get(&operand(place)).map(|own| &own[..]).unwrap_or_default();
        let [vectors, elements] = self.inputs().map(|places| places.map(values).collect::<Vec<&[f32]>>());
        let (mut value, mut bound) = (Vec::new(), Vec::new());
        for (index, &exact) in reference.value().iter().enumerate() {
            let by = match answer {
                Answer::Quick => reference.usual_tolerance(index, precision),
                _ => reference.tolerance(index, precision),
            };
            let place = match answer {
                Answer::Rows(rows) => {
                    rows.get(index / width).map_or(index, |row| row * width + index % width)
                }
                _ => index,
            };
            let mut given = vec![[exact, exact - by, exact + by]];
            let vectors = vectors.iter().map(|vector| vector.get(place % vector.len().max(1)));
            let elements = elements.iter().map(|values| values.get(place));
            let others = vectors.chain(elements);
            given.extend(others.map(|number| [number.copied().map_or(f64::NAN, f64::from); 3]));
            let [exact, lo, hi] = self.program.enclose(&given, precision);
            value.push(exact);
            let distance = (exact - lo).abs().max((hi - exact).abs());
            bound.push(if distance.is_nan() { f64::INFINITY } else { distance });
        }
        Ok(Reference::Bounded { value, bound })
    }
}

impl Op for FollowedOp {
    fn name(&self) -> &'static str {
        self.op.name()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn words(&self) -> Option<String> {
        Some(format!("{} then {} {:?}", self.op.words()?, self.channels, self.program))
    }

    fn packing(&self) -> Option<String> {
        self.op.packing()
    }

    fn problem_key(&self) -> String {
        format!("{} then{} {}", self.op.problem_key(), self.channels, self.program.key())
    }

    fn operands(&self) -> Vec<OperandInfo> {
        let (written, mut infos): (Vec<OperandInfo>, Vec<OperandInfo>) =
            self.op.operands().into_iter().partition(|info| info.role.writes());
        infos.extend(self.others().unwrap_or_default());
        infos.extend(written);
        infos
    }

    fn precision(&self) -> Precision {
        self.op.precision()
    }

    fn flops(&self) -> u64 {
        self.op.flops()
    }

    fn reference(&self, operands: &Operands<'_>, answer: Answer<'_>) -> Result<Reference> {
        operands::check(self.op.name(), &Op::operands(self), operands)?;
        let reference = self.op.reference(&self.of_op(operands), answer)?;
        self.followed(&reference, operands, answer)
    }

    fn cpu_on(&self, constants: &Operands<'_>, shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>> {
        let kernel = self.op.cpu_on(&self.of_op(constants), shelf)?;
        Ok(Box::new(FollowedOnCpu::new(self, kernel, constants)?))
    }

    fn obstacle(&self, purpose: Purpose) -> Option<&'static str> {
        self.op.obstacle(purpose)
    }

    fn halves(&self) -> bool {
        self.op.halves() && self.program.halves()
    }

    fn reach(&self, inputs: &Reaches<'_>, constants: &Operands<'_>) -> Reach {
        let own = self.op.reach(inputs, &self.of_op(constants));
        self.program.reach(&|operand| match operand {
            Operand::Arg(0) => own,
            _ => constants.get(&operand).map_or_else(|| inputs(operand), |values| Reach::of(values)),
        })
    }

    fn is_singular(&self, inputs: &Reaches<'_>) -> bool {
        self.op.is_singular(inputs) || self.program.is_singular(&|_| Reach::ALL)
    }

    fn in_place(&self) -> Option<(Arc<dyn Op>, Operand)> {
        let (op, operand) = self.op.in_place()?;
        Some((Arc::new(FollowedOp::new(op, self.program.clone(), self.channels).ok()?), operand))
    }

    fn usual(&self, operand: Operand, noise: Vec<f32>) -> Vec<f32> {
        self.op.usual(operand, noise)
    }

    fn record_layout(&self) -> Layout {
        self.op.record_layout()
    }

    fn kernels(&self) -> Kernels<'_> {
        let names: Vec<&'static str> = self.op.kernels().iter().map(BoundKernel::name).collect();
        Kernels::new(names.into_iter().filter_map(|name| self.kernel(name).ok()))
    }

    fn kernel(&self, name: &str) -> Result<Box<dyn BoundKernel + '_>> {
        Ok(Box::new(FollowedKernel { op: self, kernel: self.op.kernel(name)? }))
    }
}
