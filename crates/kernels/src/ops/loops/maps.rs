//! Nests whose operands are feature maps in slices of four channels ([`Layout::C4`](crate::layout::Layout::C4)): a slice is
//! a place like any other, so what changes an operand's form is a part of the nest.

use super::compose::{ReadFrom, SourceAt, Sources};
use super::index::Index;
use super::nest::{Guard, Nest, Node, Nodes, axes_of};
use super::{OP, OperandSet};
use crate::dims::Dims;
use crate::dtype::DType;
use crate::emit::Bits;
use crate::error::{Error, Result};
use crate::ops::elementwise::Function;
use crate::ops::reduce::Reduction;
use crate::shape::Shape;

/// Channels of a slice.
const LANES: usize = 4;

/// The elements of a map in slices, along images, slices, pixels and lanes.
fn slices(shape: Shape) -> [usize; 4] {
    [shape.n, shape.slices(), shape.h * shape.w, LANES]
}

/// Where in slices the element is that is at `at` in rows.
fn in_slices(at: &Index, shape: Shape, extents: &[usize]) -> Index {
    let [images, slices, pixels, lanes] = slices(shape).map(|extent| extent as i64);
    let channels = shape.c as i64;
    let channel = at.remainder(channels, extents);
    let all = at.quotient(channels, extents);
    let (pixel, image) = match images {
        1 => (all, Index::default()),
        _ => (all.remainder(pixels, extents), all.quotient(pixels, extents)),
    };
    let plane = channel.quotient(lanes, extents).plus(&image, slices);
    channel.remainder(lanes, extents).plus(&pixel.plus(&plane, pixels), lanes)
}

/// The nest that writes rows in slices: lanes beyond the channels are 0.
fn to_slices(rows: Dims) -> Result<Nest> {
    let shape = rows.shape();
    let extents = slices(shape);
    let channel = Index::axis(3).plus(&Index::axis(1), LANES as i64);
    let row = Index::axis(2).plus(&Index::axis(0), extents[2] as i64);
    let (mut nodes, channels) = (Nodes::default(), shape.c as i64);
    let mut guards = Vec::new();
    if !shape.c.is_multiple_of(LANES) {
        guards.push(Guard { index: channel.clone(), below: channels });
    }
    let at = channel.inside(channels, &extents).plus(&row, channels);
    let value = nodes.add(Node::Read { source: 0, at, guards, otherwise: Bits(0.0) });
    Nest::new(extents.to_vec(), (0..4).collect(), vec![rows], nodes, value, Dims::new(&extents)?)
}

