//! Products that read and write matrices where moves would bring them from or to: heads side by side, windows, one of several
//! parts.
//!
//! A product whose columns would not lie behind each other may be that of the transposed matrices in the other order: nests
//! beside it then write and read theirs column by column.

use super::{Nested, OnGpu};
use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::error::Result;
use crate::graph::{TensorType, Value};
use crate::layout::Layout;
use crate::lower::halves::{has_maps_alone, op_on};
use crate::lower::mistakes::planted;
use crate::lower::step::TOGETHER;
use crate::lower::unit::{Input, Unit};
use crate::ops::gemm::{Gemm, GemmOp, Place, PlacedGemm, Places};
use crate::ops::loops::{Matrices, MatrixIndex, MatrixStrides, OperandSet, ReadFrom, SourceAt, Sources};
use std::any::Any;
use std::sync::Arc;

/// A product of two values.
struct Product {
    options: Gemm,
    bias: Option<(Input, Dims)>,
    /// What each matrix is given.
    operands: [(Value, Dims); 2],
    output: Value,
    batch: usize,
    /// Rows, columns and terms.
    extents: [usize; 3],
    halves: bool,
}

/// Where an operand of a product is, and what becomes of the unit beside it.
pub(super) struct OperandPlace {
    pub(super) value: Value,
    pub(super) index: MatrixIndex,
    pub(super) neighbour: Neighbour,
}

/// The unit that writes a matrix or reads the result.
pub(super) enum Neighbour {
    Stays,
    /// It is a move, whose place the product takes.
    Goes(usize),
    /// It is a nest that writes or reads the matrix column by column from now on.
    Turns(usize, Box<Nested>),
}

/// A product with places.
struct PlacedProduct {
    found: [OperandPlace; 3],
    op: GemmOp,
    saved: usize,
}

