//! A kernel with the shapes of a problem: all that is asked of it before it is compiled.

use super::effort::Effort;
use super::kernel::{Offer, VariantEntry};
use super::operands::Operands;
use super::plan::{Choice, Launch};
use super::reference::Reference;
use crate::emit::Operand;
use crate::error::Result;
use crate::layout::{Form, Layout};
use crate::limits::Limits;
use crate::sorted;
use std::fmt;

/// The most buffers that a kernel binds: WebGPU has no more.
pub(super) const MAX_BUFFERS: usize = 8;

/// A kernel of an op of concrete shapes. Each choice that it is given is one of its own.
pub trait BoundKernel: fmt::Debug {
    /// What it is whatever the shapes.
    fn entry(&self) -> VariantEntry;

    /// Its name: that of its text, and a choice's variant.
    fn name(&self) -> &'static str {
        self.entry().name
    }

    /// Whether the op's values may have `layout`.
    fn serves(&self, layout: Layout) -> bool {
        self.entry().layouts.contains(&layout)
    }

    /// The tiles that it offers for these shapes, each with its place among all that the op's kernels offer; none
    /// if it cannot serve them. [`BoundKernel::fits`] says whether a device can run one.
    fn offers(&self, limits: &Limits) -> Vec<Offer>;

    /// The grid extents, in invocations, of a tile: what a work-group covers.
    fn grid(&self, tile: [u32; 3]) -> [u32; 3];

    /// The work-groups that it is made for, the default first; empty if the tables for ordinary kernels serve it.
    fn work_groups(&self, tile: [u32; 3]) -> Vec<[u32; 3]>;

    /// Slices of four output channels (columns, for a matrix): what the work-group tables are indexed by.
    fn dst_depth(&self) -> u32;

    /// In which form it reads or writes `operand`; `None` for constants, which are packed for it.
    fn form(&self, operand: Operand, choice: &Choice) -> Option<Form>;

    /// Where each input lies in the output as `choice` stores it, in elements (lanes beyond the channels
    /// included), if the output is the op's inputs one behind the other: then who writes an input may write it
    /// there, and no kernel runs.
    fn joins(&self, choice: &Choice) -> Option<Vec<(Operand, usize)>>;

    /// Whether a session that measured nothing may run it for speed's sake. Any kernel may be asked for by name,
    /// and tuned.
    fn untuned(&self, limits: &Limits) -> bool;

    /// How many ordinary invocations keep a device as busy as those of `choice`.
    fn counted(&self, choice: &Choice) -> u64;

    /// What `choice` asks of a device, as if it fitted; `None` where it was not counted.
    fn effort(&self, choice: &Choice, limits: &Limits) -> Option<Effort>;

    /// How long `choice` takes on a GPU, as if it fitted, in clocks of one of its units: one model (`ops/cost.rs`) makes it of
    /// what the kernel asks for and what is known of the device. `None` where either is not known.
    fn estimate(&self, choice: &Choice, limits: &Limits) -> Option<f64>;

    /// Whether `choice` can run on a device with these limits.
    ///
    /// # Errors
    /// [`Error::Reject`](crate::error::Error::Reject) with the broken constraint and its values.
    fn fits(&self, choice: &Choice, limits: &Limits) -> Result<()>;

    /// The text and launch of `choice`.
    ///
    /// # Errors
    /// If the choice does not fit ([`BoundKernel::fits`]).
    fn plan(&self, choice: &Choice, limits: &Limits) -> Result<Launch>;

    /// Lays out a constant operand (weights, bias, slope) as it reads it with `choice`, whose work-group makes no
    /// difference. `data` is in the op's public layout.
    ///
    /// # Errors
    /// If the op has no such operand.
    fn pack(&self, choice: &Choice, operand: Operand, data: &[f32]) -> Result<Vec<f32>>;

    /// Whether its text can call a function of what it is about to store, and of elements of the same places if it is to be `of_elements`.
    fn calls_function(&self, _of_elements: bool) -> bool {
        false
    }

    /// Whether its text may compute the input `operand` where it would load it, four elements at once as they lie, and takes less time for
    /// that than a launch.
    fn takes_prologue(&self, _operand: Operand, _choice: &Choice) -> bool {
        false
    }

    /// How many buffers it binds with `choice`.
    fn buffers(&self, _choice: &Choice) -> usize {
        0
    }

    /// `reference` with the bound of its own sums, if it sums other terms; as it is, for the others.
    ///
    /// # Errors
    /// If an operand is missing, not wanted, or of another length than the op says.
    fn reference(&self, operands: &Operands<'_>, reference: Reference) -> Result<Reference>;

    /// A choice of it with values in the first layout that it offers.
    fn choice(&self, tile: [u32; 3], work_group: [u32; 3]) -> Choice {
        let layout = self.entry().layouts.first().copied().unwrap_or(Layout::C4);
        Choice::new(self.name(), tile, work_group).with_layout(layout)
    }
}

/// The kernels of an op of concrete shapes, in the order of the op's list.
#[derive(Debug)]
pub struct Kernels<'a>(Vec<Box<dyn BoundKernel + 'a>>);

/// A kernel with a tile that it offers.
pub type Offered<'k> = (&'k dyn BoundKernel, [u32; 3]);

impl<'a> Kernels<'a> {
    pub(super) fn new(kernels: impl IntoIterator<Item = Box<dyn BoundKernel + 'a>>) -> Self {
        Kernels(kernels.into_iter().collect())
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = &dyn BoundKernel> {
        self.0.iter().map(|kernel| &**kernel as &dyn BoundKernel)
    }

    /// Every kernel with every tile that it offers on such a device, the default first.
    pub fn space(&self, limits: &Limits) -> Vec<Offered<'_>> {
        let mut offers = Vec::new();
        for kernel in self.iter() {
            offers.extend(kernel.offers(limits).into_iter().map(|offer| (offer, kernel)));
        }
        sorted::sort_by_key(&mut offers, |(offer, _)| offer.preference);
        offers.into_iter().map(|(offer, kernel)| (kernel, offer.tile)).collect()
    }

    /// Whether one of them offers a tile for values in `layout`.
    pub fn serve(&self, layout: Layout, limits: &Limits) -> bool {
        self.iter().any(|kernel| kernel.serves(layout) && !kernel.offers(limits).is_empty())
    }
}
