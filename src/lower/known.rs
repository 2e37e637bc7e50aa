//! Kernels that are compiled: of the plans that a session made for other extents.
//!
//! The rule chooses a kernel's tile and work-group by its grid, so that most new extents would need a few new kernels, each
//! of which takes a driver up to some 100 ms. One that is compiled already takes the place of what the rule chose, if its
//! invocations compute the same results from the same operands in the same order, and the device takes about as long.

use crate::emit::{Dialect, KernelSource, KernelSpec, Least};
use crate::error::Result;
use crate::limits::Limits;
use crate::ops::{Choice, Op};
use crate::sync::{Mutex, lock};
use crate::tune::work_group::times_as_long;
use std::collections::{HashMap, HashSet};

/// A choice that is compiled.
#[derive(Debug, Clone, Copy)]
struct Size {
    tile: [u32; 3],
    work_group: [u32; 3],
    /// Whether each invocation computes its results alone.
    alone: bool,
}

/// Kernels that are compiled.
#[derive(Debug, Default)]
pub(crate) struct CompiledKernels(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// What their texts follow from.
    specs: HashSet<KernelSpec>,
    /// Their texts, by what these follow from.
    texts: HashMap<KernelSpec, KernelSource>,
    /// Their tiles and work-groups, by op and kernel.
    sizes: HashMap<(&'static str, &'static str), Vec<Size>>,
}

/// What the text of a kernel follows from. It serves operands of any size.
pub(crate) fn decisive(spec: &KernelSpec) -> KernelSpec {
    let mut spec = spec.clone();
    spec.interface.bindings.iter_mut().for_each(|binding| binding.least = Least::Element);
    spec
}

/// `spec` without its work-group, for a kernel of which one program serves every work-group.
fn of_any_work_group(spec: KernelSpec) -> KernelSpec {
    KernelSpec { work_group: [0; 3], ..spec }
}

impl CompiledKernels {
    /// The text of a kernel by what it follows from ([`decisive`]).
    pub(crate) fn text(&self, spec: &KernelSpec) -> Option<KernelSource> {
        lock(&self.0).texts.get(spec).cloned()
    }

    /// Notes that the kernel `source` of `spec` is compiled.
    pub(crate) fn note(&self, spec: &KernelSpec, source: &KernelSource, dialect: Dialect) {
        if spec.foreign.is_some() {
            return;
        }
        let (own, mut state) = (decisive(spec), lock(&self.0));
        if !state.texts.contains_key(&own) {
            state.texts.insert(own.clone(), source.clone());
        }
        if state.has(&own) {
            return;
        }
        let printed = dialect == Dialect::OpenClC && source.dialect == Dialect::Wgsl;
        let size = Size { tile: own.tile, work_group: own.work_group, alone: source.computes_alone() };
        state.sizes.entry((own.op, own.variant)).or_default().push(size);
        let is_any = printed && !source.depends_on_work_group();
        state.specs.insert(if is_any { of_any_work_group(own) } else { own });
    }

    /// What takes the place of `ruled`, and how many times as long, if the kernel of that is not compiled: at most so many
    /// times.
    ///
    /// # Errors
    /// If `ruled` cannot be planned.
    pub(crate) fn instead(
        &self,
        op: &dyn Op,
        ruled: &Choice,
        most: f64,
        limits: &Limits,
    ) -> Result<Option<(Choice, f64)>> {
        let state = lock(&self.0);
        let Some(sizes) = state.sizes.get(&(op.name(), ruled.variant)) else { return Ok(None) };
        let kernel = op.kernel(ruled.variant)?;
        let spec = decisive(&kernel.plan(ruled, limits)?.spec);
        if state.has(&spec) {
            return Ok(None);
        }
        let mut best: Option<(Choice, f64)> = None;
        for &Size { tile, work_group, alone } in sizes {
            let choice = Choice { tile, work_group, ..*ruled };
            let times = times_as_long(&*kernel, ruled, &choice, limits);
            if times.is_nan() || times > best.map_or(most, |(_, best)| best) {
                continue;
            }
            let Ok(planned) = kernel.plan(&choice, limits) else { continue };
            let own = decisive(&planned.spec);
            if state.has(&own) && own.computes_like(&spec, alone) {
                best = Some((choice, times));
            }
        }
        Ok(best)
    }
}

