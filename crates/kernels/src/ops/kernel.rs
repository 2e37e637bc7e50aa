//! What a kernel of an op is: one file, one text, one place in the list of its op.

use super::cost;
use super::definition::Definition;
use super::effort::Effort;
use super::operands::Operands;
use super::plan::Choice;
use super::reference::Reference;
use super::registers::Registers;
use super::spec::Params;
use crate::dtype::Precision;
use crate::emit::{Binding, Body, Dialect, Epilogue, Operand, Template, Value};
use crate::error::Result;
use crate::layout::{Form, Layout};
use crate::limits::Limits;
use crate::limits::machine::Machine;
use std::fmt;

/// A kernel of an op, whatever the op's shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VariantEntry {
    /// The name of its text.
    pub name: &'static str,
    /// Its text.
    pub template: Template,
    /// The only language that has it, and why.
    pub solo: Option<(Dialect, &'static str)>,
    /// The layouts that the op's values may have: C4 and images for feature maps, C4 first; [`Layout::Nhwc`] for rows.
    pub layouts: &'static [Layout],
    /// The layout that distinguishes it from the op's other kernels in a list of candidates.
    pub place: Layout,
    /// The rule for its work-group, where it is made for none ([`BoundKernel::work_groups`](super::BoundKernel::work_groups)).
    pub ordinary: Ordinary,
    /// Whether its work-group is a row of as many invocations as its tile's first extent.
    pub of_tile: bool,
    /// Whether the order of the op's kernels and tiles was measured: then another has to be estimated to be much shorter to
    /// take the place of the first. Otherwise the one with the least estimate is taken.
    pub ordered: bool,
    /// Whether its buffers of vec4s of halves are typed as such in every precision.
    pub native_half: bool,
    /// Whether it sums other terms than the op's own, as Winograd's do.
    pub sums_otherwise: bool,
}

/// A text that no page can use, and none downloads.
const fn outside_pages(text: &'static str) -> &'static str {
    if cfg!(target_family = "wasm") { "" } else { text }
}

impl VariantEntry {
    /// A kernel of values in C4, and what most are in the rest.
    const fn new(name: &'static str, template: Template, solo: Option<(Dialect, &'static str)>) -> Self {
        VariantEntry {
            name,
            template,
            solo,
            layouts: &[Layout::C4],
            place: Layout::C4,
            ordinary: Ordinary::Workload,
            of_tile: false,
            ordered: true,
            native_half: false,
            sums_otherwise: false,
        }
    }

    /// A kernel in WGSL, from which OpenCL C is printed.
    pub(super) const fn wgsl(name: &'static str, text: &'static str) -> Self {
        VariantEntry::new(name, Template { dialect: Dialect::Wgsl, text }, None)
    }

    /// A kernel in WGSL with images, which only OpenCL has here.
    pub(super) const fn image(name: &'static str, text: &'static str) -> Self {
        VariantEntry::wgsl(name, outside_pages(text)).only(Dialect::OpenClC, "WGSL has no images here")
    }

    /// A kernel in WGSL with what wgpu offers on Vulkan and not in pages, and why it is not in OpenCL C.
    pub(super) const fn vulkan(name: &'static str, text: &'static str, why: &'static str) -> Self {
        VariantEntry::wgsl(name, outside_pages(text)).only(Dialect::Wgsl, why)
    }

    /// A kernel in OpenCL C, and why it is not in WGSL.
    pub(super) const fn opencl(name: &'static str, text: &'static str, why: &'static str) -> Self {
        let template = Template { dialect: Dialect::OpenClC, text: outside_pages(text) };
        VariantEntry::new(name, template, Some((Dialect::OpenClC, why)))
    }

    /// The kernel for devices that take `dialect` alone.
    pub(super) const fn only(self, dialect: Dialect, why: &'static str) -> Self {
        VariantEntry { solo: Some((dialect, why)), ..self }
    }

    /// The kernel with values in these layouts, of which it is listed as the first.
    pub(super) const fn with_layouts(self, layouts: &'static [Layout]) -> Self {
        let place = if layouts.is_empty() { self.place } else { layouts[0] };
        VariantEntry { layouts, place, ..self }
    }

    /// The kernel with values in rows.
    pub(super) const fn in_rows(self) -> Self {
        self.with_layouts(&[Layout::Nhwc])
    }

    /// The kernel with feature maps in buffers or images.
    pub(super) const fn in_maps(self) -> Self {
        self.with_layouts(&[Layout::C4, Layout::Image2d])
    }

    /// The kernel with `place` in a list of candidates.
    pub(super) const fn listed_as(self, place: Layout) -> Self {
        VariantEntry { place, ..self }
    }

    /// The kernel with a work-group by `ordinary`.
    pub(super) const fn with_ordinary(self, ordinary: Ordinary) -> Self {
        VariantEntry { ordinary, ..self }
    }

    /// The kernel with the work-group that its tile names.
    pub(super) const fn of_tile(self) -> Self {
        VariantEntry { of_tile: true, ..self }
    }

    /// The kernel as one that is taken where its estimate is the least.
    pub(super) const fn by_estimate(self) -> Self {
        VariantEntry { ordered: false, ..self }
    }

    /// The kernel with vec4s of halves in every precision.
    pub(super) const fn with_native_half(self) -> Self {
        VariantEntry { native_half: true, ..self }
    }

    /// The kernel as one that sums other terms than the op's own.
    pub(super) const fn with_other_sums(self) -> Self {
        VariantEntry { sums_otherwise: true, ..self }
    }

    /// Whether the kernel exists in `dialect`.
    pub fn speaks(&self, dialect: Dialect) -> bool {
        self.solo.is_none_or(|(only, _)| only == dialect)
    }
}

