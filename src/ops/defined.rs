//! What is made of a definition: the op, and its kernels with its shapes. What is the same for all ops and kernels
//! is written here once.

use super::bound::{BoundKernel, Kernels};
use super::definition::{Definition, computed};
use super::effort::Effort;
use super::halves::{Reach, Reaches};
use super::kernel::{Kernel, Offer, VariantEntry};
use super::op::{Answer, Op, Purpose, Sealed};
use super::operands::{self, OperandInfo, Operands, Role};
use super::plan::{Choice, Launch, check_grid, check_work_group, folded};
use super::reference::Reference;
use super::spec;
use super::stored::{channels, least};
use super::turns;
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dtype::{DType, Precision};
use crate::emit::{Binding, Dialect, Element, KernelSpec, Operand};
use crate::error::{Error, Result};
use crate::layout::{Form, Layout};
use crate::limits::Limits;
use crate::limits::faults::Launched;
use crate::shape::Shape;
use crate::sorted;
use std::any::Any;
use std::sync::Arc;

impl<O: Definition> Sealed for O {}

impl<O: Definition> Op for O {
    fn name(&self) -> &'static str {
        O::NAME
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn words(&self) -> Option<String> {
        Some(format!("{self:?}"))
    }

    fn packing(&self) -> Option<String> {
        Definition::packing(self)
    }

    fn problem_key(&self) -> String {
        Definition::problem_key(self)
    }

    fn operands(&self) -> Vec<OperandInfo> {
        Definition::operands(self)
    }

    fn precision(&self) -> Precision {
        Definition::precision(self)
    }

    fn flops(&self) -> u64 {
        Definition::flops(self)
    }

    fn reference(&self, operands: &Operands<'_>, answer: Answer<'_>) -> Result<Reference> {
        operands::check(O::NAME, &Definition::operands(self), operands)?;
        computed(O::NAME, || match answer {
            Answer::Exact => Ok(self.oracle(operands)),
            Answer::Rows(rows) => Ok(self.oracle_rows(operands, rows)),
            Answer::Quick => self.expected(operands),
        })
    }

    fn cpu_on(&self, constants: &Operands<'_>, shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>> {
        computed(O::NAME, || Definition::cpu(self, constants, shelf))
    }

    fn obstacle(&self, purpose: Purpose) -> Option<&'static str> {
        match purpose {
            Purpose::Cpu => self.cpu_obstacle(),
            Purpose::Device => None,
            Purpose::Tuning => self.untunable(),
        }
    }

    fn halves(&self) -> bool {
        Definition::halves(self)
    }

    fn reach(&self, inputs: &Reaches<'_>, constants: &Operands<'_>) -> Reach {
        Definition::reach(self, inputs, constants)
    }

    fn is_singular(&self, inputs: &Reaches<'_>) -> bool {
        Definition::is_singular(self, inputs)
    }

    fn stack(&self, parts: &[&dyn Op], multiple: usize) -> Option<Arc<dyn Op>> {
        Some(Arc::new(Definition::stack(self, parts, multiple)?))
    }

    fn usual(&self, operand: Operand, noise: Vec<f32>) -> Vec<f32> {
        Definition::usual(self, operand, noise)
    }

    fn in_place(&self) -> Option<(Arc<dyn Op>, Operand)> {
        Definition::in_place(self)
    }

    fn record_layout(&self) -> Layout {
        O::record_layout()
    }

    fn kernels(&self) -> Kernels<'_> {
        Kernels::new(O::kernels().iter().map(|&kernel| Bound::boxed(self, kernel)))
    }

    fn kernel(&self, name: &str) -> Result<Box<dyn BoundKernel + '_>> {
        let found = O::kernels().iter().copied().find(|kernel| kernel.entry().name == name);
        let kernel = found.ok_or_else(|| Error::Reject {
            kernel: format!("{}_{name}", O::NAME),
            reason: format!("{} has no such kernel", O::NAME),
        })?;
        Ok(Bound::boxed(self, kernel))
    }
}

/// A kernel and the problem whose shapes it has.
#[derive(Debug)]
pub(super) struct Bound<'a, O: Definition> {
    pub(super) op: &'a O,
    pub(super) kernel: &'static dyn Kernel<O>,
}