impl State {
    fn has(&self, spec: &KernelSpec) -> bool {
        self.specs.contains(spec) || self.specs.contains(&of_any_work_group(spec.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DeviceInfo;
    use crate::dims::{Dim, Dims};
    use crate::graph::{Extras, Graph, Right};
    use crate::host::HostTensor;
    use crate::limits::Family;
    use crate::lower::{Program, Work};
    use crate::ops::conv2d::Conv2d;
    use crate::ops::gemm::{Gemm, GemmOp};
    use crate::ops::pointwise::Pointwise;
    use crate::options::SessionOptions;
    use crate::shape::{Padding, Shape};
    use crate::tune::work_group::{WorkGroup, untuned};
    use std::collections::BTreeSet;

    /// Maps of some width that become fewer and deeper, and rows of them.
    fn network(width: usize) -> Graph {
        let weights = |shape: Shape| HostTensor::new(shape, vec![0.5; shape.elements()]).expect("weights");
        let mut graph = Graph::new();
        let mut x = graph.input("x", Shape::nhwc(1, 12, width, 32)).expect("an input");
        let window = Conv2d { padding: Padding::Same, ..Default::default() };
        x = graph
            .conv2d("window", x, weights(Shape::nhwc(64, 3, 3, 32)), Extras::default(), window)
            .expect("a convolution");
        for (name, [from, to]) in [("a", [64, 128]), ("b", [128, 96]), ("c", [96, 256])] {
            let own = weights(Shape::nhwc(to, 1, 1, from));
            x = graph.pointwise(name, x, own, Extras::default(), Pointwise::default()).expect("a product");
        }
        x = graph.reshape("rows", x, &[Dim::Fixed(12 * width), Dim::Fixed(256)]).expect("a view");
        let last = weights(Shape::nhwc(1, 1, 256, 120)).reshaped(Dims::new(&[256, 120]).expect("a matrix"));
        let last = Right::Constant(last.expect("a matrix"));
        x = graph.gemm("last", x, last, Extras::default(), Gemm::default()).expect("a product");
        graph.output(x).expect("an output");
        graph
    }

    /// The kernels of a program, and their texts.
    fn kernels(
        width: usize,
        limits: &Limits,
        known: Option<&CompiledKernels>,
    ) -> Vec<(KernelSpec, KernelSource)> {
        let info = DeviceInfo {
            api: "none",
            name: "a device".to_owned(),
            driver: "none".to_owned(),
            pci: None,
            uuid: None,
            limits: limits.clone(),
            is_cpu: false,
            timestamps: false,
        };
        let no_images = |_| Err(crate::error::Error::unsupported("images", "none are asked for"));
        let program = Program::of(&network(width), &SessionOptions::default(), &info, &no_images, known);
        let steps = program.expect("a program").steps;
        let launches = steps.into_iter().filter_map(|step| match step.work {
            Work::Device { launch, .. } => Some(launch.spec),
            Work::Host { .. } => None,
        });
        let written = |spec: KernelSpec| {
            let text = spec.render_written(limits.dialect).expect("a text");
            (spec, text)
        };
        launches.map(written).collect()
    }

    #[test]
    fn new_extents_run_kernels_that_are_compiled_and_compute_the_same() {
        let mut new = [0, 0];
        for (family, base) in [
            (Family::Nvidia, Limits::webgpu()),
            (Family::Nvidia, Limits::opencl()),
            (Family::Intel, Limits::webgpu()),
            (Family::CpuDriver, Limits::webgpu()),
        ] {
            let limits = Limits { family, local_memory: 49152, ..base };
            let known = CompiledKernels::default();
            let (mut alone, mut together) = (BTreeSet::new(), BTreeSet::new());
            for width in [40, 24, 30, 50, 41, 14, 80] {
                let ruled = kernels(width, &limits, None);
                let found = kernels(width, &limits, Some(&known));
                assert_eq!(ruled.len(), found.len());
                for ((ruled, text), (found, _)) in ruled.iter().zip(&found) {
                    assert_eq!(ruled.variant, found.variant);
                    assert!(found.computes_like(ruled, text.computes_alone()), "{found:?} for {ruled:?}");
                }
                found.iter().for_each(|(spec, text)| known.note(spec, text, limits.dialect));
                let text = |(_, text): (KernelSpec, KernelSource)| text.text;
                alone.extend(ruled.into_iter().map(text));
                together.extend(found.into_iter().map(text));
            }
            let first = kernels(40, &limits, None).into_iter().map(|(_, text)| text.text);
            let first = first.collect::<BTreeSet<String>>().len();
            let [alone, together] = [alone.len() - first, together.len() - first];
            assert!(together <= alone, "{family:?}: {together} new ones, {alone} by rule");
            (new[0], new[1]) = (new[0] + together, new[1] + alone);
        }
        assert!(3 * new[0] <= 2 * new[1], "{} new ones, {} by rule", new[0], new[1]);
    }

    #[test]
    fn what_takes_much_longer_takes_no_place() {
        let limits = Limits { family: Family::CpuDriver, ..Limits::webgpu() };
        let known = CompiledKernels::default();
        let op = |m: usize| GemmOp::packed(m, 512, 512);
        let ruled = |m: usize| untuned(&op(m), WorkGroup::Table, &limits).expect("a choice");
        let many: &dyn Op = &op(512);
        let launch = many.plan(&ruled(512), &limits).expect("a launch");
        let text = launch.spec.render_written(limits.dialect).expect("a text");
        known.note(&launch.spec, &text, limits.dialect);
        let instead = |m: usize, most: f64| known.instead(&op(m), &ruled(m), most, &limits).expect("a plan");
        // It is compiled.
        assert_eq!(instead(512, 100.0), None);
        // Of a work-group's rows of tiles one would have work.
        assert_eq!(instead(1, 1.1), None);
        let (slower, times) = instead(1, 100.0).expect("one");
        assert!(slower == ruled(512) && times > 4.0, "{slower} {times}");
    }
}