/// Named constants of a kernel's text.
pub(crate) type Constants = Vec<(&'static str, Value)>;

/// A tile that a kernel offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// Its place among all that the op's kernels offer, the least first. Equal ones follow each other
    /// as the kernels do in their op's list.
    pub preference: u32,
    /// Outputs per invocation.
    pub tile: [u32; 3],
}

/// `tiles` with one preference.
pub(crate) fn offers(preference: u32, tiles: impl IntoIterator<Item = [u32; 3]>) -> Vec<Offer> {
    tiles.into_iter().map(|tile| Offer { preference, tile }).collect()
}

/// The work-groups of a kernel that is made for none in particular: a rule of another engine, or one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ordinary {
    /// TensorFlow Lite's table for convolutions, by slices of output channels.
    Convolution,
    /// TensorFlow Lite's table for convolutions whose grid is a row of pixels by slices: width and height folded into one axis.
    Folded,
    /// TensorFlow Lite's table for other kernels, by the grid's depth.
    Workload,
    /// This size.
    Size([u32; 3]),
}

/// A kernel of the op `O`.
pub(crate) trait Kernel<O: Definition>: fmt::Debug + Sync {
    /// What it is whatever the shapes.
    fn entry(&self) -> VariantEntry;

    /// The tiles that it offers for these shapes; none if it cannot serve them.
    fn offers(&self, op: &O, limits: &Limits) -> Vec<Offer>;

    /// Invocations along x, y and z that have work.
    fn grid(&self, op: &O, tile: [u32; 3]) -> [u32; 3];

    /// Why it cannot serve these shapes on such a device, if it cannot.
    fn obstacle(&self, _op: &O, _limits: &Limits) -> Option<String> {
        None
    }

    /// Why it cannot run as `choice`, whose tile it offers, if it cannot.
    fn choice_obstacle(&self, _op: &O, _choice: &Choice, _limits: &Limits) -> Option<String> {
        None
    }

    /// The work-groups that it is made for, the default first; empty if an ordinary one serves it.
    fn work_groups(&self, _op: &O, tile: [u32; 3]) -> Vec<[u32; 3]> {
        self.entry().of_tile.then_some([tile[0], 1, 1]).into_iter().collect()
    }

    /// In which form it reads or writes `operand`, which is no packed constant; `None` for the op's own.
    fn form(&self, _op: &O, _operand: Operand, _choice: &Choice) -> Option<Form> {
        None
    }

    /// The buffers and images that it takes.
    fn bindings(&self, op: &O, choice: &Choice) -> Vec<Binding> {
        op.bindings(choice)
    }

    /// The scalars that it takes.
    fn params(&self, op: &O, choice: &Choice) -> Params {
        op.params(choice)
    }

    /// The constants of its text; `choice` fits.
    fn constants(&self, op: &O, choice: &Choice, limits: &Limits) -> Constants;

    /// What it computes, where its text leaves that to the op.
    fn body(&self, _op: &O, _choice: &Choice) -> Body {
        Body::default()
    }

    /// What it computes in; `None` for the op's precision without matrix units.
    fn precision(&self, _op: &O) -> Option<Precision> {
        None
    }

    /// What its text does with a sum before it stores it, beside what its body says.
    fn epilogue(&self, op: &O) -> Epilogue {
        op.epilogue()
    }

    /// A constant operand as it reads it. `data`, in the op's public layout, has the right length.
    fn pack(&self, op: &O, choice: &Choice, operand: Operand, data: &[f32]) -> Vec<f32> {
        op.pack(choice, operand, data)
    }

    /// What `choice` asks of a device; `None` where it was not counted.
    fn effort(&self, _op: &O, _choice: &Choice, _limits: &Limits) -> Option<Effort> {
        None
    }

    /// About how many 32-bit registers an invocation of `choice` wants; `None` where that is not known.
    fn registers(&self, op: &O, choice: &Choice, limits: &Limits) -> Option<Registers> {
        self.effort(op, choice, limits).map(|effort| Registers::with_barriers(effort.registers))
    }

    /// How long `choice` takes on a GPU, in clocks of one of its units; `None` if that is not known. Kernels whose
    /// [`Kernel::effort`] was not counted may say it themselves.
    fn estimate(&self, op: &O, choice: &Choice, limits: &Limits) -> Option<f64> {
        let machine = Machine::of(limits)?;
        let effort = self.effort(op, choice, limits)?;
        (effort.local_bytes == 0 || machine.local_is_known).then(|| cost::clocks(&effort, &machine))
    }

    /// Whether a session that measured nothing may run it for speed's sake.
    fn untuned(&self, op: &O, limits: &Limits) -> bool {
        op.untuned(limits)
    }

    /// How many ordinary invocations keep a device as busy as those of `choice`.
    fn counted(&self, op: &O, choice: &Choice) -> u64 {
        self.grid(op, choice.tile).iter().map(|&extent| u64::from(extent)).product()
    }

    /// Whether its text may compute the input `operand` where it would load it ([`BoundKernel::takes_prologue`](super::BoundKernel::takes_prologue)).
    fn takes_prologue(&self, _op: &O, _operand: Operand, _choice: &Choice) -> bool {
        false
    }

    /// `reference` with the bound of its own sums, if it sums other terms. `operands` were checked.
    fn reference(&self, _op: &O, _operands: &Operands<'_>, reference: Reference) -> Result<Reference> {
        Ok(reference)
    }
}
