//! Rows of a nest within the kernel of a product, which keeps its own rows in local memory: where the nest reads the product, it
//! reads there.

use super::flat::bindings;
use super::index::{AxisSet, Index, Term};
use super::nest::{FurtherResult, Nest, Node, counted};
use super::row_text;
use super::rows::{self, Shape, lanes_of, operands, width_along};
use super::text::{Stored, Text, ordered};
use super::written::Written;
use super::{LastText, LoopsOp, OperandSet, oracle, result_operand};
use crate::dims::Dims;
use crate::dtype::DType;
use crate::emit::{Binding, Body, Operand};
use crate::ops::definition::Definition;
use crate::ops::operands::{OperandInfo, Operands, Role};
use crate::ops::reference::Reference;
use crate::ops::spec::Params;
use crate::sorted;
use std::sync::Arc;

/// Where a nest reads rows of a matrix.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RowsRead {
    /// The axes that count the rows, the last one fastest.
    order: Vec<usize>,
    /// Elements from one row to the next along each of these axes.
    strides: Vec<i64>,
}

impl Nest {
    /// The axes of a row as they count the rows of `source`, a matrix of so many rows and columns, of which each row of the nest
    /// reads its own alone.
    fn rows_read(&self, source: usize, [rows, columns]: [usize; 2]) -> Option<RowsRead> {
        let row = self.row_axes();
        let mut found: Option<RowsRead> = None;
        for node in self.nodes.iter().filter(|node| node.source() == Some(source)) {
            let Node::Read { at, guards, .. } = node else { return None };
            let own = self.row_of(at, row, columns)?;
            if !guards.is_empty() || found.as_ref().is_some_and(|other| *other != own) {
                return None;
            }
            found = Some(own);
        }
        let found = found?;
        let mut next = columns as i64;
        for (&axis, &stride) in found.order.iter().zip(&found.strides).rev() {
            if self.extents[axis] > 1 && stride != next {
                return None;
            }
            next *= self.extents[axis] as i64;
        }
        (next == (rows * columns) as i64).then_some(found)
    }

    /// The nest with a further result: what it reads of `source`, where each place of the result reads another element and all are read.
    pub fn keeping(&self, source: usize, target: Dims) -> Option<Nest> {
        let written = self.written_axes();
        let found = self.nodes.iter().enumerate().find_map(|(value, node)| match node {
            Node::Read { source: own, at, guards, .. }
                if *own == source && guards.is_empty() && at.axes() & !written == 0 =>
            {
                counted(at, &self.written, &self.extents)?;
                Some(FurtherResult { value, at: at.clone(), target })
            }
            _ => None,
        })?;
        let mut nest = self.clone();
        nest.further.push(found);
        nest.checked().ok()
    }

    /// The axes of `row` by which `at` finds a row of so many columns, and nothing else in it depends on them.
    fn row_of(&self, at: &Index, row: AxisSet, columns: usize) -> Option<RowsRead> {
        let [least, most] = self.within_row(at, row)?.range(&self.extents);
        if least < 0 || most >= columns as i64 {
            return None;
        }
        let mut axes: Vec<(i64, usize)> = ordered(self, row)
            .into_iter()
            .map(|axis| {
                let stride = at.stride(axis)?;
                // Axes of one place come first.
                Some((if self.extents[axis] > 1 { stride } else { i64::MAX }, axis))
            })
            .collect::<Option<_>>()?;
        sorted::sort(&mut axes, |a, b| b.0.cmp(&a.0));
        let (strides, order) = axes.into_iter().unzip();
        Some(RowsRead { order, strides })
    }

    /// What is left of an index without the places along the axes of `row`, if these have factors alone.
    fn within_row(&self, at: &Index, row: AxisSet) -> Option<Index> {
        let mut rest = at.clone();
        rest.terms.retain(|term, _| !matches!(term, Term::Axis(axis) if row & (1 << axis) != 0));
        (rest.axes() & row == 0).then_some(rest)
    }

    /// The nest as it is written for a kernel in which the row that belongs to it is row `i` of so many in local memory, where `i` is
    /// the place along a new axis, which is given.
    fn of_local_rows(&self, source: usize, columns: usize) -> (Nest, usize) {
        let (mut nest, row, own) = (self.clone(), self.row_axes(), self.extents.len());
        nest.extents.push(1);
        // Reductions no longer depend on all axes of a row.
        nest.apart = row;
        for node in &mut nest.nodes {
            if let Node::Read { source: of, at, .. } = node
                && *of == source
                && let Some(rest) = self.within_row(at, row)
            {
                *at = rest.plus(&Index::axis(own), columns as i64);
            }
        }
        (nest, own)
    }
}

/// A nest's rows within a product's kernel.
pub(in crate::ops) struct RowsWithin {
    /// The statements.
    pub(in crate::ops) body: Body,
    /// The scalars that they name.
    pub(in crate::ops) params: Params,
    /// What they read but for the product, and what they write.
    pub(in crate::ops) bindings: Vec<Binding>,
}

