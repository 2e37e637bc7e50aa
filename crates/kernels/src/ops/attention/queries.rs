//! The attention of some queries of each batch alone.

use super::Strided;
use crate::dims::Dims;
use crate::emit::Operand;
use crate::ops::attention::RowStrides;

/// An attention of some queries, and what it reads.
#[derive(Debug, Clone)]
pub struct SomeQueries {
    /// The attention.
    pub attention: Strided,
    /// The elements of the operand `query` that one query of all heads has, where these lie in one piece: it reads the rows of its
    /// queries alone then. Otherwise it reads the operand as before.
    pub query: Option<usize>,
    /// The first element of the bias and of the mask: those before it are not read.
    pub begins: [usize; 2],
}

impl Strided {
    /// The elements of the result that one query of all heads has, if these lie in one piece behind those of the query before
    /// it, and batches behind each other.
    pub fn row(&self) -> Option<usize> {
        let sizes = self.sizes;
        let row = sizes.heads * sizes.group * sizes.width;
        let lie = lie_in_rows(&self.dst, [sizes.batch, sizes.rows], row);
        let whole = self.output.elements() == sizes.batch * sizes.rows * row;
        (self.parts == 1 && lie && whole).then_some(row)
    }

    /// The attention of `count` queries of each batch from `begin` on, where the operand `query` has `elements`. `by_input` says
    /// that an input gives the place of the first query among the keys. `None` if the queries that are attended from depend on
    /// that input, or results do not lie in rows ([`Strided::row`]).
    pub fn of_queries(
        &self,
        [begin, count]: [usize; 2],
        elements: usize,
        by_input: bool,
    ) -> Option<SomeQueries> {
        let (sizes, row) = (self.sizes, self.row()?);
        let follows = self.rules.before.is_some() || self.rules.behind.is_some();
        if follows && by_input || count == 0 || begin + count > sizes.rows {
            return None;
        }
        let mut some = self.clone();
        some.sizes.rows = count;
        if follows {
            some.rules.begin += begin;
        }
        some.dst.steps[0] = count * row;
        some.dst = some.dst.reduced(some.sizes.of(Operand::Dst));
        some.output = Dims::new(&[sizes.batch, count, row]).ok()?;
        let all = sizes.batch * sizes.rows;
        let each = elements / all;
        let [_, head, group, step] = self.query.steps;
        let last = self.query.first + head * (sizes.heads - 1) + group * (sizes.group - 1) + sizes.depth;
        let in_rows = lie_in_rows(&self.query, [sizes.batch, sizes.rows], each);
        let query = (in_rows && last <= each && elements == all * each).then_some(each);
        match query {
            Some(each) => some.query.steps[0] = count * each,
            None => some.query.first += begin * step,
        }
        some.query = some.query.reduced(some.sizes.of(Operand::Query));
        let mut begins = [0; 2];
        for (first, added) in begins.iter_mut().zip([&mut some.bias, &mut some.mask]) {
            if let Some(added) = added {
                let [_, _, _, step, _] = &mut added.steps;
                *first = begin * *step;
                *step = if count == 1 { 0 } else { *step };
            }
        }
        Some(SomeQueries { attention: some, query, begins })
    }
}

/// Whether places of each batch are `row` elements apart, and batches behind each other.
fn lie_in_rows(own: &RowStrides, [batch, rows]: [usize; 2], row: usize) -> bool {
    let [each, _, _, step] = own.steps;
    rows > 1 && step == row && (batch == 1 || each == rows * row)
}
