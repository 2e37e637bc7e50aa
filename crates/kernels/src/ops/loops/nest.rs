//! What a nest of loops computes: reads, functions and reductions over axes.

use super::OP;
use super::index::{AxisSet, Index};
pub(in crate::ops) use super::node::{
    FurtherResult, GatherAxis, Guard, Node, NodeId, Nodes, counted, elements_in, word_of,
};
use crate::dims::Dims;
use crate::dtype::DType;
use crate::emit::interface::MAX_RESULTS;
use crate::error::{Error, Result};

/// The most operands that a nest reads and writes: WebGPU binds no more.
pub(in crate::ops) const MAX_OPERANDS: usize = 8;

/// The most axes of a nest.
pub(in crate::ops) const MAX_AXES: usize = 16;

/// The most nodes of a nest.
pub(in crate::ops) const MAX_NODES: usize = 96;

/// The most sums in an index, itself included: those that are divided, guarded or mirrored.
const MAX_SUMS: usize = 32;

/// `y[axes] = f(...)`: one element of the result for each place along the result's axes.
///
/// Nodes are functions of the places along axes. A reduction takes the values of a node along its own axes; what it gives
/// depends on the others alone. The axes on which reductions depend are those of a *row*: all that is reduced for one row is
/// known before the row's results are written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Nest {
    /// The extents of the axes.
    pub(in crate::ops) extents: Vec<usize>,
    /// The result's axes, outermost first: its elements lie behind each other along them.
    pub(in crate::ops) written: Vec<usize>,
    pub(in crate::ops) sources: Vec<Dims>,
    /// The type of each source's elements: f32, integers of 32 bits, or bytes, four in a word.
    pub(in crate::ops) types: Vec<DType>,
    pub(in crate::ops) nodes: Vec<Node>,
    /// The node that is written.
    pub(in crate::ops) value: NodeId,
    pub(in crate::ops) target: Dims,
    /// Results beside the first.
    pub(in crate::ops) further: Vec<FurtherResult>,
    /// Axes of the result that are those of a row although no reduction depends on them: what a row reduces is computed anew
    /// for each place along them, so that several work-groups write what belongs to it.
    pub(in crate::ops) apart: AxisSet,
}

/// The axes of a set, in ascending order.
pub(in crate::ops) fn axes_of(set: AxisSet) -> impl Iterator<Item = usize> {
    (0..AxisSet::BITS as usize).filter(move |axis| set & (1 << axis) != 0)
}

/// Where the element at the places along all axes of rows is.
pub(in crate::ops) fn element(extents: &[usize]) -> Index {
    let (mut at, mut stride) = (Index::default(), 1);
    for (axis, &extent) in extents.iter().enumerate().rev() {
        at = at.plus(&Index::axis(axis), stride);
        stride *= extent as i64;
    }
    at
}

/// Where the element of `dims` is that belongs to one of a result of `rank` axes by numpy's rule: axes are aligned at the last
/// one, and an extent of 1 goes with any other.
pub(in crate::ops) fn aligned(dims: Dims, rank: usize) -> Index {
    let own = dims.extents();
    let (mut at, mut stride) = (Index::default(), 1);
    for (axis, &extent) in own.iter().enumerate().rev() {
        if extent > 1 {
            at = at.plus(&Index::axis(rank.saturating_sub(own.len()) + axis), stride);
        }
        stride *= extent as i64;
    }
    at
}

impl Nest {
    /// The nest of `nodes`, of which `value` is written along the axes of `written` as `target`.
    ///
    /// # Errors
    /// If it is no nest that kernels compute.
    pub(in crate::ops) fn new(
        extents: Vec<usize>,
        written: Vec<usize>,
        sources: Vec<Dims>,
        nodes: Nodes,
        value: NodeId,
        target: Dims,
    ) -> Result<Self> {
        let sources = sources.into_iter().map(|dims| (dims, DType::F32)).collect();
        Nest::of_words(extents, written, sources, nodes, value, target)
    }

    /// The nest of `nodes`, of which `value` is written along the axes of `written` as `target`; sources have these types.
    ///
    /// # Errors
    /// If it is no nest that kernels compute.
    pub(in crate::ops) fn of_words(
        extents: Vec<usize>,
        written: Vec<usize>,
        sources: Vec<(Dims, DType)>,
        nodes: Nodes,
        value: NodeId,
        target: Dims,
    ) -> Result<Self> {
        let (sources, types): (Vec<Dims>, Vec<DType>) = sources.into_iter().unzip();
        // Of nothing there is nothing to compute.
        for dims in sources.iter().chain([&target]) {
            dims.checked(OP)?;
        }
        let (nodes, further) = (nodes.nodes, Vec::new());
        Nest { extents, written, sources, types, nodes, value, target, further, apart: 0 }.tidied().checked()
    }