impl LoopsOp {
    /// Why a product of so many rows and columns cannot compute the nest's rows from its own, which are source `source`, if it cannot.
    pub(in crate::ops) fn obstacle_of_product(&self, source: usize, extents: [usize; 2]) -> Option<String> {
        let nest = &*self.stored;
        let shape = Shape::of(nest);
        let refused = match () {
            () if !nest.reduces() => "a nest without reductions",
            () if shape.rows != extents[0] || nest.rows_read(source, extents).is_none() => {
                "rows that are not made of one of the product's each"
            }
            () if nest.node_types().iter().any(|own| *own != DType::F32) => "other numbers than f32",
            () if width_along(lanes_of(nest), shape.row) > 1 => "four rows at once",
            () if self.maps != OperandSet::NONE => "feature maps in slices of channels",
            () if !self.text_of_product(source, extents[1], (2, false)).has_all => {
                "more scalars than a kernel takes"
            }
            () => return None,
        };
        Some(refused.to_owned())
    }

    /// The nest's rows, each of so many invocations, for a product that keeps rows of so many columns in local memory, which are
    /// source `source`. Halves are bound as such if the kernel has a `native_half` type.
    pub(in crate::ops) fn of_product(
        &self,
        source: usize,
        columns: usize,
        invocations: u32,
        native_half: bool,
    ) -> RowsWithin {
        let [sources, results] = operands(self);
        let text = self.text_of_product(source, columns, (invocations, native_half));
        let product = sources.get(source).map(|own| own.operand);
        let all = bindings(&sources, &results).into_iter();
        let bindings = all.filter(|own| Some(own.operand) != product).collect();
        RowsWithin { body: text.body.clone(), params: text.params.clone(), bindings }
    }

    /// The operand that each source is.
    pub(in crate::ops) fn source_operands(&self) -> Vec<Operand> {
        self.sources.clone()
    }

    /// The result of `operands`, which were checked; each element of source `source` may be off by its bound.
    pub(in crate::ops) fn near(&self, operands: &Operands<'_>, source: usize, bounds: &[f64]) -> Reference {
        oracle::oracle_near(self, operands, Some((source, bounds)))
    }

    fn text_of_product(
        &self,
        source: usize,
        columns: usize,
        (invocations, native_half): (u32, bool),
    ) -> Arc<Written> {
        let [mut sources, results] = operands(self);
        if let Some(own) = sources.get_mut(source) {
            *own = Stored { is_wide: true, dtype: DType::F32, name: LOCAL, ..*own };
        }
        // Both kinds of halves have a text of their own.
        let key = invocations | u32::from(native_half) << 31;
        self.text.of(key, || {
            let (nest, axis) = self.stored.of_local_rows(source, columns);
            let shape = Shape::of(&self.stored);
            let rows = [shape.rows, columns];
            let read = self.stored.rows_read(source, rows);
            let order = read.map_or_else(|| ordered(&self.stored, shape.row), |read| read.order);
            let mut text = Text::new(&nest, lanes_of(&self.stored), &sources).within_another(native_half);
            text.line(&format!("let i{axis}: u32 = own_row;"));
            let shape = Shape { row: shape.row | 1 << axis, ..shape };
            row_text::write(&mut text, &shape, &order, &results, invocations);
            text.written()
        })
    }

    /// What the statements of a product's kernel need: whether they have four elements at once, the type of local memory by number, and
    /// whether it has places.
    pub(in crate::ops) fn kinds_of_product(&self) -> (bool, u32, bool) {
        (rows::width(self) == 4, rows::word_of(self), rows::has_places(self))
    }

    /// Its operands but for source `source`: what it reads, and what it writes, the first result last.
    pub(in crate::ops) fn operands_beside(&self, source: usize) -> [Vec<OperandInfo>; 2] {
        let own = self.source(source);
        let infos = Definition::operands(self).into_iter().filter(|info| info.operand != own);
        let (read, written) = infos.partition(|info: &OperandInfo| info.role == Role::Input);
        [read, written]
    }

    /// The op that writes result `result` alone.
    pub(in crate::ops) fn of_result(&self, result: usize) -> Option<LoopsOp> {
        let of = |set: OperandSet| OperandSet { results: (set.results >> result) & 1, ..set };
        let nest = Arc::new(self.nest.only(result));
        let op = LoopsOp::new(nest, of(self.halves), of(self.maps), self.precision).ok()?;
        Some(LoopsOp { sources: self.sources.clone(), ..op })
    }

    /// The op with `product` as the name of source `source` and [`Operand::Read`] for the others, for a product's kernel.
    #[must_use]
    pub(in crate::ops) fn with_product(&self, source: usize, product: Operand) -> Self {
        let name = |place: usize| {
            let read = if place < source { place } else { place.saturating_sub(1) };
            if place == source { product } else { Operand::Read(read as u8) }
        };
        LoopsOp { text: LastText::default(), ..self.with_sources(name) }
    }

    /// Its results beside the first, as operands.
    pub(in crate::ops) fn further(&self) -> impl Iterator<Item = (usize, Operand)> + '_ {
        (1..self.results()).map(|result| (result, result_operand(result)))
    }

    /// The most places of a loop, or fours of places where an invocation has four elements at once.
    pub(in crate::ops) fn places_of_row(&self) -> usize {
        let shape = Shape::of(&self.stored);
        shape.longest / rows::width(self) as usize
    }
}

/// The name of the product's rows in local memory.
const LOCAL: &str = "staged";
