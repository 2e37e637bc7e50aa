//! Matrices that a move gathers from a value, or scatters into one: where a product finds and leaves them without the move.

use super::compose::{ReadFrom, SourceAt, Sources};
use super::index::{Index, Term};
use super::nest::{Nest, Node, Nodes, counted};
use crate::dims::Dims;
use crate::dtype::DType;
use crate::error::Result;

/// Matrices one behind the other, as a product reads or writes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Matrices {
    /// How many.
    pub batch: usize,
    /// Rows of each.
    pub rows: usize,
    /// Columns of each.
    pub columns: usize,
    /// Whether they are stored column by column.
    pub transposed: bool,
}

/// Where the elements of matrices lie in a value.
#[derive(Debug, Clone)]
pub struct MatrixIndex {
    of: Matrices,
    /// By matrix, row and column.
    at: Index,
}

/// Where the matrices of a batch lie in a value, whose rows are stretches of elements one behind the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatrixStrides {
    /// The element with which the first matrix begins.
    pub first: usize,
    /// Elements from a matrix to the one `within` further.
    pub outer: usize,
    /// Elements from a matrix to the next within these.
    pub inner: usize,
    /// Elements from a row to the next.
    pub row: usize,
}

impl Matrices {
    fn extents(&self) -> [usize; 3] {
        [self.batch, self.rows, self.columns]
    }

    /// The element of a value that has the matrices alone, by matrix, row and column.
    fn element(&self) -> Index {
        let [rows, columns] = [self.rows as i64, self.columns as i64];
        let (row, column) = (Index::axis(1), Index::axis(2));
        let within = if self.transposed { row.plus(&column, rows) } else { column.plus(&row, columns) };
        within.plus(&Index::axis(0), rows * columns)
    }

    /// Where they lie in a value from element `first` on.
    pub fn from(self, first: usize) -> MatrixIndex {
        MatrixIndex { of: self, at: self.element().plus(&Index::number(first as i64), 1) }
    }

    /// The nest that stores matrices of rows column by column, or the other way round.
    ///
    /// # Errors
    /// If they are too large.
    pub fn turned(self) -> Result<Nest> {
        let extents = self.extents();
        let [batch, rows, columns] = extents;
        let mut nodes = Nodes::default();
        let value = nodes.read(0, self.element());
        let sources = vec![Dims::new(&[batch, rows * columns])?];
        Nest::new(extents.to_vec(), vec![0, 1, 2], sources, nodes, value, Dims::new(&[batch, rows, columns])?)
    }
}

impl MatrixIndex {
    /// The numbers of matrices after which they may lie elsewhere: 1, and those that its places are divided by.
    pub fn withins(&self) -> Vec<usize> {
        let mut found = vec![1];
        self.at.sums(&mut |sum| {
            for term in sum.terms().keys() {
                if let Term::Quotient(of, by) | Term::Remainder(of, by) = term
                    && of.as_term() == Some(&Term::Axis(0))
                    && let Ok(by) = usize::try_from(*by)
                    && !found.contains(&by)
                {
                    found.push(by);
                }
            }
        });
        found
    }

    /// Where the matrices lie, if each so many of them lie alike.
    pub fn regular(&self, within: usize) -> Option<MatrixStrides> {
        let Matrices { batch, rows, columns, .. } = self.of;
        if within == 0 || !batch.is_multiple_of(within) {
            return None;
        }
        let extents = [batch / within, within, rows, columns];
        let matrix = Index::axis(1).plus(&Index::axis(0), within as i64);
        let at = self.at.with(&[matrix, Index::axis(2), Index::axis(3)], &extents);
        let mut strides = [0usize; 4];
        for (term, &factor) in at.terms() {
            let Term::Axis(axis) = term else { return None };
            strides[usize::from(*axis)] = usize::try_from(factor).ok()?;
        }
        let [outer, inner, row, column] = strides;
        if column != 1 && columns > 1 {
            return None;
        }
        let row = if rows > 1 { row } else { columns };
        let first = usize::try_from(at.constant()).ok()?;
        (row >= columns).then_some(MatrixStrides { first, outer, inner, row })
    }
}

impl Nest {
    /// For a nest that moves elements of one source: which, and where.
    fn moved(&self) -> Option<(usize, &Index)> {
        match self.nodes.get(self.value) {
            Some(Node::Read { source, at, guards, .. })
                if guards.is_empty()
                    && self.nodes.len() == 1
                    && self.further.is_empty()
                    && self.result_type(0) == DType::F32 =>
            {
                Some((*source, at))
            }
            _ => None,
        }
    }

