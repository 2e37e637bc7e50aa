//! What a graph gives, node by node in f64, and how far from it a correct session may be.
//!
//! Each element has a value, held by an f32, and the largest distance from it that what a device has there may have:
//! the errors of its node's inputs, carried on by the node (`carry.rs`), the node's own bound (`ops/tolerance.rs` and
//! the oracles of the ops), and the rounding of the value to f32. Where a session stores halves, each value is rounded
//! once more for each node that reads it.
//!
//! An infinite error says that nothing is known: what is computed of a value that is not finite, or what depends on a
//! comparison that rounding decides. A value that is not finite and has no error is given, moved, or promised by an op:
//! a NaN is one there, and an infinity the same.

use crate::carry;
use diptych::{DType, Function, Graph, Node, Operand, Precision, Value};
use diptych_kernels::ops::elementwise::Step;
use diptych_kernels::ops::operator::{Argument, Arguments, Lowered};
use diptych_kernels::ops::{Answer, Op, Operands, Reference};
use half::f16;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The elements of a value.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    pub(crate) value: Vec<f32>,
    pub(crate) error: Vec<f64>,
}

/// Twice what a conversion to f16 rounds by, and what it loses of the smallest numbers.
const HALF: f64 = 2.0 / 2048.0;
const SMALLEST_HALF: f64 = 1.0 / 16384.0;
const LARGEST_HALF: f64 = 65504.0;

impl Known {
    /// Values that are given.
    pub(crate) fn exact(value: Vec<f32>) -> Self {
        Known { error: vec![0.0; value.len()], value }
    }

    /// Values in f64 as ones in f32.
    pub(crate) fn rounded(value: &[f64], error: impl IntoIterator<Item = f64>) -> Self {
        let mut known = Known::default();
        for (&value, error) in value.iter().zip(error) {
            let narrow = value as f32;
            known.value.push(narrow);
            known.error.push(match () {
                // A choice of a value that is none.
                () if !value.is_finite() && error == 0.0 => 0.0,
                () if !narrow.is_finite() || error.is_nan() => f64::INFINITY,
                () => error + (f64::from(narrow) - value).abs(),
            });
        }
        known
    }

    /// The values with the errors that they may have if they were stored in halves.
    pub(crate) fn in_halves(&self) -> Self {
        let each = self.value.iter().zip(&self.error).map(|(&value, &error)| {
            // Numbers below the smallest normal one may become zero.
            let lost = value != 0.0 && f64::from(value.abs()) < SMALLEST_HALF;
            let kept = !lost && f16::from_f32(value).to_f32() == value;
            if error == 0.0 && (value.is_nan() || kept) {
                return 0.0;
            }
            let most = f64::from(value.abs()) + error;
            if most.is_nan() || most > LARGEST_HALF {
                f64::INFINITY
            } else {
                error + HALF * most + SMALLEST_HALF
            }
        });
        Known { error: each.collect(), value: self.value.clone() }
    }

    /// Whether it is what every session has.
    pub(crate) fn is_exact(&self) -> bool {
        self.error.iter().all(|&error| error == 0.0)
    }

    /// The errors as numbers that an oracle takes, none of them smaller.
    pub(crate) fn errors(&self) -> Vec<f32> {
        let up = |&error: &f64| if error == 0.0 { 0.0 } else { (error as f32).next_up() };
        self.error.iter().map(up).collect()
    }

    /// The magnitudes, with what they may be off by.
    pub(crate) fn largest(&self) -> Vec<f32> {
        self.value.iter().zip(self.errors()).map(|(value, error)| value.abs() + error).collect()
    }
}

/// A node of concrete shapes with what it reads.
pub(crate) struct Given<'a> {
    pub(crate) node: &'a Node,
    pub(crate) op: Arc<dyn Op>,
    /// The dimensions of what it reads, in the order of its inputs.
    pub(crate) arguments: Vec<Argument>,
    /// The values of what it reads with their errors, in the order of its inputs.
    pub(crate) known: Vec<Known>,
    pub(crate) precision: Precision,
}

impl Given<'_> {
    pub(crate) fn operands(&self) -> Operands<'_> {
        let each = self.arguments.iter().zip(&self.known);
        each.map(|(argument, known)| (argument.operand, Cow::Borrowed(known.value.as_slice()))).collect()
    }

    pub(crate) fn get(&self, operand: diptych::Operand) -> Option<(&Argument, &Known)> {
        self.arguments.iter().zip(&self.known).find(|(argument, _)| argument.operand == operand)
    }
}

/// What a session computes a graph in, as far as bounds go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arithmetic {
    pub(crate) precision: Precision,
    /// Whether convolutions may run as kernels that sum other terms (Winograd's).
    pub(crate) otherwise: bool,
}

impl Arithmetic {
    pub(crate) const F32: Self = Arithmetic { precision: Precision::F32, otherwise: false };

    /// With [`Precision::Auto`] any value may be in halves.
    fn precision(self) -> Precision {
        if self.precision == Precision::Auto { Precision::F16Storage } else { self.precision }
    }

    pub(crate) fn halves(self) -> bool {
        self.precision().storage() == DType::F16
    }
}

