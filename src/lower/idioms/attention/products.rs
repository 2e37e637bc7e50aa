//! Products that read one input and whose results an attention alone reads, as one product.
//!
//! `[q k v] = x [W_q W_k W_v] + [b_q b_k b_v]`: three products of few columns leave a large GPU idle, and each is a dispatch. The
//! attention reads its queries, keys and values side by side. The constants that are joined are made once for all graphs
//! of a file that share theirs.

use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::{Activation, Operand};
use crate::error::Result;
use crate::graph::Value;
use crate::host::HostTensor;
use crate::lower::idioms::joined::{side_by_side, vectors};
use crate::lower::mistakes::planted;
use crate::lower::network::Network;
use crate::lower::unit::{Input, Unit};
use crate::ops::attention::{RowStrides, Strided};
use crate::ops::gemm::{Gemm, GemmOp};
use std::any::Any;
use std::sync::Arc;

/// Operands that may be columns of one product.
const SIDES: [Operand; 3] = [Operand::Query, Operand::Key, Operand::Value];

/// A product of rows with constant columns.
struct Columns {
    /// The unit.
    index: usize,
    operand: Operand,
    op: GemmOp,
    x: Value,
    weights: HostTensor,
    bias: Option<HostTensor>,
}

/// Joins products; units that `alone` names stay as they are.
pub(in crate::lower) fn join_products(network: &mut Network<'_>, alone: &dyn Fn(&str) -> bool) -> Result<()> {
    for index in 0..network.units().len() {
        let Some(all) = columns(network, index, alone) else { continue };
        // Keys and values of other rows than queries, or of more of them, are two products of one input.
        let extents = |op: &GemmOp| (op.m, op.k, op.batch);
        let alike = |sides: &[Columns]| {
            let same = |side: &Columns| {
                (planted("projections_input") || side.x == sides[0].x)
                    && extents(&side.op) == extents(&sides[0].op)
            };
            sides.len() > 1 && sides.iter().all(same)
        };
        let sides = [&all[..], &all[..2], &all[1..]].into_iter().find(|sides| alike(sides));
        if let Some(sides) = sides
            && let Some(joined) = joined(network, index, sides)?
        {
            joined.replace(network);
        }
    }
    network.close_gaps();
    Ok(())
}

/// The products that the attention in unit `index` reads, those that are of rows with constant columns and that nothing else reads.
fn columns(network: &Network<'_>, index: usize, alone: &dyn Fn(&str) -> bool) -> Option<Vec<Columns>> {
    let unit = network.units().get(index)?;
    (unit.operator()? as &dyn Any).downcast_ref::<Strided>()?;
    if alone(&unit.name) {
        return None;
    }
    let side = |operand: Operand| {
        // A function of each element that a product took shows the product's result.
        let own = network.resolve(unit.input(operand).ok()?.value()?);
        let value = own.of;
        let at = network.writer(value)?;
        let product = &network.units()[at];
        (product.operator()? as &dyn Any).downcast_ref::<Gemm>()?;
        let op = *product.op(network.graph, Precision::F32).ok()?.as_any().downcast_ref::<GemmOp>()?;
        let plain = !op.transpose_a
            && !op.transpose_b
            && op.alpha.0 == 1.0
            && op.beta.0 == 0.0
            && op.epilogue().activation == Activation::None
            && (op.lda, op.ldb, op.ldc) == (op.k, op.n, op.n)
            && (op.batch == 1 || op.shared_b);
        let once = network.readers(value).all(|reader| reader == index)
            && own.offset == 0
            && unit.reads().filter(|read| network.resolve(*read).of == value).count() == 1
            && !network.leaves(value)
            && !alone(&product.name);
        let known = product
            .inputs
            .iter()
            .all(|(operand, _)| matches!(operand, Operand::A | Operand::B | Operand::Bias));
        let constant = |operand: Operand| match product.input(operand) {
            Ok(Input::Constant(tensor, _)) => Some(tensor.clone()),
            _ => None,
        };
        let bias = constant(Operand::Bias);
        let biased = bias.is_some() == product.input(Operand::Bias).is_ok();
        let Input::Value(x) = *product.input(Operand::A).ok()? else { return None };
        let alias = network.resolve(x);
        (plain && once && known && biased && alias.offset == 0 && product.outputs == [value])
            .then_some(Columns { index: at, operand, op, x: alias.of, weights: constant(Operand::B)?, bias })
    };
    let all: Vec<Columns> = SIDES.into_iter().filter_map(side).collect();
    (all.len() > 1).then_some(all)
}

