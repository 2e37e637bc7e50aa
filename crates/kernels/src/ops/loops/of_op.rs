//! The kernels of a nest as those of an op that computes one.

use super::written::LastText;
use super::{LoopsOp, OpNest, OperandSet, flat, rows};
use crate::dtype::{DType, Precision};
use crate::emit::{Binding, Body, Element, Epilogue, Operand};
use crate::layout::Layout;
use crate::limits::Limits;
use crate::ops::definition::Definition;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry};
use crate::ops::operands::Role;
use crate::ops::plan::Choice;
use crate::ops::registers::Registers;
use crate::ops::rows::wide_obstacle;
use crate::ops::spec::Params;
use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// A kernel of a nest, for an op that is one ([`Definition::nest_of_kernels`]).
#[derive(Debug)]
pub(in crate::ops) struct AsNest {
    name: &'static str,
    kernel: &'static dyn Kernel<LoopsOp>,
    /// Whether its inputs and results are feature maps in slices of four channels.
    in_maps: bool,
}

impl AsNest {
    /// `rows`: an element of the result, or four of them, per invocation, of an op that reduces nothing, or axes of one place.
    pub(in crate::ops) const ELEMENTS: AsNest = AsNest { name: "rows", kernel: &flat::Flat, in_maps: false };
    /// `group`: rows of an op that reduces them, each by one or several invocations of a work-group.
    pub(in crate::ops) const REDUCTIONS: AsNest =
        AsNest { name: "group", kernel: &rows::Rows, in_maps: false };
    /// `maps`: an element of a feature map, or four channels of a pixel, per invocation.
    pub(in crate::ops) const ELEMENTS_OF_MAPS: AsNest =
        AsNest { name: "maps", kernel: &flat::Flat, in_maps: true };
    /// `maps_group`: what is reduced in feature maps, four channels of it together.
    pub(in crate::ops) const REDUCTIONS_OF_MAPS: AsNest =
        AsNest { name: "maps_group", kernel: &rows::Rows, in_maps: true };

    /// What `of` gives of the op as a nest, if it is one.
    fn with<O: Definition + PartialEq + Hash, T>(
        &self,
        op: &O,
        of: impl FnOnce(&dyn Kernel<LoopsOp>, &LoopsOp) -> T,
    ) -> Option<T> {
        let mut hasher = DefaultHasher::new();
        (O::NAME, self.in_maps).hash(&mut hasher);
        op.hash(&mut hasher);
        let key = hasher.finish();
        let found = KNOWN.with_borrow(|known| {
            let own = known.get(&key)?;
            let is_it = own.in_maps == self.in_maps && own.op.downcast_ref() == Some(op);
            is_it.then(|| own.loops.clone())
        });
        let loops = found.unwrap_or_else(|| {
            let loops = self.loops(op);
            let own = Known { in_maps: self.in_maps, op: Box::new(op.clone()), loops: loops.clone() };
            KNOWN.with_borrow_mut(|known| {
                if known.len() >= MOST_KNOWN {
                    known.clear();
                }
                known.insert(key, own);
            });
            loops
        });
        Some(of(self.kernel, &*loops?))
    }

    /// The op as a nest, with its operands as its kernels have them, if it is one.
    fn loops<O: Definition>(&self, op: &O) -> Option<Arc<LoopsOp>> {
        let OpNest { nest, operands, mut halves } = op.nest_of_kernels()?;
        let mut maps = OperandSet::NONE;
        if self.in_maps {
            // All maps are stored alike.
            maps = OperandSet { sources: inputs(op, &operands), results: 1 };
            halves = maps;
        }
        let loops = LoopsOp::new(Arc::new(nest), halves, maps, op.precision()).ok()?;
        Some(Arc::new(LoopsOp { sources: operands, text: LastText::default(), ..loops }))
    }
}

/// The most ops whose nests a thread keeps; with one more it begins anew. Each pass over a network's units asks for them again.
const MOST_KNOWN: usize = 512;

thread_local! {
    static KNOWN: RefCell<HashMap<u64, Known>> = RefCell::new(HashMap::new());
}

