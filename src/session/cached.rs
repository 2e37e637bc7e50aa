//! Caches that stay where they are: the keys and values of a decoder, which each run adds places to.

use super::Session;
use super::given::known_extents;
use super::input::RunInput;
use super::plans::Changing;
use super::ports::unknown;
use super::source::{Caching, Filling, Given, OpenInput, PLACES};
use crate::alloc;
use crate::dims::Dims;
use crate::error::{Error, Result};
use crate::host::HostTensor;
use crate::word;
use std::borrow::Cow;

/// Which outputs of each run are inputs of the next one, for [`Session::cache`].
///
/// ```
/// use diptych::Caches;
///
/// let pairs = [("present.0.key", "past_key_values.0.key"), ("present.0.value", "past_key_values.0.value")];
/// let caches = Caches::new(&pairs, 2048);
/// assert_eq!(caches.places(), 2048);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caches {
    pairs: Vec<(String, String)>,
    places: usize,
    grown: Option<Vec<(String, usize)>>,
}

impl Caches {
    /// Pairs of an output and an input, and how many places each cache has: the most that a sequence can have. Places are
    /// the axis before the last one.
    ///
    /// ```
    /// use diptych::Caches;
    ///
    /// let caches = Caches::new(&[("present_key", "past_key")], 512);
    /// assert_eq!(caches.pairs()[0], ("present_key".to_owned(), "past_key".to_owned()));
    /// ```
    pub fn new<S: AsRef<str>>(pairs: &[(S, S)], places: usize) -> Self {
        let owned = |(output, input): &(S, S)| (output.as_ref().to_owned(), input.as_ref().to_owned());
        Caches { pairs: pairs.iter().map(owned).collect(), places, grown: None }
    }

    /// The axes of attention masks: inputs that have an element for each token of the earlier runs and of this one. Without
    /// this call they are the axes whose names in the file contain the name of the caches' axis, or begin with `total`.
    ///
    /// ```
    /// use diptych::Caches;
    ///
    /// let caches = Caches::new(&[("present_key", "past_key")], 512).with_masks(&[("attention_mask", 1)]);
    /// ```
    #[must_use]
    pub fn with_masks(mut self, axes: &[(&str, usize)]) -> Self {
        self.grown = Some(axes.iter().map(|(name, axis)| ((*name).to_owned(), *axis)).collect());
        self
    }

    /// The pairs of an output and an input.
    ///
    /// ```
    /// use diptych::Caches;
    ///
    /// assert!(Caches::new::<&str>(&[], 512).pairs().is_empty());
    /// ```
    pub fn pairs(&self) -> &[(String, String)] {
        &self.pairs
    }

    /// How many places each cache has.
    ///
    /// ```
    /// use diptych::Caches;
    ///
    /// assert_eq!(Caches::new(&[("present_key", "past_key")], 512).places(), 512);
    /// ```
    pub fn places(&self) -> usize {
        self.places
    }
}

/// The caches of a session.
#[derive(Debug)]
pub(super) struct Cached {
    caches: Caches,
    grown: Vec<(String, usize)>,
    /// How runs fill them behind the first one.
    filling: Filling,
    /// How many places the runs have filled.
    pub(super) filled: usize,
    /// How many the last planned run adds.
    adds: usize,
    /// A mask of the run that begins, and how many places it has.
    mask: Option<(String, usize)>,
    /// The extents of a feature map of each cache in the first run, places left out.
    held: Vec<Vec<usize>>,
}

impl Cached {
    /// How the next run fills them.
    fn way(&self) -> Filling {
        match self.filling {
            Filling::Whole => Filling::Whole,
            _ if self.filled == 0 => Filling::First,
            way => way,
        }
    }

    pub(super) fn caching(&self) -> Caching<'_> {
        Caching { pairs: &self.caches.pairs, places: self.caches.places, grown: &self.grown, way: self.way() }
    }

    pub(super) fn has_input(&self, name: &str) -> bool {
        self.caches.pairs.iter().any(|(_, input)| input == name)
    }

    pub(super) fn has_output(&self, name: &str) -> bool {
        self.caches.pairs.iter().any(|(output, _)| output == name)
    }

    /// The dimensions of a cache in the next run.
    fn dims(&self, own: &OpenInput, known: &[(&str, usize)]) -> Result<Dims> {
        let extents = own.extents.as_deref().unwrap_or_default();
        let places = extents.len().wrapping_sub(2);
        let shown = match self.way() {
            Filling::First => 0,
            Filling::Next => self.caches.places - 1,
            Filling::Whole => self.caches.places,
        };
        let mut dims = Vec::with_capacity(extents.len());
        for (axis, extent) in extents.iter().enumerate() {
            let name = own.open.iter().find(|open| open.axis == axis).map(|open| open.name.as_str());
            let known =
                name.and_then(|name| known.iter().find(|(own, _)| *own == name)).map(|(_, extent)| *extent);
            let extent = match (axis == places, extent, known, axis) {
                (true, ..) => shown,
                (false, Some(extent), ..) => *extent,
                (false, None, Some(known), _) => known,
                (false, None, None, 0) => 1,
                (false, None, None, _) => {
                    let name = name.unwrap_or_default();
                    return Err(Error::input(
                        format!("cache {:?}", own.name),
                        format!("an axis {axis}, {name:?}, whose extent no input says"),
                        "a fixed one: give it as LoadOptions::dimensions",
                    ));
                }
            };
            dims.push(extent);
        }
        Dims::new_or_empty(&dims)
    }
}