impl<'a, O: Definition> Bound<'a, O> {
    fn boxed(op: &'a O, kernel: &'static dyn Kernel<O>) -> Box<dyn BoundKernel + 'a> {
        Box::new(Bound { op, kernel })
    }

    /// Whether nothing but registers keeps `choice` from the device.
    pub(super) fn fits_otherwise(&self, choice: &Choice, limits: &Limits) -> bool {
        fits(self, choice, limits).is_ok()
    }

    fn info(&self, operand: Operand) -> Option<OperandInfo> {
        Definition::operands(self.op).into_iter().find(|info| info.operand == operand)
    }

    /// Halves are bound one by one only where the language has them.
    fn scalar_obstacle(&self, limits: &Limits) -> Option<String> {
        if limits.dialect != Dialect::Wgsl || limits.native_half {
            return None;
        }
        let bindings = self.kernel.bindings(self.op, &self.choice([1; 3], [1; 3]));
        let scalar = |binding: &Binding| binding.element == Element::Scalar(DType::F16);
        bindings
            .iter()
            .any(scalar)
            .then(|| "single halves in a buffer need native half arithmetic".to_owned())
    }

    /// The form of an operand that is not packed: rows are of halves where the kernel binds them as such.
    fn stored(&self, operand: Operand, choice: &Choice) -> Form {
        let own = self.kernel.form(self.op, operand, choice);
        let form = own.unwrap_or_else(|| self.op.form(operand, choice));
        let halves = |binding: &Binding| binding.operand == operand && binding.element.dtype() == DType::F16;
        if form == Form::Rows && self.kernel.bindings(self.op, choice).iter().any(halves) {
            return Form::HalfRows;
        }
        form
    }
}

/// What a kernel is asked before it is planned. What is written for it is compiled once, not for each op.
trait Asked: BoundKernel {
    /// The op's name.
    fn op(&self) -> &'static str;

    /// As [`Definition::maps`].
    fn maps(&self) -> Option<[Shape; 2]>;

    /// The op's precision.
    fn precision(&self) -> Precision;

    /// The extents of what it writes.
    fn output(&self) -> Option<Shape>;

    /// As [`Kernel::obstacle`].
    fn obstacle(&self, limits: &Limits) -> Option<String>;

    /// As [`Kernel::choice_obstacle`].
    fn choice_obstacle(&self, choice: &Choice, limits: &Limits) -> Option<String>;
}

impl<O: Definition> Asked for Bound<'_, O> {
    fn op(&self) -> &'static str {
        O::NAME
    }

    fn maps(&self) -> Option<[Shape; 2]> {
        self.op.maps()
    }

    fn precision(&self) -> Precision {
        Definition::precision(self.op)
    }

    fn output(&self) -> Option<Shape> {
        Definition::operands(self.op).last().map(|info| info.shape)
    }

    fn obstacle(&self, limits: &Limits) -> Option<String> {
        self.kernel.obstacle(self.op, limits).or_else(|| self.scalar_obstacle(limits))
    }

    fn choice_obstacle(&self, choice: &Choice, limits: &Limits) -> Option<String> {
        self.kernel.choice_obstacle(self.op, choice, limits)
    }
}

/// Why `choice` cannot have its feature maps in the layout that it says, if it cannot.
fn layout_obstacle(kernel: &dyn Asked, choice: &Choice, limits: &Limits) -> Option<String> {
    let layouts = kernel.entry().layouts;
    if matches!(choice.layout, Layout::C4 | Layout::Nhwc) {
        let told = || layouts.iter().map(Layout::to_string).collect::<Vec<_>>().join(" or ");
        let offered = layouts.contains(&choice.layout);
        return (!offered).then(|| format!("values in {}, wanted {}", choice.layout, told()));
    }
    let Some(maps) = kernel.maps() else {
        return Some(format!("{} has no feature maps to keep in {}", kernel.op(), choice.layout));
    };
    spec::map_obstacle(choice, layouts, maps, limits)
}

/// As [`BoundKernel::fits`].
fn fits(kernel: &dyn Asked, choice: &Choice, limits: &Limits) -> Result<()> {
    let reject = |reason| spec::reject(kernel.op(), choice, reason);
    if choice.variant != kernel.name() {
        return reject(format!("a choice for {}", kernel.name()));
    }
    if let Some(reason) = layout_obstacle(kernel, choice, limits) {
        return reject(reason);
    }
    if let Some(reason) = kernel.obstacle(limits) {
        return reject(reason);
    }
    let offered = kernel.offers(limits);
    if !offered.iter().any(|offer| offer.tile == choice.tile) {
        let mut tiles: Vec<String> =
            offered.iter().map(|Offer { tile: [x, y, z], .. }| format!("{x}x{y}x{z}")).collect();
        sorted::sort(&mut tiles, Ord::cmp);
        return reject(if tiles.is_empty() {
            "this variant does not serve these shapes on this device".to_owned()
        } else {
            format!("tile is not one of {}", tiles.join(", "))
        });
    }
    if kernel.precision() == Precision::F16 && !limits.native_half {
        let reason = "precision f16 needs native half arithmetic, which the device lacks";
        return reject(reason.to_owned());
    }
    let label = spec::label(kernel.op(), choice);
    check_work_group(&label, choice.work_group, limits)?;
    check_grid(&label, choice.work_group, kernel.grid(choice.tile), limits)?;
    if let Some(reason) = kernel.choice_obstacle(choice, limits) {
        return reject(reason);
    }
    reported(kernel, choice, limits).map_or(Ok(()), reject)
}

