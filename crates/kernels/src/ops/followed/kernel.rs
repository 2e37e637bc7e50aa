//! A kernel of an op, which calls a function of what it is about to store.

use super::{FollowedOp, is_plain, operand};
use crate::dtype::DType;
use crate::emit::element::SCALARS;
use crate::emit::words::CHANNELS;
use crate::emit::{Access, Binding, Element, ElementFunction, Least, Operand, Param, Scalar};
use crate::error::Result;
use crate::layout::Form;
use crate::limits::Limits;
use crate::ops::bound::{BoundKernel, MAX_BUFFERS};
use crate::ops::effort::Effort;
use crate::ops::elementwise::Source;
use crate::ops::kernel::{Offer, VariantEntry};
use crate::ops::operands::Operands;
use crate::ops::plan::{Choice, Launch};
use crate::ops::reference::Reference;
use crate::ops::spec::{self, unsigned};

/// A kernel with the function.
#[derive(Debug)]
pub(super) struct FollowedKernel<'a> {
    pub(super) op: &'a FollowedOp,
    pub(super) kernel: Box<dyn BoundKernel + 'a>,
}

impl FollowedOp {
    /// The program as a function of a kernel's text.
    fn function(&self) -> ElementFunction {
        let (mut statements, mut calls) = (Vec::new(), Vec::new());
        let numbers = self.program.numbers();
        for (step, own) in self.program.steps().iter().enumerate() {
            let name = |source: &Source| match source {
                Source::Input(place) => format!("x{place}"),
                Source::Step(step) => format!("s{step}"),
                Source::Number(number) => {
                    let place = numbers.iter().position(|known| known == number).unwrap_or_default();
                    format!("vec4<f32>({})", SCALARS.get(place).copied().unwrap_or_default())
                }
            };
            let names: Vec<String> = own.arguments.iter().map(name).collect();
            let value = own.function.expression(&names, true, &mut calls);
            let last = step + 1 == self.program.steps().len();
            statements.push(match last {
                true => format!("return {value};"),
                false => format!("let s{step}: vec4<f32> = {value};"),
            });
        }
        let [channels, elements] = self.inputs().map(|places| places.map(operand).collect());
        ElementFunction { statements, calls, channels, elements, scalars: numbers.len() }
    }
}

impl FollowedKernel<'_> {
    /// Why it cannot call the function, if it cannot.
    fn obstacle(&self, choice: &Choice) -> Option<String> {
        let [channels, elements] = self.op.inputs();
        if !self.kernel.calls_function(!elements.is_empty()) {
            return Some("its text calls no such function of what it stores".to_owned());
        }
        let buffers = self.kernel.buffers(choice) + channels.len() + elements.len();
        (buffers > MAX_BUFFERS).then(|| format!("{buffers} buffers, wanted at most {MAX_BUFFERS}"))
    }
}

impl BoundKernel for FollowedKernel<'_> {
    fn entry(&self) -> VariantEntry {
        self.kernel.entry()
    }

    fn offers(&self, limits: &Limits) -> Vec<Offer> {
        match self.obstacle(&self.kernel.choice([1; 3], [1; 3])) {
            None => self.kernel.offers(limits),
            Some(_) => Vec::new(),
        }
    }

    fn grid(&self, tile: [u32; 3]) -> [u32; 3] {
        self.kernel.grid(tile)
    }

    fn work_groups(&self, tile: [u32; 3]) -> Vec<[u32; 3]> {
        self.kernel.work_groups(tile)
    }

    fn dst_depth(&self) -> u32 {
        self.kernel.dst_depth()
    }

    fn form(&self, operand: Operand, choice: &Choice) -> Option<Form> {
        let [channels, elements] = self.op.inputs();
        if channels.map(self::operand).any(|own| own == operand) {
            return None;
        }
        let is_element = elements.map(self::operand).any(|own| own == operand);
        let of = if is_element { self.op.result().ok()?.operand } else { operand };
        self.kernel.form(of, choice)
    }

    fn joins(&self, _choice: &Choice) -> Option<Vec<(Operand, usize)>> {
        None
    }

    fn untuned(&self, limits: &Limits) -> bool {
        self.kernel.untuned(limits)
    }

    fn counted(&self, choice: &Choice) -> u64 {
        self.kernel.counted(choice)
    }

    fn effort(&self, choice: &Choice, limits: &Limits) -> Option<Effort> {
        self.kernel.effort(choice, limits)
    }

    fn estimate(&self, choice: &Choice, limits: &Limits) -> Option<f64> {
        self.kernel.estimate(choice, limits)
    }

    fn fits(&self, choice: &Choice, limits: &Limits) -> Result<()> {
        match self.obstacle(choice) {
            None => self.kernel.fits(choice, limits),
            Some(obstacle) => spec::reject(self.op.op.name(), choice, obstacle),
        }
    }

    fn plan(&self, choice: &Choice, limits: &Limits) -> Result<Launch> {
        self.fits(choice, limits)?;
        let mut launch = self.kernel.plan(choice, limits)?;
        let result = self.op.result()?;
        let spec = &mut launch.spec;
        let bound = |of: Operand| spec.interface.bindings.iter().find(|own| own.operand == of).copied();
        let (bias, written) = (bound(Operand::Bias), bound(result.operand));
        let [channels, elements] = self.op.inputs();
        let like = |own: Option<Binding>| {
            move |place| Some(Binding { operand: operand(place), access: Access::Read, ..own? })
        };
        let vector = Binding::new(Operand::Bias, Element::Vec4(DType::F32), Access::Read);
        let bytes = 4 * result.map.c.next_multiple_of(4) as u64;
        let bias = bias.or(Some(Binding { least: Least::Bytes(bytes), ..vector }));
        let more: Vec<Binding> =
            channels.filter_map(like(bias)).chain(elements.filter_map(like(written))).collect();
        let at = spec.interface.bindings.iter().position(|own| own.operand == result.operand);
        let at = at.unwrap_or(spec.interface.bindings.len());
        spec.interface.bindings.splice(at..at, more);
        let mut scalar = |name: &'static str, value: Scalar| {
            spec.interface.params.push(Param { name, ty: value.ty() });
            launch.params.push(value);
        };
        for (name, number) in SCALARS.into_iter().zip(self.op.program.numbers()) {
            scalar(name, Scalar::F32(number.0));
        }
        // Lanes beyond the channels stay zero.
        let is_map = self.kernel.form(result.operand, choice).is_some_and(|form| !form.is_rows());
        let told = spec.interface.params.iter().any(|param| param.name == CHANNELS);
        if is_map && !told && !self.op.keeps_zero() && !result.map.c.is_multiple_of(4) {
            let value = unsigned(result.map.c);
            spec.interface.params.push(Param { name: CHANNELS, ty: value.ty() });
            launch.params.push(value);
        }
        launch.spec.function = Some(self.op.function());
        Ok(launch)
    }

    fn pack(&self, choice: &Choice, operand: Operand, data: &[f32]) -> Result<Vec<f32>> {
        let [mut channels, _] = self.op.inputs();
        let is_vector = channels.any(|place| self::operand(place) == operand);
        if is_vector && is_plain(&self.op.op.operands()) {
            let mut packed = data.to_vec();
            packed.resize(data.len().next_multiple_of(4), 0.0);
            return Ok(packed);
        }
        // Numbers of channels lie as a bias does.
        self.kernel.pack(choice, if is_vector { Operand::Bias } else { operand }, data)
    }

    fn reference(&self, _operands: &Operands<'_>, reference: Reference) -> Result<Reference> {
        Ok(reference)
    }
}
