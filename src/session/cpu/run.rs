//! A run on the CPU: its steps one after the other.

use super::{CpuNetwork, Holder, Step, Target, ValuePlace};
use crate::alloc;
use crate::clock::Instant;
use crate::cpu::aligned::Aligned;
use crate::cpu::workers;
use crate::device::Readback;
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::session::sets::Buffers;
use crate::sync::lock;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// A state by its index that a step changes, and its elements.
type Changed = (usize, Arc<[f32]>);

impl CpuNetwork {
    /// Runs the units on the caller's thread, with the help of others. Nothing is locked meanwhile: a
    /// worker that waits for parts of its own may take up another run.
    pub(super) fn run(
        self: &Arc<Self>,
        inputs: &[Cow<'_, [f32]>],
        mut clock: impl FnMut(Duration) + Send,
    ) -> Result<RunOutputs> {
        let mut run = self.begin()?;
        let steps = || {
            for step in &self.steps {
                let start = Instant::now();
                run.step(step, inputs)?;
                clock(start.elapsed());
            }
            Ok(())
        };
        workers::run(self.flops, self.threads, &self.load, steps)?;
        run.end(inputs)
    }

    pub(super) fn begin(self: &Arc<Self>) -> Result<Run<'_>> {
        let buffers = self.sets.take(&self.lengths)?;
        let mut states = lock(&self.states.held);
        let held = states.clone();
        // Those that the run changes are its own, as no one else has them.
        for &state in &self.states.changed {
            states[state] = Arc::default();
        }
        Ok(Run { network: self, buffers, held })
    }

    /// Notes what the states are in the next run.
    fn keep(&self, inputs: &[Cow<'_, [f32]>], buffers: &[Aligned], held: &[Arc<[f32]>]) -> Result<()> {
        if held.is_empty() {
            return Ok(());
        }
        let next = held.iter().zip(&self.states.next).enumerate().map(|(state, (held, next))| match next {
            Some(place) if !self.states.changed.contains(&state) => {
                self.read(*place, inputs, buffers).map(Arc::from)
            }
            Some(_) | None => Ok(Arc::clone(held)),
        });
        let next = next.collect::<Result<Vec<_>>>()?;
        *lock(&self.states.held) = next;
        Ok(())
    }

    fn read<'a>(
        &'a self,
        ValuePlace { holder, first, elements }: ValuePlace,
        inputs: &'a [Cow<'_, [f32]>],
        buffers: &'a [Aligned],
    ) -> Result<&'a [f32]> {
        let all = match holder {
            Holder::Input(input) => inputs.get(input).map(|values| &**values),
            Holder::Constant(constant) => self.constants.get(constant).map(|values| &**values),
            Holder::Buffer(buffer) => buffers.get(buffer).map(|values| &**values),
        };
        let found = all.and_then(|all| all.get(first..first + elements));
        found.ok_or_else(|| Error::Internal(format!("{elements} elements from {first} of {holder:?}")))
    }
}

/// A run under way. Dropped, nothing comes of it but what it wrote into states in place.
pub(super) struct Run<'n> {
    network: &'n Arc<CpuNetwork>,
    buffers: Buffers,
    /// The states as this run finds them.
    held: Vec<Arc<[f32]>>,
}

/// What holds an output of a run that is over.
#[derive(Debug)]
enum Output {
    Place(ValuePlace),
    /// A copy of an input or a state, which may change.
    Own(Arc<[f32]>),
}

/// The outputs of a run, in the buffers that it wrote: other runs have these once it is dropped.
#[derive(Debug)]
pub(super) struct RunOutputs {
    network: Arc<CpuNetwork>,
    buffers: Buffers,
    outputs: Vec<Output>,
}

impl Readback for RunOutputs {
    fn parts(&self) -> Vec<&[u8]> {
        let mut parts = Vec::with_capacity(self.outputs.len());
        for output in &self.outputs {
            let elements = match output {
                // It was found to be there.
                Output::Place(place) => self.network.read(*place, &[], &self.buffers).unwrap_or_default(),
                Output::Own(elements) => elements,
            };
            parts.push(bytemuck::cast_slice(elements));
        }
        parts
    }
}

impl Drop for RunOutputs {
    fn drop(&mut self) {
        self.network.sets.put(std::mem::take(&mut self.buffers));
    }
}

/// The inputs, and behind them the states.
fn with_states<'a>(inputs: &'a [Cow<'_, [f32]>], held: &'a [Arc<[f32]>]) -> Vec<Cow<'a, [f32]>> {
    let given = inputs.iter().map(|input| &**input);
    given.chain(held.iter().map(|state| &**state)).map(Cow::Borrowed).collect()
}

