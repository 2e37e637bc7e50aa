//! Values that a run leaves to the next one.

use super::{Graph, Origin, Value};
use crate::alloc;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::host::HostTensor;
use crate::word;

/// A value that outlives a run.
#[derive(Debug, Clone)]
pub struct State {
    pub value: Value,
    /// What it is in the first run.
    pub initial: HostTensor,
    /// What it is in the next run; itself, if nothing updates it.
    pub next: Option<Value>,
}

impl Graph {
    /// Adds a state: nodes read it like any other value, and [`Graph::update`] says what it is in the next
    /// run. It stays on the device. In the first run, and after [`Session::reset`](struct.Session.html#method.reset), it is `initial`, which has elements: of a
    /// graph with a state of none no session is made.
    ///
    /// ```
    /// use diptych::{Backend, Context, Function, Graph, HostTensor, Session, SessionOptions};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", HostTensor::vector(vec![0.0])?.dims())?;
    /// let sum = graph.state("sum", HostTensor::vector(vec![0.0])?);
    /// let y = graph.elementwise("y", Function::Add, &[sum.into(), x.into()])?;
    /// graph.update(sum, y)?;
    /// graph.output(y)?;
    /// let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::default())?;
    /// let two = HostTensor::vector(vec![2.0])?;
    /// assert_eq!(session.run(&[("x", &two)])?[0].to_f32()[0], 2.0);
    /// assert_eq!(session.run(&[("x", &two)])?[0].to_f32()[0], 4.0);
    /// session.reset()?;
    /// assert_eq!(session.run(&[("x", &two)])?[0].to_f32()[0], 2.0);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn state(&mut self, name: &str, initial: HostTensor) -> Value {
        let value = self.value(name, initial.dims(), initial.dtype(), Origin::State);
        self.states.push(State { value, initial, next: None });
        value
    }

    /// Says what a state is in the next run: what `next` is in this one. All states change together, when
    /// everything else is computed.
    ///
    /// ```
    /// use diptych::{Function, Graph, HostTensor};
    ///
    /// let mut graph = Graph::new();
    /// let count = graph.state("count", HostTensor::vector(vec![0.0])?);
    /// let next = graph.elementwise("next", Function::Add, &[count.into(), 1.0.into()])?;
    /// graph.update(count, next)?;
    /// graph.output(next)?; // 1 in the first run, 2 in the second
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `state` is no state or has a next value already, or `next` has other dimensions or another type.
    pub fn update(&mut self, state: Value, next: Value) -> Result<()> {
        let (dims, dtype) = (self.info(next)?.dims, self.info(next)?.dtype);
        let name = self.info(state)?.name.clone();
        let found = self.states.iter_mut().find(|own| own.value == state);
        let Some(own) = found else {
            return Err(Error::input(name, "an update of what is no state", "a state"));
        };
        if own.next.is_some() {
            return Err(Error::input(name, "two updates of a state", "one"));
        }
        let own_dtype = own.initial.dtype();
        if own.initial.dims() != dims || own_dtype.word() != dtype.word() {
            let same = own_dtype.word() == dtype.word();
            let of = |dtype: DType| if same { String::new() } else { format!(" of {dtype}") };
            let found = format!("a next value of {dims}{}", of(dtype));
            let wanted = format!("{}{}", own.initial.dims(), of(own_dtype));
            return Err(Error::shape("update", format!("{name:?}: {found}"), wanted));
        }
        own.next = Some(next);
        Ok(())
    }

    /// Keeps `output` as a state for the input `input` of the next run. If this graph `reads` what the run before kept, the state replaces
    /// its input; otherwise it keeps its input, and only writes the state.
    ///
    /// # Errors
    /// If there is no such input, or it has other dimensions than the output and is read.
    #[doc(hidden)]
    pub fn feed_back(&mut self, input: &str, output: Value, reads: bool) -> Result<()> {
        let mut inputs = self.inputs.iter().copied();
        let own = inputs.find(|own| self.values.get(own.index).is_some_and(|info| info.name == input));
        let own = own
            .ok_or_else(|| Error::input(format!("input {input:?}"), "none that the network reads", "one"))?;
        let (dims, dtype) = (self.dims(output)?, self.tensor_type(own)?.dtype);
        if reads && self.dims(own)? != dims {
            let found = format!("an output of {dims} for an input of {}", self.dims(own)?);
            return Err(Error::input(format!("input {input:?}"), found, "equal dimensions"));
        }
        let next = self.cast(&format!("{input}/next"), output, dtype)?;
        let zeros = alloc::zeros(dims.elements() * dtype.word().words(), "a state")?;
        let initial = word::to_tensor(dims, dtype, dtype.word(), &zeros)?;
        if !reads {
            let state = self.state(&format!("{input}/next"), initial);
            return self.update(state, next);
        }
        self.inputs.retain(|other| *other != own);
        self.values[own.index].origin = Origin::State;
        self.states.push(State { value: own, initial, next: None });
        self.update(own, next)
    }

    /// The states, in the order they were added.
    #[doc(hidden)]
    pub fn states(&self) -> &[State] {
        &self.states
    }

    /// Adds the state `value` of another graph, without its update.
    pub(super) fn state_again(&mut self, other: &Graph, value: Value) {
        if let Some(State { initial, .. }) = other.states.iter().find(|state| state.value == value) {
            let name = other.info(value).map(|info| info.name.clone()).unwrap_or_default();
            self.state(&name, initial.clone());
        }
    }

    /// Updates the states as another graph of the same values does.
    pub(super) fn updates_again(&mut self, other: &Graph) -> Result<()> {
        let updates = other.states.iter().filter_map(|state| Some((state.value, state.next?)));
        updates.collect::<Vec<_>>().into_iter().try_for_each(|(state, next)| self.update(state, next))
    }
}