/// What `node` writes, from what it reads.
///
/// # Errors
/// Those of the library.
pub(crate) fn node(
    graph: &Graph,
    node: &Node,
    known: &BTreeMap<Value, Known>,
    arithmetic: Arithmetic,
) -> Result<Known, String> {
    let text = |error: diptych::Error| format!("the oracle of {}: {error}", node.name());
    let mut arguments = Vec::new();
    let mut inputs = Vec::new();
    for &(operand, value) in node.inputs() {
        let tensor = graph.tensor(value).map_err(text)?;
        let words = tensor.and_then(|tensor| tensor.elements::<u32>());
        let dtype = if words.is_some() { DType::U32 } else { DType::F32 };
        arguments.push(Argument { operand, dims: graph.dims(value).map_err(text)?, dtype });
        let read = match tensor {
            // Packed weights stay words.
            Some(_) if words.is_some() => {
                Known::exact(words.unwrap_or_default().iter().map(|&word| f32::from_bits(word)).collect())
            }
            Some(tensor) => Known::exact(tensor.to_nhwc().into_owned()),
            None => known.get(&value).cloned().ok_or_else(|| format!("{}: an unknown input", node.name()))?,
        };
        inputs.push(if arithmetic.halves() && tensor.is_none() { read.in_halves() } else { read });
    }
    // A kernel of a test is the same as no kernel, or should be.
    if (node.operator() as &dyn std::any::Any).is::<diptych::Custom>() {
        return inputs.into_iter().next().ok_or_else(|| format!("{}: no input", node.name()));
    }
    let given = Arguments { inputs: &arguments, dimensions: graph.dimensions(), narrow: false };
    let lower = |precision| node.operator().lower(given, precision).map_err(text);
    let precision = arithmetic.precision();
    let op = match lower(precision)? {
        Lowered::View(view) => {
            let source = node.inputs().first().and_then(|(_, value)| known.get(value));
            let source = source.or(inputs.first()).ok_or("a view of nothing")?;
            let range = view.offset..view.offset + view.dims.elements();
            let part = |values: &[f64]| values[range.clone()].to_vec();
            return Ok(Known { value: source.value[range.clone()].to_vec(), error: part(&source.error) });
        }
        Lowered::Op(op) => op,
    };
    let given = Given { node, precision: op.precision(), op, arguments, known: inputs };
    let operands = given.operands();
    let reference = given.op.reference(&operands, Answer::Exact).map_err(text)?;
    let mut candidates = vec![reference.clone()];
    if arithmetic.otherwise {
        let kernels = given.op.kernels();
        let space = kernels.space(&crate::run::widest()).into_iter();
        for (kernel, _) in space.filter(|(kernel, _)| kernel.entry().sums_otherwise) {
            candidates.push(kernel.reference(&operands, reference.clone()).map_err(text)?);
        }
    }
    let carried = candidates.into_iter().map(|reference| carry::on(&given, reference));
    let mut carried = carried.collect::<Result<Vec<Known>, String>>()?.into_iter();
    let mut first = carried.next().unwrap_or_default();
    let begun = begun_with(graph, node).map_err(text)?;
    first.error.iter_mut().for_each(|error| *error += begun);
    for other in carried {
        first.error.iter_mut().zip(other.error).for_each(|(own, other)| *own = own.max(other));
    }
    Ok(first)
}

/// What a sum may be off by that begins with a constant which the graph adds to it afterwards, as a bias on the CPU:
/// each term rounds a number that is larger by it.
fn begun_with(graph: &Graph, node: &Node) -> diptych::Result<f64> {
    let adds = |step: &Step| matches!(step.function, Function::Add | Function::Sub);
    if !node.operator().program().is_some_and(|program| program.steps().iter().any(adds)) {
        return Ok(0.0);
    }
    let mut begun = 0.0;
    for &(_, value) in node.inputs() {
        let Some(terms) = terms(graph, value)? else { continue };
        for &(_, constant) in node.inputs() {
            let Some(tensor) = graph.tensor(constant)? else { continue };
            let most = tensor.to_nhwc().iter().fold(0.0, |most: f32, value| most.max(value.abs()));
            begun += terms as f64 * ROUNDING * f64::from(most);
        }
    }
    Ok(begun)
}

/// What f32 rounds by.
const ROUNDING: f64 = 1.0 / (1 << 24) as f64;

/// The terms of the sums that a value is, perhaps moved since.
fn terms(graph: &Graph, mut value: Value) -> diptych::Result<Option<usize>> {
    loop {
        let Some(writer) = graph.nodes().iter().find(|node| node.outputs().contains(&value)) else {
            return Ok(None);
        };
        let weights = |operand| matches!(operand, Operand::Weights | Operand::B);
        if let Some(&(_, weights)) = writer.inputs().iter().find(|(operand, _)| weights(*operand)) {
            let columns = graph.dims(value)?.extents().last().copied().unwrap_or(1);
            return Ok(Some(graph.dims(weights)?.elements().div_ceil(columns)));
        }
        match (writer.inputs(), writer.operator().program()) {
            (&[(_, source)], None) if graph.tensor(source)?.is_none() => value = source,
            _ => return Ok(None),
        }
    }
}

/// Every value of a graph, from its inputs.
///
/// # Errors
/// Those of the library.
pub(crate) fn values(
    graph: &Graph,
    inputs: &BTreeMap<Value, Known>,
    arithmetic: Arithmetic,
) -> Result<BTreeMap<Value, Known>, String> {
    let mut known = inputs.clone();
    for one in graph.nodes() {
        let found = node(graph, one, &known, arithmetic)?;
        let [output] = one.outputs() else { return Err(format!("{} has several outputs", one.name())) };
        known.insert(*output, found);
    }
    Ok(known)
}

/// The bound of each element of a reference.
pub(crate) fn own(reference: &Reference, precision: Precision) -> Vec<f64> {
    (0..reference.value().len()).map(|at| reference.tolerance(at, precision)).collect()
}
