//! Caches that the graphs of a network keep as states: the keys and values that a decoder has seen.
//!
//! Behind the first run the network is read as if its caches had all places but those of the run, and the run added the last
//! ones. The places of a run go behind those that are filled, and a mask of the file's hides the others. So the extents stay
//! the same from run to run. The network then must know positions by its inputs, not by the extents of its caches:
//! [`OnnxSource::check_places`] compares it with one of more places.
//!
//! A mask by which the places of a run do not see those behind them says where they are: at the end, if the file makes it of
//! extents. Then the attention is given them there, too, behind what is not filled ([`Filling::Apart`]).

use super::import::Import;
use super::source::OnnxSource;
use crate::alloc;
use crate::dims::{Dim, Dims};
use crate::dtype::DType;
use crate::emit::Operand as Role;
use crate::error::{Error, Hint, Result, Setting};
use crate::graph::{Graph, Value};
use crate::host::HostTensor;
use crate::model::build::{Cache, Kind, Mapped, Operand, part_of};
use crate::model::constant::{Constant, Integers};
use crate::model::reason::Reason;
use crate::ops::attention::Attention;
use crate::ops::operator::Operator;
use crate::ops::remap::{BroadcastTo, StridedSlice};
use crate::ops::view::{Reshape, Slice};
use crate::source::{Caching, Filling, GivenInput, PLACES, Part, PartStart};
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
    Dims::new(&extents)
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
            Filling::Next | Filling::Apart => {
                let filled = self.filled()?;
                self.current = name.to_owned();
                let shown = dims.extents()[rank - 2];
                (part_of(self, "earlier", &all, rank - 2, [0, shown])?, Some(filled))
            }
            Filling::Whole => (all, None),
        };
        let shown = match &operand {
            Operand::Value(mapped) => Some(mapped.value),
            Operand::Constant(..) => None,
        };
        let has_mask = !grown.is_empty();
        let (input, apart) = (name.to_owned(), way == Filling::Apart);
        let cache = Cache { input, state, shown, filled, has_mask, apart, next: None, given: None, adds: 0 };
        self.caches.push(cache);
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
        let (state, next, given) = (own.state, own.next, own.given);
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
            Filling::Next | Filling::Apart => match next.filter(|_| given == Some(value)) {
                Some(next) => next,
                None => {
                    let reason = "found what is not its cache with places added behind it (by Concat, or by an attention with a \
                                  past), wanted that";
                    let hint = Hint::new(": ", Setting::Carry, " takes any");
                    return Err(Reason::from(reason).hinted(Some(hint)));
                }
            },
            Filling::Whole => value,
        };
        Ok(self.graph.update(state, next)?)
    }
}