    /// The nest, checked.
    ///
    /// # Errors
    /// If it has too many axes, sources or nodes, its axes do not make up the result, an element beyond a source may be read,
    /// or a reduction depends on an axis over which another one loops.
    pub(in crate::ops) fn checked(self) -> Result<Self> {
        let refuse =
            |found: String, wanted: String| Err(Error::unsupported(OP, format!("{found}, wanted {wanted}")));
        let [axes, sources, nodes] = [self.extents.len(), self.sources.len(), self.nodes.len()];
        let results = 1 + self.further.len();
        if axes > MAX_AXES
            || sources + results > MAX_OPERANDS
            || results > MAX_RESULTS
            || nodes > MAX_NODES
            || sources == 0
        {
            let found = format!("{axes} axes, {sources} sources, {results} results, {nodes} nodes");
            let wanted = format!(
                "at most {MAX_AXES}, 1 or more, 1 to {MAX_RESULTS}, {MAX_OPERANDS} of both, at most {MAX_NODES}"
            );
            return refuse(found, wanted);
        }
        for dims in
            self.sources.iter().chain([&self.target]).chain(self.further.iter().map(|own| &own.target))
        {
            dims.checked(OP)?;
        }
        let elements = self.written.iter().try_fold(1usize, |product, &axis| {
            product.checked_mul(self.extents.get(axis).copied().unwrap_or_default())
        });
        if elements != Some(elements_in(self.target, self.result_type(0))) {
            return refuse(format!("{elements:?} elements along the axes"), self.target.to_string());
        }
        let written = self.written_axes();
        if written.count_ones() as usize != self.written.len() {
            return refuse("an axis that is written twice".to_owned(), "each once".to_owned());
        }
        let depends = self.dependences();
        for (id, node) in self.nodes.iter().enumerate() {
            if node.arguments().iter().any(|&argument| argument >= id) {
                return refuse(format!("node {id} that reads a later one"), "earlier ones".to_owned());
            }
            for index in node.indices() {
                let mut sums = 0;
                index.sums(&mut |_| sums += 1);
                if sums > MAX_SUMS {
                    return refuse(format!("an index of {sums} sums"), format!("at most {MAX_SUMS}"));
                }
                if !index.divides_unsigned(&self.extents) {
                    return refuse(
                        format!("a quotient of what may be negative in {index:?}"),
                        "none".to_owned(),
                    );
                }
            }
            self.check_node(node)?;
        }
        self.check_types()?;
        let row = self.row_axes();
        for (order, FurtherResult { value, at, target }) in self.further.iter().enumerate() {
            let places = counted(at, &self.written, &self.extents).map(|_| self.count(written));
            let of_result = depends.get(*value).is_some_and(|own| own & !written == 0);
            let elements = elements_in(*target, self.result_type(order + 1));
            if places != Some(elements) || !of_result {
                return refuse(format!("a result at {at}"), format!("each element of {target} once"));
            }
        }
        let crossed =
            self.nodes.iter().any(|node| matches!(node, Node::Reduce { over, .. } if over & row != 0));
        if crossed || row & !written != 0 || depends.get(self.value).is_none_or(|own| own & !written != 0) {
            let found = "a reduction, or a result, that depends on an axis of a loop".to_owned();
            return refuse(found, "axes of the result".to_owned());
        }
        if !self.has_words_of_bytes() {
            let found = "bytes of which no invocation has four that are one word".to_owned();
            return refuse(found, "whole words along the last axis of the result".to_owned());
        }
        Ok(self)
    }

    /// The dimensions of what it reads.
    pub fn sources(&self) -> &[Dims] {
        &self.sources
    }

    /// How many elements of a source a word holds: of bytes four.
    pub fn elements_of_word(&self, source: usize) -> usize {
        self.types.get(source).map_or(1, |&dtype| elements_in(Dims::SCALAR, dtype))
    }

    /// The dimensions of its result.
    pub fn target(&self) -> Dims {
        self.target
    }

