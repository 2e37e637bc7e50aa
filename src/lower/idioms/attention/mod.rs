//! Attention that was written out, as the op that it is; and attention that reads queries, keys and values where their products
//! wrote them.
//!
//! | written out | becomes |
//! |---|---|
//! | `softmax(f(s Q K^T)) V`, `f` factors, a soft cap, numbers that are added, a mask, in this order | attention |
//! | an attention of what was moved, and moves of its result | an attention with other places |
//!
//! Nothing else may read what lies between the products. What moves is undone where rows stay rows of features: axes may be in
//! any order, split, merged, cut or spread.

mod operands;
mod products;
mod scores;
mod whole;

pub(in crate::lower) use products::join_products;

use super::factors::remap;
use super::strided::{Places, inverse};
use super::{Finder, Replacement, Term};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::{Activation, Operand};
use crate::graph::Value;
use crate::lower::mistakes::planted;
use crate::lower::network::Network;
use crate::lower::unit::Input;
use crate::ops::attention::{Added, Attention, AttentionOp, RowStrides, Sizes};
use crate::ops::gemm::{Gemm, GemmOp};
use crate::ops::softmax::Softmax;
use scores::Scores;
use std::any::Any;
use whole::AttentionInputs;

/// Features of a row, at most: where keys do not fit into local memory beside queries, two products are faster.
const MOST_FEATURES: usize = 256;

/// Finds attention; units that `alone` names stay as they are.
pub(in crate::lower) fn attention(network: &mut Network<'_>, alone: &dyn Fn(&str) -> bool) {
    let mut index = 0;
    while index < network.units().len() {
        let finder = Finder { network, alone };
        match finder.attention(index) {
            Some(found) => index = found.replace(network),
            None => index += 1,
        }
    }
}

/// A product of matrices, and what it reads.
struct Product {
    index: usize,
    op: GemmOp,
    a: Input,
    b: Input,
    output: Value,
}

impl Finder<'_, '_> {
    /// The attention that ends in unit `index`, written out or a node, if it serves as a unit.
    fn attention(&self, index: usize) -> Option<Replacement> {
        let found = self.written_out(index).or_else(|| self.node(index));
        found.filter(|found| found.new.iter().all(|unit| unit.op(self.network.graph, Precision::F32).is_ok()))
    }

    /// The attention whose product with the values is unit `index`.
    fn written_out(&self, index: usize) -> Option<Replacement> {
        let last = self.product(index)?;
        let shares = self.network.resolve(last.a.value()?);
        let at = self.network.writer(shares.of)?;
        let unit = self.network.units().get(at)?;
        let softmax = (unit.operator()? as &dyn Any).downcast_ref::<Softmax>()?;
        let dims = self.network.dims(shares.of).ok()?;
        let along = softmax.axis == -1 || softmax.axis == dims.rank() as isize - 1;
        let keys = dims.extents().last().copied()?;
        let plain = !softmax.log && softmax.beta.0 == 1.0 && shares.offset == 0 && !last.op.transpose_a;
        if !along || !plain || last.op.alpha.0 != 1.0 || last.op.k != keys {
            return None;
        }
        let Input::Value(scores) = unit.input(Operand::Src).ok()? else { return None };
        let Scores { product: first, rules, bias, mask, mut old } = self.scores(*scores)?;
        old.extend([first.index, at, index]);
        let alike = first.op.batch == last.op.batch && first.op.m == last.op.m && first.op.n == keys;
        let features = first.op.k.max(last.op.n);
        if !alike || features > MOST_FEATURES || !self.stay_among(&old, last.output) {
            return None;
        }
        let [batch, m, n] = [first.op.batch, first.op.m, first.op.n];
        let scores = [(batch, m * n), (m, n), (n, 1)];
        let added = |term: Option<(Term, Dims)>| match term {
            Some((term, dims)) => self.to_scores(&term, &dims, scores).map(Some),
            None => Some(None),
        };
        let (mut bias, mut mask) = (added(bias)?, added(mask)?);
        if planted("attention_bias") {
            bias = None;
        }
        if planted("attention_bias_and_mask") {
            (bias, mask) = (mask, bias);
        }
        let (a, b) = (&first.op, &last.op);
        let result = Places::of([(batch, m * b.n), (m, b.n), (b.n, 1)]);
        // The operands of the first product, and the right one of the second, as heads, places and features.
        let whole = |far: bool| {
            let side =
                |input: &Input, [shared, turned, scaled]: [bool; 3], [places, features]: [usize; 2]| {
                    let (place, feature) = if turned { (1, places) } else { (features, 1) };
                    let heads = if shared { 0 } else { places * features };
                    let axes = [(batch, heads), (places, place), (features, feature)];
                    self.operands(input, Places::of(axes), [far, scaled])
                };
            let mut query = side(&first.a, [false, a.transpose_a, true], [m, a.k])?;
            let mut key = side(&first.b, [a.shared_b, !a.transpose_b, true], [n, a.k])?;
            if planted("attention_query_and_key") {
                std::mem::swap(&mut query, &mut key);
            }
            let value = side(&last.b, [b.shared_b, b.transpose_b, false], [n, b.n])?;
            let mut rules = rules;
            if !planted("attention_factor") {
                rules.scale.0 *= query.factor * key.factor;
            }
            let name = self.network.units()[index].name.clone();
            let (bias, mask) = (bias.clone(), mask.clone());
            let more = Vec::new();
            let whole = AttentionInputs {
                name,
                query,
                key,
                value,
                bias,
                mask,
                more,
                rules,
                batch: None,
                group: None,
            };
            self.placed(&whole, last.output, &result, &old)
        };
        whole(true).or_else(|| whole(false))
    }

