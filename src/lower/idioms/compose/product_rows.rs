//! Has the kernel of a product compute what a nest makes of each of its rows: the normalisation behind a layer, or a
//! softmax. Scores of several heads stay apart: each head has a second matrix of its own. A work-group then sums whole rows and keeps them in local memory (`ops/gemm_rows`).
//!
//! That saves a launch, and the product's way through memory where nothing else reads it. But each work-group reads all columns of the
//! second matrix for few rows: the estimates of both kernels say where that pays.

use super::estimated;
use super::nested::{NestOf, name_reads, nest_of};
use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::error::Result;
use crate::graph::Value;
use crate::layout::Layout;
use crate::limits::Limits;
use crate::limits::machine::Machine;
use crate::lower::mistakes::planted;
use crate::lower::network::Network;
use crate::lower::step::TOGETHER;
use crate::lower::unit::{Input, Unit};
use crate::ops::gemm::{Gemm, GemmOp};
use crate::ops::gemm_rows::GemmRows;
use crate::ops::loops::{Loops, OperandSet};
use crate::ops::{Choice, Op};
use crate::tune::work_group::{WorkGroup, untuned_in};
use std::any::Any;
use std::sync::Arc;

/// Puts nests with reductions into the kernels of the products whose rows they read, for a device of these `limits`; units that
/// `alone` names stay as they are.
pub(crate) fn reduce_rows(
    network: &mut Network<'_>,
    alone: &dyn Fn(&str) -> bool,
    precision: Precision,
    limits: &Limits,
) -> Result<()> {
    let device = estimated(limits);
    let Some(machine) = Machine::of(&device) else { return Ok(()) };
    let rows = Rows { alone, precision, limits: &device, machine };
    for place in 0..network.units().len() {
        if let Some(Both { gap, stays, mut unit }) = rows.both(network, place)? {
            name_reads(network, &mut unit);
            network.merge(gap, stays, unit);
        }
    }
    network.close_gaps();
    Ok(())
}

/// How much of a launch is to be saved at least: the rest is for what the estimates do not see.
const LEAST_SAVED: f64 = 0.5;

/// How much of a launch a unit may take to read the second matrix for all of its work-groups, of so many rows each, with so many bytes
/// an element: halves become f32 on their way, or go through local memory. A product alone has work-groups for some of its columns
/// each. On an H200, products of 784 x 160 x 640 and more took longer together with a normalisation than the product, the
/// normalisation and the launch between them, and those up to 196 x 128 x 128 less.
const MOST_READING: f64 = 0.25;
const BYTES: f64 = 4.0;
const ROWS: usize = 16;

struct Rows<'a> {
    alone: &'a dyn Fn(&str) -> bool,
    precision: Precision,
    limits: &'a Limits,
    machine: Machine,
}

/// A product and a nest as one unit, and which of their places is empty then.
struct Both {
    gap: usize,
    stays: usize,
    unit: Unit,
}

/// A nest that reads a product.
struct Reader {
    place: usize,
    nest: Loops,
    /// Which of its sources the product is.
    source: usize,
    sources: Vec<(Input, Dims)>,
}