impl Nest {
    /// The nest that computes whole slices, lanes beyond the channels too: it writes 0 there, and leaves these lanes out of what it
    /// reduces. None if a channel of the result depends on other channels than the same one, or all, of a map that it reads.
    fn along_whole_slices(&self, maps: OperandSet) -> Option<Nest> {
        let shape = self.target.shape();
        if !maps.has_result(0) || shape.c == 1 || shape.c.is_multiple_of(LANES) || !self.further.is_empty() {
            return None;
        }
        let mut nest = self.clone();
        let &last = nest.written.last()?;
        if nest.extents[last] > shape.c && nest.extents[last].is_multiple_of(shape.c) {
            nest = nest.split(last, shape.c);
        }
        let &axis = nest.written.last()?;
        if nest.extents[axis] != shape.c {
            return None;
        }
        let (bit, channels) = (1 << axis, shape.c as i64);
        let extents = nest.extents.clone();
        nest.extents[axis] = shape.c.next_multiple_of(LANES);
        let mut places: Vec<Index> = (0..extents.len()).map(Index::axis).collect();
        places[axis] = Index::axis(axis).inside(channels, &nest.extents);
        let guards = vec![Guard { index: Index::axis(axis), below: channels }];
        let types = nest.node_types();
        let (mut nodes, mut ids) = (Nodes::default(), Vec::with_capacity(nest.nodes.len()));
        for node in &nest.nodes {
            let of_integers = matches!(node, Node::Reduce { of, .. } if types[*of] != DType::F32);
            let mut node = node.mapped(&Index::clone, &|id| ids[id]);
            match &mut node {
                Node::Reduce { over, .. } if *over & bit != 0 && of_integers => return None,
                Node::Reduce { reduction, of, over, place } if *over & bit != 0 => {
                    let (own, over, place) = (*reduction, *over, *place);
                    let otherwise = nodes.number(own.first());
                    let then = *of;
                    let of = nodes.add(Node::Choose { guards: guards.clone(), then, otherwise });
                    node = Node::Reduce { reduction: own, of, over, place };
                    if own == Reduction::Mean {
                        let sum = nodes.reduce(Reduction::Sum, of, over);
                        let count = axes_of(over).map(|axis| extents[axis]).product::<usize>();
                        let count = nodes.number(count as f32);
                        node = Node::Apply(Function::Div, vec![sum, count]);
                    }
                }
                Node::Gather { at, .. } if at.axes() & bit != 0 => return None,
                Node::Read { source, at, guards: own_guards, .. } => {
                    let depends = at.axes() & bit != 0;
                    if maps.has_source(*source) {
                        let own = nest.sources.get(*source)?.shape().c;
                        let pixel = at.quotient(own as i64, &extents);
                        let channel = at.remainder(own as i64, &extents);
                        let alike = own == shape.c && pixel.axes() & bit == 0 && channel == Index::axis(axis);
                        if depends && !alike {
                            return None;
                        }
                        *at = channel.plus(&pixel, own.next_multiple_of(LANES) as i64);
                    } else if depends {
                        own_guards.extend(guards.iter().cloned());
                        *at = at.with(&places, &nest.extents);
                    }
                }
                _ => {}
            }
            ids.push(nodes.add(node));
        }
        let whole = |shape: Shape| Dims::new(&[shape.n, shape.h, shape.w, shape.c.next_multiple_of(LANES)]);
        for (place, dims) in nest.sources.iter_mut().enumerate() {
            if maps.has_source(place) {
                *dims = whole(dims.shape()).ok()?;
            }
        }
        nest.target = whole(shape).ok()?;
        let (then, otherwise) = (*ids.get(nest.value)?, nodes.number(0.0));
        nest.value = nodes.add(Node::Choose { guards, then, otherwise });
        nest.nodes = nodes.nodes;
        Some(nest)
    }

    /// The nest with the operands of `maps` in slices of four channels.
    ///
    /// # Errors
    /// If that is no nest that kernels compute.
    pub fn in_maps(&self, maps: OperandSet) -> Result<Nest> {
        let gathers = |node: &Node| matches!(node, Node::Gather { source, .. } if maps.has_source(*source));
        let of_integers = |place: usize, dtype: DType| dtype != DType::F32 && maps.has_source(place);
        if self.nodes.iter().any(gathers)
            || self.types.iter().enumerate().any(|(place, &dtype)| of_integers(place, dtype))
            || (0..=self.further.len())
                .any(|order| maps.has_result(order) && self.result_type(order) != DType::F32)
        {
            let found = "integers, or elements where a node says, in slices";
            return Err(Error::unsupported(OP, found));
        }
        let mut nest = self.along_whole_slices(maps).unwrap_or_else(|| self.clone());
        for node in &mut nest.nodes {
            if let Node::Read { source, at, .. } = node
                && maps.has_source(*source)
                && let Some(dims) = nest.sources.get(*source)
            {
                *at = in_slices(at, dims.shape(), &nest.extents);
            }
        }
        for (place, dims) in nest.sources.iter_mut().enumerate() {
            if maps.has_source(place) {
                dims.checked(OP)?;
                *dims = Dims::new(&slices(dims.shape()))?;
            }
        }
        for (order, own) in
            nest.further.iter_mut().enumerate().filter(|(order, _)| maps.has_result(order + 1))
        {
            let shape = own.target.shape();
            if !shape.c.is_multiple_of(LANES) {
                let found = format!("result {} of {} channels", order + 1, shape.c);
                return Err(Error::unsupported(OP, format!("{found} in slices, wanted whole ones")));
            }
            own.at = in_slices(&own.at, shape, &self.extents);
            own.target = Dims::new(&slices(shape))?;
        }
        let target = nest.target;
        let nest = nest.tidied().checked()?;
        if !maps.has_result(0) {
            return Ok(nest);
        }
        let all = nest.sources.clone();
        let writer: Vec<SourceAt> = (0..all.len()).map(SourceAt::whole).collect();
        let sources = Sources { all: &all, reader: &[ReadFrom::Written(0)], writer: &writer, keeps: false };
        to_slices(target)?.after(&nest, &sources)
    }
}
