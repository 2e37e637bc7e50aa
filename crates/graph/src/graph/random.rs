//! Random numbers: nodes that read the graph's key, a state that holds the session's seed and counts its runs.

use super::{Graph, Value};
use crate::dims::{Dim, Dims};
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::host::HostTensor;
use crate::ops::random::{KEY, NextKey, Numbered, Random, mixed, words};
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

/// The key's name.
const NAME: &str = "random key";

/// What a graph knows of its random numbers.
#[derive(Debug, Clone, Default)]
pub(super) struct Draws {
    /// The state that they begin with, where there are any.
    pub(super) key: Option<Value>,
    /// The streams of the nodes, each of which is one node's alone.
    pub(super) streams: HashSet<u64>,
}

impl Graph {
    /// Adds random numbers of these extents. Each run of a session draws others, which follow from
    /// [`SessionOptions::seed`](struct.SessionOptions.html#structfield.seed), the node's name and seed, and how many runs there were: a
    /// session of the same seed draws the same in its first run, in its second, and so on, on every device to the bit.
    /// After [`Session::reset`](struct.Session.html#method.reset) it begins again.
    ///
    /// ```
    /// use diptych::nn::Random;
    /// use diptych::{Backend, Context, Dim, Graph, HostTensor, Session, SessionOptions};
    ///
    /// let mut graph = Graph::new();
    /// let noise = graph.random("noise", Random::normal(0.0, 1.0), &[Dim::Fixed(2), Dim::Fixed(3)])?;
    /// graph.output(noise)?;
    /// let options = SessionOptions { seed: 7, ..Default::default() };
    /// let mut session = Session::new(&Context::new(Backend::Auto)?, &graph, options)?;
    /// let none: [(&str, &HostTensor); 0] = [];
    /// let (first, second) = (session.run(&none)?, session.run(&none)?);
    /// assert_ne!(first[0].to_f32(), second[0].to_f32());
    /// session.reset()?;
    /// assert_eq!(session.run(&none)?[0].to_f32(), first[0].to_f32());
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the distribution has no such numbers, or an extent is not one of [`Graph::dimensions`].
    pub fn random(&mut self, name: &str, options: Random, extents: &[Dim]) -> Result<Value> {
        self.add_random(name, options, extents, None)
    }

    /// [`Graph::random`], as many as `like` has elements, which is of any type and is not read.
    ///
    /// ```
    /// use diptych::nn::Random;
    /// use diptych::{Function, Graph, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 8, 8, 16))?;
    /// let noise = graph.random_like("noise", Random::normal(0.0, 0.1), x)?;
    /// let noisy = graph.elementwise("noisy", Function::Add, &[x.into(), noise.into()])?;
    /// assert_eq!(graph.with_batch(5)?.shape(noise)?, Shape::nhwc(5, 8, 8, 16));
    /// # let _ = noisy;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the distribution has no such numbers, or the value is of another graph.
    pub fn random_like(&mut self, name: &str, options: Random, like: Value) -> Result<Value> {
        self.add_random(name, options, &[], Some(like))
    }

    fn add_random(
        &mut self,
        name: &str,
        options: Random,
        extents: &[Dim],
        like: Option<Value>,
    ) -> Result<Value> {
        let mut stream = options.stream(name);
        // Two nodes of one name draw different numbers too.
        while self.draws.streams.contains(&stream) {
            stream = mixed(stream.wrapping_add(1));
        }
        let (nodes, states, values) = (self.nodes.len(), self.states.len(), self.values.len());
        let known = self.draws.key;
        let key = self.key()?;
        let operator = Numbered { options, stream, extents: extents.to_vec() };
        let inputs: Vec<(Operand, Value)> =
            [(Operand::Src, key)].into_iter().chain(like.map(|like| (Operand::Arg(0), like))).collect();
        match self.add(name, Arc::new(operator), &inputs) {
            Ok(outputs) => {
                self.draws.streams.insert(stream);
                match outputs[..] {
                    [output] => Ok(output),
                    _ => Err(Error::Internal(format!("node {name:?} has not one output"))),
                }
            }
            Err(error) => {
                // Without the key that it would have begun.
                self.nodes.truncate(nodes);
                self.states.truncate(states);
                self.values.truncate(values);
                self.draws.key = known;
                Err(error)
            }
        }
    }

    /// The key, which counts a run at each.
    pub(super) fn key(&mut self) -> Result<Value> {
        if let Some(key) = self.draws.key {
            return Ok(key);
        }
        let key = self.state(NAME, key_tensor([0; KEY])?);
        let next = self.add(&format!("{NAME}/next"), Arc::new(NextKey), &[(Operand::Src, key)])?;
        next.into_iter().try_for_each(|next| self.update(key, next))?;
        self.draws.key = Some(key);
        Ok(key)
    }

    /// Whether a node draws random numbers.
    #[doc(hidden)]
    pub fn draws(&self) -> bool {
        self.draws.key.is_some()
    }

    /// Which of the states is the key.
    #[doc(hidden)]
    pub fn key_place(&self) -> Option<usize> {
        let key = self.draws.key?;
        self.states.iter().position(|state| state.value == key)
    }

    /// The graph with the key of `seed` and run 0 as the first value of its random key; unchanged if it draws no numbers.
    #[doc(hidden)]
    pub fn seeded(&self, seed: u64) -> Result<Cow<'_, Graph>> {
        let Some(place) = self.key_place() else { return Ok(Cow::Borrowed(self)) };
        let initial = key_tensor(key_of(seed, 0))?;
        let mut graph = self.clone();
        if let Some(state) = graph.states.get_mut(place) {
            state.initial = initial;
        }
        Ok(Cow::Owned(graph))
    }
}

/// The words of the key of a run: two of the seed, two of the run's number.
pub type Key = [u32; KEY];

/// The key of a session's run.
pub const fn key_of(seed: u64, run: u64) -> Key {
    let ([a, b], [c, d]) = (words(seed), words(run));
    [a, b, c, d]
}

fn key_tensor(words: Key) -> Result<HostTensor> {
    HostTensor::of(Dims::new(&[KEY])?, words.to_vec())
}
