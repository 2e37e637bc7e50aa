//! Caches that the graphs of a network keep as states: the keys and values that a decoder has seen.
//!
//! Behind the first run the network is read as if its caches had all places but one, and a run added the last one. The
//! places of a run go behind those that are filled, and a mask of the file's hides the others. So the extents stay the same
//! from run to run. The network then must know positions by its inputs, not by the extents of its caches:
//! [`OnnxSource::check_places`] compares it with one of more places.

use super::import::Import;
use super::parts::OnnxSource;
use crate::alloc;
use crate::dims::{Dim, Dims};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::graph::{Graph, Value};
use crate::host::HostTensor;
use crate::model::build::{Cache, Kind, Mapped, Operand, part_of};
use crate::model::constant::{Constant, Integers};
use crate::model::reason::Reason;
use crate::ops::operator::Operator;
use crate::ops::remap::{BroadcastTo, StridedSlice};
use crate::ops::view::{Reshape, Slice};
use crate::session::{Caching, Filling, Given, PLACES, Place};
use crate::word;
use std::any::Any;
use std::collections::BTreeSet;

/// How many places more the network is compared with.
const MORE: usize = 8;

/// Dimensions with another extent along the axis of places.
fn of_places(dims: Dims, places: usize) -> Result<Dims> {
    let mut extents = dims.extents().to_vec();
    if let Some(axis) = extents.len().checked_sub(2) {
        extents[axis] = places;
    }
    Dims::new_or_empty(&extents)
}

impl Import<'_> {
    /// A cache as the graph's state, and what operators are given of it.
    pub(super) fn cache(
        &mut self,
        name: &str,
        dims: Dims,
        kind: Kind,
        caching: Option<Caching<'_>>,
    ) -> Result<Operand, Reason> {
        let Some(Caching { places, way, grown, .. }) = caching else { return refused!("found no caches") };
        let (whole, rank, dtype) = (of_places(dims, places)?, dims.rank(), kind.dtype().word());
        if rank < 2 {
            return refused!("found {dims}, wanted places and features");
        }
        let initial = self.nothing(whole, dtype)?;
        let state = self.graph.state(name, initial);
        self.names.insert(name.to_owned());
        let all = Operand::Value(Mapped::plain(state, rank, kind));
        let (operand, filled) = match way {
            Filling::First => {
                let nothing = Integers::new(dims.extents().to_vec(), Vec::new());
                (Operand::Constant(Constant::Integers(nothing), kind), None)
            }
            Filling::Next => {
                let filled = self.filled()?;
                self.current = name.to_owned();
                (part_of(self, "earlier", &all, rank - 2, [0, places - 1])?, Some(filled))
            }
            Filling::Whole => (all, None),
        };
        let shown = match &operand {
            Operand::Value(mapped) => Some(mapped.value),
            Operand::Constant(..) => None,
        };
        let has_mask = !grown.is_empty();
        let input = name.to_owned();
        self.caches.push(Cache { input, state, shown, filled, has_mask, next: None, adds: 0 });
        Ok(operand)
    }

    /// What a cache is before the first run. Caches of the same extents share it.
    fn nothing(&mut self, dims: Dims, dtype: DType) -> Result<HostTensor, Reason> {
        let mut states = self.graph.states().iter().map(|state| &state.initial);
        if let Some(known) = states.find(|known| known.dims() == dims && known.dtype() == dtype) {
            return Ok(known.clone());
        }
        let kept = self.kept.clone();
        let name = format!("nothing {dtype} {dims}");
        if let Some([(Constant::Floats(known), _)]) =
            kept.as_ref().and_then(|kept| kept.known(&name)).as_deref()
        {
            return Ok(known.clone());
        }
        let zeros = alloc::zeros(dims.elements() * dtype.words(), "a cache")?;
        let made = match dtype {
            DType::F32 => HostTensor::new(dims, zeros)?,
            _ => word::to_tensor(dims, dtype, dtype, &zeros)?,
        };
        if let Some(kept) = kept {
            kept.keep_made(name, &[(Constant::Floats(made.clone()), Kind::F32)]);
        }
        Ok(made)
    }

    /// The input that says how many places are filled.
    fn filled(&mut self) -> Result<Value, Reason> {
        let known = self.graph.inputs().iter().copied();
        let known = known.filter(|&input| self.graph.name(input).is_ok_and(|name| name == PLACES));
        if let Some(known) = known.last() {
            return Ok(known);
        }
        self.names.insert(PLACES.to_owned());
        Ok(self.graph.typed_input(PLACES, DType::I32, &[Dim::Fixed(1)])?)
    }

    /// Has an output of the network be what the cache of an input is in the next run.
    pub(super) fn keep_cache(
        &mut self,
        input: &str,
        output: Operand,
        Caching { way, places, .. }: &Caching<'_>,
    ) -> Result<(), Reason> {
        let cache = self.caches.iter().position(|own| own.input == input);
        let cache = cache.ok_or_else(|| format!("found no input {input:?}, wanted its cache"))?;
        let own = &self.caches[cache];
        let (state, next) = (own.state, own.next);
        let whole = self.graph.dims(state)?;
        let mapped = self.mapped_slot(output, None)?;
        let value = self.logical(&mapped)?;
        let dims = self.graph.dims(value)?;
        let next = match way {
            Filling::First => {
                let adds = dims.extents().iter().rev().nth(1).copied().unwrap_or(0);
                if dims.rank() != whole.rank() || of_places(dims, *places)? != whole || adds > *places {
                    return refused!(
                        "found {dims}, wanted the extents of a cache of {whole} and at most as many places"
                    );
                }
                self.caches[cache].adds = adds;
                let none = HostTensor::of(Dims::new(&[1])?, vec![0i32])?;
                let begin = self.graph.constant("begin", none);
                self.current = self.graph.name(state)?.to_owned();
                let axis = whole.rank() as isize - 2;
                self.add("filled", |graph, name| graph.update_slice(name, state, value, begin, axis))?
            }
            Filling::Next if next == Some(value) => value,
            Filling::Next => {
                return refused!(
                    "found what is not its cache with places added behind it (by Concat, or by an attention with a past), \
                     wanted that: Session::carry takes any"
                );
            }
            Filling::Whole => value,
        };
        Ok(self.graph.update(state, next)?)
    }
}

