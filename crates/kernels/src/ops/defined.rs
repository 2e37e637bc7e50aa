//! What is made of a definition: the op, and its kernels with its shapes. What is the same for all ops and kernels
//! is written here once.

use super::bound::{BoundKernel, Kernels};
use super::definition::{Definition, computed};
use super::effort::Effort;
use super::halves::{Reach, Reaches};
use super::kernel::{Kernel, Offer, VariantEntry};
use super::loops::OpNest;
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
        if let Some(info) = Definition::operands(self).iter().find(|info| info.shape.is_empty()) {
            let found = format!("{} {}", info.operand.name(), info.shape);
            return Err(Error::shape(O::NAME, found, "at least one element"));
        }
        computed(O::NAME, || Definition::cpu(self, constants, shelf))
    }

    fn obstacle(&self, purpose: Purpose) -> Option<&'static str> {
        match purpose {
            Purpose::Cpu => O::CPU_OBSTACLE,
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

    fn calls_function(&self) -> bool {
        O::CALLS_FUNCTION
    }

    fn nest(&self) -> Option<OpNest> {
        Definition::nest(self)
    }

    fn others(&self) -> Vec<(Operand, Box<dyn Op>)> {
        Definition::others(self)
    }

    fn record_layout(&self) -> Layout {
        if O::ROWS { Layout::Nhwc } else { Layout::C4 }
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

    /// Refuses `choice` where something but registers keeps it from the device.
    pub(super) fn fits_otherwise(&self, choice: &Choice, limits: &Limits) -> Result<()> {
        let Bound { op, kernel } = *self;
        let asked = Asked { op: O::NAME, kernel: self, choice, limits };
        if let Some(info) = Definition::operands(op).iter().find(|info| info.shape.is_empty()) {
            return asked.reject(format!("{} has no elements: {}", info.operand.name(), info.shape));
        }
        asked.check_layout(op.maps())?;
        asked.reject_if(kernel.obstacle(op, limits).or_else(|| self.scalar_obstacle(limits)))?;
        asked.check_launch(Definition::precision(op))?;
        asked.check_work_group()?;
        asked.reject_if(kernel.choice_obstacle(op, choice, limits))?;
        if limits.faults.is_empty() {
            return Ok(());
        }
        asked.check_faults(&Definition::operands(op))
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

/// A choice of a kernel before it is planned. What it is checked by is compiled once, not for each op.
struct Asked<'a> {
    /// The op's name.
    op: &'static str,
    kernel: &'a dyn BoundKernel,
    choice: &'a Choice,
    limits: &'a Limits,
}

impl Asked<'_> {
    fn reject<T>(&self, reason: impl Into<String>) -> Result<T> {
        spec::reject(self.op, self.choice, reason)
    }

    fn reject_if(&self, reason: Option<String>) -> Result<()> {
        reason.map_or(Ok(()), |reason| self.reject(reason))
    }

    /// Refuses another kernel's choice, and a layout that the op's values cannot have; `maps` is [`Definition::maps`].
    fn check_layout(&self, maps: Option<[Shape; 2]>) -> Result<()> {
        let Asked { op, choice, limits, .. } = *self;
        let VariantEntry { name, layouts, .. } = self.kernel.entry();
        if choice.variant != name {
            return self.reject(format!("a choice for {name}"));
        }
        if matches!(choice.layout, Layout::C4 | Layout::Nhwc) {
            let told = || layouts.iter().map(Layout::to_string).collect::<Vec<_>>().join(" or ");
            let offered = layouts.contains(&choice.layout);
            let refused = (!offered).then(|| format!("values in {}, wanted {}", choice.layout, told()));
            return self.reject_if(refused);
        }
        match maps {
            None => self.reject(format!("{op} has no feature maps to keep in {}", choice.layout)),
            Some(maps) => self.reject_if(spec::map_obstacle(choice, layouts, maps, limits)),
        }
    }

    /// Refuses a tile that is not offered, and a launch beyond the device's limits.
    fn check_launch(&self, precision: Precision) -> Result<()> {
        let Asked { op, kernel, choice, limits } = *self;
        let offered = kernel.offers(limits);
        if !offered.iter().any(|offer| offer.tile == choice.tile) {
            let mut tiles: Vec<String> =
                offered.iter().map(|Offer { tile: [x, y, z], .. }| format!("{x}x{y}x{z}")).collect();
            sorted::sort(&mut tiles, Ord::cmp);
            return self.reject(if tiles.is_empty() {
                "this variant does not serve these shapes on this device".to_owned()
            } else {
                format!("tile is not one of {}", tiles.join(", "))
            });
        }
        if precision == Precision::F16 && !limits.native_half {
            return self.reject("precision f16 needs native half arithmetic, which the device lacks");
        }
        let label = spec::label(op, choice);
        check_work_group(&label, choice.work_group, limits)?;
        check_grid(&label, choice.work_group, kernel.grid(choice.tile), limits)
    }

    /// Refuses another work-group than the one that the tile names, if it names one.
    fn check_work_group(&self) -> Result<()> {
        let (found, wanted) = (self.choice.work_group, [self.choice.tile[0], 1, 1]);
        let wrong = self.kernel.entry().of_tile && found != wanted;
        self.reject_if(wrong.then(|| format!("a work-group of {found:?}, its tile wants {wanted:?}")))
    }

    /// Refuses what a fault that was reported of the device is about; `operands` are the op's, what it writes the last.
    fn check_faults(&self, operands: &[OperandInfo]) -> Result<()> {
        let Some(output) = operands.last().map(|info| info.shape) else { return Ok(()) };
        let (op, work_group) = (self.op, self.choice.work_group);
        let launched = Launched { op, kernel: self.choice.variant, work_group, output };
        self.reject_if(self.limits.faults.obstacle(&launched))
    }
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
        O::SHARE * self.kernel.counted(self.op, choice)
    }

    fn effort(&self, choice: &Choice, limits: &Limits) -> Option<Effort> {
        self.kernel.effort(self.op, choice, limits)
    }

    fn estimate(&self, choice: &Choice, limits: &Limits) -> Option<f64> {
        self.kernel.estimate(self.op, choice, limits)
    }

    fn fits(&self, choice: &Choice, limits: &Limits) -> Result<()> {
        self.fits_otherwise(choice, limits)?;
        let few = self.too_few_registers(choice, limits);
        few.map_or(Ok(()), |reason| spec::reject(O::NAME, choice, reason))
    }

    fn plan(&self, choice: &Choice, limits: &Limits) -> Result<Launch> {
        self.fits(choice, limits)?;
        let Bound { op, kernel } = *self;
        let infos = Definition::operands(op);
        let form = |operand| self.stored(operand, choice);
        let mut params = kernel.params(op, choice);
        let epilogue = kernel.epilogue(op);
        params.extend(channels::<O>(&epilogue, infos.last(), &form));
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
            epilogue,
            function: None,
            prologue: None,
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

    /// Not one that has another bound, or stores numbers one by one where it reads others of the same places, such as a residual,
    /// which it adds behind its epilogue.
    fn calls_function(&self, of_elements: bool) -> bool {
        let result = Definition::operands(self.op).last().map(|info| info.operand);
        let one_by_one = |binding: &Binding| {
            let of_result =
                binding.operand == Operand::Residual || of_elements && Some(binding.operand) == result;
            of_result && matches!(binding.element, Element::Scalar(_))
        };
        let bindings = || self.kernel.bindings(self.op, &self.choice([1; 3], [1; 3]));
        O::CALLS_FUNCTION && !self.kernel.entry().sums_otherwise && !bindings().iter().any(one_by_one)
    }

    fn takes_prologue(&self, operand: Operand, choice: &Choice) -> bool {
        self.kernel.takes_prologue(self.op, operand, choice)
    }

    fn buffers(&self, choice: &Choice) -> usize {
        let bindings = self.kernel.bindings(self.op, choice);
        bindings.iter().filter(|binding| !matches!(binding.element, Element::Image2d(_))).count()
    }

    fn reference(&self, operands: &Operands<'_>, reference: Reference) -> Result<Reference> {
        operands::check(O::NAME, &Definition::operands(self.op), operands)?;
        computed(O::NAME, || self.kernel.reference(self.op, operands, reference))
    }
}
