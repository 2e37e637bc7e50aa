//! Nests whose operands are feature maps in slices of four channels ([`Layout::C4`](crate::layout::Layout::C4)): a slice is
//! a place like any other, so what changes an operand's form is a part of the nest.

use super::compose::{ReadFrom, SourceAt, Sources};
use super::index::Index;
use super::nest::{Guard, Nest, Node, Nodes};
use super::{OP, OperandSet};
use crate::dims::Dims;
use crate::dtype::DType;
use crate::emit::Bits;
use crate::error::{Error, Result};
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
        let mut nest = self.clone();
        for node in &mut nest.nodes {
            if let Node::Read { source, at, .. } = node
                && maps.has_source(*source)
                && let Some(dims) = self.sources.get(*source)
            {
                *at = in_slices(at, dims.shape(), &self.extents);
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
        let nest = nest.tidied().checked()?;
        if !maps.has_result(0) {
            return Ok(nest);
        }
        let all = nest.sources.clone();
        let writer: Vec<SourceAt> = (0..all.len()).map(SourceAt::whole).collect();
        let sources = Sources { all: &all, reader: &[ReadFrom::Written(0)], writer: &writer, keeps: false };
        to_slices(self.target)?.after(&nest, &sources)
    }
}