/// A tensor with zeros behind its elements along an axis.
fn extended(tensor: &HostTensor, axis: usize, extent: usize) -> Result<HostTensor> {
    let (own, dtype) = (tensor.dims(), tensor.dtype());
    let mut extents = own.extents().to_vec();
    let before = std::mem::replace(&mut extents[axis], extent);
    let inner: usize = extents[axis + 1..].iter().product::<usize>() * dtype.word().words();
    let dims = Dims::new_or_empty(&extents)?;
    let mut words = alloc::zeros(dims.elements() * dtype.word().words(), "a mask")?;
    let given = tensor.words()?;
    for (to, from) in words.chunks_mut((extent * inner).max(1)).zip(given.chunks((before * inner).max(1))) {
        to[..from.len()].copy_from_slice(from);
    }
    word::to_tensor(dims, dtype, dtype.word(), &words)
}

impl Changing {
    /// What a run is given with its caches, and with masks of as many places as these have.
    pub(super) fn with_caches<'a>(&mut self, given: Vec<Given<'a>>) -> Result<Vec<Given<'a>>> {
        let Some(cached) = &mut self.cached else { return Ok(given) };
        if cached.filled == 0 && cached.filling != Filling::Whole {
            cached.held.clear();
        }
        let (places, way) = (cached.caches.places, cached.way());
        let known = known_extents(&self.source, &given);
        let mut all = Vec::with_capacity(given.len() + cached.caches.pairs.len() + 1);
        let (mut own, mut held, mut mask) = (given.into_iter().peekable(), Vec::new(), None);
        for input in self.source.inputs() {
            if cached.has_input(&input.name) {
                let dims = cached.dims(input, &known)?;
                let mut others = dims.extents().to_vec();
                others.remove(others.len().saturating_sub(2));
                if let Some(before) = cached.held.get(held.len()).filter(|before| **before != others) {
                    let found = format!("extents {others:?} beside the places");
                    let wanted =
                        format!("{before:?}, as in the first run: Session::reset empties the caches");
                    return Err(Error::input(format!("cache {:?}", input.name), found, wanted));
                }
                held.push(others);
                all.push(Given { name: Cow::Owned(input.name.clone()), dims, input: None });
                continue;
            }
            let Some(given) = own.next_if(|given| *given.name == input.name) else { continue };
            let axis = cached.grown.iter().find(|(name, _)| *name == input.name).map(|(_, axis)| *axis);
            let axis = axis.filter(|_| way == Filling::Next);
            let Some((axis, extent)) =
                axis.zip(axis.and_then(|axis| given.dims.extents().get(axis).copied()))
            else {
                all.push(given);
                continue;
            };
            if extent > places || extent <= cached.filled {
                let found =
                    format!("{extent} along axis {axis} behind {} filled places of {places}", cached.filled);
                let wanted = format!("one for each filled place and each of the run, {places} at most");
                return Err(Error::input(format!("input {:?}", input.name), found, wanted));
            }
            mask = Some((input.name.clone(), extent));
            let tensor = match given.value()? {
                Some(tensor) => extended(&tensor, axis, places)?,
                None => return Err(Error::Internal("a mask without elements".to_owned())),
            };
            all.push(Given { dims: tensor.dims(), input: Some(RunInput::owned(tensor)), ..given });
        }
        if way == Filling::Next {
            let filled = HostTensor::of(Dims::new(&[1])?, vec![cached.filled as i32])?;
            let dims = filled.dims();
            all.push(Given { name: Cow::Borrowed(PLACES), dims, input: Some(RunInput::owned(filled)) });
        }
        if let Some(cached) = &mut self.cached {
            (cached.held, cached.mask) = (held, mask);
        }
        Ok(all)
    }

    /// Notes how many places the run adds that is about to begin. A run that has too many does not begin.
    pub(super) fn adds(&mut self, plan: u64) -> Result<()> {
        let adds = self.plans.get(&plan).map_or(0, |plan| plan.adds);
        let Some(cached) = &mut self.cached else { return Ok(()) };
        let (places, filled) = (cached.caches.places, cached.filled);
        if filled + adds > places {
            let found = format!("{adds} places behind {filled} that are filled");
            let wanted = format!("{places} at most (Caches::new): Session::reset empties them");
            return Err(Error::input("the caches", found, wanted));
        }
        if let Some((name, extent)) = cached.mask.take().filter(|(_, extent)| *extent != filled + adds) {
            let found = format!("{extent} places");
            let wanted = format!("{}: {filled} that are filled, and {adds} of the run", filled + adds);
            return Err(Error::input(format!("input {name:?}"), found, wanted));
        }
        cached.adds = adds;
        Ok(())
    }
}

