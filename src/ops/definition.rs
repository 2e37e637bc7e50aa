//! How an op is defined, and the [`Op`] that is made of a definition: what is the same for all ops, or is
//! asked of a kernel, is written here once.

use super::effort::Effort;
use super::halves::Magnitudes;
use super::kernel::{Kernel, Offer, Ordinary};
use super::operands::{self, OperandInfo, Operands, Role};
use super::plan::{Choice, Launch, Op, Sealed, check_grid, check_work_group, folded};
use super::reference::Reference;
use super::spec;
use super::stored::{channels, least};
use super::turns;
use crate::cpu::CpuKernel;
use crate::dtype::Precision;
use crate::emit::{Epilogue, KernelSpec, Operand};
use crate::error::{Error, Result};
use crate::layout::{Form, Layout};
use crate::limits::Limits;
use crate::shape::Shape;
use crate::sorted;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// An op of concrete shapes as its folder defines it. The methods are those of [`Op`], unless said
/// otherwise.
pub(crate) trait Definition: fmt::Debug + Clone + Send + Sync + 'static {
    /// The op's name: that of its folders.
    const NAME: &'static str;

    /// Its kernels. An untuned session prefers those whose tiles come first ([`super::kernel::Offer`]).
    fn kernels() -> &'static [&'static dyn Kernel<Self>];

    fn problem_key(&self) -> String;

    fn precision(&self) -> Precision;

    fn flops(&self) -> u64;

    fn dst_depth(&self) -> u32;

    fn operands(&self) -> Vec<OperandInfo>;

    /// The form of its values where a kernel has no other: feature maps in the layout of `choice`.
    fn form(&self, _operand: Operand, choice: &Choice) -> Form {
        match choice.layout {
            Layout::Image2d => Form::Image,
            Layout::Nhwc => Form::Rows,
            _ => Form::C4,
        }
    }

    /// The feature maps that its kernels may have in images; none of an op that has none in images.
    fn maps(&self) -> Option<[Shape; 2]> {
        None
    }

    /// What happens to a sum before it is stored.
    fn epilogue(&self) -> Epilogue {
        Epilogue::default()
    }

    /// What happens to the sum of an op in two halves in between.
    fn between(&self) -> Option<Epilogue> {
        None
    }

    /// As [`Op::oracle`], with operands that were checked.
    fn oracle(&self, operands: &Operands<'_>) -> Reference;

    /// As [`Op::oracle_rows`], with operands that were checked.
    fn oracle_rows(&self, operands: &Operands<'_>, rows: &[usize]) -> Reference {
        let output = self.operands().into_iter().next_back();
        self.oracle(operands).rows(rows, output.map_or(1, |output| output.shape.c))
    }

    /// As [`Op::expected`], with operands that were checked.
    fn expected(&self, operands: &Operands<'_>) -> Result<Reference> {
        Ok(self.oracle(operands))
    }

    fn cpu(&self, constants: &Operands<'_>) -> Result<Box<dyn CpuKernel>>;

    fn cpu_obstacle(&self) -> Option<&'static str> {
        None
    }

    fn with_precision(&self, precision: Precision) -> Self;

    fn network_precision(wanted: Precision) -> Precision {
        wanted
    }

    fn halves(&self) -> bool {
        false
    }

    fn reach(&self, _inputs: &Magnitudes<'_>, _constants: &Operands<'_>) -> f64 {
        f64::INFINITY
    }

    fn stack(&self, _parts: &[&dyn Op], _multiple: usize) -> Option<Self> {
        None
    }

    fn joins(&self, _choice: &Choice) -> Option<Vec<(Operand, usize)>> {
        None
    }

    fn record_layout() -> Layout {
        Layout::C4
    }

    fn untunable(&self) -> Option<&'static str> {
        None
    }

    /// Its kernels are kept busy by an invocation where others need so many.
    fn share() -> u64 {
        1
    }

    /// Whether each output channel is a sum over input channels. The lanes beyond the output's channels are then
    /// sums with weights of zero, which are NaN where the input is infinite or NaN.
    fn mixes_channels() -> bool {
        false
    }
}

/// The kernel of the op `O` that has this name.
fn kernel<O: Definition>(variant: &str) -> Option<&'static dyn Kernel<O>> {
    O::kernels().iter().copied().find(|kernel| kernel.entry().name == variant)
}

/// Why `choice` cannot have its feature maps in the layout that it says, if it cannot.
fn layout_obstacle<O: Definition>(op: &O, choice: &Choice, limits: &Limits) -> Option<String> {
    let layouts = kernel::<O>(choice.variant).map_or(&[Layout::C4][..], |kernel| kernel.layouts());
    if matches!(choice.layout, Layout::C4 | Layout::Nhwc) {
        let told = || layouts.iter().map(Layout::to_string).collect::<Vec<_>>().join(" or ");
        let offered = layouts.contains(&choice.layout);
        return (!offered).then(|| format!("values in {}, wanted {}", choice.layout, told()));
    }
    let Some(maps) = op.maps() else {
        return Some(format!("{} has no feature maps to keep in {}", O::NAME, choice.layout));
    };
    spec::map_obstacle(choice, layouts, maps, limits)
}

