//! Runs of which every value is kept and held against the ops' oracles, step by step: what shows on which machine a
//! result is wrong, and from where on.

use super::Session;
use super::lowered::lowered;
use crate::context::Context;
use crate::dtype::{DType, Precision};
use crate::emit::dialect::Dialect;
use crate::error::Result;
use crate::graph::{Graph, Value};
use crate::host::HostTensor;
use crate::lower::{ObservedOperand, ObservedUnit, Work, observed_units};
use crate::ops::{Answer, OperandInfo, Operands, Role, expected_tolerance};
use crate::options::SessionOptions;
use crate::word;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The kernel of a step on a device.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct KernelTexts {
    /// Its text in WGSL; empty if it has none.
    pub wgsl: String,
    /// Its text in OpenCL C; empty if it has none.
    pub opencl: String,
    /// Its scalar parameters, by name, as text.
    pub params: Vec<(String, String)>,
    /// Invocations along x, y and z that have work.
    pub grid: [u32; 3],
}

/// How far a result is from the oracle's, where it is furthest in proportion to its bound.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Deviation {
    /// The element, in the order of rows.
    pub index: usize,
    /// What was computed.
    pub found: f64,
    /// The oracle's result, from what the step read.
    pub wanted: f64,
    /// The largest distance that a correct kernel's result may have.
    pub bound: f64,
    /// How many elements are beyond theirs.
    pub beyond: usize,
}

/// What a step of a run computed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ObservedStep {
    /// The name of the node or nodes, as [`Session::steps`] has it.
    pub name: String,
    /// The op.
    pub op: &'static str,
    /// Its problem in one line of words.
    pub problem: String,
    /// Storage and arithmetic.
    pub precision: Precision,
    /// The kernel's label; empty where the CPU computed it.
    pub kernel: String,
    /// Where the choice came from.
    pub source: String,
    /// The kernel itself, on a device.
    pub texts: Option<KernelTexts>,
    /// What it read of the run's values, by the operand's name.
    pub reads: Vec<(&'static str, Value)>,
    /// What it wrote.
    pub writes: Vec<Value>,
    /// How far that element of the op's outputs is off that is furthest, or why that is not known.
    pub deviation: std::result::Result<Deviation, String>,
}

/// A run with all values that left a kernel.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ObservedRun {
    /// The steps in order of execution, but for those that the session inserted or made of a part of a node.
    pub steps: Vec<ObservedStep>,
    /// The inputs, and what the steps wrote.
    pub values: BTreeMap<Value, HostTensor>,
}

impl Deviation {
    /// The distance in proportion to the bound: at most 1 if the result is right.
    ///
    /// ```
    /// use diptych::Deviation;
    ///
    /// fn is_right(deviation: &Deviation) -> bool {
    ///     deviation.ratio() <= 1.0
    /// }
    /// ```
    pub fn ratio(&self) -> f64 {
        let found = self.found;
        let off = (found - self.wanted).abs();
        match off {
            _ if found == self.wanted || (found.is_nan() && self.wanted.is_nan()) => 0.0,
            off if off <= self.bound => off / self.bound,
            off if off.is_nan() || self.bound == 0.0 => f64::INFINITY,
            off => off / self.bound,
        }
    }

    /// The furthest of all elements.
    fn furthest(found: &[f64], wanted: impl Iterator<Item = (f64, f64)>) -> Option<Self> {
        let mut worst: Option<Deviation> = None;
        let mut beyond = 0;
        for (index, (&found, (wanted, bound))) in found.iter().zip(wanted).enumerate() {
            let here = Deviation { index, found, wanted, bound, beyond: 0 };
            beyond += usize::from(here.ratio() > 1.0);
            if worst.is_none_or(|worst| here.ratio() > worst.ratio()) {
                worst = Some(here);
            }
        }
        worst.map(|worst| Deviation { beyond, ..worst })
    }
}

