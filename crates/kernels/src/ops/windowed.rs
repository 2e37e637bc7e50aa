//! A base for convolutions of feature maps, whose problem is a [`Convolution`] alone: such an op says its kernels, the shape of its
//! weights, its oracle and what the CPU computes, and all else is written here once.

use super::convolution::Convolution;
use super::definition::Definition;
use super::halves::{self, Reach, Reaches};
use super::kernel::Kernel;
use super::op::Op;
use super::operands::{OperandInfo, Operands};
use super::operator::Options;
use super::plan::Choice;
use super::reference::{Reference, Sum};
use super::row_place::RowPlace;
use super::spec::{self, Params, extent};
use super::{expected, problem};
use crate::cpu::shelf::Shelf;
use crate::cpu::{CpuKernel, check_len, input};
use crate::dtype::Precision;
use crate::emit::{Binding, Epilogue, Operand, Residual};
use crate::error::Result;
use crate::layout::{Form, Layout};
use crate::shape::Shape;
use std::marker::PhantomData;

/// The convolution of concrete shapes whose options are `O`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Windowed<O>(pub Convolution, PhantomData<O>);

impl<O> Windowed<O> {
    pub(super) const fn of(problem: Convolution) -> Self {
        Windowed(problem, PhantomData)
    }

    /// The convolution without activation and residual.
    #[must_use]
    pub const fn plain(&self) -> Self {
        Windowed::of(self.0.plain())
    }

    /// The convolution of the same map in a value of its own.
    fn packed(&self) -> Self {
        Windowed::of(Convolution { rows: None, ..self.0 })
    }

    /// The shapes and options.
    pub const fn convolution(&self) -> &Convolution {
        &self.0
    }
}

/// A convolution of a map within a value of rows, on the CPU.
#[derive(Debug)]
struct InRows {
    op: &'static str,
    input: Shape,
    place: RowPlace,
    packed: Box<dyn CpuKernel>,
}

impl CpuKernel for InRows {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let src = input(self.op, inputs, Operand::Src)?;
        check_len(self.op, "src", src.len(), self.place.elements)?;
        let map = self.place.gathered(self.input, src);
        let packed = inputs.iter().map(|&(operand, values)| match operand {
            Operand::Src => (operand, &map[..]),
            _ => (operand, values),
        });
        self.packed.run(&packed.collect::<Vec<_>>(), outputs)
    }
}

/// The options of a convolution: what differs from op to op. The functions without a comment are those of [`Definition`].
pub(super) trait ConvolutionOptions: Options + Copy {
    const SHARE: u64 = 1;
    const MIXES_CHANNELS: bool = true;

    /// Whether a kernel can have its feature maps in images.
    const HAS_IMAGES: bool = true;

    fn kernels() -> &'static [&'static dyn Kernel<Windowed<Self>>];

    /// The op for these shapes, a bias if the first of `extras` says so, and a residual.
    fn op(
        &self,
        shapes: [Shape; 2],
        extras: (bool, Residual),
        precision: Precision,
    ) -> Result<Windowed<Self>>;

    /// The shape of its weights.
    fn weights(problem: &Convolution) -> Shape;

    /// What the problem's key says of output channels and groups.
    fn channels(problem: &Convolution) -> String {
        format!("o{}", problem.output.c)
    }

    fn problem_key(problem: &Convolution) -> String {
        problem::convolution(problem, &Self::channels(problem))
    }

    fn flops(problem: &Convolution) -> u64 {
        problem.flops()
    }

    /// The most terms of a sum, without the bias.
    fn terms(problem: &Convolution) -> usize {
        problem.terms()
    }

    fn params(_problem: &Convolution) -> Params {
        Vec::new()
    }

    fn pack(_problem: &Convolution, _choice: &Choice, _operand: Operand, data: &[f32]) -> Vec<f32> {
        data.to_vec()
    }

    /// The sums of operands that were checked, in f64.
    fn oracle(op: &Windowed<Self>, operands: &Operands<'_>) -> Sum;

    fn cpu(op: &Windowed<Self>, constants: &Operands<'_>, shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>>;

    fn reach(problem: &Convolution, inputs: &Reaches<'_>, constants: &Operands<'_>) -> Reach {
        halves::convolved(problem, false, inputs, constants)
    }

    fn stack(_op: &Windowed<Self>, _parts: &[&dyn Op], _multiple: usize) -> Option<Windowed<Self>> {
        None
    }
}

impl<O: ConvolutionOptions> Definition for Windowed<O> {
    const NAME: &'static str = O::NAME;
    const HALVES: bool = true;
    const SHARE: u64 = O::SHARE;
    const MIXES_CHANNELS: bool = O::MIXES_CHANNELS;
    const CALLS_FUNCTION: bool = true;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        O::kernels()
    }

    fn packing(&self) -> Option<String> {
        Some(self.0.packing())
    }

    fn problem_key(&self) -> String {
        let place = self.0.rows.map_or_else(String::new, |place| place.key());
        O::problem_key(&self.0) + &place
    }

    fn precision(&self) -> Precision {
        self.0.precision
    }

    fn flops(&self) -> u64 {
        O::flops(&self.0)
    }

    fn dst_depth(&self) -> u32 {
        extent(self.0.output.slices())
    }

    fn operands(&self) -> Vec<OperandInfo> {
        self.0.operands(O::weights(&self.0))
    }

    fn maps(&self) -> Option<[Shape; 2]> {
        (O::HAS_IMAGES && self.0.rows.is_none()).then_some([self.0.input, self.0.output])
    }

    /// Rows are of whole vec4s of channels.
    fn bindings(&self, choice: &Choice) -> Vec<Binding> {
        let of_slices = Choice { layout: Layout::C4, ..*choice };
        let packed = self.packed();
        spec::bindings(&packed, if self.0.rows.is_some() { &of_slices } else { choice })
    }

    fn params(&self, _choice: &Choice) -> Params {
        O::params(&self.0)
    }

    fn pack(&self, choice: &Choice, operand: Operand, data: &[f32]) -> Vec<f32> {
        O::pack(&self.0, choice, operand, data)
    }

    fn epilogue(&self) -> Epilogue {
        self.0.epilogue
    }

    fn form(&self, _operand: Operand, choice: &Choice) -> Form {
        if self.0.rows.is_some() { Form::Rows } else { choice.layout.form() }
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        if let Some(place) = self.0.rows {
            return self.packed().oracle(&place.packed(self.0.input, operands));
        }
        Reference::Sum(O::oracle(self, operands))
    }

    fn expected(&self, operands: &Operands<'_>) -> Result<Reference> {
        if let Some(place) = self.0.rows {
            return self.packed().expected(&place.packed(self.0.input, operands));
        }
        expected::of_sum(self, &self.plain(), O::terms(&self.0), &self.0.epilogue, operands)
    }

    fn cpu(&self, constants: &Operands<'_>, shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>> {
        if let Some(place) = self.0.rows {
            let (input, packed) = (self.0.input, O::cpu(&self.packed(), constants, shelf)?);
            return Ok(Box::new(InRows { op: O::NAME, input, place, packed }));
        }
        O::cpu(self, constants, shelf)
    }

    fn reach(&self, inputs: &Reaches<'_>, constants: &Operands<'_>) -> Reach {
        O::reach(&self.0, inputs, constants)
    }

    fn stack(&self, parts: &[&dyn Op], multiple: usize) -> Option<Self> {
        O::stack(self, parts, multiple)
    }
}