    /// The axes on which each node depends.
    pub(in crate::ops) fn dependences(&self) -> Vec<AxisSet> {
        let mut depends: Vec<AxisSet> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let own = node.indices().into_iter().fold(0, |all, index| all | index.axes());
            let of = |id: &NodeId| depends.get(*id).copied().unwrap_or_default();
            let all = node.arguments().iter().fold(own, |all, id| all | of(id));
            depends.push(match node {
                Node::Reduce { over, .. } => all & !over,
                _ => all,
            });
        }
        depends
    }

    /// The axes of the result.
    pub(in crate::ops) fn written_axes(&self) -> AxisSet {
        self.written.iter().fold(0, |all, &axis| all | 1 << axis)
    }

    /// The axes of a row: all on which a reduction depends, and those that are apart.
    pub(in crate::ops) fn row_axes(&self) -> AxisSet {
        let depends = self.dependences().into_iter().zip(&self.nodes);
        let reduced = depends.filter(|(_, node)| matches!(node, Node::Reduce { .. }));
        reduced.fold(self.apart, |all, (own, _)| all | own)
    }

    /// Whether it reduces anything.
    pub fn reduces(&self) -> bool {
        self.nodes.iter().any(|node| matches!(node, Node::Reduce { .. }))
    }

    /// Whether it moves elements and computes nothing.
    pub fn is_move(&self) -> bool {
        let moves = |node: &Node| {
            matches!(node, Node::Read { .. } | Node::Choose { .. } | Node::Number(_) | Node::Integer { .. })
        };
        matches!(self.nodes.get(self.value), Some(Node::Read { .. } | Node::Choose { .. }))
            && self.nodes.iter().all(moves)
    }

    /// For each node how many reductions come one behind the other up to it, itself included.
    pub(in crate::ops) fn stages(&self) -> Vec<usize> {
        let mut stages: Vec<usize> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let before = node.arguments().iter().map(|&id| stages[id]).max().unwrap_or_default();
            stages.push(before + usize::from(matches!(node, Node::Reduce { .. })));
        }
        stages
    }

    /// The product of the extents of a set of axes.
    pub(in crate::ops) fn count(&self, axes: AxisSet) -> usize {
        axes_of(axes).map(|axis| self.extents[axis]).product()
    }

    /// Places along the written axes of which element `index` of the result is.
    pub(in crate::ops) fn place(&self, index: usize, at: &mut [usize]) {
        let mut rest = index;
        for &axis in self.written.iter().rev() {
            at[axis] = rest % self.extents[axis];
            rest /= self.extents[axis];
        }
    }

    /// Elements of the result from one place to the next along each axis; 0 along those that it has not.
    pub(in crate::ops) fn strides(&self) -> Vec<usize> {
        let mut strides = vec![0; self.extents.len()];
        let mut stride = 1;
        for &axis in self.written.iter().rev() {
            strides[axis] = stride;
            stride *= self.extents[axis];
        }
        strides
    }

    /// The nodes that are written.
    pub(in crate::ops) fn values(&self) -> impl Iterator<Item = NodeId> + '_ {
        [self.value].into_iter().chain(self.further.iter().map(|own| own.value))
    }

    /// The dimensions of each result.
    pub fn targets(&self) -> impl Iterator<Item = Dims> + '_ {
        [self.target].into_iter().chain(self.further.iter().map(|own| own.target))
    }

    /// Each result: the element that is written at the places along the axes, and its dimensions.
    pub(in crate::ops) fn results(&self) -> impl Iterator<Item = (Index, Dims)> + '_ {
        let first = (self.position(), self.target);
        [first].into_iter().chain(self.further.iter().map(|own| (own.at.clone(), own.target)))
    }

    /// The nest that writes result `order` alone.
    pub(in crate::ops) fn only(&self, order: usize) -> Nest {
        let mut nest = Nest { further: Vec::new(), ..self.clone() };
        if let Some(FurtherResult { value, at, target }) =
            order.checked_sub(1).and_then(|order| self.further.get(order))
        {
            // Along axes of one place there is no order.
            nest.written = counted(at, &self.written, &self.extents).unwrap_or_default();
            (nest.value, nest.target) = (*value, *target);
        }
        nest
    }

    /// The element of the first result that is written at the places along its axes.
    pub(in crate::ops) fn position(&self) -> Index {
        let strides = self.strides();
        let each = self.written.iter().map(|&axis| (axis, strides[axis] as i64));
        each.fold(Index::default(), |sum, (axis, stride)| sum.plus(&Index::axis(axis), stride))
    }

    /// The operations of one run: a function or a term of a reduction counts one.
    pub(in crate::ops) fn operations(&self) -> u64 {
        let (depends, loops) = (self.dependences(), self.loops());
        let each = self.nodes.iter().enumerate().map(|(id, node)| match node {
            Node::Apply(..) | Node::ApplyIntegers { .. } => loops[id] * self.count(depends[id]) as u64,
            Node::Reduce { over, .. } => self.count(depends[id] | over) as u64,
            _ => 0,
        });
        each.sum()
    }

    /// In how many loops each node is computed: once for each stage of reductions that needs it, and once more for the result.
    pub(in crate::ops) fn loops(&self) -> Vec<u64> {
        let (depends, stages, row) = (self.dependences(), self.stages(), self.row_axes());
        let mut needed = vec![0u64; self.nodes.len()];
        let mut wanted = vec![0u64; self.nodes.len()];
        for value in self.values() {
            wanted[value] |= 1 << 63;
        }
        for id in (0..self.nodes.len()).rev() {
            let of_row = depends[id] & !row == 0;
            if let Node::Reduce { .. } = self.nodes[id] {
                self.nodes[id].arguments().into_iter().for_each(|own| wanted[own] |= 1 << stages[id].min(62));
                needed[id] = 1;
                continue;
            }
            needed[id] = if of_row { u64::from(wanted[id] != 0) } else { u64::from(wanted[id].count_ones()) };
            for argument in self.nodes[id].arguments() {
                wanted[argument] |= wanted[id];
            }
        }
        needed
    }
}