impl Session {
    /// Keeps the keys and values of a decoder on the device from one run to the next. Each pair names an output and the input
    /// of the next run that it is, as `present.0.key` and `past_key_values.0.key`. The session no longer takes these inputs
    /// and no longer gives these outputs. A run writes its own keys and values behind those of the runs before, and copies
    /// nothing else of a cache. [`Session::reset`] empties the caches.
    ///
    /// The first run takes a prompt of any length. Each later run takes one token, or several if the file has
    /// `GroupQueryAttention`. One plan serves all runs of one token, whatever the length of the past.
    ///
    /// Masks and positions are those of all tokens so far. A mask has an element for each token of the earlier runs and of
    /// this one ([`Caches::with_masks`]); the session fills it with zeros up to the length of the caches. The file must take
    /// masks and positions as inputs. The second run refuses a network whose results depend on the extent of its past in
    /// another way, and one without such a mask. [`Session::carry`] runs these.
    ///
    /// The file may write attention out (`Concat` of the past and new rows), or have `GroupQueryAttention`,
    /// `MultiHeadAttention` or `Attention`. If it writes into caches of a fixed length itself (`TensorScatter`), a run takes
    /// the other inputs as the file says.
    ///
    /// Runs follow each other: [`Session::submit`] and [`Session::stream`] are refused.
    ///
    /// ```no_run
    /// use diptych::{Backend, Caches, Context, Dims, HostTensor, LoadOptions, ModelFile, SessionOptions};
    ///
    /// let file = ModelFile::load("decoder.onnx", &LoadOptions::default())?;
    /// let mut session = file.session(&Context::new(Backend::Auto)?, SessionOptions::default())?;
    /// session.cache(&Caches::new(&file.cache_pairs(), 1024))?;
    ///
    /// let row = |values: Vec<i64>| HostTensor::of(Dims::new(&[1, values.len()])?, values);
    /// let mut ids = vec![464, 3290, 318];
    /// let mut new = 0..3;
    /// for _ in 0..20 {
    ///     let given = row(ids[new.clone()].to_vec())?;
    ///     let mask = row(vec![1; ids.len()])?;
    ///     let places = row(new.clone().map(|place| place as i64).collect())?;
    ///     let inputs = [("input_ids", &given), ("attention_mask", &mask), ("position_ids", &places)];
    ///     let logits = session.run(&inputs)?;
    ///     // The caller chooses the next one by the last row of the logits.
    ///     # let next = logits.len() as i64;
    ///     ids.push(next);
    ///     new = ids.len() - 1..ids.len();
    /// }
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If this is no session of a [`ModelFile`](crate::ModelFile), there is no such output, input or axis, one is in two
    /// pairs, or there are not at least two places.
    pub fn cache(&mut self, caches: &Caches) -> Result<()> {
        if !self.carried.is_empty() {
            return Err(Error::unsupported(
                "Session::cache",
                "this session carries outputs (Session::carry)",
            ));
        }
        let Some(changing) = self.changing.as_deref_mut() else {
            let why = "a session of a Graph has states (Graph::state) for what it keeps: it needs no caches";
            return Err(Error::unsupported("Session::cache", why));
        };
        let (inputs, outputs) = (changing.source.inputs(), changing.source.outputs());
        if caches.places < 2 {
            return Err(Error::input("caches", format!("{} places", caches.places), "at least 2"));
        }
        let (mut axis_names, mut fixed) = (Vec::new(), Vec::new());
        for (index, (output, input)) in caches.pairs.iter().enumerate() {
            if !outputs.iter().any(|port| port.name == *output) {
                return Err(unknown("output", output, &outputs));
            }
            let Some(own) = inputs.iter().find(|own| own.name == *input) else {
                return Err(unknown("input", input, &changing.inputs));
            };
            let others = &caches.pairs[..index];
            if others.iter().any(|(other, own)| other == output || own == input) {
                return Err(Error::input("caches", format!("{output:?} or {input:?} twice"), "each once"));
            }
            let rank = own.extents.as_ref().map_or(0, Vec::len);
            if rank < 2 {
                let found = format!("rank {rank}");
                return Err(Error::input(format!("cache {input:?}"), found, "axes of places and features"));
            }
            let places = own.open.iter().filter(|open| open.axis + 2 == rank);
            axis_names.extend(places.map(|open| open.name.as_str()));
            fixed.extend(own.extents.iter().filter_map(|extents| Some((input, (*extents.get(rank - 2)?)?))));
        }
        if caches.pairs.is_empty() {
            return Err(Error::input("caches", "no pairs", "an output and an input for each cache"));
        }
        let names: Vec<&str> = caches.pairs.iter().map(|(_, input)| input.as_str()).collect();
        let filling = changing.source.filling(&names)?;
        let fits = |extent: usize| filling == Filling::Whole && extent == caches.places;
        if let Some((input, extent)) = fixed.into_iter().find(|(_, extent)| !fits(*extent)) {
            let wanted = match filling {
                Filling::Whole => format!("{extent} places, which the file fixes"),
                Filling::First | Filling::Next => "an axis of places that the file leaves open".to_owned(),
            };
            let found = format!("{extent} places in the file and {} of the caches", caches.places);
            return Err(Error::input(format!("cache {input:?}"), found, wanted));
        }
        let grown = match &caches.grown {
            Some(grown) => grown.clone(),
            None => grown(inputs, &names, &axis_names),
        };
        for (name, axis) in &grown {
            let own = inputs.iter().find(|own| own.name == *name);
            let own = own.ok_or_else(|| unknown("input", name, &changing.inputs))?;
            let rank = own.extents.as_ref().map_or(0, Vec::len);
            if *axis >= rank {
                let found = format!("axis {axis} of rank {rank}");
                return Err(Error::input(format!("mask {name:?}"), found, "an axis of the input"));
            }
        }
        let cached = Cached {
            caches: caches.clone(),
            grown,
            filling,
            filled: 0,
            adds: 0,
            mask: None,
            held: Vec::new(),
        };
        changing.inputs.retain(|port| !cached.has_input(&port.name));
        changing.begin_again(cached);
        let changing = self.changing.take();
        *self = Session::idle(changing);
        Ok(())
    }