/// What takes the place of some products and their attention.
struct JoinedProducts {
    products: Vec<usize>,
    product: Unit,
    attention: (usize, Unit),
}

impl JoinedProducts {
    /// Puts the product in the place of the first of those that it is made of: what they read is there.
    fn replace(self, network: &mut Network<'_>) {
        let mut units = network.take_units();
        let first = self.products.iter().copied().min();
        for index in self.products {
            if let Some(slot) = units.get_mut(index) {
                *slot = if Some(index) == first {
                    self.product.clone()
                } else {
                    Unit::stacked(Vec::new(), Vec::new(), 1)
                };
            }
        }
        let (index, unit) = self.attention;
        if let Some(slot) = units.get_mut(index) {
            *slot = unit;
        }
        network.set_units(units);
    }
}

/// The rows that lay `own` columns apart at `place`, which are now columns `first..` of rows `all` apart.
fn within(place: RowStrides, [own, first, all]: [usize; 3]) -> Option<RowStrides> {
    let rows = |at: usize| at / own * all + at % own;
    // Steps from row to row, or within one.
    let step = |step: usize| match step {
        step if step < own => Some(step),
        step if step.is_multiple_of(own) => Some(step / own * all),
        _ => None,
    };
    let [b, h, g, row] = place.steps.map(step);
    Some(RowStrides { first: rows(place.first) + first, steps: [b?, h?, g?, row?] })
}

/// The products of `sides`, in unit `index`'s attention, as one.
fn joined(network: &mut Network<'_>, index: usize, sides: &[Columns]) -> Result<Option<JoinedProducts>> {
    let Some(Columns { op, x, .. }) = sides.first() else { return Ok(None) };
    let unit = &network.units()[index];
    let Some(strided) = unit.operator().and_then(|own| (own as &dyn Any).downcast_ref::<Strided>()).cloned()
    else {
        return Ok(None);
    };
    let all: usize = sides.iter().map(|side| side.op.n).sum();
    let (mut strided, mut given) = (strided, unit.given());
    let rows = Dims::new(&[op.batch, 1, op.m, all])?;
    let mut first = 0;
    for side in sides {
        let place = match side.operand {
            Operand::Query => &mut strided.query,
            Operand::Key => &mut strided.key,
            _ => &mut strided.value,
        };
        let Some(there) = within(*place, [side.op.n, first, all]) else { return Ok(None) };
        *place = there;
        first += if planted("projections_places") { 0 } else { side.op.n };
    }
    let derived = network.graph.derived();
    let weights: Vec<&HostTensor> = sides.iter().map(|side| &side.weights).collect();
    let weights = side_by_side(derived, &weights)?;
    let biases: Vec<_> = sides.iter().map(|side| (side.bias.as_ref(), side.op.n)).collect();
    let bias = vectors(derived, &biases)?.filter(|_| !planted("projections_bias"));
    let name: Vec<&str> = sides.iter().map(|side| network.units()[side.index].name.as_str()).collect();
    let name = name.join(" + ");
    let attention = unit.name.clone();
    let outputs = unit.outputs.clone();
    let value = network.add_value(rows);
    for (operand, input, dims) in &mut given {
        if sides.iter().any(|side| side.operand == *operand) {
            (*input, *dims) = (Input::Value(value), rows);
        }
    }
    let matrix = weights.dims();
    let place = network.add_constant(weights.clone());
    let mut inputs = vec![
        (Operand::A, Input::Value(*x), Dims::new(&[op.batch, 1, op.m, op.k])?),
        (Operand::B, Input::Constant(weights, Some(place)), matrix),
    ];
    if let Some(bias) = bias {
        let dims = bias.dims();
        inputs.push((Operand::Bias, Input::Constant(bias, None), dims));
    }
    let product = Unit::of_node(name, Arc::new(Gemm::default()), inputs, vec![value]);
    let attention = Unit::of_node(attention, Arc::new(strided), given, outputs);
    let products = sides.iter().map(|side| side.index).collect();
    if [&product, &attention].iter().any(|unit| unit.op(network.graph, Precision::F32).is_err()) {
        return Ok(None);
    }
    Ok(Some(JoinedProducts { products, product, attention: (index, attention) }))
}