    /// An attention node of a graph, in unit `index`, which reads and writes where others do.
    fn node(&self, index: usize) -> Option<Replacement> {
        let unit = self.network.units().get(index)?;
        (unit.operator()? as &dyn Any).downcast_ref::<Attention>()?;
        if (self.alone)(&unit.name) {
            return None;
        }
        let op = unit.op(self.network.graph, Precision::F32).ok()?;
        let own = op.as_any().downcast_ref::<AttentionOp>()?.strided();
        let Sizes { batch, heads, group, rows, keys, depth, width } = own.sizes;
        let side = |operand: Operand, place: RowStrides, group: usize, rows: usize, features: usize| {
            let [b, h, g, row] = place.steps;
            let axes = [vec![(batch, b), (heads, h)], vec![(group, g), (rows, row)], vec![(features, 1)]];
            let takes_factor = operand != Operand::Value;
            self.operands(
                unit.input(operand).ok()?,
                Places::of_parts(place.first, axes),
                [true, takes_factor],
            )
        };
        let query = side(Operand::Query, own.query, group, rows, depth)?;
        let key = side(Operand::Key, own.key, 1, keys, depth)?;
        let value = side(Operand::Value, own.value, 1, keys, width)?;
        let given = unit.given();
        let added = |operand: Operand, added: Option<Added>| {
            let Added { steps: [b, h, g, row, key] } = added?;
            let (_, input, dims) = given.iter().find(|(own, ..)| *own == operand)?;
            let axes = [vec![(batch, b), (heads, h)], vec![(group, g), (rows, row)], vec![(keys, key)]];
            Some(self.spread_from(input, *dims, Places::of_parts(0, axes)))
        };
        let mut rules = own.rules;
        rules.scale.0 *= query.factor * key.factor;
        let (bias, mask) = (added(Operand::Bias, own.bias), added(Operand::Mask, own.mask));
        let counts = given.iter().filter(|(operand, ..)| matches!(operand, Operand::Begins | Operand::Ends));
        let more = counts.cloned().collect();
        let name = unit.name.clone();
        let (batches, group) = (Some(batch), Some(group));
        let whole =
            AttentionInputs { name, query, key, value, bias, mask, more, rules, batch: batches, group };
        let &[output] = &unit.outputs[..] else { return None };
        let [b, h, g, row] = own.dst.steps;
        let axes = [vec![(batch, b), (heads, h)], vec![(own.sizes.group, g), (rows, row)], vec![(width, 1)]];
        self.placed(&whole, output, &Places::of_parts(0, axes), &[index])
    }

    /// `whole` in the place of the units of `old`: it writes its result, which is `output` at `result`, where that is moved
    /// next, if it is.
    fn placed(
        &self,
        whole: &AttentionInputs,
        output: Value,
        result: &Places<3>,
        old: &[usize],
    ) -> Option<Replacement> {
        let dims = self.network.dims(output).ok()?;
        let (mut unit, mut old) = (whole.unit(result, dims, output)?, old.to_vec());
        if let Some(moved) = self.moved_result(output, result)
            && let at = if planted("attention_result") { result } else { &moved.places }
            && let Some(there) = whole.unit(at, moved.dims, moved.output)
        {
            unit = there;
            old.push(moved.index);
        }
        Some(Replacement { old, new: vec![unit] })
    }

    /// Whether what the units of `old` write is read by others of them alone, in any shape, but for `result`.
    fn stay_among(&self, old: &[usize], result: Value) -> bool {
        old.iter().all(|&index| {
            let unit = &self.network.units()[index];
            let inside = |&value: &Value| {
                let mut readers = self.network.readers(value);
                value == result
                    || planted("attention_leaves")
                    || (!self.network.leaves(value) && readers.all(|reader| old.contains(&reader)))
            };
            !(self.alone)(&unit.name) && unit.outputs.iter().all(inside)
        })
    }

    /// The matrix product that unit `index` is, of constants or not, and nothing more.
    fn product(&self, index: usize) -> Option<Product> {
        let unit = self.network.units().get(index)?;
        (unit.operator()? as &dyn Any).downcast_ref::<Gemm>()?;
        let op = unit.op(self.network.graph, Precision::F32).ok()?;
        let op = *op.as_any().downcast_ref::<GemmOp>()?;
        let (&[output], true) = (&unit.outputs[..], unit.inputs.len() == 2) else { return None };
        let plain = op.epilogue().activation == Activation::None && op.beta.0 == 0.0;
        let [a, b] = [Operand::A, Operand::B].map(|operand| unit.input(operand).ok().cloned());
        plain.then_some(Product { index, op, a: a?, b: b?, output })
    }

    /// The move that alone reads a result, and where it puts the elements.
    fn moved_result(&self, result: Value, places: &Places<3>) -> Option<Moved> {
        let mut readers = self.network.readers(result);
        let (index, None) = (readers.next()?, readers.next()) else { return None };
        let unit = &self.network.units()[index];
        if self.network.leaves(result) || (self.alone)(&unit.name) {
            return None;
        }
        let alias = self.network.resolve(unit.reads().next()?);
        let (first, parts) = remap(self.network, unit)?.strided()?;
        let elements = self.network.dims(result).ok()?.elements();
        let &[output] = &unit.outputs[..] else { return None };
        let dims = self.network.dims(output).ok()?;
        if alias.of != result || alias.offset != 0 || dims.elements() != elements {
            return None;
        }
        let places = places.moved(0, &inverse(first, &parts)?)?;
        Some(Moved { index, output, dims, places })
    }
}

/// A move of a result.
struct Moved {
    index: usize,
    output: Value,
    dims: Dims,
    places: Places<3>,
}