/// What only the CPU computes, unless it was left out.
fn computed<T>(op: &str, compute: impl FnOnce() -> Result<T>) -> Result<T> {
    if cfg!(feature = "cpu") {
        return compute();
    }
    Err(Error::without_cpu(format!("{op} on the CPU")))
}

/// A kernel's name and tile.
type Offered = (&'static str, [u32; 3]);

/// Offers by their preference. It is one function for all ops.
fn by_preference(mut offers: Vec<(u32, Offered)>) -> Vec<Offered> {
    sorted::sort_by_key(&mut offers, |(preference, _)| *preference);
    offers.into_iter().map(|(_, offered)| offered).collect()
}

impl<O: Definition> Sealed for O {}

impl<O: Definition> Op for O {
    fn name(&self) -> &'static str {
        O::NAME
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn problem_key(&self) -> String {
        Definition::problem_key(self)
    }

    fn precision(&self) -> Precision {
        Definition::precision(self)
    }

    fn flops(&self) -> u64 {
        Definition::flops(self)
    }

    fn dst_depth(&self) -> u32 {
        Definition::dst_depth(self)
    }

    fn operands(&self) -> Vec<OperandInfo> {
        Definition::operands(self)
    }

    fn form(&self, operand: Operand, choice: &Choice) -> Option<Form> {
        let infos = Definition::operands(self);
        let info = infos.iter().find(|info| info.operand == operand)?;
        if info.role == Role::Constant {
            return None;
        }
        Some(match kernel::<O>(choice.variant) {
            Some(kernel) => kernel.form(self, operand, choice),
            None => Definition::form(self, operand, choice),
        })
    }

    fn oracle(&self, operands: &Operands<'_>) -> Result<Reference> {
        operands::check(self, operands)?;
        computed(O::NAME, || Ok(Definition::oracle(self, operands)))
    }

    fn oracle_rows(&self, operands: &Operands<'_>, rows: &[usize]) -> Result<Reference> {
        operands::check(self, operands)?;
        computed(O::NAME, || Ok(Definition::oracle_rows(self, operands, rows)))
    }

    fn expected(&self, operands: &Operands<'_>) -> Result<Reference> {
        operands::check(self, operands)?;
        computed(O::NAME, || Definition::expected(self, operands))
    }

    fn sums_otherwise(&self, variant: &str) -> bool {
        kernel::<O>(variant).is_some_and(|kernel| kernel.sums_otherwise())
    }

    fn reference_of(
        &self,
        variant: &str,
        operands: &Operands<'_>,
        reference: Reference,
    ) -> Result<Reference> {
        operands::check(self, operands)?;
        computed(O::NAME, || match kernel::<O>(variant) {
            Some(kernel) => kernel.reference(self, operands, reference),
            None => Ok(reference),
        })
    }

    fn cpu(&self, constants: &Operands<'_>) -> Result<Box<dyn CpuKernel>> {
        computed(O::NAME, || Definition::cpu(self, constants))
    }

    fn words(&self) -> Option<String> {
        Some(format!("{self:?}"))
    }

    fn cpu_obstacle(&self) -> Option<&'static str> {
        Definition::cpu_obstacle(self)
    }

    fn with_precision(&self, precision: Precision) -> Arc<dyn Op> {
        Arc::new(Definition::with_precision(self, precision))
    }

    fn network_precision(&self, wanted: Precision) -> Precision {
        O::network_precision(wanted)
    }

    fn halves(&self) -> bool {
        Definition::halves(self)
    }

    fn reach(&self, inputs: &Magnitudes<'_>, constants: &Operands<'_>) -> f64 {
        Definition::reach(self, inputs, constants)
    }

    fn stack(&self, parts: &[&dyn Op], multiple: usize) -> Option<Arc<dyn Op>> {
        Some(Arc::new(Definition::stack(self, parts, multiple)?))
    }

    fn joins(&self, choice: &Choice) -> Option<Vec<(Operand, usize)>> {
        Definition::joins(self, choice)
    }

    fn record_layout(&self) -> Layout {
        O::record_layout()
    }

    fn untunable(&self) -> Option<&'static str> {
        Definition::untunable(self)
    }

    fn space(&self, limits: &Limits) -> Vec<(&'static str, [u32; 3])> {
        let each = O::kernels().iter().flat_map(|kernel| {
            let name = kernel.entry().name;
            kernel.offers(self, limits).into_iter().map(move |offer| (offer.preference, (name, offer.tile)))
        });
        by_preference(each.collect())
    }

    fn grid(&self, variant: &str, tile: [u32; 3]) -> [u32; 3] {
        kernel::<O>(variant).map_or([0; 3], |kernel| kernel.grid(self, tile.map(|extent| extent.max(1))))
    }

    fn work_groups(&self, variant: &str, tile: [u32; 3]) -> Vec<[u32; 3]> {
        kernel::<O>(variant).map_or(Vec::new(), |kernel| kernel.work_groups(self, tile))
    }

    fn ordinary(&self, variant: &str) -> Ordinary {
        kernel::<O>(variant).map_or(Ordinary::Workload, |kernel| kernel.ordinary())
    }

    fn estimate(&self, choice: &Choice, limits: &Limits) -> Option<f64> {
        kernel::<O>(choice.variant)?.estimate(self, choice, limits)
    }

    fn untuned(&self, variant: &str, limits: &Limits) -> bool {
        kernel::<O>(variant).is_some_and(|kernel| kernel.untuned(self, limits))
    }

    fn counted(&self, choice: &Choice) -> u64 {
        kernel::<O>(choice.variant).map_or(0, |kernel| kernel.counted(self, choice))
    }

    fn share(&self) -> u64 {
        O::share()
    }

    fn layouts(&self, variant: &str) -> &'static [Layout] {
        kernel::<O>(variant).map_or(&[Layout::C4], |kernel| kernel.layouts())
    }

    fn place(&self, variant: &str) -> Layout {
        kernel::<O>(variant).map_or(Layout::C4, |kernel| kernel.place())
    }

    fn effort(&self, choice: &Choice, limits: &Limits) -> Option<Effort> {
        kernel::<O>(choice.variant)?.effort(self, choice, limits)
    }

    fn fits(&self, choice: &Choice, limits: &Limits) -> Result<()> {
        let reject = |reason| spec::reject(O::NAME, choice, reason);
        if let Some(reason) = layout_obstacle(self, choice, limits) {
            return reject(reason);
        }
        let Some(kernel) = kernel::<O>(choice.variant) else {
            return reject(format!("{} has no such kernel", O::NAME));
        };
        if let Some(reason) = kernel.obstacle(self, limits) {
            return reject(reason);
        }
        let offered = kernel.offers(self, limits);
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
        if Definition::precision(self) == Precision::F16 && !limits.native_half {
            let reason = "precision f16 needs native half arithmetic, which the device lacks";
            return reject(reason.to_owned());
        }
        let label = spec::label(O::NAME, choice);
        check_work_group(&label, choice.work_group, limits)?;
        check_grid(&label, choice.work_group, kernel.grid(self, choice.tile), limits)?;
        kernel.choice_obstacle(self, choice, limits).map_or(Ok(()), reject)
    }

    fn plan(&self, choice: &Choice, limits: &Limits) -> Result<Launch> {
        self.fits(choice, limits)?;
        let Some(kernel) = kernel::<O>(choice.variant) else {
            return Err(Error::Internal(format!("{} has no kernel {}", O::NAME, choice.variant)));
        };
        let mut params = kernel.params(self, choice);
        params.extend(channels(self, kernel, choice));
        let precision = kernel.precision(self);
        let mut bindings = kernel.bindings(self, choice);
        bindings.iter_mut().for_each(|binding| binding.least = least(self, choice, binding));
        let grid = kernel.grid(self, choice.tile);
        let spec = KernelSpec {
            op: O::NAME,
            variant: choice.variant,
            template: Some(kernel.entry().template),
            constants: kernel.constants(self, choice, limits),
            tile: choice.tile,
            work_group: choice.work_group,
            precision,
            native_half: precision == Precision::F16 || kernel.native_half(),
            between: self.between(),
            epilogue: self.epilogue(),
            body: kernel.body(self, choice),
            foreign: None,
            folded: folded(choice.work_group, grid, limits),
            copies: None,
            interface: spec::interface(bindings, &params),
        };
        let params = params.into_iter().map(|(_, value)| value).collect();
        let mut launch = Launch { spec, params, grid };
        turns::limit(&mut launch, &Definition::operands(self), limits)?;
        Ok(launch)
    }

    fn pack(&self, choice: &Choice, operand: Operand, data: &[f32]) -> Result<Vec<f32>> {
        let infos = Definition::operands(self);
        let info = infos.iter().find(|info| info.operand == operand);
        let Some(info) = info.filter(|info| matches!(info.role, Role::Constant | Role::Input)) else {
            return Err(Error::Internal(format!("{} has no constant operand {}", O::NAME, operand.name())));
        };
        let wanted = info.elements();
        if data.len() != wanted {
            let found = format!("{} values of {}", data.len(), operand.name());
            return Err(Error::shape(O::NAME, found, format!("{wanted}")));
        }
        match (info.role, kernel::<O>(choice.variant)) {
            (Role::Constant, Some(kernel)) => Ok(kernel.pack(self, choice, operand, data)),
            (Role::Constant, None) => {
                Err(Error::Internal(format!("{} has no kernel {}", O::NAME, choice.variant)))
            }
            // A constant that is read as it is.
            _ => Ok(data.to_vec()),
        }
    }
}
