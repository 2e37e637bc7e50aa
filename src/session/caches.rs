//! Which caches a session keeps, and which inputs are masks of their places.

use crate::source::OpenInput;
use crate::source::{OpenAxis, Port};

/// Which outputs of each run are inputs of the next one, for [`Session::cache`](crate::Session::cache).
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
    pub(super) pairs: Vec<(String, String)>,
    pub(super) places: usize,
    pub(super) grown: Option<Vec<(String, usize)>>,
    pub(super) fed: Vec<(String, String)>,
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
        Caches { pairs: pairs.iter().map(owned).collect(), places, grown: None, fed: Vec::new() }
    }

    /// The axes of attention masks: inputs that have an element for each token of the earlier runs and of this one. Without
    /// this call they are the axes to which the file gives the name that the places of the outputs have, or one in which the
    /// name of the caches' places is a term, as `past_sequence_length + sequence_length`.
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

    /// Feeds outputs back: a run that is not given such an input takes the output of the run before, such as the token that a decoder
    /// has chosen ([`ModelFile::with_next_token`](crate::ModelFile::with_next_token)). Each pair names an output and an input of the
    /// output's extents.
    /// The output stays on the device for the next run, and is given to the caller as well, so that runs can be submitted
    /// ([`Session::submit`](crate::Session::submit)) before the results of those before them have arrived. The first run is given
    /// these inputs, and so is the first one behind [`Session::reset`](crate::Session::reset),
    /// [`Session::profile`](crate::Session::profile), or [`Session::truncate`](crate::Session::truncate) to fewer places.
    ///
    /// ```
    /// use diptych::Caches;
    ///
    /// let caches = Caches::new(&[("present_key", "past_key")], 512).with_fed(&[("token", "input_ids")]);
    /// ```
    #[must_use]
    pub fn with_fed<S: AsRef<str>>(mut self, pairs: &[(S, S)]) -> Self {
        let owned = |(output, input): &(S, S)| (output.as_ref().to_owned(), input.as_ref().to_owned());
        self.fed = pairs.iter().map(owned).collect();
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

    /// The axes of inputs that are masks: inputs that are no caches, with an element for each token of the earlier runs and
    /// of this one. The file says which: such an axis has the name that the places of an output of a cache have, or one in
    /// which the name of the places of an input is a term.
    pub(super) fn masks(&self, inputs: &[OpenInput], outputs: &[Port]) -> Vec<(String, usize)> {
        if let Some(grown) = &self.grown {
            return grown.clone();
        }
        let (mut all, mut past) = (Vec::new(), Vec::new());
        for (output, input) in &self.pairs {
            let own = outputs.iter().find(|own| own.name == *output);
            all.extend(own.and_then(|own| name_of_places(&own.open, own.dims.rank())));
            let own = inputs.iter().find(|own| own.name == *input);
            past.extend(own.and_then(|own| name_of_places(&own.open, own.extents.as_ref()?.len())));
        }
        let is_grown = |name: &str| {
            // Of a name that says both nothing follows.
            all.contains(&name) && !past.contains(&name)
                || past.iter().any(|&past| past != name && has_term(name, past))
        };
        let others = inputs.iter().filter(|input| self.pairs.iter().all(|(_, own)| *own != input.name));
        let grown = others.filter_map(|input| {
            let axis = input.open.iter().find(|open| is_grown(&open.name))?;
            Some((input.name.clone(), axis.axis))
        });
        grown.collect()
    }
}

/// The name of the axis of places.
fn name_of_places(open: &[OpenAxis], rank: usize) -> Option<&str> {
    open.iter()
        .find(|open| open.axis + 2 == rank)
        .map(|open| open.name.as_str())
        .filter(|name| !name.is_empty())
}

/// Whether a sum has this term.
fn has_term(sum: &str, term: &str) -> bool {
    sum.split('+').any(|own| own.trim() == term)
}