impl Session {
    /// Runs `graph` once, keeps what each step reads and writes, and holds each result against the op's oracle, which is
    /// given what the step read: a kernel's fault shows in its own step alone, not in those behind it.
    ///
    /// All values leave the network, each by a buffer of its own, so that a step's kernel may store another form than in
    /// an ordinary session; which kernel ran is said of each.
    ///
    /// ```
    /// use diptych::{Backend, Context, Extras, Graph, HostTensor, Pointwise, Session, SessionOptions, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 2, 2, 3))?;
    /// let w = HostTensor::new(Shape::nhwc(4, 1, 1, 3), vec![0.5; 12])?;
    /// let y = graph.pointwise("mix", x, w, Extras::default(), Pointwise::default())?;
    /// graph.output(y)?;
    /// let context = Context::new(Backend::Cpu)?;
    /// let input = HostTensor::new(Shape::nhwc(1, 2, 2, 3), vec![1.0; 12])?;
    /// let run = Session::observe(&context, &graph, &SessionOptions::default(), &[("x", &input)])?;
    /// assert_eq!(run.values[&y].to_f32()[0], 1.5);
    /// assert!(run.steps[0].deviation.as_ref().is_ok_and(|deviation| deviation.ratio() <= 1.0));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Session::new`] and [`Session::run`].
    pub fn observe(
        context: &Context,
        graph: &Graph,
        options: &SessionOptions,
        inputs: &[(&str, &HostTensor)],
    ) -> Result<ObservedRun> {
        let fixed: Vec<(&str, usize)> =
            options.dimensions.iter().map(|(name, &extent)| (name.as_str(), extent)).collect();
        let graph = &graph.with_dimensions(&fixed)?;
        let options = SessionOptions { dimensions: [].into(), ..options.clone() };
        let device = context.engine.device().ok();
        // What becomes of a node may depend on which values leave the network: the units are those of the run in the end.
        let mut all = graph.clone();
        let units = loop {
            let units = observed_units(&all, &options, device.map(|device| device.info()))?;
            let before = all.outputs().len();
            for &value in units.iter().flat_map(|unit| &unit.writes) {
                if !all.outputs().contains(&value) {
                    all.output(value)?;
                }
            }
            if all.outputs().len() == before {
                break units;
            }
        };
        let mut session = Session::new(context, &all, options.clone())?;
        let written = all.outputs().iter().copied().zip(session.run(inputs)?);
        let mut values: BTreeMap<Value, HostTensor> = written.collect();
        for &input in graph.inputs() {
            let given = inputs.iter().find(|(name, _)| graph.name(input).is_ok_and(|own| own == *name));
            values.extend(given.map(|(_, tensor)| (input, (*tensor).clone())));
        }
        let kernels = match device {
            Some(_) => kernels(context, &all, &options)?,
            None => BTreeMap::new(),
        };
        let steps = units.into_iter().map(|unit| step(unit, &kernels, &values)).collect();
        Ok(ObservedRun { steps, values })
    }
}

/// A step's kernel.
struct Kernel {
    label: String,
    variant: &'static str,
    /// Where the choice came from.
    source: String,
    texts: KernelTexts,
}

/// The kernels of `graph`'s steps, by their names.
fn kernels(context: &Context, graph: &Graph, options: &SessionOptions) -> Result<BTreeMap<String, Kernel>> {
    let program = lowered(&context.engine, graph, options, None)?;
    let mut all = BTreeMap::new();
    for step in program.steps.iter().filter(|step| !step.inserted) {
        let Work::Device { launch, .. } = &step.work else { continue };
        let text = |dialect| launch.spec.render(dialect).map(|source| source.text).unwrap_or_default();
        let names = launch.spec.interface.params.iter().map(|param| param.name.to_owned());
        let texts = KernelTexts {
            wgsl: text(Dialect::Wgsl),
            opencl: text(Dialect::OpenClC),
            params: names.zip(launch.params.iter().map(|value| format!("{value:?}"))).collect(),
            grid: launch.grid,
        };
        let (label, variant, source) = (launch.spec.label(), launch.spec.variant, step.from.clone());
        all.insert(step.name.clone(), Kernel { label, variant, source, texts });
    }
    Ok(all)
}

fn step(
    unit: ObservedUnit,
    kernels: &BTreeMap<String, Kernel>,
    values: &BTreeMap<Value, HostTensor>,
) -> ObservedStep {
    let kernel = kernels.get(&unit.name);
    let deviation = deviation(&unit, kernel.map(|kernel| kernel.variant), values);
    let reads = unit.reads.iter().filter_map(|(operand, given)| match given {
        ObservedOperand::Value(_, value) => Some((operand.name(), *value)),
        ObservedOperand::Constant(_) | ObservedOperand::Inside => None,
    });
    ObservedStep {
        op: unit.op.name(),
        problem: unit.op.problem_key(),
        precision: unit.op.precision(),
        kernel: kernel.map(|kernel| kernel.label.clone()).unwrap_or_default(),
        source: kernel.map(|kernel| kernel.source.clone()).unwrap_or_default(),
        texts: kernel.map(|kernel| kernel.texts.clone()),
        reads: reads.collect(),
        writes: unit.writes.clone(),
        deviation,
        name: unit.name,
    }
}

