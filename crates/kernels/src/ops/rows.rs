//! A base for ops of rows of words without packed constants, whose only or first kernel has an invocation for each
//! result or line: such an op says its formula, text, oracle and what the CPU computes, and all else is written here once.

use super::definition::Definition;
use super::kernel::{Constants, Kernel, Offer, Ordinary, VariantEntry, offers};
use super::loops::OpNest;
use super::op::Op;
use super::operands::{OperandInfo, Operands, Role};
use super::plan::Choice;
use super::reference::Reference;
use super::spec::{Params, bindings_as, extent};
use crate::cpu::shelf::Shelf;
use crate::cpu::{CpuKernel, check_len, input, output};
use crate::dtype::{DType, Precision};
use crate::emit::{Binding, Body, Element, Operand, Value};
use crate::error::Result;
use crate::layout::Layout;
use crate::limits::Limits;
use crate::shape::Shape;
use std::fmt;
use std::sync::Arc;

/// Invocations of a line: 65535 work-groups, the most along an axis in WebGPU, reach 2^31 elements.
pub(super) const LINE: usize = 65536;

/// The grid of `count` invocations in lines.
pub(super) fn lines(count: usize) -> [u32; 3] {
    [extent(count.min(LINE)), extent(count.div_ceil(LINE)), 1]
}

/// The constant by which a text knows its lines.
pub(super) fn line_width() -> (&'static str, Value) {
    ("WIDTH", Value::U32(extent(LINE)))
}

/// What a problem's key says of words that are not f32.
pub(super) fn word_key(word: DType) -> String {
    if word == DType::F32 { String::new() } else { format!(" {word}") }
}

/// How a text numbers the type of words: 0 is f32, 1 and 2 are signed and unsigned integers.
pub(super) fn word_number(word: DType) -> Value {
    Value::U32(match word {
        DType::U32 => 2,
        DType::I32 | DType::I64 => 1,
        _ => 0,
    })
}

/// Why integers of 64 bits are not computed on a device.
pub(super) fn wide_obstacle(word: DType) -> Option<String> {
    (word == DType::I64).then(|| "integers of 64 bits, a device has 32".to_owned())
}

/// An op of rows.
pub(super) trait RowsOp: fmt::Debug + Clone + Send + Sync + 'static {
    /// The op's name: that of its folders.
    const NAME: &'static str;

    /// The name of its kernel.
    const KERNEL: &'static str = "rows";

    /// The text of its kernel, in WGSL, whose invocations are in lines of `WIDTH`; of an op that is a nest of loops none.
    const TEXT: &'static str = "";

    /// The layouts that a choice of its kernel may name: rows, or C4 where the op is asked for by no other layout.
    const LAYOUTS: &'static [Layout] = &[Layout::Nhwc];

    /// Why its kernels are not measured.
    const UNTUNABLE: &'static str = "it has one kernel";

    /// Its kernel, and others that it has.
    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&Rows]
    }

    /// Its kernel's tile, where it is offered.
    fn offers(&self, _limits: &Limits) -> Vec<Offer> {
        offers(0, [[1, 1, 1]])
    }

    /// The problem in one line of words ([`Op::problem_key`]).
    fn problem_key(&self) -> String;

    /// What it reads, and the extents.
    fn inputs(&self) -> Vec<(Operand, Shape)>;

    /// The extents of what it writes.
    fn output(&self) -> Shape;

    /// What it does with what it writes.
    fn output_role(&self) -> Role {
        Role::Output
    }

    /// Numbers as `operand` usually has them, made of `noise` ([`Op::usual`]).
    fn usual(&self, _operand: Operand, noise: Vec<f32>) -> Vec<f32> {
        noise
    }

    /// The op that changes what it is given as the operand with it, if there is one ([`Op::in_place`]).
    fn in_place(&self) -> Option<(Arc<dyn Op>, Operand)> {
        None
    }

    /// Whether its kernel may compute the input `operand` where it would load it.
    fn takes_prologue(&self, _operand: Operand) -> bool {
        false
    }

    /// Floating-point operations of one run ([`Op::flops`]).
    fn flops(&self) -> u64 {
        0
    }

    /// Invocations of its kernel.
    fn invocations(&self) -> usize {
        self.output().elements()
    }

    /// Storage and arithmetic. Rows are of whole words unless the op says otherwise: an index is exact.
    fn precision(&self) -> Precision {
        Precision::F32
    }

    /// The type of the words of `operand`.
    fn dtype(&self, _operand: Operand) -> DType {
        DType::F32
    }

    /// The type in which its kernel has `operand`: halves where the op stores those.
    fn stored(&self, operand: Operand) -> DType {
        self.dtype(operand)
    }

    /// Whether its kernel takes `operand` in vec4s.
    fn is_wide(&self, _operand: Operand) -> bool {
        false
    }

    /// The scalars that its kernel takes.
    fn params(&self) -> Params {
        Params::new()
    }

    /// The constants of its text, but for `WIDTH`.
    fn constants(&self) -> Constants {
        Vec::new()
    }

    /// The statements of its text, where that leaves them open.
    fn body(&self) -> Body {
        Body::default()
    }

    /// What it computes, as a nest of loops ([`Op::nest`]).
    fn nest(&self) -> Option<OpNest> {
        None
    }

    /// The result of operands that were checked, with its bound.
    fn oracle(&self, operands: &Operands<'_>) -> Reference;

    /// The result on the CPU, of inputs of the right lengths in the order of [`RowsOp::inputs`], in words.
    fn compute(&self, inputs: &[&[f32]], dst: &mut [f32]);
}