/// Why a fault that was reported of the device keeps `choice` from it, if one does.
fn reported(kernel: &dyn Asked, choice: &Choice, limits: &Limits) -> Option<String> {
    if limits.faults.is_empty() {
        return None;
    }
    let (op, work_group, output) = (kernel.op(), choice.work_group, kernel.output()?);
    limits.faults.obstacle(&Launched { op, kernel: choice.variant, work_group, output })
}

/// The role of an operand that an op may have as a constant, if `data` has its length.
fn constant(op: &'static str, info: Option<OperandInfo>, operand: Operand, data: &[f32]) -> Result<Role> {
    let Some(info) = info.filter(|info| matches!(info.role, Role::Constant | Role::Input)) else {
        return Err(Error::Internal(format!("{op} has no constant operand {}", operand.name())));
    };
    let wanted = info.elements();
    if data.len() != wanted {
        let found = format!("{} values of {}", data.len(), operand.name());
        return Err(Error::shape(op, found, format!("{wanted}")));
    }
    Ok(info.role)
}

impl<O: Definition> BoundKernel for Bound<'_, O> {
    fn entry(&self) -> VariantEntry {
        self.kernel.entry()
    }

    fn offers(&self, limits: &Limits) -> Vec<Offer> {
        match self.scalar_obstacle(limits) {
            None => self.kernel.offers(self.op, limits),
            Some(_) => Vec::new(),
        }
    }

    fn grid(&self, tile: [u32; 3]) -> [u32; 3] {
        self.kernel.grid(self.op, tile.map(|extent| extent.max(1)))
    }

    fn work_groups(&self, tile: [u32; 3]) -> Vec<[u32; 3]> {
        self.kernel.work_groups(self.op, tile)
    }

    fn dst_depth(&self) -> u32 {
        self.op.dst_depth()
    }

    fn form(&self, operand: Operand, choice: &Choice) -> Option<Form> {
        let role = self.info(operand)?.role;
        (role != Role::Constant).then(|| self.stored(operand, choice))
    }

    fn joins(&self, choice: &Choice) -> Option<Vec<(Operand, usize)>> {
        self.op.joins(choice)
    }

    fn untuned(&self, limits: &Limits) -> bool {
        self.kernel.untuned(self.op, limits)
    }

    fn counted(&self, choice: &Choice) -> u64 {
        O::share() * self.kernel.counted(self.op, choice)
    }

    fn effort(&self, choice: &Choice, limits: &Limits) -> Option<Effort> {
        self.kernel.effort(self.op, choice, limits)
    }

    fn estimate(&self, choice: &Choice, limits: &Limits) -> Option<f64> {
        self.kernel.estimate(self.op, choice, limits)
    }

    fn fits(&self, choice: &Choice, limits: &Limits) -> Result<()> {
        fits(self, choice, limits)?;
        let few = self.too_few_registers(choice, limits);
        few.map_or(Ok(()), |reason| spec::reject(O::NAME, choice, reason))
    }

    fn plan(&self, choice: &Choice, limits: &Limits) -> Result<Launch> {
        self.fits(choice, limits)?;
        let Bound { op, kernel } = *self;
        let infos = Definition::operands(op);
        let form = |operand| self.stored(operand, choice);
        let mut params = kernel.params(op, choice);
        params.extend(channels(op, infos.last(), &form));
        let entry = kernel.entry();
        let precision =
            kernel.precision(op).unwrap_or_else(|| Definition::precision(op).without_matrix_units());
        let mut bindings = kernel.bindings(op, choice);
        bindings.iter_mut().for_each(|binding| binding.least = least(&infos, &form, binding));
        let grid = self.grid(choice.tile);
        let spec = KernelSpec {
            op: O::NAME,
            variant: choice.variant,
            template: Some(entry.template),
            constants: kernel.constants(op, choice, limits),
            tile: choice.tile,
            work_group: choice.work_group,
            precision,
            native_half: precision == Precision::F16 || entry.native_half,
            between: op.between(),
            epilogue: op.epilogue(),
            body: kernel.body(op, choice),
            foreign: None,
            folded: folded(choice.work_group, grid, limits),
            copies: None,
            interface: spec::interface(bindings, &params),
        };
        let params = params.into_iter().map(|(_, value)| value).collect();
        let mut launch = Launch { spec, params, grid };
        turns::limit(&mut launch, &infos, limits)?;
        Ok(launch)
    }

    fn pack(&self, choice: &Choice, operand: Operand, data: &[f32]) -> Result<Vec<f32>> {
        Ok(match constant(O::NAME, self.info(operand), operand, data)? {
            Role::Constant => self.kernel.pack(self.op, choice, operand, data),
            // A constant that is read as it is.
            _ => data.to_vec(),
        })
    }

    fn reference(&self, operands: &Operands<'_>, reference: Reference) -> Result<Reference> {
        operands::check(O::NAME, &Definition::operands(self.op), operands)?;
        computed(O::NAME, || self.kernel.reference(self.op, operands, reference))
    }
}