impl OnnxSource {
    /// [`GraphSource::part`](crate::session::GraphSource::part) behind the first run.
    ///
    /// A mask that the file makes of extents is right where the places of the run are behind all others, and one that it
    /// makes of positions where they lie. One place is seen by none of its run, and nothing has to be moved for it.
    pub(super) fn part_behind(
        &self,
        place: &PartStart,
        given: &[GivenInput<'_>],
        by_value: &BTreeSet<String>,
        caching: Caching<'_>,
    ) -> Result<Part> {
        let adds_one = caching.shown(given).is_none_or(|shown| shown + 1 == caching.places);
        let ways = if adds_one { [Filling::Next, Filling::Apart] } else { [Filling::Apart, Filling::Next] };
        let made = |way: Filling| self.part_filling(place, given, by_value, Some(Caching { way, ..caching }));
        // Caches are of networks of one part.
        let is_whole = |part: &Result<Part>| part.as_ref().is_ok_and(|part| part.next.is_none());
        let first = made(ways[0]);
        if is_whole(&first) {
            return first;
        }
        let second = made(ways[1]);
        if is_whole(&second) { second } else { first }
    }

    /// Refuses a network whose results depend on the extents of its caches.
    pub(super) fn check_places(
        &self,
        graph: &Graph,
        place: &PartStart,
        given: &[GivenInput<'_>],
        by_value: &BTreeSet<String>,
        caching: Caching<'_>,
    ) -> Result<()> {
        let behind = match caching.way {
            Filling::Next => None,
            Filling::Apart => caching.shown(given),
            Filling::First | Filling::Whole => return Ok(()),
        };
        let refused = |what: String| {
            let why = format!(
                "{what} depends on how many places its caches have: wanted positions and masks by inputs (position_ids, \
                 attention_mask)"
            );
            let error = Error::unsupported("a cache between runs of this network", why);
            Err(error.hinted(Hint::new(". ", Setting::Carry, " runs it as it is")))
        };
        if let Some((name, _)) = caching.grown.iter().find(|(name, _)| by_value.contains(name)) {
            return refused(format!("an extent or an option that input {name:?} gives"));
        }
        let mut larger = given.to_vec();
        for own in &mut larger {
            let mut extents = own.dims.extents().to_vec();
            let is_cache = caching.is_cache(&own.name);
            let axes = caching.grown.iter().filter(|(name, _)| *name == own.name).map(|(_, axis)| *axis);
            let axes: Vec<usize> = axes.chain(is_cache.then(|| extents.len() - 2)).collect();
            if axes.is_empty() {
                continue;
            }
            axes.into_iter().for_each(|axis| extents[axis] += MORE);
            (own.dims, own.input) = (Dims::new(&extents)?, None);
        }
        let caching = Caching { places: caching.places + MORE, ..caching };
        let other = self.graph_of(place, &larger, by_value, caching)?;
        match other
            .as_ref()
            .map_or_else(|| Some("the network".to_owned()), |other| differing(graph, other, behind))
        {
            Some(what) => refused(what),
            None => Ok(()),
        }
    }
}

/// What a graph differs by from one of [`MORE`] places, if not by extents alone: the name of a node. The places are `behind`
/// so many of each cache, or else behind all.
fn differing(one: &Graph, other: &Graph, behind: Option<usize>) -> Option<String> {
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
        let is_counted = |(operand, _): &(Role, Value)| matches!(operand, Role::Begins | Role::Ends);
        if !differ_by_extents(own.operator(), node.operator(), behind)
            || own.inputs().len() != node.inputs().len()
            // Lengths count places where they lie.
            || behind.is_some() && node.inputs().iter().any(is_counted)
        {
            return named();
        }
        for (&(_, value), &(_, own)) in node.inputs().iter().zip(own.inputs()) {
            wanted.insert(value);
            match (one.tensor(value), other.tensor(own)) {
                (Ok(None), Ok(None)) => (),
                (Ok(Some(value)), Ok(Some(own))) if has_more(own, value, behind) => (),
                _ => return named(),
            }
        }
    }
    None
}

/// Whether two operators are the same but for extents: of what a reshape makes, of a broadcast, or where a slice ends. A
/// slice that begins elsewhere, or another number in a function, is another operator; one that begins behind places has
/// more before it.
fn differ_by_extents(large: &dyn Operator, small: &dyn Operator, behind: Option<usize>) -> bool {
    fn both<'o, T: 'static>(one: &'o dyn Operator, other: &'o dyn Operator) -> Option<[&'o T; 2]> {
        Some([(one as &dyn Any).downcast_ref()?, (other as &dyn Any).downcast_ref()?])
    }
    let moved = |at: usize| if behind.is_some_and(|behind| at >= behind) { at + MORE } else { at };
    let begins = |large: usize, small: usize| large == small || large == moved(small);
    let alike = |[large, small]: [&StridedSlice; 2]| {
        let mut ranges = large.ranges.iter().zip(&small.ranges);
        large.ranges.len() == small.ranges.len()
            && ranges.all(|(large, small)| {
                let [whole, part] =
                    [large, small].map(|own| own.begin.and_then(|begin| usize::try_from(begin).ok()));
                large.step == small.step
                    && (large.begin == small.begin
                        || whole.zip(part).is_some_and(|(whole, part)| begins(whole, part)))
            })
    };
    // A window counts places, those that are not filled among them.
    let attends = |[large, small]: [&Attention; 2]| {
        let begin = if large.begin == moved(small.begin) { small.begin } else { large.begin };
        small.before.is_none() && Attention { begin, ..*large } == *small
    };
    large.same(small)
        || both::<Reshape>(large, small).is_some()
        || both::<BroadcastTo>(large, small).is_some()
        || both::<StridedSlice>(large, small).is_some_and(alike)
        || both::<Slice>(large, small).is_some_and(|[a, b]| a.axis == b.axis && begins(a.begin, b.begin))
        || both::<Attention>(large, small).is_some_and(attends)
}

/// Whether `large` has the elements of `small` with [`MORE`] `behind` so many along each longer axis; or else some behind
/// all of them.
fn has_more(large: &HostTensor, small: &HostTensor, behind: Option<usize>) -> bool {
    let (whole, part) = (large.dims(), small.dims());
    if whole == part {
        return large.place() == small.place() || large.bytes() == small.bytes();
    }
    let fits = |(part, whole): (&usize, &usize)| match behind {
        Some(_) => part == whole || part + MORE == *whole,
        None => part <= whole,
    };
    let (Some(each), Some((&row, outer))) = (each_of(small), part.extents().split_last()) else {
        return false;
    };
    if whole.rank() != part.rank()
        || each_of(large) != Some(each)
        || small.dtype() != large.dtype()
        || !part.extents().iter().zip(whole.extents()).all(fits)
    {
        return false;
    }
    let (own, other) = (small.bytes(), large.bytes());
    // Along an axis: where an element of the part is in the whole.
    let at = |place: usize, axis: usize| match behind {
        Some(behind) if place >= behind && part.extents()[axis] != whole.extents()[axis] => place + MORE,
        _ => place,
    };
    let last = outer.len();
    let first = behind.filter(|_| row != whole.extents()[last]).map_or(row, |behind| behind.min(row));
    (0..outer.iter().product()).all(|index: usize| {
        let (mut rest, mut begin, mut stride) = (index, 0, whole.extents()[last]);
        for (axis, extent) in outer.iter().enumerate().rev() {
            begin += at(rest % extent, axis) * stride;
            rest /= extent;
            stride *= whole.extents()[axis];
        }
        [(0, first), (first, row)].into_iter().filter(|(from, to)| from < to).all(|(from, to)| {
            let ours = own.get(each * (index * row + from)..each * (index * row + to));
            let theirs = begin + at(from, last);
            ours.is_some() && ours == other.get(each * theirs..each * (theirs + to - from))
        })
    })
}

/// Bytes of each element.
fn each_of(tensor: &HostTensor) -> Option<usize> {
    let elements = Some(tensor.dims().elements()).filter(|&elements| elements > 0)?;
    let bytes = tensor.bytes().len();
    bytes.is_multiple_of(elements).then_some(bytes / elements)
}
