//! Caches that stay where they are: the keys and values of a decoder, which each run adds places to.

use super::Session;
use super::cache_state::{CACHE, CacheState, extended, fed_by_last, moved_behind};
use super::caches::Caches;
use super::input::{FedInput, RunInput};
use super::open_inputs::known_extents;
use super::plans::Plans;
use super::ports::unknown;
use crate::dims::Dims;
use crate::error::{Error, Hint, Result, Setting};
use crate::host::HostTensor;
use crate::source::{Filling, PLACES};
use std::borrow::Cow;

impl Plans {
    /// What a run is given with its caches, and with masks of as many places as these have.
    pub(super) fn with_caches<'a>(&mut self, given: Vec<FedInput<'a>>) -> Result<Vec<FedInput<'a>>> {
        let Some(cached) = &mut self.cached else { return Ok(given) };
        if cached.filled == 0 && cached.filling != Filling::Whole {
            cached.held.clear();
        }
        let (places, way) = (cached.caches.places, cached.way());
        let (known, adds) = (known_extents(&self.source, &given), cached.more(&given));
        let mut all = Vec::with_capacity(given.len() + cached.caches.pairs.len() + 1);
        let (mut own, mut held, mut masks) = (given.into_iter().peekable(), Vec::new(), Vec::new());
        for input in self.source.inputs() {
            if cached.has_input(&input.name) {
                let dims = cached.dims(input, &known, adds)?;
                let mut others = dims.extents().to_vec();
                others.remove(others.len().saturating_sub(2));
                if let Some(before) = cached.held.get(held.len()).filter(|before| **before != others) {
                    let found = format!("extents {others:?} beside the places");
                    let wanted = format!("{before:?}, as in the first run");
                    let error = Error::input(format!("cache {:?}", input.name), found, wanted);
                    return Err(error.hinted(Hint::new(": ", Setting::Reset, " empties the caches")));
                }
                held.push(others);
                all.push(FedInput { name: Cow::Owned(input.name.clone()), dims, input: None });
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
            masks.push((input.name.clone(), extent));
            let tensor = match given.value()? {
                Some(tensor) => extended(&tensor, axis, places)?,
                None => return Err(Error::Internal("a mask without elements".to_owned())),
            };
            all.push(FedInput { dims: tensor.dims(), input: Some(RunInput::owned(tensor)), ..given });
        }
        for (_, input) in &cached.caches.fed {
            if let Some(own) = all.iter().find(|own| own.name == *input && own.input.is_none()) {
                let own = FedInput { name: Cow::Owned(fed_by_last(input)), dims: own.dims, input: None };
                all.push(own);
            }
        }
        if way == Filling::Next {
            let filled = HostTensor::of(Dims::new(&[1])?, vec![cached.filled as i32])?;
            let dims = filled.dims();
            all.push(FedInput { name: Cow::Borrowed(PLACES), dims, input: Some(RunInput::owned(filled)) });
        }
        if let Some(cached) = &mut self.cached {
            (cached.held, cached.masks) = (held, masks);
        }
        Ok(all)
    }

    /// Notes how many places the run adds that is about to begin. A run that has too many does not begin.
    pub(super) fn adds(&mut self, plan: u64) -> Result<()> {
        let adds = self.parts.get(&plan).map_or(0, |part| part.adds);
        let Some(cached) = &mut self.cached else { return Ok(()) };
        let (places, filled) = (cached.caches.places, cached.filled);
        if filled + adds > places {
            let found = format!("{adds} places behind {filled} that are filled");
            let error = Error::input("the caches", found, format!("{places} at most"));
            return Err(error.hinted(Hint::new(": ", Setting::Reset, " empties them")));
        }
        let masks = std::mem::take(&mut cached.masks);
        if let Some((name, extent)) = masks.into_iter().find(|(_, extent)| *extent != filled + adds) {
            let found = format!("{extent} places");
            let wanted = format!("{}: {filled} that are filled, and {adds} of the run", filled + adds);
            return Err(Error::input(format!("input {name:?}"), found, wanted));
        }
        cached.adds = adds;
        Ok(())
    }

    /// What the run of a plan is given, with its own places of masks where the plan has them.
    pub(super) fn with_masks<'a>(
        &self,
        plan: u64,
        mut given: Vec<FedInput<'a>>,
    ) -> Result<Vec<FedInput<'a>>> {
        let plan = self.parts.get(&plan).filter(|part| part.apart);
        let Some((cached, plan)) = self.cached.as_ref().zip(plan) else { return Ok(given) };
        for (name, axis) in &cached.grown {
            let Some(own) = given.iter_mut().find(|own| *own.name == *name) else { continue };
            let tensor = own.value()?.ok_or_else(|| Error::Internal("a mask without elements".to_owned()))?;
            let tensor = moved_behind(&tensor, *axis, cached.filled, plan.adds)?;
            own.input = Some(RunInput::owned(tensor));
        }
        Ok(given)
    }
}