impl Rows<'_> {
    /// The unit `place` and the first nest that reads its rows as one, if it is a product whose kernel can compute that nest in less
    /// time.
    fn both(&self, network: &Network<'_>, place: usize) -> Result<Option<Both>> {
        let first = &network.units()[place];
        let (&[value], true) = (&first.outputs[..], first.parts().is_empty()) else { return Ok(None) };
        let Some(&gemm) = first.operator().and_then(|own| (own as &dyn Any).downcast_ref::<Gemm>()) else {
            return Ok(None);
        };
        if first.host.is_some() || (self.alone)(&first.name) {
            return Ok(None);
        }
        let Some(reader) = self.reader(network, first, value)? else { return Ok(None) };
        let second = &network.units()[reader.place];
        let kept = network.leaves(value) || network.readers(value).any(|other| other != reader.place);
        let Some((gap, stays)) = places(network, place, &reader, kept && !planted("product_rows_order"))
        else {
            return Ok(None);
        };
        let own = first.op(network.graph, self.precision)?;
        let Some(product) = own.as_any().downcast_ref::<GemmOp>() else { return Ok(None) };
        let Some(nest) = (if kept { keeping(network, value, &*own, &reader)? } else { Some(reader.nest) })
        else {
            return Ok(None);
        };
        let mut inputs = first.given();
        let others = reader.sources.into_iter().enumerate().filter(|(source, _)| *source != reader.source);
        for (order, (_, (input, dims))) in others.enumerate() {
            let read = order ^ usize::from(planted("product_rows_reads"));
            inputs.push((Operand::Read(read as u8), input, dims));
        }
        let mut outputs = second.outputs.clone();
        if kept {
            // What is written last is the first result.
            outputs.insert(0, value);
        }
        let name = format!("{}{TOGETHER}{}", first.name, second.name);
        let operator = Arc::new(GemmRows::new(gemm, nest, reader.source));
        let mut unit = Unit::of_node(name, operator, inputs, outputs);
        unit.precision = first.precision.clone();
        let Ok(op) = unit.op(network.graph, self.precision) else { return Ok(None) };
        Ok(self.pays(product, &*own, &*op).then_some(Both { gap, stays, unit }))
    }

    /// The first nest with reductions that reads the result of the unit `first`, all of it.
    fn reader(&self, network: &Network<'_>, first: &Unit, product: Value) -> Result<Option<Reader>> {
        let elements = network.dims(product)?.elements();
        let assigned = |unit: &Unit| unit.precision.as_ref().map(|own| own.precision);
        for place in network.readers(product) {
            let unit = &network.units()[place];
            if unit.host.is_some() || (self.alone)(&unit.name) || assigned(first) != assigned(unit) {
                continue;
            }
            let op = unit.op(network.graph, self.precision)?;
            let Some(NestOf { nest, sources }) = nest_of(network, unit, &*op)? else { continue };
            let reads = |(input, dims): &(Input, Dims)| {
                let alias = input.value().map(|value| network.resolve(value));
                alias.is_some_and(|own| own.of == product && own.offset == 0) && dims.elements() == elements
            };
            let is_of_rows = nest.nest().reduces() && nest.stored()[1] == OperandSet::NONE;
            if let (true, Some(source)) = (is_of_rows, sources.iter().position(reads)) {
                return Ok(Some(Reader { place, nest, source, sources }));
            }
        }
        Ok(None)
    }

    /// Whether the kernel of both takes less time: its estimate is less than that of the product and half of a launch, and reading the
    /// second matrix takes a unit little of a launch.
    fn pays(&self, product: &GemmOp, own: &dyn Op, both: &dyn Op) -> bool {
        let groups = product.m().div_ceil(ROWS).div_ceil(self.machine.units as usize);
        let bytes = BYTES * (groups * product.n() * product.k()) as f64;
        if bytes / self.machine.cache_bytes > MOST_READING * self.machine.launch {
            return false;
        }
        let choice = |op: &dyn Op| {
            untuned_in(op, WorkGroup::Table, Layout::Nhwc, self.limits)
                .or_else(|_| untuned_in(op, WorkGroup::Table, Layout::C4, self.limits))
                .ok()
        };
        let (Some(apart), Some(together)) = (choice(own), choice(both)) else { return false };
        let time =
            |op: &dyn Op, choice: &Choice| op.kernel(choice.variant).ok()?.estimate(choice, self.limits);
        let (Some(apart), Some(together)) = (time(own, &apart), time(both, &together)) else { return false };
        together < apart + LEAST_SAVED * self.machine.launch
    }
}

/// Which of two units is no more, and which one becomes both: whatever reads the product comes behind the nest, or what the nest reads
/// beside it is there before the product.
fn places(network: &Network<'_>, place: usize, reader: &Reader, kept: bool) -> Option<(usize, usize)> {
    let &product = network.units()[place].outputs.first()?;
    if !kept || network.readers(product).all(|other| other >= reader.place) {
        return Some((place, reader.place));
    }
    let known = |(source, (input, _)): (usize, &(Input, Dims))| {
        let writer = input.value().and_then(|value| network.writer(network.resolve(value).of));
        source == reader.source || writer.is_none_or(|writer| writer < place)
    };
    reader.sources.iter().enumerate().all(known).then_some((reader.place, place))
}

/// The nest with the product as a further result.
fn keeping(network: &Network<'_>, product: Value, op: &dyn Op, reader: &Reader) -> Result<Option<Loops>> {
    let dims = network.dims(product)?;
    let Some(nest) = reader.nest.nest().keeping(reader.source, dims) else { return Ok(None) };
    let [mut halves, _] = reader.nest.stored();
    let further = nest.targets().count() - 1;
    if op.precision().storage() == DType::F16 {
        halves.results |= 1 << further;
    } else {
        halves.results &= !(1 << further);
    }
    Ok(Loops::new(nest, halves, OperandSet::NONE).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::Dialect;
    use crate::limits::{Family, MatrixUnit};

    #[test]
    fn small_products_are_taken_with_their_rows_and_large_ones_are_not() {
        let vulkan = Limits {
            family: Family::Nvidia,
            compute_units: Some(132),
            local_memory: 49152,
            max_invocations: 1024,
            max_work_group: [1024, 1024, 64],
            native_half: true,
            matrix_unit: Some(MatrixUnit::Cooperative { subgroup: 32 }),
            ..Limits::webgpu()
        };
        let opencl = Limits { dialect: Dialect::OpenClC, matrix_unit: None, ..vulkan.clone() };
        for (limits, precision) in
            [(&vulkan, Precision::F32), (&vulkan, Precision::F16Storage), (&opencl, Precision::F32)]
        {
            let machine = Machine::of(limits).expect("a GPU");
            let rows = Rows { alone: &|_| false, precision, limits, machine };
            for ([m, n, k], taken) in [
                ([196, 128, 128], true),
                ([3136, 32, 256], true),
                ([784, 64, 64], true),
                ([784, 192, 768], false),
                ([196, 384, 1536], false),
                ([16384, 32, 256], false),
            ] {
                let entry = |name: &str| {
                    let found = crate::ops::all().iter().find(|entry| entry.name == name).expect("an op");
                    (found.numbers.op)(&[m, n, k], None, precision).expect("extents")
                };
                let (product, both) = (entry("gemm"), entry("gemm_rows"));
                let gemm = product.as_any().downcast_ref::<GemmOp>().expect("a product");
                let pays = rows.pays(gemm, &*product, &*both);
                assert_eq!(pays, taken, "{m} x {n} x {k} {precision} {:?}", limits.dialect);
            }
        }
    }
}