impl Run<'_> {
    pub(super) fn step(&mut self, step: &Step, inputs: &[Cow<'_, [f32]>]) -> Result<()> {
        // A step that changes a state does not read it.
        let mut changed: Vec<Changed> = Vec::new();
        for (_, target, _) in &step.outputs {
            if let Target::State(state) = *target {
                changed.push((state, std::mem::take(&mut self.held[state])));
            }
        }
        let all;
        let inputs = if self.held.is_empty() {
            inputs
        } else {
            all = with_states(inputs, &self.held);
            &all
        };
        let result = step.run(self.network, inputs, &mut self.buffers, &mut changed);
        for (state, values) in changed {
            self.held[state] = values;
        }
        result.map_err(|error| error.at_node(&step.name))
    }

    /// The outputs. The states are those of the next run from then on.
    pub(super) fn end(mut self, inputs: &[Cow<'_, [f32]>]) -> Result<RunOutputs> {
        let inputs = with_states(inputs, &self.held);
        let network = self.network;
        let output = |place: &ValuePlace| {
            let elements = network.read(*place, &inputs, &self.buffers)?;
            if let Holder::Input(_) = place.holder {
                alloc::expect::<f32>(elements.len(), "an output")?;
                return Ok(Output::Own(Arc::from(elements)));
            }
            Ok(Output::Place(*place))
        };
        let outputs = network.outputs.iter().map(output).collect::<Result<Vec<Output>>>()?;
        network.keep(&inputs, &self.buffers, &self.held)?;
        drop(inputs);
        // What it took is put back.
        self.held.clear();
        Ok(RunOutputs { network: Arc::clone(network), buffers: std::mem::take(&mut self.buffers), outputs })
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        let states = &self.network.states;
        if self.held.is_empty() || states.changed.is_empty() {
            return;
        }
        let mut held = lock(&states.held);
        for &state in &states.changed {
            held[state] = Arc::clone(&self.held[state]);
        }
    }
}

impl Step {
    fn run(
        &self,
        network: &CpuNetwork,
        inputs: &[Cow<'_, [f32]>],
        buffers: &mut Buffers,
        changed: &mut [Changed],
    ) -> Result<()> {
        // The plan never lets a step write a buffer that it reads.
        let mut targets: Vec<Aligned> =
            self.buffers().map(|buffer| std::mem::take(&mut buffers[buffer])).collect();
        let result = self.run_into(network, inputs, buffers, (&mut targets, changed));
        for (buffer, target) in self.buffers().zip(targets) {
            buffers[buffer] = target;
        }
        result
    }

    /// The buffers that it writes.
    fn buffers(&self) -> impl Iterator<Item = usize> + '_ {
        self.outputs.iter().filter_map(|(_, target, _)| match target {
            Target::Buffer(buffer) => Some(*buffer),
            Target::State(_) => None,
        })
    }

    fn run_into(
        &self,
        network: &CpuNetwork,
        inputs: &[Cow<'_, [f32]>],
        buffers: &[Aligned],
        (targets, changed): (&mut [Aligned], &mut [Changed]),
    ) -> Result<()> {
        let read = |(operand, place): &(Operand, ValuePlace)| {
            network.read(*place, inputs, buffers).map(|values| (*operand, values))
        };
        let read = self.inputs.iter().map(read).collect::<Result<Vec<_>>>()?;
        let mut written: Vec<(Operand, &mut [f32])> = Vec::with_capacity(self.outputs.len());
        let (mut targets, mut changed) = (targets.iter_mut(), changed.iter_mut());
        for (operand, target, elements) in &self.outputs {
            let values = match target {
                Target::Buffer(_) => targets.next().map(|values| &mut values[..*elements]),
                Target::State(_) => changed.next().map(|(_, values)| owned(values)).transpose()?,
            };
            let missing = || Error::Internal(format!("nothing to write {} to", operand.name()));
            written.push((*operand, values.ok_or_else(missing)?));
        }
        self.kernel.run(&read, &mut written)
    }
}

/// A state that no one else has: one that is what it is in the first run is copied.
fn owned(values: &mut Arc<[f32]>) -> Result<&mut [f32]> {
    if Arc::get_mut(values).is_none() {
        alloc::expect::<f32>(values.len(), "a state")?;
    }
    Ok(Arc::make_mut(values))
}