impl Session {
    /// Keeps the keys and values of a decoder on the device from one run to the next. Each pair names an output and the input
    /// of the next run that it is, as `present.0.key` and `past_key_values.0.key`. The session no longer takes these inputs
    /// and no longer gives these outputs. A run writes its own keys and values behind those of the runs before, and copies
    /// nothing else of a cache. [`Session::reset`] empties the caches.
    ///
    /// A run takes any number of tokens: a prompt at once or in parts, the next turn of a chat, one token. One plan serves all
    /// runs of as many, whatever the length of the past. [`Session::truncate`] goes back to the first places. If the file makes
    /// its mask of extents, a run of several tokens behind others copies each cache once.
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
    /// Several sequences are rows of one batch. Shorter prompts have padding before them, which their rows of the mask hide, and
    /// positions of their own.
    ///
    /// Runs take place in the order in which they are submitted ([`Session::submit`]), each behind the places of those before.
    /// If one fails, what the caches hold is not known: [`Session::reset`] empties them.
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
            return Err(Error::unsupported(CACHE, "this session carries outputs"));
        }
        let Some(plans) = self.extents.open_mut() else {
            let why = "a session of a Graph has states (Graph::state) for what it keeps: it needs no caches";
            return Err(Error::unsupported(CACHE, why));
        };
        let (inputs, outputs) = (plans.source.inputs(), plans.source.outputs());
        if caches.places < 2 {
            return Err(Error::input("caches", format!("{} places", caches.places), "at least 2"));
        }
        let mut fixed = Vec::new();
        for (index, (output, input)) in caches.pairs.iter().enumerate() {
            if !outputs.iter().any(|port| port.name == *output) {
                return Err(unknown("output", output, &outputs));
            }
            let Some(own) = inputs.iter().find(|own| own.name == *input) else {
                return Err(unknown("input", input, &plans.inputs));
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
            fixed.extend(own.extents.iter().filter_map(|extents| Some((input, (*extents.get(rank - 2)?)?))));
        }
        for (index, (output, input)) in caches.fed.iter().enumerate() {
            if !outputs.iter().any(|port| port.name == *output) {
                return Err(unknown("output", output, &outputs));
            }
            if !inputs.iter().any(|own| own.name == *input) {
                return Err(unknown("input", input, &plans.inputs));
            }
            let others = caches.fed[..index].iter().chain(&caches.pairs);
            if others.map(|(_, own)| own).any(|own| own == input) {
                return Err(Error::input("caches", format!("input {input:?} twice"), "each once"));
            }
            if caches.pairs.iter().any(|(own, _)| own == output) {
                let found = "an output that is a cache";
                return Err(Error::input(format!("output {output:?}"), found, "one that runs give"));
            }
        }
        if caches.pairs.is_empty() {
            let error = Error::input("caches", "no pairs", "an output and an input for each cache");
            return Err(error.with_setting(Setting::Caches));
        }
        let names: Vec<&str> = caches.pairs.iter().map(|(_, input)| input.as_str()).collect();
        let filling = plans.source.filling(&names)?;
        let fits = |extent: usize| filling == Filling::Whole && extent == caches.places;
        if let Some((input, extent)) = fixed.into_iter().find(|(_, extent)| !fits(*extent)) {
            let wanted = match filling {
                Filling::Whole => format!("{extent} places, which the file fixes"),
                Filling::First | Filling::Next | Filling::Apart => {
                    "an axis of places that the file leaves open".to_owned()
                }
            };
            let found = format!("{extent} places in the file and {} of the caches", caches.places);
            return Err(Error::input(format!("cache {input:?}"), found, wanted));
        }
        let grown = caches.masks(inputs, &outputs);
        for (name, axis) in &grown {
            let own = inputs.iter().find(|own| own.name == *name);
            let own = own.ok_or_else(|| unknown("input", name, &plans.inputs))?;
            let rank = own.extents.as_ref().map_or(0, Vec::len);
            if caches.fed.iter().any(|(_, input)| input == name) {
                let wanted = "an input of the tokens of one run alone";
                return Err(Error::input(format!("input {name:?}"), "a mask of all places", wanted));
            }
            if *axis >= rank {
                let found = format!("axis {axis} of rank {rank}");
                return Err(Error::input(format!("mask {name:?}"), found, "an axis of the input"));
            }
        }
        let cached = CacheState {
            caches: caches.clone(),
            grown,
            filling,
            filled: 0,
            ran: false,
            adds: 0,
            masks: Vec::new(),
            held: Vec::new(),
        };
        plans.inputs.retain(|port| !cached.has_input(&port.name));
        plans.begin_again(cached);
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
        let cached = self.extents.open().and_then(|plans| plans.cached.as_ref());
        cached.map_or(0, |cached| cached.filled)
    }

    /// The caches that it keeps.
    pub(super) fn caches(&self) -> Option<&Caches> {
        let cached = self.extents.open().and_then(|plans| plans.cached.as_ref());
        cached.map(|cached| &cached.caches)
    }

    /// Notes that a run is over.
    pub(super) fn fill_caches(&mut self) {
        if let Some(cached) = self.extents.open_mut().and_then(|plans| plans.cached.as_mut()) {
            cached.filled += std::mem::take(&mut cached.adds);
            cached.ran = true;
        }
    }

    /// Goes back to the first places of the caches ([`Session::cache`]): what the runs behind them have written is forgotten.
    /// A run behind this call gives what it would have given without those runs. So a program takes back tokens that it
    /// guessed, changes the last turn of a chat, or tries several continuations of one prompt.
    ///
    /// ```
    /// use diptych::{Backend, Caches, Context, Dims, HostTensor, LoadOptions, ModelFile, SessionOptions};
    ///
    /// let file = ModelFile::load("examples/generate/data/decoder.onnx", &LoadOptions::default())?;
    /// let mut session = file.session(&Context::new(Backend::Cpu)?, SessionOptions::default())?;
    /// session.cache(&Caches::new(&file.cache_pairs(), 64))?;
    /// let mut scores = |session: &mut diptych::Session, text: &[u8]| {
    ///     let places = session.cached()..session.cached() + text.len();
    ///     let row = |values: Vec<i64>| HostTensor::of(Dims::new(&[1, values.len()])?, values);
    ///     let ids = row(text.iter().map(|&byte| byte.into()).collect())?;
    ///     let mask = row(vec![1; places.end])?;
    ///     let places = row(places.map(|place| place as i64).collect())?;
    ///     let inputs = [("input_ids", &ids), ("attention_mask", &mask), ("position_ids", &places)];
    ///     Ok::<_, diptych::Error>(session.run(&inputs)?[0].to_f32().into_owned())
    /// };
    ///
    /// scores(&mut session, b"A kernel ")?;
    /// let one = scores(&mut session, b"runs on")?;
    /// session.truncate(9)?; // the prompt stays
    /// assert_eq!(session.cached(), 9);
    /// let other = scores(&mut session, b"is text")?;
    /// session.truncate(9)?;
    /// assert_eq!(scores(&mut session, b"runs on")?, one);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the session keeps no caches, fewer places are filled, or the file keeps its caches otherwise than by places, as
    /// the last places of a sequence alone or a sum of them: [`Session::reset`] empties these. If the device fails.
    pub fn truncate(&mut self, places: usize) -> Result<()> {
        let plans = self.extents.open_mut();
        let cached = plans.as_ref().and_then(|plans| plans.cached.as_ref());
        let Some((filled, whole, way)) =
            cached.map(|cached| (cached.filled, cached.caches.places, cached.filling))
        else {
            let why = "the session keeps no caches by places";
            let error = Error::unsupported("going back to a place of the caches", why);
            return Err(error.hinted(Hint::new(": ", Setting::Reset, " sets states back")));
        };
        let by_places = plans.as_ref().and_then(|plans| plans.parts.get(&plans.current?));
        if way == Filling::Whole && by_places.is_some_and(|part| part.adds == 0) {
            let why = "the file does not keep its caches by places";
            let error = Error::unsupported("going back to a place of the caches", why);
            return Err(error.hinted(Hint::new(": ", Setting::Reset, " empties them")));
        }
        if places > filled {
            let found = format!("{places} places of caches of which {filled} are filled");
            return Err(Error::input("a place of the caches", found, format!("{filled} at most")));
        }
        // Nothing of them is left: a NaN among values that a mask hides would make others NaN.
        let Some(plans) = plans else { return Ok(()) };
        let fed = plans.cached.as_ref().map_or(0, |cached| cached.caches.fed.len());
        plans.current().runner.clear_places(whole, places..filled, fed)?;
        if let Some(cached) = &mut plans.cached {
            // The next run takes no output of a run that is forgotten.
            cached.ran &= places == filled;
            (cached.filled, cached.adds) = (places, 0);
        }
        Ok(())
    }

    /// Has the next run take no outputs of the last one, which filled no places.
    pub(super) fn forget_fed(&mut self) {
        if let Some(cached) = self.extents.open_mut().and_then(|plans| plans.cached.as_mut()) {
            cached.ran = false;
        }
    }

    /// Empties the caches.
    pub(super) fn empty_caches(&mut self) {
        if let Some(cached) = self.extents.open_mut().and_then(|plans| plans.cached.as_mut()) {
            (cached.filled, cached.adds, cached.ran) = (0, 0, false);
            cached.held.clear();
        }
    }
}
