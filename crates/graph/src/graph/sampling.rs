//! A class that is drawn by scores: the next token of a decoder.

use super::{Graph, Value};
use crate::emit::Bits;
use crate::error::{Error, Result};
use crate::ops::cumsum::CumSum;
use crate::ops::elementwise::Function;
use crate::ops::random::Random;
use crate::ops::reduce::Reduction;
use crate::ops::softmax::Softmax;

/// How [`Graph::sample`] draws a class by scores.
///
/// ```
/// use diptych::Sampling;
///
/// let likeliest = Sampling::default();
/// assert_eq!(likeliest.temperature.0, 0.0);
/// let free = Sampling::new(0.8).with_top_k(40).with_top_p(0.95);
/// assert_eq!((free.top_k, free.top_p.0), (Some(40), 0.95));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sampling {
    /// What scores are divided by: with 0 the class of the largest score is taken, with 1 classes are drawn by the softmax of the
    /// scores.
    pub temperature: Bits,
    /// Classes are drawn among so many of the largest scores; `None` means all.
    pub top_k: Option<usize>,
    /// Classes are drawn among the fewest of the largest scores whose shares add up to this (Holtzman et al., *The Curious Case
    /// of Neural Text Degeneration*, 2019): 1 for all. Where `top_k` is given, shares are those among its classes.
    pub top_p: Bits,
    /// Nodes of another seed draw other numbers in a session of the same seed.
    pub seed: u64,
}

impl Default for Sampling {
    /// The class of the largest score.
    fn default() -> Self {
        Sampling { temperature: Bits(0.0), top_k: None, top_p: Bits(1.0), seed: 0 }
    }
}

impl Sampling {
    /// Draws among all classes by the softmax of the scores over `temperature`.
    pub fn new(temperature: f32) -> Self {
        Sampling { temperature: Bits(temperature), ..Sampling::default() }
    }

    /// Draws among the `k` classes of the largest scores.
    #[must_use]
    pub fn with_top_k(self, k: usize) -> Self {
        Sampling { top_k: Some(k), ..self }
    }

    /// Draws among the fewest classes whose shares add up to `share`.
    #[must_use]
    pub fn with_top_p(self, share: f32) -> Self {
        Sampling { top_p: Bits(share), ..self }
    }

    fn check(&self) -> Result<()> {
        let Sampling { temperature, top_k, top_p, .. } = *self;
        let refused = |found: String, wanted: &str| Err(Error::input("a sampling", found, wanted));
        if temperature.0 != 0.0 && !temperature.0.is_normal() || temperature.0 < 0.0 {
            return refused(format!("a temperature of {}", temperature.0), "0, or a normal number above it");
        }
        if top_k == Some(0) {
            return refused("the 0 largest scores".to_owned(), "at least 1");
        }
        if !(top_p.0 > 0.0 && top_p.0 <= 1.0) {
            return refused(format!("classes of a share of {}", top_p.0), "one above 0 and at most 1");
        }
        Ok(())
    }
}

impl Graph {
    /// Adds the draw of a class for each row of scores: the index of one of the last axis, of which there is 1 place in the
    /// result. With the scores `s`, the temperature `t` and numbers `g` of Gumbel's distribution it is the index of the largest
    /// `s / t + g` (Gumbel, *Statistical Theory of Extreme Values*, 1954), so that class `i` has the probability
    /// `exp(s_i / t) / sum_j exp(s_j / t)`. [`Sampling`] says among which classes. Each run draws anew, by the
    /// session's seed, as [`Graph::random`] does.
    ///
    /// ```
    /// use diptych::Sampling;
    /// use diptych::{Backend, Context, Dims, Graph, HostTensor, Session, SessionOptions};
    ///
    /// let mut graph = Graph::new();
    /// let scores = graph.input("scores", Dims::new(&[1, 4])?)?;
    /// let next = graph.sample("next", scores, Sampling::new(1.0).with_top_k(2))?;
    /// graph.output(next)?;
    /// let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::default())?;
    /// let scores = HostTensor::new(Dims::new(&[1, 4])?, vec![0.0, 3.0, 1.0, 2.5])?;
    /// for _ in 0..20 {
    ///     let next = session.run(&[("scores", &scores)])?[0].to_f32()[0];
    ///     assert!(next == 1.0 || next == 3.0);
    /// }
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the scores have no axis or no classes, or the options are no numbers that the fields ask for.
    pub fn sample(&mut self, name: &str, scores: Value, options: Sampling) -> Result<Value> {
        options.check()?;
        let dims = self.dims(scores)?;
        let classes = dims.extents().last().copied().unwrap_or(0);
        if classes == 0 {
            return Err(Error::shape(
                "sample",
                format!("scores of {dims}"),
                "at least one class along the last axis",
            ));
        }
        self.or_nothing(|graph| graph.sampled(name, scores, classes, options))
    }

    fn sampled(&mut self, name: &str, scores: Value, classes: usize, options: Sampling) -> Result<Value> {
        let Sampling { temperature, top_k, top_p, seed } = options;
        if temperature.0 == 0.0 {
            return self.arg_max(name, scores, -1, true);
        }
        let part = |part: &str| format!("{name}/{part}");
        let most = top_k.unwrap_or(classes).min(classes);
        let sorted = most < classes || top_p.0 < 1.0;
        let (values, places) = match sorted {
            true => {
                let [values, places] = self.top_k(&part("largest"), scores, most)?;
                (values, Some(places))
            }
            false => (scores, None),
        };
        // Differences from the largest score neither overflow nor, where a class is likely, lose bits in halves.
        let most = self.reduce(&part("most"), values, Reduction::Max, &[-1], true)?;
        let values = self.elementwise(&part("below"), Function::Sub, &[values.into(), most.into()])?;
        let mut logs =
            self.elementwise(&part("scaled"), Function::Div, &[values.into(), temperature.0.into()])?;
        if top_p.0 < 1.0 {
            let shares = self.softmax(&part("shares"), logs, Softmax::default())?;
            // The share of those before each: that of the first is 0.
            let options = CumSum { axis: -1, exclusive: true, reverse: false };
            let before = self.cumsum(&part("before"), shares, options)?;
            let taken = self.elementwise(&part("taken"), Function::Less, &[before.into(), top_p.0.into()])?;
            let none = f32::NEG_INFINITY;
            logs =
                self.elementwise(&part("logs"), Function::Select, &[taken.into(), logs.into(), none.into()])?;
        }
        let noise = self.random_like(&part("noise"), Random::gumbel().seed(seed), logs)?;
        let sums = self.elementwise(&part("sums"), Function::Add, &[logs.into(), noise.into()])?;
        match places {
            None => self.arg_max(name, sums, -1, true),
            Some(places) => {
                let place = self.arg_max(&part("place"), sums, -1, true)?;
                // Each row has its own place.
                let rows = self.dims(places)?.rank() - 1;
                self.gather(name, places, place, -1, rows)
            }
        }
    }
}