/// What an op is as a nest.
struct Known {
    in_maps: bool,
    op: Box<dyn Any>,
    loops: Option<Arc<LoopsOp>>,
}

/// Which of `operands` are inputs of an op, and no constants that kernels have in rows.
fn inputs<O: Definition>(op: &O, operands: &[Operand]) -> u32 {
    let infos = op.operands();
    let is_input = |own: &Operand| infos.iter().any(|info| info.operand == *own && info.role == Role::Input);
    operands.iter().enumerate().filter(|(_, own)| is_input(own)).fold(0, |set, (place, _)| set | 1 << place)
}

impl<O: Definition + PartialEq + Hash> Kernel<O> for AsNest {
    fn entry(&self) -> VariantEntry {
        let entry = VariantEntry { name: self.name, ..self.kernel.entry() };
        if self.in_maps { entry.with_layouts(&[Layout::C4]) } else { entry }
    }

    fn offers(&self, op: &O, limits: &Limits) -> Vec<Offer> {
        if self.in_maps && op.obstacle_in_maps(limits).is_some() {
            return Vec::new();
        }
        self.with(op, |kernel, op| kernel.offers(op, limits)).unwrap_or_default()
    }

    fn grid(&self, op: &O, tile: [u32; 3]) -> [u32; 3] {
        self.with(op, |kernel, op| kernel.grid(op, tile)).unwrap_or([1; 3])
    }

    fn obstacle(&self, op: &O, limits: &Limits) -> Option<String> {
        let operands = op.operands();
        if let Some(obstacle) = operands.iter().find_map(|info| wide_obstacle(info.dtype)) {
            return Some(obstacle);
        }
        if !self.in_maps {
            return None;
        }
        if let Some(obstacle) = op.obstacle_in_maps(limits) {
            return Some(obstacle);
        }
        let one_by_one = |kernel: &dyn Kernel<LoopsOp>, op: &LoopsOp| {
            let bindings = kernel.bindings(op, &Choice::new(self.name, [1; 3], [1; 3]));
            bindings.iter().any(|own| own.element == Element::Scalar(DType::F16))
        };
        match self.with(op, one_by_one) {
            None => Some("no nest of feature maps".to_owned()),
            Some(true) if !limits.has_half_rows() => {
                Some("halves one by one, which the device does not have".to_owned())
            }
            Some(_) => None,
        }
    }

    fn choice_obstacle(&self, op: &O, choice: &Choice, limits: &Limits) -> Option<String> {
        self.with(op, |kernel, op| kernel.choice_obstacle(op, choice, limits))?
    }

    fn work_groups(&self, op: &O, tile: [u32; 3]) -> Vec<[u32; 3]> {
        self.with(op, |kernel, op| kernel.work_groups(op, tile)).unwrap_or_default()
    }

    fn bindings(&self, op: &O, choice: &Choice) -> Vec<Binding> {
        self.with(op, |kernel, op| kernel.bindings(op, choice)).unwrap_or_default()
    }

    fn params(&self, op: &O, choice: &Choice) -> Params {
        self.with(op, |kernel, op| kernel.params(op, choice)).unwrap_or_default()
    }

    fn constants(&self, op: &O, choice: &Choice, limits: &Limits) -> Constants {
        self.with(op, |kernel, op| kernel.constants(op, choice, limits)).unwrap_or_default()
    }

    fn body(&self, op: &O, choice: &Choice) -> Body {
        self.with(op, |kernel, op| kernel.body(op, choice)).unwrap_or_default()
    }

    /// What the op does with its sums is part of the nest.
    fn epilogue(&self, _op: &O) -> Epilogue {
        Epilogue::default()
    }

    fn registers(&self, op: &O, choice: &Choice, limits: &Limits) -> Option<Registers> {
        self.with(op, |kernel, op| kernel.registers(op, choice, limits))?
    }

    fn precision(&self, op: &O) -> Option<Precision> {
        self.with(op, |kernel, op| kernel.precision(op))?
    }
}