    /// Where the source of a move has the matrices that lie in its result from element `first` on: which source, and where.
    pub fn gathers(&self, first: usize, of: Matrices) -> Option<(usize, MatrixIndex)> {
        let (source, at) = self.moved()?;
        let extents = of.extents();
        let element = of.from(first).at;
        let mut places = vec![Index::default(); self.extents.len()];
        let strides = self.strides();
        for &axis in &self.written {
            let extent = self.extents[axis] as i64;
            places[axis] = element.quotient(strides[axis] as i64, &extents).remainder(extent, &extents);
        }
        Some((source, MatrixIndex { of, at: at.with(&places, &extents) }))
    }

    /// Where the result of a move has the matrices that are one of its sources, each element of which it moves once: which
    /// source, and where.
    pub fn scatters(&self, of: Matrices) -> Option<(usize, MatrixIndex)> {
        let (source, at) = self.moved()?;
        let axes = counted(at, &self.written, &self.extents)?;
        let count: usize = axes.iter().map(|&axis| self.extents[axis]).product();
        let extents = of.extents();
        if count != extents.iter().product::<usize>() {
            return None;
        }
        let element = of.from(0).at;
        let mut places = vec![Index::default(); self.extents.len()];
        let mut stride = 1i64;
        for &axis in axes.iter().rev() {
            let extent = self.extents[axis] as i64;
            places[axis] = element.quotient(stride, &extents).remainder(extent, &extents);
            stride *= extent;
        }
        Some((source, MatrixIndex { of, at: self.position().with(&places, &extents) }))
    }

    /// The nest that reads source `source` as the nest `turned` gives it, of another one.
    ///
    /// # Errors
    /// If together they are no nest.
    pub fn reading_through(&self, source: usize, turned: &Nest) -> Result<Nest> {
        let mut all = self.sources.clone();
        if let (Some(own), Some(&other)) = (all.get_mut(source), turned.sources.first()) {
            *own = other;
        }
        let reader: Vec<ReadFrom> =
            (0..all.len())
                .map(|own| {
                    if own == source { ReadFrom::Written(0) } else { ReadFrom::Source(SourceAt::whole(own)) }
                })
                .collect();
        let writer = [SourceAt::whole(source)];
        self.after(turned, &Sources { all: &all, reader: &reader, writer: &writer, keeps: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Precision;
    use crate::ops::op::Op;
    use crate::ops::operator::{Argument, Arguments, Lowered, Operator};
    use crate::ops::remap::Transpose;

    /// The nest of a transpose.
    fn transpose(dims: &[usize], permutation: &[usize]) -> Nest {
        let dims = Dims::new(dims).expect("small");
        let operator = Transpose { permutation: permutation.to_vec() };
        let argument = Argument { operand: crate::emit::Operand::Src, dims, dtype: crate::dtype::DType::F32 };
        let dimensions = std::collections::BTreeMap::new();
        let arguments = Arguments { inputs: &[argument], dimensions: &dimensions, narrow: false };
        match Operator::lower(&operator, arguments, Precision::F32) {
            Ok(Lowered::Op(op)) => Op::nest(&*op).expect("a nest").nest,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn heads_are_gathered_and_put_side_by_side() {
        // Two images, seven tokens, three heads of eight.
        let of = Matrices { batch: 6, rows: 7, columns: 8, transposed: false };
        let gathered = transpose(&[2, 7, 3, 8], &[0, 2, 1, 3]).gathers(0, of).expect("a move").1;
        assert!(gathered.withins().contains(&3), "{gathered:?}");
        let wanted = MatrixStrides { first: 0, outer: 7 * 24, inner: 8, row: 24 };
        assert_eq!(gathered.regular(3), Some(wanted));
        assert_eq!(gathered.regular(1), None);
        let scattered = transpose(&[2, 3, 7, 8], &[0, 2, 1, 3]).scatters(of).expect("a move").1;
        assert_eq!(scattered.regular(3), Some(wanted));
        // Columns that do not lie behind each other.
        let turned = Matrices { batch: 6, rows: 8, columns: 7, transposed: true };
        let columns = transpose(&[2, 7, 3, 8], &[0, 2, 1, 3]).gathers(0, turned).expect("a move").1;
        assert_eq!(columns.regular(3), None);
        // A transpose that ends in columns leaves rows for the product of the transposed.
        let turned = transpose(&[2, 7, 3, 8], &[0, 2, 3, 1]).gathers(0, Matrices { transposed: true, ..of });
        assert_eq!(turned.expect("a move").1.regular(3), Some(wanted));
    }
}