impl OnGpu<'_, '_, '_> {
    /// Has products take the places of moves beside them.
    pub(super) fn place_products(&mut self) -> Result<()> {
        for place in 0..self.nested.len() {
            let Some(product) = self.product(place)? else { continue };
            let mut best: Option<PlacedProduct> = None;
            for turned in [false, true] {
                let found = self.placed(place, &product, turned)?;
                best = match (best, found) {
                    (Some(best), Some(found)) if found.saved <= best.saved => Some(best),
                    (best, found) => found.or(best),
                };
            }
            if let Some(placed) = best.filter(|placed| placed.saved > 0) {
                self.place_product(place, &product, placed)?;
            }
        }
        Ok(())
    }

    /// Unit `place` as a product of two values, if it is one.
    fn product(&self, place: usize) -> Result<Option<Product>> {
        let unit = &self.network.units()[place];
        let gemm = unit.operator().and_then(|operator| (operator as &dyn Any).downcast_ref::<Gemm>());
        let (Some(&options), &[output]) = (gemm, &unit.outputs[..]) else { return Ok(None) };
        if unit.host.is_some() || (self.alone)(&unit.name) {
            return Ok(None);
        }
        let given = unit.given();
        let find = |operand: Operand| given.iter().find(|(own, ..)| *own == operand);
        let value = |operand: Operand| {
            let (_, input, dims) = find(operand)?;
            Some((input.value()?, *dims))
        };
        let (Some(a), Some(b)) = (value(Operand::A), value(Operand::B)) else { return Ok(None) };
        let (Some(left), Some(right)) = (a.1.matrices(), b.1.matrices()) else { return Ok(None) };
        let others =
            given.iter().any(|(operand, ..)| !matches!(operand, Operand::A | Operand::B | Operand::Bias));
        let of = op_on(self.network.graph, unit, self.precision, Layout::Nhwc, self.limits)?;
        let bias = find(Operand::Bias).map(|(_, input, dims)| (input.clone(), *dims));
        let Ok(op) = GemmOp::of_matrices(left, right, &options, bias.is_some(), false, Precision::F32) else {
            return Ok(None);
        };
        if others || options.beta.0 != 0.0 || op.m * op.n * op.k * op.batch == 0 {
            return Ok(None);
        }
        // What a move wrote is no more where the product takes its place.
        let root = |value: Value| self.network.resolve(value).of;
        let bias_root = bias.as_ref().and_then(|(input, _)| input.value()).map(root);
        if bias_root.is_some_and(|own| own == root(a.0) || own == root(b.0)) {
            return Ok(None);
        }
        let (batch, extents) = (op.batch, [op.m, op.n, op.k]);
        // One right matrix may serve all.
        if right.n != batch {
            return Ok(None);
        }
        let halves = of.precision().storage() == DType::F16;
        Ok(Some(Product { options, bias, operands: [a, b], output, batch, extents, halves }))
    }

    /// The product with its matrices where they are, of the transposed ones in the other order if it is `turned`.
    fn placed(&self, place: usize, product: &Product, turned: bool) -> Result<Option<PlacedProduct>> {
        if turned && product.bias.is_some() {
            return Ok(None);
        }
        let [m, n, k] = product.extents;
        let [left, right] = product.operands;
        let (rows, columns) = if turned { (n, m) } else { (m, n) };
        let of =
            |rows, columns, transposed: bool| Matrices { batch: product.batch, rows, columns, transposed };
        let (a, b) = if turned {
            ((right.0, !product.options.transpose_b), (left.0, !product.options.transpose_a))
        } else {
            ((left.0, product.options.transpose_a), (right.0, product.options.transpose_b))
        };
        let Some(a) = self.read(place, a.0, of(rows, k, a.1), product.halves)? else { return Ok(None) };
        let Some(b) = self.read(place, b.0, of(k, columns, b.1), product.halves)? else { return Ok(None) };
        // One unit cannot be changed twice.
        let same = |one: &OperandPlace, other: &OperandPlace| {
            one.neighbour.unit().is_some() && one.neighbour.unit() == other.neighbour.unit()
        };
        let Some(c) = self.written(place, product, of(rows, columns, turned))? else { return Ok(None) };
        if same(&a, &b) || same(&a, &c) || same(&b, &c) {
            return Ok(None);
        }
        let found = [a, b, c];
        let saved = found.iter().filter(|own| matches!(own.neighbour, Neighbour::Goes(_))).count();
        let options =
            Gemm { alpha: product.options.alpha, activation: product.options.activation, ..Gemm::default() };
        let bias = product.bias.is_some();
        let Ok(packed) = GemmOp::new(rows, columns, k, product.batch, &options, bias, false, Precision::F32)
        else {
            return Ok(None);
        };
        let withins: Vec<usize> = found.iter().flat_map(|own| own.index.withins()).collect();
        for within in withins {
            let regular =
                found.iter().map(|own| own.index.regular(within)).collect::<Option<Vec<MatrixStrides>>>();
            let Some([a, b, c]) =
                regular.as_deref().and_then(|all| <&[MatrixStrides; 3]>::try_from(all).ok())
            else {
                continue;
            };
            let elements = |order: usize| Ok(self.network.dims(found[order].value)?.elements());
            let at = |own: &MatrixStrides, elements: usize| Place {
                elements,
                first: if planted("loops_place") { 0 } else { own.first },
                outer: own.outer,
                inner: own.inner,
            };
            let places =
                Places { within, a: at(a, elements(0)?), b: at(b, elements(1)?), c: at(c, elements(2)?) };
            let rows = [a.row, b.row, c.row];
            if let Ok(op) = packed.at(places, rows)
                && whole(&packed, &[], [k, columns, columns]) <= whole(&packed, &[*a, *b, *c], rows)
            {
                return Ok(Some(PlacedProduct { found, op, saved }));
            }
        }
        Ok(None)
    }

    /// Finds where a matrix lies that unit `place` reads.
    pub(super) fn read(
        &self,
        place: usize,
        value: Value,
        of: Matrices,
        halves: bool,
    ) -> Result<Option<OperandPlace>> {
        let network = &*self.network;
        let alias = network.resolve(value);
        let alone = !network.leaves(alias.of) && network.readers(alias.of).all(|reader| reader == place);
        let writer = network.writer(alias.of).filter(|_| alone);
        let nested = writer.and_then(|writer| Some((writer, self.free(place, writer)?)));
        if let Some((writer, own)) = nested.filter(|(_, own)| own.outputs.len() == 1) {
            if let Some((source, index)) = own.nest.gathers(alias.offset, of)
                && let Some(&Input::Value(value)) = own.sources.get(source).map(|(input, _)| input)
                && (own.halves.sources & (1 << source) != 0) == halves
                && is_regular(&index)
                && self.is_of_rows(value)?
            {
                return Ok(Some(OperandPlace { value, index, neighbour: Neighbour::Goes(writer) }));
            }
            let whole = network.dims(alias.of)?.elements() == of.batch * of.rows * of.columns;
            if of.transposed && whole {
                let Ok(turned) = of.turned() else { return Ok(None) };
                let all: Vec<Dims> = own.sources.iter().map(|(_, dims)| *dims).collect();
                let from: Vec<SourceAt> = (0..all.len()).map(SourceAt::whole).collect();
                let sources =
                    Sources { all: &all, reader: &[ReadFrom::Written(0)], writer: &from, keeps: false };
                let Ok(nest) = turned.after(&own.nest, &sources) else { return Ok(None) };
                let own = Box::new(Nested { nest, ..own }.timed(self.times, self.precision));
                let index = Matrices { transposed: false, ..of }.from(0);
                return Ok(Some(OperandPlace {
                    value: alias.of,
                    index,
                    neighbour: Neighbour::Turns(writer, own),
                }));
            }
        }
        let stays =
            OperandPlace { value: alias.of, index: of.from(alias.offset), neighbour: Neighbour::Stays };
        Ok((!of.transposed).then_some(stays))
    }

    /// Finds where the result of unit `place` lies.
    fn written(&self, place: usize, product: &Product, of: Matrices) -> Result<Option<OperandPlace>> {
        let (network, output) = (&*self.network, product.output);
        let readers: Vec<usize> = network.readers(output).collect();
        let reader = match readers[..] {
            [reader] if !network.leaves(output) => self.free(place, reader).map(|own| (reader, own)),
            _ => None,
        };
        if let Some((reader, own)) = reader {
            let is_output = |source: &usize| own.sources[*source].0.value() == Some(output);
            let reads: Vec<usize> = (0..own.sources.len()).filter(is_output).collect();
            if let (Some((source, index)), &[value]) = (own.nest.scatters(of), &own.outputs[..])
                && is_output(&source)
                && (own.halves.results & 1 != 0) == product.halves
                && is_regular(&index)
            {
                return Ok(Some(OperandPlace { value, index, neighbour: Neighbour::Goes(reader) }));
            }
            if of.transposed
                && let [source] = reads[..]
            {
                let stored = Matrices { rows: of.columns, columns: of.rows, ..of };
                let Ok(turned) = stored.turned() else { return Ok(None) };
                let Ok(nest) = own.nest.reading_through(source, &turned) else { return Ok(None) };
                let own = Box::new(Nested { nest, ..own }.timed(self.times, self.precision));
                let index = Matrices { transposed: false, ..of }.from(0);
                return Ok(Some(OperandPlace {
                    value: output,
                    index,
                    neighbour: Neighbour::Turns(reader, own),
                }));
            }
        }
        let stays = OperandPlace { value: output, index: of.from(0), neighbour: Neighbour::Stays };
        Ok((!of.transposed).then_some(stays))
    }

    /// Whether `value` is written in rows, and not in slices of four channels.
    pub(super) fn is_of_rows(&self, value: Value) -> Result<bool> {
        let network = &*self.network;
        let Some(unit) = network.writer(value).map(|writer| &network.units()[writer]) else {
            return Ok(true);
        };
        let op = op_on(network.graph, unit, self.precision, Layout::C4, self.limits)?;
        Ok(unit.host.is_none() && !has_maps_alone(&*op, self.limits))
    }

    /// Puts a product with places in the place of unit `place` and of moves beside it.
    fn place_product(&mut self, place: usize, product: &Product, placed: PlacedProduct) -> Result<()> {
        let PlacedProduct { found, op, .. } = placed;
        let sizes = [[op.m(), op.k()], [op.k(), op.n()], [op.m(), op.n()]];
        let mut turns = Vec::new();
        let (mut values, mut names, mut gone) = (Vec::new(), vec![place], Vec::new());
        for (order, (OperandPlace { value, neighbour, .. }, [rows, columns])) in
            found.into_iter().zip(sizes).enumerate()
        {
            values.push(match neighbour {
                Neighbour::Stays => value,
                Neighbour::Goes(unit) => {
                    names.push(unit);
                    gone.push(unit);
                    value
                }
                Neighbour::Turns(unit, mut own) => {
                    let (dtype, dims) = (self.network.dtype(value), Dims::new(&[op.batch(), rows, columns])?);
                    let new = self.network.add_value_of(TensorType { dtype, dims });
                    if order < 2 {
                        own.outputs = vec![new];
                    } else {
                        for (input, own) in &mut own.sources {
                            if input.value() == Some(value) {
                                (*input, *own) = (Input::Value(new), dims);
                            }
                        }
                    }
                    self.name_constants(&mut own);
                    turns.push((unit, own));
                    new
                }
            });
        }
        let &[a, b, c] = &values[..] else { return Ok(()) };
        let mut units = Vec::with_capacity(turns.len());
        for (unit, own) in turns {
            let name = self.network.units()[unit].name.clone();
            let Ok(new) = own.unit(name, OperandSet::NONE, self.times) else { return Ok(()) };
            units.push((unit, new, *own));
        }
        crate::sorted::sort(&mut names, Ord::cmp);
        let names: Vec<&str> = names.iter().map(|&unit| self.network.units()[unit].name.as_str()).collect();
        let mut inputs = vec![
            (Operand::A, Input::Value(a), self.network.dims(a)?),
            (Operand::B, Input::Value(b), self.network.dims(b)?),
        ];
        inputs.extend(product.bias.clone().map(|(input, dims)| (Operand::Bias, input, dims)));
        let Ok(operator) = PlacedGemm::new(op, self.network.dims(c)?) else { return Ok(()) };
        let mut unit = Unit::of_node(names.join(TOGETHER), Arc::new(operator), inputs, vec![c]);
        unit.precision = self.network.units()[place].precision.clone();
        for (turned, new, own) in units {
            self.network.replace(turned, new);
            self.nested[turned] = Some(own);
            self.composed[turned] = true;
        }
        self.network.replace(place, unit.clone());
        for gone in gone {
            self.network.merge(gone, place, unit.clone());
            self.nested[gone] = None;
        }
        Ok(())
    }
}

impl Neighbour {
    const fn unit(&self) -> Option<usize> {
        match self {
            Neighbour::Stays => None,
            Neighbour::Goes(unit) | Neighbour::Turns(unit, _) => Some(*unit),
        }
    }
}

/// Whether the matrices lie so that a product finds them.
fn is_regular(index: &MatrixIndex) -> bool {
    index.withins().into_iter().any(|within| index.regular(within).is_some())
}

/// How many elements at once kernels may read of a product whose rows lie so far apart: 8, 4 or 1.
fn whole(op: &GemmOp, places: &[MatrixStrides], rows: [usize; 3]) -> usize {
    let of_places = places.iter().flat_map(|own| [own.first, own.outer, own.inner]);
    let all: Vec<usize> = [op.n(), op.k()].into_iter().chain(rows).chain(of_places).collect();
    [8, 4].into_iter().find(|&whole| all.iter().all(|extent| extent.is_multiple_of(whole))).unwrap_or(1)
}