    /// How many places the runs have filled of the caches ([`Session::cache`]); 0 where there are none.
    ///
    /// ```
    /// use diptych::{Backend, Context, LoadOptions, ModelFile, SessionOptions};
    ///
    /// let file = ModelFile::load("examples/posenet/data/posenet_figures.tflite", &LoadOptions::default())?;
    /// let session = file.session(&Context::new(Backend::Cpu)?, SessionOptions::default())?;
    /// assert_eq!(session.cached(), 0);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn cached(&self) -> usize {
        let cached = self.changing.as_ref().and_then(|changing| changing.cached.as_ref());
        cached.map_or(0, |cached| cached.filled)
    }

    /// The caches that it keeps.
    pub(super) fn caches(&self) -> Option<&Caches> {
        let cached = self.changing.as_ref().and_then(|changing| changing.cached.as_ref());
        cached.map(|cached| &cached.caches)
    }

    /// Notes that a run is over.
    pub(super) fn fill_caches(&mut self) {
        if let Some(cached) = self.changing.as_mut().and_then(|changing| changing.cached.as_mut()) {
            cached.filled += std::mem::take(&mut cached.adds);
        }
    }

    /// Empties the caches.
    pub(super) fn empty_caches(&mut self) {
        if let Some(cached) = self.changing.as_mut().and_then(|changing| changing.cached.as_mut()) {
            (cached.filled, cached.adds) = (0, 0);
            cached.held.clear();
        }
    }
}

/// The axes of inputs that are no caches which have an element for each place, by their names.
fn grown(inputs: &[OpenInput], caches: &[&str], axis_names: &[&str]) -> Vec<(String, usize)> {
    let mut grown = Vec::new();
    for input in inputs.iter().filter(|input| !caches.contains(&input.name.as_str())) {
        let is_grown = |name: &str| {
            name.starts_with("total") || axis_names.iter().any(|own| !own.is_empty() && name.contains(own))
        };
        let axis = input.open.iter().find(|open| is_grown(&open.name));
        grown.extend(axis.map(|open| (input.name.clone(), open.axis)));
    }
    grown
}