/// The operands of `unit` as it read them.
fn operands<'a>(
    unit: &'a ObservedUnit,
    values: &'a BTreeMap<Value, HostTensor>,
) -> std::result::Result<Operands<'a>, String> {
    let infos = unit.op.operands();
    let mut operands = Operands::new();
    for (operand, given) in &unit.reads {
        let info = infos.iter().find(|info| info.operand == *operand);
        let elements = info.map_or(0, OperandInfo::words);
        let word = info.map_or(DType::F32, |info| info.dtype);
        let (tensor, first) = match given {
            ObservedOperand::Constant(tensor) => (tensor, 0),
            ObservedOperand::Value(alias, value) => {
                let unknown = || format!("it reads value {}, which no step of this run wrote", value.index());
                (values.get(&alias.of).ok_or_else(unknown)?, alias.offset)
            }
            ObservedOperand::Inside => return Err("it computes a part of a node".to_owned()),
        };
        let first = first * word.words();
        let words = word::of_tensor(tensor, word, tensor.dtype(), operand.name());
        let part = match words.map_err(|error| error.to_string())? {
            Cow::Borrowed(all) => all.get(first..first + elements).map(Cow::Borrowed),
            Cow::Owned(all) => all.get(first..first + elements).map(|part| Cow::Owned(part.to_vec())),
        };
        let missing = || format!("{} has fewer than {elements} elements from {first} on", operand.name());
        operands.insert(*operand, part.ok_or_else(missing)?);
    }
    Ok(operands)
}

fn deviation(
    unit: &ObservedUnit,
    variant: Option<&str>,
    values: &BTreeMap<Value, HostTensor>,
) -> std::result::Result<Deviation, String> {
    let op = &*unit.op;
    let updates = op.operands().iter().any(|info| info.role == Role::Update);
    if updates {
        return Err("it changes what it writes".to_owned());
    }
    let found = unit.last.and_then(|value| values.get(&value));
    let found = numbers(found.ok_or_else(|| "what it writes last is no value of the network".to_owned())?);
    let operands = operands(unit, values)?;
    let text = |error: crate::Error| error.to_string();
    let expected = op.reference(&operands, Answer::Quick).map_err(text)?;
    let kernel = variant.and_then(|variant| op.kernel(variant).ok()).filter(|own| own.entry().sums_otherwise);
    let own = kernel.map(|kernel| kernel.reference(&operands, expected.clone()));
    let own = own.transpose().map_err(text)?;
    let tolerance = |index| expected_tolerance(&expected, own.as_ref(), index, op.precision());
    let wanted = expected.value().iter().enumerate().map(|(index, &value)| (value, tolerance(index)));
    if expected.value().len() != found.len() {
        return Err(format!("{} elements, the oracle has {}", found.len(), expected.value().len()));
    }
    let mut worst = Deviation::furthest(&found, wanted).ok_or_else(|| "it has no elements".to_owned())?;
    for (operand, other) in op.others() {
        let value = unit.others.iter().find(|(own, _)| *own == operand).map(|(_, value)| value);
        let Some(found) = value.and_then(|value| values.get(value)).map(numbers) else { continue };
        let expected = other.reference(&operands, Answer::Quick).map_err(text)?;
        let tolerance = |index| expected_tolerance(&expected, None, index, other.precision());
        let wanted = expected.value().iter().enumerate().map(|(index, &value)| (value, tolerance(index)));
        if let Some(own) = Deviation::furthest(&found, wanted) {
            let beyond = worst.beyond + own.beyond;
            let further = if own.ratio() > worst.ratio() { own } else { worst };
            worst = Deviation { beyond, ..further };
        }
    }
    Ok(worst)
}

/// The elements of a tensor as numbers.
fn numbers(tensor: &HostTensor) -> Vec<f64> {
    match tensor.to_i64() {
        Some(integers) => integers.iter().map(|&integer| integer as f64).collect(),
        None => tensor.to_nhwc().iter().map(|&number| f64::from(number)).collect(),
    }
}