impl<O: RowsOp> Definition for O {
    const NAME: &'static str = O::NAME;
    const ROWS: bool = true;
    const UNTUNABLE: Option<&'static str> = Some(O::UNTUNABLE);

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        <O as RowsOp>::kernels()
    }

    fn problem_key(&self) -> String {
        RowsOp::problem_key(self)
    }

    fn precision(&self) -> Precision {
        RowsOp::precision(self)
    }

    fn flops(&self) -> u64 {
        RowsOp::flops(self)
    }

    fn dst_depth(&self) -> u32 {
        1
    }

    fn operands(&self) -> Vec<OperandInfo> {
        let inputs = self.inputs().into_iter();
        let inputs = inputs.map(|(operand, shape)| OperandInfo::new(operand, shape, Role::Input));
        let infos = inputs.chain([OperandInfo::new(Operand::Dst, self.output(), self.output_role())]);
        infos.map(|info| info.of(self.dtype(info.operand))).collect()
    }

    fn nest(&self) -> Option<OpNest> {
        RowsOp::nest(self)
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        RowsOp::oracle(self, operands)
    }

    fn cpu(&self, _constants: &Operands<'_>, _shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>> {
        Ok(Box::new(OnCpu(self.clone())))
    }

    fn usual(&self, operand: Operand, noise: Vec<f32>) -> Vec<f32> {
        RowsOp::usual(self, operand, noise)
    }

    fn in_place(&self) -> Option<(Arc<dyn Op>, Operand)> {
        RowsOp::in_place(self)
    }
}

/// The kernel with an invocation for each result or line.
#[derive(Debug)]
pub(super) struct Rows;

impl<O: RowsOp> Kernel<O> for Rows {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl(O::KERNEL, O::TEXT)
            .with_layouts(O::LAYOUTS)
            .listed_as(Layout::Nhwc)
            .with_ordinary(Ordinary::Size([64, 1, 1]))
    }

    fn offers(&self, op: &O, limits: &Limits) -> Vec<Offer> {
        op.offers(limits)
    }

    fn takes_prologue(&self, op: &O, operand: Operand, _choice: &Choice) -> bool {
        op.takes_prologue(operand)
    }

    fn grid(&self, op: &O, _tile: [u32; 3]) -> [u32; 3] {
        lines(op.invocations())
    }

    fn obstacle(&self, op: &O, _limits: &Limits) -> Option<String> {
        Definition::operands(op).into_iter().find_map(|info| wide_obstacle(info.dtype))
    }

    fn bindings(&self, op: &O, _choice: &Choice) -> Vec<Binding> {
        bindings_as(op, |info| match op.is_wide(info.operand) {
            true => Element::Vec4(op.stored(info.operand)),
            false => Element::Scalar(op.stored(info.operand)),
        })
    }

    fn params(&self, op: &O, _choice: &Choice) -> Params {
        RowsOp::params(op)
    }

    fn body(&self, op: &O, _choice: &Choice) -> Body {
        op.body()
    }

    fn constants(&self, op: &O, _choice: &Choice, _limits: &Limits) -> Constants {
        [vec![line_width()], op.constants()].concat()
    }
}

/// The op on the CPU.
#[derive(Debug)]
struct OnCpu<O>(O);

impl<O: RowsOp> CpuKernel for OnCpu<O> {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let mut sources = Vec::new();
        for (operand, shape) in self.0.inputs() {
            let source = input(O::NAME, inputs, operand)?;
            let words = shape.elements() * self.0.dtype(operand).words();
            check_len(O::NAME, operand.name(), source.len(), words)?;
            sources.push(source);
        }
        let dst = output(O::NAME, outputs, Operand::Dst)?;
        let words = self.0.output().elements() * self.0.dtype(Operand::Dst).words();
        check_len(O::NAME, "dst", dst.len(), words)?;
        self.0.compute(&sources, dst);
        Ok(())
    }
}