impl OnnxSource {
    /// Refuses a network whose results depend on the extents of its caches.
    pub(super) fn check_places(
        &self,
        graph: &Graph,
        place: &Place,
        given: &[Given<'_>],
        by_value: &BTreeSet<String>,
        caching: Caching<'_>,
    ) -> Result<()> {
        if caching.way != Filling::Next {
            return Ok(());
        }
        let refused = |what: String| {
            let why = format!(
                "{what} depends on how many places its caches have: wanted positions and masks by inputs (position_ids, \
                 attention_mask). Session::carry runs it as it is"
            );
            Err(Error::unsupported("Session::cache with this network", why))
        };
        if let Some((name, _)) = caching.grown.iter().find(|(name, _)| by_value.contains(name)) {
            return refused(format!("an extent or an option that input {name:?} gives"));
        }
        let mut larger = given.to_vec();
        for own in &mut larger {
            let mut extents = own.dims.extents().to_vec();
            let is_cache = caching.pairs.iter().any(|(_, input)| *input == own.name);
            let axes = caching.grown.iter().filter(|(name, _)| *name == own.name).map(|(_, axis)| *axis);
            let axes: Vec<usize> = axes.chain(is_cache.then(|| extents.len() - 2)).collect();
            if axes.is_empty() {
                continue;
            }
            axes.into_iter().for_each(|axis| extents[axis] += MORE);
            (own.dims, own.input) = (Dims::new_or_empty(&extents)?, None);
        }
        let caching = Caching { places: caching.places + MORE, ..caching };
        let other = self.graph_of(place, &larger, by_value, caching)?;
        match other.as_ref().map_or_else(|| Some("the network".to_owned()), |other| differing(graph, other)) {
            Some(what) => refused(what),
            None => Ok(()),
        }
    }
}

/// What two graphs differ by, if not by extents alone: the name of a node.
fn differing(one: &Graph, other: &Graph) -> Option<String> {
    if one.nodes().len() != other.nodes().len() {
        return Some("the network".to_owned());
    }
    let mut wanted: BTreeSet<Value> = one.outputs().iter().copied().collect();
    wanted.extend(one.states().iter().filter_map(|state| state.next));
    for (own, node) in other.nodes().iter().zip(one.nodes()).rev() {
        if !node.outputs().iter().any(|output| wanted.contains(output)) {
            continue;
        }
        let named = || Some(format!("{:?}", node.name()));
        if !differ_by_extents(own.operator(), node.operator()) || own.inputs().len() != node.inputs().len() {
            return named();
        }
        for (&(_, value), &(_, own)) in node.inputs().iter().zip(own.inputs()) {
            wanted.insert(value);
            match (one.tensor(value), other.tensor(own)) {
                (Ok(None), Ok(None)) => (),
                (Ok(Some(value)), Ok(Some(own))) if begins_with(own, value) => (),
                _ => return named(),
            }
        }
    }
    None
}

/// Whether two operators are the same but for extents: of what a reshape makes, of a broadcast, or where a slice ends. A
/// slice that begins elsewhere, or another number in a function, is another operator.
fn differ_by_extents(one: &dyn Operator, other: &dyn Operator) -> bool {
    fn both<'o, T: 'static>(one: &'o dyn Operator, other: &'o dyn Operator) -> Option<[&'o T; 2]> {
        Some([(one as &dyn Any).downcast_ref()?, (other as &dyn Any).downcast_ref()?])
    }
    let begins =
        |own: &StridedSlice| own.ranges.iter().map(|range| (range.begin, range.step)).collect::<Vec<_>>();
    one.same(other)
        || both::<Reshape>(one, other).is_some()
        || both::<BroadcastTo>(one, other).is_some()
        || both::<StridedSlice>(one, other).is_some_and(|[one, other]| begins(one) == begins(other))
        || both::<Slice>(one, other).is_some_and(|[a, b]| (a.axis, a.begin) == (b.axis, b.begin))
}

/// Whether the elements of `small` are the first ones along each axis of `large`.
fn begins_with(large: &HostTensor, small: &HostTensor) -> bool {
    let (whole, part) = (large.dims(), small.dims());
    if whole == part {
        return large.place() == small.place() || large.bytes() == small.bytes();
    }
    let fits = whole.rank() == part.rank() && part.extents().iter().zip(whole.extents()).all(|(a, b)| a <= b);
    let each = match small.dtype() == large.dtype()
        && part.elements() > 0
        && small.bytes().len().is_multiple_of(part.elements())
    {
        true => small.bytes().len() / part.elements(),
        false => return false,
    };
    fits && (0..part.elements()).all(|element| {
        let (mut rest, mut at, mut stride) = (element, 0, 1);
        for (own, extent) in part.extents().iter().zip(whole.extents()).rev() {
            at += rest % own * stride;
            rest /= own;
            stride *= extent;
        }
        let bytes = |tensor: &HostTensor, at: usize| {
            tensor.bytes().get(each * at..each * (at + 1)).map(<[u8]>::to_vec)
        };
        bytes(large, at) == bytes(small, element)
    })
}
